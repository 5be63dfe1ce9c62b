"""Functional workflows as data, how they are drawn, built with either library, and played."""

from __future__ import annotations

import asyncio
import importlib
import itertools
from collections import Counter
from typing import Any, NamedTuple

from hypothesis import strategies as st

from tests.differential.generated import rules, telling
from tests.differential.generated.scripts import How
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

    def play(self, runs: int, hows: tuple[How, ...]) -> list[Any]:
        """Return what each call came to, what was asked after it, and at the end the history."""
        story: list[Any] = []
        calls = itertools.cycle(hows)
        for run in range(runs):
            given: Any = run
            for answer in range(20):
                came, error = self.call(given, next(calls))
                if error:
                    return [*story, error]
                asked = rules.asked_once(self.graph.get_state(CONFIG).interrupts)
                story.append((came if not asked else "asks", asked))
                if not asked:
                    break
                given = self.library.Command(resume=f"answer {answer}")
        return [*story, *[self.past(snapshot) for snapshot in self.graph.get_state_history(CONFIG)]]

    def past(self, snapshot: Any) -> Any:
        """Tell a snapshot of the history."""
        return telling.told(snapshot.values), sorted(snapshot.next), telling.told_metadata(snapshot.metadata)

    def call(self, given: Any, how: How) -> tuple[Any, str | None]:
        """Make a call; return its result or parts, and its error."""
        parts: list[Any] = []
        options = {"stream_mode": list(how.modes), "subgraphs": True}
        try:
            if not how.modes:
                run = self.graph.ainvoke if how.later else self.graph.invoke
                came = run(given, CONFIG)
                return telling.told(asyncio.run(came) if how.later else came), None
            if how.later:
                asyncio.run(self.collect(parts, given, options))
            else:
                parts += self.graph.stream(given, CONFIG, **options)
        except Exception as error:
            return None, rules.error(error)
        return rules.parts(rules.without_tasks(parts, ["failing"]), in_order=False, durability=None), None

    async def collect(self, parts: list[Any], given: Any, options: Any) -> None:
        parts += [part async for part in self.graph.astream(given, CONFIG, **options)]
