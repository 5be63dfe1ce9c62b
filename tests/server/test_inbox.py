"""The pages by their addresses: what they show, what they refuse, and that only a form of theirs decides."""

from __future__ import annotations

import asyncio
import contextlib
import html
import re
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Request, Response
from langgraph_sdk import get_client

from tests.browser import desk
from tests.server.serving import served
from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.engine import answers
from waitpoint.graph import START, StateGraph
from waitpoint.hosting.host import Host
from waitpoint.inbox import Doors, router_of
from waitpoint.ledger.sqlite import SqliteLedger
from waitpoint.server import Security, create_app, errors
from waitpoint.server.callers import Caller
from waitpoint.server.refusals import UnauthorizedError
from waitpoint.types import interrupt

READS = Caller("rea", frozenset({"read"}))
ANA = Caller("ana", frozenset({"read", "answer"}))


class Desk:
    """A served graph, and a browser without script."""

    def __init__(self, url: str, http: httpx.AsyncClient, path: Path) -> None:
        self.url, self.http, self.path = url, http, path

    async def asked(self, *asks: Any, thread: str | None = None) -> str:
        return await desk.asked(self.url, *asks, thread=thread)

    async def log(self, thread: str) -> Any:
        return await desk.log_of(self.url, thread)

    def ids(self, thread: str | None = None) -> list[str]:
        saver = SqliteSaver(self.path)
        found = [question.id for question in saver.pending(thread_id=thread)]
        saver.close()
        return found

    async def card(self, question: str, query: str = "") -> httpx.Response:
        return await self.http.get(f"/inbox/questions/{question}{query}")

    async def send(self, page: httpx.Response, **given: str) -> httpx.Response:
        """Post what a page's form has hidden, and what a person adds."""
        match = re.search(r"/inbox/questions/([0-9a-f]{32})", str(page.url))
        assert match is not None
        return await self.http.post(match.group(), data={**hidden(page), **given})


def hidden(page: httpx.Response) -> dict[str, str]:
    found = re.findall(r'<input type="hidden" name="(csrf|digest|token|unfolded)" value="([^"]*)">', page.text)
    return {name: html.unescape(value) for name, value in reversed(found)}


@contextlib.asynccontextmanager
async def open_desk(path: Path, caller: Caller | None = None) -> AsyncGenerator[Desk]:
    app = create_app({"assistant": desk.asking()}, path, security=None if caller is None else signed_in(caller))
    async with served(app) as url, httpx.AsyncClient(base_url=url) as http:
        yield Desk(url, http, path)


def signed_in(caller: Caller) -> Security:
    """Take whoever calls the pages for this one."""
    return Security(authenticate=lambda request: caller if request.url.path.startswith("/inbox") else Caller())


@pytest.fixture
async def at(tmp_path: Path) -> AsyncGenerator[Desk]:
    async with open_desk(tmp_path / "threads.db") as made:
        yield made


# --- what is shown ----------------------------------------------------------------------------------------------------


async def test_the_list_is_a_view_of_the_store_over_all_threads(at: Desk) -> None:
    first = await at.asked(desk.send_mail(), thread="first")
    await at.asked(desk.plain({"question": "Second?"}), thread="second")
    page = (await at.http.get("/inbox")).text
    assert "assistant wants to call send_mail(to: “ana@example.com, finance@example.com”, 4 more)" in page
    assert page.index("Second?") < page.index("send_mail(")  # newest first
    oldest = (await at.http.get("/inbox?order=oldest")).text
    assert oldest.index("send_mail(") < oldest.index("Second?")
    (question,) = at.ids(first)
    answered = await at.send(await at.card(question), way="approve")
    assert answered.status_code == 303
    page = (await at.http.get("/inbox")).text
    assert page.index("Second?") < page.index("Done lately") < page.index("send_mail(")
    assert "approved" in page


async def test_filters_leave_what_fits_and_say_how_much_there_is(at: Desk) -> None:
    await at.asked(desk.send_mail(), desk.plain(desk.DOUBT), desk.plain({"question": "Which colour?"}))
    tool = (await at.http.get("/inbox/list?tool=send_mail")).text
    assert "send_mail(" in tool
    assert "Which colour?" not in tool
    text = (await at.http.get("/inbox/list?text=COLOUR")).text
    assert "Which colour?" in text
    assert "send_mail(" not in text
    none = (await at.http.get("/inbox/list?graph=other")).text
    assert "Show all 3" in none


