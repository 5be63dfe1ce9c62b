"""How a question can be answered: the decisions and forms of its card, by the type of its payload and its schema.

A card has one item for each thing that is decided on, most have one; an item has ways, of which one is taken. What was
shown is made again from the stored question when an answer comes, so a browser can only choose among what was offered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from waitpoint.codec import to_json
from waitpoint.inbox.fields import Field, Form, Sent
from waitpoint.protocol import branches_of, targets_of
from waitpoint.protocol.definitions import resolved
from waitpoint.records import MISSING, Question
from waitpoint.schemas import find_misfits
from waitpoint.shown import payloads
from waitpoint.shown.calls import Call, Review, review_of
from waitpoint.shown.secrets import Veil

TEXT: dict[str, Any] = {"type": "string"}
_OLD = ("allow_accept", "allow_edit", "allow_respond", "allow_ignore")


@dataclass(slots=True)
class Way:
    """One way to answer. `key` is its key on the keyboard, `tone` its weight, `place` where its field is in the answer.

    `build` makes the answer of the field's value. With `before` the change is shown before it is sent. `opens` says that
    it lets something happen, so that what hides in the payload has to be looked at first.
    """

    name: str
    label: str
    build: Callable[[Any], Any]
    field: Field | None = None
    key: str = ""
    tone: str = "plain"
    about: str = ""
    place: tuple[Any, ...] = ()
    before: Any = MISSING
    opens: bool = True


@dataclass(slots=True)
class Item:
    """One thing that is decided on, with what is known of it."""

    number: int
    title: str
    ways: list[Way]
    args: Mapping[str, Any] = field(default_factory=dict)
    about: str = ""
    more: Mapping[str, Any] = field(default_factory=dict)
    place: tuple[Any, ...] = ()  # where its answer is in the whole

    def way(self, name: str | None) -> Way | None:
        """Return the way of a name."""
        return next((way for way in self.ways if way.name == name), None)


@dataclass(slots=True)
class Asked:
    """What a question wants: its kind, its items, and how their answers become one."""

    kind: str  # call, doubt, browser, text, form, question
    items: list[Item]
    whole: Callable[[list[Any]], Any]


def asked(question: Question, veil: Veil, sent: Sent | None = None) -> Asked:
    """Return how a question can be answered; fields hold what was `sent`."""
    payload = to_json(question.value)
    maker = _Maker(question, payload, veil, sent)
    try:
        return _of_known(maker, question, payload) or maker.other()
    except (AttributeError, KeyError, IndexError, TypeError, ValueError, RecursionError):
        return maker.anything()  # only the shape is like one that is known, or the schema leads nowhere


def _of_known(maker: _Maker, question: Question, payload: Any) -> Asked | None:
    """Return the ways of a payload of a known kind, None if it is of no such kind."""
    review = review_of(question)
    if review is not None:
        return maker.calls(review)
    if (old := _old_form(payload)) is not None:
        return maker.old(old, is_list=isinstance(payload, list))
    if payloads.is_in_doubt(payload):
        item = maker.item(maker.branches(_DOUBT_SCHEMA) or maker.free(), args=payloads.doubted_arguments(payload))
        return Asked("doubt", [item], _first)
    given = payload.get("type") if isinstance(payload, dict) else None
    if given in ("frontend_tool", "tool") and (tool := _browser_call(payload)) is not None:
        return maker.browser(*tool)
    if given == "review_text" and isinstance(payload.get("content"), str):
        return maker.text()
    if given == "approval":
        return Asked("question", [maker.item(maker.yes_or_no())], _first)
    return None


def _first(answers: list[Any]) -> Any:
    return answers[0]


# --- ways of each kind ------------------------------------------------------------------------------------------------


class _Maker:
    def __init__(self, question: Question, payload: Any, veil: Veil, sent: Sent | None) -> None:
        self.payload, self.veil, self.sent = payload, veil, sent
        self.schema: Mapping[str, Any] | None = question.response_schema

    def item(self, ways: list[Way], args: Mapping[str, Any] | None = None, title: str = "") -> Item:
        return Item(1, title, ways, args or {})

    def form(self, root: Mapping[str, Any] | None = None) -> Form:
        return Form(root if root is not None else self.schema or {}, self.sent)

    # --- tool calls ---

    def calls(self, review: Review) -> Asked:
        items = []
        entries: Sequence[Any] = [self.schema]
        if review.is_batched:
            entries = [None] * len(review.calls)
            if self.schema is not None:
                entries = self.schema["properties"]["decisions"]["prefixItems"]
        for call, entry in zip(review.calls, entries, strict=True):
            place = ("decisions", call.number - 1) if review.is_batched else ()
            items.append(
                Item(call.number, call.name, self.decisions(call, entry), call.args, call.own_words, call.more, place)
            )
        return Asked("call", items, lambda answers: review.answer(dict(enumerate(answers, start=1))))

    def decisions(self, call: Call, entry: Any) -> list[Way]:
        ways = []
        name = f"{call.number}"
        if "approve" in call.allowed:
            ways.append(Way("approve", "Approve", lambda _: {"type": "approve"}, None, "y", "good"))
        if "edit" in call.allowed:
            args = to_json(call.args)
            made = self.form().field(f"{name}.edit", self._args_schema(call, entry), self.veil.value(args))
            ways.append(
                Way(
                    "edit", "Edit", lambda value: _edit(call.name, self.veil.restored(value)), made, "e",
                    about="It runs with these arguments instead.", place=("edit", "edited_action", "args"), before=args,
                )
            )  # fmt: skip
        if "reject" in call.allowed:
            ways.append(self.reject(name))
        if "respond" in call.allowed:
            ways.append(self.respond(name, lambda text: {"type": "respond", "message": text}))
        return ways

    def reject(self, name: str) -> Way:
        made = self.form().field(f"{name}.reject", TEXT, label="Reason", required=False)
        made.about = "The model is told. Without a reason it is told only that the call was rejected."
        return Way(
            "reject", "Reject", _reject, made, "n", "danger", "It does not run.", ("reject", "message"), opens=False
        )

    def respond(self, name: str, build: Callable[[Any], Any]) -> Way:
        made = self.form().field(f"{name}.respond", TEXT, label="Answer")
        about = "It does not run; the model takes your words for its result."
        return Way("respond", "Respond", build, made, "r", about=about, place=("respond", "message"), opens=False)

    def _args_schema(self, call: Call, entry: Any) -> Mapping[str, Any]:
        """Return the schema of a call's arguments; without one, what its arguments are now."""
        if entry is not None:
            defs = (self.schema or {}).get("$defs", {})
            branch = branches_of(entry, defs).get("edit")
            if branch is not None:
                action = targets_of(branch["properties"]["edited_action"], defs).get(call.name)
                if action is not None:
                    return resolved(action["properties"]["args"], defs)
        return guessed(to_json(call.args))

    # --- other known kinds ---

    def old(self, requests: list[dict[str, Any]], *, is_list: bool) -> Asked:
        """Return the ways of requests in the form of older inboxes, whose answer is always a list."""
        items = []
        for number, request in enumerate(requests, start=1):
            action, args = request["action_request"]["action"], request["action_request"].get("args") or {}
            about = request.get("description")
            ways = self._old_ways(number, request.get("config") or {}, action, args)
            items.append(Item(number, str(action), ways, args, about if isinstance(about, str) else ""))
        return Asked("call", items, lambda answers: list(answers) if is_list else [answers[0]])

    def _old_ways(self, number: int, config: Mapping[str, Any], action: str, args: dict[str, Any]) -> list[Way]:
        whole = {"action": action, "args": args}
        accept = {"type": "accept", "args": whole if config.get("allow_edit") else None}
        ways = []
        if config.get("allow_accept"):
            ways.append(Way("approve", "Accept", lambda _: accept, None, "y", "good"))
        if config.get("allow_edit"):
            made = self.form({}).field(f"{number}.edit", guessed(args), self.veil.value(args))

            def edited(value: Any) -> Any:
                return {"type": "edit", "args": {"action": action, "args": self.veil.restored(value)}}

            ways.append(Way("edit", "Edit", edited, made, "e", before=args))
        if config.get("allow_ignore"):
            nothing = {"type": "ignore", "args": None}
            ways.append(Way("reject", "Ignore", lambda _: nothing, None, "n", "danger", opens=False))
        if config.get("allow_respond"):
            ways.append(self.respond(f"{number}", lambda text: {"type": "response", "args": text}))
        return ways

    def browser(self, name: str, args: Mapping[str, Any], call_id: str) -> Asked:
        schema = (self.schema or {}).get("properties", {}).get("tool_result", {})
        made = self.form().field("1.answer", schema, label="Result")
        is_headless = self.payload["type"] == "tool"

        def build(value: Any) -> Any:
            return {call_id: value} if is_headless else {"tool_call_id": call_id, "tool_result": value}

        about = "A browser runs this tool and answers by itself. By hand, give what the tool would have given."
        place = (call_id,) if is_headless else ("tool_result",)
        way = Way("answer", "Answer by hand", build, made, "e", about=about, place=place)
        return Asked("browser", [self.item([way], args, name)], _first)

    def text(self) -> Asked:
        content = self.payload["content"]
        made = self.form({}).field("1.edit", TEXT, self.veil.value(content), label="Text")
        as_it_is = Way("approve", "Take it as it is", lambda _: content, None, "y", "good")
        edit = Way("edit", "Change it", self.veil.restored, made, "e", before=content)
        return Asked("text", [self.item([as_it_is, edit])], _first)

    def yes_or_no(self) -> list[Way]:
        """Return the two ways of an approval, in the first form that its schema takes."""
        ways = []
        for name, label, key, tone, value in (
            ("approve", "Approve", "y", "good", True),
            ("reject", "Reject", "n", "danger", False),
        ):
            forms = (value, {"action": name}, {"type": name}, name, {"approved": value}, {"decision": name})
            answer = next((each for each in forms if self.fits(each)), MISSING)
            if answer is MISSING:
                return self.other().items[0].ways
            ways.append(Way(name, label, _constant(answer), None, key, tone, opens=value))
        return ways

    def fits(self, answer: Any) -> bool:
        return self.schema is None or not find_misfits(self.schema, answer)

    # --- by schema alone ---

    def other(self) -> Asked:
        if self.schema is None:
            return self.anything()
        whole = resolved(self.schema, self.schema.get("$defs", {}))
        if whole.get("type") == "boolean":
            return Asked("question", [self.item(self._yes_no_plain())], _first)
        if isinstance(whole.get("oneOf") or whole.get("anyOf"), list):
            ways = self.branches(self.schema)
            if ways:
                return Asked("form", [self.item(ways)], _first)
        enum = whole.get("enum")
        if isinstance(enum, list) and 0 < len(enum) <= 6:
            ways = [Way(f"choice-{n}", _label(each), _constant(each)) for n, each in enumerate(enum)]
            return Asked("question", [self.item(ways)], _first)
        made = self.form().field("1.answer", self.schema)
        made.label = made.label or ("" if made.kind == "group" else "Answer")
        return Asked("form", [self.item([Way("answer", "Answer", _same, made, "e")])], _first)

    def _yes_no_plain(self) -> list[Way]:
        yes = Way("yes", "Yes", _constant(True), None, "y", "good")
        return [yes, Way("no", "No", _constant(False), None, "n", "danger", opens=False)]

    def anything(self) -> Asked:
        return Asked("question", [self.item(self.free())], _first)

    def free(self) -> list[Way]:
        field_name = self.payload.get("field") if isinstance(self.payload, dict) else None
        label = field_name if isinstance(field_name, str) and field_name else "Answer"
        text = self.form().field("1.text", TEXT, label=label)
        data = self.form().field("1.json", {}, label="JSON")
        data.about = 'Any JSON value: a number, true, null, "text", a list or an object.'
        return [
            Way("text", "Answer with text", _same, text, "r"),
            Way("json", "Answer with JSON", _same, data, "e", about="For programs that want more than text."),
        ]

    def branches(self, default: Mapping[str, Any]) -> list[Way]:
        """Return a way for each branch of a schema whose branches a constant `type` tells apart; none if it is not so."""
        schema = self.schema if self.schema is not None else default
        defs = schema.get("$defs", {})
        whole = resolved(schema, defs)
        found = branches_of(whole, defs)
        if not found or len(found) != len(whole.get("oneOf") or whole.get("anyOf") or [whole]):
            return []
        return [self._branch(kind, branch, schema) for kind, branch in found.items()]

    def _branch(self, kind: str, branch: Mapping[str, Any], root: Mapping[str, Any]) -> Way:
        label, tone, key, opens = _KNOWN.get(kind, (kind.replace("_", " ").capitalize(), "plain", "", True))
        rest = {name: of for name, of in branch.get("properties", {}).items() if name != "type"}
        if not rest:
            return Way(kind, label, _constant({"type": kind}), None, key, tone, opens=opens)
        needed = [name for name in branch.get("required", ()) if name != "type"]
        inner = {"type": "object", "properties": rest, "required": needed}
        made = self.form(root).field(f"1.{kind}", inner)
        return Way(kind, label, lambda value: {"type": kind, **value}, made, key, tone, place=(kind,), opens=opens)


