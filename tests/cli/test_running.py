"""Running threads from the command line: run, answer, withdraw, continue; and how each kind of end is told."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any, TypedDict

import pytest

from tests.cli.program import APPROVE, FLOW, REJECT, Program
from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.engine import answers
from waitpoint.graph import START, StateGraph
from waitpoint.types import interrupt

WAITPOINT = str(Path(sys.executable).with_name("waitpoint"))


class Asked(TypedDict):
    x: int


# --- run --------------------------------------------------------------------------------------------------------------


def test_a_run_without_questions_prints_the_output(program: Program) -> None:
    done = program("run", "release", "--input", '{"parts": [], "log": ["文"]}', "--thread", "t")
    assert (done.code, done.err) == (0, "")
    head, _, output = done.out.partition("\n")
    assert head == "Thread t is done:"
    assert json.loads(output) == {"parts": [], "log": ["文"]}
    assert "文" in output


def test_a_run_that_waits_prints_what_waits_and_commands_that_work(program: Program) -> None:
    done = program("run", "release", "--input", '{"parts": ["x", "文"]}', "--thread", "t")
    assert done.code == 0
    assert "Thread t waits for 2 answers:" in done.out
    assert "review: Publish 文?" in done.out
    lines = [line.strip() for line in done.out.splitlines() if '"approve"' in line]
    assert len(lines) == 2
    for line in lines:
        assert program(*shlex.split(line)[1:]).code == 0
    assert program("threads", "--json").json["threads"][0]["status"] == "idle"


def test_a_thread_without_a_name_gets_one_that_is_told(program: Program) -> None:
    done = program("run", "release", "--input", '{"parts": ["x"]}')
    name = done.err.removeprefix("Thread ").strip()
    assert name.startswith("release-")
    assert f"Thread {name} waits" in done.out
    document = program("run", "release", "--input", '{"parts": ["x"]}', "--json").json
    assert document["thread_id"].startswith("release-")
    assert document["thread_id"] != name


def test_the_document_of_a_run_has_all_that_a_program_needs(program: Program) -> None:
    done = program("run", "release", "--input", '{"parts": ["x"]}', "--thread", "t", "--json")
    document = done.json
    assert done.err == ""
    assert {k: document[k] for k in ("thread_id", "graph", "status", "next")} == {
        "thread_id": "t",
        "graph": "release",
        "status": "waiting",
        "next": [],
    }
    (question,) = document["questions"]
    assert question["value"] == {"question": "Publish x?", "part": "x"}
    assert question["response_schema"]["required"] == ["decision"]
    assert question["commands"][0] == f"waitpoint answer {question['id']} '{APPROVE}'"


def test_what_nodes_print_stays_out_of_the_document(program: Program) -> None:
    ids = program.start("x")
    done = program("answer", ids["x"], APPROVE, "--json")
    assert done.json["output"] == {"parts": ["x"], "log": ["published x"]}
    assert done.err == "publishing x\n"


@pytest.mark.parametrize("given", ["5", "[]", '"x"', '{"unknown": 1}', "null", "{}"])
def test_an_input_that_the_graph_cannot_use_stores_nothing(program: Program, given: str) -> None:
    done = program("run", "release", "--input", given, "--thread", "t")
    if done.code != 4:  # a node may fail on it; otherwise it is one sentence
        done.refused(2)
        assert program("threads", "--json").json["threads"] == []


def test_new_input_on_a_waiting_thread_is_refused(program: Program) -> None:
    program.start("x")
    before = program.state()
    done = program("run", "release", "--input", '{"parts": ["y"]}', "--thread", "t")
    assert "waits for answers" in done.refused(3)
    assert program.state() == before


def test_a_finished_thread_takes_new_input(program: Program) -> None:
    program.start(thread="t")
    assert "x" in program.start("x", thread="t")


# --- answer -----------------------------------------------------------------------------------------------------------


def test_an_answer_runs_the_thread_to_its_next_rest(program: Program) -> None:
    ids = program.start("x", "y")
    one = program("answer", ids["x"], APPROVE, "--by", "ana", "--comment", "fine")
    assert one.code == 0
    assert f"Recorded the answer to {ids['x'][:8]}." in one.err
    assert "Publish y?" in one.out
    two = program("answer", ids["y"][:12], REJECT)
    assert two.code == 0
    assert json.loads(two.out.partition("\n")[2])["log"] == ["published x", "kept y"]
    question = program("show", ids["x"], "--json").json
    assert (question["by"], question["comment"], question["answer"]) == ("ana", "fine", {"decision": "approve"})


def test_an_answer_is_signed_with_the_users_name_if_no_other_is_given(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "berta")
    ids = program.start("x")
    program("answer", ids["x"], APPROVE)
    assert program("show", ids["x"], "--json").json["by"] == "berta"


def test_a_second_answer_is_refused_and_names_the_first(program: Program) -> None:
    ids = program.start("x", "y")
    program("answer", ids["x"], APPROVE, "--by", "ana")
    before = program.state()
    text = program("answer", ids["x"], REJECT).refused(3)
    assert f"{ids['x']} was answered by 'ana' at " in text
    assert text.endswith("the first answer stands")
    assert program.state() == before


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ('{"decision": "maybe"}', "decision: "),
        ("{}", "decision: Field required"),
        ('"approve"', 'is not of type "object"'),
        ('{"decision": "approve", "note": 5}', "note: "),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_and_changes_nothing(program: Program, given: str, says: str) -> None:
    ids = program.start("x")
    before = program.state()
    text = program("answer", ids["x"], given).refused(3)
    assert says in text
    assert "nothing was stored" in text
    assert program.state() == before


def test_json_that_is_none_is_told_before_anything_happens(program: Program) -> None:
    ids = program.start("x")
    before = program.state()
    assert "The answer is not JSON" in program("answer", ids["x"], "approve").refused(2)
    assert program.state() == before


def test_a_negative_number_needs_a_pair_of_dashes(others: Program) -> None:
    others("run", "async_asks", "--input", '{"count": 1}', "--thread", "t")
    question = others.the_question()
    assert "put -- before an answer that begins with a minus" in others("answer", question, "-5").refused(2)
    assert others("answer", question, "--json", "--", "-5").json["output"] == {"count": -5}


def test_lines_to_type_work_for_names_that_look_like_options(others: Program) -> None:
    done = others("run", "breaks", "--input", '{"count": 1}', "--thread=--help")
    line = done.out.partition("with:")[2].strip()
    assert line == "waitpoint continue -- --help"
    assert "waits for an answer" in others(*shlex.split(line)[1:]).out


def test_an_answer_may_come_from_a_file(program: Program) -> None:
    ids = program.start("x")
    program.write("answer.json", APPROVE)
    assert program("answer", ids["x"], "@answer.json").code == 0


def test_no_run_only_records_and_continue_acts(program: Program) -> None:
    ids = program.start("x")
    done = program("answer", ids["x"], APPROVE, "--no-run")
    assert (done.code, done.err) == (0, "")
    assert "Recorded. Thread t goes on with:  waitpoint continue t" in done.out
    assert program("threads", "--json").json["threads"][0]["status"] == "ready"
    document = program("continue", "t", "--json").json
    assert document["status"] == "done"
    assert document["output"]["log"] == ["published x"]


def test_no_run_needs_no_graph(program: Program) -> None:
    ids = program.start("x")
    program.write("flow.py", "broken =\n")
    done = program("answer", ids["x"], APPROVE, "--no-run", "--json")
    assert done.json["recorded"] == "answer"
    assert done.json["status"] == "ready"


def test_an_answer_that_the_graphs_own_check_refuses_leaves_the_question_open(others: Program) -> None:
    others("run", "evens", "--input", '{"count": 0}', "--thread", "t")
    question = others.the_question()
    text = others("answer", question, '{"value": 3}', "--json")
    assert text.code == 3
    assert "that is odd" in text.json["error"]["message"]
    assert others.the_question() == question
    assert others("answer", question, '{"value": 4}').code == 0


# --- withdraw ---------------------------------------------------------------------------------------------------------


def test_withdrawing_tells_the_graph_why(others: Program) -> None:
    others("run", "withdrawn", "--input", '{"count": 0}', "--thread", "t")
    question = others.the_question()
    done = others("withdraw", question, "--reason", "no longer needed", "--by", "ana", "--json")
    assert done.json["output"]["gate"] == "no longer needed"
    shown = others("show", question, "--json").json
    assert (shown["status"], shown["reason"], shown["by"]) == ("withdrawn", "no longer needed", "ana")
    assert "was withdrawn: no longer needed" in others("answer", question, "1").refused(3)
    assert "was withdrawn" in others("withdraw", question, "--reason", "again").refused(3)


def test_a_withdrawal_needs_a_reason(others: Program) -> None:
    others("run", "withdrawn", "--input", '{"count": 0}', "--thread", "t")
    question = others.the_question()
    assert "Missing option '--reason'" in others("withdraw", question).refused(2)
    assert "--reason is empty" in others("withdraw", question, "--reason", " ").refused(2)
    assert others.the_question() == question


def test_a_withdrawal_may_be_only_recorded(others: Program) -> None:
    others("run", "withdrawn", "--input", '{"count": 0}', "--thread", "t")
    done = others("withdraw", others.the_question(), "--reason", "why not", "--no-run")
    assert "waitpoint continue t" in done.out
    assert others("continue", "t", "--json").json["output"]["gate"] == "why not"


# --- continue ---------------------------------------------------------------------------------------------------------


def test_continue_goes_past_a_breakpoint(others: Program) -> None:
    done = others("run", "breaks", "--input", '{"count": 1}', "--thread", "t")
    assert done.out == "Thread t stopped before told; go on with:  waitpoint continue t\n"
    assert others("continue", "t", "--json").json["status"] == "waiting"


def test_an_answer_at_a_breakpoint_does_not_stop_there_again(others: Program) -> None:
    others("run", "breaks", "--input", '{"count": 1}', "--thread", "t")
    others("continue", "t")
    done = others("answer", others.the_question(), "7", "--json")
    assert done.json["status"] == "done"
    assert done.json["output"] == {"count": 7}


def test_recorded_answers_pass_the_breakpoint_of_their_step(tmp_path: Path) -> None:
    def ask(state: dict[str, Any]) -> dict[str, Any]:
        return {"x": interrupt("?")}

    graph = StateGraph(Asked)
    graph.add_node("ask", ask)
    graph.add_edge(START, "ask")
    with SqliteSaver(tmp_path / "t.db") as saver:
        runner = graph.compile(checkpointer=saver, interrupt_before=["ask"])
        config = {"configurable": {"thread_id": "t"}}
        runner.invoke({"x": 1}, config)
        assert "__interrupt__" in runner.invoke(None, config)
        (question,) = saver.pending()
        answers.answer(saver, question.id, 5)
        assert runner.invoke(None, config) == {"x": 5}


def test_continue_on_a_thread_that_waits_or_is_done_changes_nothing(program: Program) -> None:
    ids = program.start("x")
    before = program.state()
    assert "waits for an answer" in program("continue", "t").out
    assert program.state() == before
    program("answer", ids["x"], APPROVE)
    before = program.state()
    assert "Thread t is done" in program("continue", "t").out
    assert program.state() == before


def test_coroutine_nodes_run_too(others: Program) -> None:
    others("run", "async_asks", "--input", '{"count": 1}', "--thread", "t")
    assert others("answer", others.the_question(), "7", "--json").json["output"] == {"count": 7}


# --- a node fails -----------------------------------------------------------------------------------------------------


def test_a_failed_node_is_told_in_one_sentence_and_the_thread_goes_on_when_mended(program: Program) -> None:
    ids = program.start("x", "broken")
    program("answer", ids["x"], APPROVE)
    done = program("answer", ids["broken"], APPROVE)
    assert (done.code, done.out) == (4, "publishing broken\n")
    recorded, told = done.err.splitlines()
    assert recorded.startswith("Recorded")
    assert told == (
        "Node 'review' failed - ValueError: cannot publish <U+001B>[31mthis ↵ at all - thread t is kept; "
        "mend the cause, then:  waitpoint continue t"
    )
    assert program("threads", "--json").json["threads"][0]["status"] == "failed"
    program.write("flow.py", FLOW.replace('part == "broken"', 'part == "gone"'))
    done = program("continue", "t", "--json")
    assert done.code == 0
    assert done.json["output"]["log"] == ["published x", "published broken"]


def test_a_failed_node_has_a_document_and_its_traceback_comes_only_when_wanted(program: Program) -> None:
    ids = program.start("broken")
    done = program("answer", ids["broken"], APPROVE, "--json")
    assert done.code == 4
    assert done.json["error"] == {
        "code": "ValueError",
        "message": "ValueError: cannot publish \x1b[31mthis\nat all",
        "node": "review",
    }
    assert "Traceback" not in done.err
    again = program("continue", "t", "--traceback")
    assert again.code == 4
    assert "Traceback" in again.err
    assert 'raise ValueError("cannot publish' in again.err
    assert "\x1b" not in again.err
