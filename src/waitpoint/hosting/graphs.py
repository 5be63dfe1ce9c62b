"""The graphs that a host runs, by the names they are served under, and the assistant that each has by itself."""

from __future__ import annotations

import difflib
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from waitpoint import clock
from waitpoint.checkpoint.base import BaseCheckpointSaver, ThreadKey
from waitpoint.engine.runner import Runner
from waitpoint.errors import ConfigError, NotFoundError
from waitpoint.ledger.base import AssistantRow, Ledger

_NAMESPACE = uuid.UUID("5f0a3c62-5a2f-5c1b-9d6e-6d1f0f9a7e11")  # of the ids of built-in assistants; never changes


class Graphs:
    """Graphs bound to one saver, by name."""

    def __init__(self, graphs: Mapping[str, Runner], saver: BaseCheckpointSaver, store: Any = None) -> None:
        self._graphs: dict[str, Runner] = {}
        self._names: dict[str, str] = {}  # by a graph's own name, which is in its threads' keys
        for name, graph in graphs.items():
            if not isinstance(graph, Runner):
                raise ConfigError(
                    f"Graph '{name}' is a {type(graph).__name__}; give what compile() or create_agent() returns"
                )
            own = graph.checkpointer
            if isinstance(own, BaseCheckpointSaver) and own.identity != saver.identity:
                raise ConfigError(
                    f"Graph '{name}' was compiled with its own {type(own).__name__}, and what it asks there could not be "
                    f"answered here; compile it without a checkpointer, and it keeps its threads in the server's store"
                )
            if graph.name in self._names:
                raise ConfigError(
                    f"The graphs '{self._names[graph.name]}' and '{name}' are both named '{graph.name}', so it is not known "
                    f"whose thread a thread is; name them with compile(name=...)"
                )
            bound = graph.bound(saver)
            if bound.store is None and store is not None:
                bound.store = store
            self._graphs[name], self._names[graph.name] = bound, name

    def __iter__(self) -> Iterator[str]:
        return iter(self._graphs)

    def __contains__(self, name: object) -> bool:
        return name in self._graphs

    def __getitem__(self, name: str) -> Runner:
        """Return a graph. Raises `NotFoundError`."""
        graph = self._graphs.get(name)
        if graph is None:
            close = difflib.get_close_matches(name, self._graphs, n=1)
            known = (
                f"did you mean '{close[0]}'?" if close else f"known are {', '.join(map(repr, self._graphs)) or 'none'}"
            )
            raise NotFoundError(f"Unknown graph '{name}'; {known}")
        return graph

    def name_of(self, key: ThreadKey) -> str | None:
        """Return the name under which the graph of a thread is served, None if it is not."""
        return self._names.get(key.graph)

    def key(self, name: str, thread_id: str) -> ThreadKey:
        """Return the thread of a graph."""
        return ThreadKey(thread_id, self[name].name)


def builtin_id(graph: str) -> str:
    """Return the id of the assistant that a graph has by itself: the same after each start."""
    return str(uuid.uuid5(_NAMESPACE, graph))


def find_assistant(graphs: Graphs, ledger: Ledger, given: str) -> AssistantRow:
    """Return the assistant of an id, or the built-in one of a graph's name. Raises `NotFoundError`."""
    wanted = builtin_id(given) if given in graphs else given
    found = ledger.assistants(ids=[wanted])
    if found and found[0].graph in graphs:
        return found[0]
    known = ", ".join(map(repr, graphs)) or "none"
    raise NotFoundError(
        f"Invalid assistant ID: '{given}'. It is neither the id of an assistant nor the name of a graph; the graphs here are "
        f"{known}"
    )


def add_builtin(graphs: Graphs, ledger: Ledger) -> None:
    """Give each graph its assistant, where it has none yet."""
    at = clock.now()
    for name in graphs:
        metadata = {"created_by": "system"}
        ledger.add_assistant(AssistantRow(builtin_id(name), name, name, None, {}, {}, metadata, 1, at, at))