@pytest.mark.parametrize(
    "payload", ["Go?", 7, ["a", 1], {"a": {"b": [1]}}, None, "x" * 50_000, "<script>alert(1)</script>"]
)
async def test_every_payload_is_shown_whole_with_a_way_to_answer(at: Desk, payload: Any) -> None:
    thread = await at.asked(desk.plain(payload))
    (question,) = at.ids(thread)
    page = await at.card(question)
    assert page.status_code == 200
    assert "<script>alert" not in page.text
    if isinstance(payload, str):
        assert html.escape(payload) in page.text
    sent = await at.send(page, way="json", **{"1.json": '{"ok": [true, null]}'})
    assert sent.status_code == 303
    assert await at.log(thread) == [{"ok": [True, None]}]


async def test_secrets_are_veiled_on_every_page_and_the_call_runs_with_them(at: Desk) -> None:
    args = {"url": "https://x.example", "api_key": "sk-live-0123456789", "note": "use sk-live-0123456789"}
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in args}, "required": list(args)}
    thread = await at.asked(desk.tool("fetch", args, schema, description="With sk-live-0123456789"))
    (question,) = at.ids(thread)
    page = await at.card(question)
    pages = [
        page, await at.http.get("/inbox"), await at.http.get(f"/inbox/thread?id={thread}"),
        await at.http.get(f"/inbox/questions/{question}/payload"),
    ]  # fmt: skip
    assert all(each.status_code == 200 for each in pages)
    assert not any("sk-live-0123456789" in each.text for each in pages)
    assert "18 characters, sha256" in page.text
    # The form bears veils too; what was not changed comes back as it was.
    fields = dict(re.findall(r'<textarea[^>]* name="([^"]+)"[^>]*>\n([^<]*)</textarea>', page.text))
    edit = {name: html.unescape(value) for name, value in fields.items() if name.startswith("1.edit/")}
    edit["1.edit/url"] = "https://y.example"
    preview = await at.send(page, way="edit", **edit)
    confirm = re.search(r'name="confirm" value="([^"]+)"', preview.text)
    assert confirm is not None
    done = await at.send(preview, way="edit", confirm=confirm[1], **edit)
    assert done.status_code == 303
    [decision] = await at.log(thread)
    assert decision["edited_action"]["args"] == {**args, "url": "https://y.example"}


async def test_a_thread_of_a_graph_that_is_not_served_is_shown_and_answered(at: Desk) -> None:
    saver = SqliteSaver(at.path)
    graph = StateGraph(dict).add_node("ask", lambda state: {"x": interrupt("From elsewhere?")})
    foreign = graph.add_edge(START, "ask").compile(checkpointer=saver, name="elsewhere")
    foreign.invoke({"x": 1}, {"configurable": {"thread_id": "t-foreign"}})
    page = await at.http.get("/inbox/thread?id=t-foreign")
    assert "which is not served here" in page.text
    assert "From elsewhere?" in page.text
    (question,) = at.ids("t-foreign")
    card = await at.card(question)
    assert "the thread goes on when its own program runs it" in card.text
    assert (await at.send(card, way="text", **{"1.text": "yes"})).status_code == 303
    row = saver.threads(thread_id="t-foreign")[0]
    assert row.status == "ready"
    saver.close()


async def test_a_thread_tells_question_answer_who_and_when(tmp_path: Path) -> None:
    async with open_desk(tmp_path / "threads.db", ANA) as at:
        thread = await at.asked(desk.plain({"question": "Ship it?"}))
        (question,) = at.ids(thread)
        await at.send(await at.card(question), way="text", **{"1.text": "on Monday"})
        await at.log(thread)
        page = (await at.http.get(f"/inbox/thread?id={thread}")).text
        assert "Ship it?" in page
        assert "by <b>ana</b>" in page
        assert "on Monday" in page
        first = re.findall(r'&amp;checkpoint=([^"#]+)', page)[-1]
        old = await at.http.get(f"/inbox/thread?id={thread}&checkpoint={first}")
        assert "step -1" in old.text


