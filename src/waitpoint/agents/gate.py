"""The gate: where tools are called, under all middleware. Nothing runs past it without the decision it needs.

A gated call runs only with a permit: a recorded verdict of its policy, or a person's approval of exactly this call (call
id, tool, schema of its arguments, arguments). A permit lies outside the state and is used up by the first execution
without a known failure. Without one the gate asks. So jumps, edits, rewriters, late tools, forks and `update_state` cannot
go around it; middleware only decides where and how the question is raised.

Written once, as generators of calls that may block or have to be awaited; `admit` and `aadmit` make them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.tools import BaseTool

from waitpoint import canonical, codec, ids, runtime
from waitpoint.agents import decisions
from waitpoint.agents.errors import ToolInvocationError
from waitpoint.agents.policy import FREE, Policies, Policy
from waitpoint.agents.tool_node.failures import error_message
from waitpoint.agents.tool_node.request import ToolCallRequest
from waitpoint.agents.tool_schemas import args_schema, argument_error, call_digest, check_arguments, visible_args
from waitpoint.checkpoint.base import JournalRow
from waitpoint.errors import PayloadError, PermitUsedError, QuestionWithdrawn, UsageError
from waitpoint.interrupts import effects, permits
from waitpoint.interrupts.effects import Effect
from waitpoint.interrupts.journal import Asked, Journal, Question, running
from waitpoint.protocol.decisions import TOOL_APPROVAL, decision_schema

POLICIES: Final = "tool_policies"
TOOLS: Final = "tools"
"""Under which names an agent attaches its policies and its tools to its graph."""


@dataclass(frozen=True)
class Gated:
    """What an agent's approval middleware lays down for the gate."""

    policies: Policies = field(default_factory=Policies)
    prefix: str = decisions.DEFAULT_PREFIX
    edit_notice: str | None = decisions.EDIT_NOTICE


class Admission(NamedTuple):
    """A call that may run: as it is to run, with the effect it is recorded as (None: nothing is recorded here).

    `edited` is the action that a person put in the place of the model's, to be told to the model.
    """

    request: ToolCallRequest
    effect: Effect | None
    edited: Mapping[str, Any] | None = None
    notice: str | None = None


class Reading:
    """A call that reads the store, which an event loop must not wait for."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.call = call

    def __call__(self) -> Any:
        return self.call()


Refusal = ToolMessage
_Thunk = Callable[[], Any]
Steps = Generator[_Thunk, Any, Any]


def admit(request: ToolCallRequest, tool: BaseTool) -> Admission | Refusal:
    """Let a call through, refuse it, or stop here for a decision (by the pause that `interrupt()` raises)."""
    found: Admission | Refusal = blocking(_admitted(request, tool))
    return found


async def aadmit(request: ToolCallRequest, tool: BaseTool) -> Admission | Refusal:
    """Do the same from an event loop; predicates may be coroutine functions."""
    found: Admission | Refusal = await awaiting(_admitted(request, tool))
    return found


def review(request: ToolCallRequest, gated: Gated) -> ToolCallRequest | Refusal:
    """Ask about a call where middleware wants it asked; what comes of it is what `admit` will find.

    Returns the request as it is to run, or the answer that takes the place of a result.
    """
    found: ToolCallRequest | Refusal = blocking(_reviewed(request, gated))
    return found


async def areview(request: ToolCallRequest, gated: Gated) -> ToolCallRequest | Refusal:
    """Do the same from an event loop."""
    found: ToolCallRequest | Refusal = await awaiting(_reviewed(request, gated))
    return found


def refusal(request: ToolCallRequest, gated: Gated) -> ToolCallRequest | Refusal:
    """Return the answer to a call that was refused in the turn's one question; the request if it was not."""
    found: ToolCallRequest | Refusal = blocking(_refused(request, gated))
    return found


async def arefusal(request: ToolCallRequest, gated: Gated) -> ToolCallRequest | Refusal:
    """Do the same from an event loop."""
    found: ToolCallRequest | Refusal = await awaiting(_refused(request, gated))
    return found


def blocking(steps: Steps) -> Any:
    """Make the calls of these steps in this thread."""
    reply: Any = None
    while True:
        try:
            thunk = steps.send(reply)
        except StopIteration as end:
            return end.value
        reply = thunk()
        if inspect.isawaitable(reply):
            getattr(reply, "close", lambda: None)()
            raise UsageError(
                "A predicate or description of `interrupt_on` is a coroutine function, which cannot be awaited under invoke() "
                "or stream(); use ainvoke() or astream(), or make it a plain function"
            )


