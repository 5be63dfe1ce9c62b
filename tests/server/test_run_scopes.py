"""What a caller's scopes let them do with runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.server.graphs import asking
from tests.server.serving import served
from waitpoint.server import create_app
from waitpoint.server.callers import Caller, caller_of

INPUT: dict[str, Any] = {"assistant_id": "asking", "input": {"log": []}}
ANSWER: dict[str, Any] = {"assistant_id": "asking", "command": {"resume": "yes"}}


@pytest.mark.parametrize(
    ("scopes", "may_run", "may_answer", "may_read"),
    [
        ({"run"}, True, False, False),
        ({"answer"}, False, True, False),
        ({"read"}, False, False, True),
        ({"admin"}, True, True, True),
        (set(), False, False, False),
    ],
)
async def test_each_scope_opens_its_own_doors(
    tmp_path: Path, scopes: set[str], may_run: bool, may_answer: bool, may_read: bool
) -> None:
    app = create_app({"asking": asking()}, tmp_path / "x.db")
    callers = {"now": Caller("root", frozenset({"admin"}))}
    app.dependency_overrides[caller_of] = lambda: callers["now"]
    async with served(app) as url, httpx.AsyncClient(base_url=url, timeout=30) as raw:
        thread = (await raw.post("/threads", json={})).json()["thread_id"]
        place = f"/threads/{thread}/runs"
        await raw.post(f"{place}/wait", json=INPUT)
        run = (await raw.get(place)).json()[0]["run_id"]
        callers["now"] = Caller("ana", frozenset(scopes))
        for path in (place, f"{place}/{run}", f"{place}/{run}/join", f"{place}/{run}/stream"):
            assert ((await raw.get(path)).status_code == 200) is may_read, path
        for method, path in (("POST", f"{place}/{run}/cancel"), ("POST", "/runs/cancel"), ("DELETE", f"{place}/{run}")):
            found = await raw.request(method, path, json={"status": "all"} if path == "/runs/cancel" else None)
            assert (found.status_code == 403) is not may_run, path
        for path in (f"{place}/stream", "/runs/wait", "/runs/stream", "/runs"):
            assert ((await raw.post(path, json={**INPUT, "on_pending": "withdraw"})).status_code == 403) is not may_run
        both = {**ANSWER, "command": {"resume": "yes", "goto": "plan"}}
        assert ((await raw.post(place, json=both)).status_code == 403) is not (may_run and may_answer)
        refused = await raw.post(place, json=ANSWER)
        assert (refused.status_code == 403) is not may_answer
        if not may_answer:
            assert "'answer'" in refused.json()["detail"]


async def test_the_author_of_an_answer_is_the_caller_whatever_the_payload_says(tmp_path: Path) -> None:
    app = create_app({"asking": asking()}, tmp_path / "x.db")
    app.dependency_overrides[caller_of] = lambda: Caller("ana")
    async with served(app) as url, httpx.AsyncClient(base_url=url, timeout=30) as raw:
        thread = (await raw.post("/threads", json={})).json()["thread_id"]
        place = f"/threads/{thread}/runs"
        asked = (await raw.post(f"{place}/wait", json=INPUT)).json()
        (question,) = asked["__interrupt__"]
        body = {"assistant_id": "asking", "command": {"resume": {question["id"]: {"by": "eve"}}, "by": "eve"}}
        assert (await raw.post(f"{place}/wait", json=body)).json()["log"] == ["plan", {"by": "eve"}, "act"]
        refused = await raw.post(place, json=body)
        assert refused.json()["answered_by"] == "ana"
        assert "by 'ana'" in refused.json()["detail"]
