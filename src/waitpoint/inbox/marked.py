"""Text from agents on its way into a page: never markup, and nothing in it hides: what would is marked in its place."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from markupsafe import Markup, escape

from waitpoint import codec
from waitpoint.shown import hidden

LINE_CHARS = 240  # of a text in one line of a list


def text(value: str) -> Markup:
    """Return text for a page, its line ends and tabs as they are."""
    return Markup("\n").join(_marked(each) for each in value.split("\n"))


def line(value: str, most: int = LINE_CHARS) -> Markup:
    """Return text for one line of a page; what is cut is said."""
    one = re.sub(r"\r\n|\r|\n", " ↵ ", value.strip())
    if len(one) <= most:
        return _marked(one)
    return _marked(one[:most]) + Markup('<span class="cut">… and {:,} more characters</span>').format(len(one) - most)


def json_text(value: Any, indent: int | None = 2) -> str:
    """Return a value as JSON in which everything can be seen: what could not is escaped, and reads back to the same."""
    made = json.dumps(codec.to_json(value), ensure_ascii=False, indent=indent)
    return plain(made)


def json_shown(value: Any, indent: int | None = 2) -> str:
    """Return a value as JSON for a page, where what hides in it is marked."""
    return json.dumps(codec.to_json(value), ensure_ascii=False, indent=indent)


def plain(value: str) -> str:
    """Return text for places that take no marks: what hides is escaped."""
    return "".join(_visible(part) for part in _parts_of_lines(value))


def _visible(part: hidden.Part) -> str:
    if not part.is_hidden or part.text in "\n\t":
        return part.text
    return json.dumps(part.text)[1:-1]


def _parts_of_lines(value: str) -> Iterator[hidden.Part]:
    for n, each in enumerate(value.split("\n")):
        if n:
            yield hidden.Part("\n", is_hidden=False)
        yield from hidden.parts(each)


def _marked(value: str) -> Markup:
    if value.isascii() and value.isprintable():
        return escape(value)
    alike = hidden.lookalikes(value)
    out: list[str] = []
    at = 0
    for part in hidden.parts(value):
        if part.is_hidden and part.text != "\t":
            out.append(_mark(part.text, "hidden", f"U+{ord(part.text):04X}"))
        elif not alike:
            out.append(str(escape(part.text)))
        else:
            marks = (
                _mark(char, "alike", char) if at + n in alike else str(escape(char)) for n, char in enumerate(part.text)
            )
            out.extend(marks)
        at += len(part.text)
    return Markup("".join(out))  # noqa: S704 - every part of it was escaped above


def _mark(char: str, kind: str, shown: str) -> str:
    return f'<mark class="{kind}" title="{escape(hidden.name(char))}">{escape(shown)}</mark>'


def deceptive(value: Any) -> Counter[str]:
    """Count the characters in a value, and in its keys, that hide or pass for others, by code point and name."""
    found: Counter[str] = Counter()
    for each in _strings(codec.to_json(value)):
        if each.isascii() and each.isprintable():
            continue
        for one in re.split(r"\r\n|[\r\n\t]", each):
            found.update(hidden.name(part.text) for part in hidden.parts(one) if part.is_hidden)
            found.update(hidden.name(one[at]) for at in hidden.lookalikes(one))
    return found


def hides(value: str) -> bool:
    """Whether a text holds something that an input field would not show, or would change."""
    return "\r" in value or any(part.is_hidden for each in value.split("\n") for part in hidden.parts(each))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield key
            yield from _strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from _strings(part)
