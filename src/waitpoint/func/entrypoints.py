"""`@entrypoint`: a graph of one function, with a memory of what it returned last."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Generic, TypeVar, get_args, get_origin

from waitpoint.cache.base import BaseCache
from waitpoint.core.spec import PREVIOUS, Call, Channel, GraphSpec, Node, Reader
from waitpoint.engine.runner import Runner
from waitpoint.errors import GraphValidationError, NotSupportedError, UsageError
from waitpoint.graph import jsonschemas
from waitpoint.graph.calls import make_call, name_of
from waitpoint.graph.hints import function_of, resolved_hints
from waitpoint.graph.policies import Retry, Timeout, cache_policy_of, retries_of, timeout_of
from waitpoint.graph.schema import ROOT, Schema
from waitpoint.graph.state import Checkpointer
from waitpoint.records import END, START, CachePolicy

ContextT = TypeVar("ContextT")
ValueT = TypeVar("ValueT")
SavedT = TypeVar("SavedT")

TITLE = "LangGraph"


class Entrypoint(Runner):
    """An entrypoint that runs: it has all that a compiled graph has."""

    def __init__(self, spec: GraphSpec, types: tuple[Any, Any], **options: Any) -> None:
        super().__init__(spec, **options)
        self.InputType, self.OutputType = types  # LangChain's names

    def get_input_schema(self, config: Any = None) -> Any:  # noqa: ARG002 - LangChain's signature
        """Return a pydantic model of the input."""
        return _model(self.InputType, f"{TITLE}Input")

    def get_output_schema(self, config: Any = None) -> Any:  # noqa: ARG002 - LangChain's signature
        """Return a pydantic model of the output."""
        return _model(self.OutputType, f"{TITLE}Output")

    def get_input_jsonschema(self, config: Any = None) -> dict[str, Any]:
        """Return the JSON Schema of the input."""
        return dict(self.get_input_schema(config).model_json_schema())

    def get_output_jsonschema(self, config: Any = None) -> dict[str, Any]:
        """Return the JSON Schema of the output."""
        return dict(self.get_output_schema(config).model_json_schema())

    def get_context_jsonschema(self) -> dict[str, Any] | None:
        """Return the JSON Schema of the context, None if none is declared."""
        return jsonschemas.context_json_schema(self.context_schema)


class entrypoint(Generic[ContextT]):  # noqa: N801 - LangGraph's name
    """Make a function a graph: `@entrypoint(checkpointer=...)`.

    The function takes one input of any type and returns anything. While it runs it may call tasks (`@task`), other
    entrypoints and graphs, and ask with `interrupt()`; after an answer it runs again from its first line, and tasks that
    had finished return what is on record. `previous` is what the last run on the thread returned, or saved with
    `entrypoint.final`. Parameters named `previous`, `config`, `store`, `writer` or `runtime` are filled.

    The function's name names the graph: it owns its threads.
    """

    @dataclass(slots=True)
    class final(Generic[ValueT, SavedT]):  # noqa: N801 - LangGraph's name
        """Return `value` to the caller, and save `save` for the next run, which gets it as `previous`."""

        value: ValueT
        save: SavedT

    def __init__(
        self,
        checkpointer: Checkpointer = None,
        store: Any = None,
        cache: BaseCache[Any] | None = None,
        context_schema: type[ContextT] | None = None,
        cache_policy: CachePolicy | None = None,
        retry_policy: Retry | None = None,
        timeout: Timeout | None = None,
    ) -> None:
        self.options: dict[str, Any] = {"checkpointer": checkpointer, "store": store, "cache": cache}
        self.context_schema = context_schema
        self.cache_policy = cache_policy_of(cache_policy)
        self.retry = retries_of(retry_policy) or ()
        self.timeout = timeout_of(timeout)

    def __call__(self, func: Callable[..., Any]) -> Entrypoint:
        """Return the graph of a function.

        Raises:
            GraphValidationError: the function takes no input, or has a parameter that nothing fills.
            NotSupportedError: it is a generator.
        """
        function = function_of(func)
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise NotSupportedError(
                f"Generators are not supported in the functional API - '{name_of(func)}' is one, and what it yields would be "
                f"lost; return one value, and pass what is to be streamed to get_stream_writer()"
            )
        name = name_of(func)
        call = make_call(func, name)
        if call.kind != "function" or not call.takes_input:
            raise GraphValidationError(
                f"Entrypoint function must have at least one parameter - '{name}' has none for its input; give it one"
            )
        if self.timeout is not None and not call.is_async:
            raise GraphValidationError(
                f"Node timeouts are only supported for async nodes - '{name}' is a plain function, which cannot be stopped "
                f"halfway; make it `async def`, or leave the timeout out"
            )
        given, returned, saved = _types(func)
        types = tuple(t for t in (given, returned, saved, self.context_schema) if t is not None and t is not Any)
        spec = self._spec(name, call._replace(fn=_body(func, is_async=call.is_async)), types)
        return Entrypoint(spec, (given, returned), context_schema=self.context_schema, **self.options)

    def _spec(self, name: str, call: Call, types: tuple[Any, ...]) -> GraphSpec:
        reader = Reader((START,), itemgetter(START))
        node = Node(name, call, reader, (END,), retry=self.retry, timeout=self.timeout, cache_policy=self.cache_policy)
        return GraphSpec(
            name=name,
            channels={key: Channel(key, "last") for key in (START, END, PREVIOUS)},
            nodes={START: Node(START, Call(None, START, takes_input=False), reader, (name,)), name: node},
            joins=(),
            input_keys=(START,),
            output_keys=(END,),
            shown_keys=(END,),
            to_writes=_writes,
            make_input=_Given,
            types=types,
            is_bare=True,
            is_function=True,
        )


@dataclass(slots=True)
class _Given:
    """An input, on its way into the state."""

    value: Any


@dataclass(slots=True)
class _Returned:
    """What the function returned, whatever it is: None and a `Command` are values like any other."""

    value: Any
    save: Any


def _writes(update: Any) -> list[tuple[str, Any]]:
    if isinstance(update, _Given):
        return [(START, update.value)]
    if isinstance(update, _Returned | entrypoint.final):
        return [(END, update.value), (PREVIOUS, update.save)]
    return [(END, update), (PREVIOUS, update)]


def _returned(value: Any) -> _Returned:
    if isinstance(value, entrypoint.final):
        return _Returned(value.value, value.save)
    return _Returned(value, value)


def _body(func: Callable[..., Any], *, is_async: bool) -> Callable[..., Any]:
    if is_async:

        async def abody(given: Any, **wanted: Any) -> _Returned:
            return _returned(await func(given, **wanted))

        return functools.update_wrapper(abody, func)

    def body(given: Any, **wanted: Any) -> _Returned:
        value = func(given, **wanted)
        if inspect.iscoroutine(value):
            value.close()
            raise UsageError(f"Entrypoint {name_of(func)!r} returned a coroutine; write it as an `async def`")
        return _returned(value)

    return functools.update_wrapper(body, func)


def _types(func: Callable[..., Any]) -> tuple[Any, Any, Any]:
    """Return the types of what is given, returned and saved, as annotated."""
    hints = resolved_hints(func)
    first = next(iter(inspect.signature(func).parameters))
    given, returned = hints.get(first, Any), hints.get("return", Any)
    if returned is entrypoint.final:
        return given, Any, Any
    if get_origin(returned) is entrypoint.final:
        return given, *get_args(returned)
    return given, returned, returned


def _model(hint: Any, title: str) -> Any:
    return jsonschemas.model_of(Schema(hint, {ROOT: Channel(ROOT, "last")}, {}, {ROOT: hint}, None), title)
