"""Text from agents: nothing in it acts on the terminal or hides, and every script passes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waitpoint.cli import safe


@pytest.mark.parametrize(
    "text",
    [
        "plain ASCII",
        "Grüße, Ñandú, Đặng",
        "报告已经准备好了",
        "日本語テスト한국어",
        "مرحبا بالعالم",
        "नमस्ते क्षत्रिय",
        "می‌خواهم",  # a non-joiner where Persian needs it
        "👩‍💻 👨‍👩‍👧 ❤️ 🇩🇪 👍🏽 1️⃣",
        "e\u0301 o\u0308",
    ],
)
def test_letters_of_every_script_and_emoji_pass(text: str) -> None:
    assert safe.line(text) == text
    assert safe.json_text(text) == json.dumps(text, ensure_ascii=False)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", "<U+001B>[31mred"),
        ("\x9b31m", "<U+009B>31m"),
        ("a\x07\x08b", "a<U+0007><U+0008>b"),
        ("\x7f", "<U+007F>"),
        ("invoice\u202etxt.exe", "invoice<U+202E>txt.exe"),
        ("\u2066x\u2069", "<U+2066>x<U+2069>"),
        ("pay\u200bpal", "pay<U+200B>pal"),
        ("a\u200db", "a<U+200D>b"),
        ("x\ufeffy\u00adz", "x<U+FEFF>y<U+00AD>z"),
        ("hi\U000e0041\U000e007f", "hi<U+E0041><U+E007F>"),
        ("a\ufe00\ufe0f", "a<U+FE00><U+FE0F>"),
        ("😀\U000e0101", "😀<U+E0101>"),
        ("\u3164\u115f\uffa0", "<U+3164><U+115F><U+FFA0>"),
        ("\u2028next\u2029", "<U+2028>next<U+2029>"),
        ("\ud800", "<U+D800>"),
        ("\ue000", "<U+E000>"),
    ],
)
def test_what_acts_or_hides_is_written_out(text: str, shown: str) -> None:
    assert safe.line(text) == shown
    assert safe.lines(text) == shown


def test_a_line_stays_one_line() -> None:
    assert safe.line("one\ntwo\r\nthree\rfour\tfive") == "one ↵ two ↵ three ↵ four five"
    assert safe.lines("one\ntwo\rthree") == "one\ntwo<U+000D>three"


def test_stacked_marks_are_written_out_after_a_few() -> None:
    assert safe.line("a" + "\u0301" * 6) == "a" + "\u0301" * 4 + "<U+0301>" * 2


@given(st.text(st.characters(exclude_categories=[])))
def test_json_text_reads_back_to_the_same_value_and_is_safe(text: str) -> None:
    shown = safe.json_text({"text": text}, indent=None)
    assert safe.line(shown) == shown
    if not any("\ud800" <= c <= "\udfff" for c in text):  # halves of a pair have no JSON of their own
        assert json.loads(shown) == {"text": text}


def test_json_text_has_no_form_that_json_lacks() -> None:
    assert json.loads(safe.json_text([float("nan"), float("inf"), 1.5])) == ["nan", "inf", 1.5]
    assert safe.json_text({"a": (1, {2})}, indent=None) == '{"a": [1, [2]]}'
