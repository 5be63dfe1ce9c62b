"""Scenarios of the section "concurrency": two answers, stale answers, old Pythons, and a caller who goes away."""

from __future__ import annotations

import ast
import asyncio
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import waitpoint.version
from tests.scenarios.conftest import Call
from tests.scenarios.world import ROOT, Shelf, State, asked, events, texts, the_id, thread
from waitpoint.checkpoint.base import BaseCheckpointSaver, ThreadKey
from waitpoint.errors import AlreadyAnsweredError, PendingQuestionsError, ThreadBusyError, UnknownInterruptError
from waitpoint.graph import END, START, StateGraph
from waitpoint.types import Answer, Command, interrupt, step


def status(saver: BaseCheckpointSaver, config: dict[str, Any]) -> str:
    found = saver.thread(ThreadKey(config["configurable"]["thread_id"], "LangGraph"))
    assert found is not None
    return found.status


# --- S148 -------------------------------------------------------------------------------------------------------------


class Slow:
    """A node that says when it works on the answer, and ends when it is let."""

    def __init__(self) -> None:
        self.working, self.may_end = threading.Event(), threading.Event()
        self.runs = 0

    def ask(self, state: State) -> State:
        answer = interrupt("go?")
        self.runs += 1
        self.working.set()
        assert self.may_end.wait(30)
        return {"value": answer}

    def compile(self, shelf: Shelf) -> Any:
        return StateGraph(State).add_node("ask", self.ask).add_edge(START, "ask").compile(checkpointer=shelf.open())


def test_s148_a_resume_that_lost_the_race_is_not_reported_as_done(shelf: Shelf, call: Call) -> None:
    slow, config = Slow(), thread()
    question = the_id(call(slow.compile(shelf), {"log": []}, config))
    results: list[Any] = []
    first = threading.Thread(
        target=lambda: results.append(
            call(slow.compile(shelf), Command(resume={question: Answer("first", by="ana")}), config)
        )
    )
    first.start()
    assert slow.working.wait(30)
    with pytest.raises(AlreadyAnsweredError, match="answered by 'ana'") as in_progress:
        call(slow.compile(shelf), Command(resume={question: "second"}), config)
    assert in_progress.value.still_to_run  # refused, and the winner's work is still going on
    with pytest.raises(ThreadBusyError):
        call(slow.compile(shelf), {"log": ["new input"]}, config)
    slow.may_end.set()
    first.join(30)
    assert [r["value"] for r in results] == ["first"]  # done
    with pytest.raises(AlreadyAnsweredError, match="answered by 'ana'") as too_late:
        call(slow.compile(shelf), Command(resume={question: "third"}), config)
    assert not too_late.value.still_to_run  # refused, and there is nothing to wait for
    with pytest.raises(UnknownInterruptError) as unknown:
        call(slow.compile(shelf), Command(resume={"0" * 32: "x"}), config)
    assert not isinstance(unknown.value, AlreadyAnsweredError)
    assert slow.runs == 1
    assert [d["by"] for k, d in events(shelf.open(), config) if k == "answered"] == ["ana"]


def test_s148_two_resumes_at_once_one_is_done_and_one_is_refused(shelf: Shelf, call: Call) -> None:
    slow, config, barrier = Slow(), thread(), threading.Barrier(2)
    slow.may_end.set()
    question = the_id(call(slow.compile(shelf), {"log": []}, config))
    outcomes: list[Any] = []

    def answer(name: str) -> None:
        graph = slow.compile(shelf)
        barrier.wait(30)
        try:
            outcomes.append(call(graph, Command(resume={question: Answer(name, by=name)}), config)["value"])
        except AlreadyAnsweredError as refused:
            outcomes.append(refused)

    people = [threading.Thread(target=answer, args=(name,)) for name in ("ana", "ben")]
    for person in people:
        person.start()
    for person in people:
        person.join(30)
    (refused,) = (o for o in outcomes if isinstance(o, AlreadyAnsweredError))
    (winner,) = (o for o in outcomes if isinstance(o, str))
    assert refused.answered_by == winner
    assert slow.runs == 1


