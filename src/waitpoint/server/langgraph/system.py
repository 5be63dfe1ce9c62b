"""What the server is, and whether it is there."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from waitpoint.version import __version__

router = APIRouter(tags=["system"])


@router.get("/info")
async def info() -> dict[str, Any]:
    """Tell the version and what the server can do."""
    return {
        "version": __version__,
        "langgraph_py_version": "1.2.0",
        "flags": {"assistants": True, "crons": False, "langsmith": False, "strict_resume": True},
        "host": {
            "kind": "self-hosted",
            "project_id": None,
            "host_revision_id": None,
            "revision_id": None,
            "tenant_id": None,
        },
    }


@router.get("/ok")
async def ok() -> dict[str, bool]:
    """Tell that the server answers."""
    return {"ok": True}
