"""Message lists as state: `add_messages`, `MessagesState`. langchain-core is imported when a message is met."""

from __future__ import annotations

import operator
import uuid
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Final, Literal, cast, overload

from typing_extensions import TypedDict

from waitpoint import runtime as runtimes
from waitpoint.core.channels import overwritten
from waitpoint.engine import places
from waitpoint.records import MISSING, Overwrite

REMOVE_ALL_MESSAGES: Final = "__remove_all__"

_id_of = operator.attrgetter("id")

# What items of a type are: a "whole" message that can stay as it is, a "removal" (whole too), or "other". Few types,
# met many times, so each is looked at once.
_kinds: dict[type, Literal["whole", "removal", "other"]] = {}


@overload
def add_messages(
    left: None = None, right: None = None, *, format: Literal["langchain-openai"] | None = None
) -> Callable[[Any, Any], list[Any]]: ...
@overload
def add_messages(left: Any, right: Any, *, format: Literal["langchain-openai"] | None = None) -> list[Any]: ...
def add_messages(left: Any = None, right: Any = None, *, format: Literal["langchain-openai"] | None = None) -> Any:
    """Merge `right` into `left` by message id and return a new list; a reducer for `Annotated[list, add_messages]`.

    A message with a known id replaces the old one in its place, others are appended. Texts, (role, text) pairs, dicts
    and chunks become messages; messages without an id get one. `RemoveMessage(id)` deletes, and with the id
    `REMOVE_ALL_MESSAGES` it deletes everything before it. Untouched messages stay the same objects.

    Called with `format` alone it returns a reducer whose messages are in OpenAI's form.

    Raises:
        ValueError: a `RemoveMessage` names an id that is not there, or one of the two lists is None.
    """
    if left is None and right is None:
        return partial(add_messages, format=format)
    merged = _merged(_listed(left, "first"), identified(right))
    if format is None:
        return merged
    if format != "langchain-openai":
        raise ValueError(f"add_messages knows the format 'langchain-openai', not '{format}'; leave it out")
    return _in_openai_form(merged)


class MessagesState(TypedDict):
    """A state that is a list of messages; derive from it to add keys."""

    messages: Annotated[list[Any], add_messages]


def identified(value: Any) -> list[Any]:
    """Return one write for `add_messages` as a new list of messages, each with an id; `RemoveMessage`s stay in it.

    The same messages come back when it is applied again, so what is recorded once keeps its ids for ever.
    """
    messages = _coerced(_listed(value, "second"))
    for message in messages:
        if message.id is None:
            message.id = str(uuid.uuid4())
    return messages


def prepared(write: Any) -> Any:
    """Return a write to a key of messages as it is to be recorded, an `Overwrite` with ids given to its messages."""
    value = overwritten(write)
    if value is MISSING:
        return identified(write)
    if not isinstance(value, list) or "other" in _kinds_in(value):
        return write
    return Overwrite(identified(value))


def added(left: Any, right: Any) -> list[Any]:
    """Do what `add_messages` does, for a list that nobody changes: what is only appended looks at no older message."""
    new, old = identified(right), _listed(left, "first")
    ids = [message.id for message in new]
    if len(set(ids)) == len(ids) and "removal" not in _kinds_in(new):
        known = places.of(old) or _recorded(old)
        if known is not None and not known.holds_any(ids, len(old)):
            grown = [*old, *new]
            places.grow(old, grown, ids)
            return grown
    return _merged(old, new)


def _recorded(messages: list[Any]) -> places.Places | None:
    if len(messages) < places.WORTH_KEEPING or "other" in _kinds_in(messages):
        return None
    return places.begin(messages, [message.id for message in messages])


def reducer_of(reducer: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return what a key of messages is combined with, where `add_messages` or a form of it was declared."""
    return added if reducer is add_messages else reducer


def push_message(message: Any, *, state_key: str | None = "messages") -> Any:
    """Show a message in stream mode `messages` at once, from inside a node, and return it.

    It is written to `state_key` with what the node returns; with None it is only shown. Raises `ValueError` for a message
    without an id, which could not be told from the next one.
    """
    scope = runtimes.scope("push_message()")
    (message,) = _coerced([message])
    if message.id is None:
        raise ValueError("Message ID is required: push_message() shows a message once, by its id; give it one")
    scope.push(message, state_key)
    return message


def is_add_messages(reducer: Any) -> bool:
    """Whether a reducer is `add_messages`, as such or made by `add_messages(format=...)`."""
    return reducer is add_messages or (isinstance(reducer, partial) and reducer.func is add_messages)


def _listed(value: Any, which: str) -> list[Any]:
    if value is None:
        raise ValueError(
            f"the {which} list of add_messages is None, which is no message; return a list, or leave the key out"
        )
    return value if isinstance(value, list) else [value]


def _kind(of: type) -> Literal["whole", "removal", "other"]:
    known = _kinds.get(of)
    if known is None:
        from langchain_core.messages import BaseMessage, BaseMessageChunk, RemoveMessage

        if issubclass(of, RemoveMessage):
            known = "removal"
        else:
            known = "whole" if issubclass(of, BaseMessage) and not issubclass(of, BaseMessageChunk) else "other"
        _kinds[of] = known
    return known


def _kinds_in(items: list[Any]) -> set[str]:
    return {_kind(of) for of in set(map(type, items))}


def _coerced(items: list[Any]) -> list[Any]:
    """Return a new list in which everything is a whole message."""
    if "other" not in _kinds_in(items):
        return items.copy()
    from langchain_core.messages import BaseMessageChunk, convert_to_messages, message_chunk_to_message

    return [
        message_chunk_to_message(message) if isinstance(message, BaseMessageChunk) else message
        for message in convert_to_messages(items)
    ]


def _merged(left: list[Any], right: list[Any]) -> list[Any]:
    """`right` has ids. Most merges only append: then one pass over `left` looks for known and missing ids."""
    has_removals = "removal" in _kinds_in(right)
    if has_removals:
        for at in range(len(right) - 1, -1, -1):
            if right[at].id == REMOVE_ALL_MESSAGES and _kind(type(right[at])) == "removal":
                left, right = [], right[at + 1 :]
                break
    fresh = {m.id for m in right}
    merged = _coerced(left)
    if not has_removals and len(fresh) == len(right) and (fresh | {None}).isdisjoint(map(_id_of, merged)):
        merged.extend(right)
        return merged
    return _merged_by_id(merged, right)


def _merged_by_id(left: list[Any], right: list[Any]) -> list[Any]:
    place = _places(left)
    if None in place:
        for message in left:
            if message.id is None:
                message.id = str(uuid.uuid4())
        place = _places(left)
    result: list[Any] = left
    removed: set[int] = set()
    for message in right:
        at = place.get(message.id)
        if _kind(type(message)) == "removal":
            if at is None:
                raise ValueError(
                    f"Attempting to delete a message with an ID that doesn't exist ('{message.id}') - the list holds "
                    f"no such message; take the id from the message as it is in the state"
                )
            removed.add(at)
        elif at is None:
            place[message.id] = len(result)
            result.append(message)
        else:
            removed.discard(at)
            result[at] = message
    return [m for at, m in enumerate(result) if at not in removed] if removed else result


def _places(messages: list[Any]) -> dict[Any, int]:
    return dict(zip(map(_id_of, messages), range(len(messages)), strict=True))


def _in_openai_form(messages: list[Any]) -> list[Any]:
    from langchain_core.messages import convert_to_messages, convert_to_openai_messages

    return cast("list[Any]", convert_to_messages(convert_to_openai_messages(messages, include_id=True)))
