"""Updates: what a node may return and a caller may put in."""

from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict

import pytest
from langchain_core.messages import AIMessage
from pydantic import BaseModel, ValidationError, field_validator, model_validator

from waitpoint.errors import InvalidUpdateError
from waitpoint.graph.schema import read_schema
from waitpoint.graph.updates import input_maker, writer

to_writes = writer(["a", "b", "c"], is_whole=False)


@dataclass
class Data:
    a: Any = 1
    b: Any = None
    other: int = 5


@dataclass
class Wide(Data):
    c: int = 3

    @property
    def computed(self) -> int:
        return 1


class Model(BaseModel):
    a: int
    b: int | None = None
    c: int | None = 5
    other: int = 0


class Pair(NamedTuple):
    a: int
    b: int


class Plain:
    a: int
    b: int


def test_a_dict_gives_its_known_keys_in_order() -> None:
    assert to_writes({"b": None, "a": 0, "x": 1}) == [("b", None), ("a", 0)]


@pytest.mark.parametrize("nothing", [None, {}, [], {"x": 1}])
def test_an_update_may_write_nothing(nothing: Any) -> None:
    assert to_writes(nothing) == []


def test_a_list_of_pairs_may_name_a_key_twice() -> None:
    assert to_writes([("a", 1), ("a", 2), ("x", 3)]) == [("a", 1), ("a", 2)]
    assert to_writes((("a", 1),)) == [("a", 1)]


def test_a_dataclass_gives_all_its_known_fields_none_too() -> None:
    assert to_writes(Data(a=None)) == [("a", None), ("b", None)]
    assert to_writes(Wide()) == [("a", 1), ("b", None), ("c", 3)]


def test_a_model_gives_what_was_set_none_too() -> None:
    assert to_writes(Model(a=1, b=None)) == [("a", 1), ("b", None), ("c", 5)]


def test_a_model_leaves_out_a_none_that_is_only_the_default() -> None:
    assert to_writes(Model(a=1)) == [("a", 1), ("c", 5)]


def test_a_model_gives_a_none_that_differs_from_the_default() -> None:
    assert to_writes(Model(a=1, c=None)) == [("a", 1), ("c", None)]


def test_a_model_gives_a_none_that_is_not_the_default_though_nobody_set_it() -> None:
    unset = Model.model_construct(_fields_set=set(), a=1, c=None)
    assert to_writes(unset) == [("a", 1), ("c", None)]


def test_a_model_gives_what_was_assigned_later() -> None:
    model = Model(a=1)
    model.b = None
    assert ("b", None) in to_writes(model)


def test_an_object_of_an_annotated_class_gives_the_fields_it_has() -> None:
    update = Plain()
    update.b = 2
    assert to_writes(update) == [("b", 2)]
    assert to_writes(Pair(1, 2)) == [("a", 1), ("b", 2)]


def test_methods_and_properties_are_no_fields() -> None:
    assert writer(["a", "computed", "copy", "json"], is_whole=False)(Wide()) == [("a", 1)]
    assert writer(["a", "copy", "json"], is_whole=False)(Model(a=1)) == [("a", 1)]


@pytest.mark.parametrize("update", [1, "secret", ["secret"], object(), {1, 2}, [{"a": 1}], AIMessage("secret")])
def test_anything_else_is_refused_without_showing_it(update: Any) -> None:
    with pytest.raises(InvalidUpdateError, match="Expected dict, got") as caught:
        to_writes(update)
    assert type(update).__name__ in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("update", [0, "text", [], {"a": 1}, False])
def test_a_whole_state_is_written_as_it_is(update: Any) -> None:
    assert writer(["__root__"], is_whole=True)(update) == [("__root__", update)]


def test_none_writes_nothing_to_a_whole_state() -> None:
    assert writer(["__root__"], is_whole=True)(None) == []


# --- inputs -----------------------------------------------------------------------------------------------------------


class Checked(BaseModel):
    n: int
    name: str
    limit: int = 10

    @field_validator("name")
    @classmethod
    def short(cls, name: str) -> str:
        assert len(name) < 5, "too long"
        return name

    @model_validator(mode="after")
    def below_limit(self) -> "Checked":
        assert self.n < self.limit, "above the limit"
        return self


class Loose(TypedDict):
    n: int


make_input = input_maker(read_schema(Checked))


def test_an_input_that_fits_stays_as_it_was_given() -> None:
    given = {"n": "1", "name": "ana", "x": 2}
    assert make_input(given) is given
    assert given == {"n": "1", "name": "ana", "x": 2}


@pytest.mark.parametrize("given", [{"n": "one"}, {"name": "too long"}, {"n": 1, "name": "ana", "limit": "x"}])
def test_a_value_that_does_not_fit_its_field_is_refused(given: Any) -> None:
    with pytest.raises(ValidationError):
        make_input(given)


@pytest.mark.parametrize("given", [{}, {"n": 1}, {"name": "ana"}])
def test_what_an_input_leaves_out_may_be_in_the_thread(given: Any) -> None:
    assert make_input(given) == given


def test_a_rule_over_several_fields_is_checked_only_when_all_are_given() -> None:
    assert make_input({"n": 20, "name": "ana"})
    with pytest.raises(ValidationError, match="above the limit"):
        make_input({"n": 20, "name": "ana", "limit": 10})


def test_other_inputs_pass_unchecked() -> None:
    instance = Checked(n=1, name="ana")
    assert make_input(instance) is instance
    assert make_input("text") == "text"
    assert input_maker(read_schema(Loose))({"n": "one"}) == {"n": "one"}
