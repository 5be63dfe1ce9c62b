"""What a text hides: characters that act, turn the direction, show nothing, or pile up; and letters that pass for others.

Control characters, direction marks, invisible and stacked ones are hidden. Letters of every script, and emoji, are not.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

MARKS_IN_A_ROW = 4  # more combining marks on one letter would reach into the lines around it

_HIDDEN_KINDS = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\u2800")  # letters and marks that show nothing
_JOINERS = "\u200c\u200d"
_HARMLESS = re.compile(r"[ -~\u00a1-\u00ac\u00ae-\u02ff\u0370-\u05ff\u3001-\u3163\u3165-\u9fff\uac00-\ud7a3]*")
_WORD = re.compile(r"[^\W\d_]+")
_ALIKE = ("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC")  # scripts with letters that look like Latin ones


class Part(NamedTuple):
    """A piece of a text: one hidden character, or a run of others."""

    text: str
    is_hidden: bool


def parts(text: str) -> Iterator[Part]:
    """Split a text into its hidden characters and the runs between them."""
    if _HARMLESS.fullmatch(text):
        if text:
            yield Part(text, is_hidden=False)
        return
    start = marks = 0
    for i, char in enumerate(text):
        marks = marks + 1 if unicodedata.combining(char) else 0
        if marks <= MARKS_IN_A_ROW and not _is_hidden(text, i):
            continue
        if start < i:
            yield Part(text[start:i], is_hidden=False)
        yield Part(char, is_hidden=True)
        start = i + 1
    if start < len(text):
        yield Part(text[start:], is_hidden=False)


def name(char: str) -> str:
    """Return a character's code point and what Unicode calls it."""
    known = unicodedata.name(char, "") or {"\x1b": "ESCAPE", "\x7f": "DELETE", "\x00": "NULL"}.get(char, "")
    kind = {"Cc": "a control character", "Co": "for private use", "Cs": "half a character"}
    return f"U+{ord(char):04X} {known or kind.get(unicodedata.category(char), 'without a name')}"


def lookalikes(text: str) -> set[int]:
    """Return where letters pass for Latin ones: those of another script in a word that has Latin letters."""
    found: set[int] = set()
    if text.isascii():
        return found
    for word in _WORD.finditer(text):
        if word.group().isascii():
            continue
        scripts = [unicodedata.name(char, "").partition(" ")[0] for char in word.group()]
        if "LATIN" in scripts:
            found |= {word.start() + n for n, script in enumerate(scripts) if script in _ALIKE}
    return found


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
