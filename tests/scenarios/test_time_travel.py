"""Scenarios of the section "debugging/time-travel": state changed while a question is open, and no silent stops."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackHandler

from tests.scenarios.conftest import Call
from tests.scenarios.world import Shelf, State, asked, events, texts, the_id, thread
from waitpoint.checkpoint.base import ThreadKey
from waitpoint.errors import UnknownInterruptError
from waitpoint.graph import END, START, StateGraph
from waitpoint.types import Command, interrupt

# --- S175 -------------------------------------------------------------------------------------------------------------


class Asked:
    """ask, then file; the question in the graph itself or in one inside."""

    def __init__(self, shelf: Shelf, nesting: str) -> None:
        self.shelf, self.nesting, self.config = shelf, nesting, thread()
        self.runs: list[str] = []

    def ask(self, state: State) -> State:
        self.runs.append("ask")
        return {"value": interrupt("file it?")}

    def file(self, state: State) -> State:
        self.runs.append(f"file {state['value']}")
        return {"log": [state["value"]]}

    def compile(self) -> Any:
        inner = StateGraph(State).add_node(self.ask).add_edge(START, "ask").compile()
        node = {"itself": self.ask, "a node": inner, "a function": lambda s: {"value": inner.invoke({})["value"]}}
        graph = StateGraph(State).add_node("ask", node[self.nesting]).add_node(self.file)
        return graph.add_edge(START, "ask").add_edge("ask", "file").compile(checkpointer=self.shelf.open())

    def ended(self, call: Call) -> tuple[str, Any, Any]:
        """Answer yes; return the question's id, the config of its pause and that of the end."""
        old = the_id(call(self.compile(), {"log": []}, self.config))
        paused = self.compile().get_state(self.config).config
        assert call(self.compile(), Command(resume="yes"), self.config)["log"] == ["yes"]
        self.runs.clear()
        return old, paused, self.compile().get_state(self.config).config


NESTINGS = pytest.mark.parametrize("nesting", ["itself", "a node", "a function"])


@NESTINGS
def test_s175_a_replay_of_the_pause_asks_again_and_uses_no_old_answer(shelf: Shelf, call: Call, nesting: str) -> None:
    paper = Asked(shelf, nesting)
    old, paused, end = paper.ended(call)
    for answer in ("no", "perhaps"):
        (new,) = asked(call(paper.compile(), None, paused))
        assert (new.value, new.id == old) == ("file it?", False)
        assert paper.runs == ["ask"]
        assert call(paper.compile(), Command(resume=answer), paper.config)["log"] == [answer]
        assert paper.runs == ["ask", "ask", f"file {answer}"]
        paper.runs.clear()
    assert paper.compile().get_state(end).values["log"] == ["yes"]


@NESTINGS
@pytest.mark.parametrize("by_id", [False, True], ids=["bare", "by id"])
def test_s175_another_answer_at_the_old_pause_makes_a_branch_with_that_answer(
    shelf: Shelf, call: Call, nesting: str, by_id: bool
) -> None:
    paper = Asked(shelf, nesting)
    old, paused, end = paper.ended(call)
    given = Command(resume={old: "no"} if by_id else "no")
    assert call(paper.compile(), given, paused)["log"] == ["no"]
    assert paper.runs[-1] == "file no"
    assert "file yes" not in paper.runs
    graph, saver = paper.compile(), shelf.open()
    assert graph.get_state(end).values["log"] == ["yes"]
    forks = [data["base"] for kind, data in events(saver, paper.config) if kind == "forked"]
    assert forks == [paused["configurable"]["checkpoint_id"]]
    assert {q.answer for q in saver.pending(answerable=False)} == {"yes", "no"}
    assert graph.get_state(paper.config).values["log"] == ["no"]


@NESTINGS
def test_s175_an_answer_that_names_no_checkpoint_does_not_go_back(shelf: Shelf, call: Call, nesting: str) -> None:
    paper = Asked(shelf, nesting)
    old, _, end = paper.ended(call)
    for resume in ("no", {old: "no"}):
        with pytest.raises(UnknownInterruptError):
            call(paper.compile(), Command(resume=resume), paper.config)
    assert paper.compile().get_state(paper.config).config == end
    assert paper.runs == []


