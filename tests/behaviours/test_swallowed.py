"""A pause that something in the node caught is noticed: the task fails by name instead of going on without its answer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from tests.behaviours.conftest import Call, Store
from tests.behaviours.graphs import State, asked, builder, chain, parallel, the_id, thread
from waitpoint.errors import (
    GraphBubbleUp,
    GraphInterrupt,
    NodeError,
    SwallowedInterruptError,
    UsageError,
    WaitpointError,
)
from waitpoint.graph import END, START, StateGraph
from waitpoint.types import Command, Interrupt, RetryPolicy, interrupt, step


def ask() -> Any:
    return interrupt("name?")


def bare_except(state: State) -> State:
    try:
        answer = ask()
    except:  # noqa: E722 - this is what is tested
        answer = "swallowed"
    return {"log": [answer]}


def base_exception(state: State) -> State:
    try:
        answer = ask()
    except BaseException:
        answer = "swallowed"
    return {"log": [answer]}


def bubble_up(state: State) -> State:
    try:
        answer = ask()
    except GraphBubbleUp:
        answer = "swallowed"
    return {"log": [answer]}


def finally_return(state: State) -> State:  # type: ignore[return]
    answer = "swallowed"
    try:
        answer = ask()
    finally:
        return {"log": [answer]}  # noqa: B012


def suppressed(state: State) -> State:
    answer = "swallowed"
    with contextlib.suppress(BaseException):
        answer = ask()
    return {"log": [answer]}


def raises_another(state: State) -> State:
    try:
        return {"log": [ask()]}
    except BaseException as error:
        raise ValueError("something else") from error


def raises_in_finally(state: State) -> State:
    answer = None
    try:
        answer = ask()
        return {"log": [answer]}
    finally:
        if answer is None:
            raise KeyError("cleanup failed")


async def abare_except(state: State) -> State:
    try:
        answer = ask()
    except:  # noqa: E722
        answer = "swallowed"
    return {"log": [answer]}


async def gathered(state: State) -> State:
    async def one() -> Any:
        return ask()

    found = await asyncio.gather(one(), return_exceptions=True)
    return {"log": [a if isinstance(a, str) else "swallowed" for a in found]}


async def task_exception(state: State) -> State:
    async def one() -> Any:
        return ask()

    task = asyncio.ensure_future(one())
    await asyncio.wait([task])
    return {"log": ["swallowed" if task.exception() else task.result()]}


async def afinally_return(state: State) -> State:  # type: ignore[return]
    answer = "swallowed"
    try:
        answer = ask()
    finally:
        return {"log": [answer]}  # noqa: B012


PLAIN = [bare_except, base_exception, bubble_up, finally_return, suppressed, raises_another, raises_in_finally]
ASYNC = [abare_except, gathered, task_exception, afinally_return]


def run(graph: Any, given: Any, config: Any) -> Any:
    return asyncio.run(graph.ainvoke(given, config))


def check_swallowed(call: Call, graph: Any, saver: Any, name: str) -> None:
    config = thread()
    with pytest.raises(SwallowedInterruptError, match=f"{name}.*asked") as caught:
        call(graph, {"log": []}, config)
    assert caught.value.node == name
    assert caught.value.site == f"{__name__}.ask"
    assert isinstance(caught.value, WaitpointError)
    state = graph.get_state(config)
    assert state.values == {"log": []}
    assert state.next == (name,)
    assert "SwallowedInterruptError" in state.tasks[0].error
    assert [t.status for t in saver.threads()] == ["failed"]
    # What was asked stays open: once it is answered, nothing is left to swallow.
    (question,) = saver.pending()
    assert [i.id for i in state.interrupts] == [question.id]
    with pytest.raises(SwallowedInterruptError):
        call(graph, None, config)
    assert [q.id for q in saver.pending()] == [question.id]
    assert call(graph, Command(resume="ana"), config) == {"log": ["ana"]}


@pytest.mark.parametrize("node", PLAIN, ids=lambda f: f.__name__)
def test_a_swallowed_pause_fails_the_task_and_names_the_place(saver: Any, call: Call, node: Callable[..., Any]) -> None:
    """Section 5: a task that raised it and then returned or raised something else fails as swallowed"""
    check_swallowed(call, chain(saver, node), saver, node.__name__)


@pytest.mark.parametrize("node", ASYNC, ids=lambda f: f.__name__)
def test_so_it_is_in_a_coroutine(saver: Any, node: Callable[..., Any]) -> None:
    """Section 5, async"""
    check_swallowed(run, chain(saver, node), saver, node.__name__)


def test_the_error_that_came_instead_is_the_cause(saver: Any) -> None:
    """Section 5"""
    with pytest.raises(SwallowedInterruptError, match="raised ValueError") as caught:
        chain(saver, raises_another).invoke({"log": []}, thread())
    assert isinstance(caught.value.__cause__, ValueError)


def test_except_exception_never_catches_a_pause(saver: Any, call: Call) -> None:
    """Section 5: the pause alone escapes `except Exception`"""

    def node(state: State) -> State:
        try:
            return {"log": [ask()]}
        except Exception:
            return {"log": ["caught"]}

    assert issubclass(GraphInterrupt, GraphBubbleUp)
    assert not issubclass(GraphInterrupt, Exception)
    graph, config = chain(saver, node), thread()
    assert asked(call(graph, {"log": []}, config))[0].value == "name?"
    assert call(graph, Command(resume="ana"), config) == {"log": ["ana"]}


def test_cleaning_up_and_raising_again_is_fine(saver: Any, call: Call) -> None:
    """Section 5"""
    cleaned: list[str] = []

    def node(state: State) -> State:
        try:
            return {"log": [ask()]}
        except BaseException:
            cleaned.append("except")
            raise
        finally:
            cleaned.append("finally")

    graph, config = chain(saver, node), thread()
    call(graph, {"log": []}, config)
    assert cleaned == ["except", "finally"]
    assert call(graph, Command(resume="ana"), config) == {"log": ["ana"]}


def test_raising_the_caught_pause_later_is_fine(saver: Any) -> None:
    """Section 5: it must reach the runtime, by whatever way"""

    def node(state: State) -> State:
        try:
            return {"log": [ask()]}
        except GraphInterrupt as pause:
            kept = pause
        raise kept

    graph, config = chain(saver, node), thread()
    graph.invoke({"log": []}, config)
    assert graph.invoke(Command(resume="ana"), config) == {"log": ["ana"]}


@pytest.mark.parametrize(
    "made", [GraphInterrupt(), GraphInterrupt([Interrupt("by hand?", "0" * 32)])], ids=["empty", "full"]
)
def test_a_pause_that_was_made_by_hand_is_no_pause(saver: Any, call: Call, made: GraphInterrupt) -> None:
    """Section 5: nobody could answer it, so it must not look like a question"""

    def node(state: State) -> State:
        raise made

    graph, config = chain(saver, node), thread()
    with pytest.raises(UsageError, match=r"'node'.*interrupt\(\)"):
        call(graph, {"log": []}, config)
    assert [t.status for t in saver.threads()] == ["failed"]
    assert graph.get_state(config).interrupts == ()


def test_a_pause_that_was_kept_from_an_earlier_attempt_is_no_pause(saver: Any, call: Call) -> None:
    """Section 5"""
    kept: list[GraphInterrupt] = []

    def node(state: State) -> State:
        if kept:
            raise kept[0]
        try:
            return {"log": [ask()]}
        except GraphInterrupt as pause:
            kept.append(pause)
            raise

    graph, config = chain(saver, node), thread()
    call(graph, {"log": []}, config)
    with pytest.raises(UsageError, match="earlier attempt"):
        call(graph, Command(resume="ana"), config)


def test_a_caught_question_followed_by_another_is_swallowed_or_shown_but_never_lost(saver: Any) -> None:
    """Section 5: the second pause reaches the runtime, so both questions are asked and both are answered"""

    def node(state: State) -> State:
        answers = []
        for name in ("one?", "two?"):
            try:
                answers.append(interrupt(name))
            except GraphInterrupt as pause:
                last = pause
        if len(answers) < 2:
            raise last
        return {"log": answers}

    graph, config = chain(saver, node), thread()
    graph.invoke({"log": []}, config)
    open_ids = {q.value: q.id for q in saver.pending()}
    assert sorted(open_ids) == ["one?", "two?"]
    shown = {i.value: i.id for i in graph.get_state(config).interrupts}
    assert shown == open_ids
    answers = {open_ids["one?"]: 1, open_ids["two?"]: 2}
    assert graph.invoke(Command(resume=answers), config) == {"log": [1, 2]}


def test_neither_a_retry_nor_an_error_handler_hides_it(saver: Any, call: Call) -> None:
    """Section 5"""
    runs, handled = [], []

    def node(state: State) -> State:
        runs.append(1)
        return raises_another(state)

    def handler(state: State, error: NodeError) -> State:
        handled.append(error)
        return {}

    graph = builder()
    graph.add_node("node", node, retry_policy=RetryPolicy(retry_on=Exception), error_handler=handler)
    graph.add_edge(START, "node")
    with pytest.raises(SwallowedInterruptError):
        call(graph.compile(checkpointer=saver), {"log": []}, thread())
    assert (len(runs), handled) == (1, [])


@pytest.mark.parametrize("how", ["as a node", "called", "swallowed around the call"])
def test_it_is_noticed_in_nested_graphs(saver: Any, call: Call, how: str) -> None:
    """Section 5, nested: within the graph, and around the call of one that pauses"""
    inner = chain(None, bare_except if how != "swallowed around the call" else lambda_node)

    def calls(state: State) -> Any:
        if how == "called":
            return inner.invoke({"log": []})
        try:
            return inner.invoke({"log": []})
        except BaseException:
            return {"log": ["swallowed"]}

    graph: Any = StateGraph(State)
    graph.add_node("outer", inner if how == "as a node" else calls).add_edge(START, "outer")
    compiled, config = graph.compile(checkpointer=saver), thread()
    with pytest.raises(SwallowedInterruptError) as caught:
        call(compiled, {"log": []}, config)
    assert caught.value.node == ("outer" if how == "swallowed around the call" else "bare_except")
    assert compiled.get_state(config).values == {"log": []}
    assert call(compiled, Command(resume="ana"), config) == {"log": ["ana"]}


def lambda_node(state: State) -> State:
    return {"log": [ask()]}


def test_a_router_that_swallows_is_noticed_and_its_node_is_not_run_again(saver: Any, call: Call) -> None:
    """Section 5: routers ask too"""
    runs: list[int] = []

    def node(state: State) -> State:
        runs.append(1)
        return {"log": ["node"]}

    def router(state: State) -> str:
        try:
            return str(ask())
        except BaseException:
            return END

    graph = builder(node)
    graph.add_conditional_edges("node", router, [END])
    compiled, config = graph.compile(checkpointer=saver), thread()
    with pytest.raises(SwallowedInterruptError):
        call(compiled, {"log": []}, config)
    assert call(compiled, Command(resume=END), config) == {"log": ["node"]}
    assert runs == [1]


def test_a_router_that_asks_is_answered(saver: Any, call: Call) -> None:
    """Section 5"""
    runs: list[int] = []

    def node(state: State) -> State:
        runs.append(1)
        return {"log": ["node"]}

    graph = builder(node)
    graph.add_conditional_edges("node", lambda state: str(ask()), [END])
    compiled, config = graph.compile(checkpointer=saver), thread()
    assert asked(call(compiled, {"log": []}, config))[0].value == "name?"
    assert call(compiled, Command(resume=END), config) == {"log": ["node"]}
    assert runs == [1]


def test_a_step_that_swallows_is_noticed(saver: Any, call: Call) -> None:
    """Section 5 with 6: the question was asked inside an effect's function"""

    def effect() -> str:
        try:
            return str(ask())
        except BaseException:
            return "swallowed"

    def node(state: State) -> State:
        return {"log": [step(effect)]}

    with pytest.raises(SwallowedInterruptError):
        call(chain(saver, node), {"log": []}, thread())


def test_a_swallowing_node_does_not_harm_its_siblings(saver: Any, call: Call) -> None:
    """Section 5: what finished beside it stays finished"""
    runs: list[int] = []

    def other(state: State) -> State:
        runs.append(1)
        return {"log": ["other"]}

    graph, config = parallel(saver, bare_except, other), thread()
    with pytest.raises(SwallowedInterruptError):
        call(graph, {"log": []}, config)
    assert call(graph, Command(resume="ana"), config) == {"log": ["ana", "other"]}
    assert runs == [1]


def test_a_swallowed_pause_is_stored_and_answered_in_another_process(store: Store) -> None:
    """Section 5: mended code meets the stored answer"""
    name = "node"
    graph = builder().add_node(name, bare_except).add_edge(START, name)
    config = thread()
    with pytest.raises(SwallowedInterruptError):
        graph.compile(checkpointer=store.saver).invoke({"log": []}, config)
    mended = builder().add_node(name, lambda_node).add_edge(START, name).compile(checkpointer=store.again())
    question = the_id(mended.invoke(None, config))
    assert mended.invoke(Command(resume={question: "ana"}), config) == {"log": ["ana"]}
