"""Crons, which this server does not have: clients are told so in one way."""

from __future__ import annotations

from fastapi import APIRouter

from waitpoint.errors import NotFoundError
from waitpoint.server.langgraph.run_answers import REFUSALS

router = APIRouter(tags=["crons"], responses=REFUSALS)


@router.post("/runs/crons", status_code=404)
@router.post("/runs/crons/search", status_code=404)
@router.post("/runs/crons/count", status_code=404)
async def crons() -> None:
    """Refuse: there are no crons here."""
    raise _none()


@router.post("/threads/{thread_id}/runs/crons", status_code=404)
async def crons_of_thread(thread_id: str) -> None:  # noqa: ARG001 - named for the description
    """Refuse: there are no crons here."""
    raise _none()


def _none() -> NotFoundError:
    return NotFoundError(
        "This server runs nothing on a schedule (flags.crons is false); have a scheduler call POST /runs"
    )
