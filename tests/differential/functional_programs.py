"""Programs of entrypoints and tasks, written once for both libraries; `FUNCTIONAL` lists them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.differential.play import At, Library, Program

FUNCTIONAL: list[Callable[[Library], Program]] = []

ALL_QUESTIONS = {"history": "the record of a step has every question that was asked in it, there the last one"}


def program(make: Callable[[Library], Program]) -> Callable[[Library], Program]:
    """Put a program on the list."""
    FUNCTIONAL.append(make)
    return make


@dataclass(frozen=True)
class Function:
    """What `compile()` makes an entrypoint of."""

    make: Callable[..., Any]

    def compile(self, checkpointer: Any, **options: Any) -> Any:
        return self.make(checkpointer, **options)


def func(lib: Library) -> Any:
    """Return the library's functional API."""
    return importlib.import_module(f"{lib.name}.func")


@program
def adds_up_and_remembers(lib: Library) -> Program:
    api = func(lib)

    @api.task
    def add(a: int, b: int) -> int:
        return a + b

    def made(saver: Any) -> Any:
        @api.entrypoint(checkpointer=saver)
        def total(n: int, *, previous: int | None) -> int:
            return add(n, previous or 0).result()

        return total

    return Program(Function(made), [1, 2, 3])


@program
def returns_one_value_and_saves_another(lib: Library) -> Program:
    api = func(lib)

    def made(saver: Any) -> Any:
        @api.entrypoint(checkpointer=saver)
        def pair(n: int, *, previous: int | None) -> Any:
            return api.entrypoint.final(value={"had": previous}, save=n)

        return pair

    return Program(Function(made), [1, 2, 3])


@program
def asks_between_tasks(lib: Library) -> Program:
    api = func(lib)

    @api.task
    def double(n: int) -> int:
        return n * 2

    def made(saver: Any) -> Any:
        @api.entrypoint(checkpointer=saver)
        def body(n: int) -> list[Any]:
            first = double(n).result()
            answer = lib.interrupt(f"{first}?")
            return [first, answer, double(answer).result(), lib.interrupt("and?")]

        return body

    return Program(Function(made), [1, lib.Command(resume=5), lib.Command(resume="yes")], differs=ALL_QUESTIONS)


@program
def asks_in_tasks_in_a_row(lib: Library) -> Program:
    api = func(lib)

    @api.task
    def ask(question: str) -> Any:
        return lib.interrupt(question)

    def made(saver: Any) -> Any:
        @api.entrypoint(checkpointer=saver)
        def body(count: int) -> list[Any]:
            return [ask(f"{n}?").result() for n in range(count)]

        return body

    return Program(Function(made), [3, *[lib.Command(resume=n) for n in (False, 0, "c")]], differs=ALL_QUESTIONS)


@program
def catches_what_a_task_raises(lib: Library) -> Program:
    api = func(lib)

    @api.task
    def fail(text: str) -> None:
        raise ValueError(text)

    def made(saver: Any) -> Any:
        @api.entrypoint(checkpointer=saver)
        def body(text: str) -> Any:
            try:
                fail(text).result()
            except ValueError as error:
                return lib.interrupt(f"caught {error}")

        return body

    return Program(Function(made), ["no", lib.Command(resume="so?")])


@program
def fails_and_goes_on(lib: Library) -> Program:
    api, broken = func(lib), [True]

    @api.task
    def fine(n: int) -> int:
        return n

    @api.task
    def flaky(n: int) -> int:
        if broken:
            raise ValueError("broken")
        return n

    def made(saver: Any) -> Any:
        @api.entrypoint(checkpointer=saver)
        def body(n: int) -> list[int]:
            return [fine(n).result(), flaky(n + 1).result()]

        return body

    def mended(_: Any) -> None:
        broken.clear()

    return Program(
        Function(made), [1, mended], differs={"history": "there a task that was mended keeps the text of its error"}
    )


@program
def tasks_in_tasks(lib: Library) -> Program:
    api = func(lib)

    @api.task
    def inner(n: int) -> int:
        return n * 10

    @api.task
    def outer(n: int) -> int:
        return inner(n).result() + inner(n + 1).result()

    def made(saver: Any) -> Any:
        @api.entrypoint(checkpointer=saver)
        def body(n: int) -> Any:
            return [outer(n).result(), lib.interrupt("?")]

        return body

    return Program(Function(made), [1, lib.Command(resume="yes")])


@program
def side_by_side(lib: Library) -> Program:
    api = func(lib)

    @api.task
    def square(n: int) -> int:
        return n * n

    def made(saver: Any) -> Any:
        @api.entrypoint(checkpointer=saver)
        def body(count: int) -> Any:
            futures = [square(n) for n in range(count)]
            return [*(f.result() for f in futures), lib.interrupt("?")]

        return body

    return Program(Function(made), [4, lib.Command(resume="yes")], differs={"parts": "tasks end in any order"})


@program
def a_child_in_a_parent(lib: Library) -> Program:
    api = func(lib)

    @api.task
    def costly(n: int) -> int:
        return n * 10

    @api.entrypoint()
    def child(n: int) -> Any:
        return [costly(n).result(), lib.interrupt("child?")]

    def made(saver: Any) -> Any:
        @api.entrypoint(checkpointer=saver)
        def parent(n: int) -> Any:
            return [costly(n + 1).result(), child.invoke(n), lib.interrupt("parent?")]

        return parent

    # A task's record is of the graph that calls it: here its questions are those of the graph and of what it called.
    differs = {"state": "there a called graph is listed under its caller's task", "history": "as its states"}
    return Program(Function(made), [1, lib.Command(resume="a"), lib.Command(resume="b")], differs=differs)


@program
def updated_from_outside(lib: Library) -> Program:
    api = func(lib)

    def made(saver: Any) -> Any:
        @api.entrypoint(checkpointer=saver)
        def total(n: int, *, previous: int | None) -> int:
            return n + (previous or 0)

        return total

    def update(graph: Any) -> int:
        graph.update_state({"configurable": {"thread_id": "t"}}, 100)
        return 1

    return Program(Function(made), [1, update, 2])


@program
def run_from_an_old_checkpoint(lib: Library) -> Program:
    api = func(lib)

    @api.task
    def double(n: int) -> int:
        return n * 2

    def made(saver: Any) -> Any:
        @api.entrypoint(checkpointer=saver)
        def body(n: int) -> Any:
            return [double(n).result(), lib.interrupt("?")]

        return body

    def at_the_first(graph: Any) -> At:
        *_, first = graph.get_state_history({"configurable": {"thread_id": "t"}})
        return At(first.config)

    calls = [1, lib.Command(resume="a"), at_the_first, lib.Command(resume="b")]
    return Program(Function(made), calls)


@program
def a_graph_that_calls_tasks(lib: Library) -> Program:
    from tests.differential.programs import State

    api = func(lib)

    @api.task
    def double(n: int) -> int:
        return n * 2

    def node(state: Any) -> Any:
        return {"log": [double(state["x"]).result(), lib.interrupt("?")]}

    builder = lib.StateGraph(State).add_node("node", node).add_edge(lib.START, "node")
    return Program(builder, [{"x": 2}, lib.Command(resume="yes")])
