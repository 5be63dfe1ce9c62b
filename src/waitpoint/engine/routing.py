"""Where an update made as a node leads: the node's routers, run outside of any task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from waitpoint.core.apply import Result, apply_writes
from waitpoint.core.spec import Branch, GraphSpec, Node
from waitpoint.engine.tasks import destinations, read
from waitpoint.errors import UsageError
from waitpoint.runtime import Runtime


def route(spec: GraphSpec, node: Node, values: Mapping[str, Any], result: Result, store: Any) -> Result:
    """Return the result with the places that the node's routers choose on the updated state."""
    if not node.branches:
        return result
    after, _ = apply_writes(spec, values, [result])
    gotos = list(result.gotos)
    for branch in node.branches:
        gotos += destinations(spec, node.name, branch, _asked(branch, read(branch.reader, after), store))
    return Result(result.node, result.writes, gotos)


def _asked(branch: Branch, given: Any, store: Any) -> Any:
    call = branch.call
    if call.kind != "function":
        return call.fn.invoke(given)
    offered: dict[str, Any] = {"store": store, "runtime": Runtime(store=store), "config": {}, "writer": lambda _: None}
    wanted = {name: offered.get(what) for name, what in call.wants.items()}
    value = call.fn(given, **wanted) if call.takes_input else call.fn(**wanted)
    if not call.is_async:
        return value
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(value)
    value.close()
    raise UsageError(f"Router {branch.name!r} is async: from a running event loop use aupdate_state()")