async def awaiting(steps: Steps) -> Any:
    """Make the calls of these steps from an event loop."""
    reply: Any = None
    while True:
        try:
            thunk = steps.send(reply)
        except StopIteration as end:
            return end.value
        if isinstance(thunk, Reading):
            reply = await effects.off(thunk.call)
            continue
        reply = thunk()
        if inspect.isawaitable(reply):
            try:
                reply = await reply
            except Exception as error:  # noqa: BLE001 - the steps decide what a predicate's failure means
                reply = decisions.Raised(error)


# --- admission --------------------------------------------------------------------------------------------------------


def policy_of(tool: BaseTool, call: Mapping[str, Any], gated: Gated | None) -> tuple[Policy, Gated]:
    """Return the policy that holds for a call here: the strictest of the agent it runs in and of those around that agent.

    What an outer agent says of every tool ("*") speaks of the tools that it has itself.
    """
    scope = runtime.current.get()
    specs = scope.specs if scope is not None else ()
    own = gated or (specs[0].extras.get(POLICIES) if specs else None)
    names = dict.fromkeys((tool.name, call["name"]))
    found = [(own.policies.of(name), own) for name in names] if own is not None else []
    for spec in specs[1:]:
        around: Gated | None = spec.extras.get(POLICIES)
        if around is not None:
            has = spec.extras.get(TOOLS, {})
            rules = around.policies
            found += [(rules.of(name) if name in has else rules.named(name), around) for name in names]
    known = [(policy, of) for policy, of in found if policy is not None]
    strictest, of = max(known, key=lambda each: each[0].strictness, default=(FREE, Gated()))
    return strictest.within(policy for policy, _ in known), of


def _admitted(request: ToolCallRequest, tool: BaseTool) -> Steps:
    # What was judged is what runs, whoever holds the same lists and dicts: the tool itself may change them, and be retried.
    call = decisions.apart(request.tool_call)
    request = replace(request, tool_call=call)
    policy, gated = policy_of(tool, call, None)
    journal: Journal | None = runtime.attempt.get()
    if policy.kind == "free" and (journal is None or journal.recorder is None):
        return Admission(request, None)
    if journal is None:
        journal = running(f"tool {tool.name!r}, whose calls need a decision,")
    trail = Trail.of(journal, call)
    digest = call_digest(tool, call)
    if policy.kind == "free":
        return Admission(request, _effect(journal, trail, tool, call, digest, policy))
    if policy.kind == "deny":
        return error_message(decisions.DENIED.format(tool=tool.name), call)
    if trail.has_begun(tool.name, digest) or trail.permitted(digest):
        return Admission(request, _effect(journal, trail, tool, call, digest, policy))
    found = (yield from _permit(journal, request, digest)) if trail.number == 0 else None
    if found is not None:
        row, about = found
        if "refused" in about:
            return decisions.answer(call, about["refused"])
        return Admission(request, _effect(journal, trail, tool, call, digest, policy, (row,)))
    edited = yield from _asked(request, tool, policy, gated, trail)
    if isinstance(edited, ToolMessage):
        return edited
    digest = call_digest(tool, edited.tool_call)
    effect = _effect(journal, trail, tool, edited.tool_call, digest, policy)
    if edited is request:
        return Admission(request, effect)
    action = {"name": edited.tool_call["name"], "args": edited.tool_call["args"]}
    return Admission(edited, effect, action, gated.edit_notice)


def _refused(request: ToolCallRequest, gated: Gated) -> Steps:
    tool, journal = request.tool, runtime.attempt.get()
    if tool is None or journal is None or policy_of(tool, request.tool_call, gated)[0].kind != "ask":
        return request
    found = yield from _permit(journal, request, call_digest(tool, request.tool_call))
    is_refused = found is not None and "refused" in found[1]
    return decisions.answer(request.tool_call, found[1]["refused"]) if is_refused else request


def _permit(journal: Journal, request: ToolCallRequest, digest: str) -> Steps:
    """Return what was decided about this call in the turn's one question, if it is still to be used."""
    names = [permit_name(_message_id(request), request.tool_call["id"] or "", digest)]
    return (yield Reading(lambda: permits.open_permit(journal, names)))


def _effect(
    journal: Journal, trail: Trail, tool: BaseTool, call: ToolCall, digest: str, policy: Policy,
    used: tuple[JournalRow, ...] = (),
) -> Effect:  # fmt: skip
    return Effect(
        function=tool.name,
        code=None,
        digest=digest,
        key=trail.next_key(),
        ordinal=0,
        args=visible_args(tool, call["args"]),
        in_doubt=policy.in_doubt,
        idempotency_key=idempotency_key(journal, call, digest, trail.number),
        kind="tool",
        permits=used,
    )


