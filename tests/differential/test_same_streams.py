"""Messages and event streams say the same on Waitpoint and on LangGraph, but for ids and what is stored."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from pydantic import create_model

from tests.behaviours.speaking import TOOL_CALL, Speaker, Whole
from tests.differential.play import LANGGRAPH, WAITPOINT, Library

Make = Callable[[Library], Any]
CONFIG = {
    "configurable": {"thread_id": "t", "assistant_id": "a", "secret": "s"},
    "metadata": {"mine": 1},
    "tags": ["tagged"],
}
TOLD = ("langgraph_step", "langgraph_node", "langgraph_triggers", "langgraph_path", "thread_id", "assistant_id")
TOLD = (*TOLD, "mine", "tags", "secret", "ls_provider")


def chain(lib: Library, saver: Any, schema: Any = None, **nodes: Any) -> Any:
    graph = lib.StateGraph(schema or lib.MessagesState)
    before = lib.START
    for name, node in nodes.items():
        graph.add_node(name, node)
        graph.add_edge(before, name)
        before = name
    return graph.compile(checkpointer=saver)


def speaks(*texts: Any, tags: Any = None) -> Any:
    model = Speaker(texts=list(texts), named=str(texts))
    chosen = model if tags is None else model.with_config(tags=tags)
    return lambda state: {"messages": [chosen.invoke("say")]}


def whole(state: Any) -> Any:
    messages = [AIMessage("ai", id="w1"), HumanMessage("human", id="w2")]
    return {"messages": [*messages, ToolMessage("tool", tool_call_id="c", id="w3")]}


def model_in_a_node(lib: Library) -> Any:
    return chain(lib, None, one=speaks("hello big world"), two=whole)


def tool_calls(lib: Library) -> Any:
    return chain(lib, None, one=speaks(TOOL_CALL))


def a_model_that_cannot_stream(lib: Library) -> Any:
    return chain(lib, None, one=lambda s: {"messages": [Whole().invoke("say")]})


def a_silent_model(lib: Library) -> Any:
    return chain(lib, None, one=speaks("hello world", tags=["nostream"]))


def messages_that_come_again(lib: Library) -> Any:
    def again(state: Any) -> Any:
        return {"messages": [*state["messages"], RemoveMessage(id="w1"), AIMessage("new", id="n")]}

    return chain(lib, None, one=whole, two=again)


def nested_graphs(lib: Library) -> Any:
    deep = chain(lib, None, c=speaks("deep down"))
    inner = chain(lib, None, a=speaks("hello world"), deep=deep, b=whole)
    return chain(lib, lib.saver(), inner=inner, last=speaks("at last"))


def a_function_that_calls_a_graph(lib: Library) -> Any:
    inner = chain(lib, None, a=speaks("hello world"))
    return chain(lib, None, calls=lambda s: {"messages": inner.invoke({"messages": []})["messages"]})


def a_question(lib: Library) -> Any:
    inner = chain(lib, None, a=speaks("may I"), b=lambda s: {"messages": [HumanMessage(lib.interrupt("?"), id="q")]})
    return chain(lib, lib.saver(), inner=inner, last=whole)


def sent_messages(lib: Library) -> Any:
    graph = lib.StateGraph(lib.MessagesState).add_node("echo", lambda s: s)
    given = {"messages": [HumanMessage("sent", id="s")]}
    return graph.add_conditional_edges(lib.START, lambda s: [lib.Send("echo", given)]).compile()


def a_command_to_the_parent(lib: Library) -> Any:
    def hands_over(state: Any) -> Any:
        update = {"messages": [*state["messages"], HumanMessage("handed over", id="h")]}
        return lib.Command(goto="last", graph=lib.Command.PARENT, update=update)

    inner = chain(lib, None, a=speaks("hello world"), b=hands_over)
    graph = lib.StateGraph(lib.MessagesState).add_node("inner", inner, destinations=("last",))
    return graph.add_node("last", whole).add_edge(lib.START, "inner").compile(checkpointer=lib.saver())


def a_model_as_state(lib: Library) -> Any:
    State = create_model("State", messages=(Annotated[list[Any], lib.add_messages], []))
    return chain(lib, None, State, one=speaks("hello world"), two=lambda s: State(messages=s.messages))


def pushed_messages(lib: Library) -> Any:
    push = importlib.import_module(f"{lib.graph.__name__}.message").push_message

    def pushes(state: Any) -> Any:
        push(AIMessage("shown", id="1"), state_key=None)
        push(AIMessage("written", id="2"))
        return {"messages": [AIMessage("returned", id="3")]}

    return chain(lib, None, pushes=pushes)


PROGRAMS = [
    model_in_a_node,
    tool_calls,
    a_model_that_cannot_stream,
    a_silent_model,
    messages_that_come_again,
    nested_graphs,
    a_function_that_calls_a_graph,
    a_question,
    sent_messages,
    a_command_to_the_parent,
    a_model_as_state,
    pushed_messages,
]
EVERY = pytest.mark.parametrize("make", PROGRAMS, ids=lambda make: make.__name__)
GIVEN = {"messages": [HumanMessage("given", id="g")]}


def names(namespace: Any) -> list[str]:
    return [part.split(":")[0] for part in namespace]


def parts(lib: Library, make: Make, **options: Any) -> list[Any]:
    """Return the messages of a run, and of a resumed one if it asked."""
    graph = make(lib)
    found = []
    for given in (GIVEN, lib.Command(resume="yes")) if make is a_question else (GIVEN,):
        for part in graph.stream(given, CONFIG, stream_mode="messages", **options):
            ns, (message, metadata) = part if options.get("subgraphs") else ((), part)
            calls = getattr(message, "tool_call_chunks", [])
            if message.content or calls:
                told = {key: metadata.get(key) for key in TOLD if key in metadata}
                found.append((names(ns), type(message).__name__, message.content, calls, told))
    return found


@EVERY
@pytest.mark.parametrize("options", [{}, {"subgraphs": True}], ids=["root", "subgraphs"])
def test_mode_messages_shows_the_same(make: Make, options: Any) -> None:
    ours = parts(WAITPOINT, make, **options)
    assert ours == parts(LANGGRAPH, make, **options)
    assert ours or make is sent_messages


# What each projection shows, in words that hold for both; LangGraph keeps only what is consumed, so each has its own run.
PROJECTIONS: dict[str, Callable[[Any], Any]] = {
    "messages": lambda run: [(m.node, list(m.text), [c["args"] for c in m.tool_calls]) for m in run.messages],
    "values": lambda run: [size(values) for values in run.values],
    "output": lambda run: size(run.output),
    "questions": lambda run: (run.interrupted, [question.value for question in run.interrupts]),
    "lifecycle": lambda run: [(t["event"], names(t["namespace"]), t.get("graph_name")) for t in run.lifecycle],
    "subgraphs": lambda run: [(names(h.path), h.graph_name, size(h.output), h.status) for h in run.subgraphs],
    "their messages": lambda run: [(m.node, list(m.text)) for h in run.subgraphs for m in h.messages],
    "their subgraphs": lambda run: [(names(d.path), size(d.output)) for h in run.subgraphs for d in h.subgraphs],
    "their lifecycle": lambda run: [(t["event"], names(t["namespace"])) for h in run.subgraphs for t in h.lifecycle],
    "interleaved": lambda run: [name for name, _ in run.interleave("values", "messages", "subgraphs")],
}


def size(values: Any) -> int:
    return len(values["messages"] if isinstance(values, dict) else values.messages)


def consumed(lib: Library, make: Make, projection: str) -> list[Any]:
    """Return what a projection of a run shows, and that of a resumed one if it asked."""
    graph = make(lib)
    given = (GIVEN, lib.Command(resume="yes")) if make is a_question else (GIVEN,)
    return [PROJECTIONS[projection](graph.stream_events(g, CONFIG, version="v3")) for g in given]


def events(lib: Library, make: Make) -> list[Any]:
    """Return the raw events but those that are meant to differ.

    LangGraph shows the start of a graph after its first values, and a question once for each graph that it rests in.
    """
    found = []
    for event in make(lib).stream_events(GIVEN, CONFIG, version="v3"):
        params = event["params"]
        assert set(event) == {"type", "method", "seq", "params"}
        if event["method"] == "messages":
            said, metadata = params["data"]
            is_event = isinstance(said, dict)
            said = {k: v for k, v in said.items() if k != "id"} if is_event else (type(said).__name__, said.text)
            told = {key: metadata.get(key) for key in TOLD if key in metadata}
            found.append((names(params["namespace"]), said, told, bool(metadata.get("run_id"))))
        elif event["method"] == "values":
            questions = [question.value for question in params["interrupts"]]
            if questions and params["namespace"]:
                continue
            found.append((names(params["namespace"]), size(params["data"]), questions))
    return found


@EVERY
@pytest.mark.parametrize("projection", PROJECTIONS)
@pytest.mark.filterwarnings("ignore:.*experimental")
def test_projections_of_a_run_show_the_same(make: Make, projection: str) -> None:
    assert consumed(WAITPOINT, make, projection) == consumed(LANGGRAPH, make, projection)


@EVERY
@pytest.mark.filterwarnings("ignore:.*experimental")
def test_raw_events_are_the_same(make: Make) -> None:
    assert events(WAITPOINT, make) == events(LANGGRAPH, make)
