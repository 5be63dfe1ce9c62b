"""A graph as a LangChain runnable: a config of its own, batches, chains, tools, and events in LangChain's form."""

from __future__ import annotations

import asyncio
import operator
import subprocess
import sys
import threading
import uuid
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda, RunnableParallel
from langchain_core.tools import BaseTool, tool
from pydantic import BaseModel

from tests.agents.scripted import Scripted, calls
from tests.behaviours.conftest import Call
from tests.behaviours.graphs import State, asked, chain, thread
from tests.behaviours.speaking import Speaker
from waitpoint.agents import create_agent
from waitpoint.config import get_config
from waitpoint.errors import ConfigError
from waitpoint.func import entrypoint
from waitpoint.graph import START, MessagesState, StateGraph
from waitpoint.types import Command, interrupt


class Number(TypedDict):
    a: int


def one(node: Any, schema: Any = Number, saver: Any = None, **options: Any) -> Any:
    return StateGraph(schema).add_node("node", node).add_edge(START, "node").compile(checkpointer=saver, **options)


def plus_one(state: Number) -> Any:
    if state["a"] < 0:
        raise ValueError("negative")
    return {"a": state["a"] + 1}


def ask(state: State) -> State:
    return {"log": [interrupt(state["log"][-1])]}


def batch(graph: Any, inputs: Any, config: Any = None, **options: Any) -> Any:
    return graph.batch(inputs, config, **options)


def abatch(graph: Any, inputs: Any, config: Any = None, **options: Any) -> Any:
    return asyncio.run(graph.abatch(inputs, config, **options))


BOTH = pytest.mark.parametrize("batched", [batch, abatch])


# --- batches ----------------------------------------------------------------------------------------------------------


@BOTH
def test_a_batch_returns_outputs_in_the_order_of_the_inputs(batched: Call) -> None:
    graph = one(plus_one)
    assert batched(graph, [{"a": n} for n in range(5)]) == [{"a": n + 1} for n in range(5)]
    assert batched(graph, []) == []
    assert batched(graph, [{"a": 1}], stream_mode="updates") == [[{"node": {"a": 2}}]]


@BOTH
def test_each_input_of_a_batch_may_have_a_config_of_its_own(saver: Any, batched: Call) -> None:
    graph, threads = chain(saver, ask), [thread("1"), thread("2")]
    outputs = batched(graph, [{"log": ["x"]}, {"log": ["y"]}], threads)
    assert [asked(output)[0].value for output in outputs] == ["x", "y"]
    answers = [Command(resume="X"), Command(resume="Y")]
    assert batched(graph, answers, threads) == [{"log": ["x", "X"]}, {"log": ["y", "Y"]}]
    with pytest.raises(ConfigError, match="2 inputs got 1 configs"):
        batched(graph, answers, threads[:1])


@BOTH
def test_the_first_error_of_a_batch_is_raised_or_errors_are_returned(batched: Call) -> None:
    graph, inputs = one(plus_one), [{"a": 1}, {"a": -1}, {"a": 3}]
    with pytest.raises(ValueError, match="negative"):
        batched(graph, inputs)
    first, error, last = batched(graph, inputs, return_exceptions=True)
    assert (first, last) == ({"a": 2}, {"a": 4})
    assert isinstance(error, ValueError)


def test_a_batch_runs_side_by_side_as_far_as_it_may() -> None:
    meeting = threading.Barrier(3, timeout=10)
    graph = one(lambda s: {"a": meeting.wait()})
    assert sorted(o["a"] for o in graph.batch([{"a": 0}] * 3)) == [0, 1, 2]
    at_work, most = [0], [0]

    def counts(state: Number) -> Any:
        at_work[0] += 1
        most[0] = max(most[0], at_work[0])
        at_work[0] -= 1
        return {}

    one(counts).batch([{"a": 0}] * 4, {"max_concurrency": 1})
    assert most == [1]


