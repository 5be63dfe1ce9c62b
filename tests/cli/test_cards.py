"""What `show` and `inbox` tell of tool calls and of effects in doubt: everything, with types, and how to decide."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Program
from tests.cli.reviews import SQL, WRITE, asked, install, log
from waitpoint.cli.cards import argument_lines, short_call

WAITPOINT = str(Path(sys.executable).with_name("waitpoint"))

CHOICES = {
    "happened": 'It happened (add its "result", if it gave one):',
    "not_happened": "It did not happen, so run it:",
    "run_again": "Run it again, whether it happened or not:",
    "stop": "Run nothing; the node fails:",
}


@pytest.fixture
def reviews(program: Program) -> Program:
    install(program)
    return program


def card(program: Program, question: str) -> list[str]:
    """Return what `show` tells below the facts."""
    lines = program("show", question).out.splitlines()
    return lines[lines.index("") + 1 :]


def test_card_of_a_call_shows_description_arguments_and_commands(reviews: Program) -> None:
    (question,) = asked(reviews, "single", WRITE)
    short = question[:8]
    assert card(reviews, question) == [
        "Tool call: write_file",
        "",
        "  May write_file run?",
        "",
        '  tool_call_id: "call_write"',
        "",
        '  path     text  "orders.csv"',
        "  content  text of 3 lines:",
        "    | id,total",
        "    | 1,20",
        "    |",
        "",
        "  Decisions: approve, edit, reject, respond",
        "",
        "Decide with:",
        f"  waitpoint approve {short}",
        f"  waitpoint edit {short}",
        f"  waitpoint reject {short} --reason TEXT",
        f"  waitpoint respond {short} TEXT",
    ]


def test_card_of_several_calls_numbers_them_and_offers_what_all_allow(reviews: Program) -> None:
    (question,) = asked(reviews, "batch", WRITE, SQL)
    lines = card(reviews, question)
    assert "Call 1 of 2: write_file" in lines
    assert "Call 2 of 2: execute_sql" in lines
    assert "  Decisions: approve, reject" in lines
    assert lines[lines.index("Decide with:") + 1 :] == [
        f"  waitpoint approve {question[:8]} --all",
        f"  waitpoint reject {question[:8]} --all --reason TEXT",
        f"  waitpoint decide {question[:8]} 1=DECISION 2=DECISION",
    ]


def test_default_description_does_not_repeat_the_arguments(reviews: Program) -> None:
    args = json.dumps(SQL["args"], indent=2)
    told = {"description": f"Tool execution requires approval\n\nTool: execute_sql\nArgs: {args}"}
    (question,) = asked(reviews, "single", SQL | told)
    out = reviews("show", question).out
    assert '  Tool execution requires approval\n\n  tool_call_id: "call_sql"\n\n  query  text' in out
    assert out.count("DELETE FROM orders") == 1


def test_description_that_only_looks_like_the_default_is_shown_whole(reviews: Program) -> None:
    told = {"description": 'Approve this\n\nTool: execute_sql\nArgs: {\n  "query": "SELECT 1"\n}'}
    (question,) = asked(reviews, "single", SQL | told)
    out = reviews("show", question).out
    assert "SELECT 1" in out
    assert "DELETE FROM orders" in out


@pytest.mark.parametrize(
    ("args", "lines"),
    [
        ({}, ["It takes no arguments."]),
        ({"a": 1, "long": True}, ["a     number  1", "long  yes/no  true"]),
        ({"a": None, "b": "5"}, ["a  nothing  null", 'b  text  "5"']),
        ({"a": {"b": [1]}}, ["a  object  {", '     "b": [', "       1", "     ]", "   }"]),
        ({"a": "x\x1b[2J\u202e"}, ['a  text  "x\\u001b[2J\\u202e"']),
        ({"a": "x\n\x1b[2J"}, ["a  text of 2 lines:", "  | x", "  | <U+001B>[2J"]),
        ({"a\nb": []}, ["a ↵ b  list  []"]),
    ],
)
def test_arguments_are_shown_with_their_types_and_nothing_in_them_acts(args: Any, lines: list[str]) -> None:
    assert list(argument_lines(args)) == lines


def test_no_argument_is_cut(reviews: Program) -> None:
    content = "x" * 100_000 + "end"
    (question,) = asked(reviews, "single", {**WRITE, "args": {"path": "a", "content": content}})
    assert content in reviews("show", question).out


def test_inbox_names_the_tool_and_its_main_argument(reviews: Program) -> None:
    asked(reviews, "single", WRITE, SQL)
    out = reviews("inbox").out
    assert 'write_file(path: "orders.csv", +1 more)' in out
    assert 'execute_sql(query: "DELETE FROM orders")' in out
    assert short_call("now", {}) == "now()"
    assert short_call("add", {"n": 1, "m": 2}) == "add(n: 1, +1 more)"


def test_many_calls_are_listed_with_the_way_to_decide(reviews: Program) -> None:
    calls = [SQL | {"id": f"c{n}", "args": {"query": f"SELECT {n}"}} for n in range(4)]
    asked(reviews, "single", *calls)
    out = reviews("continue", "t").out
    assert 'execute_sql(query: "SELECT 3")' in out
    assert "Decide with:       waitpoint approve ID   (or edit, reject, respond)\n" in out


def test_inbox_counts_the_calls_of_a_batch(reviews: Program) -> None:
    asked(reviews, "batch", WRITE, SQL)
    line = '2 calls: write_file(path: "orders.csv", +1 more); execute_sql(query: "DELETE FROM orders")'
    assert line in reviews("inbox").out
    assert line in reviews("trace", "t").out


@pytest.mark.parametrize(
    "payload",
    [
        {"tool": "send_email", "args": {"to": "ana"}, "message": "Send it?"},
        {"tool_call_id": "c1", "name": 5, "args": {}},
        {"tool_call_id": "c1", "name": "x", "args": {}, "description": None},
    ],
)
def test_payload_that_only_looks_like_an_approval_is_shown_as_any_other(reviews: Program, payload: Any) -> None:
    (question,) = asked(reviews, "byhand", payload)
    assert json.dumps({"type": "tool_approval", **payload}, indent=2) in reviews("show", question).out
    assert f"waitpoint answer {question[:8]} JSON" in reviews("inbox").out + reviews("show", question).out


def test_what_else_a_payload_says_is_shown_too(reviews: Program) -> None:
    (question,) = asked(reviews, "byhand", {"tool_call_id": "c1", "name": "x", "args": {}, "cost": "5 €"})
    out = reviews("show", question).out
    assert '  tool_call_id: "c1"\n  cost: "5 €"\n' in out


def test_effect_in_doubt_is_told_with_its_choices(reviews: Program) -> None:
    words = [WAITPOINT, "run", "doubt", "--input", '{"calls": []}', "--thread", "t"]
    killed = subprocess.run(words, cwd=reviews.folder, capture_output=True, env={**os.environ})
    assert killed.returncode != 0
    assert "Did this happen? reviews.pay(#1: 5)" in reviews("continue", "t").out
    question = reviews.the_question()
    lines = card(reviews, question)
    assert lines[0] == "Did the step reviews.pay happen? It was begun, and its end is not on record."
    assert "  #1  number  5" in lines
    assert any(line.startswith("  started_at: ") for line in lines)
    answers = [f"""  waitpoint answer {question[:8]} '{{"type": "{kind}"}}'""" for kind in CHOICES]
    told = [line for pair in zip(CHOICES.values(), answers, strict=True) for line in pair]
    assert lines[-len(told) :] == told
    assert reviews("answer", question, '{"type": "not_happened"}').code == 0
    assert log(reviews) == ["paid 5"]
