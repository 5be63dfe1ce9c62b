"""Decisions on tool calls from the command line: approve, edit, reject, respond, decide; refused ones change nothing."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Program
from tests.cli.reviews import SQL, WRITE, asked, install, log, set_editor


@pytest.fixture
def reviews(program: Program) -> Program:
    install(program)
    return program


def edited(**args: Any) -> dict[str, Any]:
    return {"type": "edit", "edited_action": {"name": "write_file", "args": args}}


# --- one call ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "decision"),
    [
        (["approve"], {"type": "approve"}),
        (["reject"], {"type": "reject"}),
        (["reject", "--reason", "Not today."], {"type": "reject", "message": "Not today."}),
        (["respond", "Saved it myself."], {"type": "respond", "message": "Saved it myself."}),
        (["edit", "--set", "path=5"], edited(path="5", content=WRITE["args"]["content"])),
        (
            ["edit", "--set", "mode=5", "--set", "path=a=b"],
            edited(path="a=b", content=WRITE["args"]["content"], mode=5),
        ),
        (["edit", "--args", '{"path": "a", "content": ""}'], edited(path="a", content="")),
        (["edit", "--args", '{"path": "a", "content": ""}', "--set", "content=文"], edited(path="a", content="文")),
        (["decide", "1=reject:too soon"], {"type": "reject", "message": "too soon"}),
    ],
)
def test_decision_is_recorded_and_the_thread_goes_on(reviews: Program, words: list[str], decision: Any) -> None:
    (question,) = asked(reviews, "single", WRITE)
    command, *rest = words
    done = reviews(command, question[:8], *rest, "--by", "ana", "--comment", "seen")
    assert done.code == 0, done.err
    assert done.err == f"Recorded the {'decisions' if command == 'decide' else 'decision'} to {question[:8]}.\n"
    assert json.loads(done.out.partition("\n")[2])["log"] == [decision]
    shown = reviews("show", question, "--json").json
    assert (shown["answer"], shown["by"], shown["comment"]) == (decision, "ana", "seen")


def test_decision_can_be_recorded_for_someone_else_to_run(reviews: Program) -> None:
    (question,) = asked(reviews, "single", WRITE)
    done = reviews("approve", question, "--no-run")
    assert "Recorded. Thread t goes on with:  waitpoint continue t" in done.out
    assert reviews("threads", "--json").json["threads"][0]["status"] == "ready"
    assert log(reviews) == [{"type": "approve"}]


def test_answered_calls_go_on_while_others_wait(reviews: Program) -> None:
    write, sql = asked(reviews, "single", WRITE, SQL)
    done = reviews("approve", write)
    assert f"{sql[:8]}  review: execute_sql(query: " in done.out
    reviews("reject", sql, "--reason", "Archive first.")
    assert {"type": "reject", "message": "Archive first."} in log(reviews)


@pytest.mark.parametrize("command", ["approve", "edit", "reject"])
def test_second_decision_is_refused_and_told_who_was_first(
    reviews: Program, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_editor(monkeypatch, reviews, "exit 9")
    (question,) = asked(reviews, "single", WRITE)
    reviews("approve", question, "--by", "ana")
    assert "was answered by 'ana'" in reviews(command, question).refused(3)


def test_question_that_is_about_no_call_is_left_to_answer(program: Program) -> None:
    ids = program.start("x")
    told = program("approve", ids["x"]).refused(2)
    assert "asks for no decision on a tool call; answer it with:  waitpoint answer" in told


def test_commands_that_are_offered_work(reviews: Program) -> None:
    (question,) = asked(reviews, "single", WRITE)
    commands = reviews("show", question, "--json").json["commands"]
    assert commands == [
        f"waitpoint approve {question}",
        f"waitpoint edit {question}",
        f"waitpoint reject {question} --reason TEXT",
        f"waitpoint respond {question} TEXT",
    ]
    assert reviews(*commands[3].split()[1:]).code == 0
    assert log(reviews) == [{"type": "respond", "message": "TEXT"}]


def test_approval_that_was_asked_by_hand_takes_the_same_decisions(reviews: Program) -> None:
    by_hand = {"tool_call_id": "c1", "name": "write_file", "args": {"path": "a"}}
    (question,) = asked(reviews, "byhand", by_hand)
    assert reviews("edit", question, "--set", "path=b").code == 0
    assert log(reviews) == [edited(path="b")]


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["edit"], 3, "does not match any of the expected tags: 'approve', 'reject'"),
        (["respond", "done"], 3, "Input tag 'respond' found"),
        (["decide", "1=edit:{}"], 3, "Input tag 'edit' found"),
        (["reject", "--reason", "  "], 2, "The reason of --reason is empty"),
        (["approve", "--call", "2"], 2, "Call 2 was given, which is no call of it"),
        (["approve", "--call", "1", "--call", "1"], 2, "Call 1 was given, twice"),
        (["approve", "--call", "1", "--all"], 2, "--all and --call were both given"),
        (["decide", "1=maybe"], 2, "'1=maybe' is no decision on a call; write N=approve"),
        (["decide", "1=approve:yes"], 2, "'1=approve' takes no text"),
        (["decide", "1=approve", "1=reject"], 2, "Call 1 was given two decisions"),
        (["decide", "2=approve"], 2, "Call 2 was given, which is no call of it"),
    ],
)
def test_wrong_decision_is_one_sentence_and_changes_nothing(
    reviews: Program, words: list[str], code: int, says: str
) -> None:
    (question,) = asked(reviews, "single", SQL)
    before = reviews.state()
    command, *rest = words
    assert says in reviews(command, question, *rest).refused(code)
    assert reviews.state() == before


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--args", '{"path": "a"}'], 3, "edit.edited_action.args.content: Field required"),
        (["--set", "mode=high"], 3, 'edit.edited_action.args.mode: the answer is not of type "integer"'),
        (["--args", "[1]"], 2, "have to be a JSON object"),
        (["--args", "{path: a}"], 2, "--args is not JSON"),
        (["--set", "path"], 2, "--set 'path' names no argument and value"),
        (["--set", "pth=a"], 2, "'write_file' has no argument 'pth'; it has 'path', 'content', 'mode'"),
        (["--set", "path=orders.csv"], 2, "are what they were, so nothing was stored"),
    ],
)
def test_wrong_edit_is_one_sentence_and_changes_nothing(
    reviews: Program, words: list[str], code: int, says: str
) -> None:
    (question,) = asked(reviews, "single", WRITE)
    before = reviews.state()
    assert says in reviews("edit", question, *words).refused(code)
    assert reviews.state() == before


# --- the editor -------------------------------------------------------------------------------------------------------


def test_edit_opens_the_arguments_in_the_editor(reviews: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    (question,) = asked(reviews, "single", WRITE)
    set_editor(monkeypatch, reviews, 'cp "$1" seen.json', 'sed -i s/orders/archive/ "$1"', 'echo "$1" > name')
    assert reviews("edit", question).code == 0
    assert json.loads((reviews.folder / "seen.json").read_text()) == WRITE["args"]
    assert log(reviews) == [edited(path="archive.csv", content=WRITE["args"]["content"])]
    assert not Path((reviews.folder / "name").read_text().strip()).exists()


def test_ctrl_c_in_the_editor_is_the_editors(reviews: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    (question,) = asked(reviews, "single", WRITE)
    set_editor(monkeypatch, reviews, "kill -INT $PPID", 'sed -i s/orders/archive/ "$1"')
    handler = signal.getsignal(signal.SIGINT)
    assert reviews("edit", question).code == 0
    assert signal.getsignal(signal.SIGINT) is handler
    assert log(reviews) == [edited(path="archive.csv", content=WRITE["args"]["content"])]


def test_arguments_that_were_left_alone_are_no_edit(reviews: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    (question,) = asked(reviews, "single", WRITE)
    before = reviews.state()
    set_editor(monkeypatch, reviews, 'echo "$1" > name')
    assert "are what they were, so nothing was stored; `approve`" in reviews("edit", question).refused(2)
    assert reviews.state() == before
    assert not Path((reviews.folder / "name").read_text().strip()).exists()


def test_text_that_is_no_json_is_kept_for_another_try(reviews: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    (question,) = asked(reviews, "single", WRITE)
    before = reviews.state()
    set_editor(monkeypatch, reviews, 'echo \'{"path": "b", \' > "$1"')
    told = reviews("edit", question).refused(2)
    assert "is not JSON" in told
    assert "nothing was stored; mend" in told
    assert reviews.state() == before
    (name,) = re.findall(r"--args @(\S+)$", told)
    path = Path(name)
    path.write_text('{"path": "b", "content": "c"}')
    assert reviews("edit", question, "--args", f"@{path}").code == 0
    path.unlink()


def test_edit_that_is_refused_is_kept_for_another_try(reviews: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    (question,) = asked(reviews, "single", WRITE)
    set_editor(monkeypatch, reviews, 'echo \'{"path": "b"}\' > "$1"')
    done = reviews("edit", question)
    assert done.code == 3
    kept, told = done.err.splitlines()
    assert "edit.edited_action.args.content: Field required" in told
    path = Path(kept.rpartition("@")[2])
    assert json.loads(path.read_text()) == {"path": "b"}
    path.unlink()


@pytest.mark.parametrize(
    ("editor", "says"), [("false", "ended with code 1"), ("/no/such/editor", "cannot be started"), ("", "set EDITOR")]
)
def test_editor_that_fails_stores_nothing(
    reviews: Program, monkeypatch: pytest.MonkeyPatch, editor: str, says: str
) -> None:
    (question,) = asked(reviews, "single", WRITE)
    monkeypatch.setenv("EDITOR", editor)
    monkeypatch.delenv("VISUAL", raising=False)
    assert says in reviews("edit", question).refused(2)
    assert reviews.the_question() == question


# --- several calls of one question ------------------------------------------------------------------------------------


def test_all_calls_can_be_decided_alike(reviews: Program) -> None:
    (question,) = asked(reviews, "batch", WRITE, SQL)
    assert reviews("reject", question, "--all", "--reason", "Not now.").code == 0
    assert log(reviews) == [{"type": "reject", "message": "Not now."}] * 2


def test_each_call_can_be_named(reviews: Program) -> None:
    (question,) = asked(reviews, "batch", WRITE, SQL)
    assert reviews("approve", question, "--call", "2", "--call", "1").code == 0
    assert log(reviews) == [{"type": "approve"}] * 2


def test_calls_can_be_decided_each_in_its_own_way(reviews: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    (question,) = asked(reviews, "batch", WRITE, SQL, WRITE | {"id": "c3"}, WRITE | {"id": "c4"})
    set_editor(monkeypatch, reviews, 'sed -i s/orders/archive/ "$1"')
    words = ["2=reject: too late", "1=edit", "4=respond:Done.", '3=edit:{"path": "x", "content": "y"}']
    assert reviews("decide", question, *words).code == 0
    assert log(reviews) == [
        edited(path="archive.csv", content=WRITE["args"]["content"]),
        {"type": "reject", "message": "too late"},
        edited(path="x", content="y"),
        {"type": "respond", "message": "Done."},
    ]


def test_single_call_of_a_batch_needs_no_number(reviews: Program) -> None:
    (question,) = asked(reviews, "batch", SQL)
    assert reviews("approve", question).code == 0
    assert log(reviews) == [{"type": "approve"}]


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["approve"], 2, "asks about 2 calls and one answer decides on all, but calls 1, 2 have no decision"),
        (
            ["approve", "--call", "2"],
            2,
            "but call 1 has no decision; give --all, or a decision for each:  waitpoint decide",
        ),
        (["decide", "1=approve"], 2, "but call 2 has no decision"),
        (["decide", "1=approve", "2=approve", "3=approve"], 2, "Call 3 was given, which is no call of it"),
        (["respond", "x", "--all"], 3, "decision on 'execute_sql'"),
        (["decide", "1=respond", "2=approve"], 2, "'1=respond' says nothing"),
        (["decide", "1=edit:{}", "2=approve"], 3, "decisions[0].edit.edited_action.args.path: Field required"),
    ],
)
def test_answer_that_does_not_decide_on_all_calls_is_refused(
    reviews: Program, words: list[str], code: int, says: str
) -> None:
    (question,) = asked(reviews, "batch", WRITE, SQL)
    before = reviews.state()
    command, *rest = words
    assert says in reviews(command, question, *rest).refused(code)
    assert reviews.state() == before


def test_batched_answer_as_json_is_refused_in_the_known_words(reviews: Program) -> None:
    (question,) = asked(reviews, "batch", WRITE, SQL)
    told = reviews("answer", question, '{"decisions": [{"type": "approve"}]}').refused(3)
    assert "Number of human decisions (1) does not match number of hanging tool calls (2)." in told
    told = reviews("answer", question, '{"decisions": [{"type": "approve"}, {"type": "edit"}]}').refused(3)
    assert "Expected one of ['approve', 'reject'] based on the tool's configuration." in told