@BOTH
def test_questions_of_a_batch_in_a_node_come_together_and_keep_their_answers(saver: Any, batched: Call) -> None:
    inner = chain(None, ask)

    def node(state: State) -> State:
        outputs = inner.batch([{"log": ["x"]}, {"log": ["y"]}])
        return {"log": [o["log"][-1] for o in outputs]}

    async def anode(state: State) -> State:
        outputs = await inner.abatch([{"log": ["x"]}, {"log": ["y"]}])
        return {"log": [o["log"][-1] for o in outputs]}

    is_async = batched is abatch
    graph, config = one(anode if is_async else node, State, saver), thread()

    def call(given: Any) -> Any:
        return asyncio.run(graph.ainvoke(given, config)) if is_async else graph.invoke(given, config)

    questions = {i.value: i.id for i in asked(call({"log": []}))}
    assert sorted(questions) == ["x", "y"]
    half = call(Command(resume={questions["y"]: "Y"}))
    assert [i.value for i in asked(half)] == ["x"]
    assert call(Command(resume={questions["x"]: "X"})) == {"log": ["X", "Y"]}


# --- a config of its own ----------------------------------------------------------------------------------------------


def test_a_graph_with_a_config_begins_each_call_with_it(saver: Any, call: Call) -> None:
    seen: list[Any] = []

    def looks(state: State) -> State:
        config = get_config()
        seen.append((config["configurable"]["user"], config["metadata"]["mine"], config["tags"]))
        return {"log": ["looked"]}

    plain = chain(saver, looks)
    graph = plain.with_config(
        {"metadata": {"mine": 1}, "tags": ["t"]}, configurable={"user": "ana", "thread_id": "own"}
    )
    assert call(graph, {"log": []}) == {"log": ["looked"]}
    call(graph, {"log": []}, {"configurable": {"user": "bob"}})
    assert seen == [("ana", 1, ["t"]), ("bob", 1, ["t"])]
    assert graph.get_state({}).values == {"log": ["looked", "looked"]}
    assert len(list(graph.get_state_history({}))) == 6
    graph.update_state({}, {"log": ["more"]})
    assert plain.get_state({"configurable": {"thread_id": "own"}}).values["log"][-1] == "more"
    assert plain.config == {}


def test_names_are_built_as_langchain_builds_them() -> None:
    graph = one(plus_one, name="sums")
    assert (graph.get_name(), graph.get_name("input"), graph.get_name(name="other")) == ("sums", "sums_input", "other")
    assert one(plus_one).get_name("input") == "LangGraphInput"


def test_what_names_the_run_of_a_graph_does_not_name_what_runs_in_it(call: Call) -> None:
    seen: list[Any] = []

    def looks(state: Number, config: RunnableConfig) -> Any:
        seen.append((config.get("run_id"), config.get("run_name")))
        return {}

    call(one(looks), {"a": 1}, {"run_id": uuid.uuid4(), "run_name": "mine"})
    assert seen == [(None, None)]


# --- chains -----------------------------------------------------------------------------------------------------------


def test_a_graph_is_a_part_of_chains(call: Call) -> None:
    graph = one(plus_one)
    assert isinstance(graph, Runnable)
    to_state = RunnableLambda(lambda a: {"a": a})
    assert call(to_state | graph | (lambda state: state["a"]), 1) == 2
    assert call(graph | graph | graph, {"a": 1}) == {"a": 4}
    assert call((lambda a: {"a": a}) | graph, 1) == {"a": 2}
    assert call({"a": RunnableLambda(lambda a: a)} | graph, 1) == {"a": 2}
    assert call(graph.pipe(graph), {"a": 1}) == {"a": 3}
    assert call(RunnableParallel(x=graph, y=graph), {"a": 1}) == {"x": {"a": 2}, "y": {"a": 2}}
    assert (to_state | graph).batch([1, 2]) == [{"a": 2}, {"a": 3}]
    assert list((to_state | graph).stream(1)) == [{"node": {"a": 2}}]