async def test_what_is_not_there_is_a_page_that_says_so(at: Desk) -> None:
    for address in ("/inbox/questions/0", f"/inbox/questions/{'0' * 32}", "/inbox/thread?id=none", "/inbox/thread"):
        page = await at.http.get(address)
        assert page.status_code == 404
        assert "Back to the inbox" in page.text
    assert (await at.http.get("/inbox/static/x/%2e%2e%2fpages.py")).status_code == 404
    assert (await at.http.get("/inbox/static/x/inbox.css")).headers["content-type"].startswith("text/css")


# --- deciding ---------------------------------------------------------------------------------------------------------


async def test_each_answer_names_who_is_signed_in_whatever_the_form_says(tmp_path: Path) -> None:
    async with open_desk(tmp_path / "threads.db", ANA) as at:
        thread = await at.asked(desk.send_mail())
        (question,) = at.ids(thread)
        await at.send(await at.card(question), way="approve", by="the boss")
        assert "by <b>ana</b>" in (await at.card(question)).text


async def test_who_may_only_read_cannot_answer(tmp_path: Path) -> None:
    async with open_desk(tmp_path / "threads.db", READS) as at:
        thread = await at.asked(desk.send_mail())
        (question,) = at.ids(thread)
        page = await at.card(question)
        assert "it lacks the scope <code>answer</code>" in page.text
        assert "Approve" not in page.text
        refused = await at.send(page, way="approve", csrf=at.http.cookies["waitpoint_form"])
        assert refused.status_code == 403
        assert at.ids(thread) == [question]


@pytest.mark.parametrize(
    "change",
    [
        {"csrf": ""}, {"csrf": "x" * 43}, {"headers": {"origin": "https://evil.example"}},
        {"headers": {"sec-fetch-site": "cross-site"}}, {"headers": {"origin": "null"}},
    ],
)  # fmt: skip
async def test_a_form_from_elsewhere_decides_nothing(at: Desk, change: dict[str, Any]) -> None:
    thread = await at.asked(desk.send_mail())
    (question,) = at.ids(thread)
    data = hidden(await at.card(question)) | {"way": "approve"}
    if "csrf" in change:
        data["csrf"] = change["csrf"]
    refused = await at.http.post(f"/inbox/questions/{question}", data=data, headers=change.get("headers"))
    assert refused.status_code == 403
    assert at.ids(thread) == [question]


async def test_get_never_decides_and_pages_cannot_be_framed(at: Desk) -> None:
    thread = await at.asked(desk.send_mail())
    (question,) = at.ids(thread)
    data = hidden(await at.card(question))
    page = await at.http.get(f"/inbox/questions/{question}", params={**data, "way": "approve"})
    assert page.status_code == 200
    assert at.ids(thread) == [question]
    for each in (page, await at.http.get("/inbox"), await at.http.get("/inbox/thread?id=x")):
        assert each.headers["x-frame-options"] == "DENY"
        policy = each.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in policy
        assert "unsafe-inline" not in policy
        assert not re.search(r"<script(?![^>]* src=)|\son[a-z]+=|<style|\sstyle=", each.text)


async def test_two_clicks_are_one_answer_and_a_later_one_is_told_who_was_first(tmp_path: Path) -> None:
    async with open_desk(tmp_path / "threads.db", ANA) as at:
        thread = await at.asked(desk.send_mail())
        (question,) = at.ids(thread)
        page, other = await at.card(question), await at.card(question)
        both = await asyncio.gather(at.send(page, way="approve"), at.send(page, way="approve"))
        assert [each.status_code for each in both] == [303, 303]
        late = await at.send(other, way="reject", **{"1.reject": "I typed this"})
        assert late.status_code == 409
        assert "Your answer was not taken" in late.text
        assert "by <b>ana</b>" in late.text
        assert "I typed this" in late.text
        assert await at.log(thread) == [{"type": "approve"}]


async def test_an_answer_counts_for_what_was_shown_only(at: Desk) -> None:
    thread = await at.asked(desk.send_mail())
    (mail,) = at.ids(thread)
    (other,) = at.ids(await at.asked(desk.plain({"question": "Other?"})))
    page = await at.card(mail)
    foreign = hidden(await at.card(other))["digest"]
    assert (await at.send(page, way="approve", digest=foreign)).status_code == 409
    assert (
        await at.http.post(f"/inbox/questions/{mail}", data={"csrf": hidden(page)["csrf"], "way": "approve"})
    ).status_code == 409
    assert mail in at.ids(thread)


