"""`HumanInTheLoopMiddleware`: tool calls that wait for a person's decision, all of a turn at once or each by itself."""

from __future__ import annotations

import operator
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NotRequired

from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.tools import BaseTool

from waitpoint import canonical, codec
from waitpoint import runtime as runtimes
from waitpoint.agents import decisions, gate, history
from waitpoint.agents.errors import ToolInvocationError
from waitpoint.agents.gate import Gated, Reading, Steps
from waitpoint.agents.middleware.types import AgentMiddleware, AgentState, PrivateStateAttr
from waitpoint.agents.policy import FREE, InterruptOnConfig, Policy, read_policies
from waitpoint.agents.tool_node import execute
from waitpoint.agents.tool_node.failures import error_message
from waitpoint.agents.tool_node.node import tool_runtime
from waitpoint.agents.tool_node.request import ToolCallRequest
from waitpoint.agents.tool_schemas import args_schema, argument_error, call_digest, check_arguments, visible_args
from waitpoint.errors import ConfigError, PayloadError, QuestionWithdrawn
from waitpoint.interrupts import interrupt
from waitpoint.interrupts.journal import Journal, Question
from waitpoint.protocol import (
    HITL_REQUEST,
    TOOL_APPROVAL,
    Action,
    ActionRequest,
    ApproveDecision,
    BatchCall,
    Decision,
    DecisionType,
    EditDecision,
    HITLRequest,
    HITLResponse,
    RejectDecision,
    RespondDecision,
    ReviewConfig,
    ToolApprovalRequest,
    batch_schema,
    decision_schema,
    read_batch,
    read_decision,
)
from waitpoint.runtime import Runtime

__all__ = [
    "Action",
    "ActionRequest",
    "ApproveDecision",
    "Decision",
    "DecisionType",
    "EditDecision",
    "HITLRequest",
    "HITLResponse",
    "HumanInTheLoopMiddleware",
    "InterruptMode",
    "InterruptOnConfig",
    "RejectDecision",
    "RespondDecision",
    "ReviewConfig",
    "ToolApprovalRequest",
    "is_tool_approval_interrupt",
]

InterruptMode = Literal["batched", "per_call"]
_MODES = ("batched", "per_call")


class HumanInTheLoopState(AgentState[Any]):
    """What the middleware keeps in the state: copies, for people to look at. The gate believes none of it."""

    hitl_edited_tool_calls: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]
    hitl_remarks: NotRequired[Annotated[list[Any], PrivateStateAttr, operator.add]]


def is_tool_approval_interrupt(interrupt: Any) -> bool:
    """Whether an interrupt asks about one tool call."""
    value = getattr(interrupt, "value", None)
    if not isinstance(value, Mapping) or value.get("type") != TOOL_APPROVAL:
        return False
    return isinstance(value.get("tool_call_id"), str) and isinstance(value.get("name"), str)


@dataclass
class _Asked:
    """A call that is asked about, with what the question says of it."""

    call: ToolCall
    policy: Policy
    action: dict[str, Any]
    why: str


