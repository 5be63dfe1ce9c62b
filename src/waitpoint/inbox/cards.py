"""A question as a page shows it: its sentence, all that is known of it, how it can be answered, and how it was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from waitpoint import canonical, clock
from waitpoint.codec import to_json
from waitpoint.inbox import marked
from waitpoint.inbox.fields import Sent
from waitpoint.inbox.ways import Asked, Item, asked
from waitpoint.records import Question
from waitpoint.shown import payloads
from waitpoint.shown.secrets import Veil

KINDS = {
    "call": "Tool call",
    "doubt": "In doubt",
    "browser": "Browser tool",
    "text": "Text to review",
    "form": "Form",
    "question": "Question",
}
_SAID = {"type", "action_requests", "review_configs", "tool_call_id", "name", "args"}
_UNITS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"), (1.0, "s"))


@dataclass(slots=True)
class Row:
    """One value under its name."""

    name: str
    kind: str
    text: str

    @property
    def size(self) -> str:
        """How much it is, where that is more than a line."""
        lines = self.text.count("\n") + 1
        if lines == 1 and len(self.text) <= 200:
            return ""
        return f"{lines:,} lines, {len(self.text):,} characters" if lines > 1 else f"{len(self.text):,} characters"


@dataclass(slots=True)
class ItemView:
    """One thing that is decided on, as it is shown."""

    item: Item
    rows: list[Row]
    more: list[Row]
    about: str


@dataclass(slots=True)
class Card:
    """A question for a page. Everything in it is text, to be marked when it is written; secrets are veiled."""

    question: Question
    asked: Asked
    veil: Veil
    kind: str
    headline: str
    views: list[ItemView]
    rows: list[Row]  # what the payload says beside its items
    about: str
    deceptive: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)

    @property
    def is_batch(self) -> bool:
        """Whether several things are decided on in one answer."""
        return len(self.views) > 1

    @property
    def answer(self) -> str:
        """The answer it got, as JSON."""
        return marked.json_shown(self.veil.value(to_json(self.question.answer)))

    @property
    def answer_words(self) -> str:
        """The answer it got, in a few words."""
        return answer_words(self.question)

    @property
    def payload(self) -> str:
        """The whole payload as JSON."""
        return marked.json_shown(self.veil.value(to_json(self.question.value)))


def card_of(question: Question, sent: Sent | None = None) -> Card:
    """Return the card of a question; its fields hold what was `sent`."""
    payload = to_json(question.value)
    veil = Veil(payload)
    made = asked(question, veil, sent)
    views = [
        ItemView(
            item, rows_of(item.args, veil), rows_of(item.more, veil, leave={"type", "tool_call_id"}), veil.text(item.about)
        )
        for item in made.items
    ]  # fmt: skip
    about, rest = _beside(payload, made)
    return Card(
        question, made, veil, KINDS[made.kind], headline(question, made, veil), views, rows_of(rest, veil), veil.text(about),
        marked.deceptive(payload),
    )  # fmt: skip


def _beside(payload: Any, made: Asked) -> tuple[str, Mapping[str, Any]]:
    """Return the words of a payload and what else it holds, where the items do not say it already."""
    if made.kind == "call":
        return "", {}
    if not isinstance(payload, dict):
        return (payload, {}) if isinstance(payload, str) else ("", {"payload": payload})
    if made.kind == "doubt":
        about = "It was begun, and its end is not on record. So it may have taken effect, or not."
        return about, {k: v for k, v in payload.items() if k not in _SAID}
    words = payloads.words(payload) or ""
    left = (
        {"type", "tool_call", "toolCall", "tool_name", "tool_call_id", "args"} if made.kind == "browser" else {"type"}
    )
    return words, {
        k: v for k, v in payload.items() if k not in left and not (isinstance(v, str) and v.strip() == words)
    }


def rows_of(values: Mapping[str, Any], veil: Veil, leave: set[str] | frozenset[str] = frozenset()) -> list[Row]:
    """Return values by their names, each whole."""
    shown = veil.value(to_json(dict(values)))
    return [
        Row(name, payloads.kind(value), value if isinstance(value, str) else marked.json_shown(value))
        for name, value in shown.items()
        if name not in leave
    ]


# --- sentences --------------------------------------------------------------------------------------------------------


def headline(question: Question, made: Asked, veil: Veil) -> str:
    """Say in one line who wants what; of a call it is made from its arguments, never from what the model says of it."""
    who, payload = question.graph, veil.value(to_json(question.value))
    if made.kind == "call":
        calls = [_call(item, veil) for item in made.items]
        if len(calls) == 1:
            return f"{who} wants to call {calls[0]}"
        return f"{who} wants to make {len(calls)} calls: {'; '.join(calls)}"
    if made.kind == "doubt":
        args = payloads.doubted_arguments(to_json(question.value))
        return f"Did this happen? {_call(Item(1, payload['name'], [], args), veil)}"
    if made.kind == "browser":
        return f"{who} waits for a browser to run {_call(made.items[0], veil)}"
    words = payload if isinstance(payload, str) else payloads.words(payload) if isinstance(payload, dict) else None
    if made.kind == "text":
        return f"{who} asks to review a text{f': {words}' if words else ''}"
    if words:
        return f"{who} asks: {words}"
    if isinstance(payload, dict) and payload:
        return f"{who} asks about {', '.join(payload)}"
    return f"{who} asks for an answer to {marked.json_shown(payload, indent=None)}"


def _call(item: Item, veil: Veil) -> str:
    main = payloads.main_argument(item.args)
    if main is None:
        return f"{item.title}()"
    value = veil.value(to_json(item.args[main]), main)
    is_words = isinstance(value, list) and value and all(isinstance(each, str) for each in value)
    text = value if isinstance(value, str) else ", ".join(value) if is_words else marked.json_shown(value, indent=None)
    rest = len(item.args) - 1
    return f"{item.title}({main}: “{text}”{f', {rest} more' if rest else ''})"


def answer_words(question: Question) -> str:
    """Say in a few words what an answer was."""
    if question.status == "withdrawn":
        return "withdrawn"
    answer = to_json(question.answer)
    listed = answer.get("decisions") if isinstance(answer, dict) else answer if isinstance(answer, list) else None
    if isinstance(listed, list) and listed and all(isinstance(each, dict) and "type" in each for each in listed):
        counts = Counter(_past(str(each["type"])) for each in listed)
        return ", ".join(kind if n == len(listed) == 1 else f"{n} {kind}" for kind, n in counts.items())
    if isinstance(answer, dict) and isinstance(answer.get("type") or answer.get("action"), str):
        return _past(str(answer.get("type") or answer.get("action")))
    if isinstance(answer, bool):
        return "yes" if answer else "no"
    return "answered"


def _past(kind: str) -> str:
    known = {
        "approve": "approved", "edit": "edited", "reject": "rejected", "respond": "responded", "accept": "accepted",
        "ignore": "ignored", "response": "responded", "happened": "it happened", "not_happened": "it did not happen",
        "run_again": "run again", "stop": "stopped",
    }  # fmt: skip
    return known.get(kind, kind.replace("_", " "))


def ago(at: float) -> str:
    """Return how long ago a time was, in its largest unit."""
    seconds = max(0.0, clock.now() - at)
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return "now"


def confirmation(value: Any) -> str:
    """Return what binds a confirmation to the very value that was shown."""
    return canonical.digest(value)
