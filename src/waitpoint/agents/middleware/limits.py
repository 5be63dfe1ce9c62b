"""What the limits share: how a limit is checked and told, and the answers to calls that will not run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import ToolMessage

from waitpoint.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Limits:
    """How many calls a thread and one of its runs may make; None means as many as they like."""

    thread: int | None
    run: int | None

    def __post_init__(self) -> None:
        if self.thread is None and self.run is None:
            raise ConfigError("A limit without a number limits nothing; give `thread_limit`, `run_limit` or both")
        for name, number in (("thread_limit", self.thread), ("run_limit", self.run)):
            if number is not None and number < 0:
                raise ConfigError(f"{name} must be >= 0, and is {number!r}")

    def left(self, thread_count: int, run_count: int) -> int:
        """Return how many more calls these counts allow."""
        return min(
            limit - count for limit, count in ((self.thread, thread_count), (self.run, run_count)) if limit is not None
        )

    def told(self, thread_count: int, run_count: int) -> str:
        """Return the limits that these counts are above, as a text for a person."""
        return " and ".join(
            f"{limit} in a {scope}"
            for scope, count, limit in (("thread", thread_count, self.thread), ("run", run_count, self.run))
            if limit is not None and count > limit
        )


def refusals(calls: Iterable[Any], text: str) -> list[ToolMessage]:
    """Answer calls that will not run: a provider refuses a history in which a call has no result."""
    return [ToolMessage(content=text, tool_call_id=call["id"], name=call["name"], status="error") for call in calls]
