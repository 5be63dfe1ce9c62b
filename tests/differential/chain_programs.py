"""Programs whose chains are compared: what a callback handler hears of their runs. `api` is either library."""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, Any, TypedDict

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool


class State(TypedDict, total=False):
    x: Annotated[int, operator.add]
    text: str


def say() -> str:
    model = GenericFakeChatModel(messages=iter([AIMessage("hi")]))
    return str(model.invoke("hello").content)


def linear(api: Any) -> Any:
    def first(state: Any) -> Any:
        return {"x": 1}

    def second(state: Any) -> Any:
        return {"x": 2, "text": say()}

    graph = api.StateGraph(State)
    graph.add_node("first", first)
    graph.add_node("second", second, metadata={"colour": "red"})
    graph.add_edge(api.START, "first")
    graph.add_edge("first", "second")
    return graph


def asking(api: Any) -> Any:
    def asks(state: Any) -> Any:
        return {"text": api.interrupt("sure?")}

    graph = api.StateGraph(State)
    graph.add_node("asks", asks)
    graph.add_edge(api.START, "asks")
    return graph


def thread(**more: Any) -> Any:
    return {"configurable": {"thread_id": "1"}, **more}


def ask_and_answer(api: Any, invoke: Any, graph: Any) -> None:
    invoke(graph, {"x": 1}, thread())
    invoke(graph, api.Command(resume="yes"), thread())


# --- the programs -----------------------------------------------------------------------------------------------------


def two_nodes_in_a_row(api: Any, invoke: Any) -> None:
    invoke(linear(api).compile(), {"x": 0})


def names_tags_and_metadata_of_the_config(api: Any, invoke: Any) -> None:
    config = {"run_name": "mine", "tags": ["a", "b"], "metadata": {"who": "ana"}}
    invoke(linear(api).compile(name="desk"), {"x": 0}, config)


def a_config_of_its_own(api: Any, invoke: Any) -> None:
    graph = linear(api).compile(name="desk").with_config(tags=["own"], metadata={"k": 1})
    invoke(graph, {"x": 0}, {"tags": ["call"]})


def routers(api: Any, invoke: Any) -> None:
    def route(state: Any) -> str:
        say()
        return "second"

    graph = api.StateGraph(State)
    graph.add_node("first", lambda s: {"x": 1})
    graph.add_node("second", lambda s: {"x": 1})
    graph.add_edge(api.START, "first")
    graph.add_conditional_edges("first", route, ["second"])
    invoke(graph.compile(), {"x": 0})


def a_question_and_its_answer(api: Any, invoke: Any) -> None:
    ask_and_answer(api, invoke, asking(api).compile(checkpointer=api.InMemorySaver()))


def a_question_in_a_nested_graph(api: Any, invoke: Any) -> None:
    graph = api.StateGraph(State)
    graph.add_node("nested", asking(api).compile(name="inner"))
    graph.add_edge(api.START, "nested")
    ask_and_answer(api, invoke, graph.compile(checkpointer=api.InMemorySaver()))


def a_graph_called_in_a_node(api: Any, invoke: Any) -> None:
    inner = linear(api).compile(name="inner")

    def calls(state: Any) -> Any:
        return {"text": inner.invoke({"x": 3})["text"]}

    graph = api.StateGraph(State)
    graph.add_node("calls", calls)
    graph.add_edge(api.START, "calls")
    invoke(graph.compile(), {"x": 0})


def retries(api: Any, invoke: Any) -> None:
    tries: list[int] = []

    def fails_once(state: Any) -> Any:
        tries.append(1)
        if len(tries) == 1:
            raise ValueError("once")
        return {"x": 1}

    graph = api.StateGraph(State)
    policy = api.RetryPolicy(initial_interval=0.001, jitter=False, retry_on=ValueError)
    graph.add_node("fails", fails_once, retry_policy=policy)
    graph.add_edge(api.START, "fails")
    invoke(graph.compile(), {"x": 0})


