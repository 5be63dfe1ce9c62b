"""Bearer tokens of an identity provider: JWT (RFC 7519), checked against the keys that it publishes (RFC 7517)."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from waitpoint import clock
from waitpoint.errors import ConfigError
from waitpoint.server.callers import SCOPES, Caller
from waitpoint.server.refusals import UnauthorizedError

_KEEP_SECONDS = 300.0
_AGAIN_SECONDS = 10.0  # how soon keys may be fetched again for a token whose key is unknown
_LEEWAY = 30


@dataclass
class Tokens:
    """Which tokens are taken. `jwks` is the address of the keys, or the document itself.

    A token needs `exp`, the issuer and the audience named here, and a scope of ours in `scope_claim` (a list, or text with
    spaces); `prefix` is what such scopes begin with there.
    """

    jwks: str | Mapping[str, Any]
    issuer: str
    audience: str
    algorithms: Sequence[str] = ("RS256", "ES256", "EdDSA")
    scope_claim: str = "scope"
    prefix: str = ""
    name_claim: str = "sub"
    _keys: KeySet | None = field(default=None, init=False, repr=False)
    _fetched_at: float = field(default=float("-inf"), init=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def __post_init__(self) -> None:
        if any(name.startswith("HS") or name == "none" for name in self.algorithms):
            raise ConfigError(
                "A token that is signed with a shared secret proves nothing here; name RS, ES, PS or EdDSA"
            )

    def caller(self, text: str) -> Caller:
        """Return who a token speaks of. Raises `UnauthorizedError`."""
        try:
            claims = self._decoded(text)
            registry = jwt.JWTClaimsRegistry(
                now=int(clock.now()), leeway=_LEEWAY, exp={"essential": True},
                iss={"essential": True, "value": self.issuer}, aud={"essential": True, "value": self.audience},
            )  # fmt: skip
            registry.validate(claims)
        except (JoseError, ValueError, KeyError, TypeError) as error:
            reason = getattr(error, "error", type(error).__name__)
            raise UnauthorizedError(f"The bearer token is not valid - {reason}; sign in again for a new one") from None
        name = claims.get(self.name_claim)
        if not isinstance(name, str) or not name:
            raise UnauthorizedError(f"The bearer token names nobody - it has no '{self.name_claim}'; sign in again")
        given = claims.get(self.scope_claim) or ()
        words = given.split() if isinstance(given, str) else [each for each in given if isinstance(each, str)]
        found = {word.removeprefix(self.prefix) for word in words if word.startswith(self.prefix)}
        return Caller(name, frozenset(found & set(SCOPES)))

    def _decoded(self, text: str) -> dict[str, Any]:
        try:
            return dict(jwt.decode(text, self._found(_KEEP_SECONDS), algorithms=list(self.algorithms)).claims)
        except (JoseError, ValueError):
            if isinstance(self.jwks, str) and time.monotonic() - self._fetched_at > _AGAIN_SECONDS:
                keys = self._found(_AGAIN_SECONDS)  # the provider may have changed its keys
                return dict(jwt.decode(text, keys, algorithms=list(self.algorithms)).claims)
            raise

    def _found(self, keep: float) -> KeySet:
        with self._lock:
            if self._keys is None or (isinstance(self.jwks, str) and time.monotonic() - self._fetched_at > keep):
                self._keys = KeySet.import_key_set(self._document())
                self._fetched_at = time.monotonic()
            return self._keys

    def _document(self) -> Any:
        if not isinstance(self.jwks, str):
            return self.jwks
        if not self.jwks.startswith(("https://", "http://127.0.0.1", "http://localhost")):
            raise ConfigError(f"The keys of tokens at '{self.jwks}' could be forged on the way; give an https address")
        with urllib.request.urlopen(self.jwks, timeout=5) as answer:  # noqa: S310 - the operator's own address
            return json.loads(answer.read(1_000_000))