def test_s148_a_resume_that_does_not_wait_says_that_the_work_is_in_progress(shelf: Shelf, call: Call) -> None:
    """Of two open questions one is being worked on; the answer to the other is stored, and its caller may go on."""
    slow, config = Slow(), thread()

    def other(state: State) -> State:
        return {"log": [interrupt("other?")]}

    def build() -> Any:
        graph = StateGraph(State).add_node("ask", slow.ask).add_node("other", other)
        return graph.add_edge(START, "ask").add_edge(START, "other").compile(checkpointer=shelf.open())

    ids = {i.value: i.id for i in asked(call(build(), {"log": []}, config))}
    results: list[Any] = []
    first = threading.Thread(target=lambda: results.append(call(build(), Command(resume={ids["go?"]: "yes"}), config)))
    first.start()
    assert slow.working.wait(30)
    at_once = call(build(), Command(resume={ids["other?"]: "too"}), config, wait=False)
    assert "value" not in at_once
    assert status(shelf.open(), config) == "running"
    slow.may_end.set()
    first.join(30)
    assert results == [{"log": ["too"], "value": "yes"}]
    assert status(shelf.open(), config) == "idle"


# --- S150 -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("payload", ["same", "numbered"])
def test_s150_a_stale_answer_does_not_open_a_later_gate(shelf: Shelf, call: Call, payload: str) -> None:
    def work(state: State) -> State:
        return {"log": ["work"]}

    def gate(state: State) -> State:
        visit = len([x for x in state["log"] if x == "work"])
        return {"log": [interrupt("open?" if payload == "same" else f"open for {visit}?")]}

    def again(state: State) -> str:
        return "work" if len(state["log"]) < 6 else END

    def build() -> Any:
        graph = StateGraph(State).add_node(work).add_node(gate).add_edge(START, "work").add_edge("work", "gate")
        return graph.add_conditional_edges("gate", again, ["work", END]).compile(checkpointer=shelf.open())

    config, ids = thread(), []
    result = call(build(), {"log": []}, config)
    for visit in range(3):
        ids.append(the_id(result))
        result = call(build(), Command(resume={ids[-1]: f"yes {visit}"}), config)
        for old in ids:  # sent twice for the same visit, and for an earlier one
            with pytest.raises(AlreadyAnsweredError):
                call(build(), Command(resume={old: "stale"}), config)
        if visit < 2:
            assert len(texts(result)) == 1
            assert the_id(result) not in ids
    assert result["log"] == ["work", "yes 0", "work", "yes 1", "work", "yes 2"]


def test_s150_two_answers_for_one_visit_do_not_open_two_gates_in_one_node(shelf: Shelf, call: Call) -> None:
    def gates(state: State) -> State:
        return {"log": [interrupt("open?") for _ in range(2)]}

    graph = StateGraph(State).add_node(gates).add_edge(START, "gates").compile(checkpointer=shelf.open())
    config = thread()
    first = the_id(call(graph, {"log": []}, config))
    second = the_id(call(graph, Command(resume={first: 1}), config))
    with pytest.raises(AlreadyAnsweredError):
        call(graph, Command(resume={first: 2}), config)
    assert [q.id for q in shelf.open().pending()] == [second]


# --- S151 -------------------------------------------------------------------------------------------------------------

AS_OLD = "import sys; sys.version_info = (3, 10, 14, 'final', 0); import {}"


@pytest.mark.parametrize("module", ["waitpoint", "waitpoint.graph", "waitpoint.checkpoint.sqlite"])
def test_s151_python_3_10_is_refused_at_import_with_a_clear_sentence(module: str) -> None:
    command = [sys.executable, "-c", AS_OLD.format(module)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 1
    assert last.startswith("ImportError: waitpoint needs Python 3.11 or newer, and this is Python 3.10")


def test_s151_what_refuses_an_old_python_can_be_read_by_it() -> None:
    here = Path(waitpoint.version.__file__)
    for path in (here, here.with_name("__init__.py")):
        ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 4))


def test_s151_the_package_says_which_pythons_it_supports() -> None:
    assert 'requires-python = ">=3.11"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


async def test_s151_a_question_in_an_async_node_works(shelf: Shelf) -> None:
    async def ask(state: State) -> State:
        await asyncio.sleep(0)
        return {"value": interrupt("go?")}

    graph, config = StateGraph(State).add_node(ask).add_edge(START, "ask").compile(checkpointer=shelf.open()), thread()
    assert texts(await graph.ainvoke({"log": []}, config)) == ["go?"]
    assert (await graph.ainvoke(Command(resume="yes"), config))["value"] == "yes"


