"""The table [server] of `waitpoint.toml`: where `serve` listens, and who may call.

[server]
host = "127.0.0.1"
port = 2024
webhook_hosts = ["hooks.example.com"]
cors_origins = ["https://desk.example.com"]
max_body = 10000000           # bytes
requests_a_minute = 6000      # of one caller
authenticate = "module:function"

[server.tokens]               # bearer tokens of an identity provider
jwks = "https://id.example.com/.well-known/jwks.json"
issuer = "https://id.example.com/"
audience = "waitpoint"
scope_claim = "scope"
prefix = "waitpoint:"
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from waitpoint.errors import ConfigError

_KINDS: Mapping[str, tuple[str, str]] = {
    "host": ("text", 'host = "127.0.0.1"'),
    "port": ("port", "port = 2024"),
    "webhook_hosts": ("texts", 'webhook_hosts = ["example.com"]'),
    "cors_origins": ("texts", 'cors_origins = ["https://desk.example.com"]'),
    "max_body": ("count", "max_body = 10000000"),
    "requests_a_minute": ("count", "requests_a_minute = 6000"),
    "authenticate": ("place", 'authenticate = "module:function"'),
    "tokens": ("table", "it as a table, [server.tokens]"),
}
_TOKENS: Mapping[str, tuple[str, str]] = {
    "jwks": ("text", 'jwks = "https://id.example.com/.well-known/jwks.json"'),
    "issuer": ("text", 'issuer = "https://id.example.com/"'),
    "audience": ("text", 'audience = "waitpoint"'),
    "algorithms": ("texts", 'algorithms = ["RS256"]'),
    "scope_claim": ("text", 'scope_claim = "scope"'),
    "name_claim": ("text", 'name_claim = "sub"'),
    "prefix": ("text", 'prefix = "waitpoint:"'),
}
KEYS = tuple(_KINDS)


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """What the table says. `tokens` are the arguments of `waitpoint.server.Tokens`."""

    host: str | None = None
    port: int | None = None
    webhook_hosts: tuple[str, ...] | None = None
    cors_origins: tuple[str, ...] = ()
    max_body: int | None = None
    requests_a_minute: int | None = None
    authenticate: str | None = None
    tokens: Mapping[str, Any] | None = None


def server_settings(path: Path, table: Mapping[str, Any]) -> ServerSettings:
    """Check the table. Raises `ConfigError`."""
    given = {key: _checked(path, "server", key, value, _KINDS[key]) for key, value in table.items()}
    if "tokens" in given:
        tokens = given["tokens"]
        for key, value in tokens.items():
            if key not in _TOKENS:
                known = ", ".join(map(repr, _TOKENS))
                raise ConfigError(f"'{path}' has an unknown key '{key}' in [server.tokens]; known are {known}")
            _checked(path, "server.tokens", key, value, _TOKENS[key])
        for key in ("jwks", "issuer", "audience"):
            if key not in tokens:
                raise ConfigError(f"'{path}' has [server.tokens] without '{key}'; write {_TOKENS[key][1]}")
    return ServerSettings(**given)


def _checked(path: Path, table: str, key: str, value: Any, kind: tuple[str, str]) -> Any:
    name, example = kind
    fits = {
        "text": isinstance(value, str) and bool(value),
        "texts": isinstance(value, list) and all(isinstance(each, str) for each in value),
        "place": isinstance(value, str) and ":" in value,
        "table": isinstance(value, dict),
        "count": isinstance(value, int) and not isinstance(value, bool) and value > 0,
        "port": isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 65536,
    }
    if not fits[name]:
        raise ConfigError(f"'{path}' has {value!r} as [{table}] {key}; write {example}")
    return tuple(value) if name == "texts" else value
