"""The store that a graph was compiled with, as its nodes and tools reach it: for all threads, in every way to call."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest

from tests.agents.scripted import Scripted, calls
from tests.behaviours.conftest import Call
from tests.behaviours.graphs import State, asked, builder, chain, parallel, thread
from waitpoint.agents import create_agent
from waitpoint.config import get_store
from waitpoint.runtime import Runtime, get_runtime
from waitpoint.store.base import BaseStore
from waitpoint.store.memory import InMemoryStore
from waitpoint.store.sqlite import SqliteStore
from waitpoint.tools import InjectedStore, ToolRuntime
from waitpoint.types import Command, interrupt

NS = ("notes",)


@pytest.fixture(params=["memory", "sqlite", "beside the threads"])
def notes(request: pytest.FixtureRequest, saver: Any, tmp_path: Path) -> Iterator[BaseStore]:
    if request.param == "memory":
        yield InMemoryStore()
    else:
        with SqliteStore(tmp_path / ("notes.db" if request.param == "sqlite" else "threads.db")) as store:
            yield store


def by_runtime(state: State, runtime: Runtime) -> State:
    return {"log": [runtime.store]}


def by_annotation(state: State, where: BaseStore) -> State:
    return {"log": [where]}


def by_name(state: State, *, store: Any) -> State:
    return {"log": [store]}


def by_function(state: State) -> State:
    return {"log": [get_store(), get_runtime().store]}


@pytest.mark.parametrize("node", [by_runtime, by_annotation, by_name, by_function])
def test_a_node_reaches_the_store_in_each_way(node: Any, call: Call) -> None:
    store = InMemoryStore()
    found = call(chain(None, node, store=store), {})["log"]
    assert found
    assert all(one is store for one in found)
    assert set(call(chain(None, node), {})["log"]) == {None}


def test_what_a_node_put_outlives_its_thread(saver: Any, notes: BaseStore, call: Call) -> None:
    def count(state: State, runtime: Runtime) -> State:
        found = runtime.store.get(NS, "count")
        number = 1 if found is None else found.value["n"] + 1
        runtime.store.put(NS, "count", {"n": number})
        return {"log": [number]}

    graph = chain(saver, count, store=notes)
    assert [call(graph, {}, thread())["log"] for _ in range(3)] == [[1], [2], [3]]
    found = notes.get(NS, "count")
    assert found is not None
    assert found.value == {"n": 3}


async def test_an_async_node_awaits_the_store(saver: Any, notes: BaseStore) -> None:
    async def node(state: State, runtime: Runtime) -> State:
        await runtime.store.aput(NS, "a", {"n": 1})
        return {"log": [item.key for item in await runtime.store.asearch(NS)]}

    assert (await chain(saver, node, store=notes).ainvoke({}, thread()))["log"] == ["a"]


def test_nodes_that_run_at_once_share_the_store(saver: Any, notes: BaseStore, call: Call) -> None:
    def one(state: State, runtime: Runtime) -> State:
        runtime.store.put(NS, "one", {})
        return {"log": ["one"]}

    def two(state: State, runtime: Runtime) -> State:
        runtime.store.put(NS, "two", {})
        return {"log": ["two"]}

    call(parallel(saver, one, two, store=notes), {}, thread())
    assert sorted(item.key for item in notes.search(NS)) == ["one", "two"]


def test_a_subgraph_has_the_store_of_its_parent_unless_it_has_its_own(saver: Any, call: Call) -> None:
    outer, own = InMemoryStore(), InMemoryStore()
    inherits, has_own = chain(None, by_runtime), chain(None, by_runtime, store=own)
    graph = builder().add_node("inherits", inherits).add_node("own", has_own)
    graph.add_edge("__start__", "inherits").add_edge("inherits", "own")
    assert [call(compiled, {})["log"] for compiled in (inherits, has_own)] == [[None], [own]]
    found = call(graph.compile(store=outer), {})["log"]
    assert [one for one in found if one is outer]
    assert [one for one in found if one is own]


def test_what_was_put_before_a_question_is_there_when_it_is_answered(saver: Any, notes: BaseStore, call: Call) -> None:
    def ask(state: State, runtime: Runtime) -> State:
        runtime.store.put(NS, "draft", {"text": "hello"})
        answer = interrupt("send?")
        return {"log": [answer, runtime.store.get(NS, "draft").value["text"]]}

    graph, config = chain(saver, ask, store=notes), thread()
    asked(call(graph, {}, config))
    assert call(graph, Command(resume=True), config)["log"] == [True, "hello"]


def test_a_tool_reaches_the_store_and_the_model_does_not_see_it(notes: BaseStore, call: Call) -> None:
    def remember(text: str, store: Annotated[Any, InjectedStore()]) -> str:
        """Remember a text."""
        store.put(NS, "text", {"text": text})
        return "remembered"

    def recall(runtime: ToolRuntime) -> str:
        """Recall the text."""
        return str(runtime.store.get(NS, "text").value["text"])

    model = Scripted(calls(("remember", "1", {"text": "figs"})), calls(("recall", "2", {})), "done")
    agent = create_agent(model, [remember, recall], store=notes)
    messages = call(agent, {"messages": [{"role": "user", "content": "hi"}]})["messages"]
    assert [m.content for m in messages if m.type == "tool"] == ["remembered", "figs"]
    assert notes.search(NS)[0].value == {"text": "figs"}
