"""Text from agents on its way to a terminal: what is shown is what is there, and nothing in it can act or hide.

What hides is written out, as `<U+202E>` in text and as `\\u202e` in JSON (which a parser reads back to the same value).
"""

from __future__ import annotations

import json
import re
from typing import Any

from waitpoint import codec
from waitpoint.shown import hidden


def line(text: str) -> str:
    """Return text as one line for a terminal; line ends become a sign."""
    return _written(re.sub(r"\r\n|\r|\n", " ↵ ", text).replace("\t", " "), "<U+{:04X}>")


def lines(text: str) -> str:
    """Return text for a terminal with its line ends kept."""
    return "\n".join(_written(each.expandtabs(4), "<U+{:04X}>") for each in text.split("\n"))


def json_text(value: Any, *, indent: int | None = 2) -> str:
    """Return a decoded value as JSON for people and programs: no escapes but for what could not be seen."""
    text = json.dumps(codec.to_json(value), ensure_ascii=False, indent=indent)
    return "\n".join(_written(each, "\\u{:04x}") for each in text.split("\n"))


def _written(text: str, form: str) -> str:
    return "".join(_named(part.text, form) if part.is_hidden else part.text for part in hidden.parts(text))


def _named(char: str, form: str) -> str:
    code = ord(char)
    if code > 0xFFFF and form.startswith("\\"):  # JSON names these by their two halves (RFC 8259, 7)
        code -= 0x10000
        return form.format(0xD800 + (code >> 10)) + form.format(0xDC00 + (code & 0x3FF))
    return form.format(code)
