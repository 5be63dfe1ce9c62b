"""Asynchronous generators that their consumer closes, and the event loop therefore must not."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Awaitable
from typing import Any, Generic, Self, TypeVar

T = TypeVar("T")


class Owned(Generic[T]):
    """An asynchronous generator inside of another one, which closes it.

    An event loop that ends closes all generators that began on it, at once and in any order. One that is closed by the
    loop while its consumer closes it too fails, and the loop tells of an error that is none. So it is not told of this one.
    """

    def __init__(self, generator: AsyncGenerator[T]) -> None:
        self._generator = generator
        self._has_begun = False

    def __aiter__(self) -> Self:
        return self

    def __anext__(self) -> Awaitable[T]:
        if self._has_begun:
            return self._generator.__anext__()
        self._has_begun = True
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(firstiter=None, finalizer=None)
        try:
            return self._generator.__anext__()
        finally:
            sys.set_asyncgen_hooks(*hooks)

    def aclose(self) -> Awaitable[Any]:
        """Close it."""
        return self._generator.aclose()
