"""Checkpoints in memory and their rows: values by reference to items, each item stored once.

A whole value is one item, or stands in the checkpoint itself if it is small. A list under `operator.add` or
`add_messages` is stored item by item, and the checkpoint holds ranges of item numbers. What a task wrote refers to the
same items. Deltas come from what was written and from the identity of list elements, never from comparing values.
"""

from __future__ import annotations

import operator
import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from waitpoint import codec
from waitpoint.checkpoint.base import BaseCheckpointSaver, CheckpointRow, ItemRow, Loaded, ThreadChanged, ThreadKey
from waitpoint.codec import Registry
from waitpoint.core.plan import Control, Due, due_tasks
from waitpoint.core.spec import GraphSpec
from waitpoint.engine import places
from waitpoint.records import Send

INLINE_BYTES = 64
SENT_BYTES = 256  # what is sent to a task is referred to twice, and as an item would part those of a list that grows
MAX_RANGES = 64
FEW_RANGES = 48  # that are left when there were too many
FRESH_TAIL = 16
CACHED_HEADS = 256

Ref = int | list[int] | bytes  # an item, flat ranges [start, end, ...] of items, or the encoded value itself


class Origin(NamedTuple):
    """Where a checkpoint comes from: the call that its graph runs in, and what of the thread is not its past.

    `parents` are the checkpoints of the graphs around it, by namespace, the outermost first. `at` names the call by the
    tasks in which it was made, where the namespace does not: a graph with a memory of its own keeps one namespace over
    all calls. `gaps` are pairs of ids: what was made between the two belongs to another branch.
    """

    parents: dict[str, str] = {}  # noqa: RUF012 - never changed
    at: str = ""
    gaps: tuple[str, ...] = ()

    def branched(self, base: str, until: str) -> Origin:
        """Return the origin of what goes on from `base` now, past all that was made since."""
        gaps = self.gaps
        if gaps and gaps[-1] == base:  # nothing lies between the end of that gap and here
            return self._replace(gaps=(*gaps[:-1], until))
        return self._replace(gaps=(*gaps, base, until))

    def before(self, checkpoint_id: str) -> str | None:
        """Return the id up to which the past goes on, if this one belongs to another branch."""
        for start, end in zip(self.gaps[::2], self.gaps[1::2], strict=True):
            if start < checkpoint_id < end:
                return start
        return None


ROOT = Origin()


class Unknown(NamedTuple):
    """Where a value holds something of a type that this process does not know."""

    tag: str
    path: str


@dataclass(slots=True, eq=False, repr=False)
class Head:
    """A decoded checkpoint: what it holds, where that is stored, and what is due."""

    id: str
    ns: str
    parent_id: str | None
    step: int
    source: str
    created_at: float
    values: dict[str, Any]
    refs: dict[str, Ref]
    control: Control
    metadata: dict[str, Any] = field(default_factory=dict)
    input_digest: str = ""
    unknown: dict[str, Unknown] = field(default_factory=dict)  # keys whose values hold a type not known here
    passed: tuple[str, ...] = ()  # nodes whose breakpoint the thread had already stopped at before an update
    moved_at: int = 0  # the fence of the update that made it; while it is the thread's, no run has been here
    origin: Origin = ROOT
    parent_ns: str | None = None  # where the parent is, if not in the same namespace
    # Of this very checkpoint: no copy takes them along.
    tasks: list[Due] | None = field(default=None, init=False)
    row: CheckpointRow | None = field(default=None, init=False)  # itself, encoded
    left: Loaded | None = field(
        default=None, init=False
    )  # what a rest of this process left: see waitpoint.engine.recall

    @property
    def due(self) -> list[Due]:
        """The tasks that the checkpoint asks for; their ids are computed once."""
        if self.tasks is None:
            self.tasks = due_tasks(self.id, self.ns, self.control)
        return self.tasks


@dataclass(slots=True, eq=False, repr=False)
class Numbers:
    """Gives out item numbers of a thread; shared by all graphs that run in it."""

    next: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, count: int) -> int:
        """Reserve `count` numbers in a row and return the first."""
        with self.lock:
            first = self.next
            self.next += count
        return first


