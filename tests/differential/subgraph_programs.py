"""Programs about graphs inside graphs: memories of their own, and time travel around and inside them."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from tests.differential.more_programs import past
from tests.differential.play import CONFIG, At, Library, Program
from tests.differential.programs import asks, chain, logs, program


class Own(TypedDict, total=False):
    text: str
    own: Annotated[list[Any], operator.add]


def remembers(lib: Library, *, asks: bool = True, checkpointer: Any = True) -> Any:
    """Compile a graph that counts what it has, and writes all of it into `text`."""

    def note(state: Own) -> Any:
        return {"own": [len(state.get("own", []))]}

    def tell(state: Own) -> Any:
        answer = lib.interrupt("ok?") if asks else "yes"
        return {"own": [answer], "text": f"{state['own']} {answer}"}

    builder = lib.StateGraph(Own)
    builder.add_node("note", note).add_node("tell", tell).add_edge(lib.START, "note").add_edge("note", "tell")
    return builder.compile(checkpointer=checkpointer)


def calls(inner: Any, times: int = 1) -> Any:
    """Return a node that calls a graph and logs what it wrote."""
    return lambda state: {"log": [inner.invoke({"text": ""})["text"] for _ in range(times)]}


def told(state: Any) -> Any:
    """A node that logs what the graph before it wrote."""
    return {"log": [state["text"]]}


@program
def a_memory_over_runs(lib: Library) -> Program:
    builder = chain(lib, ("inner", remembers(lib, asks=False)), ("told", told))
    return Program(builder, [{"text": "a"}, {"text": "b"}, {"text": "c"}])


@program
def a_memory_that_asks(lib: Library) -> Program:
    builder = chain(lib, ("inner", remembers(lib)), ("told", told))
    return Program(builder, [{"text": "a"}, lib.Command(resume=1), {"text": "b"}, lib.Command(resume=2)])


@program
def a_memory_called_in_a_function(lib: Library) -> Program:
    builder = chain(lib, ("calls", calls(remembers(lib))))
    given = [{"text": "a"}, lib.Command(resume=1), {"text": "b"}, lib.Command(resume=2)]
    return Program(builder, given)


@program
def two_memories(lib: Library) -> Program:
    inner = remembers(lib, asks=False)
    builder = chain(lib, ("one", inner), ("told", told), ("two", inner), ("last", told))
    return Program(builder, [{"text": "a"}, {"text": "b"}])


@program
def a_memory_in_a_loop(lib: Library) -> Program:
    builder = chain(lib, ("inner", remembers(lib)), ("told", told))
    builder.add_conditional_edges("told", lambda s: lib.END if len(s["log"]) % 3 == 0 else "inner")
    resumes = [lib.Command(resume=n) for n in range(3)]
    return Program(builder, [{"text": "a"}, *resumes, {"text": "b"}, *resumes])


@program
def a_memory_below_a_graph_without_one(lib: Library) -> Program:
    middle = chain(lib, ("low", remembers(lib)), ("told", told)).compile()
    builder = chain(lib, ("middle", middle), ("last", logs("last")))
    return Program(builder, [{"text": "a"}, lib.Command(resume=1), {"text": "b"}, lib.Command(resume=2)])


@program
def a_memory_that_is_replayed(lib: Library) -> Program:
    builder = chain(lib, ("a", logs("a")), ("inner", remembers(lib, asks=False)), ("told", told))
    return Program(
        builder,
        [
            *({"text": t} for t in "abc"),
            lambda g: At(past(g, "inner", newest=False)),
            lambda g: At(past(g, "inner")),
            {"text": "d"},
        ],
    )


@program
def a_memory_that_is_replayed_and_asks(lib: Library) -> Program:
    builder = chain(lib, ("inner", remembers(lib)), ("told", told))
    return Program(
        builder,
        [
            *(c for t in "ab" for c in ({"text": t}, lib.Command(resume=t))),
            lambda g: At(past(g, "inner", newest=False)),
            lib.Command(resume="again"),
            {"text": "c"},
            lib.Command(resume="on"),
        ],
    )


@program
def a_memory_under_a_fork(lib: Library) -> Program:
    builder = chain(lib, ("a", logs("a")), ("inner", remembers(lib, asks=False)), ("told", told))
    return Program(
        builder,
        [
            *({"text": t} for t in "abc"),
            lambda g: At(g.update_state(past(g, "inner", newest=False), {"log": ["changed"]})),
            {"text": "d"},
        ],
    )


@program
def three_levels_that_ask(lib: Library) -> Program:
    low = chain(lib, ("a", logs("a")), ("ask", lambda s: {"log": [lib.interrupt("ok?")]})).compile()
    middle = chain(lib, ("low", low), ("told", lambda s: {"text": str(s["log"])})).compile()
    return Program(chain(lib, ("middle", middle), ("last", logs("last"))), [{"text": "a"}, lib.Command(resume=1)])


def two_questions(lib: Library, memory: Any = None) -> Any:
    """Return a graph in a graph in a graph, the inner ones with or without a memory, the innermost with two questions."""
    low = chain(
        lib,
        ("a", lambda s: {"log": ["a"]}),
        ("one", lambda s: {"log": [lib.interrupt("one?")]}),
        ("two", lambda s: {"log": [lib.interrupt("two?")]}),
    ).compile(checkpointer=memory)
    middle = chain(lib, ("m", logs("m")), ("low", low), ("n", logs("n"))).compile(checkpointer=memory)
    return chain(lib, ("mid", middle), ("last", logs("last")))


class Noted:
    """The config of a graph at a pause, to go back to."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.config: Any = None

    def then(self, given: Any) -> Any:
        """Return a call that notes where the graph inside these nodes stands before it is made."""

        def call(graph: Any) -> Any:
            snapshot = graph.get_state(CONFIG, subgraphs=True)
            for name in self.names:
                snapshot = next(t.state for t in snapshot.tasks if t.name == name)
            self.config = snapshot.config
            return given

        return call

    def back(self, graph: Any) -> At:
        """Go back to it."""
        return At(self.config)


