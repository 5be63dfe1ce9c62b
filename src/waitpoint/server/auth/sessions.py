"""Who signed in to the pages: a cookie that names a key and ends, signed with what only the server has of that key.

So it outlives a restart, is worth nothing once the key is revoked, and does not hold the key.
"""

from __future__ import annotations

import hashlib
import hmac

from waitpoint import clock
from waitpoint.ledger.base import KeyRow
from waitpoint.server.auth.keys import Keys

COOKIE = "waitpoint_session"
SECONDS = 12 * 3600


def made(row: KeyRow) -> str:
    """Return the value of a cookie for a key."""
    ends = str(int(clock.now()) + SECONDS)
    return f"{row.id}.{ends}.{_signature(row, ends)}"


def key_of(keys: Keys, cookie: str) -> KeyRow | None:
    """Return the key that a cookie stands for, None if it is forged, over, or its key revoked."""
    key_id, _, rest = cookie.partition(".")
    ends, _, signature = rest.partition(".")
    row = keys.named(key_id)
    if row is None or not ends.isdigit() or len(ends) > 12 or int(ends) < clock.now():
        return None
    return row if hmac.compare_digest(_signature(row, ends), signature) else None


def _signature(row: KeyRow, ends: str) -> str:
    return hmac.new(row.hash.encode(), f"session.{row.id}.{ends}".encode(), hashlib.sha256).hexdigest()
