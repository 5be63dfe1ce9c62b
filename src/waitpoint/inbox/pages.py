"""Writes pages: templates with everything escaped, the marks on text from agents, and the files beside them."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from fastapi import Request
from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from waitpoint import clock
from waitpoint.inbox import cards, fields, marked, safety

_HERE = Path(__file__).parent
STATIC = _HERE / "static"
TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


@cache
def _templates() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_HERE / "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    made.filters.update(marked=marked.text, oneline=marked.line, ago=cards.ago, when=_when, iso=clock.iso)
    made.globals.update(query=_query, version=version(), new_token=secrets.token_hex, given=fields.GIVEN)
    return made


def _when(at: float) -> Markup:
    """Return a time as an element that the script turns into the local time."""
    iso = clock.iso(at)
    return Markup('<time datetime="{}">{} UTC</time>').format(iso, iso[:16].replace("T", " "))


def _query(**given: Any) -> str:
    """Return the part of an address after its path, without what is empty."""
    kept = {name: value for name, value in given.items() if value not in (None, "")}
    return f"?{urlencode(kept)}" if kept else ""


@cache
def version() -> str:
    """Return a name for the present style and script, so that browsers keep no older ones."""
    digest = hashlib.sha256()
    for path in sorted(STATIC.iterdir()):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def page(request: Request, name: str, values: Mapping[str, Any], status: int = 200) -> Response:
    """Return the page of a template."""
    caller = getattr(request.state, "inbox_caller", None)
    shared = {
        "base": f"{safety.root(request)}/inbox",
        "csrf": safety.token_of(request),
        "caller": getattr(caller, "name", None),
        "can_answer": _may(caller, "answer"),
        "signs_in": getattr(request.state, "signs_in", False),
    }
    text = _templates().get_template(name).render({**shared, **values})
    return safety.guard(request, HTMLResponse(text.encode("utf-8", "replace"), status))


def _may(caller: Any, scope: str) -> bool:
    return caller is None or scope in caller.scopes or "admin" in caller.scopes


def static_file(name: str) -> Response | None:
    """Return a file that pages refer to; None if there is none of that name."""
    path = STATIC / name
    if path.parent != STATIC or path.suffix not in TYPES or not path.is_file():
        return None
    headers = {"Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff"}
    return Response(path.read_bytes(), media_type=TYPES[path.suffix], headers=headers)
