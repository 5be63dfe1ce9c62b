"""The two sides, Waitpoint and LangGraph, by the names that both have: one program runs on either."""

from __future__ import annotations

import importlib
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STORES = ("memory", "SQLite")


@dataclass(frozen=True)
class Side:
    """A library under measurement; every module path after its name is the same on both sides."""

    name: str

    def module(self, path: str) -> Any:
        """Return a module of this library."""
        return importlib.import_module(f"{self.name}.{path}")

    @property
    def graph(self) -> Any:
        """`StateGraph`, `START`, `MessagesState`."""
        return self.module("graph")

    @property
    def types(self) -> Any:
        """`interrupt`, `Command`, `Send`."""
        return self.module("types")

    def saver(self, store: str, folder: Path) -> AbstractContextManager[Any]:
        """Open an empty saver, as each library sets it up by itself."""
        if store == "memory":
            return nullcontext(self.module("checkpoint.memory").InMemorySaver())
        opened: AbstractContextManager[Any] = self.module("checkpoint.sqlite").SqliteSaver.from_conn_string(
            str(folder / f"{self.name}.db")
        )
        return opened


OURS = Side("waitpoint")
PEER = Side("langgraph")


def config(thread_id: object) -> dict[str, Any]:
    """Return the config that names a thread."""
    return {"configurable": {"thread_id": str(thread_id)}}
