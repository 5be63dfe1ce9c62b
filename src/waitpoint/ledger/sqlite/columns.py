"""How the ledger's rows lie in their tables: documents as JSON text, truth values as numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from waitpoint.checkpoint.base import ThreadKey
from waitpoint.ledger.base import AssistantRow, KeyRow, LogEntry, RunRow, ThreadRecord

ASSISTANT = "id, graph, name, description, config, context, metadata, version, created_at, updated_at"
THREAD = "id, metadata, created_at, updated_at, graph, halted, ttl, ttl_strategy"
RUN = (
    "id, thread_id, graph, assistant_id, status, request, metadata, strategy, created_at, updated_at, due_at, is_settled, "
    'attempt, owner, lease_until, cancel, outcome, "by", token, hook_at'
)
LOG = "thread_id, run_id, kind, ns, at, data, seq"
KEY = "id, name, hash, scopes, created_at, revoked_at"


def text(document: Mapping[str, Any]) -> str:
    """Return a document as it is stored."""
    return json.dumps(document, separators=(",", ":"), allow_nan=False)


def assistant(found: Sequence[Any]) -> AssistantRow:
    """Return an assistant from its columns."""
    id_, graph, name, description, config, context, metadata, version, created_at, updated_at = found
    documents = json.loads(config), json.loads(context), json.loads(metadata)
    return AssistantRow(id_, graph, name, description, *documents, version, created_at, updated_at)


def assistant_values(row: AssistantRow) -> tuple[Any, ...]:
    """Return the columns of an assistant."""
    documents = text(row.config), text(row.context), text(row.metadata)
    return (row.id, row.graph, row.name, row.description, *documents, row.version, row.created_at, row.updated_at)


def thread(found: Sequence[Any]) -> ThreadRecord:
    """Return a thread's record from its columns."""
    id_, metadata, created_at, updated_at, graph, halted, ttl, strategy = found
    key = None if graph is None else ThreadKey(id_, graph)
    return ThreadRecord(id_, json.loads(metadata), created_at, updated_at, key, halted, ttl, strategy)


def thread_values(record: ThreadRecord) -> tuple[Any, ...]:
    """Return the columns of a thread's record."""
    graph = None if record.key is None else record.key.graph
    times = record.created_at, record.updated_at
    return (record.id, text(record.metadata), *times, graph, record.halted, record.ttl, record.ttl_strategy)


def run(found: Sequence[Any]) -> RunRow:
    """Return a run from its columns."""
    values = list(found)
    for column in (5, 6, 16):
        values[column] = json.loads(values[column])
    values[11] = bool(values[11])
    return RunRow(*values)


def run_values(row: RunRow) -> tuple[Any, ...]:
    """Return the columns of a run."""
    values = list(row._fields())
    for column in (5, 6, 16):
        values[column] = text(values[column])
    return tuple(values)


def entry(found: Sequence[Any]) -> LogEntry:
    """Return an entry of the log from its columns."""
    return LogEntry(*found)


def key(found: Sequence[Any]) -> KeyRow:
    """Return a key from its columns."""
    id_, name, hash_, scopes, created_at, revoked_at = found
    return KeyRow(id_, name, hash_, tuple(scopes.split()), created_at, revoked_at)


def marks(count: int) -> str:
    """Return this many question marks for values of a statement."""
    return ", ".join("?" * count)


def is_contained(part: Any, whole: Any) -> bool:
    """Whether a document holds another: each key with a value that holds the other's; all else is equal."""
    if isinstance(part, Mapping):
        return isinstance(whole, Mapping) and all(k in whole and is_contained(v, whole[k]) for k, v in part.items())
    if isinstance(part, list):
        return isinstance(whole, list) and all(any(is_contained(p, w) for w in whole) for p in part)
    return bool(part == whole) and isinstance(part, bool) == isinstance(whole, bool)