# --- S178 -------------------------------------------------------------------------------------------------------------


class Paper:
    """draft, then ask, then file; routed by edges or by commands."""

    def __init__(self, *, by_command: bool) -> None:
        self.by_command = by_command
        self.runs: list[str] = []

    def draft(self, state: State) -> Any:
        self.runs.append("draft")
        update = {"log": ["draft"], "value": "first"}
        return Command(update=update, goto="ask") if self.by_command else update

    def ask(self, state: State) -> Any:
        self.runs.append("ask")
        update = {"log": [interrupt({"file": state["value"]})]}
        return Command(update=update, goto="file") if self.by_command else update

    def file(self, state: State) -> Any:
        self.runs.append("file")
        return {"log": [f"filed {state['value']}"]}

    def compile(self, shelf: Shelf) -> Any:
        graph = StateGraph(State).add_node("draft", self.draft).add_node("ask", self.ask).add_node("file", self.file)
        graph.add_edge(START, "draft").add_edge("file", END)
        if not self.by_command:
            graph.add_edge("draft", "ask").add_edge("ask", "file")
        return graph.compile(checkpointer=shelf.open())


@pytest.mark.parametrize("by_command", [False, True], ids=["edges", "commands"])
@pytest.mark.parametrize("as_node", [None, "draft"])
def test_s178_changing_state_while_a_question_is_open_asks_anew(
    shelf: Shelf, call: Call, as_node: Any, by_command: bool
) -> None:
    paper, config = Paper(by_command=by_command), thread()
    old = the_id(call(paper.compile(shelf), {"log": []}, config))
    graph, saver = paper.compile(shelf), shelf.open()
    update: Any = {"value": "second"}
    if by_command and as_node == "draft":
        update = Command(update=update, goto="ask")
    saved = graph.update_state(config, update, as_node=as_node)
    (closed,) = saver.pending(answerable=False)
    assert (closed.id, closed.status) == (old, "withdrawn")
    assert closed.reason
    assert [k for k, _ in events(saver, config)][-2:] in (["withdrawn", "updated"], ["updated", "withdrawn"])
    assert graph.get_state(config).interrupts == ()
    with pytest.raises(UnknownInterruptError, match=f"{old} was withdrawn"):
        call(graph, Command(resume={old: "late"}), config)
    with pytest.raises(UnknownInterruptError, match="othing is pending"):
        call(graph, Command(resume="bare"), config)
    if by_command and as_node is None:
        return  # an update as "draft", which goes nowhere without its command: nothing is left to run
    assert graph.get_state(config).next == ("ask",)
    (new,) = asked(call(graph, None, saved))
    assert (new.value, new.id == old) == ({"file": "second"}, False)
    with pytest.raises(UnknownInterruptError, match=f"{old} was withdrawn"):
        call(graph, Command(resume={old: "late"}), config)
    assert call(graph, Command(resume="yes"), config)["log"] == ["draft", "yes", "filed second"]


@pytest.mark.parametrize("by_command", [False, True], ids=["edges", "commands"])
def test_s178_changing_state_as_the_asking_node_answers_in_its_place(
    shelf: Shelf, call: Call, by_command: bool
) -> None:
    paper, config = Paper(by_command=by_command), thread()
    old = the_id(call(paper.compile(shelf), {"log": []}, config))
    graph = paper.compile(shelf)
    update: Any = {"log": ["by hand"]}
    graph.update_state(config, Command(update=update, goto="file") if by_command else update, as_node="ask")
    assert graph.get_state(config).next == ("file",)
    assert shelf.open().pending() == []
    for late in ({old: "late"}, "bare"):
        with pytest.raises(UnknownInterruptError):
            call(graph, Command(resume=late), config)
    assert call(graph, None, config)["log"] == ["draft", "by hand", "filed first"]
    assert paper.runs == ["draft", "ask", "file"]