def test_a_prompt_goes_before_a_graph_and_its_state_after(call: Call) -> None:
    def speaks(state: MessagesState) -> Any:
        return {"messages": [Speaker(texts=["hello"]).invoke(state["messages"])]}

    prompt = ChatPromptTemplate.from_messages([("user", "say {word}")]) | (lambda p: {"messages": p.to_messages()})
    whole = prompt | one(speaks, MessagesState) | (lambda state: [m.text for m in state["messages"]])
    assert call(whole, {"word": "hello"}) == ["say hello", "hello "]


def test_what_else_runnables_can_do_is_lent(call: Call) -> None:
    attempts: list[int] = []

    def fails_first(state: Number) -> Any:
        attempts.append(1)
        if len(attempts) == 1:
            raise ConnectionError("lost")
        return {"a": 2}

    graph = one(fails_first)
    assert call(graph.with_retry(wait_exponential_jitter=False), {"a": 1}) == {"a": 2}
    assert call(graph.bind(stream_mode="updates"), {"a": 1}) == [{"node": {"a": 2}}]
    assert call(one(plus_one).with_fallbacks([graph]), {"a": -1}) == {"a": 2}
    assert call(graph.map(), [{"a": 1}]) == [{"a": 2}]
    assert graph.input_schema.model_json_schema()["properties"]["a"]["type"] == "integer"
    with pytest.raises(AttributeError, match="no attribute 'with_retries'"):
        _ = graph.with_retries


def test_a_chain_with_a_graph_that_asks_in_a_node_asks_the_caller(saver: Any, call: Call) -> None:
    inner = RunnableLambda(lambda log: {"log": log}) | chain(None, ask) | (lambda state: state["log"][-1])
    graph, config = one(lambda s: {"log": [inner.invoke(["sure?"])]}, State, saver), thread()
    assert [i.value for i in asked(call(graph, {"log": []}, config))] == ["sure?"]
    assert call(graph, Command(resume="yes"), config) == {"log": ["yes"]}


LATE = """
import sys
from waitpoint.graph import START, StateGraph
graph = StateGraph(dict).add_node("n", lambda s: {"a": 1}).add_edge(START, "n").compile()
found = list(sys.meta_path)
assert "langchain_core" not in sys.modules
"""
IMPORTED = """
from langchain_core.runnables import RunnableLambda
print((RunnableLambda(lambda s: s) | graph).invoke({})["a"])
assert RunnableLambda.__module__ in sys.modules and len(sys.meta_path) == len(found) - 1
"""
USED = """
print((graph | (lambda s: s["a"])).invoke({}))
"""


@pytest.mark.parametrize("later", [IMPORTED, USED], ids=["imported", "used"])
def test_graphs_that_were_there_before_langchain_are_parts_of_chains_too(later: str) -> None:
    said = subprocess.run([sys.executable, "-c", LATE + later], check=True, capture_output=True, text=True).stdout
    assert said.split() == ["1"]


# --- tools ------------------------------------------------------------------------------------------------------------


def test_a_graph_as_a_tool_takes_the_keys_of_its_input(call: Call) -> None:
    found = one(plus_one).as_tool(name="increment", description="Add one.")
    assert isinstance(found, BaseTool)
    assert (found.name, found.description) == ("increment", "Add one.")
    assert found.args == {"a": {"title": "A", "type": "integer"}}
    assert call(found, {"a": 1}) == {"a": 2}
    assert call(one(plus_one).as_tool(arg_types={"a": int}), {"a": "1"}) == {"a": 2}

    anything = one(lambda state: {"keys": sorted(state)}, dict).as_tool()
    assert (anything.args, call(anything, {"b": 1})) == ({}, {"keys": ["b"]})

    class Args(BaseModel):
        a: int = 5

    assert call(one(plus_one).as_tool(Args), {}) == {"a": 6}


def test_a_graph_of_one_value_takes_that_as_a_tool(call: Call) -> None:
    @entrypoint()
    def shout(text: str) -> str:
        return text.upper()

    @entrypoint()
    def double(number: int) -> int:
        return 2 * number

    assert call(shout.as_tool(), "hi") == "HI"
    assert call(double.as_tool(), {"input": 2}) == 4


