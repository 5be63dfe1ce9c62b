"""A script is one program, started as such or imported: questions keep their places between the two."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import os
from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.graph import START, StateGraph
from waitpoint.types import Command, interrupt

def body(state):
    if "SKIP" not in os.environ:
        interrupt("the same words")
    return {"answer": interrupt("the same words")}

saver = SqliteSaver("threads.db")
graph = StateGraph(dict).add_node(body).add_edge(START, "body").compile(checkpointer=saver)
thread = {"configurable": {"thread_id": "1"}}

if __name__ == "__main__":
    graph.invoke({}, thread)
"""
IMPORTED = """
import program
first = program.graph.invoke(program.Command(resume="for the first"), program.thread)
assert len(first["__interrupt__"]) == 1, first
print(program.graph.invoke(program.Command(resume="for the second"), program.thread)["answer"])
"""


def test_an_answer_given_to_a_script_does_not_move_when_the_script_is_imported(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    run = [sys.executable]
    subprocess.run([*run, "program.py"], cwd=tmp_path, check=True)
    skipping = {"PYTHONPATH": str(tmp_path), "SKIP": "1"}
    said = subprocess.run(
        [*run, "-c", IMPORTED], cwd=tmp_path, env=skipping, check=True, capture_output=True, text=True
    )
    assert said.stdout.split() == ["for", "the", "second"]
