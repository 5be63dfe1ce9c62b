"""Where an agent goes next: after its hooks, its model, its tools. Routers decide on the messages; only a jump is a command."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.messages import ToolMessage

from waitpoint.agents import history
from waitpoint.agents.middleware.types import AgentMiddleware, JumpTo, jumps_of, overrides
from waitpoint.agents.nodes import TwoForms
from waitpoint.errors import InvalidUpdateError
from waitpoint.graph.message import add_messages
from waitpoint.records import END, Command, Send
from waitpoint.runtime import Runtime

HOOKS = ("before_agent", "before_model", "after_model", "after_agent")


@dataclass
class Hook:
    """One hook of one middleware, a node of its own. `then` is the node after it, None where calls decide."""

    middleware: AgentMiddleware[Any, Any, Any]
    kind: str
    jumps: tuple[JumpTo, ...]
    then: str | None = None
    destinations: tuple[str, ...] = ()

    @property
    def node(self) -> str:
        """The name of its node."""
        return f"{self.middleware.name}.{self.kind}"


@dataclass
class Routes:
    """The ways of one agent, by the names of its nodes."""

    hooks: list[Hook] = field(default_factory=list)
    has_tools: bool = True
    structured: frozenset[str] = frozenset()  # tools that stand for a typed result
    entry: str = "model"
    loop: str = "model"  # where a turn begins
    exit: str = END  # where the agent goes when it is done
    model_then: str | None = None  # the first hook after the model

    @classmethod
    def of(
        cls, middleware: Sequence[AgentMiddleware[Any, Any, Any]], *, has_tools: bool, structured: frozenset[str]
    ) -> Routes:
        """Lay out the ways of an agent with these middlewares, the first outermost."""
        routes = cls(has_tools=has_tools, structured=structured)
        chains: dict[str, list[Hook]] = {}
        for kind in HOOKS:
            found = [m for m in middleware if overrides(m, kind) or overrides(m, f"a{kind}")]
            if kind.startswith("after"):
                found.reverse()
            chains[kind] = [Hook(m, kind, jumps_of(m, kind)) for m in found]
            routes.hooks += chains[kind]
        routes.loop = _chained(chains["before_model"], "model")
        routes.entry = _chained(chains["before_agent"], routes.loop)
        routes.exit = _chained(chains["after_agent"], END)
        routes.model_then = _chained(chains["after_model"], None)
        for hook in routes.hooks:
            jumps = tuple(routes.place(jump, hook.kind) for jump in hook.jumps)
            places = (routes.from_model_turn if hook.then is None else (hook.then,)) + jumps
            hook.destinations = tuple(dict.fromkeys(places))
        return routes

    @property
    def from_model_turn(self) -> tuple[str, ...]:
        """Where a turn of the model may lead."""
        return (*(("tools",) if self.has_tools else ()), self.loop, self.exit)

    @property
    def from_model(self) -> tuple[str, ...]:
        """Where the model's node leads."""
        return self.from_model_turn if self.model_then is None else (self.model_then,)

    @property
    def from_tools(self) -> tuple[str, ...]:
        """Where the tools lead."""
        return (self.loop, self.exit)

    def place(self, jump: JumpTo, kind: str) -> str:
        """Return the node that a jump leads to; a jump to the tools runs what is not answered yet."""
        end = END if kind == "after_agent" else self.exit  # those hooks are on the way to the end themselves
        return {"end": end, "model": self.loop, "tools": "tools" if self.has_tools else self.loop}[jump]

    # --- after the model ----------------------------------------------------------------------------------------------

    def after_turn(self, messages: Sequence[Any]) -> Any:
        """Return where a finished turn of the model leads: to its calls, to another turn, or to the end."""
        message, after = history.last_call(messages)
        if message is None:
            return self.exit
        if calls := history.pending_calls(messages):
            return [send(message, call) for call in calls] if self.has_tools else self._no_tools(calls)
        if not message.tool_calls:
            return self.loop if history.may_try_again(messages) else self.exit
        return self.exit if self.is_structured(after) else self.loop

    def is_structured(self, after: Sequence[Any]) -> bool:
        """Whether the turn gave the typed result."""
        return any(isinstance(m, ToolMessage) and m.name in self.structured and m.status == "success" for m in after)

    def _no_tools(self, calls: Sequence[Any]) -> Any:
        names = ", ".join(repr(call["name"]) for call in calls)
        raise InvalidUpdateError(f"The model called {names}, and the agent has no tools; give it some")

    # --- after a hook -------------------------------------------------------------------------------------------------

    def after_hook(self, hook: Hook, state: Any, result: Any) -> Any:
        """Return what a hook writes, and where it jumps if it may and does."""
        if result is not None and not isinstance(result, Mapping | Command):
            raise InvalidUpdateError(
                f"Hook {hook.node!r} returned a {type(result).__name__}; return an update as a dict, a Command, or None"
            )
        written = result.update if isinstance(result, Command) else result
        if not isinstance(written, Mapping) or "jump_to" not in written:
            return result
        update = {key: value for key, value in written.items() if key != "jump_to"} or None
        jump = written["jump_to"]
        if jump not in hook.jumps:  # not declared by hook_config, so it has no effect
            return replace(result, update=update) if isinstance(result, Command) else update
        goto = self._jump(jump, hook.kind, merged(state, update or {}))
        return (
            replace(result, update=update, goto=goto)
            if isinstance(result, Command)
            else Command(update=update, goto=goto)
        )

    def _jump(self, jump: JumpTo, kind: str, messages: Sequence[Any]) -> Any:
        if jump != "tools":
            return self.place(jump, kind)
        message, _ = history.last_call(messages)
        calls = history.pending_calls(messages) if self.has_tools else []
        return [send(message, call) for call in calls] or self.loop

    def after(self, hook: Hook) -> Callable[[Any], Any]:
        """Return the router behind a hook."""
        then = hook.then
        return (lambda state: self.after_turn(state["messages"])) if then is None else (lambda _: then)


def hook_node(hook: Hook, routes: Routes) -> TwoForms:
    """Return a hook as a node."""
    middleware, kind = hook.middleware, hook.kind
    has = {form: overrides(middleware, form) for form in (kind, f"a{kind}")}

    def body(state: Any, runtime: Runtime[Any]) -> Any:
        return routes.after_hook(hook, state, getattr(middleware, kind)(state, runtime))

    async def abody(state: Any, runtime: Runtime[Any]) -> Any:
        return routes.after_hook(hook, state, await getattr(middleware, f"a{kind}")(state, runtime))

    return TwoForms(hook.node, body if has[kind] else None, abody if has[f"a{kind}"] else None)


def _chained(hooks: list[Hook], last: Any) -> Any:
    """Link hooks of a kind to each other and to what follows; return where the chain begins. No turn comes to an idle one."""
    for hook in reversed(hooks):
        hook.then = last
        if hook.kind not in hook.middleware.idle_hooks:
            last = hook.node
    return last


def merged(state: Any, update: Mapping[str, Any]) -> list[Any]:
    """Return the messages as they are with an update."""
    messages: list[Any] = state["messages"]
    return add_messages(messages, update["messages"]) if update.get("messages") else messages


def send(message: Any, call: Any) -> Send:
    """Return the task of one tool call. It names the call: what is to run is in the state, once."""
    return Send("tools", {"__type": "tool_call", "message_id": message.id, "tool_call_id": call["id"]})