def test_what_a_graph_asks_as_an_agents_tool_reaches_the_agents_caller(saver: Any, call: Call) -> None:
    found = chain(None, ask).as_tool(name="check", description="Check.")
    agent = create_agent(Scripted(calls(("check", "c1", {"log": ["sure?"]})), "done"), [found], checkpointer=saver)
    config = thread()
    assert [i.value for i in asked(call(agent, {"messages": [("user", "go")]}, config))] == ["sure?"]
    messages = call(agent, Command(resume="yes"), config)["messages"]
    assert [m.content for m in messages if m.type == "tool"] == ['{"log": ["sure?", "yes"]}']


# --- events in LangChain's form ---------------------------------------------------------------------------------------


def events(graph: Any, given: Any, config: Any = None, **options: Any) -> list[Any]:
    async def collected() -> list[Any]:
        return [event async for event in graph.astream_events(given, config, version="v2", **options)]

    return asyncio.run(collected())


def speaking_and_calling(state_graph: Any, start: Any) -> Any:
    @tool
    def add(a: int) -> int:
        """Add one."""
        return a + 1

    async def speaks(state: Any) -> Any:
        return {"messages": [await Speaker(texts=["hello world"]).ainvoke("say")]}

    async def adds(state: Any) -> Any:
        await add.ainvoke({"a": 1})
        return {}

    from langgraph.graph import MessagesState as PeerState

    graph = state_graph(PeerState).add_node("speaks", speaks).add_node("adds", adds)
    return graph.add_edge(start, "speaks").add_edge("speaks", "adds").compile()


def told(event: Any) -> tuple[Any, ...]:
    return event["event"], event["name"], event["metadata"].get("langgraph_node"), sorted(event["data"])


def test_events_are_those_of_the_peer_but_for_the_order_of_ends() -> None:
    from langgraph.graph import START as PEER_START
    from langgraph.graph import StateGraph as PeerGraph

    ours = [told(e) for e in events(speaking_and_calling(StateGraph, START), {"messages": []})]
    theirs = [told(e) for e in events(speaking_and_calling(PeerGraph, PEER_START), {"messages": []})]
    assert sorted(ours, key=str) == sorted(theirs, key=str)
    assert [e for e in ours if "_start" in e[0]] == [e for e in theirs if "_start" in e[0]]
    assert ours[-1] == theirs[-1] == ("on_chain_end", "LangGraph", None, ["output"])


def test_events_can_be_filtered_and_end_with_the_output(saver: Any) -> None:
    graph = one(plus_one, saver=saver)
    first, *_, last = events(graph, {"a": 1}, thread(), include_names=["LangGraph"])
    assert (first["event"], first["data"]) == ("on_chain_start", {"input": {"a": 1}})
    assert (last["event"], last["data"]) == ("on_chain_end", {"output": {"a": 2}})
    assert {e["name"] for e in events(graph, {"a": 1}, thread("2"), include_names=["node"])} == {"node"}


def test_an_event_stream_of_a_graph_that_asks_shows_the_question_last(saver: Any) -> None:
    graph, config = chain(saver, ask), thread()
    *_, question, last = events(graph, {"log": ["sure?"]}, config)
    assert [i.value for i in question["data"]["chunk"]["__interrupt__"]] == ["sure?"]
    assert last["data"]["output"] == {"log": ["sure?"]}
    assert events(graph, Command(resume="yes"), config)[-1]["data"]["output"] == {"log": ["sure?", "yes"]}


def test_an_error_of_the_run_is_raised_by_its_events() -> None:
    with pytest.raises(ValueError, match="negative"):
        events(one(plus_one), {"a": -1})


def test_events_of_a_graph_with_a_reducer_have_its_state(saver: Any) -> None:
    class Log(TypedDict):
        log: Annotated[list[str], operator.add]

    graph = one(lambda s: {"log": ["b"]}, Log, saver)
    assert events(graph, {"log": ["a"]}, thread())[-1]["data"] == {"output": {"log": ["a", "b"]}}