_KNOWN = {
    "happened": ("It happened", "plain", "", False),
    "not_happened": ("It did not happen, run it", "plain", "", True),
    "run_again": ("Run it again, whether it happened or not", "danger", "", True),
    "stop": ("Run nothing, and let the step fail", "plain", "n", False),
    "approve": ("Approve", "good", "y", True),
    "reject": ("Reject", "danger", "n", False),
}
_DOUBT_SCHEMA: Mapping[str, Any] = {
    "oneOf": [
        {"type": "object", "properties": {"type": {"const": "happened"}, "result": {}}, "required": ["type"]},
        *(
            {"type": "object", "properties": {"type": {"const": kind}}, "required": ["type"]}
            for kind in ("not_happened", "run_again", "stop")
        ),
    ]
}


def _same(value: Any) -> Any:
    return value


def _constant(value: Any) -> Callable[[Any], Any]:
    return lambda _: value


def _label(value: Any) -> str:
    return value if isinstance(value, str) else str(value)


def _edit(name: str, args: Any) -> dict[str, Any]:
    return {"type": "edit", "edited_action": {"name": name, "args": args}}


def _reject(reason: Any) -> dict[str, Any]:
    text = reason.strip() if isinstance(reason, str) else ""
    return {"type": "reject", "message": text} if text else {"type": "reject"}


