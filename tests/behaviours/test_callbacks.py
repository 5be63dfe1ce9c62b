"""Handlers in `config["callbacks"]` hear of pauses and of going on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler, CallbackManager
from typing_extensions import TypedDict

from waitpoint.callbacks import GraphCallbackHandler
from waitpoint.graph import StateGraph
from waitpoint.types import Command, interrupt


class State(TypedDict, total=False):
    x: str


class Listener(GraphCallbackHandler):
    def __init__(self) -> None:
        self.heard: list[Any] = []

    def on_interrupt(self, event: Any) -> None:
        self.heard.append(("paused", event.status, event.checkpoint_ns, tuple(i.value for i in event.interrupts)))

    def on_resume(self, event: Any) -> None:
        self.heard.append(("went on", event.checkpoint_ns))


class Slow(Listener):
    async def on_interrupt(self, event: Any) -> None:  # type: ignore[override]
        await asyncio.sleep(0)
        super().on_interrupt(event)

    async def on_resume(self, event: Any) -> None:  # type: ignore[override]
        await asyncio.sleep(0)
        super().on_resume(event)


class Broken(GraphCallbackHandler):
    def on_interrupt(self, event: Any) -> None:
        raise OSError("the pager is down")


def asks(_: State) -> State:
    return {"x": interrupt("may I?")}


def graph(saver: Any, **options: Any) -> Any:
    return StateGraph(State).add_node("asks", asks).add_edge("__start__", "asks").compile(checkpointer=saver, **options)


def config(*handlers: Any, manager: bool = False) -> Any:
    callbacks: Any = CallbackManager(handlers=list(handlers)) if manager else list(handlers)
    return {"configurable": {"thread_id": "1"}, "callbacks": callbacks}


PAUSED = ("paused", "pending", (), ("may I?",))


@pytest.mark.parametrize("manager", [False, True])
@pytest.mark.parametrize("kind", [Listener, Slow])
def test_handlers_hear_once_of_each_pause_and_of_each_answer(saver: Any, kind: Any, manager: bool) -> None:
    listener = kind()
    here = config(BaseCallbackHandler(), listener, manager=manager)
    g = graph(saver)
    g.invoke({"x": ""}, here)
    assert listener.heard == [PAUSED]
    g.invoke(Command(resume="yes"), here)
    assert listener.heard == [PAUSED, ("went on", ())]


@pytest.mark.parametrize("kind", [Listener, Slow])
async def test_handlers_hear_it_from_an_event_loop_too(saver: Any, kind: Any) -> None:
    listener = kind()
    g = graph(saver)
    await g.ainvoke({"x": ""}, config(listener))
    await g.ainvoke(Command(resume="yes"), config(listener))
    assert listener.heard == [PAUSED, ("went on", ())]


def test_a_pause_is_told_before_a_consumer_can_leave_at_it(saver: Any) -> None:
    listener = Listener()
    for part in graph(saver).stream({"x": ""}, config(listener)):
        assert "__interrupt__" in part
        assert listener.heard == [PAUSED]
        break


def test_a_failing_handler_is_logged_and_the_others_still_hear(saver: Any, caplog: Any) -> None:
    listener = Listener()
    output = graph(saver).invoke({"x": ""}, config(Broken(), listener))
    assert output["__interrupt__"]
    assert listener.heard == [PAUSED]
    assert "Broken" in caplog.text


def test_a_handler_that_says_so_is_heard_by_the_caller_and_the_pause_stands(saver: Any) -> None:
    broken = Broken()
    broken.raise_error = True
    g = graph(saver)
    with pytest.raises(OSError, match="the pager is down"):
        g.invoke({"x": ""}, config(broken))
    assert g.invoke(Command(resume="yes"), config()) == {"x": "yes"}


def test_a_breakpoint_is_a_pause_without_questions(saver: Any) -> None:
    listener = Listener()
    g = StateGraph(State).add_node("n", lambda _: {"x": "1"}).add_edge("__start__", "n")
    before = g.compile(checkpointer=saver, interrupt_before=["n"])
    before.invoke({"x": ""}, config(listener))
    before.invoke(None, config(listener))
    assert listener.heard == [("paused", "interrupt_before", (), ()), ("went on", ())]


def test_a_nested_pause_is_told_once_at_the_root_and_both_graphs_go_on(saver: Any) -> None:
    listener = Listener()
    outer = StateGraph(State).add_node("inner", graph(None)).add_edge("__start__", "inner").compile(checkpointer=saver)
    outer.invoke({"x": ""}, config(listener))
    outer.invoke(Command(resume="yes"), config(listener))
    (paused, root, (what, (ns,))) = listener.heard
    assert (paused, root, what) == (PAUSED, ("went on", ()), "went on")
    assert ns.startswith("inner:")
