"""Everything Waitpoint raises: one base, a family for each thing a reader can do about it.

Rule: an error says fact, reason and cure, quotes names and ids, and carries its values as attributes. It never carries
payloads or state, which may be secret; where a caller has to choose among open questions it quotes how their texts
begin. Control flow (a pause) is not an error and does not derive from the base.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from waitpoint.records import Value

__all__ = [
    "AlreadyAnsweredError",
    "AmbiguousInterruptError",
    "AsyncOnlyError",
    "CacheWarning",
    "CallLimitError",
    "ChangedInPlaceWarning",
    "CheckpointerRequiredError",
    "ConfigError",
    "ConflictError",
    "DebugWarning",
    "EmptyChannelError",
    "EmptyInputError",
    "GraphBubbleUp",
    "GraphDrained",
    "GraphInterrupt",
    "GraphRecursionError",
    "GraphValidationError",
    "InvalidUpdateError",
    "MissingPackageError",
    "NodeError",
    "NodeFailedError",
    "NodeTimeoutError",
    "NotFoundError",
    "NotSupportedError",
    "OutsideGraphError",
    "ParentCommand",
    "PayloadError",
    "PendingQuestionsError",
    "PermitUsedError",
    "QuestionWithdrawn",
    "ReplayMismatch",
    "RunAgainWarning",
    "SealedAttemptError",
    "StepInDoubtError",
    "StepTimeoutError",
    "StoreError",
    "SwallowedInterruptError",
    "TaskNotFound",
    "ThreadBusyError",
    "ToolCallLimitExceededError",
    "UnknownInterruptError",
    "UnknownModelError",
    "UnknownTagError",
    "UnstorableValueError",
    "UsageError",
    "WaitpointError",
]


class WaitpointError(Exception):
    """Base of all errors; catch it to catch whatever Waitpoint itself reports."""

    code: ClassVar[str] = "waitpoint"


# --- usage: fix your code ---------------------------------------------------------------------------------------------


class UsageError(WaitpointError):
    """The call or the declaration is wrong; the text names the place and the cure."""

    code = "usage"


class GraphValidationError(UsageError, ValueError):
    """A graph's declaration cannot work (unknown node, bad reducer, ...); fix the builder calls it names."""

    code = "invalid_graph"


class ConfigError(UsageError, ValueError):
    """The config or an argument of a call cannot be used; the text names the key, such as `thread_id`."""

    code = "config"


class CheckpointerRequiredError(UsageError, RuntimeError):
    """Something asked to wait in a graph that has no checkpointer; compile the graph with one."""

    code = "checkpointer_required"


class AsyncOnlyError(UsageError, NotImplementedError):
    """Something that exists only in its async form was called in a blocking run, or the other way round."""

    code = "async_only"


class NotSupportedError(UsageError, NotImplementedError):
    """What was declared has a form that cannot work here, such as a generator; the text names one that can."""

    code = "not_supported"


class OutsideGraphError(UsageError, RuntimeError):
    """A function that belongs inside a running node was called outside of one."""

    code = "outside_graph"


class InvalidUpdateError(WaitpointError):
    """An update does not fit the state, for instance two writes to a key that has no reducer."""

    code = "invalid_update"


class EmptyInputError(UsageError):
    """The input writes no key of the graph, and there is nothing to continue; give an input."""

    code = "empty_input"


class EmptyChannelError(WaitpointError):
    """A state key was read before anything wrote it."""

    code = "empty_channel"


class PayloadError(UsageError, TypeError):
    """A question's payload holds something that a person cannot be shown; `path` names it."""

    code = "invalid_payload"

    def __init__(self, message: str, *, path: str = "", type_name: str = "") -> None:
        super().__init__(message)
        self.path = path
        self.type_name = type_name


class UnstorableValueError(UsageError, TypeError):
    """A value's type would be unknown to a fresh process; register it or declare it in a schema."""

    code = "unstorable_value"

    def __init__(self, message: str, *, path: str = "", type_name: str = "") -> None:
        super().__init__(message)
        self.path = path
        self.type_name = type_name


class UnknownModelError(UsageError, ValueError):
    """A name does not say which provider's model is meant; write it as `provider:model`."""

    code = "unknown_model"

    def __init__(self, message: str, *, model: str = "", provider: str = "") -> None:
        super().__init__(message)
        self.model = model
        self.provider = provider


class MissingPackageError(UsageError, ImportError):
    """What was asked for needs a package that is not installed; install `package`."""

    code = "missing_package"

    def __init__(self, message: str, *, package: str = "") -> None:
        super().__init__(message)
        self.package = package


