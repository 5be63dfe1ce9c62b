"""Puts a run object together: the transformers of every run and those asked for, the mux, and what drives it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Sequence

from waitpoint.errors import ConfigError
from waitpoint.stream.builtin import LifecycleTransformer, MessagesTransformer, ValuesTransformer
from waitpoint.stream.mux import Factory, Mux
from waitpoint.stream.pump import AsyncPump, Part, Pump
from waitpoint.stream.run import AsyncGraphRunStream, GraphRunStream
from waitpoint.stream.subgraphs import SubgraphTransformer

BUILTIN: tuple[Factory, ...] = (ValuesTransformer, MessagesTransformer, LifecycleTransformer, SubgraphTransformer)
ALWAYS = ("values", "messages", "lifecycle")


def run_of(parts: Callable[[tuple[str, ...]], Generator[Part]], transformers: Sequence[Factory]) -> GraphRunStream:
    """Return a run whose parts, in the modes that it names, come from `parts`."""
    mux = Mux((*BUILTIN, *transformers))
    Pump(mux, parts(_modes(mux)))
    return GraphRunStream(mux)


def async_run_of(
    parts: Callable[[tuple[str, ...]], AsyncGenerator[Part]], transformers: Sequence[Factory]
) -> AsyncGraphRunStream:
    """Return such a run for the event loop that is running."""
    mux = Mux((*BUILTIN, *transformers), is_async=True)
    AsyncPump(mux, parts(_modes(mux)))
    return AsyncGraphRunStream(mux)


def _modes(mux: Mux) -> tuple[str, ...]:
    try:
        from langchain_core.language_models import _compat_bridge, chat_model_stream  # noqa: F401 - are they there?
    except ImportError as error:
        raise ConfigError(
            "Event streams show messages as streams of content blocks, which the installed langchain-core does not have "
            "yet; install a newer one (pip install -U langchain-core), or use stream()"
        ) from error
    return tuple(dict.fromkeys((*ALWAYS, *mux.modes)))
