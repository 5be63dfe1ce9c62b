"""Where a question was asked, for every kind of function: an answer stays there, and other ways to the place count too."""

from __future__ import annotations

import asyncio
import functools
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool

from tests.behaviours.conftest import Call, Store
from tests.behaviours.graphs import State, asked, builder, chain, the_id, thread
from waitpoint.graph import START, StateGraph
from waitpoint.types import Command, Send, interrupt

SECOND = {"now": False}


@pytest.fixture(autouse=True)
def first_again() -> None:
    SECOND["now"] = False


def either(state: State) -> State:
    if SECOND["now"]:
        return {"log": [("second", interrupt("sure?"))]}
    return {"log": [("first", interrupt("sure?"))]}


async def aeither(state: State) -> State:
    if SECOND["now"]:
        return {"log": [("second", interrupt("sure?"))]}
    return {"log": [("first", interrupt("sure?"))]}


class Methods:
    def method(self, state: State) -> State:
        if SECOND["now"]:
            return {"log": [("second", interrupt("sure?"))]}
        return {"log": [("first", interrupt("sure?"))]}

    @staticmethod
    def static(state: State) -> State:
        if SECOND["now"]:
            return {"log": [("second", interrupt("sure?"))]}
        return {"log": [("first", interrupt("sure?"))]}

    @classmethod
    def of_class(cls, state: State) -> State:
        if SECOND["now"]:
            return {"log": [("second", interrupt("sure?"))]}
        return {"log": [("first", interrupt("sure?"))]}

    def __call__(self, state: State) -> State:
        if SECOND["now"]:
            return {"log": [("second", interrupt("sure?"))]}
        return {"log": [("first", interrupt("sure?"))]}


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


@logged
def decorated(state: State) -> State:
    if SECOND["now"]:
        return {"log": [("second", interrupt("sure?"))]}
    return {"log": [("first", interrupt("sure?"))]}


def with_more(more: str, state: State) -> State:
    if SECOND["now"]:
        return {"log": [("second", interrupt("sure?"))]}
    return {"log": [("first", interrupt("sure?"))]}


by_lambda = lambda state: {  # noqa: E731
    "log": [("second", interrupt("sure?")) if SECOND["now"] else ("first", interrupt("sure?"))]
}


@tool
def a_tool(text: str) -> list[Any]:
    """Ask whether one is sure."""
    if SECOND["now"]:
        return ["second", interrupt("sure?")]
    return ["first", interrupt("sure?")]


def calls_a_tool(state: State) -> State:
    return {"log": [tuple(a_tool.invoke({"text": "x"}))]}


def in_a_comprehension(state: State) -> State:
    if SECOND["now"]:
        return {"log": [("second", interrupt("sure?")) for _ in range(1)]}
    return {"log": [("first", interrupt("sure?")) for _ in range(1)]}


def in_a_generator(state: State) -> State:
    def first() -> Any:
        yield "first", interrupt("sure?")

    def second() -> Any:
        yield "second", interrupt("sure?")

    return {"log": list(second() if SECOND["now"] else first())}


async def in_a_coroutine_called(state: State) -> State:
    return await aeither(state)


async def in_a_thread_called(state: State) -> State:
    return await asyncio.to_thread(either, state)


PLACES: dict[str, Any] = {
    "function": either,
    "coroutine": aeither,
    "method": Methods().method,
    "static method": Methods.static,
    "class method": Methods.of_class,
    "callable object": Methods(),
    "decorated": decorated,
    "partial": functools.partial(with_more, "more"),
    "lambda": by_lambda,
    "runnable": RunnableLambda(either),
    "tool called": calls_a_tool,
    "comprehension": in_a_comprehension,
    "generator": in_a_generator,
    "coroutine called": in_a_coroutine_called,
    "thread called": in_a_thread_called,
}


def run(graph: Any, given: Any, config: Any) -> Any:
    return asyncio.run(graph.ainvoke(given, config))


def one(saver: Any, node: Any) -> Any:
    return StateGraph(State).add_node("node", node).add_edge(START, "node").compile(checkpointer=saver)


@pytest.mark.parametrize("kind", PLACES)
def test_an_answer_meets_its_question_again_in_every_kind_of_function(store: Store, kind: str) -> None:
    """Section 5: deterministic code behaves as in LangGraph"""
    config = thread()
    run(one(store.saver, PLACES[kind]), {"log": []}, config)
    (answered,) = run(one(store.again(), PLACES[kind]), Command(resume="yes"), config)["log"]
    assert tuple(answered) == ("first", "yes")


@pytest.mark.parametrize("kind", PLACES)
def test_an_answer_never_moves_to_an_equal_question_at_another_place(store: Store, kind: str) -> None:
    """Section 5: while the code is unchanged an answer never moves to another site"""
    config = thread()
    first = the_id(run(one(store.saver, PLACES[kind]), {"log": []}, config))
    SECOND["now"] = True
    result = run(one(store.again(), PLACES[kind]), Command(resume="yes to the first"), config)
    assert the_id(result) != first
    (answered,) = run(one(store.again(), PLACES[kind]), Command(resume="yes"), config)["log"]
    assert tuple(answered) == ("second", "yes")


