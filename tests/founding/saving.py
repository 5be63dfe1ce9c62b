"""What the founding tests share: the savers, and short ways to run a graph."""

from typing import Any

from waitpoint.checkpoint.base import BaseCheckpointSaver
from waitpoint.types import Command

Saver = BaseCheckpointSaver
CONFIG = {"configurable": {"thread_id": "thread-1"}}


def run(graph: Any, given: Any, config: Any = None, **options: Any) -> Any:
    """Invoke on the one thread of these tests, unless another is named."""
    return graph.invoke(given, config or CONFIG, **options)


def resumed(graph: Any, answer: Any) -> Any:
    """Answer what waits on the one thread."""
    return run(graph, Command(resume=answer))
