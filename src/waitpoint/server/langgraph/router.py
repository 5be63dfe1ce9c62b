"""All routes of the protocol."""

from fastapi import APIRouter

from waitpoint.server.langgraph import runs, stateless, system, threads

router = APIRouter()
for part in (system, threads, runs, stateless):
    router.include_router(part.router)
