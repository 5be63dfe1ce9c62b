"""Effects in `step()`: which call a record belongs to, whatever kind of function it is, and exceptions on record."""

from __future__ import annotations

import asyncio
import functools
import subprocess
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from tests.behaviours.conftest import Call, Store
from tests.behaviours.graphs import State, builder, thread
from waitpoint.errors import NodeError, UsageError
from waitpoint.graph import START, StateGraph
from waitpoint.types import Command, interrupt, step

DONE: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_done() -> None:
    DONE.clear()


def effect(name: str) -> str:
    DONE.append(name)
    return f"{name} done"


async def aeffect(name: str) -> str:
    return effect(name)


def asked_and_answered(node: Callable[..., Any], store: Store, call: Call) -> Any:
    call(builder(node).compile(checkpointer=store.saver), {"log": []}, thread("1"))
    return call(builder(node).compile(checkpointer=store.again()), Command(resume="ok"), thread("1"))["log"]


def test_partials_of_one_function_are_told_apart_by_their_arguments(store: Store, call: Call) -> None:
    orders = [["a", "b"], ["b", "a"]]

    def node(state: State) -> State:
        done = [step(functools.partial(effect, name)) for name in orders.pop(0)]
        interrupt("?")
        return {"log": done}

    assert asked_and_answered(node, store, call) == ["b done", "a done"]
    assert DONE == ["a", "b"]


def test_a_partial_and_a_call_with_the_same_arguments_are_one_effect(store: Store, call: Call) -> None:
    ways: list[Callable[[], str]] = [lambda: step(functools.partial(effect, "a")), lambda: step(effect, "a")]

    def node(state: State) -> State:
        done = ways.pop(0)()
        interrupt("?")
        return {"log": [done]}

    assert asked_and_answered(node, store, call) == ["a done"]
    assert DONE == ["a"]


def test_a_lambda_does_not_take_the_record_of_another_one_in_its_function(store: Store, call: Call) -> None:
    first = [True]

    def node(state: State) -> State:
        if first[0]:
            first[0] = False
            step(lambda: effect("a"))
        done = step(lambda: effect("b"))
        interrupt("?")
        return {"log": [done]}

    assert asked_and_answered(node, store, call) == ["b done"]
    assert DONE == ["a", "b"]


def test_a_lambda_that_was_not_reached_before_runs_where_another_one_is_on_record(store: Store, call: Call) -> None:
    first = [True]

    def node(state: State) -> State:
        if first[0]:
            first[0] = False
            done = step(lambda: effect("a"))
        else:
            done = step(lambda: effect("b"))
        interrupt("?")
        return {"log": [done]}

    assert asked_and_answered(node, store, call) == ["b done"]
    assert DONE == ["a", "b"]


def _wrapper(name: str) -> Awaitable[str]:
    return aeffect(name)


@pytest.mark.parametrize(
    "begin",
    [
        lambda: step(lambda: aeffect("a")),
        lambda: step(_wrapper, "a"),
        lambda: step(functools.partial(aeffect, "a")),
        lambda: step(lambda: asyncio.ensure_future(aeffect("a"))),
    ],
    ids=["lambda", "wrapper", "partial", "task"],
)
@pytest.mark.parametrize("in_doubt", ["rerun", "ask"])
def test_what_gives_an_awaitable_is_recorded_when_it_was_awaited(
    store: Store, begin: Callable[[], Any], in_doubt: str
) -> None:
    async def node(state: State) -> State:
        done = await begin()
        interrupt("?")
        return {"log": [done]}

    async def run() -> Any:
        await builder(node).compile(checkpointer=store.saver).ainvoke({"log": []}, thread("1"))
        return await builder(node).compile(checkpointer=store.again()).ainvoke(Command(resume="ok"), thread("1"))

    assert asyncio.run(run())["log"] == ["a done"]
    assert DONE == ["a"]


def test_a_coroutine_of_a_lambda_that_fails_is_recorded_as_raised(store: Store) -> None:
    async def fail() -> None:
        DONE.append("tried")
        raise Declined(402, "no funds")

    async def node(state: State) -> State:
        try:
            await step(lambda: fail())
        except Declined as declined:
            return {"log": [declined.code, interrupt("?")]}
        return {}

    async def run() -> Any:
        await builder(node).compile(checkpointer=store.saver).ainvoke({"log": []}, thread("1"))
        return await builder(node).compile(checkpointer=store.again()).ainvoke(Command(resume="ok"), thread("1"))

    assert asyncio.run(run())["log"] == [402, "ok"]
    assert DONE == ["tried"]