LAST = {"history": "LangGraph keeps the last question of a task only"}


@program
def back_inside_to_the_second_question(lib: Library) -> Program:
    noted = Noted("mid", "low")
    calls = [{"text": "t"}, lib.Command(resume=1), noted.then(lib.Command(resume=2))]
    again = [noted.back, lib.Command(resume=3)]
    return Program(two_questions(lib, True), [*calls, *again, *again], differs=LAST)


@program
def back_inside_a_graph_without_a_memory(lib: Library) -> Program:
    noted = Noted("mid", "low")
    calls = [{"text": "t"}, lib.Command(resume=1), noted.then(lib.Command(resume=2))]
    why = "LangGraph runs a graph without a memory from its start"
    differs = {"results": why, "parts": why, "history": why}
    return Program(two_questions(lib), [*calls, noted.back, lib.Command(resume=3)], differs=differs)


@program
def back_inside_to_the_first_question(lib: Library) -> Program:
    noted = Noted("mid", "low")
    calls = [{"text": "t"}, noted.then(lib.Command(resume=1)), lib.Command(resume=2)]
    again = [noted.back, lib.Command(resume=3), lib.Command(resume=4)]
    return Program(two_questions(lib, True), [*calls, *again, *again], differs=LAST)


@program
def back_inside_the_middle(lib: Library) -> Program:
    noted = Noted("mid")
    calls = [{"text": "t"}, lib.Command(resume=1), noted.then(lib.Command(resume=2))]
    again = [noted.back, lib.Command(resume=3), lib.Command(resume=4)]
    return Program(two_questions(lib, True), [*calls, *again, *again], differs=LAST)


@program
def back_inside_while_it_waits(lib: Library) -> Program:
    noted = Noted("mid", "low")
    calls = [{"text": "t"}, noted.then(lib.Command(resume=1)), noted.back]
    return Program(two_questions(lib), [*calls, lib.Command(resume=3), lib.Command(resume=4)], differs=LAST)


@program
def an_update_at_an_inner_breakpoint(lib: Library) -> Program:
    low = chain(lib, ("a", logs("a")), ("b", logs("b"))).compile(interrupt_before=["b"])
    noted = Noted("low")

    def changed(graph: Any) -> None:
        noted.then(None)(graph)
        graph.update_state(noted.config, {"log": ["changed"]})

    return Program(chain(lib, ("low", low), ("last", logs("last"))), [{"text": "t"}, changed])


@program
def an_update_at_an_inner_question(lib: Library) -> Program:
    noted = Noted("mid", "low")

    def changed(graph: Any) -> None:
        noted.then(None)(graph)
        graph.update_state(noted.config, {"log": ["changed"]})

    calls = [{"text": "t"}, lib.Command(resume=1), changed, lib.Command(resume=2)]
    why = "LangGraph answers the question that is asked again with what the one before it was answered"
    return Program(two_questions(lib), calls, differs={"results": why, "parts": why, "history": why})


@program
def an_update_of_an_inner_checkpoint_after_the_end(lib: Library) -> Program:
    low = chain(lib, ("a", logs("a")), ("ask", asks(lib, "ask", "ok?"))).compile(checkpointer=True)
    noted = Noted("low")
    changed = lambda g: At(g.update_state(noted.config, {"log": ["changed"]}))  # noqa: E731
    calls = [{"text": "t"}, noted.then(lib.Command(resume=1)), changed, lib.Command(resume=2)]
    return Program(chain(lib, ("low", low), ("last", logs("last"))), calls)


@program
def a_copy_of_an_inner_checkpoint_after_the_end(lib: Library) -> Program:
    low = chain(lib, ("a", logs("a")), ("ask", asks(lib, "ask", "ok?"))).compile(checkpointer=True)
    noted = Noted("low")
    copied = lambda g: At(g.update_state(noted.config, None, as_node="__copy__"))  # noqa: E731
    calls = [{"text": "t"}, noted.then(lib.Command(resume=1)), copied, lib.Command(resume=2)]
    return Program(chain(lib, ("low", low), ("last", logs("last"))), calls)
