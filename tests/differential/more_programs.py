"""More programs: states of all kinds, limits, forks, replays and updates."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from pydantic import BaseModel, Field

from tests.differential.play import CONFIG, At, Library, Program, answers
from tests.differential.programs import State, asks, chain, fan, logs, program


def past(graph: Any, *due: str, newest: bool = True) -> Any:
    """Return the config of a checkpoint of the thread that has these nodes due."""
    found = [s for s in graph.get_state_history(CONFIG) if sorted(s.next) == sorted(due)]
    return found[0 if newest else -1].config


# --- limits -----------------------------------------------------------------------------------------------------------


def with_limit(limit: int) -> Any:
    def made(lib: Library) -> Program:
        builder = chain(lib, ("a", logs("a")), ("b", logs("b")))
        differs = {"results": "LangGraph gives a run that goes on two steps more", "parts": "as before"}
        return Program(
            builder,
            [{"x": 1}, None, {"x": 2}],
            config={"recursion_limit": limit},
            differs=differs if limit == 1 else {},
        )

    made.__name__ = f"a_limit_of_{limit}"
    return program(made)


LIMITED = [with_limit(limit) for limit in (1, 2, 3)]


@program
def a_limit_and_a_question(lib: Library) -> Program:
    builder = chain(lib, ("a", logs("a")), ("ask", asks(lib, "ask", "ok?")), ("b", logs("b")))
    return Program(builder, [{"x": 1}, lib.Command(resume=1)], config={"recursion_limit": 3})


def with_durability(durability: str) -> Any:
    def made(lib: Library) -> Program:
        builder = chain(lib, ("a", logs("a")), ("ask", asks(lib, "ask", "ok?")), ("b", logs("b")))
        return Program(builder, [{"x": 1}, lib.Command(resume=1)], call_options={"durability": durability})

    made.__name__ = f"durability_{durability}"
    return program(made)


DURABLE = [with_durability(d) for d in ("sync", "async", "exit")]


# --- states -----------------------------------------------------------------------------------------------------------


class Model(BaseModel):
    name: str = "nobody"
    note: str | None = "note"
    log: Annotated[list[Any], operator.add] = Field(default_factory=list)


@dataclass
class Data:
    name: str = "nobody"
    note: str | None = "note"
    log: Annotated[list[Any], operator.add] = field(default_factory=list)


def with_schema(schema: Any) -> Any:
    def made(lib: Library) -> Program:
        builder = lib.StateGraph(schema)
        builder.add_node("a", lambda s: {"log": [s.name, s.note], "note": None})
        builder.add_node("b", lambda s: schema(name="b", log=[type(s) is schema]))
        builder.add_node("ask", lambda s: {"log": [lib.interrupt(s.name)]})
        builder.add_edge(lib.START, "a").add_edge("a", "b").add_edge("b", "ask")
        return Program(builder, [{"name": "ana"}, lib.Command(resume="yes"), {"note": "again"}])

    made.__name__ = f"a_state_as_{schema.__name__.lower()}"
    return program(made)


SCHEMAS = [with_schema(schema) for schema in (Model, Data)]


class OnlyX(TypedDict, total=False):
    x: int


class OnlyLog(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]


class Private(TypedDict, total=False):
    secret: str
    x: int


@program
def input_output_and_private_schemas(lib: Library) -> Program:
    def reads(state: Private) -> dict[str, Any]:
        return {"log": [dict(state)]}

    builder = lib.StateGraph(State, input_schema=OnlyX, output_schema=OnlyLog)
    builder.add_node("a", lambda s: {"secret": "s", "x": s.get("x", 0) + 1, "unknown": 1})
    builder.add_node("reads", reads, input_schema=Private).add_node("ask", asks(lib, "ask", "ok?"))
    builder.add_edge(lib.START, "a").add_edge("a", "reads").add_edge("reads", "ask")
    return Program(builder, [{"x": 1, "text": "dropped"}, lib.Command(resume="yes"), {"text": "nothing"}])


@program
def input_without_known_keys(lib: Library) -> Program:
    return Program(chain(lib, ("a", logs("a"))), [{"unknown": 1}, {"x": 1}, {"unknown": 2}])


@program
def reducers_of_all_kinds(lib: Library) -> Program:
    class Folded(TypedDict, total=False):
        seen: Annotated[set[str], operator.or_]
        text: Annotated[str, lambda left, right: f"({left}+{right})"]
        last: Annotated[str, lambda left, right: right]

    builder = lib.StateGraph(Folded)
    for name in ("b", "a", "c"):
        builder.add_node(name, lambda s, name=name: {"seen": {name}, "text": name, "last": name})
        builder.add_edge(lib.START, name)
    return Program(builder, [{"text": "in"}, {"seen": {"x"}}], parallel=True)


@program
def a_conversation(lib: Library) -> Program:
    def speaks(state: Any) -> Any:
        return {"messages": [AIMessage(f"reply to {state['messages'][-1].content}", id=f"ai-{len(state['messages'])}")]}

    def edits(state: Any) -> Any:
        last = state["messages"][-1]
        told = lib.interrupt(last.content)
        return {"messages": [AIMessage(told, id=last.id), RemoveMessage(id=state["messages"][0].id)]}

    builder = lib.StateGraph(lib.graph.MessagesState)
    builder.add_node("speaks", speaks).add_node("edits", edits)
    builder.add_edge(lib.START, "speaks").add_edge("speaks", "edits")
    calls = [
        {"messages": [HumanMessage("hi", id="h1")]},
        lib.Command(resume="edited"),
        {"messages": [{"role": "user", "content": "more", "id": "h2"}]},
        lib.Command(resume="again"),
        lambda g: At(g.update_state(CONFIG, {"messages": [RemoveMessage(id="__remove_all__")]}, as_node="edits")),
    ]
    return Program(
        builder, calls, differs={"history": "here an input's messages are messages from the first record on"}
    )


# --- commands and subgraphs -------------------------------------------------------------------------------------------


@program
def a_command_to_the_parent_beside_its_edges(lib: Library) -> Program:
    inner = chain(
        lib,
        ("own", logs("own")),
        ("up", lambda s: lib.Command(graph=lib.Command.PARENT, goto=lib.Send("c", {}), update={"log": ["up"]})),
    )
    builder = lib.StateGraph(State)
    builder.add_node("inner", inner.compile()).add_node("b", logs("b")).add_node("c", logs("c"))
    builder.add_edge(lib.START, "inner").add_edge("inner", "b")
    return Program(builder, [{"x": 1}], parallel=True)


@program
def a_called_graph_speaks_to_its_parent(lib: Library) -> Program:
    inner = chain(lib, ("up", lambda s: lib.Command(graph=lib.Command.PARENT, goto="c", update={"log": ["up"]})))
    graph = inner.compile()
    builder = lib.StateGraph(State)
    builder.add_node("call", lambda s: graph.invoke({"x": 2})).add_node("c", logs("c")).add_node("b", logs("b"))
    builder.add_edge(lib.START, "call").add_edge("call", "b")
    differs = {"state": "LangGraph finds such graphs in closures", "history": "as before"}
    return Program(builder, [{"x": 1}], parallel=True, differs=differs)


@program
def an_edge_and_a_goto_to_the_same_node(lib: Library) -> Program:
    builder = lib.StateGraph(State)
    builder.add_node("a", lambda s: lib.Command(goto="b")).add_node("b", logs("b"))
    builder.add_edge(lib.START, "a").add_edge("a", "b")
    return Program(builder, [{"x": 1}])


@program
def sends_to_a_subgraph_that_asks(lib: Library) -> Program:
    class Item(TypedDict, total=False):
        item: int
        log: Annotated[list[Any], operator.add]

    inner = lib.StateGraph(Item)
    inner.add_node("ask", lambda s: {"log": [[s["item"], lib.interrupt(f"{s['item']}?")]]}).add_edge(lib.START, "ask")
    builder = lib.StateGraph(State)
    builder.add_node("work", inner.compile()).add_node("last", logs("last")).add_edge("work", "last")
    builder.add_conditional_edges(lib.START, lambda s: [lib.Send("work", {"item": n}) for n in (1, 2)])
    calls = [{"x": 1}, *(lambda g, a=a: lib.Command(resume=answers(g, a)) for a in ({"2?": "b"}, {"1?": "a"}))]
    return Program(builder, calls, parallel=True)


@program
def a_subgraph_in_a_loop(lib: Library) -> Program:
    inner = chain(lib, ("i", lambda s: {"x": s["x"] + 1})).compile()
    builder = lib.StateGraph(State)
    builder.add_node("inner", inner).add_edge(lib.START, "inner")
    builder.add_conditional_edges("inner", lambda s: "inner" if s["x"] < 3 else lib.END)
    return Program(builder, [{"x": 0}])


@program
def a_stop_after_the_last_node_of_a_subgraph(lib: Library) -> Program:
    inner = chain(lib, ("i", logs("i"))).compile(interrupt_after=["i"])
    return Program(chain(lib, ("inner", inner), ("b", logs("b"))), [{"x": 1}, None, None])


@program
def a_stop_in_a_subgraph_beside_a_question(lib: Library) -> Program:
    inner = chain(lib, ("i1", lambda s: {"x": 2}), ("i2", lambda s: {"x": 3})).compile(interrupt_before=["i2"])
    builder = fan(lib, inner=inner, ask=asks(lib, "ask", "ok?"))
    return Program(builder, [{"text": "t"}, lib.Command(resume=1)], parallel=True)


@program
def retries_then_success(lib: Library) -> Program:
    tries: list[int] = []

    def flaky(state: Any) -> Any:
        tries.append(1)
        if len(tries) < 3:
            raise ConnectionError("down")
        return {"log": [len(tries)]}

    policy = lib.RetryPolicy(max_attempts=3, initial_interval=0.0, jitter=False)
    builder = lib.StateGraph(State).add_node("flaky", flaky, retry_policy=policy).add_edge(lib.START, "flaky")
    return Program(builder, [{"x": 1}])


@program
def an_error_handler_that_goes_on(lib: Library) -> Program:
    def fails(state: Any) -> Any:
        raise ValueError("broken")

    def handler(state: Any, error: Any) -> Any:
        return lib.Command(update={"log": [str(error)]}, goto="other")

    handler.__annotations__["error"] = lib.errors.NodeError
    builder = lib.StateGraph(State)
    builder.add_node("fails", fails, error_handler=handler).add_node("next", logs("next")).add_node("ok", logs("ok"))
    builder.add_node("other", lambda s: {"text": "other"}).add_node("join", logs("join"))
    builder.add_edge(lib.START, "fails").add_edge("fails", "next").add_edge(lib.START, "ok")
    builder.add_edge(["fails", "ok"], "join").add_conditional_edges("fails", lambda s: "join")
    differs = {
        "results": "the text of the error names the node",
        "parts": "LangGraph names the handler",
        "history": "and keeps the error",
    }
    return Program(builder, [{"x": 1}], parallel=True, differs=differs)


# --- forks, replays, updates ------------------------------------------------------------------------------------------


@program
def a_replay(lib: Library) -> Program:
    builder = chain(lib, ("a", logs("a")), ("b", logs("b")), ("c", logs("c")))
    return Program(builder, [{"x": 1}, lambda g: At(past(g, "b")), lambda g: At(past(g, "c"))])


@program
def a_replay_from_the_input(lib: Library) -> Program:
    builder = chain(lib, ("a", logs("a")), ("b", logs("b")))
    return Program(builder, [{"x": 1}, lambda g: At(past(g, "__start__"))])


@program
def a_replay_of_a_question(lib: Library) -> Program:
    builder = chain(lib, ("a", logs("a")), ("ask", asks(lib, "ask", "ok?")), ("b", logs("b")))
    calls = [
        {"x": 1},
        lib.Command(resume="old"),
        lambda g: At(past(g, "ask")),
        lib.Command(resume="new"),
        lambda g: At(past(g, "a", newest=False)),
        lib.Command(resume="newer"),
    ]
    return Program(builder, calls)


@program
def a_replay_of_parallel_nodes(lib: Library) -> Program:
    builder = fan(lib, a=logs("a"), b=logs("b"))
    return Program(builder, [{"x": 1}, lambda g: At(past(g, "a", "b"))], parallel=True)


@program
def new_input_at_an_old_checkpoint(lib: Library) -> Program:
    builder = chain(lib, ("a", logs("a")), ("b", logs("b")))
    return Program(builder, [{"x": 1}, {"x": 2}, lambda g: At(past(g, newest=False), {"x": 3}), {"x": 4}])


@program
def an_update_and_a_run(lib: Library) -> Program:
    builder = chain(lib, ("a", logs("a")), ("b", logs("b")), ("c", logs("c")))

    def updated(graph: Any) -> Any:
        return At(graph.update_state(past(graph, "b"), {"log": ["update"], "x": 9}))

    def as_other(graph: Any) -> Any:
        return At(graph.update_state(CONFIG, {"log": ["as a"]}, as_node="a"))

    return Program(builder, [{"x": 1}, updated, as_other])


@program
def an_update_that_ends_a_pause(lib: Library) -> Program:
    builder = fan(lib, a=logs("a"), ask=asks(lib, "ask", "ok?"))

    def ended(graph: Any) -> Any:
        graph.update_state(CONFIG, None, as_node=lib.END)
        return {"text": "again"}

    return Program(builder, [{"x": 1}, ended], parallel=True)


@program
def a_copy(lib: Library) -> Program:
    builder = chain(lib, ("a", logs("a")), ("ask", asks(lib, "ask", "ok?")))

    def copied(graph: Any) -> Any:
        return At(graph.update_state(CONFIG, None, as_node="__copy__"))

    return Program(builder, [{"x": 1}, copied, lib.Command(resume="new")])


@program
def a_thread_built_from_updates(lib: Library) -> Program:
    builder = lib.StateGraph(State)
    builder.add_node("split", logs("split")).add_node("work", lambda n: {"log": [n]}).add_node("end", logs("end"))
    builder.add_edge(lib.START, "split").add_conditional_edges("split", lambda s: [lib.Send("work", n) for n in (1, 2)])
    builder.add_edge("work", "end")

    def built(graph: Any) -> Any:
        one = lib.types.StateUpdate
        steps = [
            [one({"x": 1}, "__input__")],
            [one({"x": 1}, "__start__")],
            [one({"log": ["split"]}, "split")],
            [one({"log": [1]}, "work"), one({"log": [2]}, "work")],
        ]
        return At(graph.bulk_update_state(CONFIG, steps))

    return Program(builder, [built], parallel=True)


@program
def a_first_update(lib: Library) -> Program:
    builder = chain(lib, ("a", logs("a")), ("b", logs("b")))

    def begun(graph: Any) -> Any:
        graph.update_state(CONFIG, {"x": 5}, as_node="a")

    return Program(builder, [begun, {"x": 6}])


@program
def an_update_after_an_edit_in_a_loop(lib: Library) -> Program:
    builder = lib.StateGraph(State)
    builder.add_node("count", lambda s: {"x": s["x"] + 1, "log": [s["x"]]}).add_edge(lib.START, "count")
    builder.add_conditional_edges("count", lambda s: "count" if s["x"] < 5 else lib.END)

    def nudged(graph: Any) -> None:
        graph.update_state(CONFIG, {"x": 4})

    differs = {"history": "LangGraph lists the update as the result of the task that was due"}
    return Program(builder, [{"x": 0}, nudged, None], {"interrupt_after": ["count"]}, differs=differs)
