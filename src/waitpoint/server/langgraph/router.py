"""All routes of the protocol."""

from fastapi import APIRouter

from waitpoint.server.langgraph import runs, system, threads

router = APIRouter()
for part in (system, threads, runs):
    router.include_router(part.router)
