"""Event streams in LangChain's own form (version "v2"): the graph and its nodes as chains, and what runs in them.

The run tells its callbacks of its chains in any case; LangChain makes events of that, for what it takes for a runnable.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from typing import Any

from waitpoint.config import RECURSION_LIMIT
from waitpoint.stream.owned import Owned

Parts = Callable[[Any, dict[str, Any]], AsyncGenerator[Any]]

FILTERS = tuple(f"{how}_{what}" for how in ("include", "exclude") for what in ("names", "types", "tags"))


def chain_events(name: str, parts: Parts, given: Any, config: Any, filters: Mapping[str, Any]) -> AsyncIterator[Any]:
    """Return the events of a run whose parts, in mode `updates`, come from `parts`."""
    limited = {"recursion_limit": RECURSION_LIMIT, **config}  # LangChain's own default is lower
    runnable = _runnable_class()(name, parts)
    events: AsyncIterator[Any] = runnable.astream_events(given, limited, version="v2", **filters)
    return events


class _Traced:
    """The part of the runnable that is ours."""

    def __init__(self, name: str, parts: Parts) -> None:
        self.name, self._parts = name, parts

    async def astream(self, given: Any, config: Any = None, **_: Any) -> AsyncGenerator[Any]:
        async with aclosing(Owned(self._parts(given, config))) as parts:
            async for part in parts:
                yield part

    def invoke(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError  # a Runnable must have it; event streams use `astream` only


@functools.cache
def _runnable_class() -> type[Any]:
    from langchain_core.runnables.base import Runnable

    return type("Traced", (_Traced, Runnable), {})