@pytest.mark.parametrize("how", ["gather", "group", "tasks", "thread", "executor"])
async def test_s151_questions_in_parallel_async_tools_work(shelf: Shelf, how: str) -> None:
    async def tool(name: str) -> str:
        await asyncio.sleep(0)
        return f"{name}: {interrupt(name)}"

    def blocking_tool(name: str) -> str:
        return f"{name}: {interrupt(name)}"

    async def tools(state: State) -> State:
        names = ("a", "b")
        if how == "gather":
            found = list(await asyncio.gather(*(tool(n) for n in names)))
        elif how == "tasks":
            tasks = [asyncio.create_task(tool(n)) for n in names]
            await asyncio.wait(tasks)
            found = [t.result() for t in tasks]
        elif how == "group":
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(tool(n)) for n in names]
            found = [t.result() for t in tasks]
        elif how == "thread":
            found = list(await asyncio.gather(*(asyncio.to_thread(blocking_tool, n) for n in names)))
        else:
            found = [await asyncio.to_thread(blocking_tool, n) for n in names]
        return {"log": found}

    graph = StateGraph(State).add_node(tools).add_edge(START, "tools").compile(checkpointer=shelf.open())
    config = thread()
    result = await graph.ainvoke({"log": []}, config)
    for _ in range(2):
        if "__interrupt__" in result:
            answers = {i.id: i.value.upper() for i in asked(result)}
            result = await graph.ainvoke(Command(resume=answers), config)
    assert result["log"] == ["a: A", "b: B"]


async def test_s151_a_question_in_an_async_langchain_tool_works(shelf: Shelf) -> None:
    from langchain_core.tools import tool

    @tool
    async def delete(path: str) -> str:
        """Delete a file."""
        await asyncio.sleep(0)
        return f"{path}: {interrupt({'delete': path})}"

    async def node(state: State) -> State:
        return {"log": [await delete.ainvoke({"path": p}) for p in ("a.txt", "b.txt")]}

    graph = StateGraph(State).add_node(node).add_edge(START, "node").compile(checkpointer=shelf.open())
    config = thread()
    assert texts(await graph.ainvoke({"log": []}, config)) == [{"delete": "a.txt"}]
    assert texts(await graph.ainvoke(Command(resume=True), config)) == [{"delete": "b.txt"}]
    assert (await graph.ainvoke(Command(resume=False), config))["log"] == ["a.txt: True", "b.txt: False"]


# --- S153 -------------------------------------------------------------------------------------------------------------


class Work:
    """One node works on an answer when the caller goes away; a sibling had finished before."""

    def __init__(self) -> None:
        self.runs: Counter[str] = Counter()
        self.leave: Callable[[], Any] = lambda: None
        self.started = asyncio.Event()

    def sibling(self, state: State) -> State:
        self.runs["sibling"] += 1
        return {"log": ["sibling"]}

    def charge(self) -> str:
        self.runs["charge"] += 1
        return "charged"

    def ask(self, state: State) -> State:
        answer = interrupt("go?")
        self.runs["ask"] += 1
        receipt = step(self.charge)
        self.leave()
        return {"log": [answer, receipt]}

    async def aask(self, state: State) -> State:
        answer = interrupt("go?")
        self.runs["ask"] += 1
        receipt = step(self.charge)
        self.started.set()
        if self.runs["ask"] == 1:
            await asyncio.Event().wait()
        return {"log": [answer, receipt]}

    def compile(self, shelf: Shelf, ask: Any) -> Any:
        graph = StateGraph(State).add_node("ask", ask).add_node("sibling", self.sibling)
        return graph.add_edge(START, "ask").add_edge(START, "sibling").compile(checkpointer=shelf.open())

    def check_interrupted(self, shelf: Shelf, graph: Any, config: Any, question: str) -> None:
        """The state says 'answered, interrupted while running', and nothing throws away what is there."""
        assert status(shelf.open(), config) == "ready"
        assert events(shelf.open(), config)[-1][0] == "interrupted"
        state = graph.get_state(config)
        assert (state.next, state.interrupts) == (("ask",), ())
        assert {t.name: t.result for t in state.tasks}["sibling"] == {"log": ["sibling"]}
        assert shelf.open().pending() == []
        (listed,) = shelf.open().pending(answerable=False)
        assert (listed.id, listed.status, listed.answer, listed.by) == (question, "answered", "yes", "ana")
        with pytest.raises(ThreadBusyError, match="on_pending"):
            graph.invoke({"log": ["new input"]}, config)
        with pytest.raises(AlreadyAnsweredError) as refused:
            graph.invoke(Command(resume={question: "no"}), config)
        assert refused.value.still_to_run