def test_a_generator_is_refused_since_its_effect_has_not_begun(store: Store, call: Call) -> None:
    def lazily() -> Any:
        yield effect("a")

    def node(state: State) -> State:
        return {"log": list(step(lazily))}

    with pytest.raises(UsageError, match="returned a generator, so its effect has not begun"):
        call(builder(node).compile(checkpointer=store.saver), {"log": []}, thread("1"))
    assert DONE == []


@pytest.mark.parametrize(("given", "options"), [(5, {}), (effect, {"key": 5})], ids=["no function", "no text as key"])
def test_a_step_that_cannot_work_is_refused_by_name(store: Store, call: Call, given: Any, options: Any) -> None:
    def node(state: State) -> State:
        return {"log": [step(given, "a", **options)]}

    with pytest.raises(UsageError, match=r"step\(\)"):
        call(builder(node).compile(checkpointer=store.saver), {"log": []}, thread("1"))
    assert DONE == []


class Declined(Exception):
    """An exception of a library: no schema mentions it, and its `__init__` takes other arguments than it stores."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"{code} {reason}")
        self.code = code
        self.response = object()  # cannot be stored


class Named(ConnectionError):
    def __init__(self, *, host: str) -> None:
        super().__init__(f"no way to {host}")
        self.host = host


def raise_group() -> None:
    raise ExceptionGroup("both", [Declined(402, "no"), ValueError("odd")])


def raise_validation() -> None:
    class Order(BaseModel):
        amount: int

    Order.model_validate({"amount": "many"})


def fail_with(error: Exception) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("fail", "caught", "text"),
    [
        (fail_with(Declined(402, "no")), Declined, "402 no"),
        (fail_with(Named(host="bank")), Named, "no way to bank"),
        (fail_with(subprocess.CalledProcessError(3, ["pay"])), subprocess.CalledProcessError, "exit status 3"),
        (raise_group, ExceptionGroup, "both"),
        (raise_validation, ValueError, "valid integer"),
    ],
    ids=["own", "own of a built-in", "library", "group", "cannot be made again"],
)
def test_the_except_that_caught_an_exception_catches_it_from_the_record(
    store: Store, call: Call, fail: Callable[[], None], caught: type[Exception], text: str
) -> None:
    def effect_that_fails() -> None:
        DONE.append("tried")
        fail()

    def node(state: State) -> State:
        try:
            step(effect_that_fails)
        except caught as error:
            return {"log": [str(error), interrupt("?")]}
        return {}

    log = asked_and_answered(node, store, call)
    assert (text in log[0], log[1]) == (True, "ok")
    assert DONE == ["tried"]


def test_a_recorded_exception_keeps_its_attributes(store: Store, call: Call) -> None:
    def decline() -> None:
        raise Declined(402, "no")

    def node(state: State) -> State:
        try:
            step(decline)
        except Declined as declined:
            return {"log": [declined.code, interrupt("?")]}
        return {}

    assert asked_and_answered(node, store, call) == [402, "ok"]


def test_an_error_handler_that_asked_gets_the_same_exception_again(store: Store, call: Call) -> None:
    """It runs again when it is answered, and may have decided by the exception's class to ask at all."""

    def fail(state: State) -> State:
        DONE.append("tried")
        raise Declined(402, "no")

    def handle(state: State, error: NodeError) -> State:
        if isinstance(error.error, Declined):
            return {"log": [error.error.code, interrupt("pay otherwise?")]}
        return {"log": ["something else"]}

    def graph() -> Any:
        failing = StateGraph(State).add_node("fail", fail, error_handler=handle).add_edge(START, "fail")
        return failing.compile(checkpointer=store.again())

    call(graph(), {"log": []}, thread("1"))
    assert call(graph(), Command(resume="card"), thread("1"))["log"] == [402, "card"]
    assert DONE == ["tried"]


class Small(BaseModel):
    """Its JSON Schema takes what its validator refuses."""

    amount: int

    def model_post_init(self, _: Any) -> None:
        if self.amount > 10:
            raise ValueError("at most 10")


def test_a_refused_answer_to_a_question_of_an_effect_is_not_its_outcome_and_can_be_corrected(
    store: Store, call: Call
) -> None:
    def ask() -> int:
        DONE.append("asked")
        return int(interrupt("how much?", response_schema=Small).amount)

    def node(state: State) -> State:
        return {"log": [f"{step(ask)}"]}

    def graph() -> Any:
        return builder(node).compile(checkpointer=store.again())

    call(graph(), {"log": []}, thread("1"))
    for wrong in (11, 12):
        with pytest.raises(ValidationError):
            call(graph(), Command(resume={"amount": wrong}), thread("1"))
    assert call(graph(), Command(resume={"amount": 3}), thread("1"))["log"] == ["3"]
    assert DONE == ["asked"] * 4