def idempotency_key(journal: Journal, call: ToolCall, digest: str, done: int) -> str:
    """Return the key of a call: its own identity and content, in this branch of the thread.

    A call that somebody wants again after it was done has another one: the receiver must not take it for a repeat.
    """
    task = journal.task
    again = (done,) if done else ()
    return ids.hashed("tool", task.key.thread_id, task.task_id, call["id"] or "", digest, *again)


def permit_name(message_id: str, call_id: str, digest: str) -> str:
    """Return what a permit is filed under: exactly one call of one message, with these arguments."""
    return ids.hashed("permit", message_id, call_id, digest)


def _message_id(request: ToolCallRequest) -> str:
    """Return the id of the message that made the call."""
    state = request.state
    messages = state.get("messages", ()) if isinstance(state, Mapping) else getattr(state, "messages", ())
    for message in reversed(messages):
        if isinstance(message, AIMessage) and any(c["id"] == request.tool_call["id"] for c in message.tool_calls):
            return message.id or ""
    return ""


class _Seen:
    """What an attempt has seen of one call id, by the numbers of its executions."""

    __slots__ = ("done", "granted", "running", "tries")

    def __init__(self) -> None:
        self.done: set[int] = set()  # came to a result
        self.running: set[int] = set()  # begun, and not known to have ended
        self.tries: dict[int, int] = {}  # that failed
        self.granted: set[tuple[int, str]] = set()

    def next(self) -> int:
        """Return the number of the execution that comes next: one that failed may be tried again."""
        number = 0
        while number in self.done or number in self.running:
            number += 1
        return number


class Trail:
    """One execution of a call, in the eyes of this attempt. A retry after a failure is no other one."""

    __slots__ = ("_seen", "call_id", "journal", "number")

    def __init__(self, journal: Journal, call_id: str, seen: _Seen, number: int) -> None:
        self.journal = journal
        self.call_id = call_id
        self.number = number
        self._seen = seen

    @classmethod
    def of(cls, journal: Journal, call: ToolCall, key: str | None = None) -> Trail:
        """Return the execution of a call that comes next, or the one that has this key."""
        with journal.lock:
            seen: _Seen = journal.notes.setdefault(("tool", call["id"]), _Seen())
            number = seen.next() if key is None else int(key.rpartition("#")[2].partition(".")[0])
        return cls(journal, call["id"] or "", seen, number)

    @property
    def name(self) -> str:
        """What it is called on record."""
        return f"{self.call_id}#{self.number}"

    def question(self, digest: str) -> str:
        """Return the key of the question about this call as it is now, its tool's schema too."""
        return f"tool:{self.name}:{digest[:16]}"

    def next_key(self) -> str:
        """Return the key of its next try."""
        return f"{self.name}.{self._seen.tries.get(self.number, 0)}"

    @contextmanager
    def going_on(self, *, may_run_again: bool) -> Iterator[None]:
        """Note that it begins and how it comes out; where that is never known, what comes next is another execution.

        Raises `PermitUsedError` if another call of the handler began it at the same moment.
        """
        with self.journal.lock:
            if self.number in self._seen.running or self.number in self._seen.done:
                raise PermitUsedError(
                    f"Execution {self.name!r} was begun by another call of the handler; ask for another"
                )
            self._seen.running.add(self.number)
        try:
            yield
        except BaseException as error:
            if may_run_again or isinstance(error, Exception):
                self._seen.tries[self.number] = self._seen.tries.get(self.number, 0) + 1
                self._seen.running.discard(self.number)
            raise
        self._seen.done.add(self.number)
        self._seen.running.discard(self.number)

    def grant(self, digest: str) -> None:
        """Note that a decision allows this execution."""
        self._seen.granted.add((self.number, digest))

    def permitted(self, digest: str) -> bool:
        """Whether a decision of this attempt allows this execution."""
        return (self.number, digest) in self._seen.granted

    def _is_try(self, key: str) -> bool:
        """Whether a key is one of the present execution; a model may call its calls what it likes, so all is compared."""
        call_id, _, number = key.rpartition("#")
        return call_id == self.call_id and number.partition(".")[0] == str(self.number)

    def has_begun(self, tool: str, digest: str) -> bool:
        """Whether this execution was begun, or let through, in an earlier attempt: then it had what it needed."""
        if permits.is_noted(self.journal, self.name, digest):
            return True
        with self.journal.lock:
            rows = [row for row in self.journal.entries.values() if row.kind == "step"]
        for row in rows:
            body = codec.loads(row.body)
            if body["function"] == tool and body["digest"] == digest and self._is_try(str(body["key"])):
                return True
        return False


# --- questions --------------------------------------------------------------------------------------------------------