class ItemWriter:
    """Encodes the values of a superstep into items, each object once."""

    def __init__(self, numbers: Numbers, registry: Registry) -> None:
        self.numbers = numbers
        self.registry = registry
        self.items: list[ItemRow] = []
        self._known: dict[int, tuple[Any, int]] = {}  # id(object) -> the object (kept alive) and its item

    def taken(self) -> list[ItemRow]:
        """Return the items written since the last call."""
        items, self.items = self.items, []
        return items

    def mark(self) -> tuple[int, int]:
        """Return where the writer stands, for `rewind`."""
        return len(self.items), self.numbers.next

    def rewind(self, mark: tuple[int, int]) -> None:
        """Take back what was written since; the numbers stay used."""
        count, first = mark
        del self.items[count:]
        self._known = {key: known for key, known in self._known.items() if known[1] < first}

    def forget(self) -> None:
        """End a superstep: objects may change from now on, so they are no longer known."""
        self._known.clear()

    def whole(self, value: Any, path: str, *, fresh: bool = False, inline: int = INLINE_BYTES) -> Ref:
        """Store one value; `fresh` encodes it even if this object was stored in this step (it may have changed).

        Up to `inline` bytes are no item: the reference is the encoded value itself.
        """
        known = None if fresh else self._known.get(id(value))
        if known is not None:
            return known[1]
        data = codec.dumps(value, self.registry, path=path)
        if len(data) <= inline:
            return data
        seq = self.numbers.take(1)
        self.items.append(ItemRow(seq, data))
        self._known[id(value)] = (value, seq)
        return seq

    def elements(self, values: Sequence[Any], path: str) -> list[int]:
        """Store list elements that are not stored yet; return the item number of each."""
        new = [v for v in values if id(v) not in self._known]
        first = 0
        if new:
            first = self.numbers.take(len(new))
            offset = len(values) - len(new)
            for i, value in enumerate(new):
                self.items.append(ItemRow(first + i, codec.dumps(value, self.registry, path=f"{path}[{offset + i}]")))
            if len(new) == len(values) and len({id(v) for v in new}) == len(new):
                for i, value in enumerate(new):
                    self._known[id(value)] = (value, first + i)
                return list(range(first, first + len(new)))
        return self._numbered(values, new, first)

    def _numbered(self, values: Sequence[Any], new: Sequence[Any], first: int) -> list[int]:
        """Return numbers for elements of which some were known or occur twice (small values are one object)."""
        fresh = iter(range(first, first + len(new)))
        before = {key: seq for key, (_, seq) in self._known.items()}
        numbers = [before[id(v)] if id(v) in before else next(fresh) for v in values]
        for value, number in zip(values, numbers, strict=True):
            self._known.setdefault(id(value), (value, number))
        return numbers

    def sent(self, send: Send) -> list[Any]:
        """Store what goes to a task."""
        return [send.node, self.whole(send.arg, f"Send({send.node})", inline=SENT_BYTES), send.timeout]

    def written(self, value: Any, path: str, *, itemised: bool) -> Ref:
        """Store what a task wrote; a list for an itemised key by its elements."""
        if itemised and isinstance(value, list):
            return ranges(self.elements(value, path))
        return self.whole(value, path)


class InlineWriter(ItemWriter):
    """Encodes values into the row that refers to them: for rows stored beside a run that gives out the item numbers."""

    def __init__(self, registry: Registry) -> None:
        super().__init__(Numbers(), registry)

    def whole(self, value: Any, path: str, *, fresh: bool = False, inline: int = 0) -> Ref:  # noqa: ARG002 - all are inline
        """Encode one value."""
        return codec.dumps(value, self.registry, path=path)

    def written(self, value: Any, path: str, *, itemised: bool) -> Ref:  # noqa: ARG002 - a list stays in one piece
        """Encode what was written."""
        return self.whole(value, path)


def ranges(numbers: Iterable[int]) -> list[int]:
    """Join item numbers into flat half-open ranges, in list order."""
    out: list[int] = []
    for n in numbers:
        if out and out[-1] == n:
            out[-1] = n + 1
        else:
            out += [n, n + 1]
    return out


def spread(flat: Sequence[int]) -> list[int]:
    """Return the item numbers of flat ranges."""
    return [n for i in range(0, len(flat), 2) for n in range(flat[i], flat[i + 1])]


def store_values(
    spec: GraphSpec, before: Head | None, values: Mapping[str, Any], written: Iterable[str], writer: ItemWriter
) -> dict[str, Ref]:
    """Store the keys that were written and return the references of all."""
    refs = dict(before.refs) if before is not None else {}
    for key in written:
        value = values[key]
        kind = spec.channels[key].kind
        if kind in ("append", "messages") and isinstance(value, list):
            old = before.values.get(key) if before is not None else None
            refs[key] = _itemised(key, value, old, refs.get(key), writer)
        else:
            refs[key] = writer.whole(value, f"state.{key}", fresh=kind == "fold")
    return refs


