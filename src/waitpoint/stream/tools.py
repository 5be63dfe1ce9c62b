"""Hears the tools of a task, for mode `tools`: when each call starts, and what it comes to."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from waitpoint.errors import GraphDrained, GraphInterrupt
from waitpoint.records import TAG_NOSTREAM
from waitpoint.stream.listener import OfTask, handler_class

_announced: ContextVar[list[tuple[str | None, dict[str, Any]]] | None] = ContextVar("waitpoint_announced_call")


def announce(call_id: str | None, args: dict[str, Any]) -> None:
    """Say which call the tool is for that starts next here, and what the model gave it.

    An older langchain-core does not tell handlers the id of a call, and tells them what was injected beside the
    arguments: the state, the config with its secrets. None of that may be shown.
    """
    _announced.set([(call_id, args)])


def _called(told: str | None, inputs: Any) -> tuple[str | None, Any]:
    """Return the id of a call that starts, as far as it is known, and its input."""
    waiting = _announced.get(None)
    known = waiting.pop() if waiting else None  # the next one to start is called by the tool itself
    return (told, inputs) if told is not None or known is None else known


class ToolListener(OfTask):
    """The part of the handler that is ours. A tool that pauses has not ended: it tells its end when it runs again."""

    def __init__(self, show: Callable[[dict[str, Any]], None]) -> None:
        super().__init__()
        self._show = show
        self._calls: dict[Any, str] = {}  # the ids of the calls that run, by LangChain's run id

    def on_tool_start(
        self, serialized: Any, _: str, *, run_id: Any, tags: Any = None, inputs: Any = None, **known: Any
    ) -> None:
        """Show that a tool starts, unless it is to be silent."""
        if TAG_NOSTREAM in (tags or ()):
            return
        call_id, inputs = _called(known.get("tool_call_id"), inputs)
        call_id = self._calls[run_id] = call_id or str(run_id)
        name = (serialized or {}).get("name") or known.get("name") or ""
        given = {} if inputs is None else {"input": inputs}
        self._show({"event": "tool-started", "tool_call_id": call_id, "tool_name": name, **given})

    def on_tool_end(self, output: Any, *, run_id: Any, **_: Any) -> None:
        """Show what a tool returned."""
        call_id = self._calls.pop(run_id, None)
        if call_id is not None:
            self._show({"event": "tool-finished", "tool_call_id": call_id, "output": output})

    def on_tool_error(self, error: BaseException, *, run_id: Any, **_: Any) -> None:
        """Show that a tool failed; one that was stopped in order did not."""
        call_id = self._calls.pop(run_id, None)
        if call_id is not None and not isinstance(error, GraphInterrupt | GraphDrained):
            self._show({"event": "tool-error", "tool_call_id": call_id, "message": str(error)})


def tool_listener(show: Callable[[dict[str, Any]], None]) -> Any:
    """Return a callback handler that shows events of tools."""
    return handler_class(ToolListener)(show)


def delta(call_id: str | None, part: Any) -> dict[str, Any]:
    """Return the event of a part of a tool's result."""
    return {"event": "tool-output-delta", "tool_call_id": call_id, "delta": part}
