"""Inbox, show, threads and trace: what they tell, and that ids may be shortened."""

from __future__ import annotations

import json
import re
import unicodedata
from datetime import datetime

import pytest

from tests.cli.program import APPROVE, REJECT, SETTINGS, Program
from waitpoint import clock

ESCAPING = """
from typing import Any, TypedDict

from waitpoint.graph import START, StateGraph
from waitpoint.types import interrupt


class State(TypedDict, total=False):
    shown: Any
    answer: Any


def ask(state):
    return {"answer": interrupt(state["shown"])}


builder = StateGraph(State)
builder.add_node("ask", ask)
builder.add_edge(START, "ask")
graph = builder.compile(name="asking")
"""


def cells(text: str) -> int:
    """Count the columns that a terminal gives a text."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


@pytest.fixture
def asking(program: Program) -> Program:
    program.write("asking.py", ESCAPING)
    program.write("waitpoint.toml", SETTINGS.replace("[store]", 'asking = "asking:graph"\n[store]'))
    return program


def ask(program: Program, shown: object, thread: str = "t") -> str:
    done = program("run", "asking", "--input", json.dumps({"shown": shown}), "--thread", thread, "--json")
    (question,) = done.json["questions"]
    return str(question["id"])


# --- inbox ------------------------------------------------------------------------------------------------------------


def test_an_empty_inbox_says_so(program: Program) -> None:
    program.start()
    assert program("inbox").out == "Nothing waits.\n"
    assert program("inbox", "--json").json == {"questions": [], "count": 0}


def test_the_inbox_lists_what_waits_over_all_threads_oldest_first(program: Program) -> None:
    with clock.fixed(lambda: 1_000_000.0):
        program.start("x", thread="one")
    with clock.fixed(lambda: 1_000_000.0 + 60):
        program.start("y", thread="two")
    with clock.fixed(lambda: 1_000_000.0 + 3 * 3600 + 100):
        lines = program("inbox").out.splitlines()
    assert [re.split(r"  +", line)[1:] for line in lines[:3]] == [
        ["GRAPH", "THREAD", "NODE", "ASKED", "QUESTION"],
        ["release", "one", "review", "3 h", "Publish x?"],
        ["release", "two", "review", "3 h", "Publish y?"],
    ]
    listed = program("inbox", "--json").json["questions"]
    assert [q["asked_at"] for q in listed] == ["1970-01-12T13:46:40+00:00", "1970-01-12T13:47:40+00:00"]
    assert [q["thread_id"] for q in program("inbox", "--thread", "tw", "--json").json["questions"]] == ["two"]


def test_a_long_inbox_says_how_many_more_there_are(program: Program) -> None:
    program.start(*map(str, range(7)))
    out = program("inbox", "--limit", "3").out
    assert len(re.findall(r"Publish \d\?", out)) == 3
    assert "... and 4 more" in out
    document = program("inbox", "--limit", "3", "--json").json
    assert (len(document["questions"]), document["count"]) == (3, 7)


def test_columns_stay_straight_in_every_script(program: Program) -> None:
    for thread in ("plain", "线程一", "スレッド", "ｆｕｌｌ"):
        program.start("x", thread=thread)
    lines = program("inbox").out.splitlines()[:5]
    starts = {cells(line[: line.index("review")]) for line in lines[1:]}
    assert starts == {cells(lines[0][: lines[0].index("NODE")])}
    assert "线程一" in "".join(lines)


def test_what_is_piped_has_no_colours_and_no_line_is_cut(asking: Program) -> None:
    ask(asking, {"question": "long " * 200})
    out = asking("inbox").out
    assert "long " * 199 in out
    assert "\x1b" not in out
    assert not any(line.endswith(" ") for line in out.splitlines())


# --- show -------------------------------------------------------------------------------------------------------------


def test_show_gives_the_payload_the_fields_and_commands(program: Program) -> None:
    ids = program.start("文")
    out = program("show", ids["文"]).out
    assert f"Question {ids['文']}" in out
    assert '  "question": "Publish 文?"' in out
    assert re.search(r"decision +'approve' \| 'reject' +yes +Whether it may go out", out)
    assert re.search(r"note +text +no", out)
    assert f"  waitpoint answer {ids['文'][:8]} '{APPROVE}'\n" in out
    program("answer", ids["文"], REJECT, "--by", "ana", "--comment", "not yet")
    out = program("show", ids["文"]).out
    assert re.search(r"answered +\d{4}-\d\d-\d\d .*\n +by +ana\n +comment +not yet", out)
    assert '"decision": "reject"' in out
    assert "Answer with" not in out


def test_nothing_in_a_payload_can_fake_the_terminal(asking: Program) -> None:
    evil = "\x1b[2J\x1b[H[bold]ok[/bold]\u202eevil\u200b\r\n\x9b0mQuestion 1: yes\n  status   answered"
    question = ask(asking, {evil: evil}, thread="t\x1b[31m")
    for words in (["inbox"], ["show", question], ["threads"], ["trace", "t"], ["continue", "t"]):
        done = asking(*words)
        assert done.code == 0, done
        for hidden in "\x1b\u202e\u200b\r\x9b":
            assert hidden not in done.out + done.err, words
        assert "\nQuestion 1" not in done.out
        assert "\n  status   answered" not in done.out
    assert "[bold]ok[/bold]" in asking("show", question).out
    assert asking("show", question, "--json").json["value"] == {evil: evil}


@pytest.mark.parametrize(
    ("shown", "line"),
    [
        ("Send it?", "Send it?"),
        ({"message": "  Send it?  ", "x": 1}, "Send it?"),
        ({"tool": "mail", "to": ["ana"]}, 'tool: mail, to: ["ana"]'),
        ([1, None], "[1, null]"),
        (None, "null"),
        ({}, "{}"),
        ({"question": ""}, "question: "),
        ("two\nlines", "two ↵ lines"),
    ],
)
def test_a_question_in_one_line(asking: Program, shown: object, line: str) -> None:
    ask(asking, shown)
    assert asking("inbox").out.splitlines()[1].endswith(line.rstrip())


# --- ids --------------------------------------------------------------------------------------------------------------


def two_that_begin_alike(ids: list[str]) -> tuple[str, str, str]:
    """Find a beginning that exactly two ids share."""
    beginnings = {i[:length] for i in ids for length in range(1, 6)}
    for beginning in sorted(beginnings, key=len):
        match [i for i in ids if i.startswith(beginning)]:
            case [one, other]:
                return beginning, one, other
    raise AssertionError(ids)


def test_ids_may_be_shortened_while_only_one_fits(program: Program) -> None:
    ids = list(program.start(*map(str, range(40))).values())
    beginning, one, other = two_that_begin_alike(ids)
    assert program("show", one[:16].upper(), "--json").json["id"] == one
    text = program("show", beginning).refused(2)
    assert f"'{beginning}' is the beginning of several questions" in text
    assert one in text
    assert other in text
    for unknown in ("zzzz", "", one + "0", "%", "_"):
        assert "Unknown question" in program("answer", unknown, APPROVE).refused(2)


def test_a_settled_question_counts_when_an_id_is_shortened(program: Program) -> None:
    """An id typed from an old listing must not answer another question that begins alike."""
    ids = list(program.start(*map(str, range(40))).values())
    beginning, one, other = two_that_begin_alike(ids)
    program("answer", one, REJECT)
    assert "several questions" in program("answer", beginning, REJECT).refused(2)
    assert program("show", other, "--json").json["status"] == "open"


def test_threads_may_be_shortened_too(program: Program) -> None:
    program.start("x", thread="alpha")
    program.start("x", thread="alphabet")
    program.start("x", thread="beta")
    assert program("trace", "b", "--json").json["thread_id"] == "beta"
    assert program("trace", "alpha", "--json").json["thread_id"] == "alpha", "a whole id is never ambiguous"
    assert "several threads: 'alpha', 'alphabet'" in program("continue", "alph").refused(2)
    for unknown in ("gamma", "", "%"):
        assert "Unknown thread" in program("continue", unknown).refused(2)


def test_one_id_in_two_graphs_needs_the_flag(asking: Program) -> None:
    asking.start("x", thread="t")
    ask(asking, "why?", thread="t")
    assert "exists in several graphs: 'asking', 'release'" in asking("trace", "t").refused(2)
    assert asking("trace", "t", "--graph", "asking", "--json").json["graph"] == "asking"
    assert asking("continue", "t", "--graph", "release", "--json").json["graph"] == "release"
    assert "none of that id of graph 'third'" in asking("trace", "t", "--graph", "third").refused(2)


# --- threads and trace ------------------------------------------------------------------------------------------------


def test_threads_are_listed_with_their_state(program: Program) -> None:
    assert program("run", "release", "--input", '{"parts": []}', "--thread", "done").code == 0
    program.start("x", "y", thread="waits")
    ids = program.start("broken", thread="fails")
    program("answer", ids["broken"], APPROVE)
    rows = {t["thread_id"]: t for t in program("threads", "--json").json["threads"]}
    assert {name: row["status"] for name, row in rows.items()} == {
        "done": "idle",
        "waits": "waiting",
        "fails": "failed",
    }
    assert (rows["waits"]["questions"], rows["fails"]["questions"]) == (2, 0)
    assert "cannot publish" in rows["fails"]["error"]
    assert datetime.fromisoformat(rows["done"]["updated_at"]).tzinfo is not None
    out = program("threads").out.splitlines()
    assert len(out) == 4
    assert out[1].startswith("fails  ")
    assert "There are more" in program("threads", "--limit", "2").out
    assert "There are more" not in program("threads", "--limit", "3").out


def test_a_trace_tells_what_happened_in_order(program: Program) -> None:
    times = iter(range(1_000_000, 2_000_000))
    with clock.fixed(lambda: float(next(times))):
        ids = program.start("x", "y")
        program("answer", ids["x"], APPROVE, "--by", "ana", "--comment", "fine")
        program("withdraw", ids["y"], "--reason", "not needed", "--no-run")
    entries = program("trace", "t", "--json").json["entries"]
    assert [e["at"] for e in entries] == sorted(e["at"] for e in entries)
    kinds = [e["kind"] for e in entries]
    order = ["started", "asked", "paused", "answered", "continued", "effect done", "withdrawn"]
    assert [k for k in dict.fromkeys(kinds) if k in order] == order
    answered = next(e for e in entries if e["kind"] == "answered")
    assert (answered["question"], answered["by"], answered["comment"]) == (ids["x"], "ana", "fine")
    out = program("trace", "t").out
    assert re.search(rf"asked +review +{ids['x'][:8]} Publish x\?", out)
    assert re.search(rf"answered +review +{ids['x'][:8]} {APPROVE} by ana \(fine\)", out)
    assert re.search(r"effect done +review +flow\.publish", out)
    assert re.search(rf"withdrawn +review +{ids['y'][:8]} not needed", out)


def test_a_trace_tells_what_graphs_inside_nodes_did(others: Program) -> None:
    others("run", "nested", "--input", '{"count": 1}', "--thread", "t")
    for _ in range(2):
        assert "calls_two > inner" in others("show", others.the_question()).out
        others("answer", others.the_question(), "5")
    entries = others("trace", "t", "--json").json["entries"]
    assert [e["where"] for e in entries if e["kind"] == "node done"] == [
        "first",
        "calls_two > inner",
        "calls_two > inner",
        "calls_two",
    ]
    assert [e["where"] for e in entries if e["kind"] == "asked"] == ["calls_two > inner"] * 2


def test_a_trace_tells_what_graphs_with_a_memory_did_once(others: Program) -> None:
    for run in (1, 2):
        others("run", "remembered", "--input", '{"count": 1}', "--thread", "t")
        for _ in range(2):
            assert "remembers > inner" in others("show", others.the_question()).out
            others("answer", others.the_question(), "5")
        entries = others("trace", "t", "--json").json["entries"]
        done = [e["where"] for e in entries if e["kind"] == "node done"]
        assert done == ["first", "remembers > inner", "remembers > inner", "remembers"] * run
