"""What middleware is: the base class with its hooks, and the requests and responses that hooks see."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, SystemMessage
from langchain_core.tools import BaseTool
from typing_extensions import TypeVar

from waitpoint.agents.state import (
    AgentState,
    InputAgentState,
    JumpTo,
    OmitFromInput,
    OmitFromOutput,
    OmitFromSchema,
    OutputAgentState,
    PrivateStateAttr,
    ResponseT,
)
from waitpoint.agents.tool_node.request import ToolCallRequest, ToolCallWrapper
from waitpoint.errors import AsyncOnlyError, ConfigError
from waitpoint.records import Command
from waitpoint.runtime import Runtime

__all__ = [
    "AgentMiddleware",
    "AgentState",
    "ContextT",
    "ExtendedModelResponse",
    "InputAgentState",
    "JumpTo",
    "ModelCallResult",
    "ModelRequest",
    "ModelResponse",
    "OmitFromInput",
    "OmitFromOutput",
    "OmitFromSchema",
    "OutputAgentState",
    "PrivateStateAttr",
    "ResponseT",
    "StateT",
    "ToolCallRequest",
    "ToolCallWrapper",
    "hook_config",
]

StateT = TypeVar("StateT", default=AgentState[Any])
ContextT = TypeVar("ContextT", default=None)
CallableT = TypeVar("CallableT", bound=Callable[..., Any])

JUMPS: tuple[JumpTo, ...] = ("tools", "model", "end")


@dataclass(init=False)
class ModelRequest(Generic[ContextT]):
    """A call of the model on its way: what `wrap_model_call` sees and may change with `override`.

    `messages` are those of the conversation, without the system message; what is appended to that list itself stays in the
    conversation, what `override` gives is for this call alone. `model_settings` are passed to `bind_tools` or
    `bind`.
    """

    model: BaseChatModel
    messages: list[AnyMessage]
    system_message: SystemMessage | None
    tool_choice: Any | None
    tools: list[BaseTool | dict[str, Any]]
    response_format: Any | None
    state: AgentState[Any]
    runtime: Runtime[ContextT]
    model_settings: dict[str, Any] = field(default_factory=dict)

    def __init__(
        self,
        *,
        model: BaseChatModel,
        messages: list[AnyMessage],
        system_message: SystemMessage | None = None,
        system_prompt: str | None = None,
        tool_choice: Any | None = None,
        tools: list[BaseTool | dict[str, Any]] | None = None,
        response_format: Any | None = None,
        state: AgentState[Any] | None = None,
        runtime: Runtime[ContextT] | None = None,
        model_settings: dict[str, Any] | None = None,
    ) -> None:
        self.model = model
        self.messages = messages
        self.system_message = _system(system_message, system_prompt)
        self.tool_choice = tool_choice
        self.tools = [] if tools is None else tools
        self.response_format = response_format
        self.state = {"messages": []} if state is None else state
        self.runtime = Runtime() if runtime is None else runtime
        self.model_settings = {} if model_settings is None else model_settings

    @property
    def system_prompt(self) -> str | None:
        """The text of the system message."""
        return None if self.system_message is None else self.system_message.text

    @system_prompt.setter
    def system_prompt(self, prompt: str | None) -> None:
        self.system_message = _system(None, prompt)

    def override(self, **changes: Any) -> ModelRequest[ContextT]:
        """Return a request with other parts; `system_prompt="..."` stands for `system_message=SystemMessage("...")`."""
        if "system_prompt" in changes:
            changes["system_message"] = _system(changes.get("system_message"), changes.pop("system_prompt"))
        return replace(self, **changes)


def _system(message: SystemMessage | None, prompt: str | None) -> SystemMessage | None:
    if message is not None and prompt is not None:
        raise ConfigError("Cannot specify both system_prompt and system_message: they are the same thing; give one")
    return SystemMessage(content=prompt) if prompt is not None else message


@dataclass
class ModelResponse(Generic[ResponseT]):
    """What a call of the model came to: its message (and what answers a structured output), and that output, parsed."""

    result: list[BaseMessage]
    structured_response: ResponseT | None = None


@dataclass
class ExtendedModelResponse(Generic[ResponseT]):
    """A response with a `Command` whose update is applied after it."""

    model_response: ModelResponse[ResponseT]
    command: Command[Any] | None = None


ModelCallResult = ModelResponse[ResponseT] | AIMessage | ExtendedModelResponse[ResponseT]
ModelHandler = Callable[[ModelRequest[Any]], ModelResponse[Any]]
AsyncModelHandler = Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]


class AgentMiddleware(Generic[StateT, ContextT, ResponseT]):
    """Code around an agent's steps. Override what is needed; each hook has an async form with an `a` in front.

    `before_agent`, `before_model`, `after_model` and `after_agent` are nodes of their own: they get the state and return an
    update of it, or None, and may call `interrupt()`. `wrap_model_call` and `wrap_tool_call` go around each call; what
    they do before a pause happens again after it. `state_schema` adds keys to the state, `tools` adds tools,
    `transformers` add projections to the agent's event streams.

    `approval_order = "inside"` says that this middleware must lie inside the one that asks for approval, because it
    would retry a question, or take it for an error: building an agent with it outside is refused. `idle_hooks` names hooks
    that this instance has and new turns need not: their nodes are there, for threads that wait in one, and no turn goes
    through them.
    """

    state_schema: type[Any] = AgentState
    tools: Sequence[BaseTool] = ()
    transformers: Sequence[Callable[[tuple[str, ...]], Any]] = ()
    idle_hooks: frozenset[str] = frozenset()
    approval_order: ClassVar[Literal["inside"] | None] = None

    @property
    def name(self) -> str:
        """The name of the middleware, which its nodes have too; no two of an agent may share one."""
        return type(self).__name__

    def before_agent(self, state: StateT, runtime: Runtime[ContextT]) -> dict[str, Any] | None:
        """Run once, when a new input comes, before anything else."""

    async def abefore_agent(self, state: StateT, runtime: Runtime[ContextT]) -> dict[str, Any] | None:
        """Do what `before_agent` does, from an event loop."""

    def before_model(self, state: StateT, runtime: Runtime[ContextT]) -> dict[str, Any] | None:
        """Run before each call of the model."""

    async def abefore_model(self, state: StateT, runtime: Runtime[ContextT]) -> dict[str, Any] | None:
        """Do what `before_model` does, from an event loop."""

    def after_model(self, state: StateT, runtime: Runtime[ContextT]) -> dict[str, Any] | None:
        """Run after each call of the model, before its tool calls."""

    async def aafter_model(self, state: StateT, runtime: Runtime[ContextT]) -> dict[str, Any] | None:
        """Do what `after_model` does, from an event loop."""

    def after_agent(self, state: StateT, runtime: Runtime[ContextT]) -> dict[str, Any] | None:
        """Run once, when the agent is done."""

    async def aafter_agent(self, state: StateT, runtime: Runtime[ContextT]) -> dict[str, Any] | None:
        """Do what `after_agent` does, from an event loop."""

    def wrap_model_call(self, request: ModelRequest[ContextT], handler: ModelHandler) -> ModelCallResult[ResponseT]:
        """Call `handler(request)` (not at all, once, or again) and return its response or another."""
        raise _async_only(self, "wrap_model_call")

    async def awrap_model_call(
        self, request: ModelRequest[ContextT], handler: AsyncModelHandler
    ) -> ModelCallResult[ResponseT]:
        """Do what `wrap_model_call` does, from an event loop."""
        raise _sync_only(self, "wrap_model_call")

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        """Call `handler(request)` (not at all, once, or again) and return its `ToolMessage` or `Command`, or another."""
        raise _async_only(self, "wrap_tool_call")

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        """Do what `wrap_tool_call` does, from an event loop."""
        raise _sync_only(self, "wrap_tool_call")


def overrides(middleware: AgentMiddleware[Any, Any, Any], hook: str) -> bool:
    """Whether a middleware has this hook of its own."""
    return getattr(type(middleware), hook) is not getattr(AgentMiddleware, hook)


def _async_only(middleware: AgentMiddleware[Any, Any, Any], hook: str) -> AsyncOnlyError:
    return AsyncOnlyError(
        f"Middleware {middleware.name!r} has only `a{hook}`, which cannot run under invoke() or stream(); use ainvoke() or "
        f"astream(), or give it `{hook}` too"
    )


def _sync_only(middleware: AgentMiddleware[Any, Any, Any], hook: str) -> AsyncOnlyError:
    return AsyncOnlyError(f"Middleware {middleware.name!r} has no `a{hook}`; call its `{hook}`, or give it one")


def hook_config(*, can_jump_to: Sequence[JumpTo] | None = None) -> Callable[[CallableT], CallableT]:
    """Mark a hook that may return `{"jump_to": ...}`; without the mark `jump_to` has no effect.

    Raises `ConfigError` for a place that does not exist.
    """
    for place in can_jump_to or ():
        if place not in JUMPS:
            raise ConfigError(f"`can_jump_to` names {place!r}; a hook can jump to {', '.join(map(repr, JUMPS))}")

    def marked(hook: CallableT) -> CallableT:
        if can_jump_to is not None:
            hook.__can_jump_to__ = list(can_jump_to)  # type: ignore[attr-defined]
        return hook

    return marked


def jumps_of(middleware: AgentMiddleware[Any, Any, Any], hook: str) -> tuple[JumpTo, ...]:
    """Return where a hook of a middleware may jump, in its sync or async form."""
    found = [getattr(getattr(type(middleware), name), "__can_jump_to__", ()) for name in (hook, f"a{hook}")]
    return tuple(dict.fromkeys(place for places in found for place in places))
