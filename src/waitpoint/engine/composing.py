"""A graph among LangChain's runnables: a config of its own, batches, chains, and whatever else a `Runnable` can do."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from contextvars import copy_context
from typing import Any, Self

from waitpoint import runtime as runtimes
from waitpoint.config import merged
from waitpoint.engine import langchain
from waitpoint.engine.declared import Declared
from waitpoint.errors import ConfigError, GraphInterrupt

Config = Mapping[str, Any]

# What LangChain's own class does with any object that has `invoke`, `ainvoke`, `stream` and `astream`.
LENT = frozenset(
    (
        "abatch_as_completed", "assign", "astream_log", "atransform", "batch_as_completed", "bind",
        "config_schema", "config_specs", "get_config_jsonschema", "get_prompts", "input_schema", "map", "output_schema",
        "pick", "pipe", "transform", "with_alisteners", "with_fallbacks", "with_listeners", "with_retry", "with_types",
    )
)  # fmt: skip


class Composable(Declared):
    """A graph that can be part of chains: LangChain takes it for a `Runnable`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        langchain.introduce(Composable)

    def invoke(self, input: Any, config: Config | None = None, **options: Any) -> Any:
        """Run to the next rest and return the output."""
        raise NotImplementedError

    async def ainvoke(self, input: Any, config: Config | None = None, **options: Any) -> Any:
        """Do what `invoke` does, from an event loop."""
        raise NotImplementedError

    # --- a config of its own ------------------------------------------------------------------------------------------

    def with_config(self, config: Config | None = None, **more: Any) -> Self:
        """Return this graph with a config that each call begins with; that of the call wins."""
        other = copy.copy(self)
        other.config = merged(self.config, config, more)
        return other

    def get_name(self, suffix: str | None = None, *, name: str | None = None) -> str:
        """Return the graph's name, as LangChain builds names."""
        found = name or self.name
        if not suffix:
            return found
        return found + suffix.title() if found[0].isupper() else f"{found}_{suffix.lower()}"

    # --- several inputs -----------------------------------------------------------------------------------------------

    def batch(
        self, inputs: Sequence[Any], config: Config | Sequence[Config] | None = None, *,
        return_exceptions: bool = False, **options: Any,
    ) -> list[Any]:  # fmt: skip
        """Invoke the graph with each input, side by side; return the outputs in the order of the inputs.

        `config` is one for all, or a list with one for each: with a checkpointer each input needs a thread of its own.
        `max_concurrency` limits how many run at once. With `return_exceptions` an error takes the place of its output;
        else the first one is raised when all have ended. Inside a node they run one after the other, so that each is
        found again when the node is resumed, and their questions come together.
        """
        configs = _one_each(config, len(inputs))

        def one(number: int) -> Any:
            try:
                return self.invoke(inputs[number], configs[number], **options)
            except (Exception, GraphInterrupt) as error:  # noqa: BLE001 - sorted out when all have ended
                return _Failed(error)

        if len(inputs) < 2 or runtimes.current.get() is not None:
            return _sorted_out([one(n) for n in range(len(inputs))], return_exceptions)
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(_limit(configs[0])) as pool:
            started = [pool.submit(copy_context().run, one, n) for n in range(len(inputs))]
            return _sorted_out([each.result() for each in started], return_exceptions)

    async def abatch(
        self, inputs: Sequence[Any], config: Config | Sequence[Config] | None = None, *,
        return_exceptions: bool = False, **options: Any,
    ) -> list[Any]:  # fmt: skip
        """Do what `batch` does, from an event loop; inside a node too they run side by side."""
        import asyncio

        configs = _one_each(config, len(inputs))
        limit = _limit(configs[0]) if configs else None
        places = asyncio.Semaphore(limit or max(len(inputs), 1))

        async def one(number: int) -> Any:
            async with places:
                try:
                    return await self.ainvoke(inputs[number], configs[number], **options)
                except (Exception, GraphInterrupt) as error:  # noqa: BLE001 - sorted out when all have ended
                    return _Failed(error)

        return _sorted_out(await asyncio.gather(*map(one, range(len(inputs)))), return_exceptions)

    # --- chains -------------------------------------------------------------------------------------------------------

    def __or__(self, other: Any) -> Any:
        """Return a chain that goes on with `other`: a Runnable, a function or a dict of these."""
        return langchain.chained(Composable, self, other)

    def __ror__(self, other: Any) -> Any:
        """Return a chain that begins with `other`."""
        return langchain.chained(Composable, other, self)

    def as_tool(
        self, args_schema: Any = None, *, name: str | None = None, description: str | None = None,
        arg_types: Mapping[str, type] | None = None,
    ) -> Any:  # fmt: skip
        """Return a LangChain tool that invokes the graph with its arguments; what it asks is asked by who calls the tool.

        The arguments are those of the input's schema, or of `args_schema` (a pydantic model or a JSON Schema), or
        `arg_types` gives their types by name.
        """
        return langchain.tool_of(self, args_schema, name or self.name, description, arg_types)

    def __getattr__(self, name: str) -> Any:
        if name in LENT:
            return langchain.lent(Composable, self, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


class _Failed:
    """An error in the place of an output, which might be an exception itself."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


def _sorted_out(found: Sequence[Any], return_exceptions: bool) -> list[Any]:
    """Return the outputs, or raise: errors come before questions, and all questions come together."""
    errors = [each.error for each in found if isinstance(each, _Failed)]
    pauses = [error for error in errors if isinstance(error, GraphInterrupt)]
    others = [error for error in errors if not isinstance(error, GraphInterrupt)]
    if others and not return_exceptions:
        raise others[0]
    if pauses:
        raise GraphInterrupt([interrupt for pause in pauses for interrupt in pause.args[0]])
    return [each.error if isinstance(each, _Failed) else each for each in found]


def _one_each(config: Config | Sequence[Config] | None, count: int) -> list[Config | None]:
    if config is None or isinstance(config, Mapping):
        return [config] * count
    if len(config) != count:
        raise ConfigError(
            f"A batch of {count} inputs got {len(config)} configs, so it is not clear which belongs to which; give one for "
            f"each, or a single one for all"
        )
    return list(config)


def _limit(config: Config | None) -> int | None:
    limit = (config or {}).get("max_concurrency")
    return limit if isinstance(limit, int) and limit > 0 else None
