"""Scenarios of functions that call each other."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.scenarios.conftest import Call
from tests.scenarios.world import Shelf, asked, thread
from waitpoint.func import entrypoint, task
from waitpoint.types import Command, interrupt


@pytest.mark.parametrize("way", ["called", "in a task", "with the saver of its parent"])
def test_s036_a_costly_task_of_a_child_runs_once_and_its_question_comes_once(
    shelf: Shelf, call: Call, way: str
) -> None:
    ran: Counter[str] = Counter()

    @task
    def costly(what: str) -> str:
        ran[what] += 1
        return f"{what} done"

    def opened() -> Any:
        saver = shelf.open()

        @entrypoint(checkpointer=saver if way == "with the saver of its parent" else None)
        def child(what: str) -> list[Any]:
            return [costly(what).result(), interrupt("go on?"), costly(f"{what} after").result()]

        @task
        def through(what: str) -> Any:
            return child.invoke(what)

        @entrypoint(checkpointer=saver)
        def parent(what: str) -> list[Any]:
            before = costly("parent").result()
            inside = through(what).result() if way == "in a task" else child.invoke(what)
            return [before, *inside]

        return parent

    config = thread()
    (question,) = asked(call(opened(), "child", config))
    assert [i.id for i in opened().get_state(config).interrupts] == [question.id]
    result = call(opened(), Command(resume="yes"), config)
    assert result == ["parent done", "child done", "yes", "child after done"]
    assert ran == {"parent": 1, "child": 1, "child after": 1}
