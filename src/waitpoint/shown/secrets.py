"""Keeps secrets out of what is shown: values under telling names are veiled, wherever else the same text stands too.

What is stored stays whole. A veil says how long the value is and how its SHA-256 begins, so two can be told apart.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

SHORTEST = 6  # a shorter secret is veiled under its name only: elsewhere the same letters are likely to be other words

_NAMES = re.compile(
    r"(?i)(?:^|[_\-.\s])(?:api[_-]?key|access[_-]?key|private[_-]?key|auth(?:orization)?|token|secret|passw(?:or)?d|passphrase"
    r"|pwd|credentials?|cookie)$|apikey$|(?-i:[a-z0-9](?:ApiKey|AccessKey|Token|Secret|Password)$)"
)


def is_secret(name: str) -> bool:
    """Whether a value under this name is not to be shown."""
    return _NAMES.search(name) is not None


def veiled(text: str) -> str:
    """Return what is shown in the place of a secret."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"•••••• ({len(text)} characters, sha256 {digest}…)"


class Veil:
    """The secrets of some values, and how they look when shown."""

    def __init__(self, *values: Any) -> None:
        found = {text for value in values for text in _secrets(value) if text}
        self._shown = {text: veiled(text) for text in found}
        long = sorted((text for text in found if len(text) >= SHORTEST), key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, long))) if long else None

    def text(self, text: str) -> str:
        """Return a text with every secret in it veiled."""
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda match: self._shown[match.group()], text)

    def value(self, value: Any, name: str = "") -> Any:
        """Return a JSON value with every secret in it veiled; `name` is what it stands under."""
        if isinstance(value, str):
            return veiled(value) if value and is_secret(name) else self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self.value(part, key) for key, part in value.items()}
        return [self.value(part, name) for part in value] if isinstance(value, list) else value

    def restored(self, value: Any) -> Any:
        """Return a JSON value in which veils are the secrets again, as they come back from a form."""
        if isinstance(value, str):
            for secret, shown in self._shown.items():
                value = value.replace(shown, secret)
            return value
        if isinstance(value, dict):
            return {self.restored(key): self.restored(part) for key, part in value.items()}
        return [self.restored(part) for part in value] if isinstance(value, list) else value


def _secrets(value: Any, name: str = "") -> Iterator[str]:
    if isinstance(value, str):
        if is_secret(name):
            yield value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _secrets(part, str(key))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _secrets(part, name)