def test_s178_changing_state_closes_all_open_questions_of_the_step_and_of_nested_graphs(
    shelf: Shelf, call: Call
) -> None:
    def inner_ask(state: State) -> State:
        return {"log": [interrupt("inner?")]}

    def other(state: State) -> State:
        return {"log": [interrupt("other?")]}

    inner = StateGraph(State).add_node(inner_ask).add_edge(START, "inner_ask").compile()
    graph = StateGraph(State).add_node("inner", inner).add_node(other)
    graph.add_edge(START, "inner").add_edge(START, "other")
    config = thread()
    compiled = graph.compile(checkpointer=shelf.open())
    old = {i.id for i in asked(call(compiled, {"log": []}, config))}
    saved = compiled.update_state(config, {"log": ["changed"]}, as_node=START)
    assert shelf.open().pending() == []
    again = call(compiled, None, saved)
    assert set(texts(again)) == {"inner?", "other?"}
    assert old.isdisjoint(i.id for i in asked(again))
    for question in old:
        with pytest.raises(UnknownInterruptError, match="was withdrawn"):
            call(compiled, Command(resume={question: "late"}), config)


# --- S180 -------------------------------------------------------------------------------------------------------------

RUNS = 50


class Tracer(AsyncCallbackHandler):
    """Listens to everything, as a tracing product does."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def on_chain_start(self, *args: Any, **kwargs: Any) -> None:
        self.heard.append("start")

    async def on_chain_end(self, *args: Any, **kwargs: Any) -> None:
        self.heard.append("end")


async def two_questions(state: State) -> State:
    await asyncio.sleep(0)
    first = interrupt("first?")
    await asyncio.sleep(0)
    return {"log": [first, interrupt("second?")]}


def is_said(shelf: Shelf, config: dict[str, Any], graph: Any) -> tuple[str, str]:
    """Return the status of a stopped run and the last line of its record: its state and its reason."""
    row = shelf.open().thread(ThreadKey(config["configurable"]["thread_id"], "LangGraph"))
    assert row is not None
    state = graph.get_state(config)
    assert (row.status == "waiting") == bool(state.interrupts)
    assert (row.status == "idle") == (state.next == ())
    return row.status, events(shelf.open(), config)[-1][0]


async def test_s180_no_silent_stop_at_the_second_question(shelf: Shelf) -> None:
    graph = StateGraph(State).add_node(two_questions).add_edge(START, "two_questions")
    compiled = graph.compile(checkpointer=shelf.open())

    async def one(number: int) -> None:
        config: dict[str, Any] = thread(f"run {number}") | {"callbacks": [Tracer()], "tags": ["traced"]}
        assert texts(await compiled.ainvoke({"log": []}, config)) == ["first?"]
        assert is_said(shelf, config, compiled) == ("waiting", "paused")
        assert texts(await compiled.ainvoke(Command(resume=1), config)) == ["second?"]
        assert is_said(shelf, config, compiled) == ("waiting", "paused")
        assert (await compiled.ainvoke(Command(resume=2), config))["log"] == [1, 2]
        assert is_said(shelf, config, compiled) == ("idle", "finished")

    await asyncio.gather(*(one(n) for n in range(RUNS)))
    assert shelf.open().pending() == []
    assert len(shelf.open().threads(status="idle")) == RUNS


async def test_s180_a_run_that_is_stopped_has_a_state_and_a_reason(shelf: Shelf) -> None:
    """Failed, cancelled, at a breakpoint: each is told from the others, and goes on."""
    broken, started = [True], asyncio.Event()

    async def work(state: State) -> State:
        if broken[0]:
            raise OSError("down")
        started.set()
        if not state.get("value"):
            await asyncio.Event().wait()
        return {"log": ["work"]}

    graph = StateGraph(State).add_node(work).add_edge(START, "work").compile(checkpointer=shelf.open())
    config = thread()

    def said() -> tuple[str, str, Any]:
        row = shelf.open().thread(ThreadKey(config["configurable"]["thread_id"], "LangGraph"))
        assert row is not None
        return row.status, events(shelf.open(), config)[-1][0], row.error

    await graph.ainvoke({"log": []}, config, interrupt_before=["work"])
    assert said() == ("idle", "breakpoint", None)
    with pytest.raises(OSError, match="down"):
        await graph.ainvoke(None, config)
    assert said() == ("failed", "failed", repr(OSError("down")))
    broken[0] = False
    task = asyncio.create_task(graph.ainvoke(None, config))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert said() == ("ready", "interrupted", None)
    assert (await graph.aget_state(config)).next == ("work",)