def _itemised(key: str, new: list[Any], old: Any, old_ref: Ref | None, writer: ItemWriter) -> list[int]:
    """Ranges for a list, reusing the items of elements that are the very objects of the old list."""
    if not isinstance(old, list) or not isinstance(old_ref, list):
        return ranges(writer.elements(new, f"state.{key}"))
    if places.grew(old, new) or (len(new) >= len(old) and all(map(operator.is_, old, new))):
        tail = ranges(writer.elements(new[len(old) :], f"state.{key}"))
        adjoins = old_ref and tail and old_ref[-1] == tail[0]
        joined = old_ref[:-1] + tail[1:] if adjoins else old_ref + tail
    else:
        stored = {id(v): n for v, n in zip(old, spread(old_ref), strict=True)}
        fresh = writer.elements([v for v in new if id(v) not in stored], f"state.{key}")
        numbers = iter(fresh)
        joined = ranges(stored[id(v)] if id(v) in stored else next(numbers) for v in new)
    return joined if len(joined) <= 2 * MAX_RANGES else _with_fewer_ranges(joined, new, f"state.{key}", writer)


def _with_fewer_ranges(flat: list[int], values: Sequence[Any], path: str, writer: ItemWriter) -> list[int]:
    """Store the elements of the last ranges anew, as one: many small ranges cost more in each checkpoint that follows.

    Which ones is decided by how many elements it takes to be rid of a range. So long ranges stay, and what was stored
    anew is not stored again before many more came after it.
    """
    starts = [0]  # how many elements lie before each range
    for at in range(0, len(flat), 2):
        starts.append(starts[-1] + flat[at + 1] - flat[at])
    count = len(starts) - 1
    first = min(range(FEW_RANGES), key=lambda at: (starts[-1] - starts[at]) / (count - at - 1))
    again = values[starts[first] :]
    number = writer.numbers.take(len(again))
    for i, value in enumerate(again):
        data = codec.dumps(value, writer.registry, path=f"{path}[{starts[first] + i}]")
        writer.items.append(ItemRow(number + i, data))
    return ranges([*spread(flat[: 2 * first]), *range(number, number + len(again))])


# --- rows -------------------------------------------------------------------------------------------------------------


def to_row(head: Head, writer: ItemWriter) -> CheckpointRow:
    """Encode a checkpoint; its values must be stored already (their `refs` are)."""
    control = head.control
    body: dict[str, Any] = {"v": head.refs}
    if control.due:
        body["d"] = control.due
    if control.sends:
        body["s"] = [writer.sent(send) for send in control.sends]
    if control.deferred:
        body["f"] = control.deferred
    if control.joins:
        body["j"] = {k: list(v) for k, v in control.joins.items()}
    if control.writers:
        body["w"] = control.writers
    if head.metadata:
        body["m"] = head.metadata
    if head.input_digest:
        body["i"] = head.input_digest
    if head.passed:
        body["p"] = head.passed
    if head.moved_at:
        body["u"] = head.moved_at
    if head.origin is not ROOT and head.origin != ROOT:
        body["o"] = [[list(at) for at in head.origin.parents.items()], head.origin.at, head.origin.gaps]
    if head.parent_ns is not None:
        body["n"] = head.parent_ns
    data = codec.dumps_plain(body)
    head.row = CheckpointRow(head.ns, head.id, head.parent_id, head.step, head.source, head.created_at, data)
    return head.row


class ItemReader:
    """Fetches and decodes items of one thread."""

    def __init__(self, saver: BaseCheckpointSaver, key: ThreadKey, registry: Registry) -> None:
        self.saver = saver
        self.key = key
        self.registry = registry
        self._ranges: set[tuple[int, int]] = set()  # those that were fetched
        self._data: dict[int, bytes] = {}

    def fetch(self, refs: Iterable[Ref]) -> None:
        """Read the items behind these references in one call of the store, where they were not read before."""
        wanted: set[tuple[int, int]] = set()
        for ref in refs:
            if isinstance(ref, int):
                wanted.add((ref, ref + 1))
            elif isinstance(ref, list):
                wanted.update(zip(ref[::2], ref[1::2], strict=True))
        if not wanted <= self._ranges:
            self._data.update(self.saver.items(self.key, _joined(wanted)))
            self._ranges |= wanted

    def values(self, refs: Mapping[str, Ref]) -> dict[str, Any]:
        """Decode the values behind references."""
        self.fetch(refs.values())
        return {key: self.value(ref) for key, ref in refs.items()}

    def value(self, ref: Ref) -> Any:
        """Decode the value behind one reference."""
        if isinstance(ref, bytes):
            return codec.loads(ref, self.registry)
        try:
            return self._found(ref)
        except KeyError:  # not fetched yet
            self.fetch((ref,))
        try:
            return self._found(ref)
        except KeyError:
            raise ThreadChanged(
                f"A value that was read of thread {self.key.thread_id!r} is gone: its history was pruned meanwhile; read again"
            ) from None

    def _found(self, ref: int | list[int]) -> Any:
        if isinstance(ref, int):
            return codec.loads(self._data[ref], self.registry)
        if len(ref) == 2 and ref[1] == ref[0] + 1:
            return [codec.loads(self._data[ref[0]], self.registry)]
        return [codec.loads(data, self.registry) for data in [self._data[n] for n in spread(ref)]]


