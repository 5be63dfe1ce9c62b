"""What waits over all threads, as the store has it now: lines, groups, filters, counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from waitpoint.checkpoint.base import BaseCheckpointSaver, PendingFilter, as_question
from waitpoint.codec import to_json
from waitpoint.inbox import marked
from waitpoint.inbox.cards import KINDS, answer_words, headline
from waitpoint.inbox.ways import asked
from waitpoint.records import Question
from waitpoint.shown.secrets import Veil

MOST = 1000  # questions that are looked at for one page
DONE = 20
_LOOKED_AT = 200  # questions among which those done lately are found


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a person wants to see."""

    graph: str = ""
    tool: str = ""
    text: str = ""
    order: str = "newest"

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Wanted:
        """Read it from an address."""
        order = "oldest" if query.get("order") == "oldest" else "newest"
        return cls(query.get("graph", ""), query.get("tool", ""), query.get("text", "").strip(), order)

    @property
    def query(self) -> str:
        """The part of an address that says it."""
        given = {"graph": self.graph, "tool": self.tool, "text": self.text}
        kept = {name: value for name, value in given.items() if value}
        if self.order != "newest":
            kept["order"] = self.order
        return urlencode(kept)

    @property
    def is_filtered(self) -> bool:
        """Whether some questions are left out."""
        return bool(self.graph or self.tool or self.text)


@dataclass(slots=True)
class Entry:
    """A question in one line. `outcome` says how it was settled."""

    question: Question
    kind: str
    word: str
    headline: str
    tools: list[str]
    outcome: str = ""


@dataclass(slots=True)
class Listing:
    """All that the list shows."""

    wanted: Wanted
    waits: list[Entry] = field(default_factory=list)
    doubts: list[Entry] = field(default_factory=list)
    done: list[Entry] = field(default_factory=list)
    graphs: Counter[str] = field(default_factory=Counter)
    tools: Counter[str] = field(default_factory=Counter)
    total: int = 0
    looked_at: int = 0

    @property
    def ids(self) -> list[str]:
        """The questions that can be answered, in the order of the page."""
        return [entry.question.id for entry in (*self.doubts, *self.waits)]


def listing(saver: BaseCheckpointSaver, wanted: Wanted) -> Listing:
    """Read what waits, what is in doubt, and what was done lately."""
    found = Listing(wanted, total=saver.count(PendingFilter()))
    rows = saver.questions(PendingFilter(newest_first=wanted.order == "newest", limit=MOST))
    found.looked_at = len(rows)
    for row in rows:
        entry = entry_of(as_question(row))
        found.graphs[entry.question.graph] += 1
        found.tools.update(set(entry.tools))
        if _is_wanted(entry, wanted):
            (found.doubts if entry.kind == "doubt" else found.waits).append(entry)
    settled = saver.questions(PendingFilter(answerable=False, newest_first=True, limit=_LOOKED_AT))
    for row in sorted(
        (row for row in settled if not row.can_answer), key=lambda row: -(row.settled_at or row.asked_at)
    ):
        entry = entry_of(as_question(row))
        if len(found.done) < DONE and _is_wanted(entry, wanted):
            found.done.append(entry)
    return found


def entry_of(question: Question) -> Entry:
    """Return the line of a question."""
    veil = Veil(to_json(question.value))
    made = asked(question, veil)
    tools = [item.title for item in made.items if made.kind in ("call", "browser")]
    if made.kind == "doubt":
        tools = [str(to_json(question.value).get("name"))]
    outcome = "" if question.can_answer else answer_words(question)
    return Entry(question, made.kind, KINDS[made.kind], headline(question, made, veil), tools, outcome)


def _is_wanted(entry: Entry, wanted: Wanted) -> bool:
    if wanted.graph and entry.question.graph != wanted.graph:
        return False
    if wanted.tool and wanted.tool not in entry.tools:
        return False
    return not wanted.text or all(word in _searched(entry) for word in wanted.text.casefold().split())


def _searched(entry: Entry) -> str:
    question: Any = entry.question
    payload = marked.json_text(Veil(to_json(question.value)).value(to_json(question.value)), indent=None)
    parts = (entry.headline, payload, question.thread_id, question.graph, question.node, question.id, question.by or "")
    return " ".join(parts).casefold()


def neighbours(ids: list[str], question_id: str) -> tuple[str | None, str | None, int]:
    """Return the questions before and after one in a list, and its place (from 1; 0 if it is not in it)."""
    if question_id not in ids:
        return None, (ids[0] if ids else None), 0
    at = ids.index(question_id)
    return (ids[at - 1] if at else None), (ids[at + 1] if at + 1 < len(ids) else None), at + 1
