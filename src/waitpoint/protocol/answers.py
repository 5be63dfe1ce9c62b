"""What people and clients answer, typed. Any of these can be the `response_schema` of a question."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from typing_extensions import TypedDict

from waitpoint.protocol.tagged import Tagged


class Action(TypedDict):
    """A tool call as it shall run."""

    name: str
    args: dict[str, Any]


class ApproveDecision(TypedDict):
    """Run the call as it was proposed."""

    type: Literal["approve"]
    tool_call_id: NotRequired[str]


class EditDecision(TypedDict):
    """Run this call instead."""

    type: Literal["edit"]
    edited_action: Action
    tool_call_id: NotRequired[str]


class RejectDecision(TypedDict):
    """Do not run the call; `message` tells the model why."""

    type: Literal["reject"]
    message: NotRequired[str]
    tool_call_id: NotRequired[str]


class RespondDecision(TypedDict):
    """Do not run the call; `message` is its result, and the model takes it for a success."""

    type: Literal["respond"]
    message: str
    tool_call_id: NotRequired[str]


Decision = Annotated[ApproveDecision | EditDecision | RejectDecision | RespondDecision, Tagged("type")]


class HITLResponse(TypedDict):
    """A decision for each tool call of a batched question, in its order; those with a `tool_call_id` in any order."""

    decisions: list[Decision]


class ApprovalVerdict(TypedDict):
    """A yes or no in words; it may say more under keys of its own."""

    action: Literal["approve", "reject"]


ApprovalAnswer = bool | ApprovalVerdict

ReviewTextAnswer = str


class FrontendToolAnswer(TypedDict):
    """What a tool gave that the client ran."""

    tool_call_id: str
    tool_result: Any


FormInputAnswer = str | int | float | bool | None


class HappenedAnswer(TypedDict):
    """The effect took place; `result` is what it gave."""

    type: Literal["happened"]
    result: NotRequired[Any]


class NotHappenedAnswer(TypedDict):
    """The effect did not take place, so it is run."""

    type: Literal["not_happened"]


class RunAgainAnswer(TypedDict):
    """Run the effect again, whether or not it took place."""

    type: Literal["run_again"]


class StopAnswer(TypedDict):
    """Run nothing; the task fails, and the question can be answered anew."""

    type: Literal["stop"]


InDoubtAnswer = Annotated[HappenedAnswer | NotHappenedAnswer | RunAgainAnswer | StopAnswer, Tagged("type")]