class HumanInTheLoopMiddleware(AgentMiddleware[Any, Any, Any]):
    """Lets a person decide about tool calls before they run.

    `interrupt_on` maps names of tools, or patterns such as "delete_*" and "*", to True (any decision), False (no question),
    "deny" (refused without asking) or an `InterruptOnConfig`. `description_prefix` begins the text of a question that has no
    description of its own. `interrupt_mode` "batched" asks once for all calls of a turn, "per_call" asks about each by
    itself and runs it as soon as it is answered; use "per_call" for new agents. `edit_notice` is told to the model before
    the result of a call that a person changed, None: nothing.

    Raises:
        ConfigError: something in `interrupt_on` would not gate as it reads.
    """

    state_schema = HumanInTheLoopState

    def __init__(
        self,
        interrupt_on: Mapping[str, bool | Literal["deny"] | InterruptOnConfig],
        *,
        description_prefix: str = decisions.DEFAULT_PREFIX,
        interrupt_mode: InterruptMode = "batched",
        edit_notice: str | None = decisions.EDIT_NOTICE,
    ) -> None:
        if interrupt_mode not in _MODES:
            raise ConfigError(f"`interrupt_mode` is {interrupt_mode!r}; give one of {', '.join(map(repr, _MODES))}")
        texts: dict[str, Any] = {"description_prefix": description_prefix, "edit_notice": edit_notice or ""}
        for name, text in texts.items():
            if not isinstance(text, str):
                raise ConfigError(f"`{name}` is a {type(text).__name__}; give a text")
        self.policies = read_policies(interrupt_on)
        self.interrupt_on = dict(interrupt_on)
        self.description_prefix = description_prefix
        self.interrupt_mode = interrupt_mode
        self.edit_notice = edit_notice
        if interrupt_mode == "per_call":
            self.idle_hooks = frozenset({"after_model"})
        self.gated = Gated(self.policies, description_prefix, edit_notice)

    # --- batched: one question after the model's turn -----------------------------------------------------------------

    def after_model(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Ask about all calls of the turn at once, in batched mode."""
        return gate.blocking(self._turn(state, runtime)) if self._asks_turn(state) else None

    async def aafter_model(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Do the same from an event loop."""
        return await gate.awaiting(self._turn(state, runtime)) if self._asks_turn(state) else None

    def _asks_turn(self, state: Any) -> bool:
        """Whether the turn is decided as a whole: in batched mode, or if it was asked about so before the mode was changed."""
        if self.interrupt_mode == "batched":
            return True
        journal: Journal | None = runtimes.attempt.get()
        message, _ = history.last_call(state["messages"])
        if journal is None or message is None:
            return False
        return any((a.row.qkey or "").startswith(_turn_key(message)) and not a.is_gone for a in journal.asked)

    def _turn(self, state: Any, runtime: Runtime[Any]) -> Steps:
        messages = state["messages"]
        message, _ = history.last_call(messages)
        tools = gate.tools_here()
        update: dict[str, Any] = {}
        answers: dict[str, ToolMessage] = {}
        edits: dict[str, Any] = {}
        if message is not None:
            calls = history.pending_calls(messages)
            turn = _Turn(self, state, runtime, message, tools)
            yield from turn.decide(calls)
            answers, edits = turn.answers, turn.edits
            if turn.remarks:
                update["hitl_remarks"] = turn.remarks
            if turn.journal is not None and any(c["id"] not in answers for c in calls):
                answers = {}  # the gate gives them, so that the answers of a turn lie in the order of its calls
            if answers or turn.reviewed:
                update["messages"] = [message, *(answers[c["id"] or ""] for c in calls if c["id"] in answers)]
        if edits or state.get("hitl_edited_tool_calls"):
            update["hitl_edited_tool_calls"] = edits
        return update or None

    # --- at each call -------------------------------------------------------------------------------------------------

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        """Put a person's edit in the place of a call, and in per-call mode ask about it."""
        decided: ToolCallRequest | ToolMessage = self._edited(request)
        if decided is request and runtimes.attempt.get() is None:
            decided = gate.blocking(self._by_hand(request))
        elif decided is request:
            look = gate.review if self.interrupt_mode == "per_call" else gate.refusal
            decided = look(request, self.gated)
        if isinstance(decided, ToolMessage):
            return decided
        return self._told(request, decided, handler(decided))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        """Do the same from an event loop."""
        decided: ToolCallRequest | ToolMessage = self._edited(request)
        if decided is request and runtimes.attempt.get() is None:
            decided = await gate.awaiting(self._by_hand(request))
        elif decided is request:
            look = gate.areview if self.interrupt_mode == "per_call" else gate.arefusal
            decided = await look(request, self.gated)
        if isinstance(decided, ToolMessage):
            return decided
        return self._told(request, decided, await handler(decided))

    def _edited(self, request: ToolCallRequest) -> ToolCallRequest:
        """Return the request for the action that a person put in the place of a call, if this state has one."""
        state, call = request.state, request.tool_call
        edits = state.get("hitl_edited_tool_calls") if isinstance(state, Mapping) else None
        action = (edits or {}).get(call["id"])
        if action is None:
            return request
        changed: ToolCall = {**call, "name": action["name"], "args": action["args"]}
        known = [*([request.tool] if request.tool else []), *getattr(request.runtime, "tools", ())]
        tool = next((tool for tool in known if tool.name == action["name"]), None)
        if tool is None and (known or action["name"] != call["name"]):
            raise ConfigError(
                f"The edit of call {call['id']!r} names {action['name']!r}, which is not an available tool; give the agent "
                f"that tool again, or put another action into `hitl_edited_tool_calls` by update_state()"
            )
        return request.override(tool_call=changed, tool=tool)

    def _by_hand(self, request: ToolCallRequest) -> Steps:
        """Ask about a call outside of any run, where the hook itself is called and `interrupt` is the caller's."""
        call = request.tool_call
        policy = self.policies.of(call["name"])
        if self.interrupt_mode != "per_call" or policy is None or policy.kind == "free":
            return request
        if policy.kind == "deny":
            return error_message(decisions.DENIED.format(tool=call["name"]), call)
        if not (yield from decisions.verdict(policy, request)).asks:
            return request
        text = yield from decisions.described(
            policy.description, self.description_prefix, call, request.state, request.runtime
        )
        about = {"tool_call_id": call["id"] or "", "name": call["name"], "args": call["args"], "description": text}
        schema = decision_schema(policy.allowed, call["name"], args_schema(request.tool))
        given = interrupt({"type": TOOL_APPROVAL, **about}, response_schema=schema)
        decision = read_decision(given, schema, call["name"], policy.allowed)
        if decision["type"] in ("reject", "respond"):
            return decisions.answer(call, decision)
        if decision["type"] == "approve":
            return request
        edited: ToolCall = {**call, "args": decision["edited_action"]["args"]}
        return request.override(tool_call=edited)

    def _told(self, request: ToolCallRequest, decided: ToolCallRequest, result: Any) -> Any:
        if decided is request:
            return result
        call = decided.tool_call
        return execute.annotated(
            result, call["id"] or "", {"name": call["name"], "args": call["args"]}, self.edit_notice
        )


def _turn_key(message: AIMessage) -> str:
    return f"turn:{message.id}:"


class _Turn:
    """The calls of one turn of the model, decided together."""

    def __init__(
        self, middleware: HumanInTheLoopMiddleware, state: Any, runtime: Runtime[Any] | None, message: AIMessage,
        tools: Mapping[str, BaseTool],
    ) -> None:  # fmt: skip
        self.middleware = middleware
        self.state = state
        self.runtime = runtime
        self.message = message
        self.tools = tools
        self.answers: dict[str, ToolMessage] = {}
        self.edits: dict[str, Any] = {}
        self.remarks: list[list[str]] = []
        self.reviewed = False
        self.digest = ""
        self.journal: Journal | None = runtimes.attempt.get()

    def decide(self, calls: Sequence[ToolCall]) -> Steps:
        """Sort the calls, ask about those that need it, and put on record what may run."""
        gated = [call for call in calls if self._is_asked_here(call)]
        self.digest = canonical.args_digest(tuple((c["id"], self._digest(c)) for c in gated), {})
        frozen = self._frozen()
        asked: list[_Asked] = []
        granted: list[Any] = []
        for call in calls:
            own = self.middleware.policies.of(call["name"])
            if own is not None and own.kind == "deny" and self._has(call["name"]):
                self.answers[call["id"] or ""] = error_message(decisions.DENIED.format(tool=call["name"]), call)
            if call not in gated:
                continue
            policy, _ = self._rule(call["name"])
            found = yield from self._sorted(call, policy, frozen)
            if found is not None:
                asked.append(found)
            elif call["id"] not in self.answers:
                granted.append(self._permit(call, {"verdict": "free"}))
        if asked:
            self.reviewed = True
            granted += self._ask(asked, frozen)
        journal = self.journal
        if journal is not None and (kept := [each for each in granted if each is not None]):
            yield Reading(lambda: gate.grant(journal, kept))

    def _rule(self, name: str) -> tuple[Policy, Gated]:
        """Return the policy of a tool, and whose it is."""
        tool, gated = self.tools.get(name), self.middleware.gated
        if tool is None or self.journal is None:
            return gated.policies.of(name) or FREE, gated
        return gate.policy_of(tool, {"name": name}, gated)

    def _has(self, name: str) -> bool:
        """Whether there is such a tool; of one that is not there, the model is told."""
        return not self.tools or name in self.tools

    def _is_asked_here(self, call: ToolCall) -> bool:
        """Whether this question may be about a call. If an agent around this one has a stricter rule, the gate asks."""
        policy, gated = self._rule(call["name"])
        return self._has(call["name"]) and policy.kind == "ask" and gated is self.middleware.gated

    def _frozen(self) -> tuple[dict[str, Any], list[str]] | None:
        """Return the question as this turn asked it before, with the calls it is about: nothing is worked out anew.

        None too if there is something else to decide now: calls were changed in the state meanwhile, or tools and policies.
        """
        for asked in reversed(self.journal.asked) if self.journal is not None else ():
            if asked.row.qkey == self._key and not asked.is_gone:
                return codec.loads(asked.row.value), codec.loads(asked.row.extra)["form_data"]["tool_call_ids"]
        return None

    @property
    def _key(self) -> str:
        return f"{_turn_key(self.message)}{self.digest[:16]}"

    def _digest(self, call: ToolCall) -> str:
        """Return the digest of what is decided about a call, its tool's schema too where the tool is known."""
        tool = self.tools.get(call["name"])
        return canonical.args_digest((call["name"], call["args"]), {}) if tool is None else call_digest(tool, call)

    def _request(self, call: ToolCall) -> ToolCallRequest:
        config = {} if self.journal is None else runtimes.scope("interrupt_on").config
        runtime = tool_runtime(call, self.state, config, self.tools.values())
        if self.journal is None and self.runtime is not None:  # called by hand: what was passed is all there is
            runtime.context, runtime.store = self.runtime.context, self.runtime.store
        return ToolCallRequest(call, None, self.state, runtime)

    def _sorted(self, call: ToolCall, policy: Policy, frozen: tuple[dict[str, Any], list[str]] | None) -> Steps:
        """Return the call as it is asked about; None if it passes, or cannot work and is answered here."""
        if frozen is not None:
            payload, ids = frozen
            if call["id"] in ids:
                return _Asked(call, policy, payload["action_requests"][ids.index(call["id"])], "")
        request = self._request(call)
        tool = self.tools.get(call["name"])
        try:
            if tool is not None:
                check_arguments(tool, request)
            shown = canonical.payload(visible_args(tool, call["args"]), path=f"{call['name']}.args")
        except (ToolInvocationError, PayloadError) as error:
            self.answers[call["id"] or ""] = error_message(str(error), call)
            return None
        if frozen is not None:
            return None  # the verdict of that time was that it passes
        verdict = yield from decisions.verdict(policy, request)
        if not verdict.asks:
            return None
        prefix = self.middleware.description_prefix
        about: ToolCall = {**call, "args": visible_args(tool, call["args"])}
        text = yield from decisions.described(policy.description, prefix, about, self.state, self.runtime)
        return _Asked(call, policy, {"name": call["name"], "args": shown, "description": text}, verdict.why)

    # --- the question -------------------------------------------------------------------------------------------------

    def _ask(self, asked: Sequence[_Asked], frozen: Any) -> list[Any]:
        """Ask, and return the permits that the answer gives."""
        payload = frozen[0] if frozen is not None else {
            "action_requests": [each.action for each in asked],
            "review_configs": [
                {"action_name": each.call["name"], "allowed_decisions": list(each.policy.allowed)} for each in asked
            ],
        }  # fmt: skip
        ids = [each.call["id"] or "" for each in asked]
        batch = [
            BatchCall(i, a.call["name"], a.policy.allowed, self._targets(a)) for i, a in zip(ids, asked, strict=True)
        ]
        schema = batch_schema(batch)
        names = list(self.tools) or [each.call["name"] for each in asked]
        data = {"tool_call_ids": ids, "tools": names, "why": [each.why for each in asked]}
        if self.journal is None:
            answer = read_batch(interrupt(payload), payload, schema, ids, names)
            question = ""
        else:
            try:
                row = self.journal.ask(Question(payload, self._key, (), schema, form=HITL_REQUEST, form_data=data)).row
            except QuestionWithdrawn as gone:
                return [self._decided(a, decisions.withdrawal(a.call["name"], gone.reason), "") for a in asked]
            answer = codec.loads(row.answer or b"")["decisions"]
            question = row.id
            if row.comment:
                self.remarks.append([row.id, row.comment])
        return [self._decided(each, decision, question) for each, decision in zip(asked, answer, strict=True)]

    def _targets(self, asked: _Asked) -> dict[str, dict[str, Any]]:
        """Return the tools that an edit of a call may name: its own, and those that are free or may be edited themselves."""
        own = asked.call["name"]
        if "edit" not in asked.policy.allowed:
            return {}
        targets = {own: args_schema(self.tools.get(own))}
        for name, tool in self.tools.items():
            policy, _ = self._rule(name)
            if policy.kind == "free" or (policy.kind == "ask" and "edit" in policy.allowed):
                targets.setdefault(name, args_schema(tool))
        return targets

    def _decided(self, asked: _Asked, decision: Mapping[str, Any], question: str) -> Any:
        call, kind = asked.call, decision["type"]
        if kind == "approve":
            return self._permit(call, {"verdict": "approved", "question": question})
        if kind == "edit":
            action = decision["edited_action"]
            changed: ToolCall = {**call, "name": action["name"], "args": action["args"]}
            self._check_edit(changed, question)
            self.edits[call["id"] or ""] = {"name": action["name"], "args": action["args"]}
            return self._permit(changed, {"verdict": "edited", "question": question})
        self.answers[call["id"] or ""] = decisions.answer(call, decision)
        return self._permit(call, {"refused": dict(decision), "question": question})

    def _check_edit(self, changed: ToolCall, question: str) -> None:
        """Let the tool's own validators look at an edit; what they refuse opens the question again."""
        tool = self.tools.get(changed["name"])
        problem = None if tool is None else argument_error(tool, changed["args"], self._request(changed))
        if problem is not None:
            misfit = decisions.refused_edit(changed["name"], problem)
            if self.journal is not None:
                self.journal.refuse(question, misfit)
            raise misfit

    def _permit(self, call: ToolCall, about: Mapping[str, Any]) -> tuple[str, str, str, Mapping[str, Any]] | None:
        tool = self.tools.get(call["name"])
        if tool is None:
            return None
        return (self.message.id or "", call["id"] or "", call_digest(tool, call), about)
