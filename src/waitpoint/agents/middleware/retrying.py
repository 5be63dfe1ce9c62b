"""How often a failed call is tried again, after what wait, and which errors no middleware may keep to itself."""

from __future__ import annotations

import random
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeVar

from waitpoint import runtime as runtimes
from waitpoint.agents.middleware.types import AgentMiddleware
from waitpoint.agents.passing import must_pass
from waitpoint.errors import ConfigError, QuestionWithdrawn

RetryOn = tuple[type[Exception], ...] | type[Exception] | Callable[[Exception], bool]
"""Which exceptions are worth another try: a class, a tuple of classes, or a function that says so."""

OnFailure = Literal["continue", "error"] | Callable[[Exception], str]
"""What a call comes to that failed for good: a message to go on with, the exception, or a message of this text."""

T = TypeVar("T")


def default_retry_on(error: Exception) -> bool:
    """Say that an error is worth another try, unless it says itself (`is_retryable`) that it is not.

    The errors of models in langchain-core do: a refused key stays refused, a rate limit passes.
    """
    return bool(getattr(error, "is_retryable", True))


class RetryingMiddleware(AgentMiddleware[Any, Any, Any]):
    """What the middlewares that retry have in common; waits are seconds, `backoff_factor` 0 means that they do not grow."""

    def __init__(
        self,
        max_retries: int,
        retry_on: RetryOn,
        on_failure: OnFailure,
        backoff_factor: float,
        initial_delay: float,
        max_delay: float,
        jitter: bool,
    ) -> None:
        self.max_retries = max_retries
        self.retry_on = retry_on
        self.on_failure = on_failure
        self.backoff_factor = backoff_factor
        self.initial_delay = initial_delay
        self.max_delay = max_delay
        self.jitter = jitter
        for name in ("max_retries", "initial_delay", "max_delay", "backoff_factor"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} must be >= 0, and is {getattr(self, name)!r}")
        if on_failure not in ("continue", "error") and not callable(on_failure):
            raise ConfigError(
                f"`on_failure` is {on_failure!r}; give 'continue' (a message), 'error' (the exception) or a function that "
                f"makes the message of the exception"
            )
        on: Any = retry_on
        for each in on if isinstance(on, tuple) else (on,) if isinstance(on, type) or not callable(on) else ():
            if not isinstance(each, type) or not issubclass(each, Exception):
                raise ConfigError(
                    f"`retry_on` holds {each!r}, which is no class of exceptions; give such classes or a function"
                )

    def covers(self, error: Exception) -> bool:
        """Whether this error is one to try again after, and to answer with `on_failure` in the end."""
        if must_pass(error):
            return False
        # A class is callable too, and to call it would make every error fit.
        if isinstance(self.retry_on, tuple | type):
            return isinstance(error, self.retry_on)
        return bool(self.retry_on(error))

    def is_last(self, error: Exception, attempts: int) -> bool:
        """Whether there is no further attempt; nothing brings a withdrawn question back."""
        return attempts > self.max_retries or isinstance(error, QuestionWithdrawn)

    def wait_after(self, attempts: int) -> float:
        """Return how long to wait after so many failed attempts, with up to a quarter more or less as jitter."""
        try:
            wait = self.initial_delay * (self.backoff_factor ** (attempts - 1) if self.backoff_factor else 1.0)
        except OverflowError:
            wait = self.max_delay
        wait = min(wait, self.max_delay)
        return min(wait * random.uniform(0.75, 1.25), self.max_delay) if self.jitter else wait  # noqa: S311 - no secret

    def failure_text(self, what: str, error: Exception, attempts: int) -> str:
        """Return what is said in the message in place of a result."""
        if callable(self.on_failure):
            return self.on_failure(error)
        times = f"{attempts} attempt" if attempts == 1 else f"{attempts} attempts"
        detail = f": {error}" if f"{error}" else ""
        return f"{what} failed after {times} with {type(error).__name__}{detail}"


def tried(retries: RetryingMiddleware, call: Callable[[], T], failed: Callable[[Exception, int], T]) -> T:
    """Return what a call returns, or what `failed` makes of its last error and the number of attempts."""
    attempts = 0
    while True:
        attempts += 1
        before = _effects()
        try:
            return call()
        except Exception as error:
            if not retries.covers(error):
                raise
            if retries.is_last(error, attempts):
                if retries.on_failure == "error":
                    raise
                return failed(error, attempts)
        if not _only_replayed(before):
            threading.Event().wait(retries.wait_after(attempts))


async def atried(
    retries: RetryingMiddleware, call: Callable[[], Awaitable[T]], failed: Callable[[Exception, int], T]
) -> T:
    """Do what `tried` does, from an event loop."""
    import asyncio

    attempts = 0
    while True:
        attempts += 1
        before = _effects()
        try:
            return await call()
        except Exception as error:
            if not retries.covers(error):
                raise
            if retries.is_last(error, attempts):
                if retries.on_failure == "error":
                    raise
                return failed(error, attempts)
        if not _only_replayed(before):
            await asyncio.sleep(retries.wait_after(attempts))


def _effects() -> tuple[int, int]:
    """Return how many effects the node that runs here has begun by now, and how many it found on record."""
    journal = runtimes.attempt.get()
    if journal is None:
        return 0, 0
    with journal.lock:
        begun = sum(row.attempt == journal.attempt for row in journal.entries.values())
        return begun, len(journal.matched)


def _only_replayed(before: tuple[int, int]) -> bool:
    """Whether the call came from the record alone: who answers a question need not wait once more for old failures."""
    begun, matched = _effects()
    return begun == before[0] and matched > before[1]


def names_of(tools: Any) -> frozenset[str] | None:
    """Return the names in a list of tools and names, or None, which means all tools."""
    if tools is None:
        return None
    if isinstance(tools, str):
        raise ConfigError(f"`tools` is the text {tools!r}; give a list, such as [{tools!r}]")
    return frozenset(tool if isinstance(tool, str) else str(tool.name) for tool in tools)
