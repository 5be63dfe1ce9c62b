"""An answer that was accepted is acted on: nothing moves the thread on from under it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.behaviours.conftest import Call
from tests.behaviours.graphs import State, chain, the_id, thread
from waitpoint.engine import answers
from waitpoint.errors import ThreadBusyError
from waitpoint.types import interrupt


def asks(state: State) -> State:
    return {"log": [interrupt("go?")]}


def answered_and_not_run(saver: Any, call: Call) -> tuple[Any, Any]:
    graph, config = chain(saver, asks), thread()
    answers.answer(saver, the_id(call(graph, {"log": []}, config)), "yes")
    return graph, config


def test_a_change_of_the_state_is_refused_while_an_answer_is_still_to_be_read(saver: Any, call: Call) -> None:
    graph, config = answered_and_not_run(saver, call)
    with pytest.raises(ThreadBusyError, match="has not acted on yet"):
        graph.update_state(config, {"log": ["changed"]})
    assert call(graph, None, config)["log"] == ["yes"]
    graph.update_state(config, {"log": ["changed"]})
    assert graph.get_state(config).values["log"] == ["yes", "changed"]


def test_going_back_is_refused_while_an_answer_is_still_to_be_read(saver: Any, call: Call) -> None:
    graph, config = answered_and_not_run(saver, call)
    old = list(graph.get_state_history(config))[-1].config
    with pytest.raises(ThreadBusyError, match="has not acted on yet"):
        call(graph, None, old)
    assert call(graph, None, config)["log"] == ["yes"]
    assert "__interrupt__" in call(graph, None, old)