ANSWER = Answer("yes", by="ana")


async def test_s153_the_caller_goes_away_in_the_middle_of_the_approved_work(shelf: Shelf) -> None:
    work, config = Work(), thread()
    graph = work.compile(shelf, work.aask)
    question = the_id(await graph.ainvoke({"log": []}, config))
    request = asyncio.create_task(graph.ainvoke(Command(resume=ANSWER), config))
    await work.started.wait()
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    reader = work.compile(shelf, work.ask)
    await asyncio.to_thread(work.check_interrupted, shelf, reader, config, question)
    done = await work.compile(shelf, work.aask).ainvoke(None, config)
    assert done["log"] == ["yes", "charged", "sibling"]
    assert work.runs == {"sibling": 1, "ask": 2, "charge": 1}


def test_s153_the_caller_stops_the_approved_work_from_the_keyboard(shelf: Shelf) -> None:
    work, config = Work(), thread()
    graph = work.compile(shelf, work.ask)
    question = the_id(graph.invoke({"log": []}, config))

    def stop() -> None:
        raise KeyboardInterrupt

    work.leave = stop
    with pytest.raises(KeyboardInterrupt):
        graph.invoke(Command(resume=ANSWER), config)
    work.leave = lambda: None
    graph = work.compile(shelf, work.ask)
    work.check_interrupted(shelf, graph, config, question)
    assert graph.invoke(None, config)["log"] == ["yes", "charged", "sibling"]
    assert work.runs == {"sibling": 1, "ask": 2, "charge": 1}


def test_s153_after_that_there_is_a_choice_to_ask_again(shelf: Shelf) -> None:
    work, config = Work(), thread()
    graph = work.compile(shelf, work.ask)
    old = the_id(graph.invoke({"log": []}, config))

    def stop() -> None:
        raise KeyboardInterrupt

    work.leave = stop
    with pytest.raises(KeyboardInterrupt):
        graph.invoke(Command(resume=ANSWER), config)
    work.leave = lambda: None
    asking = next(s for s in graph.get_state_history(config) if "ask" in s.next)
    again = graph.invoke(None, graph.update_state(asking.config, None, as_node="__copy__"))
    assert texts(again) == ["go?"]
    assert the_id(again) != old
    assert graph.invoke(Command(resume="no"), config)["log"] == ["no", "charged", "sibling"]


def test_s153_after_that_new_input_may_drop_the_work_on_the_record(shelf: Shelf) -> None:
    work, config = Work(), thread()
    graph = work.compile(shelf, work.ask)
    graph.invoke({"log": []}, config)

    def stop() -> None:
        raise KeyboardInterrupt

    work.leave = stop
    with pytest.raises(KeyboardInterrupt):
        graph.invoke(Command(resume=ANSWER), config)
    work.leave = lambda: None
    assert texts(graph.invoke({"log": ["anew"]}, config, on_pending="withdraw")) == ["go?"]
    with pytest.raises(PendingQuestionsError):
        graph.invoke({"log": []}, config)
    assert graph.invoke(Command(resume="no"), config)["log"] == ["anew", "no", "charged", "sibling"]


def test_s153_a_consumer_who_closes_the_stream_leaves_the_thread_ready(shelf: Shelf) -> None:
    work, config = Work(), thread()
    graph = work.compile(shelf, work.ask)
    question = the_id(graph.invoke({"log": []}, config))
    stream = graph.stream(Command(resume=ANSWER), config, stream_mode=["updates", "values", "tasks"])
    first = next(stream)  # nothing of the step has been shown to the end when the consumer leaves
    stream.close()
    assert first
    assert status(shelf.open(), config) in ("ready", "idle")
    (listed,) = shelf.open().pending(answerable=False)
    assert (listed.id, listed.answer) == (question, "yes")
    assert work.compile(shelf, work.ask).invoke(None, config)["log"] == ["yes", "charged", "sibling"]
    assert work.runs["charge"] == 1
