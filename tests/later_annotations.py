"""Functions whose annotations are texts, some of them unknown at run time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

from waitpoint.config import RunnableConfig
from waitpoint.records import Command
from waitpoint.runtime import Runtime

if TYPE_CHECKING:
    from nowhere import BaseStore, NodeError, Unknown  # type: ignore[import-not-found]


class Seen(TypedDict):
    a: int


def late(state: Seen, c: RunnableConfig, runtime: Runtime[Any]) -> Literal["a", "b"]:
    return "a"


def unresolved(
    state: Unknown, c: RunnableConfig | None, r: Runtime[Unknown], s: BaseStore, e: NodeError | None
) -> None: ...


def later(state: Seen, other: Unknown = None) -> Command[Literal["a", "b"]] | None: ...
