"""What keeps a page to itself: headers, the token of forms, and addresses that stay on this server."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from urllib.parse import urlsplit

from fastapi import Request
from fastapi.responses import Response

COOKIE = "waitpoint_form"
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def token_of(request: Request) -> str:
    """Return the token that forms of this browser bear; a new one for a browser that has none."""
    known: str | None = getattr(request.state, "form_token", None) or request.cookies.get(COOKIE)
    request.state.form_token = known if known and len(known) == 43 else secrets.token_urlsafe(32)
    return str(request.state.form_token)


def guard(request: Request, response: Response) -> Response:
    """Give a page its headers, and the browser its token."""
    response.headers.update(HEADERS)
    token: str | None = getattr(request.state, "form_token", None)
    if token and request.cookies.get(COOKIE) != token:
        # Lax: a link from elsewhere keeps the token, a form from elsewhere never bears the cookie.
        response.set_cookie(
            COOKIE, token, path=f"{root(request)}/inbox", httponly=True, samesite="lax",
            secure=request.url.scheme == "https",
        )  # fmt: skip
    return response


def is_own(request: Request, form: Mapping[str, str]) -> bool:
    """Whether a form was sent from a page of this server, by the browser that page was made for."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = request.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
        return False
    cookie, given = request.cookies.get(COOKIE, ""), form.get("csrf", "")
    return bool(cookie) and hmac.compare_digest(cookie.encode(), given.encode("utf-8", "replace"))


def root(request: Request) -> str:
    """Return the path under which the application is mounted."""
    return str(request.scope.get("root_path", "")).rstrip("/")


def local(request: Request, given: str | None) -> str:
    """Return an address of the inbox to go to: the one given if it is one, else its first page."""
    home = f"{root(request)}/inbox"
    if not given or not given.isascii() or not given.isprintable() or "\\" in given:
        return home
    parts = urlsplit(given)
    is_here = not parts.scheme and not parts.netloc and (parts.path == home or parts.path.startswith(f"{home}/"))
    return given if is_here and not given.startswith("//") and ".." not in parts.path else home
