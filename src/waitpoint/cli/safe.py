"""Text from agents on its way to a terminal: what is shown is what is there, and nothing in it can act or hide.

Control characters, direction marks, invisible and stacked ones are written out, as `<U+202E>` in text and as `\\u202e` in
JSON (which a parser reads back to the same value). Letters of every script, and emoji, pass as they are.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from typing import Any

from waitpoint import codec

MARKS_IN_A_ROW = 4  # more combining marks on one letter would reach into the lines around it

_HIDDEN_KINDS = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\u2800")  # letters and marks that show nothing
_JOINERS = "\u200c\u200d"
_HARMLESS = re.compile(r"[ -~\u00a1-\u00ac\u00ae-\u02ff\u0370-\u05ff\u3001-\u3163\u3165-\u9fff\uac00-\ud7a3]*")


def line(text: str) -> str:
    """Return text as one line for a terminal; line ends become a sign."""
    return _written(re.sub(r"\r\n|\r|\n", " ↵ ", text).replace("\t", " "), "<U+{:04X}>")


def lines(text: str) -> str:
    """Return text for a terminal with its line ends kept."""
    return "\n".join(_written(each.expandtabs(4), "<U+{:04X}>") for each in text.split("\n"))


def json_text(value: Any, *, indent: int | None = 2) -> str:
    """Return a decoded value as JSON for people and programs: no escapes but for what could not be seen."""
    text = json.dumps(_finite(codec.to_json(value)), ensure_ascii=False, indent=indent)
    return "\n".join(_written(each, "\\u{:04x}") for each in text.split("\n"))


def _finite(value: Any) -> Any:
    """Replace NaN and infinity, for which JSON has no form, by their names."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _written(text: str, form: str) -> str:
    if _HARMLESS.fullmatch(text):
        return text
    out: list[str] = []
    marks = 0
    for i, char in enumerate(text):
        marks = marks + 1 if unicodedata.combining(char) else 0
        if marks > MARKS_IN_A_ROW or _is_hidden(text, i):
            out.append(_named(char, form))
        else:
            out.append(char)
    return "".join(out)


def _named(char: str, form: str) -> str:
    code = ord(char)
    if code > 0xFFFF and form.startswith("\\"):  # JSON names these by their two halves (RFC 8259, 7)
        code -= 0x10000
        return form.format(0xD800 + (code >> 10)) + form.format(0xDC00 + (code & 0x3FF))
    return form.format(code)


def _is_hidden(text: str, i: int) -> bool:
    char = text[i]
    if char in _JOINERS:
        return not _joins(text, i)
    if "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef":
        return not (char in "\ufe0e\ufe0f" and i > 0 and _takes_a_style(text[i - 1]))
    return unicodedata.category(char) in _HIDDEN_KINDS or char in _FILLERS


def _joins(text: str, i: int) -> bool:
    """Whether a joiner does what it is for: between parts of an emoji, or letters of a script that needs it."""
    before = text[:i].rstrip("\ufe0f\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff")[-1:]
    after = text[i + 1 : i + 2]
    if not before or not after:
        return False
    if text[i] == "\u200d" and unicodedata.category(before) == "So" and unicodedata.category(after) in {"So", "Sm"}:
        return True
    return "\u0600" <= before <= "\u0dff" and "\u0600" <= after <= "\u0dff"


def _takes_a_style(char: str) -> bool:
    return char in "0123456789#*©®" or unicodedata.category(char) in {"So", "Sm", "Po"}