def _joined(found: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join ranges that adjoin or overlap: a store looks each one up by itself."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def from_row(row: CheckpointRow, reader: ItemReader) -> Head:
    """Decode a checkpoint with all its values."""
    body = codec.loads(row.body)
    sends = tuple(Send(node, reader.value(ref), timeout=timeout) for node, ref, timeout in body.get("s", ()))
    control = Control(
        tuple(body.get("d", ())),
        sends,
        tuple(body.get("f", ())),
        {k: tuple(v) for k, v in body.get("j", {}).items()},
        tuple(body.get("w", ())),
    )
    before = codec.made[0]
    values = reader.values(body["v"])
    head = Head(
        row.id, row.ns, row.parent_id, row.step, row.source, row.created_at, values, body["v"], control,
        body.get("m", {}), body.get("i", ""), passed=tuple(body.get("p", ())), moved_at=body.get("u", 0),
        origin=_origin(body["o"]) if "o" in body else ROOT, parent_ns=body.get("n"),
    )  # fmt: skip
    head.row = row
    if codec.made[0] != before:
        head.unknown = _unknown(values)
    return head


def origin_of(row: CheckpointRow) -> Origin:
    """Return where a stored checkpoint comes from, without decoding its values."""
    body = codec.loads(row.body)
    return _origin(body["o"]) if "o" in body else ROOT


def _origin(stored: list[Any]) -> Origin:
    parents, at, gaps = stored
    return Origin(dict(parents), at, tuple(gaps))


def _unknown(values: Mapping[str, Any]) -> dict[str, Unknown]:
    """Find the keys that hold something of a type that this process does not know."""
    found: dict[str, Unknown] = {}
    for key, value in values.items():
        for path, unknown in codec.find_unknown(value, key):
            found.setdefault(key, Unknown(unknown.tag, path))
    return found


# --- cache ------------------------------------------------------------------------------------------------------------

_caches: weakref.WeakKeyDictionary[BaseCheckpointSaver, OrderedDict[tuple[ThreadKey, str], Head]] = (
    weakref.WeakKeyDictionary()
)
_cache_lock = threading.Lock()


def cache(saver: BaseCheckpointSaver, key: ThreadKey, head: Head) -> None:
    """Keep a decoded checkpoint, the newest of each namespace. One never changes while its thread is there."""
    at = (key, head.ns)
    with _cache_lock:
        heads = _caches.get(saver)
        if heads is None:
            heads = _caches[saver] = OrderedDict()
        before = heads.pop(at, None)
        heads[at] = head if before is None or before.id <= head.id else before
        if len(heads) > CACHED_HEADS:
            heads.popitem(last=False)


def newest(saver: BaseCheckpointSaver, key: ThreadKey, ns: str = "") -> Head | None:
    """Return the newest checkpoint that is kept of a thread."""
    with _cache_lock:
        heads = _caches.get(saver)
        return None if heads is None else heads.get((key, ns))


def read(saver: BaseCheckpointSaver, key: ThreadKey, row: CheckpointRow, registry: Registry) -> Head:
    """Decode a checkpoint's row, from the cache where it is there.

    What a node may have changed in place without returning it must not survive an attempt that did not finish: whole
    values and the newest elements of lists are decoded anew, older list elements are shared.
    """
    reader = ItemReader(saver, key, registry)
    known = newest(saver, key, row.ns)
    if known is None or known.id != row.id or known.row is None or known.row.body != row.body:
        head = from_row(row, reader)
        cache(saver, key, head)
        return head
    again: dict[str, Ref] = {}
    for name, ref in known.refs.items():
        again[name] = _tail(ref) if isinstance(ref, list) else ref
    values = reader.values(again)
    for name, ref in known.refs.items():
        if isinstance(ref, list):
            old = known.values[name]
            values[name] = old[: len(old) - len(values[name])] + values[name]
            places.repeat(old, values[name])
    head = Head(
        known.id, known.ns, row.parent_id, known.step, known.source, known.created_at, values, known.refs,
        known.control, known.metadata, known.input_digest, known.unknown, known.passed,
        known.moved_at, known.origin, known.parent_ns,
    )  # fmt: skip
    head.tasks, head.row = known.due, row
    cache(saver, key, head)
    return head


def _tail(flat: list[int]) -> list[int]:
    """Return the ranges of the last elements of a list."""
    left = FRESH_TAIL
    out: list[int] = []
    for i in range(len(flat) - 2, -1, -2):
        start, end = flat[i], flat[i + 1]
        start = max(start, end - left)
        out = [start, end, *out]
        left -= end - start
        if left <= 0:
            break
    return out