def guessed(value: Any) -> dict[str, Any]:
    """Return a schema that a value's own shape tells."""
    if isinstance(value, dict):
        parts = {key: guessed(part) for key, part in value.items()}
        return {"type": "object", "properties": parts, "required": list(parts)}
    if isinstance(value, bool):
        return {"type": "boolean"}
    if isinstance(value, int | float):
        return {"type": "number"}
    return dict(TEXT) if isinstance(value, str) else {}


# --- shapes -----------------------------------------------------------------------------------------------------------


def _old_form(payload: Any) -> list[dict[str, Any]] | None:
    """Return the requests of a payload in the form of older inboxes; None if it has another."""
    listed = payload if isinstance(payload, list) else [payload]
    for each in listed:
        request = each.get("action_request") if isinstance(each, dict) else None
        if not isinstance(request, dict) or not isinstance(request.get("action"), str):
            return None
        config = each.get("config")
        if not isinstance(request.get("args") or {}, dict) or not isinstance(config, dict):
            return None
        if not any(config.get(word) for word in _OLD):
            return None
    return listed or None


def _browser_call(payload: Mapping[str, Any]) -> tuple[str, Mapping[str, Any], str] | None:
    call = payload.get("tool_call") or payload.get("toolCall") if payload["type"] == "tool" else payload
    if not isinstance(call, dict):
        return None
    name = call.get("tool_name") or call.get("name")
    call_id, args = call.get("tool_call_id") or call.get("id"), call.get("args") or {}
    if not isinstance(name, str) or not isinstance(call_id, str) or not isinstance(args, dict):
        return None
    return name, args, call_id