def a_failure(api: Any, invoke: Any) -> None:
    def fails(state: Any) -> Any:
        raise ValueError("always")

    graph = api.StateGraph(State)
    graph.add_node("fails", fails)
    graph.add_edge(api.START, "fails")
    invoke(graph.compile(), {"x": 0})


def a_breakpoint(api: Any, invoke: Any) -> None:
    graph = linear(api).compile(checkpointer=api.InMemorySaver(), interrupt_before=["second"])
    invoke(graph, {"x": 0}, thread())
    invoke(graph, None, thread())


def packets(api: Any, invoke: Any) -> None:
    def fans_out(state: Any) -> Any:
        return [api.Send("works", {"x": 3}), api.Send("works", {"x": 4})]

    graph = api.StateGraph(State)
    graph.add_node("first", lambda s: {"x": 1})
    graph.add_node("works", lambda s: {"x": s["x"]})
    graph.add_edge(api.START, "first")
    graph.add_conditional_edges("first", fans_out, ["works"])
    invoke(graph.compile(), {"x": 0}, {"max_concurrency": 1})


def commands(api: Any, invoke: Any) -> None:
    graph = api.StateGraph(State)
    graph.add_node("first", lambda s: api.Command(goto="second", update={"x": 1}))
    graph.add_node("second", lambda s: {})
    graph.add_edge(api.START, "first")
    invoke(graph.compile(), {"x": 0})


def a_runnable_as_a_node(api: Any, invoke: Any) -> None:
    graph = api.StateGraph(State)
    graph.add_node("works", RunnableLambda(lambda s: {"x": 5}).with_config(run_name="named"))
    graph.add_edge(api.START, "works")
    invoke(graph.compile(), {"x": 0})


def a_graph_in_a_chain(api: Any, invoke: Any) -> None:
    invoke(RunnableLambda(lambda x: {"x": x}) | linear(api).compile(name="desk"), 3)


def a_tool_in_a_node(api: Any, invoke: Any) -> None:
    @tool
    def add(a: int) -> int:
        """Add one."""
        return a + 1

    graph = api.StateGraph(State)
    graph.add_node("works", lambda s: {"x": add.invoke({"a": s["x"]})})
    graph.add_edge(api.START, "works")
    invoke(graph.compile(), {"x": 0})


def coroutines(api: Any, invoke: Any) -> None:
    async def works(state: Any) -> Any:
        await asyncio.sleep(0)
        model = GenericFakeChatModel(messages=iter([AIMessage("hi")]))
        return {"text": (await model.ainvoke("hello")).content}

    graph = api.StateGraph(State)
    graph.add_node("works", works)
    graph.add_edge(api.START, "works")
    invoke(graph.compile(), {"x": 0})


def functions(api: Any, invoke: Any) -> None:
    @api.task
    def double(number: int) -> int:
        say()
        return number * 2

    @api.entrypoint()
    def flow(number: int) -> Any:
        return double(number).result() + 1

    invoke(flow, 3, {"run_name": "flow"})


def a_question_in_a_function(api: Any, invoke: Any) -> None:
    @api.task
    def double(number: int) -> int:
        return number * 2

    @api.entrypoint(checkpointer=api.InMemorySaver())
    def flow(number: int) -> Any:
        found = double(number).result()
        return f"{found}: {api.interrupt('sure?')}"

    invoke(flow, 3, thread(run_name="flow"))
    invoke(flow, api.Command(resume="yes"), thread(run_name="flow"))


PROGRAMS = [
    two_nodes_in_a_row,
    names_tags_and_metadata_of_the_config,
    a_config_of_its_own,
    routers,
    a_question_and_its_answer,
    a_question_in_a_nested_graph,
    a_graph_called_in_a_node,
    retries,
    a_failure,
    a_breakpoint,
    packets,
    commands,
    a_runnable_as_a_node,
    a_graph_in_a_chain,
    a_tool_in_a_node,
    coroutines,
    functions,
    a_question_in_a_function,
]
ONLY_ASYNC = (coroutines,)
