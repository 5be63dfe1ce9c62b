"""Random programs: graphs of all shapes and the calls made on them, the same for both libraries from one seed."""

from __future__ import annotations

import operator
import random
from typing import Annotated, Any, TypedDict

from tests.differential.play import CONFIG, Library, told, told_parts, told_state


def later(left: str, right: str) -> str:
    return max(left, right)


class State(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]
    total: Annotated[int, operator.add]
    last: Annotated[str, later]


class Inner(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]
    last: Annotated[str, later]
    item: int


class Builder:
    """Makes the graph of a seed."""

    def __init__(self, library: Library, seed: int) -> None:
        self.library = library
        self.random = random.Random(seed)
        self.has_stops = self.has_join = False

    def graph(self) -> Any:
        """Return the compiled graph: nodes in layers, with edges, joins, routers, fan-outs and one bounded loop."""
        lib, rng = self.library, self.random
        builder = lib.StateGraph(State)
        names = [f"n{i}" for i in range(rng.randint(2, 5))]
        for name in names:
            builder.add_node(name, self.node(name, names))
        builder.add_node("sent", self.sent())
        builder.add_edge(lib.START, names[0])
        if rng.random() < 0.3 and len(names) > 2:
            builder.add_edge(lib.START, names[1])
        for i, name in enumerate(names[:-1]):
            self.lead(builder, name, names[i + 1 :])
        if rng.random() < 0.4:
            builder.add_conditional_edges(names[-1], lambda s: names[0] if s.get("total", 0) < 6 else lib.END)
        if rng.random() < 0.4 and len(names) > 3:
            builder.add_edge([names[1], names[2]], names[3])
            self.has_join = True
        stops = {
            option: rng.sample(names, 1) if rng.random() < 0.8 else "*"
            for option in ("interrupt_before", "interrupt_after")
            if rng.random() < 0.2
        }
        self.has_stops = bool(stops)
        return builder.compile(checkpointer=lib.saver(), **stops)

    def lead(self, builder: Any, name: str, later: list[str]) -> None:
        """Add what follows a node."""
        lib, rng = self.library, self.random
        kind = rng.choice(["edge", "edges", "router", "sends", "none"])
        target = rng.choice(later)
        if kind == "edge":
            builder.add_edge(name, target)
        elif kind == "edges":
            for other in rng.sample(later, min(2, len(later))):
                builder.add_edge(name, other)
        elif kind == "router":
            builder.add_conditional_edges(name, lambda s: target if len(s["log"]) % 2 else lib.END)
        elif kind == "sends":
            count = rng.randint(0, 3)
            builder.add_conditional_edges(
                name, lambda s: [*(lib.Send("sent", {"item": n}) for n in range(count)), target]
            )

    def node(self, name: str, names: list[str]) -> Any:
        """Return a node of some kind."""
        lib, rng = self.library, self.random
        kinds = ["plain", "ask", "two", "plain", "ask", "silent", "command", "subgraph", "call"]
        kind = rng.choice(kinds[:3] if name == names[-1] else kinds)  # the last one counts, so that loops end
        if kind == "plain":
            return lambda s: {"log": [name], "total": 1, "last": name}
        if kind == "silent":
            return lambda s: None
        if kind == "ask":
            return lambda s: {"log": [[name, lib.interrupt(f"{name} at {len(s['log'])}")]], "total": 1}
        if kind == "two":
            return lambda s: {"log": [name, lib.interrupt(f"{name}.1"), lib.interrupt(f"{name}.2")], "total": 1}
        if kind == "command":
            later = names[names.index(name) + 1 :]
            places = [*rng.sample(later, min(len(later), 1)), lib.Send("sent", {"item": 7})][: rng.randint(0, 2)]
            return lambda s: lib.Command(update={"log": [name], "total": 1}, goto=places)
        inner = self.inner(name)
        if kind == "subgraph":
            return inner
        return lambda s: {"log": [inner.invoke({"log": [], "item": 1})["log"]], "total": 1}

    def inner(self, name: str) -> Any:
        """Return a graph of one or two nodes, one of which may ask."""
        lib, rng = self.library, self.random
        builder = lib.StateGraph(Inner)
        asks = rng.random() < 0.5
        builder.add_node("first", lambda s: {"log": [f"{name}/first"], "last": "inner"})
        builder.add_node("second", lambda s: {"log": [lib.interrupt(f"{name}/second") if asks else "second"]})
        builder.add_edge(lib.START, "first")
        if rng.random() < 0.8:
            builder.add_edge("first", "second")
        return builder.compile()

    def sent(self) -> Any:
        """Return the node that fan-outs run."""
        lib = self.library
        if self.random.random() < 0.5:
            return lambda s: {"log": [s["item"]], "total": 1}
        return lambda s: {"log": [[s["item"], lib.interrupt(f"item {s['item']}")]], "total": 1}


