"""The command line beside other processes: stopped, killed, in a pipe, after a script; nothing is lost or done twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.program import APPROVE, FLOW, Program
from waitpoint.checkpoint.base import ThreadKey
from waitpoint.checkpoint.sqlite import SqliteSaver

WAITPOINT = str(Path(sys.executable).with_name("waitpoint"))


# --- Ctrl-C -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("graph", ["stopped", "stopped_async"])
def test_ctrl_c_says_how_to_go_on(others: Program, graph: str) -> None:
    done = others("run", graph, "--input", '{"count": 1}', "--thread", "t")
    assert (done.code, done.out) == (130, "")
    assert done.err == "Stopped. Thread t is ready to be continued with:  waitpoint continue t\n"
    assert others("threads", "--json").json["threads"][0]["status"] == "ready"
    done = others("continue", "t", "--json")
    assert done.json["output"] == {"count": 100}


def test_ctrl_c_has_a_document_too(others: Program) -> None:
    done = others("run", "stopped", "--input", '{"count": 1}', "--thread", "t", "--json")
    assert done.code == 130
    assert done.json["status"] == "ready"
    assert done.json["error"]["code"] == "stopped"


def test_a_node_that_ends_the_process_is_a_failed_one(others: Program) -> None:
    done = others("run", "leaving", "--input", '{"count": 1}', "--thread", "t")
    assert "A node ended the process (SystemExit: 7). Thread t is ready to be continued" in done.refused(4)


# --- other processes --------------------------------------------------------------------------------------------------


@contextmanager
def running_elsewhere(program: Program, *words: str) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Run a command in another process until its node `gate` says that it runs; it waits for a writer of the fifo."""
    gate = program.folder / "gate"
    if not gate.exists():
        os.mkfifo(gate)
    process = subprocess.Popen([WAITPOINT, *words], cwd=program.folder, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    try:
        yield process, gate
    finally:
        process.kill()
        process.communicate()


def test_a_thread_that_another_process_runs_is_left_alone(others: Program) -> None:
    given = json.dumps({"gate": str(others.folder / "gate")})
    with running_elsewhere(others, "run", "gated", "--input", given, "--thread", "t") as (process, gate):
        assert "is running and takes no new input" in others("run", "gated", "--input", given, "--thread", "t").refused(
            3
        )
        assert "is being run by another process" in others("continue", "t").refused(3)
        gate.write_text("")
        out, _ = process.communicate(timeout=30)
        assert process.returncode == 0
        assert "Thread t is done" in out


def test_a_thread_whose_process_was_killed_is_shown_as_stopped_and_goes_on(others: Program) -> None:
    given = json.dumps({"gate": str(others.folder / "gate")})
    with running_elsewhere(others, "run", "gated", "--input", given, "--thread", "t") as (process, _):
        assert others("threads", "--json").json["threads"][0]["status"] == "running"
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert others("threads", "--json").json["threads"][0]["status"] == "stopped"
        with running_elsewhere(others, "continue", "t") as (again, gate):
            gate.write_text("")
            out, _ = again.communicate(timeout=30)
            assert "Thread t is done" in out


def test_a_thread_run_as_a_script_goes_on_from_the_command_line_and_no_effect_happens_twice(program: Program) -> None:
    """What a script calls `__main__.publish` is `flow.publish` to an importer; the record must fit both."""
    program.write(
        "flow.py",
        FLOW.replace('return f"published {part}"', 'open("published", "a").write(part)\n    return f"published {part}"')
        + """
def last(state):
    import os, signal
    if not os.path.exists("killed"):
        open("killed", "w")
        os.kill(os.getpid(), signal.SIGKILL)
    return {"log": ["end"]}


def publish_all(state):
    done = [step(publish, part) for part in state["parts"]]
    last(state)
    return {"log": done}


alone = StateGraph(State)
alone.add_node("publish_all", publish_all)
alone.add_edge(START, "publish_all")
alone = alone.compile(name="alone")

if __name__ == "__main__":
    from waitpoint.checkpoint.sqlite import SqliteSaver

    alone.bound(SqliteSaver("threads.db")).invoke({"parts": ["x", "y"]}, {"configurable": {"thread_id": "t"}})
""",
    )
    killed = subprocess.run([sys.executable, "flow.py"], cwd=program.folder)
    assert killed.returncode == -signal.SIGKILL
    assert (program.folder / "published").read_text() == "xy"
    done = program("continue", "t", "--graph", "flow:alone", "--json")
    assert done.json["output"]["log"] == ["published x", "published y"]
    assert (program.folder / "published").read_text() == "xy"


def test_the_installed_program_answers_a_question_of_another_process(program: Program) -> None:
    ids = program.start("文")
    done = subprocess.run(
        [WAITPOINT, "answer", ids["文"], "-"], cwd=program.folder, input=APPROVE, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "published 文" in done.stdout


def test_a_reader_that_leaves_early_is_no_error(program: Program) -> None:
    program.start(*map(str, range(40)))
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [WAITPOINT, "inbox"], cwd=program.folder, stdout=write, stderr=subprocess.PIPE, text=True, timeout=30
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_state_is_that_of_the_thread(program: Program) -> None:
    ids = program.start("x")
    program("answer", ids["x"], APPROVE)
    with SqliteSaver(program.folder / "threads.db") as saver:
        row = saver.thread(ThreadKey("t", "release"))
        assert row is not None
        assert row.status == "idle"
