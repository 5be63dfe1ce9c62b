"""Results of nodes from a cache: looked for before a body runs, kept when its task is done.

Rule: an answer is given to one question and stands for no other, and an error is tried again. So only a task that is
done in its first attempt is kept, with its retries, and only a first attempt is looked for: a node that paused runs on,
and so does one that a crash may have interrupted in the middle of an effect.
What is kept is what the body came to; its routers are asked each time, since they may see more than its input.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, ClassVar

from waitpoint import codec
from waitpoint.cache.base import BaseCache, FullKey, Namespace, key_of, seconds
from waitpoint.core.apply import Result
from waitpoint.core.spec import Call, GraphSpec
from waitpoint.engine.scope import TaskScope
from waitpoint.engine.tasks import Outcome, Task, input_of
from waitpoint.errors import CacheWarning
from waitpoint.records import END, CachePolicy, Send


@dataclass(slots=True, eq=False, repr=False)
class _Get:
    crew: ClassVar[Any] = None
    cache: BaseCache[bytes]
    key: FullKey

    def blocking(self) -> bytes | None:
        try:
            return self.cache.get([self.key]).get(self.key)
        except Exception as error:  # noqa: BLE001 - a cache that fails holds nothing
            _warn("read", self.key, error)
            return None

    async def awaiting(self) -> bytes | None:
        try:
            return (await self.cache.aget([self.key])).get(self.key)
        except Exception as error:  # noqa: BLE001 - as above
            _warn("read", self.key, error)
            return None


@dataclass(slots=True, eq=False, repr=False)
class _Set:
    crew: ClassVar[Any] = None
    cache: BaseCache[bytes]
    key: FullKey
    data: bytes
    ttl: float | None

    def blocking(self) -> None:
        try:
            self.cache.set({self.key: (self.data, self.ttl)})
        except Exception as error:  # noqa: BLE001 - the result is there, only not for others
            _warn("written", self.key, error)

    async def awaiting(self) -> None:
        import asyncio

        try:
            await self.cache.aset({self.key: (self.data, self.ttl)})
        except asyncio.CancelledError:
            return  # the task is done, and its result counts
        except Exception as error:  # noqa: BLE001 - as above
            _warn("written", self.key, error)


_Calls = Generator[Any, Any, Outcome]


def cached(calls: _Calls, spec: GraphSpec, task: Task, scope: TaskScope) -> _Calls:
    """Run an attempt of a task that has a cache policy, in a run that has a cache; `calls` has not begun."""
    cache, policy = scope.around.cache, task.node.cache_policy
    assert cache is not None
    assert policy is not None
    if scope.attempt > 1 or not task.is_new:
        return (yield from calls)
    try:
        key = (namespace(spec, task.name), _key(task, policy, scope))
        ttl = seconds(policy.ttl)
    except Exception as error:  # noqa: BLE001 - of the user's key function, for instance: the node's failure
        scope.journal.sealed = True
        return Outcome("failed", error=error, attempt=scope.attempt)
    found = yield _Get(cache, key)
    result = None if found is None else _decoded(spec, task.name, found, scope.around.registry)
    if result is not None:
        task.body.result, task.body.is_cached = result, True  # the attempt goes on with the routers
        return (yield from calls)
    outcome = yield from calls
    if outcome.kind == "done" and outcome.body.error is None:
        assert outcome.body.result is not None
        try:
            data = _encoded(outcome.body.result, scope.around.registry)
        except Exception as error:  # noqa: BLE001 - the engine refuses it with its own error, where it has to store it
            _warn("encoded", key, error)
        else:
            yield _Set(cache, key, data, ttl)
    return outcome


def namespace(spec: GraphSpec, node: str) -> Namespace:
    """Return where the results of a node are cached: by graph, node and what the node calls."""
    return ("waitpoint", "node", spec.name, node, _identity(spec.nodes[node].call))


def _key(task: Task, policy: CachePolicy, scope: TaskScope) -> str:
    given = input_of(task, task.node.reader, scope.run.values, scope)
    return key_of(policy, (given,), {}, f"node {task.name!r}", scope.around.registry)


def _identity(call: Call) -> str:
    fn = call.fn
    while isinstance(fn, functools.partial):
        fn = fn.func
    if call.kind != "graph":
        fn = inspect.unwrap(fn) if callable(fn) else fn
    named = fn if hasattr(fn, "__qualname__") else type(fn)
    return f"{named.__module__}.{named.__qualname__}"


# --- results as bytes -------------------------------------------------------------------------------------------------


def _encoded(result: Result, registry: codec.Registry | None) -> bytes:
    gotos = [[g.node, g.arg, g.timeout] if isinstance(g, Send) else g for g in result.gotos]
    return codec.dumps([[[key, value] for key, value in result.writes], gotos], registry)


def _decoded(spec: GraphSpec, node: str, data: bytes, registry: codec.Registry | None) -> Result | None:
    """Return a cached result, None if this process or this graph cannot use it any more."""
    try:
        writes, gotos = codec.loads(data, registry)
    except Exception as error:  # noqa: BLE001 - what cannot be read is computed anew
        _warn("decoded", (namespace(spec, node), ""), error)
        return None
    if any(codec.find_unknown([writes, gotos])):
        return None
    places = [g if isinstance(g, str) else Send(g[0], g[1], timeout=g[2]) for g in gotos]
    names = {p.node if isinstance(p, Send) else p for p in places}
    if not all(key in spec.channels for key, _ in writes) or not names <= {*spec.nodes, END}:
        return None
    return Result(node, [(key, value) for key, value in writes], places)


def _warn(what: str, key: FullKey, error: Exception) -> None:
    warnings.warn(
        f"A cached result of node {key[0][3]!r} of graph {key[0][2]!r} could not be {what} - {error!r}; the node's result "
        f"is not taken from the cache",
        CacheWarning,
        stacklevel=2,
    )
