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


class Listener(OfTask):
    """The part of the handler that is ours. Models stream when they meet it, by its two `tap_output` methods.

    It says of each call what a task's messages say (`metadata`), and what the call adds; never a key of `configurable`
    that is not among those (`hidden`).
    """

    def __init__(self, say: Callable[[Said], None], metadata: Mapping[str, Any], hidden: frozenset[str]) -> None:
        super().__init__()
        self._say, self._metadata, self._hidden = say, metadata, hidden
        self._calls: dict[Any, dict[str, Any]] = {}
        self._forms: dict[Any, str] = {}

    def on_chat_model_start(self, *_: Any, run_id: Any, tags: Any = None, metadata: Any = None, **__: Any) -> None:
        """Begin to listen to a model's call, unless it is to be silent."""
        tags = tags or ()
        if TAG_NOSTREAM not in tags:
            told = {k: v for k, v in (metadata or {}).items() if k not in self._hidden}
            shown = [t for t in tags if not t.startswith("seq:step")]
            self._calls[run_id] = {**self._metadata, **told, **({"tags": shown} if shown else {})}

    def on_llm_new_token(self, *_: Any, chunk: Any = None, run_id: Any, **__: Any) -> None:
        """Pass on a chunk."""
        message = getattr(chunk, "message", None)
        if message is None or not self._speaks_in("token", run_id):
            return
        if message.id is None:
            message = message.model_copy(update={"id": f"lc_run--{run_id}"})
        self._say(Said("token", message, self._calls[run_id], run_id))

    def on_stream_event(self, event: Any, *, run_id: Any, **_: Any) -> None:
        """Pass on an event of the content-block protocol, which models send that are asked for it."""
        if self._speaks_in("event", run_id):
            self._say(Said("event", event, self._calls[run_id], run_id))

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

    def _speaks_in(self, form: str, run_id: Any) -> bool:
        """Whether a call is heard in this form: a model may report the same both ways, and the first one counts."""
        return run_id in self._calls and self._forms.setdefault(run_id, form) == form

    def _ended(self, run_id: Any) -> dict[str, Any] | None:
        self._forms.pop(run_id, None)
        return self._calls.pop(run_id, None)

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
