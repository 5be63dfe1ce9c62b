"""Who may call: keys, tokens, a hook, the pages' cookie; every route of the application asks, in one place."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from joserfc import jwt
from joserfc.jwk import RSAKey
from langgraph_sdk import get_client
from starlette.requests import HTTPConnection

from tests.server.graphs import asking
from tests.server.serving import served
from waitpoint import clock
from waitpoint.ledger.sqlite import SqliteLedger
from waitpoint.server import Caller, Security, Tokens, create_app
from waitpoint.server.auth import keys
from waitpoint.server.callers import SCOPES

OPEN = ("/ok", "/info", "/health", "/inbox/sign-in", "/inbox/static/")


def key(path: Path, *scopes: str, name: str = "ana") -> str:
    """Make a key in a database."""
    with SqliteLedger(path) as ledger:
        return keys.create(ledger, name, list(scopes))[1]


def routes(app: FastAPI) -> list[tuple[str, str]]:
    """Return every method and path of an application, with something in place of each parameter."""
    import re

    found: list[tuple[str, str]] = []

    def walk(items: Any) -> None:
        for route in items:
            if getattr(route, "methods", None):
                found.extend(
                    (method, re.sub(r"\{[^}]+\}", "x", route.path)) for method in sorted(route.methods - {"HEAD"})
                )
            inner = getattr(route, "original_router", None) or getattr(route, "app", None)
            if getattr(inner, "routes", None):
                walk(inner.routes)

    walk(app.routes)
    return found


@contextlib.asynccontextmanager
async def raw(path: Path, **options: Any) -> AsyncGenerator[httpx.AsyncClient]:
    app = create_app({"asking": asking()}, path, **options)
    async with served(app) as url, httpx.AsyncClient(base_url=url) as http:
        yield http


async def test_once_there_is_a_key_no_route_is_reached_without_one(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    key(path, "read")
    app = create_app({"asking": asking()}, path)
    described = {
        (method.upper(), place.replace("{", "").replace("}", ""))
        for place, methods in app.openapi()["paths"].items()
        for method in methods
    }
    wanted = sorted(set(routes(app)) | described)
    assert len(wanted) > 40
    async with served(app) as url, httpx.AsyncClient(base_url=url) as http:
        for method, place in wanted:
            if place.startswith(OPEN):
                continue
            for headers in ({}, {"x-api-key": "wp_wrong"}, {"x-api-key": ""}, {"Authorization": "Bearer a.b.c"}):
                answer = await http.request(method, place, headers=headers, json={})
                is_page = place.startswith("/inbox")
                assert answer.status_code in ((401, 303) if is_page else (401,)), (method, place, headers)


async def test_each_scope_opens_its_own_routes_only(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    made = {scope: key(path, scope, name=scope) for scope in SCOPES}
    wanted = [
        ("POST", "/threads", {}, "run"),
        ("POST", "/threads/search", {}, "read"),
        ("GET", "/threads/x/state", None, "read"),
        ("DELETE", "/threads/x", None, "admin"),
        ("POST", "/threads/prune", {"thread_ids": []}, "admin"),
        ("POST", "/threads/x/runs", {"assistant_id": "asking", "input": {}}, "run"),
        ("POST", "/threads/x/runs", {"assistant_id": "asking", "command": {"resume": 1}}, "answer"),
        ("POST", "/assistants", {"graph_id": "asking"}, "admin"),
        ("PUT", "/store/items", {"namespace": ["a"], "key": "k", "value": {}}, "run"),
    ]
    async with raw(path) as http:
        for method, place, body, needed in wanted:
            for scope, value in made.items():
                answer = await http.request(method, place, json=body, headers={"x-api-key": value})
                if scope in (needed, "admin"):
                    assert answer.status_code not in (401, 403), (place, scope, answer.text)
                else:
                    assert answer.status_code == 403, (place, scope, answer.text)
                    assert f"scope '{needed}'" in answer.json()["detail"]


async def test_the_author_of_an_answer_is_who_called(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    both = key(path, "run", "read", "answer", name="ana")
    async with raw(path) as http, get_client(url=str(http.base_url), api_key=both) as client:
        thread = (await client.threads.create())["thread_id"]
        asked = await client.runs.wait(thread, "asking", input={"log": []})
        (question,) = asked["__interrupt__"]
        command = {"resume": {question["id"]: {"by": "mallory", "answer": "yes"}}}
        await client.runs.wait(thread, "asking", command=command)
        answer = await http.post(
            f"/threads/{thread}/runs", json={"assistant_id": "asking", "command": command}, headers={"x-api-key": both}
        )
    assert answer.status_code == 409
    assert answer.json()["answered_by"] == "ana"


async def test_a_revoked_key_and_its_cookie_open_nothing(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    value = key(path, "read")
    other = key(path, "read", name="bob")
    with SqliteLedger(path) as ledger:
        rows = {row.name: row for row in ledger.api_keys()}
        ledger.revoke_key(rows["ana"].id, clock.now())
    async with raw(path) as http:
        assert (await http.post("/threads/search", json={}, headers={"x-api-key": value})).status_code == 401
        assert (await http.post("/threads/search", json={}, headers={"x-api-key": other})).status_code == 200
        http.cookies.set("waitpoint_session", f"{rows['ana'].id}.9999999999.0")
        assert (await http.get("/inbox")).status_code == 303


async def test_all_keys_revoked_does_not_open_the_server(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    key(path, "admin")
    with SqliteLedger(path) as ledger:
        ledger.revoke_key(ledger.api_keys()[0].id, clock.now())
    async with raw(path) as http:
        assert (await http.post("/threads/search", json={})).status_code == 401


async def test_the_pages_are_signed_in_to_with_a_key_and_signed_out_of(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    value = key(path, "read", "answer")
    async with raw(path) as http:
        first = await http.get("/inbox")
        assert (first.status_code, first.headers["location"][:14]) == (303, "/inbox/sign-in")
        page = await http.get("/inbox/sign-in")
        token = page.text.partition('name="csrf" value="')[2].partition('"')[0]
        wrong = await http.post("/inbox/sign-in", data={"csrf": token, "key": "wp_wrong"})
        assert "waitpoint_session" not in wrong.cookies
        done = await http.post("/inbox/sign-in", data={"csrf": token, "key": value})
        assert done.status_code == 303
        cookie = done.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=lax" in cookie
        assert value.lower() not in cookie
        assert (await http.get("/inbox")).status_code == 200
        # The cookie is worth something on the pages only, so no page elsewhere can use it on the API.
        assert (await http.post("/threads/search", json={})).status_code == 401


async def test_tokens_of_a_provider_are_taken_if_all_of_it_holds(tmp_path: Path) -> None:
    private = RSAKey.generate_key(2048, {"kid": "k1"})
    stranger = RSAKey.generate_key(2048, {"kid": "k1"})
    tokens = Tokens({"keys": [private.as_dict(private=False)]}, "https://id.example", "waitpoint")
    good = {
        "iss": "https://id.example",
        "aud": "waitpoint",
        "sub": "eve",
        "scope": "read other",
        "exp": int(time.time()) + 60,
    }

    def made(claims: dict[str, Any], signer: RSAKey = private, alg: str = "RS256") -> str:
        return jwt.encode({"alg": alg, "kid": "k1"}, claims, signer)

    bad = [
        made({**good, "exp": int(time.time()) - 3600}),
        made({k: v for k, v in good.items() if k != "exp"}),
        made({**good, "aud": "someone else"}),
        made({**good, "iss": "https://evil.example"}),
        made({k: v for k, v in good.items() if k != "sub"}),
        made(good, stranger),
        made(good)[:-4] + "AAAA",
        "e30.e30.",
    ]
    async with raw(tmp_path / "threads.db", security=Security(tokens=tokens)) as http:

        async def status(token: str, path: str = "/threads/search") -> int:
            return (await http.post(path, json={}, headers={"Authorization": f"Bearer {token}"})).status_code

        assert await status(made(good)) == 200
        assert await status(made(good), "/threads") == 403
        assert [await status(each) for each in bad] == [401] * len(bad)


async def test_a_hook_of_ones_own_decides_first(tmp_path: Path) -> None:
    async def who(connection: HTTPConnection) -> Caller | None:
        return Caller("root", frozenset({"read"})) if connection.headers.get("x-who") == "root" else None

    async with raw(tmp_path / "threads.db", security=Security(authenticate=who)) as http:
        assert (await http.post("/threads/search", json={}, headers={"x-who": "root"})).status_code == 200
        assert (await http.post("/threads/search", json={})).status_code == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "evil.example"}, 403),
        ({"Host": "localhost:2024"}, 200),
        ({"Host": "localhost.evil.example"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "http://localhost:3000"}, 200),
        ({"Origin": "null"}, 403),
        ({"Origin": "https://desk.example"}, 200),
    ],
)
async def test_without_keys_only_this_machine_calls_by_its_own_name(
    tmp_path: Path, headers: dict[str, str], status: int
) -> None:
    security = Security(cors_origins=["https://desk.example"])
    async with raw(tmp_path / "threads.db", security=security) as http:
        assert (await http.post("/threads/search", json={}, headers=headers)).status_code == status


async def test_pages_of_other_origins_learn_where_their_run_is(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    value = key(path, "run")
    asked = {"Origin": "https://chat.example", "Access-Control-Request-Method": "POST"}
    asked["Access-Control-Request-Headers"] = "x-api-key,content-type,last-event-id"
    async with raw(path) as http:
        answer = await http.options("/threads", headers=asked)
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] in ("*", "https://chat.example")
        assert "x-api-key" in answer.headers["access-control-allow-headers"]
        made = await http.post("/threads", json={}, headers={"Origin": "https://chat.example", "x-api-key": value})
        exposed = made.headers["access-control-expose-headers"]
        assert {"Content-Location", "Location", "X-Pagination-Total"} <= set(exposed.split(", "))
        assert "access-control-allow-credentials" not in made.headers


async def test_too_large_and_too_many_are_refused(tmp_path: Path) -> None:
    async def pieces() -> AsyncGenerator[bytes]:
        yield b'{"metadata": {"a": "'
        for _ in range(40):
            yield b"x" * 100
        yield b'"}}'

    path = tmp_path / "threads.db"
    value = {"x-api-key": key(path, "run")}
    async with raw(path, security=Security(max_body=2000, requests_a_minute=5)) as http:
        assert (await http.post("/threads", json={"metadata": {"a": "x" * 3000}}, headers=value)).status_code == 413
        assert (await http.post("/threads", content=pieces(), headers=value)).status_code == 413
        answers = [await http.post("/threads", json={}, headers=value) for _ in range(6)]
        assert [a.status_code for a in answers].count(429) >= 1
        assert int(answers[-1].headers["retry-after"]) >= 1


async def test_no_key_and_no_answer_is_written_to_logs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "threads.db"
    value = key(path, "run", "answer", "read")
    caplog.set_level("DEBUG", "waitpoint")
    async with raw(path) as http, get_client(url=str(http.base_url), api_key=value) as client:
        thread = (await client.threads.create())["thread_id"]
        await client.runs.wait(thread, "asking", input={"log": []})
        await client.runs.wait(thread, "asking", command={"resume": "top-secret-answer"})
        await http.get("/threads/x", headers={"x-api-key": "wp_some-wrong-key"})
    assert caplog.records
    for secret in (value, "top-secret-answer", "wp_some-wrong-key"):
        assert secret not in caplog.text
