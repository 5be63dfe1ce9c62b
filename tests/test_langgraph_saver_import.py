"""Threads that LangGraph left paused are carried over, answered here, and come to what they would have come to there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import langgraph.checkpoint.memory
import langgraph.checkpoint.sqlite
import langgraph.checkpoint.sqlite.aio
import pytest
from pydantic import BaseModel, ValidationError

from tests import langgraph_threads as programs
from tests.agents.scripted import Scripted, calls
from tests.langgraph_threads import Library
from waitpoint.checkpoint.base import BaseCheckpointSaver
from waitpoint.checkpoint.langgraph import aimport_thread, import_thread
from waitpoint.checkpoint.memory import InMemorySaver
from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.errors import (
    AlreadyAnsweredError,
    ConfigError,
    ConflictError,
    NotFoundError,
    NotSupportedError,
    PendingQuestionsError,
)
from waitpoint.types import Command

THREAD = {"configurable": {"thread_id": "t"}}


@pytest.fixture(params=["memory", "sqlite"])
def theirs(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """Give a saver of LangGraph."""
    if request.param == "memory":
        yield langgraph.checkpoint.memory.InMemorySaver()
    else:
        with langgraph.checkpoint.sqlite.SqliteSaver.from_conn_string(str(tmp_path / "theirs.db")) as saver:
            yield saver


@pytest.fixture(params=["memory", "sqlite"])
def ours(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BaseCheckpointSaver]:
    """Give a saver of Waitpoint."""
    saver = InMemorySaver() if request.param == "memory" else SqliteSaver(tmp_path / "ours.db")
    yield saver
    saver.close()


class Both:
    """One program with LangGraph and with Waitpoint."""

    def __init__(self, build: Callable[[Library], Any], theirs: Any, ours: Any, **options: Any) -> None:
        self.there, self.here = Library("langgraph"), Library("waitpoint")
        self.old = build(self.there).compile(checkpointer=theirs, **options)
        self.new = build(self.here).compile(checkpointer=ours, **options)
        self.theirs = theirs

    def pause(self) -> Any:
        return self.old.invoke({"city": "Rome"}, THREAD)["__interrupt__"]

    def bring(self, **options: Any) -> Any:
        return import_thread(self.new, self.theirs, "t", **options)


def test_an_open_question_comes_with_its_id_and_is_answered_here(theirs: Any, ours: BaseCheckpointSaver) -> None:
    both = Both(programs.simple, theirs, ours)
    (asked,) = both.pause()
    imported = both.bring()
    assert both.here.ran == []  # nothing runs by an import
    assert [(q.id, q.value, q.node) for q in imported.questions] == [(asked.id, asked.value, "ask")]
    assert imported.next == both.old.get_state(THREAD).next == ("ask",)
    assert imported.left_behind == ("the checkpoints before the newest",)
    assert both.new.get_state(THREAD).values == both.old.get_state(THREAD).values
    assert both.new.invoke(Command(resume={asked.id: "yes"}), THREAD) == both.old.invoke(
        both.there.Command(resume="yes"), THREAD
    )
    assert both.here.ran == ["ask"]


def test_what_was_finished_in_the_step_is_not_run_again(theirs: Any, ours: BaseCheckpointSaver) -> None:
    both = Both(programs.wide, theirs, ours)
    both.pause()
    imported = both.bring()
    assert sorted(q.node for q in imported.questions) == ["item", "item", "left", "right"]
    assert sorted(imported.next) == sorted(both.old.get_state(THREAD).next)
    assert {t.name: t.result for t in both.new.get_state(THREAD).tasks if t.name == "free"} == {
        "free": {"log": ["free"]}
    }
    answers = {q.id: f"<{q.value}>" for q in imported.questions}
    here = both.new.invoke(Command(resume=answers), THREAD)
    there = both.old.invoke(both.there.Command(resume=answers), THREAD)
    assert sorted(here["log"]) == sorted(there["log"])
    assert here["log"].count("join") == 1
    assert sorted(both.here.ran) == ["item Bonn", "item Ulm", "join", "later", "left", "right"]


def test_a_join_that_has_begun_goes_on(theirs: Any, ours: BaseCheckpointSaver) -> None:
    both = Both(programs.wide, theirs, ours, interrupt_before=["later"])
    asked = both.pause()
    both.old.invoke(both.there.Command(resume={i.id: "x" for i in asked}), THREAD)
    assert both.old.get_state(THREAD).next == ("later",)  # left and right have reached the join already
    assert both.bring().next == ("later",)
    assert both.new.invoke(None, THREAD) == both.old.invoke(None, THREAD)
    assert both.here.ran == ["later", "join"]


def test_one_of_several_questions_may_be_answered_first(theirs: Any, ours: BaseCheckpointSaver) -> None:
    both = Both(programs.wide, theirs, ours)
    both.pause()
    first = next(q for q in both.bring().questions if q.value == {"item": "Ulm"})
    left = both.new.invoke(Command(resume={first.id: "x"}), THREAD)["__interrupt__"]
    assert [i.value for i in left] == ["left?", "right?", {"item": "Bonn"}]
    assert both.here.ran == ["item Ulm"]


def test_a_partly_answered_step_is_carried_over(theirs: Any, ours: BaseCheckpointSaver) -> None:
    both = Both(programs.wide, theirs, ours)
    asked = {str(i.value): i.id for i in both.pause()}
    both.old.invoke(both.there.Command(resume={asked["left?"]: "L"}), THREAD)
    imported = both.bring()
    assert sorted(q.node for q in imported.questions) == ["item", "item", "right"]
    here = both.new.invoke(Command(resume={q.id: "x" for q in imported.questions}), THREAD)
    assert "left L" in here["log"]
    assert "left" not in both.here.ran


def test_a_node_that_was_answered_before_asks_all_anew_and_it_is_said(theirs: Any, ours: BaseCheckpointSaver) -> None:
    """B64: of ids that questions shared there none is carried over"""
    both = Both(programs.twice, theirs, ours)
    both.pause()
    both.old.invoke(both.there.Command(resume="one"), THREAD)
    imported = both.bring()
    assert imported.questions == ()
    assert imported.next == ("ask",)
    assert any("'ask'" in line and "asks all anew" in line for line in imported.left_behind)
    (first,) = both.new.invoke(None, THREAD)["__interrupt__"]
    assert first.value == "first?"
    both.new.invoke(Command(resume="1"), THREAD)
    assert both.new.invoke(Command(resume="2"), THREAD)["log"] == ["1", "2"]


def test_an_answer_does_not_pass_to_a_question_with_another_payload(theirs: Any, ours: BaseCheckpointSaver) -> None:
    both = Both(programs.simple, theirs, ours)
    both.pause()
    changed = programs.simple(both.here, {"question": "Pay?"}).compile(checkpointer=ours)
    (question,) = both.bring().questions
    (asked,) = changed.invoke(Command(resume={question.id: "yes"}), THREAD)["__interrupt__"]
    assert asked.value == {"question": "Pay?"}
    assert changed.get_state(THREAD).values["log"] == ["planned"]


def test_a_thread_at_a_breakpoint_goes_on_past_it(theirs: Any, ours: BaseCheckpointSaver) -> None:
    both = Both(programs.simple, theirs, ours, interrupt_before=["plan"])
    both.old.invoke({"city": "Rome"}, THREAD)
    assert both.bring().next == ("plan",)
    assert [i.value for i in both.new.invoke(None, THREAD)["__interrupt__"]] == [{"question": "Go?", "city": "Rome"}]


def test_a_finished_task_that_wrote_nothing_is_not_run_again(theirs: Any, ours: BaseCheckpointSaver) -> None:
    def build(lib: Library) -> Any:
        def quiet(state: programs.Trip) -> None:
            lib.ran.append("quiet")

        def ask(state: programs.Trip) -> programs.Trip:
            return {"log": [lib.interrupt("q")]}

        builder = lib.StateGraph(programs.Trip).add_node("quiet", quiet).add_node("ask", ask)
        return builder.add_edge(lib.START, "quiet").add_edge(lib.START, "ask")

    both = Both(build, theirs, ours)
    both.pause()
    (question,) = both.bring().questions
    assert both.new.invoke(Command(resume={question.id: "a"}), THREAD)["log"] == ["a"]
    assert both.here.ran == []


def test_a_finished_thread_takes_the_next_input_with_its_state(theirs: Any, ours: BaseCheckpointSaver) -> None:
    both = Both(programs.simple, theirs, ours)
    both.pause()
    both.old.invoke(both.there.Command(resume="yes"), THREAD)
    imported = both.bring()
    assert (imported.questions, imported.next) == ((), ())
    assert both.new.invoke({"city": "Oslo"}, THREAD)["log"] == ["planned", "answer yes", "planned"]


def test_a_failed_thread_is_failed_here_and_goes_on(theirs: Any, ours: BaseCheckpointSaver) -> None:
    broken = {"there": True}

    def build(lib: Library) -> Any:
        def fail(state: programs.Trip) -> programs.Trip:
            if broken["there"]:
                raise ZeroDivisionError("a fault")
            return {"log": ["done"]}

        return lib.StateGraph(programs.Trip).add_node("fail", fail).add_edge(lib.START, "fail")

    both = Both(build, theirs, ours)
    with pytest.raises(ZeroDivisionError):
        both.pause()
    assert both.bring().next == ("fail",)
    row = ours.thread(both.new.key_of(THREAD))
    assert row is not None
    assert row.status == "failed"
    assert "a fault" in (row.error or "")
    broken["there"] = False
    assert both.new.invoke(None, THREAD)["log"] == ["done"]


def test_a_deferred_node_stays_deferred(theirs: Any, ours: BaseCheckpointSaver) -> None:
    both = Both(programs.late, theirs, ours)
    both.pause()
    (question,) = both.bring().questions
    here = both.new.invoke(Command(resume={question.id: "yes"}), THREAD)
    assert here == both.old.invoke(both.there.Command(resume="yes"), THREAD)
    assert here["log"][-1] == "last after 2"


def test_the_schema_of_an_answer_comes_along_and_is_enforced(ours: BaseCheckpointSaver) -> None:
    class Verdict(BaseModel):
        ok: bool

    def build(lib: Library) -> Any:
        def ask(state: programs.Trip) -> programs.Trip:
            return {"log": [repr(lib.interrupt("ok?", response_schema=Verdict).ok)]}

        return lib.StateGraph(programs.Trip).add_node("ask", ask).add_edge(lib.START, "ask")

    both = Both(build, langgraph.checkpoint.memory.InMemorySaver(), ours)
    (asked,) = both.pause()
    (question,) = both.bring().questions
    assert question.response_schema == asked.response_schema
    with pytest.raises(ValidationError):
        both.new.invoke(Command(resume={question.id: {"ok": "perhaps"}}), THREAD)
    assert both.new.invoke(Command(resume={question.id: {"ok": True}}), THREAD)["log"] == ["True"]


def test_a_saver_that_returns_no_pending_writes_works(ours: BaseCheckpointSaver) -> None:
    """B121"""

    class Without(langgraph.checkpoint.memory.InMemorySaver):
        def get_tuple(self, config: Any) -> Any:
            found = super().get_tuple(config)
            return found and found._replace(pending_writes=None)

    both = Both(programs.simple, Without(), ours)
    both.pause()
    imported = both.bring()
    assert (imported.questions, imported.next) == ((), ("ask",))
    assert both.new.invoke(None, THREAD)["__interrupt__"][0].value == {"question": "Go?", "city": "Rome"}


# --- what cannot be carried over ---


def test_an_entrypoint_is_refused_by_name(theirs: Any, ours: BaseCheckpointSaver) -> None:
    def build(package: str, saver: Any) -> Any:
        ask = import_module(f"{package}.types").interrupt

        @import_module(f"{package}.func").entrypoint(checkpointer=saver)
        def write(topic: str) -> str:
            return str(ask(topic))

        return write

    build("langgraph", theirs).invoke("tea", THREAD)
    with pytest.raises(NotSupportedError, match="'write' is an entrypoint"):
        import_thread(build("waitpoint", ours), theirs, "t")
    assert ours.threads() == []


def test_a_question_of_a_graph_inside_a_node_is_refused_and_as_node_is_the_way(
    theirs: Any, ours: BaseCheckpointSaver
) -> None:
    both = Both(programs.nested, theirs, ours)
    both.pause()
    with pytest.raises(NotSupportedError, match=r"asked in a graph that node 'inner' calls.*as_node"):
        both.bring()
    assert ours.threads() == []


def test_a_node_that_the_graph_has_not_is_refused_by_name(theirs: Any, ours: BaseCheckpointSaver) -> None:
    both = Both(programs.simple, theirs, ours)
    both.pause()
    other = (
        both.here.StateGraph(programs.Trip).add_node("asks", lambda state: {"log": ["x"]}).add_edge("__start__", "asks")
    )
    with pytest.raises(NotSupportedError, match=r"'ask'.*did you mean 'asks'"):
        import_thread(other.compile(checkpointer=ours), theirs, "t")
    assert ours.threads() == []


def test_as_node_takes_the_state_alone_and_what_follows_that_node_is_due(
    theirs: Any, ours: BaseCheckpointSaver
) -> None:
    both = Both(programs.simple, theirs, ours)
    both.pause()
    imported = both.bring(as_node="plan")
    assert (imported.questions, imported.next) == ((), ("ask",))
    assert "open questions: the next run asks them anew" in imported.left_behind
    (asked,) = both.new.invoke(None, THREAD)["__interrupt__"]
    assert both.new.invoke(Command(resume={asked.id: "y"}), THREAD)["log"] == ["planned", "answer y"]


def test_a_graph_inside_a_node_runs_from_its_start_where_the_state_alone_is_taken(
    theirs: Any, ours: BaseCheckpointSaver
) -> None:
    both = Both(programs.nested, theirs, ours)
    both.pause()
    assert both.bring(as_node="__start__").next == ("inner",)
    (asked,) = both.new.invoke(None, THREAD)["__interrupt__"]
    assert both.new.invoke(Command(resume={asked.id: "yes"}), THREAD)["log"] == ["planned", "answer yes"]
    assert both.here.ran == ["plan", "ask", "ask"]


def test_a_thread_whose_state_was_updated_goes_on_from_there(theirs: Any, ours: BaseCheckpointSaver) -> None:
    both = Both(programs.simple, theirs, ours)
    both.pause()
    both.old.update_state(THREAD, {"city": "Oslo", "log": ["moved"]}, as_node="plan")
    imported = both.bring()
    assert (imported.questions, imported.next) == ((), both.old.get_state(THREAD).next)
    assert both.new.get_state(THREAD).values == {"city": "Oslo", "log": ["planned", "moved"]}
    (asked,) = both.new.invoke(None, THREAD)["__interrupt__"]
    assert asked.value == {"question": "Go?", "city": "Oslo"}


def test_new_input_is_refused_while_an_imported_question_waits(theirs: Any, ours: BaseCheckpointSaver) -> None:
    both = Both(programs.simple, theirs, ours)
    both.pause()
    both.bring()
    with pytest.raises(PendingQuestionsError):
        both.new.invoke({"city": "Oslo"}, THREAD)
    both.new.invoke({"city": "Oslo"}, THREAD, on_pending="withdraw")
    assert [q.value["city"] for q in ours.pending()] == ["Oslo"]


def test_an_imported_question_takes_one_answer(theirs: Any, ours: BaseCheckpointSaver) -> None:
    both = Both(programs.simple, theirs, ours)
    both.pause()
    (question,) = both.bring().questions
    both.new.invoke(Command(resume={question.id: "yes"}), THREAD)
    with pytest.raises(AlreadyAnsweredError):
        both.new.invoke(Command(resume={question.id: "no"}), THREAD)


def test_as_node_has_to_be_a_node(theirs: Any, ours: BaseCheckpointSaver) -> None:
    both = Both(programs.simple, theirs, ours)
    both.pause()
    with pytest.raises(ConfigError, match="'plan', 'ask'"):
        both.bring(as_node="no")
    assert ours.threads() == []


def test_a_thread_that_is_here_already_is_not_written_over(theirs: Any, ours: BaseCheckpointSaver) -> None:
    both = Both(programs.simple, theirs, ours)
    both.pause()
    (question,) = both.bring().questions
    both.new.invoke(Command(resume={question.id: "no"}), THREAD)
    before = ours.thread(both.new.key_of(THREAD))
    with pytest.raises(ConflictError, match="exists already"):
        both.bring()
    assert ours.thread(both.new.key_of(THREAD)) == before


def test_a_thread_that_the_other_saver_has_not_is_not_found(theirs: Any, ours: BaseCheckpointSaver) -> None:
    both = Both(programs.simple, theirs, ours)
    with pytest.raises(NotFoundError, match="no thread 't'"):
        both.bring()


def test_an_older_form_of_checkpoints_is_refused_by_name(ours: BaseCheckpointSaver) -> None:
    class Old(langgraph.checkpoint.memory.InMemorySaver):
        def get_tuple(self, config: Any) -> Any:
            found = super().get_tuple(config)
            return found and found._replace(checkpoint={**found.checkpoint, "v": 2})

    both = Both(programs.simple, langgraph.checkpoint.memory.InMemorySaver(), ours)
    both.pause()
    old = Old()
    old.storage, old.writes, old.blobs = both.theirs.storage, both.theirs.writes, both.theirs.blobs
    with pytest.raises(NotSupportedError, match="older form 2"):
        import_thread(both.new, old, "t")


def test_a_key_that_the_graph_has_not_is_said_to_be_left_behind(theirs: Any, ours: BaseCheckpointSaver) -> None:
    class More(programs.Trip):
        secret: str

    def build(lib: Library) -> Any:
        schema = (
            More if lib.START == "__start__" and lib.StateGraph.__module__.startswith("langgraph") else programs.Trip
        )

        def ask(state: Any) -> Any:
            return {"log": [lib.interrupt("q")]}

        return lib.StateGraph(schema).add_node("ask", ask).add_edge(lib.START, "ask")

    both = Both(build, theirs, ours)
    both.old.invoke({"city": "Rome", "secret": "s"}, THREAD)
    assert any("'secret'" in line for line in both.bring().left_behind)


@pytest.mark.parametrize("as_node", [None, "model"])
def test_an_agent_that_waits_for_decisions_asks_them_here(
    theirs: Any, ours: BaseCheckpointSaver, as_node: str | None
) -> None:
    sent: list[str] = []

    def send(to: str) -> str:
        """Send a letter."""
        sent.append(to)
        return f"sent to {to}"

    def agent(package: str, saver: Any) -> Any:
        agents, middleware = import_module(f"{package}.agents"), import_module(f"{package}.agents.middleware")
        model = Scripted(calls(("send", "c1", {"to": "Ana"}))) if package == "langchain" else Scripted("It is sent.")
        gate = middleware.HumanInTheLoopMiddleware({"send": True})
        return agents.create_agent(model, [send], middleware=[gate], checkpointer=saver)

    old, new = agent("langchain", theirs), agent("waitpoint", ours)
    assert old.invoke({"messages": [("user", "Write to Ana.")]}, THREAD)["__interrupt__"]
    imported = import_thread(new, theirs, "t", as_node=as_node)
    assert imported.questions == ()
    (asked,) = new.invoke(None, THREAD)["__interrupt__"]
    assert asked.value["action_requests"][0]["args"] == {"to": "Ana"}
    done = new.invoke(Command(resume={asked.id: {"decisions": [{"type": "approve"}]}}), THREAD)
    assert sent == ["Ana"]
    assert [m.type for m in done["messages"]] == ["human", "ai", "tool", "ai"]


def test_asynchronous_savers_are_read_by_their_own_methods(tmp_path: Path, ours: BaseCheckpointSaver) -> None:
    there, here = Library("langgraph"), Library("waitpoint")

    async def carried() -> Any:
        path = str(tmp_path / "async.db")
        async with langgraph.checkpoint.sqlite.aio.AsyncSqliteSaver.from_conn_string(path) as theirs:
            (asked,) = (await programs.simple(there).compile(checkpointer=theirs).ainvoke({"city": "Rome"}, THREAD))[
                "__interrupt__"
            ]
            graph = programs.simple(here).compile(checkpointer=ours)
            imported = await aimport_thread(graph, theirs, "t")
            assert [q.id for q in imported.questions] == [asked.id]
            return await graph.ainvoke(Command(resume={asked.id: "yes"}), THREAD)

    assert asyncio.run(carried())["log"] == ["planned", "answer yes"]
