"""Plays a user on an agent of one library: inputs, answers and decisions, and what came of each."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.differential import agents
from tests.differential.agents import Library
from tests.differential.generated import agent_rules, rules, telling
from tests.differential.generated.agent_building import EDITED, Builder
from tests.differential.generated.agent_shapes import Shape, Use
from tests.differential.generated.scripts import How
from tests.differential.play import CONFIG

ROUNDS = 16


class Player:
    """An agent, its thread, and the story so far."""

    def __init__(self, library: Library, shape: Shape) -> None:
        self.library, self.shape = library, shape
        self.builder = Builder(library, shape)
        self.agent = self.builder.agent()
        self.in_order = all(len(reply.tools) < 2 for reply in shape.replies)
        self.has_the_same_steps = agent_rules.has_the_same_steps(shape)
        self.story: list[Any] = []

    def play(self, use: Use) -> list[Any]:
        """Return what each call came to, what was asked after it, and at the end what the model was shown."""
        call = 0
        for number in range(use.inputs):
            given: Any = {"messages": [("user", f"go {number}")]}
            for _ in range(ROUNDS):
                came, error = self.call(given, use.hows[call % len(use.hows)])
                call += 1
                self.story.append((came, error))
                if error:
                    return self.story  # what ran beside it is chance
                snapshot = self.agent.get_state(CONFIG)
                self.story.append(("state", self.told(snapshot.values), sorted(snapshot.next)))
                if not snapshot.interrupts:
                    break
                given = self.answers(snapshot.interrupts, use, call)
        self.story.append(("done", self.builder.done))
        self.story += [("shown", self.told(shown)) for shown in self.builder.model.shown]
        if self.has_the_same_steps:
            self.story += [("history", self.past(snapshot)) for snapshot in self.agent.get_state_history(CONFIG)]
        return self.story

    def past(self, snapshot: Any) -> Any:
        """Tell a snapshot of the history."""
        return self.told(snapshot.values), sorted(snapshot.next), telling.told_metadata(snapshot.metadata)

    def told(self, value: Any) -> Any:
        """Tell a value without what is meant to differ."""
        return agents.told(agent_rules.levelled(value, self.shape.mode))

    # --- answers ---

    def answers(self, questions: Any, use: Use, call: int) -> Any:
        """Answer what is open: all of it, or, of several, the first."""
        pending = sorted(questions, key=lambda question: agent_rules.asked(question.value))
        self.story.append(("asked", [agent_rules.asked(question.value) for question in pending]))
        chosen = pending
        if use.some and len(pending) > 1 and rules.partial(use.hows[call % len(use.hows)].modes):
            chosen = pending[:1]
        given = {question.id: self.answer(question.value, use.choices) for question in chosen}
        return self.library.Command(resume=given)

    def answer(self, value: Any, choices: tuple[int, ...]) -> Any:
        """Answer a question: a text, a decision, or one for each call."""
        if isinstance(value, str):
            return f"to {value}"
        if value.get("type") == "tool_approval":
            return self.decision(value["name"], value["args"], choices[len(self.story) % len(choices)])
        requests = value["action_requests"]
        chosen = [choices[(n + len(self.story)) % len(choices)] for n in range(len(requests))]
        return {"decisions": [self.decision(r["name"], r["args"], c) for r, c in zip(requests, chosen, strict=True)]}

    def decision(self, name: str, args: Any, choice: int) -> dict[str, Any]:
        """Return one of the decisions that are allowed for a tool."""
        allowed = dict(self.shape.gated)[name]
        kind = allowed[choice % len(allowed)]
        if kind == "edit":
            return {"type": kind, "edited_action": {"name": name, "args": EDITED.get(name, args)}}
        if kind == "respond" or (kind == "reject" and choice % 2):
            return {"type": kind, "message": f"because {choice}"}
        return {"type": kind}

    # --- calls ---

    def call(self, given: Any, how: How) -> tuple[Any, str | None]:
        """Make a call; return its result or parts, and the error at its end."""
        options: dict[str, Any] = {}
        modes = how.modes if self.has_the_same_steps else tuple({"custom"} & {*how.modes})
        if modes:
            options = {"stream_mode": list(modes), "subgraphs": how.subgraphs}
        parts: list[Any] = []
        try:
            if not modes:
                run = self.agent.ainvoke if how.later else self.agent.invoke
                came = asyncio.run(run(given, CONFIG)) if how.later else run(given, CONFIG)
                came.pop("__interrupt__", None)
                return self.told(came), None
            if how.later:
                asyncio.run(self.collect(parts, given, options))
            else:
                for part in self.agent.stream(given, CONFIG, **options):
                    parts.append(part)  # noqa: PERF402 - what came before an error counts
        except Exception as raised:
            # Of several tools that fail at the same time, one is first.
            return None, agents.failed(raised) if self.in_order else "failed"
        told = [part if how.subgraphs else ((), *part) for part in parts]
        told = [
            (agent_rules.namespace(ns), mode, agent_rules.levelled(data, None))
            for ns, mode, data in agent_rules.without_calls(told)
        ]
        return rules.parts(told, in_order=self.in_order, durability=None), None

    async def collect(self, parts: list[Any], given: Any, options: Any) -> None:
        async for part in self.agent.astream(given, CONFIG, **options):
            parts.append(part)
