"""The addresses of the pages. What they need of the server is given to them, since that is built of this."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse, Response, StreamingResponse
from fastapi.routing import APIRoute
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from waitpoint import codec
from waitpoint.checkpoint.base import PendingFilter, ThreadKey, as_question, offload
from waitpoint.errors import ConflictError, NotFoundError, WaitpointError
from waitpoint.hosting.host import Host
from waitpoint.inbox import live, pages, safety, threads
from waitpoint.inbox.answering import Draft, draft_of
from waitpoint.inbox.cards import Card, card_of
from waitpoint.inbox.listing import Listing, Wanted, listing, neighbours
from waitpoint.records import Answer, Question
from waitpoint.shown.secrets import Veil


@dataclass(frozen=True, slots=True)
class Doors:
    """What the server gives to the pages: its host, who calls (a dependency), and the status number of an error.

    `sign_in` takes an API key and returns what puts the caller into a response's cookies, None for a key that is not
    valid; `sign_out` takes the caller out of them. Without these nobody signs in.
    """

    host: Callable[[Request], Host]
    caller: Callable[..., Any]
    status: Callable[[type[BaseException]], int]
    sign_in: Callable[[Request, str], Awaitable[Callable[[Response], None] | None]] | None = None
    sign_out: Callable[[Request, Response], None] | None = None


def router_of(doors: Doors) -> APIRouter:
    """Return the routes of all pages."""

    caller = Depends(doors.caller)

    async def known(request: Request, caller: Any = caller) -> None:
        request.state.inbox_caller, request.state.signs_in = caller, doors.sign_in is not None

    class PageRoute(APIRoute):
        """A route whose errors are pages."""

        def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
            handler = super().get_route_handler()

            async def handled(request: Request) -> Response:
                try:
                    return await handler(request)
                except (WaitpointError, HTTPException, RequestValidationError) as error:
                    return _error_page(request, error, doors)

            return handled

    shown = Pages(doors)
    private = APIRouter(prefix="/inbox", route_class=PageRoute, dependencies=[Depends(known)], include_in_schema=False)
    for path, endpoint in (
        ("", shown.list),
        ("/list", shown.rows),
        ("/live", shown.live),
        ("/questions/{question_id}", shown.question),
        ("/questions/{question_id}/state", shown.state),
        ("/questions/{question_id}/payload", shown.payload),
        ("/thread", shown.thread),
    ):
        private.add_api_route(path, endpoint, methods=["GET"], response_model=None)
    private.add_api_route("/questions/{question_id}", shown.answer, methods=["POST"], response_model=None)
    private.add_api_route("/sign-out", shown.sign_out, methods=["POST"], response_model=None)
    router = APIRouter(route_class=PageRoute, include_in_schema=False)
    router.add_api_route("/inbox/sign-in", shown.sign_in_page, methods=["GET"], response_model=None)
    router.add_api_route("/inbox/sign-in", shown.sign_in, methods=["POST"], response_model=None)
    router.add_api_route("/inbox/static/{version}/{name}", static_file, methods=["GET"], response_model=None)
    router.include_router(private)
    return router


async def static_file(version: str, name: str) -> Response:  # noqa: ARG001 - it is there for the browser's cache
    """Return a style, script or picture."""
    return pages.static_file(name) or Response(status_code=404)


def _error_page(request: Request, error: Exception, doors: Doors) -> Response:
    if isinstance(error, WaitpointError):
        status, text = doors.status(type(error)), str(error)
    elif isinstance(error, HTTPException):
        status, text = error.status_code, str(error.detail)
    else:
        status, text = 422, "The address or the form is malformed; go back to the inbox"
    if status == 401 and request.method == "GET":
        asked = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        there = f"{safety.root(request)}/inbox/sign-in?{urlencode({'next': asked})}"
        return safety.guard(request, RedirectResponse(there, 303))
    return pages.page(request, "error.html", {"status": status, "text": text}, status)


class Pages:
    """What each address shows or does."""

    def __init__(self, doors: Doors) -> None:
        self._doors = doors
        self._watch = live.Watch()

    # --- the list ---

    async def list(self, request: Request) -> Response:
        """Show what waits."""
        return pages.page(request, "list.html", {"listing": await self._listing(request)})

    async def rows(self, request: Request) -> Response:
        """Return the part of the list that changes."""
        return pages.page(request, "rows.html", {"listing": await self._listing(request)})

    async def live(self, request: Request) -> Response:
        """Tell of changes as they come."""
        host = self._host(request, "read")
        events = live.changes(request, host, self._watch)
        return safety.guard(request, StreamingResponse(events, media_type="text/event-stream"))

    # --- one question ---

    async def question(self, request: Request, question_id: str) -> Response:
        """Show a question."""
        host = self._host(request, "read")
        question = await _found(host, question_id)
        card = card_of(question)
        return await self._card(request, card, Draft(card, {}))

    async def state(self, request: Request, question_id: str) -> Response:
        """Return what a card has to say of its question's state now."""
        host = self._host(request, "read")
        question = await _found(host, question_id)
        thread = await offload(host.saver, host.saver.thread, ThreadKey(question.thread_id, question.graph))
        values = {"card": card_of(question), "thread": thread, "refused": ""}
        response = pages.page(request, "state.html", values)
        response.headers["X-Question"] = "open" if question.can_answer else question.status
        return response

    async def payload(self, request: Request, question_id: str) -> Response:
        """Return all that a question shows as JSON."""
        question = await _found(self._host(request, "read"), question_id)
        plain = codec.to_json(question.value)
        told = {
            "id": question.id, "thread_id": question.thread_id, "graph": question.graph, "node": question.node,
            "digest": question.digest, "value": Veil(plain).value(plain), "response_schema": question.response_schema,
        }  # fmt: skip
        text = json.dumps(codec.to_json(told), indent=2).encode()
        headers = {"Content-Disposition": f'attachment; filename="question-{question.id[:8]}.json"'}
        return safety.guard(request, Response(text, media_type="application/json", headers=headers))

    async def answer(self, request: Request, question_id: str) -> Response:
        """Store an answer, or show what is still to be done before."""
        host = self._host(request, "answer")
        sent = await _sent(request)
        question = await _found(host, question_id)
        if not safety.is_own(request, sent):
            return _refused_form(request)
        draft = draft_of(question, sent)
        if "add" in sent or not draft.is_ready:
            return await self._card(
                request, draft.card, draft, sent, 422 if draft.is_wrong and "add" not in sent else 200
            )
        caller = request.state.inbox_caller
        given = Answer(
            draft.answer, by=caller.name, shown_digest=sent.get("digest") or "none", token=sent.get("token") or None
        )
        try:
            await host.answer(question_id, given)
        except ValidationError as error:
            draft.refuse(error)
            return await self._card(request, draft.card, draft, sent, 422)
        except ConflictError as error:
            return await self._lost(request, question_id, sent, str(error))
        there = f"{safety.root(request)}/inbox/questions/{question_id}"
        then = {**dict(request.query_params), "done": "1"}
        return safety.guard(request, RedirectResponse(f"{there}?{urlencode(then)}", 303))

    async def _lost(self, request: Request, question_id: str, sent: dict[str, str], why: str) -> Response:
        """Show what became of a question that somebody else settled, with what was typed for it."""
        question = await _found(self._host(request, "read"), question_id)
        draft = draft_of(question, sent)
        return await self._card(request, draft.card, draft, sent, 409, refused=why)

    async def _card(
        self, request: Request, card: Card, draft: Draft, sent: dict[str, str] | None = None, status: int = 200, *,
        refused: str = "",
    ) -> Response:  # fmt: skip
        host = self._doors.host(request)
        question, given = card.question, request.query_params
        found = await self._listing(request)
        ids = found.ids
        before, after, place = neighbours(ids, question.id)
        if place == 0 and given.get("then") in ids:
            after = given.get("then")
        said, thread = await offload(host.saver, self._around, host, question)
        unfolded = given.get("unfolded") == "1" or (sent or {}).get("unfolded") == "1"
        values = {
            "card": card,
            "draft": draft,
            "sent": sent or {},
            "said": card.veil.text(said),
            "thread": thread,
            "before": before,
            "after": after,
            "place": place,
            "count": len(ids),
            "filters": found.wanted.query,
            "unfolded": unfolded,
            "is_done": given.get("done") == "1",
            "refused": refused,
            "is_served": host.graphs.name_of(ThreadKey(question.thread_id, question.graph)) is not None,
        }
        return pages.page(request, "card.html", values, status)

    def _around(self, host: Host, question: Question) -> tuple[str, Any]:
        """Return what the agent said before it asked, and the row of the thread."""
        key = ThreadKey(question.thread_id, question.graph)
        [row] = host.saver.questions(PendingFilter(ids=[question.id], answerable=False))
        words = threads.agent_words(host.saver, question, row.checkpoint_id, _registry(host, key))
        return words, host.saver.thread(key)

    # --- one thread ---

    async def thread(self, request: Request) -> Response:
        """Show a thread."""
        host = self._host(request, "read")
        given = request.query_params
        thread_id, graph = given.get("id", ""), given.get("graph", "")
        rows = await offload(host.saver, lambda: host.saver.threads(thread_id=thread_id))
        keys = [row.key for row in rows if graph in ("", row.key.graph)]
        if not keys:
            raise NotFoundError(f"No thread '{thread_id}' is in this store; open one from the list")
        key = keys[0]
        checkpoint_id = given.get("checkpoint") or None
        page = await offload(host.saver, threads.thread_page, host.saver, key, checkpoint_id, _registry(host, key))
        return pages.page(request, "thread.html", {"page": page, "is_served": host.graphs.name_of(key) is not None})

    # --- who looks ---

    async def sign_in_page(self, request: Request) -> Response:
        """Ask for a key."""
        there = safety.local(request, request.query_params.get("next"))
        if self._doors.sign_in is None:
            return safety.guard(request, RedirectResponse(there, 303))
        return pages.page(request, "signin.html", {"next": there, "refused": False})

    async def sign_in(self, request: Request) -> Response:
        """Let in who has a key."""
        sent = await _sent(request)
        there = safety.local(request, sent.get("next"))
        if self._doors.sign_in is None or not safety.is_own(request, sent):
            return _refused_form(request)
        signed = await self._doors.sign_in(request, sent.get("key", "").strip())
        if signed is None:
            return pages.page(request, "signin.html", {"next": there, "refused": True}, 401)
        response = safety.guard(request, RedirectResponse(there, 303))
        signed(response)
        return response

    async def sign_out(self, request: Request) -> Response:
        """Let the browser forget who looks."""
        if not safety.is_own(request, await _sent(request)):
            return _refused_form(request)
        response = safety.guard(request, RedirectResponse(f"{safety.root(request)}/inbox/sign-in", 303))
        if self._doors.sign_out is not None:
            self._doors.sign_out(request, response)
        return response

    # --- shared ---

    async def _listing(self, request: Request) -> Listing:
        host = self._host(request, "read")
        found: Listing = await offload(host.saver, listing, host.saver, Wanted.of(request.query_params))
        return found

    def _host(self, request: Request, scope: str) -> Host:
        """Return the host for a caller who has a scope."""
        request.state.inbox_caller.require(scope)
        return self._doors.host(request)


def _registry(host: Host, key: ThreadKey) -> Any:
    name = host.graphs.name_of(key)
    return None if name is None else host.graphs[name].registry


async def _found(host: Host, question_id: str) -> Question:
    rows = await offload(host.saver, host.saver.questions, PendingFilter(ids=[question_id], answerable=False))
    if not rows:
        raise NotFoundError(f"No question '{question_id}' is in this store; the list shows what waits")
    return as_question(rows[0])


async def _sent(request: Request) -> dict[str, str]:
    """Return the fields of a form; files have no place in it."""
    form = await request.form()
    return {name: value for name, value in form.items() if isinstance(value, str)}


def _refused_form(request: Request) -> Response:
    text = "This form was not sent from a page that this browser got from here, so nothing was decided; open the question again"
    return pages.page(request, "error.html", {"status": 403, "text": text}, 403)
