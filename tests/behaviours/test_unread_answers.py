"""An answer that was accepted and that nothing used is on record."""

from __future__ import annotations

from typing import Any

from tests.behaviours.conftest import Call
from tests.behaviours.graphs import State, chain, the_id, thread
from waitpoint.checkpoint.base import ThreadKey
from waitpoint.engine import answers
from waitpoint.types import Answer, interrupt


def asks(state: State) -> State:
    return {"log": [interrupt("go?")]}


def answered_and_not_run(saver: Any, call: Call) -> tuple[Any, Any, str]:
    graph, config = chain(saver, asks), thread()
    asked = the_id(call(graph, {"log": []}, config))
    answers.answer(saver, asked, Answer("yes", by="ana"))
    return graph, config, asked


def unused(saver: Any, graph: Any, config: Any) -> list[str]:
    key = ThreadKey(config["configurable"]["thread_id"], graph.name)
    return [e.ref for e in saver.events(key) if e.kind == "answer_unused"]


def test_an_answer_that_a_change_of_the_state_drops_is_on_record(saver: Any, call: Call) -> None:
    graph, config, asked = answered_and_not_run(saver, call)
    graph.update_state(config, {"log": ["changed"]})
    assert unused(saver, graph, config) == [asked]
    assert call(graph, None, config)["log"] == ["changed"]


def test_an_answer_that_going_back_drops_is_on_record(saver: Any, call: Call) -> None:
    graph, config, asked = answered_and_not_run(saver, call)
    old = list(graph.get_state_history(config))[-1].config
    assert "__interrupt__" in call(graph, None, old)
    assert unused(saver, graph, config) == [asked]


def test_an_answer_that_was_used_is_not(saver: Any, call: Call) -> None:
    graph, config, _ = answered_and_not_run(saver, call)
    assert call(graph, None, config)["log"] == ["yes"]
    graph.update_state(config, {"log": ["changed"]})
    assert unused(saver, graph, config) == []
