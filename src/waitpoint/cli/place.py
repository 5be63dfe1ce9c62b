"""Where a command works: the settings, the store and the graphs, opened when first needed."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from waitpoint.checkpoint.base import BaseCheckpointSaver
from waitpoint.cli import graphs, safe, stores
from waitpoint.cli.settings import FILE_NAME, Settings, read_settings
from waitpoint.engine.runner import Runner
from waitpoint.errors import ConfigError

_WITH_GRAPH = ("answer", "withdraw", "continue", "approve", "edit", "reject", "respond", "decide")


@dataclass(slots=True)
class Place:
    """The surroundings of one command, from its flags and `waitpoint.toml`."""

    store_flag: str | None = None
    config_flag: str | None = None
    as_json: bool = False
    shows_traceback: bool = False
    graph_flag: str | None = None
    _settings: Settings | None = field(default=None, init=False)
    _saver: BaseCheckpointSaver | None = field(default=None, init=False)

    @property
    def settings(self) -> Settings:
        """What `waitpoint.toml` says."""
        if self._settings is None:
            self._settings = read_settings(self.config_flag)
        return self._settings

    def saver(self, *, create: bool = False) -> BaseCheckpointSaver:
        """Return the store; it is made only with `create`. Raises `ConfigError` where none is named."""
        if self._saver is None:
            settings = self.settings
            url = self.store_flag or settings.store_url
            if url is None:
                where = f"[store] in '{settings.path}'" if settings.path else f"a {FILE_NAME} with [store]"
                raise ConfigError(
                    f"No store is named, so there are no threads to speak of; give --store sqlite:///threads.db, or {where} "
                    f'url = "sqlite:///threads.db"'
                )
            folder = Path.cwd() if self.store_flag else settings.folder
            self._saver = stores.open_store(url, folder, create=create)
        return self._saver

    def close(self) -> None:
        """Close the store."""
        if self._saver is not None:
            self._saver.close()

    # --- graphs ---

    def graph_named(self, target: str) -> Runner:
        """Return the graph of a name in the settings, or of "module:attr". It has no store yet; see `bound`."""
        found = self.settings.graphs.get(target, target)
        if ":" not in found:
            known = ", ".join(map(repr, self.settings.graphs)) or "none"
            raise ConfigError(
                f"Unknown graph '{target}': it is neither MODULE:ATTRIBUTE nor a name in [graphs] of {FILE_NAME} ({known})"
            )
        return graphs.load_graph(found, self._folders)

    def object_named(self, target: str, kind: str = "saver") -> Any:
        """Return what "module:attr" names, which is to be a `kind`: a saver or what opens one, or a function."""
        return graphs.load(target, self._folders, kind)

    @property
    def _folders(self) -> list[Path]:
        return [Path.cwd(), self.settings.folder, *self.settings.python_path]

    def graph_of(self, name: str) -> Runner:
        """Return the graph whose own name (`compile(name=...)`) is this: it owns the thread."""
        if self.graph_flag is not None:
            graph = self.graph_named(self.graph_flag)
            if graph.name != name:
                raise ConfigError(
                    f"--graph {self.graph_flag} is named '{graph.name}', but the thread belongs to graph '{name}'; "
                    f"give that one"
                )
            return graph
        found: dict[str, Runner] = {}
        broken: ConfigError | None = None
        for label in self.settings.graphs:
            try:
                graph = self.graph_named(label)
            except ConfigError as error:
                broken = broken or error
                continue
            if graph.name == name and not any(graph.spec is other.spec for other in found.values()):
                found[label] = graph
        if len(found) == 1:
            return next(iter(found.values()))
        if found:
            raise ConfigError(
                f"The graphs {' and '.join(map(repr, found))} are all named '{name}', so it is not known whose thread this is; "
                f"name them with compile(name=...), or give --graph"
            )
        if broken is not None:
            raise broken
        raise ConfigError(
            f"Graph '{name}', which owns this thread, is not in [graphs] of {FILE_NAME}; add it there as "
            f'{name} = "module:attr", or give --graph MODULE:ATTRIBUTE'
        )

    def bound(self, graph: Runner, *, create: bool = False) -> Runner:
        """Return the graph with the store as its checkpointer. Raises `ConfigError` if it has another one."""
        own = graph.checkpointer
        saver = self.saver(create=create)
        if isinstance(own, BaseCheckpointSaver) and own.identity != saver.identity:
            raise ConfigError(
                f"Graph '{graph.name}' was compiled with its own {type(own).__name__}, and what it asks there could not "
                f"be answered here; compile it without a checkpointer, and it keeps its threads in the store"
            )
        return graph.bound(saver)

    # --- lines to type ---

    def line(self, *words: str, options: Sequence[str] = ()) -> str:
        """Return a command to be typed, with options of its own and the flags that this one was given."""
        program = "waitpoint" if shutil.which("waitpoint") else sys.argv[0]
        flags = list(options)
        if self.store_flag is not None:
            flags += ["--store", self.store_flag]
        if self.config_flag is not None:
            flags += ["--config", self.config_flag]
        if self.graph_flag is not None and words[0] in _WITH_GRAPH:
            flags += ["--graph", self.graph_flag]
        command, *given = words
        if any(word.startswith("-") and word != "-" for word in given):
            return safe.line(shlex.join([program, command, *flags, "--", *given]))
        return safe.line(shlex.join([program, command, *given, *flags]))
