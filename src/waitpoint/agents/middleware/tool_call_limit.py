"""Refuses tool calls beyond the number that a run or a thread may make, of one tool or of all."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from langchain_core.messages import AIMessage

from waitpoint.agents.history import pending_calls
from waitpoint.agents.middleware.limits import Limits, refusals
from waitpoint.agents.middleware.types import AgentMiddleware, AgentState, PrivateStateAttr, hook_config
from waitpoint.errors import ConfigError, ToolCallLimitExceededError
from waitpoint.runtime import Runtime

ExitBehavior = Literal["continue", "error", "end"]

ALL = "__all__"
"""The key of a count that is for all tools."""


class ToolCallLimitState(AgentState[Any]):
    """How many calls were let through, in the thread and in the present run of it: by tool, `__all__` for any."""

    thread_tool_call_count: NotRequired[Annotated[dict[str, int], PrivateStateAttr]]
    run_tool_call_count: NotRequired[Annotated[dict[str, int], PrivateStateAttr]]


class ToolCallLimitMiddleware(Limits, AgentMiddleware[ToolCallLimitState, Any, Any]):
    """Allow so many tool calls in a thread, and in a run of it; of the tool `tool_name`, or of all tools together.

    A run begins with a new input; a pause and its answer belong to the run they interrupt. A call counts when the model
    makes it, whatever a person then decides; one that has an answer already does not. When the model asks for more than
    is left:

    - "continue" runs what is left and answers the other calls with an error message, and the model goes on;
    - "end" runs none of the message's calls, answers each and finishes the run with a message that says why;
    - "error" raises `ToolCallLimitExceededError`.

    Several limits go together if each is for another tool. The limit is checked after the model's message: a middleware
    later in the list which jumps away from there jumps over it.

    Raises `ConfigError` (a `ValueError`) without a limit, for a negative one, for more in a run than in a thread and for
    an `exit_behavior` that does not exist.
    """

    state_schema = ToolCallLimitState

    def __init__(
        self,
        *,
        tool_name: str | None = None,
        thread_limit: int | None = None,
        run_limit: int | None = None,
        exit_behavior: ExitBehavior = "continue",
    ) -> None:
        if exit_behavior not in ("continue", "error", "end"):
            raise ConfigError(
                f"`exit_behavior` of ToolCallLimitMiddleware is {exit_behavior!r}; give 'continue' (an error message for each "
                f"call too many), 'end' (a last message) or 'error' (an exception)"
            )
        super().__init__(thread_limit, run_limit)
        if thread_limit is not None and run_limit is not None and run_limit > thread_limit:
            raise ConfigError(
                f"`run_limit` is {run_limit} and `thread_limit` {thread_limit}, so the run's could never be reached; give a "
                f"run at most what its thread has"
            )
        self.tool_name = tool_name
        self.exit_behavior = exit_behavior

    @property
    def name(self) -> str:
        """The name of the middleware, with that of its tool: an agent may have a limit for each."""
        return type(self).__name__ + (f"[{self.tool_name}]" if self.tool_name else "")

    def before_agent(self, state: ToolCallLimitState, runtime: Runtime[Any]) -> dict[str, Any] | None:  # noqa: ARG002
        """Begin to count a run."""
        return {"run_tool_call_count": {**state.get("run_tool_call_count", {}), self._key: 0}}

    async def abefore_agent(self, state: ToolCallLimitState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Do what `before_agent` does, from an event loop."""
        return self.before_agent(state, runtime)

    @hook_config(can_jump_to=["end"])
    def after_model(self, state: ToolCallLimitState, runtime: Runtime[Any]) -> dict[str, Any] | None:  # noqa: ARG002
        """Count the calls of the model's message, and refuse those that are too many."""
        asked = [call for call in pending_calls(state["messages"]) if self.tool_name in (None, call["name"])]
        if not asked:
            return None
        in_thread, in_run = state.get("thread_tool_call_count", {}), state.get("run_tool_call_count", {})
        thread, run = in_thread.get(self._key, 0), in_run.get(self._key, 0)
        passed = min(len(asked), max(0, self.calls_left(thread, run)))
        update: dict[str, Any] = {
            "thread_tool_call_count": {**in_thread, self._key: thread + passed},
            "run_tool_call_count": {**in_run, self._key: run + passed},
        }
        if passed == len(asked):
            return update
        if self.exit_behavior == "continue":
            return {**update, "messages": refusals(asked[passed:], self._refusal)}
        return self._ended(state, thread + len(asked), run + len(asked))

    @hook_config(can_jump_to=["end"])
    async def aafter_model(self, state: ToolCallLimitState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Do what `after_model` does, from an event loop."""
        return self.after_model(state, runtime)

    @property
    def _key(self) -> str:
        return self.tool_name or ALL

    @property
    def _refusal(self) -> str:
        """What the model is told; of threads and runs it knows nothing."""
        if self.tool_name:
            return f"Not run: the limit of calls to {self.tool_name!r} is reached. Do not call it again."
        return "Not run: the limit of tool calls is reached. Do not call tools again."

    def _ended(self, state: ToolCallLimitState, thread: int, run: int) -> dict[str, Any]:
        """End the run with none of the message's calls made; the counts include those."""
        which = f"Calls of tool {self.tool_name!r}" if self.tool_name else "Tool calls"
        reached = self.exceeded(thread, run)
        if self.exit_behavior == "error":
            raise ToolCallLimitExceededError(
                f"{which} are limited to {reached}, and the model asks for more; raise the limit, or let the agent continue "
                f"without them (exit_behavior='continue')",
                thread_count=thread,
                run_count=run,
                thread_limit=self.thread_limit,
                run_limit=self.run_limit,
                tool_name=self.tool_name,
            )
        calls = pending_calls(state["messages"])
        beyond = [call for call in calls if self.tool_name in (None, call["name"])]
        others = [call for call in calls if self.tool_name not in (None, call["name"])]
        undone = [*refusals(beyond, self._refusal), *refusals(others, "Not run: the agent came to its end.")]
        return {"jump_to": "end", "messages": [*undone, AIMessage(f"{which} are limited to {reached}.")]}
