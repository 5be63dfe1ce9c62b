"""Makes a graph of its data, with the names of either library."""

from __future__ import annotations

import importlib
import itertools
import operator
from collections import Counter
from typing import Annotated, Any, TypedDict

from langchain_core.messages import HumanMessage

from tests.differential.generated.graph_shapes import SENT, Edge, Graph, Node
from tests.differential.play import Library

LONGEST = 24  # what loops of nested graphs would double without end


def add(left: list[Any], right: list[Any]) -> list[Any]:
    return [*left, *right][-LONGEST:]


def later(left: str, right: str) -> str:
    return max(left, right)


class Builder:
    """Builds with one library. How often a node failed is counted here, since a node that failed enough goes on."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.failures: Counter[str] = Counter()
        self.numbers = itertools.count()  # ids of messages: none comes twice
        self.cache = importlib.import_module(f"{library.name}.cache.memory").InMemoryCache()
        messages = importlib.import_module(f"{library.name}.graph.message").add_messages

        both = {"log": Annotated[list[Any], add], "total": Annotated[int, operator.add], "item": int}
        shared = {"last": Annotated[str, later], "note": str, "messages": Annotated[list[Any], messages]}
        own = {"own": Annotated[list[Any], add]}
        self.schemas = {
            False: TypedDict("Shared", {**both, **shared}, total=False),  # type: ignore[operator]
            True: TypedDict("Own", {**both, **own}, total=False),  # type: ignore[operator]
        }

    def compiled(self, graph: Graph, saver: Any = None, path: str = "") -> Any:
        """Return the graph; `saver` is that of the outermost."""
        lib = self.library
        builder = lib.StateGraph(self.schemas[graph.own])
        for node in graph.nodes:
            self.add(builder, node, graph, path)
        for edge in graph.edges:
            self.lead(builder, edge)
        options = {"interrupt_before": list(graph.before), "interrupt_after": list(graph.after)}
        return builder.compile(checkpointer=saver or graph.memory, cache=self.cache, **options)

    def add(self, builder: Any, node: Node, graph: Graph, path: str) -> None:
        """Add a node with its policies."""
        lib, options = self.library, {}
        if node.graph is not None:
            builder.add_node(node.name, self.compiled(node.graph, path=f"{path}{node.name}/"), defer=node.deferred)
            return
        if node.attempts > 1:
            options["retry_policy"] = lib.RetryPolicy(
                max_attempts=node.attempts, initial_interval=0.001, jitter=False, retry_on=ValueError
            )
        if node.cached:
            options["cache_policy"] = lib.CachePolicy(key_func=repr)
        if node.handled:
            options["error_handler"] = self.handler()
        builder.add_node(node.name, self.body(node, graph, path), defer=node.deferred, **options)

    def handler(self) -> Any:
        """Return an error handler, whose second parameter is found by its annotation."""

        def handler(state: Any, error: Any) -> Any:
            return {"log": [f"{error.node} failed"]}

        handler.__annotations__["error"] = self.library.errors.NodeError
        return handler

    def body(self, node: Node, graph: Graph, path: str) -> Any:
        """Return a node's function."""
        lib, place = self.library, f"{path}{node.name}"
        calls = [
            None if act.graph is None else self.compiled(act.graph, path=f"{place}({i})/")
            for i, act in enumerate(node.acts)
        ]

        def body(state: Any) -> Any:
            log: list[Any] = [node.name, *([state["item"]] if "item" in state else [])]
            for i, act in enumerate(node.acts):
                if act.kind == "ask":
                    log.append(lib.interrupt(f"{place}.{i}? {log[1:]} {len(state.get('log', ()))}"))
                elif act.kind == "say":
                    self.config().get_stream_writer()({"said": f"{place}.{i}"})
                elif act.kind == "fail" and self.failures[f"{place}.{i}"] < act.number:
                    self.failures[f"{place}.{i}"] += 1
                    raise ValueError(f"{place} fails")
                elif calls[i] is not None:
                    log.append(calls[i].invoke({"log": [place], "total": 0}).get("log", [])[-3:])
            return self.result(node, graph, log)

        return body

    def config(self) -> Any:
        return importlib.import_module(f"{self.library.name}.config")

    def result(self, node: Node, graph: Graph, log: list[Any]) -> Any:
        """Return the update of a node, in a command if it goes somewhere."""
        lib = self.library
        all_of_it = {
            "log": log,
            "over": lib.Overwrite(log),
            "total": 1,
            "last": node.name,
            "note": node.name,
            "messages": [HumanMessage(str(log), id=str(next(self.numbers)))],
        }
        keys = ("log", "over", "total") if graph.own else tuple(all_of_it)
        update = {("log" if key == "over" else key): all_of_it[key] for key in node.writes if key in keys}
        if not node.goto:
            return update or None
        if node.goto[0].startswith("^"):
            where = [lib.Send(SENT, {"item": 9})] if node.goto[0][1:] else ()
            return lib.Command(graph=lib.Command.PARENT, update=update, goto=where)
        goto = [lib.Send(SENT, {"item": i}) if name == SENT else name for i, name in enumerate(node.goto)]
        return lib.Command(update=update, goto=goto)

    def lead(self, builder: Any, edge: Edge) -> None:
        """Add what follows a node."""
        lib, source, target = self.library, edge.source, edge.target
        if edge.kind == "edge":
            builder.add_edge(source, target)
        elif edge.kind == "join":
            builder.add_edge(source.split("+"), target)
        elif edge.kind == "router":
            builder.add_conditional_edges(source, lambda s: target if len(s.get("log", ())) % 2 else lib.END)
        elif edge.kind == "loop":
            builder.add_conditional_edges(source, lambda s: target if s.get("total", 0) < edge.number else lib.END)
        else:
            sends = [lib.Send(SENT, {"item": n}) for n in range(edge.number)]
            builder.add_conditional_edges(source, lambda s: [*sends, target])
