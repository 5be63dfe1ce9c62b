"""What a question shows, typed: the payloads that clients know how to draw.

They check nothing. A payload of a type of your own is as good; a union with yours is `KnownRequest | MyRequest`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from typing_extensions import TypedDict

from waitpoint.protocol.tagged import Tagged

DecisionType = Literal["approve", "edit", "reject", "respond"]


class ApprovalRequest(TypedDict):
    """Whether something may be done. Answered by `ApprovalAnswer`."""

    type: Literal["approval"]
    question: str
    action: NotRequired[Any]
    details: NotRequired[Any]


class ReviewTextRequest(TypedDict):
    """A text to be read and changed. Answered by the text as it shall be."""

    type: Literal["review_text"]
    instruction: str
    content: str


class ToolApprovalRequest(TypedDict):
    """One tool call that waits for a decision. Answered by one `Decision`."""

    type: Literal["tool_approval"]
    tool_call_id: str
    name: str
    args: dict[str, Any]
    description: str


class FrontendToolRequest(TypedDict):
    """A tool that only the client can run. Answered by `FrontendToolAnswer`."""

    type: Literal["frontend_tool"]
    tool_call_id: str
    tool_name: str
    args: dict[str, Any]


class FormInputRequest(TypedDict):
    """One field of a form. Answered by its value."""

    type: Literal["form_input"]
    field: str
    prompt: str


class InDoubtRequest(TypedDict):
    """An effect of which it is not known whether it happened. Answered by `InDoubtAnswer`."""

    type: Literal["in_doubt"]
    kind: Literal["step", "tool"]
    name: str
    args: dict[str, Any]
    idempotency_key: str
    started_at: str


class ActionRequest(TypedDict):
    """One of the tool calls that a batched question asks about."""

    name: str
    args: dict[str, Any]
    description: NotRequired[str]


class ReviewConfig(TypedDict):
    """Which decisions a tool call of a batched question may get."""

    action_name: str
    allowed_decisions: list[DecisionType]


class HITLRequest(TypedDict):
    """All tool calls of one turn that wait for a decision. Answered by `HITLResponse`, a decision for each, in order."""

    action_requests: list[ActionRequest]
    review_configs: list[ReviewConfig]


TypedRequest = Annotated[
    ApprovalRequest | ReviewTextRequest | ToolApprovalRequest | FrontendToolRequest | FormInputRequest | InDoubtRequest,
    Tagged("type"),
]
"""The payloads that bear a `type`, told apart by it."""

KnownRequest = TypedRequest | HITLRequest
