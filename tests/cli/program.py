"""The command line in this process: as quick as a call, and nothing of it stays behind."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from waitpoint.cli import main

SETTINGS = """
[graphs]
release = "flow:graph"

[store]
url = "sqlite:///threads.db"
"""

FLOW = '''
"""A release that several people decide on."""

import operator
from typing import Annotated, Literal, TypedDict

from pydantic import BaseModel, Field

from waitpoint.graph import END, START, StateGraph
from waitpoint.types import Send, interrupt, step


class Decision(BaseModel):
    decision: Literal["approve", "reject"] = Field(description="Whether it may go out")
    note: str = ""


class State(TypedDict, total=False):
    parts: list[str]
    log: Annotated[list[str], operator.add]


def plan(state):
    return {}


def each(state):
    return [Send("review", {"part": part}) for part in state["parts"]] or END


def publish(part):
    if part == "broken":
        raise ValueError("cannot publish \\x1b[31mthis\\nat all")
    return f"published {part}"


def review(job):
    part = job["part"]
    answer = interrupt({"question": f"Publish {part}?", "part": part}, response_schema=Decision)
    if answer.decision == "reject":
        return {"log": [f"kept {part}"]}
    print("publishing", part)
    return {"log": [step(publish, part)]}


builder = StateGraph(State)
builder.add_node("plan", plan)
builder.add_node("review", review)
builder.add_edge(START, "plan")
builder.add_conditional_edges("plan", each, ["review", END])
builder.add_edge("review", END)
graph = builder.compile(name="release")
'''

APPROVE = '{"decision": "approve"}'
REJECT = '{"decision": "reject"}'


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def refused(self, code: int) -> str:
        """Check that it ended with one sentence and nothing else; return that."""
        assert (self.code, self.out) == (code, ""), self
        assert self.err.count("\n") == 1, self.err
        assert "Traceback" not in self.err
        return self.err.rstrip("\n")


class Program:
    """Runs `waitpoint` in a folder of its own."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.capsys, self.monkeypatch = folder, capsys, monkeypatch
        monkeypatch.setattr("shutil.which", lambda name: name)
        monkeypatch.delenv("FORCE_COLOR", raising=False)

    def __call__(self, *words: str, folder: Path | None = None) -> Done:
        self.monkeypatch.chdir(folder or self.folder)
        self.capsys.readouterr()
        path, modules = list(sys.path), set(sys.modules)
        try:
            with pytest.raises(SystemExit) as ended:
                main(list(words))
        finally:
            sys.path[:] = path
            for name in sys.modules.keys() - modules:
                if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(self.folder)):
                    del sys.modules[name]
        out, err = self.capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Done(ended.value.code, out, err)

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def start(self, *parts: str, thread: str = "t") -> dict[str, str]:
        """Run the release graph on these parts; return the question ids by part."""
        done = self("run", "release", "--input", json.dumps({"parts": parts}), "--thread", thread, "--json")
        assert done.code == 0, done.err
        return {q["value"]["part"]: q["id"] for q in done.json["questions"]}

    def state(self) -> tuple[Any, ...]:
        """Return all that the store tells: to see that a mistake changed nothing."""
        threads = self("threads", "--json").json["threads"]
        questions = self("inbox", "--json").json
        return threads, questions, [self("trace", t["thread_id"], "--json").out for t in threads]

    def the_question(self) -> str:
        """Return the id of the one question that waits."""
        (question,) = self("inbox", "--json").json["questions"]
        return str(question["id"])
