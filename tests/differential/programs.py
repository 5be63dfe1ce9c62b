"""Programs of all kinds, written once for both libraries; `PROGRAMS` lists them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

from tests.differential.play import Library, Program, answers

PROGRAMS: list[Callable[[Library], Program]] = []


def program(make: Callable[[Library], Program]) -> Callable[[Library], Program]:
    """Put a program on the list."""
    PROGRAMS.append(make)
    return make


class State(TypedDict, total=False):
    x: int
    text: str
    log: Annotated[list[Any], operator.add]
    total: Annotated[int, operator.add]


def logs(name: str, **update: Any) -> Callable[[Any], dict[str, Any]]:
    """Return a node that writes its name to the log."""
    return lambda state: {"log": [name], **update}


def asks(lib: Library, name: str, question: Any, times: int = 1) -> Callable[[Any], dict[str, Any]]:
    """Return a node that asks, then logs the answers."""

    def node(state: Any) -> dict[str, Any]:
        given = [lib.interrupt(question if times == 1 else f"{question} {i}") for i in range(times)]
        return {"log": [[name, *given]]}

    return node


def chain(lib: Library, *nodes: tuple[str, Any]) -> Any:
    """Return a builder of nodes in a row."""
    builder = lib.StateGraph(State)
    previous = lib.START
    for name, node in nodes:
        builder.add_node(name, node)
        builder.add_edge(previous, name)
        previous = name
    return builder.add_edge(previous, lib.END)


def fan(lib: Library, **nodes: Any) -> Any:
    """Return a builder of nodes side by side, joined by a last one."""
    builder = lib.StateGraph(State)
    for name, node in nodes.items():
        builder.add_node(name, node)
        builder.add_edge(lib.START, name)
    builder.add_node("last", logs("last"))
    return builder.add_edge(list(nodes), "last")


# --- flow -------------------------------------------------------------------------------------------------------------


@program
def a_chain(lib: Library) -> Program:
    builder = chain(lib, ("a", logs("a", x=1)), ("b", logs("b")), ("c", lambda s: {"x": s["x"] + 1}))
    return Program(builder, [{"text": "hi"}, {"x": 5}])


@program
def nodes_that_write_nothing(lib: Library) -> Program:
    builder = chain(lib, ("a", lambda s: None), ("b", lambda s: {}), ("c", logs("c")))
    return Program(builder, [{"text": "hi"}])


@program
def a_conditional(lib: Library) -> Program:
    builder = lib.StateGraph(State)
    builder.add_node("a", lambda s: {"x": s["x"] + 1})
    builder.add_node("even", logs("even")).add_node("odd", logs("odd"))
    builder.add_edge(lib.START, "a")
    builder.add_conditional_edges("a", lambda s: s["x"] % 2, {0: "even", 1: "odd"})
    return Program(builder, [{"x": 1}, {"x": 2}])


@program
def a_conditional_entry(lib: Library) -> Program:
    builder = lib.StateGraph(State)
    builder.add_node("a", logs("a")).add_node("b", logs("b"))
    builder.add_conditional_edges(lib.START, lambda s: s["text"])
    return Program(builder, [{"text": "a"}, {"text": "b"}, {"text": lib.END}])


@program
def a_loop(lib: Library) -> Program:
    builder = lib.StateGraph(State)
    builder.add_node("count", lambda s: {"x": s["x"] + 1, "log": [s["x"]]})
    builder.add_edge(lib.START, "count")
    builder.add_conditional_edges("count", lambda s: "count" if s["x"] < 4 else lib.END)
    return Program(builder, [{"x": 0}, {"x": 3}])


@program
def a_loop_over_the_limit(lib: Library) -> Program:
    builder = lib.StateGraph(State)
    builder.add_node("count", lambda s: {"total": 1})
    builder.add_edge(lib.START, "count").add_edge("count", "count")
    return Program(builder, [{"x": 0}], config={"recursion_limit": 4})


@program
def a_fan_out_and_a_join(lib: Library) -> Program:
    builder = fan(lib, c=logs("c", total=1), a=logs("a", total=10), b=logs("b", total=100))
    return Program(builder, [{"text": "go"}, {"text": "again"}], parallel=True)


@program
def a_join_over_steps(lib: Library) -> Program:
    builder = lib.StateGraph(State)
    for name in ("short", "long1", "long2", "join"):
        builder.add_node(name, logs(name))
    builder.add_edge(lib.START, "short").add_edge(lib.START, "long1").add_edge("long1", "long2")
    builder.add_edge(["short", "long2"], "join")
    return Program(
        builder,
        [{"x": 1}],
        parallel=True,
        differs={"history": "LangGraph lists the join as due before its last source ran"},
    )


@program
def edges_into_one_node_from_branches_of_unequal_length(lib: Library) -> Program:
    builder = lib.StateGraph(State)
    for name in ("short", "long1", "long2", "sink"):
        builder.add_node(name, logs(name))
    builder.add_edge(lib.START, "short").add_edge(lib.START, "long1").add_edge("long1", "long2")
    builder.add_edge("short", "sink").add_edge("long2", "sink")
    return Program(builder, [{"x": 1}], parallel=True)


@program
def two_writes_to_a_plain_key(lib: Library) -> Program:
    return Program(
        fan(lib, a=lambda s: {"x": 1}, b=lambda s: {"x": 2}),
        [{"text": "go"}, None],
        parallel=True,
        differs={"state": "LangGraph cannot show such a thread", "history": "nor its history"},
    )


@program
def a_node_that_fails_once(lib: Library) -> Program:
    calls: list[int] = []

    def flaky(state: Any) -> dict[str, Any]:
        calls.append(1)
        if len(calls) == 1:
            raise ValueError("not yet")
        return {"log": ["flaky"]}

    return Program(
        chain(lib, ("a", logs("a")), ("flaky", flaky), ("b", logs("b"))),
        [{"x": 1}, None],
        differs={"history": "the record of an error ends with the success"},
    )


@program
def overwritten(lib: Library) -> Program:
    builder = chain(lib, ("a", logs("a")), ("b", lambda s: {"log": lib.Overwrite(["only"])}), ("c", logs("c")))
    return Program(builder, [{"log": ["in"]}])


@program
def overwritten_beside_other_writes(lib: Library) -> Program:
    builder = fan(lib, a=logs("a"), b=lambda s: {"log": lib.Overwrite(["only"])}, c=logs("c"))
    return Program(builder, [{"log": ["in"]}], parallel=True)


@program
def an_error_handler(lib: Library) -> Program:
    def fails(state: Any) -> Any:
        raise ValueError("broken")

    def handler(state: Any) -> Any:
        return {"log": ["handled"]}

    builder = lib.StateGraph(State)
    builder.add_node("fails", fails, error_handler=handler).add_node("next", logs("next"))
    builder.add_edge(lib.START, "fails").add_edge("fails", "next")
    return Program(
        builder,
        [{"x": 1}],
        differs={"parts": "LangGraph names the handler __error_handler__fails", "history": "and keeps the error"},
    )


@program
def a_deferred_node(lib: Library) -> Program:
    builder = lib.StateGraph(State)
    for name in ("a", "b1", "b2"):
        builder.add_node(name, logs(name))
    builder.add_node("end", logs("end"), defer=True)
    builder.add_edge(lib.START, "a").add_edge(lib.START, "b1").add_edge("b1", "b2")
    builder.add_edge("a", "end").add_edge("b2", "end")
    return Program(builder, [{"x": 1}], parallel=True)


# --- commands and sends -----------------------------------------------------------------------------------------------


@program
def commands_that_go(lib: Library) -> Program:
    builder = lib.StateGraph(State)
    builder.add_node("a", lambda s: lib.Command(update={"log": ["a"]}, goto="c"))
    builder.add_node("b", logs("b"))
    builder.add_node("c", lambda s: lib.Command(goto=["b", "d"], update={"x": 2}))
    builder.add_node("d", lambda s: lib.Command(goto=lib.END, update={"log": ["d"]}))
    builder.add_edge(lib.START, "a")
    return Program(builder, [{"x": 1}], parallel=True)


@program
def a_list_of_commands_and_updates(lib: Library) -> Program:
    builder = lib.StateGraph(State)
    builder.add_node("a", lambda s: [lib.Command(update={"log": [1]}, goto="b"), {"log": [2]}, {"x": 3}])
    builder.add_node("b", logs("b"))
    builder.add_edge(lib.START, "a")
    return Program(builder, [{"x": 1}], differs={"history": "LangGraph shows {'$writes': ...} as the result"})


@program
def a_map_by_send(lib: Library) -> Program:
    builder = lib.StateGraph(State)
    builder.add_node("split", logs("split"))
    builder.add_node("work", lambda n: {"log": [n * 10], "total": n})
    builder.add_node("reduce", lambda s: {"x": sum(v for v in s["log"] if isinstance(v, int))})
    builder.add_edge(lib.START, "split")
    builder.add_conditional_edges("split", lambda s: [lib.Send("work", n) for n in (3, 1, 2)])
    builder.add_edge("work", "reduce")
    return Program(builder, [{"x": 1}], parallel=True)


@program
def sends_beside_names_and_from_commands(lib: Library) -> Program:
    builder = lib.StateGraph(State)
    builder.add_node("split", logs("split"))
    builder.add_node("work", lambda n: lib.Command(update={"log": [n]}, goto=lib.Send("tail", n + 100)))
    builder.add_node("tail", lambda n: {"log": [n]})
    builder.add_node("plain", logs("plain"))
    builder.add_edge(lib.START, "split")
    builder.add_conditional_edges("split", lambda s: [lib.Send("work", 2), "plain", lib.Send("work", 1)])
    return Program(builder, [{"x": 1}], parallel=True)


@program
def input_by_command(lib: Library) -> Program:
    builder = chain(lib, ("a", logs("a")), ("b", logs("b")))
    return Program(
        builder,
        [lib.Command(update={"x": 1}), {"x": 2}],
        differs={"history": "LangGraph writes the update before its checkpoint of the input"},
    )


# --- subgraphs --------------------------------------------------------------------------------------------------------


@program
def a_subgraph_as_a_node(lib: Library) -> Program:
    inner = chain(lib, ("i1", logs("i1", x=7)), ("i2", logs("i2"))).compile()
    return Program(chain(lib, ("a", logs("a")), ("inner", inner), ("b", logs("b"))), [{"text": "t"}])


@program
def a_subgraph_that_asks(lib: Library) -> Program:
    inner = chain(lib, ("i1", logs("i1")), ("i2", asks(lib, "i2", "inner?")), ("i3", logs("i3"))).compile()
    builder = chain(lib, ("a", logs("a")), ("inner", inner), ("b", logs("b")))
    return Program(builder, [{"text": "t"}, lib.Command(resume="yes")])


@program
def a_subgraph_called_in_a_function(lib: Library) -> Program:
    inner = chain(lib, ("i1", logs("i1")), ("i2", asks(lib, "i2", "inner?")), ("i3", logs("i3"))).compile()

    def node(state: Any) -> dict[str, Any]:
        return {"log": [["inner", inner.invoke({"x": 3, "log": []})["log"]]]}

    builder = chain(lib, ("a", logs("a")), ("call", node), ("b", logs("b")))
    return Program(
        builder,
        [{"text": "t"}, lib.Command(resume="yes")],
        differs={"state": "LangGraph finds such graphs in closures", "history": "as before"},
    )


@program
def three_levels(lib: Library) -> Program:
    low = chain(lib, ("low", asks(lib, "low", "lowest?"))).compile()
    middle = chain(lib, ("m", lambda s: {"x": 2}), ("low_graph", low)).compile()
    builder = chain(lib, ("middle", middle), ("b", lambda s: {"text": "done"}))
    return Program(builder, [{"x": 1}, lib.Command(resume=5)])


@program
def a_command_to_the_parent(lib: Library) -> Program:
    inner = lib.StateGraph(State)
    inner.add_node("i", lambda s: lib.Command(graph=lib.Command.PARENT, goto="c", update={"log": ["from inside"]}))
    inner.add_edge(lib.START, "i")
    builder = lib.StateGraph(State)
    builder.add_node("inner", inner.compile()).add_node("b", logs("b")).add_node("c", logs("c"))
    builder.add_edge(lib.START, "inner")
    return Program(builder, [{"x": 1}])


# --- questions --------------------------------------------------------------------------------------------------------


@program
def one_question(lib: Library) -> Program:
    builder = chain(lib, ("a", logs("a")), ("ask", asks(lib, "ask", "ok?")), ("b", logs("b")))
    return Program(builder, [{"x": 1}, lib.Command(resume={"fine": True})])


@program
def three_questions_in_a_row(lib: Library) -> Program:
    builder = chain(lib, ("ask", asks(lib, "ask", "part", times=3)))
    return Program(
        builder,
        [{"x": 1}, *(lib.Command(resume=n) for n in range(3))],
        differs={"history": "LangGraph keeps the last question of a task only"},
    )


@program
def a_validation_loop(lib: Library) -> Program:
    def node(state: Any) -> dict[str, Any]:
        text = "How old?"
        while True:
            age = lib.interrupt(text)
            if isinstance(age, list):
                return {"x": age[0]}
            text = f"{age!r} is no age. How old?"

    calls = [{"text": "t"}, lib.Command(resume="ten"), lib.Command(resume=False), lib.Command(resume=[10])]
    return Program(
        chain(lib, ("node", node)), calls, differs={"history": "LangGraph keeps the last question of a task only"}
    )


@program
def questions_side_by_side(lib: Library) -> Program:
    builder = fan(lib, a=asks(lib, "a", "a?"), b=asks(lib, "b", "b?"), c=logs("c"))
    calls = [{"x": 1}, *(lambda g, a=a: lib.Command(resume=answers(g, a)) for a in ({"b?": 2}, {"a?": 1}))]
    return Program(builder, calls, parallel=True)


@program
def a_bare_answer_to_two_questions(lib: Library) -> Program:
    builder = fan(lib, a=asks(lib, "a", "a?"), b=asks(lib, "b", "b?"))
    return Program(builder, [{"x": 1}, lib.Command(resume="which?")], parallel=True)


@program
def questions_in_sends(lib: Library) -> Program:
    builder = lib.StateGraph(State)

    def work(n: int) -> dict[str, Any]:
        return {"log": [[n, lib.interrupt(f"item {n}?") if n != 2 else "free"]]}

    builder.add_node("work", work)
    builder.add_conditional_edges(lib.START, lambda s: [lib.Send("work", n) for n in (1, 2, 3)])
    both = {"item 1?": "one", "item 3?": "three"}
    return Program(builder, [{"x": 1}, lambda g: lib.Command(resume=answers(g, both))], parallel=True)


@program
def an_answer_with_an_update(lib: Library) -> Program:
    builder = chain(lib, ("ask", asks(lib, "ask", "ok?")), ("b", lambda s: {"log": [s.get("text")]}))
    return Program(
        builder,
        [{"x": 1}, lib.Command(resume=True, update={"text": "late"})],
        differs={"history": "a record does not apply what came later"},
    )


@program
def a_question_then_a_failure(lib: Library) -> Program:
    calls: list[int] = []

    def node(state: Any) -> dict[str, Any]:
        answer = lib.interrupt("ok?")
        calls.append(1)
        if len(calls) == 1:
            raise ValueError("stumbled")
        return {"log": [answer]}

    return Program(
        chain(lib, ("node", node), ("b", logs("b"))),
        [{"x": 1}, lib.Command(resume="yes"), None],
        differs={"parts": "LangGraph shows {node: None} at a failure", "history": "the record of an error ends"},
    )


# --- breakpoints ------------------------------------------------------------------------------------------------------


@program
def stops_before_and_after_all(lib: Library) -> Program:
    builder = chain(lib, ("a", logs("a")), ("b", logs("b")))
    return Program(builder, [{"x": 1}, *[None] * 4], {"interrupt_before": "*", "interrupt_after": "*"})


@program
def stops_given_at_the_call(lib: Library) -> Program:
    builder = chain(lib, ("a", logs("a")), ("b", logs("b")), ("c", logs("c")))
    return Program(builder, [{"x": 1}, None, None], call_options={"interrupt_before": ["c"], "interrupt_after": ["a"]})


@program
def a_stop_in_a_loop(lib: Library) -> Program:
    builder = lib.StateGraph(State)
    builder.add_node("count", lambda s: {"x": s["x"] + 1})
    builder.add_edge(lib.START, "count")
    builder.add_conditional_edges("count", lambda s: "count" if s["x"] < 3 else lib.END)
    return Program(builder, [{"x": 0}, None, None, None], {"interrupt_before": ["count"]})


@program
def a_stop_beside_a_sibling(lib: Library) -> Program:
    return Program(fan(lib, a=logs("a"), b=logs("b")), [{"x": 1}, None], {"interrupt_after": ["a"]}, parallel=True)


@program
def a_stop_passed_by_resume(lib: Library) -> Program:
    builder = chain(lib, ("a", logs("a")), ("b", logs("b")))
    return Program(builder, [{"x": 1}, lib.Command(resume="dropped")], {"interrupt_before": ["b"]})


@program
def a_stop_passed_by_goto(lib: Library) -> Program:
    builder = chain(lib, ("a", logs("a")), ("b", logs("b")))
    builder.add_node("extra", logs("extra"))
    return Program(
        builder,
        [{"x": 1}, lib.Command(goto=["extra"])],
        {"interrupt_before": ["b"]},
        parallel=True,
        differs={"history": "LangGraph does not list the node gone to"},
    )


@program
def a_stop_in_a_subgraph(lib: Library) -> Program:
    inner = chain(lib, ("i1", logs("i1")), ("i2", logs("i2"))).compile(interrupt_before=["i2"])
    builder = chain(lib, ("a", logs("a")), ("inner", inner), ("b", logs("b")))
    return Program(builder, [{"text": "t"}, None])


@program
def a_stop_and_an_update(lib: Library) -> Program:
    builder = chain(lib, ("a", logs("a")), ("b", lambda s: {"log": [s["x"]]}))

    def corrected(graph: Any) -> None:
        graph.update_state({"configurable": {"thread_id": "t"}}, {"x": 42})

    return Program(builder, [{"x": 1}, corrected, {"x": 7}, None], {"interrupt_before": ["b"]})