class GraphRecursionError(WaitpointError, RecursionError):
    """The run took more supersteps than `recursion_limit` allows; raise the limit or end the loop."""

    code = "recursion_limit"


class CallLimitError(WaitpointError):
    """A limit on an agent's calls was set to raise, and is reached; raise the limit, or let the agent end instead."""

    code = "call_limit"

    def __init__(
        self,
        message: str,
        *,
        thread_count: int = 0,
        run_count: int = 0,
        thread_limit: int | None = None,
        run_limit: int | None = None,
    ) -> None:
        super().__init__(message)
        self.thread_count = thread_count
        self.run_count = run_count
        self.thread_limit = thread_limit
        self.run_limit = run_limit


class ModelCallLimitExceededError(CallLimitError):
    """`ModelCallLimitMiddleware` allows no further call of the model; the counts are of the calls made."""

    code = "model_call_limit"


class ToolCallLimitExceededError(CallLimitError):
    """The model asks for more calls than `ToolCallLimitMiddleware` allows; the counts include those asked for.

    `tool_name` is None if the limit is one for all tools together.
    """

    code = "tool_call_limit"

    def __init__(self, message: str, *, tool_name: str | None = None, **counts: int | None) -> None:
        super().__init__(message, **counts)  # type: ignore[arg-type]
        self.tool_name = tool_name


# --- not found --------------------------------------------------------------------------------------------------------


class NotFoundError(WaitpointError, LookupError):
    """No such thread, checkpoint or question; check the id."""

    code = "not_found"


class TaskNotFound(NotFoundError):  # noqa: N818 - LangGraph's name
    """No task of that id is in the thread's current step."""

    code = "task_not_found"


# --- conflict: someone was first --------------------------------------------------------------------------------------


class ConflictError(WaitpointError):
    """The thread is not in the state this change needs; nothing was stored. Read it again and decide."""

    code = "conflict"


class PermitUsedError(ConflictError):
    """A right to one execution was used up by another execution at the same moment; nothing was run."""

    code = "permit_used"


class ThreadBusyError(ConflictError):
    """The thread is running or ready to run, so it takes no new input; let it rest or continue it first."""

    code = "thread_busy"

    def __init__(self, message: str, *, thread_id: str = "", status: str = "") -> None:
        super().__init__(message)
        self.thread_id = thread_id
        self.status = status


