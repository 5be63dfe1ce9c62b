"""A thread as a page shows it: what was said, what happened in order, and the state at each of its checkpoints.

It is read from the store alone, so threads of graphs that are not served here are shown too; what only their own process
could decode is shown as plain data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from waitpoint.checkpoint.base import (
    BaseCheckpointSaver,
    CheckpointRow,
    Loaded,
    PendingFilter,
    ThreadKey,
    ThreadRow,
    as_question,
)
from waitpoint.codec import PROCESS, Registry, to_json
from waitpoint.engine import heads
from waitpoint.errors import NotFoundError
from waitpoint.inbox import marked
from waitpoint.inbox.cards import Row, rows_of
from waitpoint.inbox.listing import Entry, entry_of
from waitpoint.records import Question
from waitpoint.shown import timeline
from waitpoint.shown.secrets import Veil

_MOST = 400  # entries of the timeline, and checkpoints, on one page
_ROLES = {"human": "person", "ai": "agent", "tool": "tool", "system": "system"}


@dataclass(slots=True)
class Said:
    """One message."""

    role: str
    name: str
    text: str
    calls: list[tuple[str, list[Row]]] = field(default_factory=list)


@dataclass(slots=True)
class Moment:
    """One line of what happened; `entry` is the question it speaks of."""

    at: float
    kind: str
    where: str
    note: str
    entry: Entry | None = None
    answer: str = ""


@dataclass(slots=True)
class Checkpoint:
    """One checkpoint in the list."""

    id: str
    step: int
    source: str
    at: float


@dataclass(slots=True)
class ThreadPage:
    """All that the page shows. `left_out` counts entries of the timeline that are too old for one page."""

    row: ThreadRow
    said: list[Said]
    moments: list[Moment]
    checkpoints: list[Checkpoint]
    shown: Checkpoint | None
    values: list[Row]
    tasks: list[tuple[str, str]]
    open: list[Entry]
    left_out: int = 0
    note: str = ""


def thread_page(
    saver: BaseCheckpointSaver, key: ThreadKey, checkpoint_id: str | None, registry: Registry | None
) -> ThreadPage:
    """Read a thread at its newest checkpoint, or at the one that is named. Raises `NotFoundError`."""
    row = saver.thread(key)
    if row is None:
        raise NotFoundError(f"No thread '{key.thread_id}' of graph '{key.graph}'; open one from the list")
    history = saver.history(key, limit=_MOST)
    loaded = saver.load(key, "", checkpoint_id)
    if loaded.checkpoint is None and checkpoint_id is not None:
        raise NotFoundError(f"No checkpoint '{checkpoint_id}' in thread '{key.thread_id}'; it may have been pruned")
    values, note = values_of(saver, key, loaded.checkpoint, registry)
    questions = [
        as_question(each) for each in saver.questions(PendingFilter(key.thread_id, key.graph, answerable=False))
    ]
    veil = Veil(values, *(to_json(q.value) for q in questions))
    found = timeline.entries(saver, key)
    messages = values.get("messages")
    return ThreadPage(
        row,
        said(messages if isinstance(messages, list) else [], veil),
        [_moment(each, veil) for each in found[-_MOST:]],
        [_checkpoint(each) for each in history],
        None if loaded.checkpoint is None else _checkpoint(loaded.checkpoint),
        rows_of({k: v for k, v in values.items() if k != "messages" or not isinstance(v, list)}, veil),
        _tasks(loaded),
        [entry_of(q) for q in questions if q.can_answer],
        max(0, len(found) - _MOST),
        note,
    )


def values_of(
    saver: BaseCheckpointSaver, key: ThreadKey, row: CheckpointRow | None, registry: Registry | None
) -> tuple[dict[str, Any], str]:
    """Return the state of a checkpoint as JSON values, and what is to be said of that."""
    if row is None:
        return {}, "It has no checkpoint yet."
    try:
        head = heads.from_row(row, heads.ItemReader(saver, key, registry or PROCESS))
    except Exception as error:  # noqa: BLE001 - what is stored may need a newer version, or be damaged; the page says so
        return {}, f"Its values could not be read here ({type(error).__name__}); the process of its graph can."
    note = "Values of types that are not known here are shown as plain data." if head.unknown else ""
    values: dict[str, Any] = to_json(head.values)
    return values, note


def agent_words(saver: BaseCheckpointSaver, question: Question, checkpoint_id: str, registry: Registry | None) -> str:
    """Return what the agent said last before it asked, as far as the state has it."""
    key = ThreadKey(question.thread_id, question.graph)
    loaded = saver.load(key, question.ns, checkpoint_id)
    values, _ = values_of(saver, key, loaded.checkpoint, registry) if loaded.checkpoint else ({}, "")
    messages = values.get("messages")
    for message in reversed(messages if isinstance(messages, list) else []):
        if isinstance(message, dict) and _role(message) == "agent":
            return _text(_fields(message).get("content"))
    return ""


def said(messages: Sequence[Any], veil: Veil) -> list[Said]:
    """Return the transcript of a state's messages."""
    found = []
    for message in messages:
        if not isinstance(message, dict):
            found.append(Said("other", "", veil.text(marked.json_shown(message))))
            continue
        of = _fields(message)
        calls = [
            (str(call.get("name", "")), rows_of(call["args"] if isinstance(call.get("args"), dict) else call, veil))
            for call in of.get("tool_calls") or ()
            if isinstance(call, dict)
        ]
        name = of.get("name")
        found.append(
            Said(_role(message), name if isinstance(name, str) else "", veil.text(_text(of.get("content"))), calls)
        )
    return found


def _fields(message: Mapping[str, Any]) -> Mapping[str, Any]:
    inner = message.get("data") or message.get("kwargs")
    return inner if isinstance(inner, dict) and "content" in inner else message


def _role(message: Mapping[str, Any]) -> str:
    given = _fields(message).get("type") or message.get("type") or message.get("role")
    aliases = {"user": "person", "assistant": "agent", "AIMessageChunk": "agent"}
    return _ROLES.get(str(given)) or aliases.get(str(given)) or "other"


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return "" if content is None else marked.json_shown(content)
    parts = [part if isinstance(part, str) else _block(part) for part in content]
    return "\n".join(part for part in parts if part)


def _block(block: Any) -> str:
    if isinstance(block, dict):
        if isinstance(block.get("text"), str):
            return str(block["text"])
        if block.get("type") in ("tool_use", "tool_call", "input_json_delta"):
            return ""  # a call is shown as one
    return marked.json_shown(block, indent=None)


def _moment(entry: timeline.Entry, veil: Veil) -> Moment:
    made = Moment(entry.at, entry.kind, " › ".join(entry.path), veil.text(entry.note))
    question = entry.question
    if question is not None:
        made.entry = entry_of(question)
        if entry.settles:
            made.note = question.reason or "" if question.status == "withdrawn" else question.comment or ""
            if question.status == "answered":
                made.answer = marked.json_shown(veil.value(to_json(question.answer)), indent=None)
    return made


def _checkpoint(row: CheckpointRow) -> Checkpoint:
    return Checkpoint(row.id, row.step, row.source, row.created_at)


def _tasks(loaded: Loaded) -> list[tuple[str, str]]:
    return [(row.node, row.status) for row in loaded.outcomes if row.status != "patch"]
