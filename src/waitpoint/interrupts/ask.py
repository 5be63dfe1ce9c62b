"""`interrupt()`: stop here until a person, a browser or another system answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, overload

from waitpoint import canonical, schemas
from waitpoint.errors import GraphValidationError
from waitpoint.interrupts.journal import Question, running

T = TypeVar("T")


@overload
def interrupt(value: Any, *, response_schema: type[T], key: str | None = None, ignore: Sequence[str] = ()) -> T: ...
@overload
def interrupt(
    value: Any, *, response_schema: dict[str, Any] | None = None, key: str | None = None, ignore: Sequence[str] = ()
) -> Any: ...
def interrupt(value: Any, *, response_schema: Any = None, key: str | None = None, ignore: Sequence[str] = ()) -> Any:
    """Ask `value` and return the answer; the first time this stops the node.

    When the thread is answered, the node runs again from its first line, and this call returns the answer. What stands
    before it runs again: put effects behind it, or into `step()`.

    `value` is plain data (JSON values, dates, UUID, Decimal, bytes, Enum; models and dataclasses become dicts).
    `response_schema` is a pydantic model, TypedDict, dataclass or JSON Schema; an answer that does not fit is refused
    before it is stored, and a class gives an instance here. A question is recognised by its place in the code and its
    payload; `key` tells equal payloads apart, and `ignore` names payload paths that may vary ("sent_at", "items[].age").

    Raises:
        PayloadError: the payload holds something that cannot be shown; the path is named.
        QuestionWithdrawn: the question was withdrawn.
        CheckpointerRequiredError: the graph has no checkpointer.
        OutsideGraphError: no node is running here.
    """
    journal = running("interrupt()")
    schema = None if response_schema is None else schemas.to_json_schema(response_schema)
    if key is not None and not isinstance(key, str):
        raise GraphValidationError(f"`key` of interrupt() is a {type(key).__name__}; give a string")
    if isinstance(ignore, str):
        raise GraphValidationError(
            f"`ignore` of interrupt() is the text {ignore!r}; give a list of paths, such as [{ignore!r}]"
        )
    asked = journal.ask(Question(canonical.payload(value), key, tuple(ignore), schema))
    answer = None if asked.row.answer is None else journal.read(asked.row.answer, "answer")
    if response_schema is None or isinstance(response_schema, dict):
        return answer
    try:
        return schemas.convert_answer(response_schema, answer)
    except Exception as error:
        journal.refuse(asked.row.id, error)
        raise
