"""JSON arguments: as text, from a file, from standard input; each mistake has its cure."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from waitpoint.cli.given import json_value
from waitpoint.errors import UsageError


class Piped:
    """A standard input that holds bytes."""

    closed = False

    def __init__(self, data: bytes) -> None:
        self.buffer = io.BytesIO(data)


@pytest.mark.parametrize("value", [None, True, 0, -1.5, 10**30, "", "文", [], {}, {"a": [1, {"b": None}]}])
def test_every_json_value_is_taken(value: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps(value, ensure_ascii=False)
    assert json_value(text, "The answer") == value
    (tmp_path / "answer.json").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert json_value(f"@{tmp_path / 'answer.json'}", "The answer") == value
    monkeypatch.setattr(sys, "stdin", Piped(text.encode() + b"\n"))
    assert json_value("-", "The answer") == value


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("yes", "did you mean '\"yes\"'?"),
        ("True", "did you mean 'true'?"),
        ("None", "did you mean 'null'?"),
        ("hello you", "put it into quotes: '\"hello you\"'"),
        ("{a: 1}", "single quotes"),
        ("", "The answer is empty"),
        ("NaN", "NaN is no JSON number"),
        ('{"a": -Infinity}', "-Infinity is no JSON number"),
        ("[" * 100_000, "is not JSON that can be stored"),
        ("@", "names no file"),
        ("@nowhere.json", "No such file"),
        ("@.", "directory"),
    ],
)
def test_a_mistake_is_told_with_its_cure(text: str, says: str) -> None:
    with pytest.raises(UsageError) as error:
        json_value(text, "The answer")
    assert says in str(error.value)
    assert str(error.value).startswith("The answer ")


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b'"\xff"')
    with pytest.raises(UsageError, match="not UTF-8"):
        json_value(f"@{tmp_path / 'a'}", "The answer")