class Player:
    """Makes the calls of a seed; what it does next depends on what the graph has come to."""

    def __init__(self, library: Library, seed: int) -> None:
        self.library = library
        builder = Builder(library, seed)
        self.graph = builder.graph()
        # Here a join begins anew with each input and update; in LangGraph what was left half done counts on.
        self.goes_on = not builder.has_join
        # Here a replay stops at breakpoints; in LangGraph it goes past the first.
        self.goes_back = self.goes_on and not builder.has_stops
        self.random = random.Random(seed + 1)
        self.story: list[Any] = []

    def play(self, calls: int = 8, *, streams: bool = False) -> list[Any]:
        """Make the calls; return what each came to (its result, or the parts of its stream), then the history."""
        for _ in range(calls):
            if len(self.graph.get_state(CONFIG).values.get("log", ())) > 60:
                break  # a subgraph in a loop doubles it
            config, given = self.next_call()
            config = {**config, "recursion_limit": 60}
            self.story.append(self.parts(given, config) if streams else self.result(given, config))
            self.story.append(self.seen(self.graph.get_state(CONFIG)))
        if self.goes_on:  # in a history LangGraph lists a join too early
            self.story += [self.seen(s, in_history=True) for s in self.graph.get_state_history(CONFIG)]
        return self.story

    def result(self, given: Any, config: Any) -> Any:
        """Return what a call returns or raises."""
        try:
            found = told(self.graph.invoke(given, config))
        except Exception as error:
            return type(error).__name__
        if "__interrupt__" in found:
            found["__interrupt__"].sort(key=repr)
        return found

    def parts(self, given: Any, config: Any) -> Any:
        """Return the parts of a call's stream, and the error at its end."""
        found: list[Any] = []
        error = None
        try:
            for part in self.graph.stream(given, config, stream_mode=["values", "updates"]):
                found.append(part)  # noqa: PERF402 - what came before an error counts
        except Exception as raised:
            error = type(raised).__name__
        return told_parts(found, parallel=True), error

    def next_call(self) -> tuple[Any, Any]:
        """Return config and input of the next call."""
        rng, state = self.random, self.graph.get_state(CONFIG)
        pending = sorted(state.interrupts, key=lambda i: i.value)
        past = list(self.graph.get_state_history(CONFIG))[1:]  # the newest is no past: naming it changes nothing
        if past and self.goes_back and rng.random() < 0.15:
            return rng.choice(past).config, None
        if past and self.goes_back and rng.random() < 0.1:
            return self.graph.update_state(rng.choice(past).config, {"log": ["update"]}, as_node="n0"), None
        if pending:
            if len(pending) == 1 and rng.random() < 0.5:
                return CONFIG, self.library.Command(resume="bare")
            chosen = [i for i in pending if rng.random() < 0.6] or pending
            return CONFIG, self.library.Command(resume={i.id: f"to {i.value}" for i in chosen})
        if state.next or (past and not self.goes_on):
            return CONFIG, None
        return CONFIG, {"log": ["in"]}

    def seen(self, snapshot: Any, *, in_history: bool = False) -> Any:
        """Return what is compared of a snapshot."""
        found = told_state(snapshot)
        for task in found["tasks"]:
            del task["nested"]
            if in_history:
                task["interrupts"] = task["interrupts"][-1:]
                task["error"] = None
        if in_history:
            found["interrupts"] = None
        return found
