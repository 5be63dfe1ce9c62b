"""Calls a `langgraph-checkpoint` saver by its public methods, whether these block or are asynchronous."""

from __future__ import annotations

import hashlib
import logging
import os
import threading
from typing import Any, Final, NamedTuple

from waitpoint import clock
from waitpoint.errors import AsyncOnlyError, UsageError

_log = logging.getLogger(__name__)

CHANNEL: Final = "waitpoint"
_LONGEST_ID: Final = 200
_METHODS: Final = ("get_tuple", "put", "put_writes", "delete_thread")


class Place(NamedTuple):
    """A checkpoint in the saver, to which writes are added: the thread's name there, and which of its segments."""

    thread: str
    segment: int

    @property
    def config(self) -> dict[str, Any]:
        """The config that names it."""
        name = f"00000000-0000-6000-8000-{self.segment:012x}"  # in the form of LangGraph's; they sort as the numbers do
        return {"configurable": {"thread_id": self.thread, "checkpoint_ns": "", "checkpoint_id": name}}


def name_of(thread_id: str) -> str:
    """Return what a thread of Waitpoint is called in the saver: apart from LangGraph's, and plain enough for any store."""
    if thread_id.isascii() and thread_id.isprintable() and len(thread_id) <= _LONGEST_ID and thread_id[:1] != "#":
        return f"waitpoint:{thread_id}"
    return f"waitpoint:#{hashlib.sha256(thread_id.encode('utf-8', 'surrogatepass')).hexdigest()}"


class Peer:
    """A saver of LangGraph. Its methods are called from worker threads too."""

    def __init__(self, saver: Any) -> None:
        for name in _METHODS:
            if not callable(getattr(saver, name, None)) and not callable(getattr(saver, f"a{name}", None)):
                raise UsageError(
                    f"`saver` is a {type(saver).__name__} without {name!r}; give a saver of langgraph-checkpoint, opened (what "
                    f"from_conn_string returns is opened by `with`)"
                )
        self.saver = saver
        self.keeps_first = True
        self._is_tried = False
        self._is_async = not callable(getattr(saver, "get_tuple", None))
        self._loop = _running_loop()
        self._own: threading.Thread | None = None
        self._lock = threading.Lock()

    def writes(self, place: Place) -> dict[str, Any]:
        """Return what is written at a place, by the id it is written under."""
        found = self._call("get_tuple", place.config)
        if found is None:
            return {}
        added = {task_id: value for task_id, channel, value in found.pending_writes or () if channel == CHANNEL}
        return (found.checkpoint["channel_values"].get(CHANNEL) or {}) | added

    def open(self, place: Place) -> None:
        """Put an empty checkpoint, to which writes can be added; the same again changes nothing."""
        if self.keeps_first:
            self._put(place, {})

    def write(self, place: Place, name: str, value: bytes) -> None:
        """Write a value under an id, if nothing is written there yet."""
        if self.keeps_first:
            self._call("put_writes", place.config, [(CHANNEL, value)], name)
        elif name not in (there := self.writes(place)):
            self._put(place, {CHANNEL: there | {name: value}})

    def try_out(self) -> None:
        """Find out, once, whether the saver keeps the first of two writes under an id; else writes go into checkpoints."""
        if self._is_tried:
            return
        place, name = Place(f"waitpoint-trial-{os.urandom(12).hex()}", 0), "0"
        self.open(place)
        for value in (b"first", b"second"):
            self.write(place, name, value)
        kept = self.writes(place).get(name)
        self.delete(place.thread)
        if kept is None or bytes(kept) != b"first":
            _log.warning(
                "%s does not keep the first of two writes under one id, so only one process at a time may run and answer the "
                "threads that it keeps; a saver of waitpoint.checkpoint has no such limit",
                type(self.saver).__name__,
            )
            self.keeps_first = False
        self._is_tried = True

    def _put(self, place: Place, values: dict[str, Any]) -> None:
        config = {"configurable": {"thread_id": place.thread, "checkpoint_ns": ""}}
        # A version is stored once, so what changes needs one of its own.
        versions = {channel: f"{place.segment:032}.{os.urandom(8).hex()}" for channel in values}
        checkpoint = {
            "v": 4,
            "id": place.config["configurable"]["checkpoint_id"],
            "ts": clock.iso(clock.now()),
            "channel_values": values,
            "channel_versions": versions,
            "versions_seen": {},
            "updated_channels": None,
        }
        self._call("put", config, checkpoint, {"source": "update", "step": place.segment, "parents": {}}, versions)

    def delete(self, thread: str) -> None:
        """Remove all of a thread."""
        self._call("delete_thread", thread)

    def close(self) -> None:
        """End the event loop that was started for the saver, if one was."""
        with self._lock:
            own, self._own = self._own, None
        if own is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            own.join()
            self._loop.close()
            self._loop = None

    def _call(self, name: str, *args: Any) -> Any:
        if not self._is_async:
            try:
                return getattr(self.saver, name)(*args)
            except NotImplementedError:  # as the base class of savers does
                self._is_async = True
        return self._awaited(name, *args)

    def _awaited(self, name: str, *args: Any) -> Any:
        import asyncio

        with self._lock:
            if self._loop is None or (self._own is None and not self._loop.is_running()):
                self._loop = asyncio.new_event_loop()
                self._own = threading.Thread(
                    target=self._loop.run_forever, name="waitpoint-langgraph-saver", daemon=True
                )
                self._own.start()
        if _running_loop() is self._loop:
            raise AsyncOnlyError(
                f"{type(self.saver).__name__} has only asynchronous methods, and a blocking call came from its own event loop, "
                f"which would wait for itself; call the graph by its asynchronous methods (ainvoke, aget_state, ...), and the "
                f"saver by asyncio.to_thread"
            )
        return asyncio.run_coroutine_threadsafe(getattr(self.saver, f"a{name}")(*args), self._loop).result()


def _running_loop() -> Any:
    import asyncio

    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
