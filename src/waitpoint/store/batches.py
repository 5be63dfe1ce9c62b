"""A batch of operations, done in the same way by every store: checked, embedded, read, then written.

A store shows its rows (`Rows`) inside one transaction; what a search or a listing gives is worked out here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import Any, ClassVar, Protocol

from waitpoint import clock, codec
from waitpoint.checkpoint.base import offload
from waitpoint.errors import ConfigError
from waitpoint.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    check_op,
)
from waitpoint.store.embedding import Index, Vector, nearness
from waitpoint.store.matching import fits, listed

Namespace = tuple[str, ...]


@dataclass(slots=True, eq=False)
class Row:
    """An item as it is kept. `seq` is the order in which items were first put; `ttl` is in minutes, times in seconds."""

    seq: int
    namespace: Namespace
    key: str
    data: bytes
    created_at: float
    updated_at: float
    ttl: float | None
    expires_at: float | None
    _value: Any = None

    @property
    def value(self) -> dict[str, Any]:
        """The value, made anew for each row that is read."""
        if self._value is None:
            self._value = codec.loads(self.data)
        return self._value  # type: ignore[no-any-return]

    def is_there(self, at: float) -> bool:
        """Whether it has not expired."""
        return self.expires_at is None or at < self.expires_at


@dataclass(slots=True, eq=False)
class Put:
    """A write: `data` is None for a deletion; `vectors` by the path of their text."""

    namespace: Namespace
    key: str
    data: bytes | None
    ttl: float | None
    vectors: dict[str, Vector] = field(default_factory=dict)


class Rows(Protocol):
    """What a store shows of its rows while it does a batch; nothing that has expired."""

    def find(self, namespace: Namespace, key: str) -> Row | None:
        """Return one row."""

    def below(self, prefix: Namespace, limit: int | None) -> Iterable[Row]:
        """Return the rows of a namespace and of those below it, in the order of `seq`, at most `limit`."""

    def vectors(self, row: Row) -> Sequence[Vector]:
        """Return an item's vectors."""

    def namespaces(self) -> Iterable[Namespace]:
        """Return the namespaces that hold items."""


@dataclass(slots=True, eq=False)
class Batch:
    """Operations at one moment. Of several writes to one item the last counts."""

    at: float
    ops: list[Op]
    puts: dict[tuple[Namespace, str], Put]
    texts: dict[tuple[Namespace, str], dict[str, str]]
    queries: list[str]
    asked: dict[str, Vector] = field(default_factory=dict)

    def embedded(self, made: dict[str, Vector], asked: dict[str, Vector]) -> None:
        """Take in the vectors of the texts that are put, and of the queries."""
        self.asked = asked
        for key, texts in self.texts.items():
            self.puts[key].vectors = {path: made[text] for path, text in texts.items()}

    def read(self, rows: Rows) -> tuple[list[Result], list[Row]]:
        """Return the results of all operations, and the rows whose time to live starts anew by that."""
        results: list[Result] = []
        touched: list[Row] = []
        for op in self.ops:
            if isinstance(op, GetOp):
                row = rows.find(tuple(op.namespace), op.key)
                results.append(None if row is None else _item(row))
                touched += [row] if row is not None and op.refresh_ttl else []
            elif isinstance(op, SearchOp):
                found = self._found(rows, op)
                results.append([_found_item(row, score) for row, score in found])
                touched += [row for row, _ in found] if op.refresh_ttl else []
            else:
                results.append(listed(rows.namespaces(), op) if isinstance(op, ListNamespacesOp) else None)
        return results, [row for row in touched if row.ttl is not None]

    def _found(self, rows: Rows, op: SearchOp) -> list[tuple[Row, float | None]]:
        query = self.asked.get(op.query) if op.query else None
        end = op.offset + op.limit
        is_plain = query is None and not op.filter
        fitting = (row for row in rows.below(tuple(op.namespace_prefix), end if is_plain else None) if fits_(row, op))
        if query is None:
            return [(row, None) for row in islice(fitting, op.offset, end)]
        scored = [(row, nearness(query, rows.vectors(row))) for row in fitting]
        # The order of equals is that of `seq`, since sorting is stable.
        scored.sort(key=lambda found: (found[1] is None, -(found[1] or 0.0)))
        return scored[op.offset : end]


def fits_(row: Row, op: SearchOp) -> bool:
    """Whether a row is what a search asks for; a value is decoded only if it has to be looked at."""
    return not op.filter or fits(row.value, op.filter)


class BatchStore(BaseStore):
    """A store that shows its rows and takes writes; how a batch is done is here. Safe to call from several threads."""

    supports_ttl: ClassVar[bool] = True
    blocking: bool = True

    def _configure(self, index: IndexConfig | None, ttl: TTLConfig | None) -> None:
        self._index = None if index is None else Index(index)
        self.index_config = index
        self.ttl_config = ttl

    @abstractmethod
    def _apply(self, batch: Batch) -> list[Result]:
        """Read, then write, all at once."""

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do several operations at once; results come in their order. All read what was there before the writes."""
        batch = self._opened(ops)
        if self._index is not None and (batch.texts or batch.queries):
            batch.embedded(*self._index.vectors(_all_texts(batch), batch.queries))
        return self._apply(batch)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do what `batch` does, from an event loop."""
        batch = self._opened(ops)
        if self._index is not None and (batch.texts or batch.queries):
            batch.embedded(*await self._index.avectors(_all_texts(batch), batch.queries))
        results: list[Result] = await offload(self, self._apply, batch)
        return results

    def _opened(self, ops: Iterable[Op]) -> Batch:
        """Check all operations and encode what is put, before anything is done."""
        batch = Batch(clock.now(), list(ops), {}, {}, [])
        for op in batch.ops:
            check_op(op)
            if isinstance(op, PutOp):
                self._take(batch, op)
            elif isinstance(op, SearchOp) and op.query and op.query not in batch.queries:
                batch.queries.append(op.query)
        return batch

    def _take(self, batch: Batch, op: PutOp) -> None:
        place = (tuple(op.namespace), op.key)
        batch.texts.pop(place, None)
        if op.value is None:
            batch.puts[place] = Put(*place, None, None)
            return
        value = dict(op.value)
        batch.puts[place] = Put(*place, codec.dumps(value, path=op.key), op.ttl)
        if self._index is not None and op.index is not False:
            if isinstance(op.index, str):
                raise ConfigError(f"`index` of item {op.key!r} is a text; give a list of paths, or False for none")
            texts = self._index.texts(value, op.index)
            if texts:
                batch.texts[place] = texts


def _all_texts(batch: Batch) -> list[str]:
    return list(dict.fromkeys(text for texts in batch.texts.values() for text in texts.values()))


def _item(row: Row) -> Item:
    return Item(
        value=row.value,
        key=row.key,
        namespace=row.namespace,
        created_at=_when(row.created_at),
        updated_at=_when(row.updated_at),
    )


def _found_item(row: Row, score: float | None) -> SearchItem:
    return SearchItem(row.namespace, row.key, row.value, _when(row.created_at), _when(row.updated_at), score)


def _when(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)
