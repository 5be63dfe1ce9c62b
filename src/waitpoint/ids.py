"""Stable ids: checkpoints sort by time, tasks and questions are named by what they are.

Checkpoint ids are UUID version 7 texts (RFC 9562): 48 bits of milliseconds, then a 74-bit counter seeded at random, so
that ids made by one process grow strictly. Task and question ids are 32 lower-case hex digits of SHA-256.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from waitpoint import clock

ID_FORM = re.compile(r"[0-9a-f]{32}\Z")

_LOW = (1 << 62) - 1

_lock = threading.Lock()
_last = 0
_last_text = ""


def checkpoint_id(after: str | None = None) -> str:
    """Return a new id that sorts after all ids this process made, and after `after`."""
    global _last, _last_text  # noqa: PLW0603 - the counter that makes ids grow
    drawn = int.from_bytes(os.urandom(9))
    with _lock:
        floor = _last if after is None or after == _last_text else max(_last, _number(after))
        # A random step, since another process may count on from `after` in this very millisecond.
        _last = n = max(int(clock.now() * 1000) << 74 | drawn, floor + 1 + (drawn & 0xFFFF_FFFF))
        millis, a, b = n >> 74, (n >> 62) & 0xFFF, n & _LOW
        text = f"{(millis << 80) | (0x7 << 76) | (a << 64) | (0b10 << 62) | b:032x}"
        _last_text = text = f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
    return text


def _number(text: str) -> int:
    """Return the counter inside an id; 0 for ids of another form, which then set no floor."""
    try:
        n = int(text.replace("-", ""), 16)
    except ValueError:
        return 0
    return (n >> 80) << 74 | ((n >> 64) & 0xFFF) << 62 | n & _LOW


def hashed(*parts: str | int) -> str:
    """Return the 32-digit id of these parts; parts are length-prefixed, so no two lists collide."""
    return hashlib.sha256(_prefixed(parts)).hexdigest()[:32]


def question_id(key: Sequence[str], task_id: str, seq: int, digest: str) -> str:
    """Return the id of a question: by thread and graph, task, place in the task's journal, and payload.

    The thread counts because a copy of a thread has tasks of the same ids, and is not to share its questions.
    """
    return hashed("question", *key, task_id, seq, digest)


def family(*parts: str | int) -> Callable[..., str]:
    """Return what makes the ids of these parts and some more: many ids that begin alike are made faster so."""
    begun = hashlib.sha256(_prefixed(parts))

    def member(*more: str | int) -> str:
        hash_ = begun.copy()
        hash_.update(_prefixed(more))
        return hash_.hexdigest()[:32]

    return member


def _prefixed(parts: Sequence[str | int]) -> bytes:
    try:
        joined = "".join([f"{len(part)}:{part}" for part in parts])  # type: ignore[arg-type]
    except TypeError:  # a number has no length
        return _prefixed([str(part) for part in parts])
    if joined.isascii():
        return joined.encode()
    data = [str(part).encode("utf-8", "surrogatepass") for part in parts]
    return b"".join([b"%d:%b" % (len(d), d) for d in data])


def module_name(name: str) -> str:
    """Return a module's name as an import has it, also for the module that was started as a script."""
    return _script_name() if name == "__main__" else name


@functools.cache
def _script_name() -> str:
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return str(spec.name).removesuffix(".__main__")
    file = getattr(main, "__file__", None)
    return Path(file).stem if file else "__main__"


def is_id(text: object) -> bool:
    """Whether this has the form of a question id."""
    return isinstance(text, str) and ID_FORM.match(text) is not None
