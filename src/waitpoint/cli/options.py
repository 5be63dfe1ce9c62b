"""The options that every command has, added to its own."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from waitpoint.cli import exits, terminal
from waitpoint.cli.place import Place

_EVERYWHERE: dict[str, Any] = {
    "store": Annotated[str | None, typer.Option("--store", metavar="URL", help="Where threads are kept.")],
    "config": Annotated[str | None, typer.Option("--config", metavar="PATH", help="Another waitpoint.toml.")],
    "json": Annotated[bool, typer.Option("--json", help="Write one JSON document, for programs.")],
    "traceback": Annotated[bool, typer.Option("--traceback", help="Show where an error came from.")],
}
_GRAPH = Annotated[
    str | None,
    typer.Option("--graph", metavar="GRAPH", help="The graph: a name in waitpoint.toml or MODULE:ATTRIBUTE."),
]


def command(*, with_graph: bool = False) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Turn a function of a `Place` and its own arguments into a command of the program."""

    def added(function: Callable[..., int]) -> Callable[..., int]:
        @functools.wraps(function)
        def called(**given: Any) -> int:
            place = Place(
                store_flag=given.pop("store"),
                config_flag=given.pop("config"),
                as_json=given.pop("json"),
                shows_traceback=given.pop("traceback"),
                graph_flag=given.pop("graph") if with_graph else None,
            )
            try:
                return function(place, **given)
            except BrokenPipeError:
                terminal.drop_output()
                return exits.DONE
            finally:
                place.close()

        own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
        extra = dict(_EVERYWHERE)
        if with_graph:
            extra["graph"] = _GRAPH
        keyword = inspect.Parameter.KEYWORD_ONLY
        more = [
            inspect.Parameter(name, keyword, default=False if name in ("json", "traceback") else None, annotation=kind)
            for name, kind in extra.items()
        ]
        parameters = [*(p.replace(kind=keyword) for p in own), *more]
        called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        called.__annotations__ = {p.name: p.annotation for p in parameters}
        del called.__wrapped__
        return called

    return added