@pytest.mark.parametrize("way", ["respond", "edit", "run_again", "", "nonsense"])
async def test_only_what_the_question_allows_can_be_sent(at: Desk, way: str) -> None:
    thread = await at.asked(desk.tool("drop", {"path": "x"}, desk.PATH, ("approve", "reject")))
    (question,) = at.ids(thread)
    refused = await at.send(await at.card(question), way=way, **{"1.respond": "x", "1.edit/path": "y"})
    assert refused.status_code == 422
    assert at.ids(thread) == [question]


async def test_what_hides_has_to_be_unfolded_before_it_is_approved(at: Desk) -> None:
    thread = await at.asked(desk.tool("pay", {"to": "p\u0430ypal\u202e", "\u200bkey": "1"}, {"type": "object"}))
    (question,) = at.ids(thread)
    page = await at.card(question)
    assert "3 characters here hide" in page.text
    assert "\u202e" not in page.text
    assert (await at.send(page, way="approve")).status_code == 422
    unfolded = await at.card(question, "?unfolded=1")
    for name in ("U+0430 CYRILLIC SMALL LETTER A", "U+202E RIGHT-TO-LEFT OVERRIDE", "U+200B ZERO WIDTH SPACE"):
        assert name in unfolded.text
    assert (await at.send(unfolded, way="approve")).status_code == 303


async def test_misfits_are_told_at_their_fields_and_nothing_typed_is_lost(at: Desk) -> None:
    thread = await at.asked(desk.plain({"question": "Trip?"}, desk.TRIP))
    (question,) = at.ids(thread)
    page = await at.card(question)
    given = {"1.answer/city": "Ü", "1.answer/nights": "40", "1.answer/room": '"double"', "1.answer/breakfast": "true"}
    wrong = await at.send(page, way="answer", **given)
    assert wrong.status_code == 422
    assert re.search(r'name="1.answer/nights" value="40"[^>]* aria-invalid="true"', wrong.text)
    errors = re.findall(r'<p class="error" id="f-([^"]+)-error">([^<]+)</p>', wrong.text)
    assert dict(errors) == {
        "1_2e_answer_2f_city": "the answer is shorter than 2 characters",
        "1_2e_answer_2f_nights": "the answer is greater than the maximum of 14",
    }
    assert "\nÜ</textarea>" in wrong.text
    assert at.ids(thread) == [question]
    right = await at.send(wrong, way="answer", **(given | {"1.answer/city": "Ulm", "1.answer/nights": "3"}))
    assert right.status_code == 303
    assert await at.log(thread) == [{"city": "Ulm", "nights": 3, "breakfast": True, "room": "double"}]


async def test_the_next_page_is_never_one_of_another_server(at: Desk) -> None:
    thread = await at.asked(desk.send_mail())
    (question,) = at.ids(thread)
    data = hidden(await at.card(question)) | {"way": "approve"}
    address = f"/inbox/questions/{question}?then=//evil.example&next=https://evil.example"
    sent = await at.http.post(address, data=data)
    assert sent.status_code == 303
    assert sent.headers["location"].startswith(f"/inbox/questions/{question}?")
    page = await at.http.get(sent.headers["location"])
    assert 'href="//evil.example' not in page.text
    assert 'href="https://evil.example' not in page.text


async def test_open_pages_hear_of_what_another_process_changes(at: Desk) -> None:
    thread = await at.asked(desk.send_mail(), desk.plain({"question": "Other?"}))
    saver = SqliteSaver(at.path)
    async with at.http.stream("GET", "/inbox/live") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert [line async for line in first_changes(stream, saver, thread)] == [
            'data: {"waiting": 2}',
            'data: {"waiting": 1}',
        ]
    saver.close()


async def first_changes(stream: httpx.Response, saver: SqliteSaver, thread: str) -> AsyncGenerator[str]:
    """Yield what is told at first, and what is told after a question was withdrawn elsewhere."""
    count = 0
    async for line in stream.aiter_lines():
        if not line.startswith("data:") or (count and '"waiting": 2' in line):
            continue
        yield line
        count += 1
        if count == 2:
            return
        (question, *_) = saver.pending(thread_id=thread)
        answers.withdraw(saver, question.id, "no longer needed", "bo")