@pytest.mark.parametrize("kind", [k for k in PLACES if "coroutine" not in k and "thread" not in k])
@pytest.mark.parametrize("order", ["blocking first", "asyncio first"])
def test_a_question_asked_blocking_is_answered_under_asyncio_and_the_other_way(
    saver: Any, kind: str, order: str
) -> None:
    """Section 5: the frames that drive a node are none of the user's"""
    graph, config = one(saver, PLACES[kind]), thread()
    if order == "blocking first":
        graph.invoke({"log": []}, config)
        (answered,) = run(graph, Command(resume="yes"), config)["log"]
    else:
        run(graph, {"log": []}, config)
        (answered,) = graph.invoke(Command(resume="yes"), config)["log"]
    assert tuple(answered) == ("first", "yes")


def test_a_question_asked_alone_is_answered_beside_siblings_in_a_pool(saver: Any) -> None:
    """Section 5: a single task runs in the caller's thread, several in a pool, also by way of stream"""

    def work(given: Any) -> State:
        return {"log": [interrupt(f"{given['value']}?")]}

    graph: Any = builder()
    graph.add_node("work", work)
    graph.add_conditional_edges(START, lambda _: [Send("work", {"value": n}) for n in range(3)], ["work"])
    compiled, config = graph.compile(checkpointer=saver), thread()
    compiled.invoke({"log": []}, config)
    for n in range(3):
        (question,) = (i for i in compiled.get_state(config).interrupts if i.value == f"{n}?")
        list(compiled.stream(Command(resume={question.id: n}), config, stream_mode=["custom", "updates"]))
    assert compiled.get_state(config).values == {"log": [0, 1, 2]}


def test_the_place_in_a_nested_graph_ends_at_that_graphs_task(saver: Any, call: Call) -> None:
    """Section 5: how the inner graph came to be called is not part of its questions"""
    inner = chain(None, either)
    deep = {"now": False}

    def deeper(state: State) -> Any:
        return inner.invoke({"log": []})

    def node(state: State) -> Any:
        return deeper(state) if deep["now"] else inner.invoke({"log": []})

    graph, config = chain(saver, node), thread()
    call(graph, {"log": []}, config)
    deep["now"] = True
    assert call(graph, Command(resume="yes"), config) == {"log": [("first", "yes")]}


PROGRAM = """
    import sys
    from typing import Any
    from waitpoint.checkpoint.sqlite import SqliteSaver
    from waitpoint.graph import START, StateGraph
    from waitpoint.types import Command, interrupt

    SECOND = sys.argv[3] == "second"

    def node(state: dict) -> Any:
        if SECOND:
            return {"log": [*state["log"], "second", interrupt("sure?")]}
        return {"log": [*state["log"], "first", interrupt("sure?")]}

    def build(saver: Any) -> Any:
        from typing import TypedDict
        State = TypedDict("State", {"log": list})
        node.__annotations__.clear()
        return StateGraph(State).add_node("node", node).add_edge(START, "node").compile(checkpointer=saver)

    if __name__ == "__main__":
        with SqliteSaver(sys.argv[1]) as saver:
            given = {"log": []} if sys.argv[2] == "start" else Command(resume=sys.argv[2])
            result = build(saver).invoke(given, {"configurable": {"thread_id": "1"}})
            print([i.value for i in result["__interrupt__"]] if "__interrupt__" in result else result["log"])
"""


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., str]:
    (tmp_path / "shop.py").write_text(textwrap.dedent(PROGRAM))

    def execute(*arguments: str, module: bool = False) -> str:
        how = ["-c", "import runpy, sys; runpy.run_module('shop', run_name='__main__', alter_sys=True)"]
        if not module:
            how = [str(tmp_path / "shop.py")]
        done = subprocess.run(
            [sys.executable, *how, str(tmp_path / "threads.db"), *arguments],
            capture_output=True, text=True, check=False, cwd=tmp_path, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return execute


def test_another_process_finds_the_place_again(program: Callable[..., str]) -> None:
    """Section 5: a place is named so that it means the same in every process"""
    assert program("start", "first") == "['sure?']"
    assert program("yes", "second") == "['sure?']"
    assert program("really", "second") == "['second', 'really']"


def test_a_script_and_its_module_are_one_program(program: Callable[..., str], tmp_path: Path) -> None:
    """Section 5: a module that was `__main__` when it asked is answered where it is imported under its name"""
    assert program("start", "first") == "['sure?']"
    code = (
        "import sys; sys.argv = ['shop', '', '', 'first']\n"
        "import shop\n"
        "from waitpoint.checkpoint.sqlite import SqliteSaver\n"
        "from waitpoint.types import Command\n"
        "with SqliteSaver('threads.db') as saver:\n"
        "    print(shop.build(saver).invoke(Command(resume='yes'), {'configurable': {'thread_id': '1'}})['log'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path, timeout=60
    )
    assert (done.stdout.strip(), done.stderr) == ("['first', 'yes']", "")


def test_the_question_that_took_its_place_says_so_in_the_list(saver: Any) -> None:
    """Section 5 with drift: another place is no drift, so nothing is superseded"""
    graph, config = chain(saver, either), thread()
    graph.invoke({"log": []}, config)
    SECOND["now"] = True
    (question,) = asked(graph.invoke(Command(resume="yes"), config))
    (row,) = saver.pending()
    assert (row.id, row.supersedes, row.changed_paths) == (question.id, None, ())
