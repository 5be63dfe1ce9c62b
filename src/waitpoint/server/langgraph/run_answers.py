"""What the routes of runs answer with, for the description of the API."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from waitpoint.ledger.base import RunStatus


class Refusal(BaseModel):
    """Why a request was refused, in one sentence; `code` is stable."""

    model_config = ConfigDict(extra="allow")

    detail: str
    code: str | None = None


class RunAnswer(BaseModel):
    """A run. With `select` it has only the keys asked for."""

    model_config = ConfigDict(extra="allow")

    run_id: str | None = None
    thread_id: str | None = None
    assistant_id: str | None = None
    status: RunStatus | None = None
    metadata: dict[str, Any] | None = None
    kwargs: dict[str, Any] | None = None
    multitask_strategy: str | None = None
    created_at: str | None = None
    updated_at: str | None = None


REFUSALS: dict[int | str, dict[str, Any]] = {
    code: {"model": Refusal, "description": text}
    for code, text in {
        400: "The request is malformed.",
        401: "No valid key.",
        403: "The key lacks a scope.",
        404: "There is no such thread, run or assistant.",
        409: "Someone was first, or the thread is not in the state that this needs.",
        413: "The body is too large.",
        422: "The request does not fit.",
        429: "Too many requests.",
        503: "The store cannot be reached.",
    }.items()
}

EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events, the last of which is `end`; each has the id by which to go on after a cut.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}

VALUES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The values of the thread at the run's end. If it asks something they have `__interrupt__`; if it "
        "failed there is `__error__` instead. Line ends may come before.",
        "content": {"application/json": {"schema": {}}},
    }
}
