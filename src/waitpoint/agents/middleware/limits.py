"""What the limits share: how a limit is checked and told, and the answers to calls that will not run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from langchain_core.messages import ToolMessage

from waitpoint.agents.tool_node.failures import error_message
from waitpoint.errors import ConfigError


class Limits:
    """How many calls a thread and one of its runs may make; None means as many as they like."""

    def __init__(self, thread_limit: int | None, run_limit: int | None) -> None:
        self.thread_limit = thread_limit
        self.run_limit = run_limit
        if thread_limit is None and run_limit is None:
            raise ConfigError("A limit without a number limits nothing; give `thread_limit`, `run_limit` or both")
        for name, number in (("thread_limit", thread_limit), ("run_limit", run_limit)):
            if number is not None and number < 0:
                raise ConfigError(f"{name} must be >= 0, and is {number!r}")

    def calls_left(self, thread_count: int, run_count: int) -> int:
        """Return how many more calls these counts allow."""
        both = ((self.thread_limit, thread_count), (self.run_limit, run_count))
        return min(limit - count for limit, count in both if limit is not None)

    def exceeded(self, thread_count: int, run_count: int) -> str:
        """Return the limits that these counts are above, as a text for a person."""
        both = (("thread", thread_count, self.thread_limit), ("run", run_count, self.run_limit))
        return " and ".join(
            f"{limit} in a {scope}" for scope, count, limit in both if limit is not None and count > limit
        )


def refusals(calls: Iterable[Any], text: str) -> list[ToolMessage]:
    """Answer calls that will not run: a provider refuses a history in which a call has no result."""
    return [error_message(text, call) for call in calls]