def _reviewed(request: ToolCallRequest, gated: Gated) -> Steps:
    tool, call = request.tool, request.tool_call
    if tool is None:
        return request  # the node answers that there is no such tool
    policy, gated = policy_of(tool, call, gated)
    if policy.kind != "ask":
        return request  # free, or refused at the gate
    journal = running(f"the approval of tool {tool.name!r}")
    trail = Trail.of(journal, call)
    digest = call_digest(tool, call)
    if trail.has_begun(tool.name, digest):
        return request
    if trail.number == 0 and _frozen(journal, trail.question(digest)) is None:
        # The turn may have been decided as a whole, by an agent that asked in the other mode.
        found = yield from _permit(journal, request, digest)
        if found is not None:
            return decisions.answer(call, found[1]["refused"]) if "refused" in found[1] else request
    return (yield from _asked(request, tool, policy, gated, trail))


def _asked(request: ToolCallRequest, tool: BaseTool, policy: Policy, gated: Gated, trail: Trail) -> Steps:
    """Get the decision about a call: what its policy says, or what a person does."""
    journal, call = trail.journal, request.tool_call
    if tool.name != call["name"]:
        raise UsageError(
            f"A request names tool {call['name']!r} and carries tool {tool.name!r}, whose calls need a decision, and a person "
            f"could not see which is meant; override `tool_call` together with `tool`"
        )
    key = trail.question(call_digest(tool, call))
    frozen = _frozen(journal, key)
    why = ""
    if frozen is None:
        try:
            check_arguments(tool, request)
            shown = canonical.payload(visible_args(tool, call["args"]), path=f"{tool.name}.args")
        except (ToolInvocationError, PayloadError) as error:
            return error_message(str(error), call)
        verdict = yield from decisions.verdict(policy, request)
        if not verdict.asks:
            permits.note(journal, trail.name, call_digest(tool, call))
            trail.grant(call_digest(tool, call))
            return request
        why = verdict.why
        here = runtime.scope("the description of a call").runtime
        about: ToolCall = {**call, "args": visible_args(tool, call["args"])}
        text = yield from decisions.described(policy.description, gated.prefix, about, request.state, here)
        frozen = {
            "type": TOOL_APPROVAL,
            "tool_call_id": call["id"] or "",
            "name": call["name"],
            "args": shown,
            "description": text,
        }
    schema = decision_schema(policy.allowed, call["name"], args_schema(tool))
    data = {"name": call["name"], "allowed": list(policy.allowed), "why": why}
    try:
        asked = journal.ask(Question(frozen, key, (), schema, form=TOOL_APPROVAL, form_data=data))
    except QuestionWithdrawn as gone:
        return decisions.answer(call, decisions.withdrawal(call["name"], gone.reason))
    decision = codec.loads(asked.row.answer or b"")
    if asked.row.comment:
        journal.notes.setdefault("remarks", {})[trail.call_id] = (asked.row.id, asked.row.comment)
    return _decided(request, tool, decision, asked, trail)


def _frozen(journal: Journal, key: str) -> dict[str, Any] | None:
    """Return the question as it was asked about this very call, so that nothing of it is worked out anew."""
    for asked in reversed(journal.asked):
        if asked.row.qkey == key and not asked.is_gone:
            payload: dict[str, Any] = codec.loads(asked.row.value)
            return payload
    return None


def _decided(
    request: ToolCallRequest, tool: BaseTool, decision: Mapping[str, Any], asked: Asked, trail: Trail
) -> ToolCallRequest | Refusal:
    call = request.tool_call
    if decision["type"] == "approve":
        trail.grant(call_digest(tool, call))
        return request
    if decision["type"] != "edit":
        return decisions.answer(call, decision)
    edited: ToolCall = {**call, "args": decision["edited_action"]["args"]}
    request = replace(request, tool_call=edited)
    problem = argument_error(tool, edited["args"], request)
    if problem is not None:  # what only the tool's own validators see: the question is open again
        misfit = decisions.refused_edit(tool.name, problem)
        trail.journal.refuse(asked.row.id, misfit)
        raise misfit
    trail.grant(call_digest(tool, edited))
    return request


def tools_here() -> Mapping[str, BaseTool]:
    """Return the tools of the agent that runs here, by name."""
    scope = runtime.current.get()
    found: Mapping[str, BaseTool] = {} if scope is None else scope.specs[0].extras.get(TOOLS, {})
    return found


# --- batches ----------------------------------------------------------------------------------------------------------


def grant(journal: Journal, decided: Sequence[tuple[str, str, str, Mapping[str, Any]]]) -> None:
    """Put on record what was decided about calls that run in later tasks: (message id, call id, digest, what)."""
    permits.grant(journal, {permit_name(*name): about for *name, about in decided})
