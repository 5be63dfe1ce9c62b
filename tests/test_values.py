"""Values: they never change, whatever the name, and may be made with the type of what they carry."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, replace
from typing import Any, Literal

import pytest

from waitpoint.runtime import Runtime
from waitpoint.types import Answer, Command, Interrupt, Send

VALUES = [Command(goto="a"), Interrupt(1, "i"), Send("a", 1), Answer(1), Runtime()]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("field", [True, False], ids=["field", "no-field"])
def test_nothing_of_a_value_can_be_set_or_deleted(value: Any, field: bool) -> None:
    name = type(value).__slots__[0] if field else "nothing"
    before = repr(value)
    with pytest.raises(FrozenInstanceError, match=f"'{name}'"):
        setattr(value, name, 2)
    with pytest.raises(AttributeError, match=f"'{name}'"):
        delattr(value, name)
    assert repr(value) == before


def test_a_value_may_name_the_type_of_what_it_carries() -> None:
    assert Command[Literal["a"]](goto="a") == Command(goto="a")
    assert Interrupt[int](1, "i") == Interrupt(1, "i")
    assert Runtime[dict[str, int]](context={"a": 1}).context == {"a": 1}


@pytest.mark.parametrize("value", VALUES[:4], ids=lambda value: type(value).__name__)
def test_a_value_can_be_copied_and_pickled(value: Any) -> None:
    assert copy.copy(value) == copy.deepcopy(value) == pickle.loads(pickle.dumps(value)) == value


def test_a_value_can_be_replaced_in_part() -> None:
    assert replace(Command(goto="a"), goto="b") == Command(goto="b")
