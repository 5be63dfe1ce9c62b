"""Plays a script on a graph of one library, and tells what came of each step."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.differential.generated import rules, telling
from tests.differential.generated.graph_building import Builder
from tests.differential.generated.graph_shapes import SENT, Graph, inner_graphs, is_linear
from tests.differential.generated.scripts import How, Script, Step
from tests.differential.play import CONFIG, Library

LIMIT = 14


class Player:
    """A graph, its thread, and the story so far."""

    def __init__(self, library: Library, graph: Graph) -> None:
        self.library, self.shape = library, graph
        self.is_ours = library.name == "waitpoint"
        self.graph = Builder(library).compiled(graph, library.saver())
        self.durability: str | None = None
        self.kind = ""
        self.was_updated = any(node.handled for node in graph.nodes)  # in the record of the step
        inner = [node for g in inner_graphs(graph) for node in g.nodes]
        upward = [node for node in inner if node.goto and node.goto[0].startswith("^")]
        handled = [node for node in (*graph.nodes, *inner) if node.handled]
        self.in_order = is_linear(graph) and all(node.goto == ("^",) for node in upward)
        self.unshown = {n.name for n in (*upward, *handled)} | {f"__error_handler__{n.name}" for n in handled}
        self.story: list[Any] = []

    def play(self, script: Script) -> list[Any]:
        """Return what came of each step, the state after it, and at the end the history."""
        self.durability = rules.durability_for(self.shape, script.durability)
        for step in script.steps:
            self.kind = step.kind
            came = getattr(self, step.kind)(step)
            if came is None:
                continue
            if rules.is_cut(came, step.kind):
                return [*self.story, (step.kind, "cut")]
            self.story.append((step.kind, came))
            if "InvalidUpdateError" in (came, came[-1] if isinstance(came, tuple) else None):
                return self.story  # there such a thread cannot even be read
            self.story.append(("state", rules.state(telling.told_snapshot(self.state()), self.durability)))
        return (
            self.story
            if rules.is_without_history(self.durability, in_order=self.in_order)
            else self.told_history(script)
        )

    def told_history(self, script: Script) -> list[Any]:
        """Add the history, or the part of it that the script asks for."""
        past = self.past()
        before = past[script.before].config if script.before is not None and script.before < len(past) else None
        filtered = {"source": script.source} if script.source else None
        for snapshot in self.graph.get_state_history(CONFIG, filter=filtered, before=before, limit=script.limit):
            told = rules.listed(telling.told_snapshot(snapshot), self.durability, was_updated=self.was_updated)
            self.story.append(("history", told))
        return self.story

    # --- what a user does; None if it does not apply now ---

    def input(self, step: Step) -> Any:
        """Give new input, which closes what is open."""
        if self.story and not rules.begins_anew(self.shape):
            return None
        options = {"on_pending": "withdraw"} if self.is_ours and rules.new_input() else {}
        return self.call({"log": ["in"], "total": 0}, CONFIG, step.how, **options)

    def answer(self, step: Step) -> Any:
        """Answer by value (0, 4), or by id: some of them, or all."""
        pending = sorted(self.state().interrupts, key=lambda question: str(question.value))
        if step.number % 4 == 0 and rules.may_be_bare(self.shape):
            return self.call(self.library.Command(resume=f"bare {step.number}"), CONFIG, step.how) if pending else None
        chosen = [i for n, i in enumerate(pending) if step.number % 4 == 3 or (n + step.number) % 2] or pending
        if len(chosen) < len(pending) and not rules.partial(step.how.modes):
            chosen = pending
        answers = {i.id: f"to {i.value}" for i in chosen}
        return self.call(self.library.Command(resume=answers), CONFIG, step.how) if pending else None

    def go_on(self, step: Step) -> Any:
        """Go on past a breakpoint or a failure."""
        state = self.state()
        return None if not state.next or state.interrupts else self.call(None, CONFIG, step.how)

    def replay(self, step: Step) -> Any:
        """Run again from an older checkpoint."""
        past = self.past()[1:] if rules.stops_again(self.shape) else []
        return self.call(None, past[step.number % len(past)].config, step.how) if past else None

    def fork(self, step: Step) -> Any:
        """Change an older checkpoint and run from there."""
        past = self.past()[1:] if rules.stops_again(self.shape) and rules.copies_all(self.shape) else []
        return self.updated(past[step.number % len(past)].config, step, runs=True) if past else None

    def update(self, step: Step) -> Any:
        """Change the newest state, as if a node had done it."""
        return self.updated(CONFIG, step, runs=False) if rules.loses_nothing(self.state(), self.shape) else None

    def updated(self, config: Any, step: Step, *, runs: bool) -> Any:
        nodes = [node.name for node in self.shape.nodes if node.graph is None]
        self.was_updated = True
        only_edges = self.in_order and all(SENT not in node.goto for node in self.shape.nodes)
        may_choose = rules.chooses_itself(self.graph.get_state(config), only_edges=only_edges)
        as_node = nodes[step.number % len(nodes)] if nodes and (step.number % 3 or not may_choose) else None
        try:
            config = self.graph.update_state(config, {"log": [f"by {as_node}"]}, as_node=as_node)
        except Exception as error:
            return rules.error(error)
        return self.call(None, config, step.how) if runs else "done"

    def copy(self, step: Step) -> Any:
        """Make a copy of an older checkpoint and run it."""
        past = self.past()[1:] if rules.stops_again(self.shape) and rules.copies_all(self.shape) else []
        if not past:
            return None
        config = self.graph.update_state(past[step.number % len(past)].config, None, as_node="__copy__")
        return self.call(None, config, step.how)

    def clear(self, step: Step) -> Any:
        """Close what is open."""
        if not rules.loses_nothing(self.state(), self.shape):
            return None
        self.graph.update_state(CONFIG, None, as_node="__end__")
        return "done"

    def bulk(self, step: Step) -> Any:
        """Write two steps at once."""
        update = self.library.types.StateUpdate
        nodes = [node.name for node in self.shape.nodes if node.graph is None and node.name != SENT]
        if not nodes or not rules.loses_nothing(self.state(), self.shape):
            return None
        self.was_updated = True
        first, second = nodes[step.number % len(nodes)], nodes[-1]
        steps = [[update({"log": ["one"]}, first)], [update({"log": ["two"]}, second)]]
        try:
            self.graph.bulk_update_state(CONFIG, steps)
        except Exception as error:
            return rules.error(error)
        return "done"

    # --- calls ---

    def state(self) -> Any:
        return self.graph.get_state(CONFIG, subgraphs=True)

    def past(self) -> list[Any]:
        return list(self.graph.get_state_history(CONFIG))

    def call(self, given: Any, config: Any, how: How, **options: Any) -> Any:
        """Make a call; return its result or parts, and the error at its end."""
        steps = LIMIT + (rules.limit(given, self.kind) if self.is_ours else 0)
        config = {**config, "recursion_limit": steps}
        if self.durability:
            options["durability"] = self.durability
        if not how.modes:
            try:
                run = asyncio.run(self.graph.ainvoke(given, config, **options)) if how.later else (
                    self.graph.invoke(given, config, **options))  # fmt: skip
            except Exception as error:
                return rules.error(error)
            return rules.result(telling.told(run))
        options |= {"stream_mode": list(how.modes), "subgraphs": how.subgraphs, "version": "v2" if how.typed else "v1"}
        parts: list[Any] = []
        error = None
        try:
            if how.later:
                asyncio.run(self.collect(parts, given, config, options))
            else:
                for part in self.graph.stream(given, config, **options):
                    parts.append(part)  # noqa: PERF402 - what came before an error counts
        except Exception as raised:
            error = rules.error(raised)
        told = rules.without_tasks([self.split(part, how) for part in parts], self.unshown)
        return rules.parts(told, in_order=self.in_order, durability=self.durability), error

    async def collect(self, parts: list[Any], given: Any, config: Any, options: Any) -> None:
        async for part in self.graph.astream(given, config, **options):
            parts.append(part)

    @staticmethod
    def split(part: Any, how: How) -> tuple[Any, str, Any]:
        """Return namespace, mode and payload of a part."""
        if how.typed:
            data = part["data"]
            if part.get("interrupts"):
                data = {**data, "__interrupt__": part["interrupts"]}
            return part["ns"], part["type"], data
        return part if how.subgraphs else ((), *part)
