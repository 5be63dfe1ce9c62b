"""Scenarios of the section "resume-semantics": what an answer is, whom it reaches, and what happens in between."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import ValidationError

from tests.scenarios.conftest import Call
from tests.scenarios.world import Shelf, State, asked, events, texts, the_id, thread
from waitpoint.checkpoint.base import BaseCheckpointSaver
from waitpoint.errors import (
    PendingQuestionsError,
    QuestionWithdrawn,
    UnknownInterruptError,
)
from waitpoint.graph import END, START, StateGraph
from waitpoint.types import Answer, Command, interrupt

EMPTY = [None, False, 0, 0.0, "", [], {}]


def same(a: Any, b: Any) -> bool:
    """Whether two values are equal and of one type: 0 is not False."""
    return type(a) is type(b) and a == b


def one_node(saver: Any, node: Any, **options: Any) -> Any:
    return StateGraph(State).add_node("ask", node).add_edge(START, "ask").compile(checkpointer=saver, **options)


# --- S001 -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", [lambda v: v, lambda v: Answer(v, by="ana", token="t")], ids=["bare", "signed"])
@pytest.mark.parametrize("value", EMPTY, ids=repr)
def test_s001_answers_that_are_empty_or_false(shelf: Shelf, call: Call, value: Any, wrap: Any) -> None:
    def ask(state: State) -> State:
        return {"value": [interrupt("well?")]}

    config = thread()
    call(one_node(shelf.open(), ask), {"log": []}, config)
    done = call(one_node(shelf.open(), ask), Command(resume=wrap(value)), config)
    assert same(done["value"][0], value)
    (question,) = shelf.open().pending(answerable=False)
    assert question.status == "answered"
    assert same(question.answer, value)


@pytest.mark.parametrize("values", [(None, False), (False, None), (0, False), ("", {}), ([], 0.0)], ids=repr)
def test_s001_answers_that_are_empty_or_false_by_id_to_two_questions(shelf: Shelf, call: Call, values: Any) -> None:
    def build(saver: Any) -> Any:
        graph = StateGraph(State)
        for name in ("a", "b"):

            def node(state: State, name: str = name) -> State:
                return {"log": [(name, interrupt(name))]}

            graph.add_node(name, node).add_edge(START, name)
        return graph.compile(checkpointer=saver)

    config = thread()
    ids = {i.value: i.id for i in asked(call(build(shelf.open()), {"log": []}, config))}
    done = call(build(shelf.open()), Command(resume={ids["a"]: values[0], ids["b"]: values[1]}), config)
    got = dict(done["log"])
    assert same(got["a"], values[0])
    assert same(got["b"], values[1])


def test_s001_answers_that_are_empty_or_false_one_after_the_other_in_one_node(saver: Any, call: Call) -> None:
    def ask(state: State) -> State:
        return {"log": [interrupt(n) for n in range(len(EMPTY))]}

    graph, config = one_node(saver, ask), thread()
    call(graph, {"log": []}, config)
    for value in EMPTY:
        done = call(graph, Command(resume=value), config)
    assert all(map(same, done["log"], EMPTY))


def test_s001_answers_that_are_empty_or_false_reach_a_nested_graph_and_come_with_an_update(saver: Any) -> None:
    def ask(state: State) -> State:
        return {"log": [interrupt("inner")]}

    inner = StateGraph(State).add_node("ask", ask).add_edge(START, "ask").compile()
    graph = StateGraph(State).add_node("inner", inner).add_edge(START, "inner").compile(checkpointer=saver)
    for value in EMPTY:
        config = thread()
        graph.invoke({"log": []}, config)
        done = graph.invoke(Command(resume=value, update={"value": "kept"}), config)
        assert same(done["log"][0], value)
        assert done["value"] == "kept"


def test_s001_only_a_command_without_anything_in_it_is_an_error(saver: Any, call: Call) -> None:
    runs: list[int] = []

    def ask(state: State) -> State:
        runs.append(1)
        return {"value": interrupt("well?")}

    graph, config = one_node(saver, ask), thread()
    question = the_id(call(graph, {"log": []}, config))
    with pytest.raises(UnknownInterruptError, match=r"Command\(resume=None\) answers None") as refused:
        call(graph, Command(), config)
    assert refused.value.reason == "empty_map"
    assert [q.id for q in saver.pending()] == [question]
    assert runs == [1]
    assert call(graph, Command(resume=None), config) == {"log": [], "value": None}


# --- S003 -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rewords", [True, False], ids=["new prompt", "same prompt"])
def test_s003_asking_again_until_the_answer_is_valid(shelf: Shelf, call: Call, rewords: bool) -> None:
    runs: list[int] = []

    def form(state: State) -> State:
        runs.append(1)
        prompt = "Your age?"
        while True:
            given = interrupt(prompt)
            if isinstance(given, int) and given > 0:
                return {"value": given}
            if rewords:
                prompt = f"{given!r} is no age. Your age?"

    config = thread()
    seen = [call(one_node(shelf.open(), form), {"log": []}, config)]
    seen += [call(one_node(shelf.open(), form), Command(resume=answer), config) for answer in ("x", -1, 42)]
    second, third = ("'x' is no age. Your age?", "-1 is no age. Your age?") if rewords else ("Your age?",) * 2
    assert [texts(r) for r in seen] == [["Your age?"], [second], [third], []]
    assert len({the_id(r) for r in seen[:3]}) == 3
    assert seen[3]["value"] == 42
    assert len(runs) == 4
    assert [q.status for q in shelf.open().pending(answerable=False)] == ["answered"] * 3


def test_s003_a_bad_answer_is_turned_away_at_the_door(saver: Any, call: Call) -> None:
    runs: list[int] = []

    def form(state: State) -> State:
        runs.append(1)
        return {"value": interrupt("Your age?", response_schema={"type": "integer", "exclusiveMinimum": 0})}

    graph, config = one_node(saver, form), thread()
    question = the_id(call(graph, {"log": []}, config))
    for bad in ("x", -1):
        with pytest.raises(ValidationError):
            call(graph, Command(resume=bad), config)
        assert [q.id for q in saver.pending()] == [question]
    assert runs == [1]
    assert call(graph, Command(resume=42), config)["value"] == 42
    assert runs == [1, 1]


# --- S005 -------------------------------------------------------------------------------------------------------------


def test_s005_an_old_answer_does_not_come_back_by_itself(shelf: Shelf, call: Call) -> None:
    runs: list[int] = []

    def ask(state: State) -> State:
        runs.append(1)
        return {"log": [interrupt("first"), interrupt("second")]}

    config = thread()
    call(one_node(shelf.open(), ask), {"log": []}, config)
    second = the_id(call(one_node(shelf.open(), ask), Command(resume="A1"), config))
    for _ in range(3):
        again = call(one_node(shelf.open(), ask), None, config)
        assert texts(again) == ["second"]
        assert the_id(again) == second
        assert again["log"] == []
    assert len(runs) == 2  # a task that only waits is not touched
    assert call(one_node(shelf.open(), ask), Command(resume="A2"), config)["log"] == ["A1", "A2"]


def test_s005_an_old_answer_does_not_come_back_when_a_sibling_is_tried_again(shelf: Shelf, call: Call) -> None:
    broken = [True]

    def ask(state: State) -> State:
        return {"log": [interrupt("same"), interrupt("same")]}

    def other(state: State) -> State:
        if broken[0]:
            raise OSError("down")
        return {"value": "up"}

    def build() -> Any:
        graph = StateGraph(State).add_node(ask).add_node(other)
        return graph.add_edge(START, "ask").add_edge(START, "other").compile(checkpointer=shelf.open())

    config = thread()
    for given in ({"log": []}, None):
        with pytest.raises(OSError, match="down"):
            call(build(), given, config)
    with pytest.raises(OSError, match="down"):
        call(build(), Command(resume="A1"), config)
    (second,) = shelf.open().pending()
    for _ in range(2):
        with pytest.raises(OSError, match="down"):
            call(build(), None, config)
        assert [q.id for q in shelf.open().pending()] == [second.id]
    broken[0] = False
    assert texts(call(build(), None, config)) == ["same"]
    assert call(build(), Command(resume={second.id: "A2"}), config) == {"log": ["A1", "A2"], "value": "up"}


# --- S006 -------------------------------------------------------------------------------------------------------------


def test_s006_a_fresh_input_on_a_paused_thread_is_refused(shelf: Shelf, call: Call) -> None:
    def ask(state: State) -> State:
        return {"log": [interrupt("go?")]}

    config = thread()
    question = the_id(call(one_node(shelf.open(), ask), {"log": ["one"]}, config))
    graph = one_node(shelf.open(), ask)
    for given in ({"log": ["two"]}, {}, Command(update={"log": ["two"]})):
        with pytest.raises(PendingQuestionsError) as refused:
            call(graph, given, config)
        assert refused.value.pending_ids == (question,)
        assert question in str(refused.value)
        assert "on_pending" in str(refused.value)
    assert graph.get_state(config).values == {"log": ["one"]}
    assert call(graph, Command(resume={question: "yes"}), config)["log"] == ["one", "yes"]


def test_s006_a_fresh_input_may_withdraw_the_question_and_a_late_answer_is_refused(shelf: Shelf, call: Call) -> None:
    def ask(state: State) -> State:
        return {"log": [interrupt(f"go {len(state['log'])}?")]}

    config = thread()
    old = the_id(call(one_node(shelf.open(), ask), {"log": ["one"]}, config))
    graph, saver = one_node(shelf.open(), ask), shelf.open()
    new = call(graph, {"log": ["two"]}, config, on_pending="withdraw")
    assert texts(new) == ["go 2?"]
    assert the_id(new) != old
    with pytest.raises(UnknownInterruptError, match=f"Unknown or already-consumed interrupt: {old} was withdrawn"):
        call(graph, Command(resume={old: "late"}), config)
    closed = {q.id: (q.status, q.answer) for q in saver.pending(answerable=False)}
    assert closed == {old: ("withdrawn", None), the_id(new): ("open", None)}
    assert call(graph, Command(resume={the_id(new): "yes"}), config)["log"] == ["one", "two", "yes"]
    assert [k for k, _ in events(saver, config) if k in ("answered", "withdrawn")] == ["withdrawn", "answered"]


# --- S008 -------------------------------------------------------------------------------------------------------------

UNKNOWN = "f" * 32


@pytest.mark.parametrize("resume", ["next message", None, {}, {UNKNOWN: 1}], ids=repr)
def test_s008_resume_when_nothing_is_waiting(shelf: Shelf, call: Call, resume: Any) -> None:
    runs: list[int] = []

    def ask(state: State) -> State:
        runs.append(1)
        return {"log": [interrupt("go?")]}

    finished, fresh = thread(), thread()
    graph = one_node(shelf.open(), ask)
    call(graph, {"log": []}, finished)
    call(graph, Command(resume="yes"), finished)
    runs.clear()
    for config in (finished, fresh):
        with pytest.raises(UnknownInterruptError) as refused:
            call(graph, Command(resume=resume), config)
        assert refused.value.reason == "not_pending"
        assert refused.value.pending_ids == ()
        assert runs == []
    assert graph.get_state(fresh).values == {}
    for config, before in ((finished, ["yes"]), (fresh, [])):
        again = call(one_node(shelf.open(), ask), {"log": ["hello"]}, config)
        assert texts(again) == ["go?"]  # the refused value is not kept for it
        assert call(graph, Command(resume="no"), config)["log"] == [*before, "hello", "no"]


def test_s008_resume_when_a_failed_thread_waits_for_nothing(saver: Any, call: Call) -> None:
    broken = [True]

    def work(state: State) -> State:
        if broken[0]:
            raise OSError("down")
        return {"value": "done"}

    graph, config = one_node(saver, work), thread()
    with pytest.raises(OSError, match="down"):
        call(graph, {"log": []}, config)
    broken[0] = False
    with pytest.raises(UnknownInterruptError, match="othing is pending"):
        call(graph, Command(resume="dropped"), config)
    assert graph.get_state(config).next == ("ask",)
    assert call(graph, None, config) == {"log": [], "value": "done"}


# --- S016 -------------------------------------------------------------------------------------------------------------


def test_s016_changes_made_before_the_pause_are_visible(shelf: Shelf, call: Call) -> None:
    def earlier(state: State) -> State:
        return {"log": ["earlier"]}

    def sibling(state: State) -> State:
        return {"log": ["sibling"], "value": "draft"}

    def ask(state: State) -> State:
        return {"log": [interrupt({"publish?": "draft.md", "artefact": "# Draft"})]}

    graph = StateGraph(State).add_node(earlier).add_node(sibling).add_node("zask", ask).add_edge(START, "earlier")
    graph.add_edge("earlier", "sibling").add_edge("earlier", "zask")
    config = thread()
    result = call(graph.compile(checkpointer=shelf.open()), {"log": []}, config)
    assert {k: result[k] for k in ("log", "value")} == {"log": ["earlier", "sibling"], "value": "draft"}
    state = graph.compile(checkpointer=shelf.open()).get_state(config)
    assert state.values == {"log": ["earlier", "sibling"], "value": "draft"}
    assert [(t.name, t.result) for t in state.tasks] == [
        ("sibling", {"log": ["sibling"], "value": "draft"}),
        ("zask", None),
    ]
    (question,) = shelf.open().pending()  # what the asking node made, it publishes on the question
    assert question.value["artefact"] == "# Draft"


def test_s016_changes_made_before_the_pause_are_in_the_stream_before_the_question(saver: Any) -> None:
    def quick(state: State) -> State:
        return {"log": ["quick"]}

    def ask(state: State) -> State:
        return {"log": [interrupt("go?")]}

    graph = StateGraph(State).add_node(ask).add_node(quick).add_edge(START, "ask").add_edge(START, "quick")
    compiled = graph.compile(checkpointer=saver)
    parts = list(compiled.stream({"log": []}, thread(), stream_mode=["updates", "values"]))
    assert next(p for p in parts if p[0] == "updates") == ("updates", {"quick": {"log": ["quick"]}})
    assert parts[-1][0] == "values"
    assert parts[-1][1]["log"] == ["quick"]

    async def collected() -> list[Any]:
        return [p async for p in compiled.astream({"log": []}, thread(), stream_mode="updates")]

    parts = asyncio.run(collected())
    assert parts[0] == {"quick": {"log": ["quick"]}}
    assert list(parts[-1]) == ["__interrupt__"]


# --- S021 -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("answer", "reached"), [(True, ["sent"]), (False, ["dropped"])])
def test_s021_after_the_answer_go_on_without_asking_the_model(
    saver: Any, call: Call, answer: Any, reached: Any
) -> None:
    calls: list[str] = []

    def model(state: State) -> State:
        calls.append("model")
        return {"value": "draft"}

    def confirm(state: State) -> Command[str]:
        return Command(goto="send" if interrupt("send it?") else "drop")

    def send(state: State) -> State:
        return {"log": ["sent"]}

    def drop(state: State) -> State:
        return {"log": ["dropped"]}

    graph = StateGraph(State)
    for node in (model, confirm, send, drop):
        graph.add_node(node)
    graph.add_edge(START, "model").add_edge("model", "confirm").add_edge("send", END).add_edge("drop", END)
    compiled, config = graph.compile(checkpointer=saver), thread()
    call(compiled, {"log": []}, config)
    assert call(compiled, Command(resume=answer), config)["log"] == reached
    assert calls == ["model"]


# --- S098 -------------------------------------------------------------------------------------------------------------


def number(state: State) -> State:
    return {"value": int(interrupt("How many?"))}


@pytest.mark.parametrize("how", ["bare", "by id", "at the checkpoint id"])
def test_s098_a_wrong_answer_is_not_kept_for_ever(shelf: Shelf, call: Call, how: str) -> None:
    config = thread()
    question = the_id(call(one_node(shelf.open(), number), {"log": []}, config))
    with pytest.raises(ValueError, match="seven"):
        call(one_node(shelf.open(), number), Command(resume=Answer("seven", by="ana")), config)
    (listed,) = shelf.open().pending()
    assert (listed.id, listed.can_answer, listed.answer) == (question, True, "seven")
    graph = one_node(shelf.open(), number)
    assert [i.id for i in graph.get_state(config).interrupts] == [question]
    with pytest.raises(ValueError, match="seven"):
        call(graph, None, config)  # going on does not heal it, and asks nothing new
    assert [q.id for q in shelf.open().pending()] == [question]
    if how == "at the checkpoint id":
        config = graph.get_state(config).config
    done = call(graph, Command(resume={question: "7"} if how == "by id" else "7"), config)
    assert done["value"] == 7
    assert shelf.open().pending() == []
    answered = [d for k, d in events(shelf.open(), config) if k == "answered"]
    assert [d.get("by") for d in answered] == ["ana", None]


def test_s098_an_answer_whose_node_went_on_after_it_is_not_replaced(saver: Any, call: Call) -> None:
    def ask(state: State) -> State:
        return {"value": [int(interrupt("How many?")), interrupt("Sure?")]}

    graph, config = one_node(saver, ask), thread()
    first = the_id(call(graph, {"log": []}, config))
    second = the_id(call(graph, Command(resume="7"), config))
    with pytest.raises(UnknownInterruptError):
        call(graph, Command(resume={first: "8"}), config)
    assert call(graph, Command(resume={second: True}), config)["value"] == [7, True]


def test_s098_a_withdrawn_question_lets_its_node_go_on(saver: BaseCheckpointSaver) -> None:
    from waitpoint.engine.answers import withdraw

    def ask(state: State) -> State:
        try:
            return {"value": interrupt("go?")}
        except QuestionWithdrawn as gone:
            return {"value": f"withdrawn: {gone.reason}"}

    graph, config = one_node(saver, ask), thread()
    withdraw(saver, the_id(graph.invoke({"log": []}, config)), "nobody is there")
    assert graph.invoke(None, config)["value"] == "withdrawn: nobody is there"


# --- S190 -------------------------------------------------------------------------------------------------------------


def test_s190_the_state_never_says_finished_after_a_failing_router(shelf: Shelf, call: Call) -> None:
    runs: list[str] = []
    broken = [True]

    def ask(state: State) -> State:
        runs.append("ask")
        return {"value": interrupt("where to?")}

    def router(state: State) -> str:
        runs.append("router")
        if broken[0]:
            raise KeyError("route")
        return str(state["value"])

    def end(state: State) -> State:
        return {"log": ["end"]}

    def build() -> Any:
        graph = StateGraph(State).add_node(ask).add_node("end", end).add_edge(START, "ask").add_edge("end", END)
        return graph.add_conditional_edges("ask", router, ["end"]).compile(checkpointer=shelf.open())

    config = thread()
    call(build(), {"log": []}, config)
    with pytest.raises(KeyError, match="route"):
        call(build(), Command(resume="end"), config)
    for _ in range(2):
        state = build().get_state(config)
        assert state.next == ("ask",)
        assert state.interrupts == ()
        assert "KeyError" in state.tasks[0].error
        with pytest.raises(KeyError, match="route"):
            call(build(), None, config)
    broken[0] = False
    assert call(build(), None, config) == {"log": ["end"], "value": "end"}
    assert runs == ["ask", "ask", "router", "router", "router", "router"]
    assert build().get_state(config).next == ()
