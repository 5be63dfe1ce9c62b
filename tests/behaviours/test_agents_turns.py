"""Turns of an agent: calls that go wrong, results that are the last word, handing over, agents in graphs and in tools."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.tools import tool

from tests.agents.scripted import Scripted, calls
from tests.behaviours.conftest import Call
from waitpoint.agents import create_agent
from waitpoint.agents.middleware import after_model, before_model
from waitpoint.checkpoint.base import BaseCheckpointSaver
from waitpoint.errors import GraphRecursionError, InvalidUpdateError
from waitpoint.graph import START, MessagesState, StateGraph
from waitpoint.graph.message import REMOVE_ALL_MESSAGES
from waitpoint.prebuilt import ToolRuntime
from waitpoint.types import Command, interrupt

CONFIG: Any = {"configurable": {"thread_id": "t"}}
GO: Any = {"messages": [("user", "go")]}


@tool
def look(at: str) -> str:
    """Look at something."""
    return f"saw {at}"


@tool(return_direct=True)
def final(text: str) -> str:
    """Say the last word."""
    if text == "fail":
        raise ValueError(text)
    return text


@tool
def ask(about: str) -> str:
    """Ask."""
    return f"{about}: {interrupt(about)}"


def answers(result: Any) -> dict[str, Any]:
    return {m.tool_call_id: m.content for m in result["messages"] if m.type == "tool"}


# --- calls that go wrong ----------------------------------------------------------------------------------------------


def malformed(*ids: str, **valid: Any) -> AIMessage:
    message = calls(*((name, f"v{n}", args) for n, (name, args) in enumerate(valid.items())))
    broken = [
        {"name": "look", "args": '{"at": "sk', "id": i, "error": "cut off", "type": "invalid_tool_call"} for i in ids
    ]
    return message.model_copy(update={"invalid_tool_calls": broken})


def test_calls_that_cannot_be_read_are_answered_once_and_for_good(call: Call, saver: BaseCheckpointSaver) -> None:
    model = Scripted(malformed("b1", look={"at": "sky"}), "sorry", "still here")
    agent = create_agent(model, [look], checkpointer=saver)
    call(agent, GO, CONFIG)
    result = call(agent, GO, CONFIG)
    told = [m for m in result["messages"] if isinstance(m, ToolMessage) and m.tool_call_id == "b1"]
    assert [(m.status, m.name) for m in told] == [("error", "look")]
    assert "malformed or truncated" in told[0].content
    assert answers(result)["v0"] == "saw sky"


def test_calls_that_cannot_be_read_in_the_input_are_answered_in_their_place_for_good(
    call: Call, saver: BaseCheckpointSaver
) -> None:
    model = Scripted("ok", "still ok")
    agent = create_agent(model, [look], checkpointer=saver)
    given = [HumanMessage("go"), malformed("b1", "b2"), HumanMessage("well?")]
    call(agent, {"messages": given}, CONFIG)
    result = call(agent, GO, CONFIG)
    kinds = ["human", "ai", "tool", "tool", "human", "ai", "human", "ai"]
    assert [m.type for m in result["messages"]] == kinds
    assert list(answers(result)) == ["b1", "b2"]
    assert [m.type for m in model.shown[1]] == kinds[:-1]


def test_a_model_that_is_told_of_calls_which_cannot_be_read_may_try_again(
    call: Call, saver: BaseCheckpointSaver
) -> None:
    model = Scripted(malformed("b1"), "ok")
    result = call(create_agent(model, [look], checkpointer=saver), GO, CONFIG)
    assert [m.type for m in result["messages"]] == ["human", "ai", "tool", "ai"]
    assert [m.type for m in model.shown[1]] == ["human", "ai", "tool"]


def test_a_model_that_keeps_making_calls_which_cannot_be_read_ends_its_turn(
    call: Call, saver: BaseCheckpointSaver
) -> None:
    model = Scripted(malformed("b1"), malformed("b2"), malformed("b3"), "at last")
    agent = create_agent(model, [look], checkpointer=saver)
    result = call(agent, GO, CONFIG)
    assert [m.type for m in result["messages"]] == ["human", "ai", "tool", "ai", "tool", "ai"]
    assert agent.get_state(CONFIG).next == ()
    result = call(agent, GO, CONFIG)
    assert [m.type for m in result["messages"][5:]] == ["ai", "tool", "human", "ai"]


@pytest.mark.parametrize("call_id", [None, ""])
def test_a_call_that_cannot_be_read_and_has_no_id_needs_no_answer(call_id: Any, call: Call) -> None:
    model = Scripted("ok")
    result = call(
        create_agent(model, [look]), {"messages": [HumanMessage("go"), malformed(call_id), HumanMessage("well?")]}
    )
    assert len(answers(result)) == (0 if call_id is None else 1)


def test_a_model_is_shown_calls_that_every_provider_takes(call: Call) -> None:
    model = Scripted(malformed("b1", look={"at": "sky"}), "sorry")
    result = call(create_agent(model, [look]), GO)
    shown = model.shown[1][1]
    assert isinstance(shown, AIMessage)
    assert [(c["id"], c["args"]) for c in shown.tool_calls] == [("v0", {"at": "sky"}), ("b1", {})]
    assert shown.invalid_tool_calls == []
    assert [c["id"] for c in result["messages"][1].invalid_tool_calls] == ["b1"]  # what was said is kept


def test_a_call_without_an_id_gets_one(call: Call) -> None:
    model = Scripted(
        AIMessage("", tool_calls=[{"name": "look", "args": {"at": n}, "id": None} for n in ("a", "b")]), "ok"
    )
    result = call(create_agent(model, [look]), GO)
    ids = [c["id"] for c in result["messages"][1].tool_calls]
    assert len(set(ids)) == 2
    assert None not in ids
    assert answers(result) == dict(zip(ids, ["saw a", "saw b"], strict=True))


def test_two_calls_with_one_id_are_both_answered(call: Call) -> None:
    model = Scripted(calls(("look", "c1", {"at": "a"}), ("look", "c1", {"at": "b"})), "ok")
    assert sorted(answers(call(create_agent(model, [look]), GO)).values()) == ["saw a", "saw b"]


def test_a_model_that_calls_tools_where_there_are_none_is_an_error_that_names_them(call: Call) -> None:
    with pytest.raises(InvalidUpdateError, match="'look'"):
        call(create_agent(Scripted(calls(("look", "c1", {"at": "sky"})))), GO)


def test_a_tool_that_raises_fails_the_run_and_the_others_are_kept(call: Call, saver: BaseCheckpointSaver) -> None:
    ran: list[str] = []
    broken = [True]

    def work(what: str) -> str:
        """Work."""
        ran.append(what)
        if what == "bad" and broken[0]:
            raise ValueError("broken")
        return f"did {what}"

    model = Scripted(calls(("work", "c1", {"what": "good"}), ("work", "c2", {"what": "bad"})), "ok")
    agent = create_agent(model, [work], checkpointer=saver)
    with pytest.raises(ValueError, match="broken"):
        call(agent, GO, CONFIG)
    broken[0] = False
    result = call(agent, None, CONFIG)
    assert answers(result) == {"c1": "did good", "c2": "did bad"}
    assert ran.count("good") == 1
    assert len(model.shown) == 2


def test_a_loop_ends_at_the_limit_of_steps(call: Call) -> None:
    model = Scripted(*(calls(("look", f"c{n}", {"at": "sky"})) for n in range(9)))
    with pytest.raises(GraphRecursionError):
        call(create_agent(model, [look]), GO, {"recursion_limit": 5})


# --- the last word ----------------------------------------------------------------------------------------------------


def test_a_result_that_is_returned_directly_ends_the_agent(call: Call) -> None:
    result = call(create_agent(Scripted(calls(("final", "c1", {"text": "bye"}))), [look, final]), GO)
    assert [m.content for m in result["messages"]] == ["go", "", "bye"]


@pytest.mark.parametrize(
    "other", [("look", {"at": "sky"}), ("missing", {}), ("final", {"wrong": 1})], ids=lambda o: o[0]
)
def test_it_does_not_while_another_call_of_the_turn_needs_the_model(other: Any, call: Call) -> None:
    model = Scripted(calls(("final", "c1", {"text": "bye"}), (other[0], "c2", other[1])), "ok")
    assert call(create_agent(model, [look, final]), GO)["messages"][-1].content == "ok"


def test_all_calls_of_a_turn_may_be_last_words_some_of_them_after_a_question(
    call: Call, saver: BaseCheckpointSaver
) -> None:
    @tool(return_direct=True)
    def ask_last(about: str) -> str:
        """Ask."""
        return str(interrupt(about))

    model = Scripted(calls(("final", "c1", {"text": "bye"}), ("ask_last", "c2", {"about": "sure?"})))
    agent = create_agent(model, [final, ask_last], checkpointer=saver)
    assert [i.value for i in call(agent, GO, CONFIG)["__interrupt__"]] == ["sure?"]
    assert answers(call(agent, Command(resume="yes"), CONFIG)) == {"c1": "bye", "c2": "yes"}
    assert agent.get_state(CONFIG).next == ()


# --- questions of tools -----------------------------------------------------------------------------------------------


def test_parallel_tools_finish_while_one_asks_and_none_runs_twice(call: Call, saver: BaseCheckpointSaver) -> None:
    ran: list[str] = []

    def note(what: str) -> str:
        """Note."""
        ran.append(what)
        return what

    turn = calls(("note", "c1", {"what": "a"}), ("ask", "c2", {"about": "b"}), ("note", "c3", {"what": "c"}))
    model = Scripted(turn, "ok")
    agent = create_agent(model, [note, ask], checkpointer=saver)
    paused = call(agent, GO, CONFIG)
    assert [i.value for i in paused["__interrupt__"]] == ["b"]
    assert answers(paused) == {"c1": "a", "c3": "c"}
    result = call(agent, Command(resume="yes"), CONFIG)
    assert [m.tool_call_id for m in result["messages"] if m.type == "tool"] == ["c1", "c2", "c3"]
    assert answers(result)["c2"] == "b: yes"
    assert sorted(ran) == ["a", "c"]
    assert len(model.shown) == 2


def test_several_calls_may_ask_and_are_answered_one_by_one_or_together(call: Call, saver: BaseCheckpointSaver) -> None:
    turn = calls(*(("ask", f"c{n}", {"about": f"q{n}"}) for n in range(3)))
    agent = create_agent(Scripted(turn, "ok"), [ask], checkpointer=saver)
    ids = {i.value: i.id for i in call(agent, GO, CONFIG)["__interrupt__"]}
    assert sorted(ids) == ["q0", "q1", "q2"]
    half = call(agent, Command(resume={ids["q1"]: "one"}), CONFIG)
    assert sorted(i.value for i in half["__interrupt__"]) == ["q0", "q2"]
    result = call(agent, Command(resume={ids["q0"]: "zero", ids["q2"]: "two"}), CONFIG)
    assert answers(result) == {"c0": "q0: zero", "c1": "q1: one", "c2": "q2: two"}


# --- messages that hooks change ---------------------------------------------------------------------------------------


def test_a_hook_may_cut_the_history(call: Call) -> None:
    @before_model
    def cut(state: Any, runtime: Any) -> Any:
        if len(state["messages"]) < 4:
            return None
        return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), HumanMessage("so far: looked")]}

    model = Scripted(*(calls(("look", f"c{n}", {"at": "sky"})) for n in range(2)), "ok")
    result = call(create_agent(model, [look], middleware=[cut]), GO)
    assert [[m.type for m in shown] for shown in model.shown] == [["human"], ["human", "ai", "tool"], ["human"]]
    assert result["messages"][-1].content == "ok"


def test_an_agent_whose_hook_removes_the_models_message_ends(call: Call) -> None:
    @after_model
    def drop(state: Any, runtime: Any) -> Any:
        return {"messages": [RemoveMessage(id=state["messages"][-1].id)]}

    agent = create_agent(Scripted(calls(("look", "c1", {"at": "sky"}))), [look], middleware=[drop])
    assert [m.content for m in call(agent, GO)["messages"]] == ["go"]


# --- handing over, agents in graphs -----------------------------------------------------------------------------------


def handing(to: str) -> Any:
    """Return a tool that hands over to a node of the graph around its agent."""

    @tool(f"to_{to}")
    def hand(runtime: ToolRuntime) -> Any:
        """Hand over."""
        answer = ToolMessage(f"over to {to}", tool_call_id=runtime.tool_call_id)
        return Command(graph=Command.PARENT, goto=to, update={"messages": [runtime.state["messages"][-1], answer]})

    return hand


def swarm(saver: Any, *, asks: bool = False) -> tuple[Any, Scripted, Scripted]:
    """Return a graph of two agents that hand over to each other."""
    ana_says = [calls(("to_bo", "h1", {})), "ana is done"]
    bo_says = [calls(("ask", "a1", {"about": "why?"})), "bo is done"] if asks else ["bo is done"]
    ana_model, bo_model = Scripted(*ana_says), Scripted(*bo_says)
    ana = create_agent(ana_model, [handing("bo")], name="ana")
    bo = create_agent(bo_model, [handing("ana"), ask], name="bo")
    graph: Any = StateGraph(MessagesState)
    graph.add_node("ana", ana, destinations=("bo",)).add_node("bo", bo, destinations=("ana",)).add_edge(START, "ana")
    return graph.compile(checkpointer=saver), ana_model, bo_model


def test_an_agent_hands_over_to_another_in_the_graph_around(call: Call, saver: BaseCheckpointSaver) -> None:
    graph, ana, bo = swarm(saver)
    result = call(graph, GO, CONFIG)
    assert [(m.type, m.content, m.name) for m in result["messages"]] == [
        ("human", "go", None),
        ("ai", "", "ana"),
        ("tool", "over to bo", "to_bo"),
        ("ai", "bo is done", "bo"),
    ]
    assert (len(ana.shown), len(bo.shown)) == (1, 1)


def test_an_agent_that_was_handed_to_may_ask(call: Call, saver: BaseCheckpointSaver) -> None:
    graph, ana, bo = swarm(saver, asks=True)
    assert [i.value for i in call(graph, GO, CONFIG)["__interrupt__"]] == ["why?"]
    result = call(graph, Command(resume="because"), CONFIG)
    assert [m.content for m in result["messages"]] == ["go", "", "over to bo", "", "why?: because", "bo is done"]
    assert (len(ana.shown), len(bo.shown)) == (1, 2)


def test_an_agent_in_a_tool_asks_the_one_who_called_and_goes_on(call: Call, saver: BaseCheckpointSaver) -> None:
    inner_model = Scripted(calls(("ask", "a1", {"about": "inner?"})), "inner done")
    inner = create_agent(inner_model, [ask], name="inner")

    @tool
    def delegate(task: str) -> str:
        """Delegate."""
        return str(inner.invoke({"messages": [("user", task)]})["messages"][-1].content)

    model = Scripted(calls(("delegate", "c1", {"task": "do it"})), "ok")
    agent = create_agent(model, [delegate], checkpointer=saver)
    assert [i.value for i in call(agent, GO, CONFIG)["__interrupt__"]] == ["inner?"]
    result = call(agent, Command(resume="yes"), CONFIG)
    assert answers(result) == {"c1": "inner done"}
    assert (len(model.shown), len(inner_model.shown)) == (2, 2)


def test_an_agent_goes_on_in_another_process_with_another_instance(call: Call, store: Any) -> None:
    def made(*replies: Any) -> tuple[Any, Scripted]:
        model = Scripted(*replies)
        return create_agent(model, [ask], checkpointer=store.again()), model

    first, _ = made(calls(("ask", "c1", {"about": "q?"})))
    assert [i.value for i in call(first, GO, CONFIG)["__interrupt__"]] == ["q?"]
    second, model = made("ok")
    assert call(second, Command(resume="yes"), CONFIG)["messages"][-1].content == "ok"
    assert [m.content for m in model.shown[0]] == ["go", "", "q?: yes"]
