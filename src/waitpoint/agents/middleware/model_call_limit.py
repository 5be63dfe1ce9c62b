"""Ends an agent, or raises, when it has called its model as often as a run or a thread may."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from langchain_core.messages import AIMessage

from waitpoint.agents.history import pending_calls
from waitpoint.agents.middleware.limits import Limits, refusals
from waitpoint.agents.middleware.types import (
    AgentMiddleware,
    AgentState,
    AsyncModelHandler,
    ExtendedModelResponse,
    ModelCallResult,
    ModelHandler,
    ModelRequest,
    ModelResponse,
    PrivateStateAttr,
    hook_config,
)
from waitpoint.errors import ConfigError, ModelCallLimitExceededError
from waitpoint.records import Command
from waitpoint.runtime import Runtime


class ModelCallLimitState(AgentState[Any]):
    """How often the model was called, in the thread and in the present run of it."""

    thread_model_call_count: NotRequired[Annotated[int, PrivateStateAttr]]
    run_model_call_count: NotRequired[Annotated[int, PrivateStateAttr]]


class ModelCallLimitMiddleware(Limits, AgentMiddleware[ModelCallLimitState, Any, Any]):
    """Allow so many calls of the model in a thread, and in a run of it.

    A run begins with a new input; a pause and its answer belong to the run they interrupt. When a limit is reached,
    "end" finishes the run with a message that says so, and "error" raises `ModelCallLimitExceededError`.

    A call is counted together with its message, so no jump of another middleware goes around the count.

    Raises `ConfigError` (a `ValueError`) without a limit, for a negative one and an `exit_behavior` that does not exist.
    """

    state_schema = ModelCallLimitState

    def __init__(
        self,
        *,
        thread_limit: int | None = None,
        run_limit: int | None = None,
        exit_behavior: Literal["end", "error"] = "end",
    ) -> None:
        if exit_behavior not in ("end", "error"):
            raise ConfigError(
                f"`exit_behavior` of ModelCallLimitMiddleware is {exit_behavior!r}; give 'end' (a last message) or 'error' "
                f"(an exception)"
            )
        super().__init__(thread_limit, run_limit)
        self.exit_behavior = exit_behavior

    def before_agent(self, state: ModelCallLimitState, runtime: Runtime[Any]) -> dict[str, Any] | None:  # noqa: ARG002
        """Begin to count a run."""
        return {"run_model_call_count": 0}

    async def abefore_agent(self, state: ModelCallLimitState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Do what `before_agent` does, from an event loop."""
        return self.before_agent(state, runtime)

    @hook_config(can_jump_to=["end"])
    def before_model(self, state: ModelCallLimitState, runtime: Runtime[Any]) -> dict[str, Any] | None:  # noqa: ARG002
        """End the run if no call is left."""
        thread, run = _counts(state)
        if self.calls_left(thread, run) > 0:
            return None
        reached = self.exceeded(thread + 1, run + 1)
        if self.exit_behavior == "error":
            raise ModelCallLimitExceededError(
                f"The model was called as often as allowed, {reached}; raise the limit, or begin a new run or thread",
                thread_count=thread,
                run_count=run,
                thread_limit=self.thread_limit,
                run_limit=self.run_limit,
            )
        undone = refusals(pending_calls(state["messages"]), "Not run: the agent came to its end.")
        return {"jump_to": "end", "messages": [*undone, AIMessage(f"Model call limit reached: {reached}.")]}

    @hook_config(can_jump_to=["end"])
    async def abefore_model(self, state: ModelCallLimitState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Do what `before_model` does, from an event loop."""
        return self.before_model(state, runtime)

    def wrap_model_call(self, request: ModelRequest[Any], handler: ModelHandler) -> ModelCallResult[Any]:
        """Call the model and count it."""
        return _counted(request, handler(request))

    async def awrap_model_call(self, request: ModelRequest[Any], handler: AsyncModelHandler) -> ModelCallResult[Any]:
        """Do what `wrap_model_call` does, from an event loop."""
        return _counted(request, await handler(request))


def _counts(state: Any) -> tuple[int, int]:
    return state.get("thread_model_call_count", 0), state.get("run_model_call_count", 0)


def _counted(request: ModelRequest[Any], response: ModelResponse[Any]) -> ExtendedModelResponse[Any]:
    thread, run = _counts(request.state)
    update = {"thread_model_call_count": thread + 1, "run_model_call_count": run + 1}
    return ExtendedModelResponse(response, Command(update=update))
