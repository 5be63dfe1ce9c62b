"""Hears what models say: a callback handler of LangChain's that a task's config carries while somebody listens."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from waitpoint.records import TAG_NOSTREAM
from waitpoint.stream.said import Said


class OfTask:
    """A handler of ours: it belongs to one task, and not to the graphs that the task calls."""

    run_inline = True  # in order, and on the event loop where there is one


class _Call:
    """A call of a model that is heard: what is told of it, and the form that it reports in."""

    __slots__ = ("form", "metadata", "run_id")

    def __init__(self, run_id: Any, metadata: dict[str, Any]) -> None:
        self.run_id = run_id
        self.metadata = metadata
        self.form: str | None = None


class Listener(OfTask):
    """The part of the handler that is ours. Models stream when they meet it, by its two `tap_output` methods.

    It says of each call what a task's messages say (`metadata`), and what the call adds; never a key of `configurable`
    that is not among those (`hidden`).
    """

    def __init__(self, say: Callable[[Said], None], metadata: Mapping[str, Any], hidden: frozenset[str]) -> None:
        super().__init__()
        self._say, self._metadata, self._hidden = say, metadata, hidden
        self._calls: dict[Any, _Call] = {}
        self._last: _Call | None = None

    def on_chat_model_start(self, *_: Any, run_id: Any, tags: Any = None, metadata: Any = None, **__: Any) -> None:
        """Begin to listen to a model's call, unless it is to be silent."""
        tags = tags or ()
        if TAG_NOSTREAM not in tags:
            told = {k: v for k, v in (metadata or {}).items() if k not in self._hidden}
            shown = [t for t in tags if not t.startswith("seq:step")]
            metadata = {**self._metadata, **told, **({"tags": shown} if shown else {})}
            self._calls[run_id] = _Call(run_id, metadata)

    def on_llm_new_token(self, *_: Any, chunk: Any = None, run_id: Any, **__: Any) -> None:
        """Pass on a chunk."""
        message = getattr(chunk, "message", None)
        call = None if message is None else self._speaking_in("token", run_id)
        if message is None or call is None:
            return
        if message.id is None:
            message = message.model_copy(update={"id": f"lc_run--{run_id}"})
        self._say(Said("token", message, call.metadata, run_id))

    def on_stream_event(self, event: Any, *, run_id: Any, **_: Any) -> None:
        """Pass on an event of the content-block protocol, which models send that are asked for it."""
        call = self._speaking_in("event", run_id)
        if call is not None:
            self._say(Said("event", event, call.metadata, run_id))

    def on_llm_end(self, response: Any, *, run_id: Any, **_: Any) -> None:
        """Pass on the message."""
        metadata = self._ended(run_id)
        first = next((g for made in response.generations for g in made), None)
        message = getattr(first, "message", None)
        if metadata is not None and message is not None:
            self._say(Said("end", message, metadata, run_id))

    def on_llm_error(self, error: BaseException, *, run_id: Any, **_: Any) -> None:
        """Tell that the call failed, or that the node wanted no more of the message."""
        metadata = self._ended(run_id)
        if metadata is not None and isinstance(error, GeneratorExit):
            self._say(Said("end", None, metadata, run_id))
        elif metadata is not None:
            self._say(Said("error", error, metadata, run_id))

    def _speaking_in(self, form: str, run_id: Any) -> _Call | None:
        """Return a call if it is heard in this form: a model may report the same both ways, and the first one counts."""
        call = self._last  # most of what is heard comes from the call that was heard last
        if call is None or call.run_id is not run_id:
            self._last = call = self._calls.get(run_id)
        if call is None:
            return None
        if call.form is None:
            call.form = form
        return call if call.form == form else None

    def _ended(self, run_id: Any) -> dict[str, Any] | None:
        self._last = None
        call = self._calls.pop(run_id, None)
        return None if call is None else call.metadata

    def tap_output_iter(self, run_id: Any, output: Any) -> Any:
        """Leave a runnable's output as it is; langchain-core streams for handlers that have this method."""
        del run_id
        return output

    def tap_output_aiter(self, run_id: Any, output: Any) -> Any:
        """Do the same for asynchronous output."""
        del run_id
        return output


@functools.cache
def handler_class(ours: type[OfTask]) -> type[Any]:
    """Return a handler as LangChain wants it, of the part that is ours."""
    from langchain_core.callbacks import BaseCallbackHandler

    return type(ours.__name__, (ours, BaseCallbackHandler), {})


def listener(say: Callable[[Said], None], metadata: Mapping[str, Any], hidden: frozenset[str]) -> Any:
    """Return a callback handler that says what models say."""
    return handler_class(Listener)(say, metadata, hidden)


class Witness(OfTask):
    """Hears of anything that happens in a task, and says no more than that."""

    def __init__(self, stir: Callable[[], None]) -> None:
        super().__init__()
        self._stir = stir

    def _heard(self, *_: Any, **__: Any) -> None:
        self._stir()

    on_chain_start = on_chain_end = on_chain_error = _heard
    on_chat_model_start = on_llm_start = on_llm_new_token = on_llm_end = on_llm_error = on_stream_event = _heard
    on_tool_start = on_tool_end = on_tool_error = _heard
    on_retriever_start = on_retriever_end = on_retriever_error = _heard
    on_text = on_retry = on_custom_event = on_agent_action = on_agent_finish = _heard


def witness(stir: Callable[[], None]) -> Any:
    """Return a callback handler that tells `stir` of each event."""
    return handler_class(Witness)(stir)


def heard_by(callbacks: Any, handler: Any) -> Any:
    """Return callbacks that have this handler too; those given are not changed."""
    if callbacks is None or isinstance(callbacks, list | tuple):
        return [*(callbacks or ()), handler]
    manager = callbacks.copy()
    manager.add_handler(handler, inherit=True)
    return manager


def unheard(callbacks: Any) -> Any:
    """Return callbacks without our handlers, which belong to one task and not to the graphs that it calls."""
    if isinstance(callbacks, list | tuple):
        return [h for h in callbacks if not isinstance(h, OfTask)]
    ours = [h for h in getattr(callbacks, "handlers", ()) if isinstance(h, OfTask)]
    if not ours:
        return callbacks
    manager = callbacks.copy()
    for handler in ours:
        manager.remove_handler(handler)
    return manager
