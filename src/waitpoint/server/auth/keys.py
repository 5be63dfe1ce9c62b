"""API keys: made, recognised, revoked. A key is 32 random bytes, so its SHA-256 needs no salt and no slow hash."""

from __future__ import annotations

import hashlib
import secrets
import time
import uuid

from waitpoint import clock
from waitpoint.errors import UsageError
from waitpoint.ledger.base import KeyRow, Ledger
from waitpoint.server.callers import SCOPES

PREFIX = "wp_"
_FRESH_SECONDS = 2.0  # how long a revoked key may still be taken, and a new one not


def create(ledger: Ledger, name: str, scopes: list[str]) -> tuple[KeyRow, str]:
    """Store a new key; return its row and the key, which is told this once. Raises `UsageError`."""
    if not name.strip() or not name.isprintable():
        raise UsageError("A key needs a name, which stands as the author of its answers; give a few words")
    unknown = [scope for scope in scopes if scope not in SCOPES]
    if unknown or not scopes:
        raise UsageError(f"Unknown scope '{', '.join(unknown)}'; a key may have {', '.join(map(repr, SCOPES))}")
    key = PREFIX + secrets.token_urlsafe(32)
    row = KeyRow(str(uuid.uuid4()), name, hash_of(key), tuple(dict.fromkeys(scopes)), clock.now())
    ledger.add_key(row)
    return row, key


def hash_of(key: str) -> str:
    """Return what is stored of a key."""
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


class Keys:
    """The keys of a ledger, read anew every few seconds: other processes make and revoke them."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._read_at = float("-inf")
        self._by_hash: dict[str, KeyRow] = {}
        self._by_id: dict[str, KeyRow] = {}

    def refresh(self) -> None:
        """Read the keys, if that was not done just now."""
        if time.monotonic() - self._read_at < _FRESH_SECONDS:
            return
        rows = self._ledger.api_keys()
        self._by_hash = {row.hash: row for row in rows}
        self._by_id = {row.id: row for row in rows}
        self._read_at = time.monotonic()

    @property
    def are_used(self) -> bool:
        """Whether any key was ever made: revoking the last one must not open the server."""
        return bool(self._by_id)

    def of(self, key: str) -> KeyRow | None:
        """Return the row of a key that is valid."""
        return _valid(self._by_hash.get(hash_of(key)))

    def named(self, key_id: str) -> KeyRow | None:
        """Return the row of a key that is valid, by its id."""
        return _valid(self._by_id.get(key_id))


def _valid(row: KeyRow | None) -> KeyRow | None:
    return row if row is not None and row.revoked_at is None else None