class PendingQuestionsError(ConflictError):
    """New input came while questions are open; answer them, or pass `on_pending="withdraw"`."""

    code = "pending_questions"

    def __init__(self, message: str, *, thread_id: str = "", pending_ids: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.thread_id = thread_id
        self.pending_ids = tuple(pending_ids)


class UnknownInterruptError(ConflictError, ValueError):
    """An answer names no question that can be answered; `reason` says why and `pending_ids` lists those that can.

    `reason` is "not_pending", "empty_map" or "ambiguous".
    """

    code = "unknown_interrupt"

    def __init__(
        self,
        message: str,
        *,
        reason: str = "not_pending",
        interrupt_ids: Iterable[str] = (),
        pending_ids: Iterable[str] = (),
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.interrupt_ids = tuple(interrupt_ids)
        self.pending_ids = tuple(sorted(pending_ids))


class AmbiguousInterruptError(UnknownInterruptError, RuntimeError):
    """A bare answer came while several questions are open; answer by id."""

    code = "ambiguous_interrupt"


class AlreadyAnsweredError(UnknownInterruptError):
    """The question was settled before; the first answer stands and this one was not stored.

    `answered_by` and `answered_at` (UTC, ISO 8601) name the winner; `still_to_run` tells whether the thread has yet to
    act on that answer.
    """

    code = "already_answered"

    def __init__(
        self,
        message: str,
        *,
        interrupt_ids: Iterable[str] = (),
        pending_ids: Iterable[str] = (),
        answered_by: str | None = None,
        answered_at: str | None = None,
        still_to_run: bool = False,
    ) -> None:
        super().__init__(message, reason="not_pending", interrupt_ids=interrupt_ids, pending_ids=pending_ids)
        self.answered_by = answered_by
        self.answered_at = answered_at
        self.still_to_run = still_to_run


# --- replay mismatch: the code changed under a waiting thread ---------------------------------------------------------


class ReplayMismatch(WaitpointError):  # noqa: N818 - names what happened
    """A body run again did something else than its record says; put `step()` around what varies, then continue."""

    code = "replay_mismatch"

    def __init__(self, message: str, *, node: str = "", site: str = "", paths: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.node = node
        self.site = site
        self.paths = tuple(paths)


# --- what a node sees -------------------------------------------------------------------------------------------------


class QuestionWithdrawn(WaitpointError):  # noqa: N818 - names what happened
    """The question this `interrupt()` waits for was withdrawn; `reason` says why. Catch it to go on without."""

    code = "question_withdrawn"

    def __init__(self, message: str, *, interrupt_id: str = "", reason: str = "") -> None:
        super().__init__(message)
        self.interrupt_id = interrupt_id
        self.reason = reason


class StepInDoubtError(WaitpointError):
    """A recorded effect may or may not have happened, and the answer to that was to stop."""

    code = "step_in_doubt"


class SealedAttemptError(WaitpointError, RuntimeError):
    """A coroutine or thread that outlived its node tried to ask or to start an effect; await it inside the node."""

    code = "sealed_attempt"


# --- node failed ------------------------------------------------------------------------------------------------------


class NodeFailedError(WaitpointError):
    """A node of the thread failed in the run that was awaited; `error` is the text of its exception."""

    code = "node_failed"

    def __init__(self, message: str, *, error: str = "") -> None:
        super().__init__(message)
        self.error = error


class SwallowedInterruptError(WaitpointError, RuntimeError):
    """A node asked, then went on as if it had not: something caught the pause. Let `GraphInterrupt` pass."""

    code = "swallowed_interrupt"

    def __init__(self, message: str, *, node: str = "", site: str = "") -> None:
        super().__init__(message)
        self.node = node
        self.site = site


class NodeTimeoutError(WaitpointError):
    """A node took longer than its timeout. `kind` is "run" or "idle"; times are seconds. Retry policies try it again."""

    code = "node_timeout"

    def __init__(
        self, message: str, *, node: str = "", kind: Literal["run", "idle"] = "run", run_timeout: float | None = None,
        idle_timeout: float | None = None, elapsed: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.node, self.kind, self.elapsed = node, kind, elapsed
        self.run_timeout, self.idle_timeout = run_timeout, idle_timeout
        self.timeout = run_timeout if kind == "run" else idle_timeout  # what was exceeded


class StepTimeoutError(WaitpointError, TimeoutError):
    """A superstep took longer than the graph's `step_timeout`. Continue the thread, or give it more time."""

    code = "step_timeout"


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class NodeError(Value):
    """What an error handler is told: the node that failed and its exception (not itself an exception)."""

    node: str
    error: BaseException


# --- store ------------------------------------------------------------------------------------------------------------


class StoreError(WaitpointError):
    """The store could not keep or read a record; the text says what and where."""

    code = "store"


class UnknownTagError(StoreError):
    """A stored value is of a type this process does not know; register the class under the tag it names."""

    code = "unknown_tag"

    def __init__(self, message: str, *, tag: str = "", path: str = "") -> None:
        super().__init__(message)
        self.tag = tag
        self.path = path


# --- debug mode: warnings ---------------------------------------------------------------------------------------------


class DebugWarning(UserWarning):
    """Base of what a graph compiled with `debug=True` warns of: it works, and is likely not meant."""


class CacheWarning(UserWarning):
    """A cache could not be read or written; the node ran as if there were none. Look at the cache it names."""


class RunAgainWarning(DebugWarning):
    """A node with recorded effects runs again from its first line; what stands outside of `step()` happens again."""


class ChangedInPlaceWarning(DebugWarning):
    """A node changed its input in place and did not return it, so the change is not stored; return an update."""


# --- control flow: not errors -----------------------------------------------------------------------------------------


class GraphBubbleUp(BaseException):
    """Control flow that must reach the runtime; never catch it for good."""


class GraphInterrupt(GraphBubbleUp):
    """A node waits for an answer.

    If you see this in your own `except`, let it pass: it is how `interrupt()` stops the node. It derives from
    `BaseException`, so `except Exception` never catches it.
    """

    def __init__(self, interrupts: Sequence[Any] = ()) -> None:
        super().__init__(interrupts)

    @property
    def interrupts(self) -> tuple[Any, ...]:
        """The questions that were asked."""
        return tuple(self.args[0])


class GraphDrained(GraphBubbleUp, Exception):  # noqa: N818 - LangGraph's name
    """The run stopped at a step boundary because a drain was requested; it is saved and can be continued."""

    def __init__(self, reason: str = "shutdown") -> None:
        super().__init__(f"Graph drained: {reason}")
        self.reason = reason


class ParentCommand(GraphBubbleUp, Exception):  # noqa: N818 - LangGraph's name
    """A node sent a `Command` to the parent graph; `args[0]` is the command."""
