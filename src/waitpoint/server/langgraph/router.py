"""All routes of the protocol."""

from fastapi import APIRouter

from waitpoint.server.langgraph import assistants, crons, runs, state, stateless, store, system, threads

router = APIRouter()
for part in (system, assistants, threads, state, crons, runs, stateless, store):
    router.include_router(part.router)
