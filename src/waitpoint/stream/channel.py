"""A projection of a run: items that transformers push and consumers read, each from the first on, at their own pace."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class StreamChannel(Generic[T]):
    """Items in the order of their arrival; reading one that is not there yet drives the run.

    Items are kept for the life of the run (with `maxlen`: the newest only), so channels may be read one after the other,
    or several times. With a `name`, each item also appears among the run's raw events, with the method `custom:<name>`.
    In an asynchronous run it is read with `async for`.
    """

    def __init__(self, name: str | None = None, *, maxlen: int | None = None) -> None:
        self.name = name
        self._items: deque[tuple[int, T]] = deque(maxlen=maxlen)
        self._count = 0
        self._is_closed = False
        self._error: BaseException | None = None
        self._mux: Any = None
        self._forward: Callable[[T], None] | None = None

    # --- for who fills it ---

    def bind(self, mux: Any, forward: Callable[[T], None] | None = None) -> None:
        """Make this a channel of a run: `forward` gets each item too."""
        self._mux, self._forward = mux, forward

    def push(self, item: T) -> None:
        """Add an item; what comes after the end is dropped."""
        if self._is_closed:
            return
        self._items.append((self._mux.stamp() if self._mux is not None else self._count, item))
        self._count += 1
        if self._forward is not None:
            self._forward(item)

    def close(self) -> None:
        """End it: nothing follows."""
        self._is_closed = True

    def fail(self, error: BaseException) -> None:
        """End it with an error, which every reader gets after the items."""
        if not self._is_closed:
            self._is_closed, self._error = True, error

    # --- for who reads it ---

    def __iter__(self) -> Iterator[T]:
        self._check_bound(wants_async=False)
        return (item for _, item in self.stamped())

    def __aiter__(self) -> AsyncIterator[T]:
        self._check_bound(wants_async=True)
        return self._acursor()

    def tee(self, n: int = 2) -> tuple[Iterator[T], ...]:
        """Return iterators that do not depend on each other; so are those of a channel iterated several times."""
        return tuple(iter(self) for _ in range(n))

    def atee(self, n: int = 2) -> tuple[AsyncIterator[T], ...]:
        """Return such iterators of an asynchronous run."""
        return tuple(aiter(self) for _ in range(n))

    def stamped(self) -> Iterator[tuple[int, T]]:
        """Yield items with the stamps of their arrival, by which those of several channels can be ordered."""
        at, is_over = 0, False
        while True:
            is_over = is_over or self._is_closed  # before the items: others may be driving the run too
            while (found := self.at(at)) is not None:
                at, stamp, item = found
                yield stamp, item
            if is_over:
                self._raise_error()
                return
            is_over = not self._mux.root.pump()

    async def _acursor(self) -> AsyncIterator[T]:
        at, is_over = 0, False
        while True:
            is_over = is_over or self._is_closed
            while (found := self.at(at)) is not None:
                at, _, item = found
                yield item
            if is_over:
                self._raise_error()
                return
            is_over = not await self._mux.root.pump()

    def at(self, position: int) -> tuple[int, int, T] | None:
        """Return the item at a position or the next that is kept, as (position after it, stamp, item), if there is one."""
        first = self._count - len(self._items)
        position = max(position, first)
        if position >= self._count:
            return None
        return (position + 1, *self._items[position - first])

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def _check_bound(self, *, wants_async: bool) -> None:
        if self._mux is None:
            raise TypeError("This channel belongs to no run yet: return it from a transformer's init(), then read it")
        if self._mux.is_async != wants_async:
            how = "`async for`" if self._mux.is_async else "`for`"
            raise TypeError(f"This channel is read with {how}, as the run is that it belongs to")
