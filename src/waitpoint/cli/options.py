"""The options that every command has, added to its own."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import typer

from waitpoint.cli import exits, terminal
from waitpoint.cli.place import Place

_EVERYWHERE: dict[str, Any] = {
    "store": Annotated[str | None, typer.Option("--store", metavar="URL", help="Where threads are kept.")],
    "config": Annotated[str | None, typer.Option("--config", metavar="PATH", help="Another waitpoint.toml.")],
    "json": Annotated[bool, typer.Option("--json", help="Write one JSON document, for programs.")],
    "traceback": Annotated[bool, typer.Option("--traceback", help="Show where an error came from.")],
}
BY = Annotated[
    str | None, typer.Option("--by", metavar="NAME", help="Who decides; default: the user of this computer.")
]
NO_RUN = Annotated[bool, typer.Option("--no-run", help="Only record it; the thread is run by whoever continues it.")]
_RECORDING: dict[str, Any] = {
    "by": BY,
    "comment": Annotated[str | None, typer.Option("--comment", metavar="TEXT", help="A remark for the record.")],
    "no_run": NO_RUN,
}
_CHOOSING: dict[str, Any] = {
    "call": Annotated[
        list[int] | None,
        typer.Option("--call", metavar="N", help="Of several calls this one; for each call once, or --all."),
    ],
    "all": Annotated[bool, typer.Option("--all", help="All calls of a question that asks about several.")],
}
_GRAPH = Annotated[
    str | None,
    typer.Option("--graph", metavar="GRAPH", help="The graph: a name in waitpoint.toml or MODULE:ATTRIBUTE."),
]


class Recording(NamedTuple):
    """How an answer is recorded."""

    by: str | None
    comment: str | None
    no_run: bool


class Choosing(NamedTuple):
    """Which calls of a question a decision is for."""

    call: list[int] | None
    all: bool


_GROUPS: dict[Any, dict[str, Any]] = {Recording: _RECORDING, Choosing: _CHOOSING}
_FLAGS = ("json", "traceback", "no_run", "all")


def command(*, with_graph: bool = False) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Turn a function of a `Place` and its own arguments into a command of the program.

    A parameter of type `Recording` or `Choosing` stands for a group of options.
    """

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
            for name, kind in groups.items():
                given[name] = kind(**{option: given.pop(option) for option in kind._fields})
            try:
                return function(place, **given)
            except BrokenPipeError:
                terminal.drop_output()
                return exits.DONE
            finally:
                place.close()

        own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
        groups: dict[str, Any] = {p.name: p.annotation for p in own if p.annotation in _GROUPS}
        extra: dict[str, Any] = {}
        for kind in groups.values():
            extra |= _GROUPS[kind]
        extra |= _EVERYWHERE
        if with_graph:
            extra["graph"] = _GRAPH
        keyword = inspect.Parameter.KEYWORD_ONLY
        more = [
            inspect.Parameter(name, keyword, default=False if name in _FLAGS else None, annotation=kind)
            for name, kind in extra.items()
        ]
        parameters = [*(p.replace(kind=keyword) for p in own if p.name not in groups), *more]
        called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        called.__annotations__ = {p.name: p.annotation for p in parameters}
        del called.__wrapped__
        return called

    return added
