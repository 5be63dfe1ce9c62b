"""Finding graphs: from "module:attr" to the compiled graph, with a sentence for each way that can go wrong."""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from waitpoint.engine.runner import Runner
from waitpoint.errors import ConfigError
from waitpoint.graph.state import StateGraph


def load_graph(target: str, folders: Sequence[Path]) -> Runner:
    """Import the graph that "module:attr" names; the folders are importable, before all else. Raises `ConfigError`."""
    found = load(target, folders, "graph")
    module_name, _, attribute = target.partition(":")
    if isinstance(found, StateGraph):
        raise ConfigError(
            f"'{target}' is a graph that is not compiled; give what its compile() returns: graph = {attribute}.compile()"
        )
    if not isinstance(found, Runner):
        what = f"the class {found.__name__}" if isinstance(found, type) else f"a {type(found).__name__}"
        raise ConfigError(
            f"'{target}' is {what}, not a compiled graph{_graphs_in(sys.modules[module_name], attribute)}"
        )
    return found


def load(target: str, folders: Sequence[Path], kind: str) -> Any:
    """Import what "module:attr" names, which is to be a `kind`. Raises `ConfigError`."""
    module_name, _, attribute = target.partition(":")
    if not module_name or not attribute or not all(part.isidentifier() for part in module_name.split(".")):
        raise ConfigError(
            f"'{target}' names no {kind}; write MODULE:ATTRIBUTE as in an import, such as app.flows:{kind}"
        )
    for folder in reversed(folders):
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    found: Any = _imported(module_name, target)
    for part in attribute.split("."):
        if not hasattr(found, part):
            known = _graphs_in(sys.modules[module_name], attribute) if kind == "graph" else "; check the name"
            raise ConfigError(f"Module '{module_name}' has no '{attribute}'{known}")
        found = getattr(found, part)
    return found


def needs_a_loop(graph: Runner) -> bool:
    """Whether anything in the graph, or in a graph inside it, is a coroutine function."""
    for node in graph.spec.nodes.values():
        calls = [node.call, node.error_handler, *(branch.call for branch in node.branches)]
        for call in calls:
            if call is None:
                continue
            if call.is_async or (call.kind == "graph" and needs_a_loop(call.fn)):
                return True
    return False


def _imported(name: str, target: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise ConfigError(
                f"There is no module '{error.name}' for '{target}' - it is neither in the current folder nor installed; "
                f"go to its folder, or name it in [python] path of waitpoint.toml"
            ) from None
        raise _broken(name, error) from error
    except (Exception, SystemExit) as error:
        raise _broken(name, error) from error


def _broken(name: str, error: BaseException) -> ConfigError:
    detail = f"{type(error).__name__}: {error}".rstrip(": ")
    return ConfigError(f"Module '{name}' cannot be imported - {detail} - mend it; --traceback shows the place")


def _graphs_in(module: Any, wanted: str) -> str:
    """List what could have been meant."""
    names = [name for name, value in vars(module).items() if isinstance(value, Runner)]
    close = difflib.get_close_matches(wanted, names, n=1)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; its graphs are {', '.join(map(repr, sorted(names)))}" if names else "; it holds no compiled graph"
