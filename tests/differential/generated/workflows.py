"""Functional workflows as data, how they are drawn, built with either library, and played."""

from __future__ import annotations

import importlib
from collections import Counter
from typing import Any, NamedTuple

from hypothesis import strategies as st

from tests.differential.generated import rules, telling
from tests.differential.play import CONFIG, Library


class Act(NamedTuple):
    """What a body does next: call a task, ask itself or in a task, catch a failure, try again, call another entrypoint."""

    kind: str
    number: int = 0
    inner: tuple[Any, ...] = ()


class Workflow(NamedTuple):
    """The acts of an entrypoint, and whether it saves something else than it returns."""

    acts: tuple[Act, ...]
    saves: bool


KINDS = ("task", "tasks", "caught", "flaky", "nested task")


@st.composite
def acts(draw: Any, asking: str, *, inner: bool = False) -> tuple[Act, ...]:
    """Draw the acts of a body."""
    found = []
    for kind in draw(
        st.lists(
            st.sampled_from((*rules.beside(KINDS, asking), asking, *["child"] * (not inner))), min_size=1, max_size=4
        )
    ):
        found.append(Act(kind, draw(st.integers(1, 3)), draw(acts(asking, inner=True)) if kind == "child" else ()))
    return tuple(found)


workflows = st.sampled_from(rules.ASKING).flatmap(lambda asking: st.builds(Workflow, acts(asking), st.booleans()))


class Player:
    """A workflow on one library, given input and answers until it has ended so many times."""

    def __init__(self, library: Library, workflow: Workflow) -> None:
        self.library, self.api = library, importlib.import_module(f"{library.name}.func")
        self.failures: Counter[str] = Counter()
        self.tasks = self.made()
        saver = library.saver()

        @self.api.entrypoint(checkpointer=saver)
        def body(given: int, *, previous: Any = None) -> Any:
            log = [given, previous, *self.done(workflow.acts, "body")]
            return self.api.entrypoint.final(value=log, save=given) if workflow.saves else log

        self.graph = body

    def made(self) -> dict[str, Any]:
        """Return the tasks that bodies call."""
        lib, api = self.library, self.api
        retry = lib.RetryPolicy(max_attempts=4, initial_interval=0.001, jitter=False, retry_on=ValueError)

        @api.task
        def plain(place: str) -> str:
            return f"done {place}"

        @api.task
        def asking(place: str) -> Any:
            return [place, lib.interrupt(f"{place}?")]

        @api.task
        def failing(place: str) -> Any:
            raise KeyError(place)

        @api.task(retry_policy=retry)
        def flaky(place: str, times: int) -> str:
            self.failures[place] += 1
            if self.failures[place] <= times:
                raise ValueError(place)
            return f"mended {place}"

        @api.task
        def nested(place: str) -> Any:
            return [plain(f"{place}.0").result(), plain(f"{place}.1").result()]

        return {"task": plain, "asks": asking, "caught": failing, "flaky": flaky, "nested task": nested}

    def done(self, acts: tuple[Act, ...], place: str) -> list[Any]:
        """Do the acts of a body; return what they came to."""
        found: list[Any] = []
        for n, act in enumerate(acts):
            at = f"{place}.{n}"
            if act.kind == "ask":
                found.append(self.library.interrupt(f"{at}?"))
            elif act.kind == "tasks":
                futures = [self.tasks["task"](f"{at}.{i}") for i in range(act.number)]
                found.append([future.result() for future in futures])
            elif act.kind == "caught":
                try:
                    self.tasks["caught"](at).result()
                except KeyError as error:
                    found.append(str(error))
            elif act.kind == "flaky":
                found.append(self.tasks["flaky"](at, act.number).result())
            elif act.kind == "child":
                child = self.api.entrypoint()(lambda given, act=act, at=at: [given, *self.done(act.inner, at)])
                found.append(child.invoke(n))
            else:
                found.append(self.tasks[act.kind](at).result())
        return found

    def play(self, runs: int) -> list[Any]:
        """Return what each call came to, and what was asked after it."""
        story: list[Any] = []
        for run in range(runs):
            given: Any = run
            for answer in range(20):
                try:
                    came = self.graph.invoke(given, CONFIG)
                except Exception as error:
                    return [*story, rules.error(error)]
                asked = rules.asked_once(self.graph.get_state(CONFIG).interrupts)
                story.append((telling.told(came) if not asked else "asks", asked))
                if not asked:
                    break
                given = self.library.Command(resume=f"answer {answer}")
        return story