async def test_an_answer_on_which_its_step_failed_can_be_given_again_and_says_so(tmp_path: Path) -> None:
    def pick(state: dict[str, Any]) -> dict[str, Any]:
        return {"n": int(interrupt("Which number?"))}

    graph = StateGraph(dict).add_node("pick", pick).add_edge(START, "pick").compile(name="picks")
    app = create_app({"assistant": graph}, tmp_path / "threads.db", security=signed_in(ANA))
    async with served(app) as url, httpx.AsyncClient(base_url=url) as http, get_client(url=url) as client:
        at = Desk(url, http, tmp_path / "threads.db")
        thread = (await client.threads.create())["thread_id"]
        await client.runs.wait(thread, "assistant", input={"n": 0})
        (question,) = at.ids(thread)
        await at.send(await at.card(question), way="text", **{"1.text": "many"})
        runs = await client.runs.list(thread)
        with contextlib.suppress(Exception):
            await client.runs.join(thread, runs[0]["run_id"])
        page = await at.card(question)
        assert "It was answered before" in page.text
        assert "by <b>ana</b>" in page.text
        assert "many" in page.text
        assert (await at.send(page, way="text", **{"1.text": "7"})).status_code == 303
        runs = await client.runs.list(thread)
        assert (await client.runs.join(thread, runs[0]["run_id"]))["n"] == 7


# --- signing in -------------------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def locked(path: Path) -> AsyncGenerator[httpx.AsyncClient]:
    """Serve pages that want a key, with the least that a server has to give them for that."""
    host = Host({"assistant": desk.asking()}, SqliteSaver(path), SqliteLedger(path))

    async def caller(request: Request) -> Caller:
        if request.cookies.get("who") != "ana":
            raise UnauthorizedError("A key is needed")
        return ANA

    async def sign_in(request: Request, key: str) -> Callable[[Response], None] | None:
        return (lambda response: response.set_cookie("who", "ana")) if key == "right" else None

    def sign_out(request: Request, response: Response) -> None:
        response.delete_cookie("who")

    app = FastAPI()
    app.include_router(router_of(Doors(lambda _: host, caller, errors.status_of, sign_in, sign_out)))
    async with served(app) as url, httpx.AsyncClient(base_url=url) as http:
        yield http


async def test_who_is_unknown_is_sent_to_sign_in_and_comes_back_where_they_wanted_to_go(tmp_path: Path) -> None:
    async with locked(tmp_path / "threads.db") as http:
        away = await http.get("/inbox?text=a b")
        assert away.status_code == 303
        page = await http.get(away.headers["location"])
        assert (await http.post("/inbox/sign-in", data={"key": "right"})).status_code == 403
        form = {**hidden(page), "next": html.unescape(re.findall(r'name="next" value="([^"]*)"', page.text)[0])}
        wrong = await http.post("/inbox/sign-in", data={**form, "key": "wrong"})
        assert wrong.status_code == 401
        assert "This key is not valid" in wrong.text
        right = await http.post("/inbox/sign-in", data={**form, "key": "right"})
        assert right.status_code == 303
        assert right.headers["location"] == "/inbox?text=a%20b"
        inside = await http.get("/inbox")
        assert "Sign out" in inside.text
        out = await http.post("/inbox/sign-out", data=hidden(inside))
        assert out.headers["location"] == "/inbox/sign-in"
        assert (await http.get("/inbox")).status_code == 303


@pytest.mark.parametrize(
    "there",
    [
        "https://evil.example", "//evil.example/inbox", "/\\evil.example", "/inbox/../x", "/inboxes", "javascript:alert(1)",
        "/\t/evil.example", "http:/inbox", "\u2028/inbox", "/inbox@evil.example",
    ],
)  # fmt: skip
async def test_signing_in_leads_to_no_other_server(tmp_path: Path, there: str) -> None:
    async with locked(tmp_path / "threads.db") as http:
        page = await http.get("/inbox/sign-in", params={"next": there})
        assert 'name="next" value="/inbox"' in page.text
        done = await http.post("/inbox/sign-in", data={**hidden(page), "next": there, "key": "right"})
        assert done.headers["location"] == "/inbox"
