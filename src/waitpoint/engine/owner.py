"""Who runs a thread: this process, named so that others on the same host can tell whether it still lives."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Container
from pathlib import Path

from waitpoint import clock
from waitpoint.checkpoint.base import (
    AnswersArrived,
    BaseCheckpointSaver,
    Commit,
    EventRow,
    FenceLost,
    Rest,
    ThreadKey,
    ThreadRow,
    Writes,
)

LEASE_SECONDS = 30.0
BEAT_SECONDS = 5.0

_UNKNOWN = "unknown-boot"

_lock = threading.Lock()
_claims: dict[str, BaseCheckpointSaver] = {}  # the claims of this process, by their text
_unreturned: dict[str, tuple[BaseCheckpointSaver, ThreadKey]] = {}  # claims whose thread could not be given back yet
_numbers = itertools.count(1)  # of the claims of this process
_me = ""
_beating = False


def me() -> str:
    """Return the name of this process: boot id, pid namespace, pid and start time."""
    global _me  # noqa: PLW0603 - computed once a process
    if not _me:
        _me = f"{_boot()}/{_namespace()}/{os.getpid()}/{_started(os.getpid()) or os.urandom(4).hex()}"
    return _me


def claim(saver: BaseCheckpointSaver) -> str:
    """Return a new text for the owner of a claim, and keep its lease alive until `release`."""
    text = f"{me()}/{next(_numbers)}"
    with _lock:
        _claims[text] = saver
    if saver.blocking:
        _ensure_beating()
    return text


def release(text: str) -> None:
    """Say that no code here works under this claim any more."""
    with _lock:
        _claims.pop(text, None)


def give_back(saver: BaseCheckpointSaver, key: ThreadKey, text: str) -> None:
    """Let a thread rest, ready to go on, if this claim is still on it."""
    while (row := saver.thread(key)) is not None and row.status == "running" and row.owner == text:
        at = clock.now()
        writes = Writes(events=[EventRow("interrupted", at)])
        try:
            saver.commit(Commit(key, row.fence, writes, at, rest=Rest("ready", row.answer_seq), durable=True))
        except AnswersArrived:
            continue
        except FenceLost:
            return


def give_back_later(saver: BaseCheckpointSaver, key: ThreadKey, text: str) -> None:
    """Give a thread back as soon as its store works again: other processes wait for this one while it lives."""
    with _lock:
        _unreturned[text] = (saver, key)
    if saver.blocking:
        _ensure_beating()


def give_back_unreturned() -> None:
    """Try again to give back what could not be given back; each beat does."""
    with _lock:
        unreturned = dict(_unreturned)
    for text, (saver, key) in unreturned.items():
        try:
            give_back(saver, key, text)
        except Exception:  # noqa: BLE001, S112 - the store still fails; the next beat tries again
            continue
        with _lock:
            _unreturned.pop(text, None)


def is_dead(row: ThreadRow) -> bool:
    """Whether the run that the row speaks of has ended without saying so.

    On this host the process tells; a claim of this very process is dead if no code here works under it any more. On
    another host, or where the process cannot be looked up, the lease must have run out.
    """
    return row.owner is None or is_gone(row.owner, row.lease_until, _claims)


def is_gone(owner: str, lease_until: float | None, living: Container[str]) -> bool:
    """Whether nobody works under an owner's name any more; `living` are the names in use in this process."""
    boot, namespace, pid, started = [*owner.split("/"), "", "", "", ""][:4]
    if f"{boot}/{namespace}/{pid}/{started}" == me():
        return owner not in living
    if boot == _boot() != _UNKNOWN and namespace == _namespace() and pid.isdigit():
        return _started(int(pid)) != started
    return lease_until is None or lease_until < clock.now()


def _ensure_beating() -> None:
    global _beating  # noqa: PLW0603 - one heartbeat thread a process
    with _lock:
        if _beating:
            return
        _beating = True
    threading.Thread(target=_beat, name="waitpoint-heartbeat", daemon=True).start()


def _beat() -> None:
    pause = threading.Event()
    while not pause.wait(BEAT_SECONDS):
        with _lock:
            claims = {text: saver for text, saver in _claims.items() if saver.blocking}
        for text, saver in claims.items():
            try:
                saver.beat(text, clock.now() + LEASE_SECONDS)
            except Exception:  # noqa: BLE001, S112 - the next beat tries again; a lost lease shows at the next commit
                continue
        give_back_unreturned()


def _after_fork() -> None:
    global _me, _beating, _lock
    _me, _beating, _lock = "", False, threading.Lock()
    _claims.clear()
    _unreturned.clear()


os.register_at_fork(after_in_child=_after_fork)


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def _boot() -> str:
    return _read("/proc/sys/kernel/random/boot_id") or _UNKNOWN


def _namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return "unknown-namespace"


def _started(pid: int) -> str:
    """Return a process's start in clock ticks after boot (field 22 of /proc/PID/stat, proc(5)); "" if there is none."""
    stat = _read(f"/proc/{pid}/stat")
    fields = stat.rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 and fields[0] not in "ZX" else ""
