"""What a person sent for a card: the answer it makes, what is wrong with it, and what has to be looked at before it counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from waitpoint.codec import to_json
from waitpoint.inbox import fields
from waitpoint.inbox.cards import Card, card_of, confirmation
from waitpoint.inbox.changes import Change, changes
from waitpoint.inbox.fields import Sent
from waitpoint.inbox.ways import Item, Way
from waitpoint.records import MISSING, Question

UNSEEN = "Some characters here hide or deceive: unfold the list of them above, then decide"


@dataclass(slots=True)
class Draft:
    """A card with what was sent for it. `answer` is `MISSING` while something is wrong, `changes` are yet to be confirmed."""

    card: Card
    taken: dict[int, str]
    answer: Any = MISSING
    changes: list[tuple[Item, list[Change]]] | None = None
    confirm: str = ""

    @property
    def is_ready(self) -> bool:
        """Whether it can be stored."""
        return self.answer is not MISSING and self.changes is None

    @property
    def is_wrong(self) -> bool:
        """Whether something in it has to be put right."""
        return self.answer is MISSING

    def refuse(self, error: ValidationError) -> None:
        """Note at the fields what the question's own schema refuses."""
        for each in error.errors():
            self._refuse(tuple(each["loc"]), each["msg"])
        self.answer, self.changes = MISSING, None

    def _refuse(self, place: tuple[Any, ...], text: str) -> None:
        for item in self.card.asked.items:
            way = item.way(self.taken.get(item.number))
            if way is None or way.field is None or (item.place and place[: len(item.place)] != item.place):
                continue
            rest = place[len(item.place) :]
            if rest[: len(way.place)] == way.place:
                rest = rest[len(way.place) :]
            if fields.attach(way.field, rest, text):
                return
        where = ".".join(map(str, place))
        self.card.errors.append(f"{where}: {text}" if where else text)


def draft_of(question: Question, sent: Sent) -> Draft:
    """Make a card of what was sent for it, and the answer, as far as it is right."""
    card = card_of(question, sent)
    items = card.asked.items
    taken = {item.number: sent.get("way" if len(items) == 1 else f"way-{item.number}", "") for item in items}
    draft = Draft(card, taken)
    if "add" in sent:
        return draft  # one more entry for a list
    chosen = [(item, item.way(taken[item.number])) for item in items]
    answers = [_of_item(draft, way) for _, way in chosen]
    missing = [f"{item.number}" for item, way in chosen if way is None]
    if missing:
        what = "Choose how to answer" if len(items) == 1 else f"Decide on call {', '.join(missing)} too"
        card.errors.append(f"{what}; nothing was sent")
    if card.deceptive and sent.get("unfolded") != "1" and any(way.opens for _, way in chosen if way is not None):
        card.errors.append(UNSEEN)
    if card.errors or MISSING in answers or any(way and way.field and way.field.has_errors() for _, way in chosen):
        return draft
    draft.answer = card.asked.whole(answers)
    draft.confirm = confirmation(to_json(draft.answer))
    edited = [(item, _changes(card, way)) for item, way in chosen if way is not None and way.before is not MISSING]
    if edited and sent.get("confirm") != draft.confirm:
        draft.changes = edited
    return draft


def _of_item(draft: Draft, way: Way | None) -> Any:
    """Return the answer to one item, `MISSING` with a word about it where something is wrong."""
    if way is None:
        return MISSING
    if way.field is None:
        return way.build(None)
    value = fields.read(way.field)
    if way.field.has_errors():
        return MISSING
    if way.name == "respond" and (not isinstance(value, str) or not value.strip()):
        way.field.error = "Say something: it takes the place of the result"
        return MISSING
    if way.before is not MISSING and not _changes(draft.card, way):
        way.field.error = "Nothing was changed; to let it run as it is, approve it"
        return MISSING
    return way.build(None if value is MISSING else value)


def _changes(card: Card, way: Way) -> list[Change]:
    assert way.field is not None
    return changes(card.veil.value(to_json(way.before)), fields.read(way.field))
