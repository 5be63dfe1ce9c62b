"""`@task`: a function whose calls in a body run once, beside each other, and are on record with their results."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Generic, ParamSpec, TypeVar, overload

from waitpoint import ids
from waitpoint.cache.base import BaseCache
from waitpoint.codec import Registry
from waitpoint.errors import GraphValidationError, NotSupportedError
from waitpoint.func import calls
from waitpoint.func.caching import namespace
from waitpoint.func.futures import TaskFuture
from waitpoint.graph.calls import is_async, name_of, wanted_by
from waitpoint.graph.hints import function_of, resolved_hints
from waitpoint.graph.policies import Retry, Timeout, cache_policy_of, retries_of, timeout_of
from waitpoint.records import CachePolicy

KNOWN_GRAPHS = 64

P = ParamSpec("P")
T = TypeVar("T")


class TaskFunction(Generic[P, T]):
    """A task. Calling it in a running body starts it and returns a future of its result."""

    def __init__(
        self,
        func: Callable[P, Any],
        *,
        name: str | None = None,
        retry_policy: Retry | None = None,
        cache_policy: CachePolicy | None = None,
        timeout: Timeout | None = None,
    ) -> None:
        if not callable(func):
            raise GraphValidationError(f"@task was given a {type(func).__name__} - it is put before a function")
        function = function_of(func)
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise NotSupportedError(
                f"Generators are not supported in the functional API - task '{name or name_of(func)}' is one, and its effect "
                f"would not have begun when it is recorded; return one value"
            )
        functools.update_wrapper(self, func)
        self.func = func
        self.name = name or name_of(func)
        policy = timeout_of(timeout)
        if policy is not None and not is_async(func):
            raise GraphValidationError(
                f"Node timeouts are only supported for async nodes - task '{self.name}' is a plain function, which cannot "
                f"be stopped halfway; make it `async def`, or leave the timeout out"
            )
        self._spec = calls.TaskSpec(
            fn=func,
            name=self.name,
            identity=_identity(func),
            is_async=is_async(func),
            retry=retries_of(retry_policy) or (),
            timeout=policy,
            cache_policy=cache_policy_of(cache_policy),
            wants=wanted_by(func),
            signature=_signature(func),
            registry=_Registries(func).of,
        )

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> TaskFuture[T]:
        """Start the task in the body that runs here.

        Raises:
            OutsideGraphError: no entrypoint or node is running here.
            AsyncOnlyError: the task is async, and the run is not.
            ReplayMismatch: the task recorded at this place had other arguments, so nothing was run.
        """
        return calls.start(self._spec, args, kwargs)  # type: ignore[no-any-return]

    def clear_cache(self, cache: BaseCache[Any]) -> None:
        """Forget the cached results of this task."""
        cache.clear([namespace(self._spec.identity)])

    async def aclear_cache(self, cache: BaseCache[Any]) -> None:
        """Do what `clear_cache` does, from an event loop."""
        await cache.aclear([namespace(self._spec.identity)])


class _Registries:
    """For each graph that calls a task: its registry, with the types of the task's results."""

    def __init__(self, func: Any) -> None:
        self.func = func
        self.made: dict[int, tuple[Registry, Registry]] = {}

    def of(self, registry: Registry) -> Registry:
        """Return the registry that results of this task are stored with."""
        known = self.made.get(id(registry))
        if known is None:
            if len(self.made) >= KNOWN_GRAPHS:  # of a program that makes an entrypoint for each request
                self.made.clear()
            more = Registry(registry)
            returned = resolved_hints(self.func).get("return")
            if returned is not None:
                more.add_schemas(returned)
            known = self.made[id(registry)] = registry, more
        return known[1]


def _identity(func: Any) -> str:
    """Return the name under which calls are recorded: one name, run as a script or imported."""
    while isinstance(func, functools.partial):
        func = func.func
    module = ids.module_name(getattr(func, "__module__", None) or "")
    return f"{module}.{getattr(func, '__qualname__', type(func).__qualname__)}"


def _signature(func: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(func)
    except (TypeError, ValueError):
        return None  # a builtin that does not tell


@overload
def task(
    func: None = None,
    /,
    *,
    name: str | None = None,
    retry_policy: Retry | None = None,
    cache_policy: CachePolicy | None = None,
    timeout: Timeout | None = None,
) -> Callable[[Callable[P, Awaitable[T]] | Callable[P, T]], TaskFunction[P, T]]: ...
@overload
def task(func: Callable[P, Awaitable[T]], /) -> TaskFunction[P, T]: ...
@overload
def task(func: Callable[P, T], /) -> TaskFunction[P, T]: ...
def task(func: Any = None, /, **options: Any) -> Any:
    """Make a function a task: `@task`, or `@task(name=..., retry_policy=..., cache_policy=..., timeout=...)`.

    In the body of an entrypoint, of a node or of another task, calling it starts it and returns a future: wait with
    `.result()`, or await it. With a checkpointer its result is recorded when it ends, and a later run of the body gets
    it from the record; an exception too, if the body went on after it. A call is recognised by function, arguments and
    occurrence. Parameters named `config`, `store`, `writer`, `runtime` or `previous` are filled, unless they are passed.

    `retry_policy` is a `RetryPolicy` or a list of them, `timeout` the seconds that each try of an async
    task may take, or a `TimeoutPolicy`.
    With a `cache_policy`, and a `cache` of the entrypoint, equal arguments are computed once, over threads too.
    """
    return functools.partial(TaskFunction, **options) if func is None else TaskFunction(func, **options)
