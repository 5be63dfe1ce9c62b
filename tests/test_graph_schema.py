"""Schemas to channels: what annotations of a state mean."""

import collections.abc
import operator
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, ClassVar, Generic, Literal, NotRequired, Optional, Required, TypedDict, TypeVar

import pytest
import typing_extensions
from pydantic import BaseModel, Field
from typing_extensions import ReadOnly

from waitpoint.core.spec import Channel
from waitpoint.errors import GraphValidationError
from waitpoint.graph.managed import IsLastStep, RemainingSteps
from waitpoint.graph.message import MessagesState, add_messages, added, prepared
from waitpoint.graph.schema import channel_of, is_same_channel, read_schema

MaybeList = Optional[list[str]]  # noqa: UP045 - another object than `list[str] | None`


def both(a: Any, b: Any) -> Any:
    return b


def channel(hint: Any) -> Channel:
    return channel_of("k", hint)


class Plain(TypedDict):
    a: int
    b: str


class Child(Plain, total=False):
    log: Annotated[list[str], operator.add]


class Marked(TypedDict):
    a: Required[Annotated[list[int], operator.add]]
    b: NotRequired[Annotated[list[int], operator.add]]
    c: Annotated[NotRequired[list[int]], operator.add]
    d: ReadOnly[Annotated[list[int], operator.add]]


@dataclass
class Data:
    a: int
    log: Annotated[list[str], operator.add] = field(default_factory=list)
    kind: ClassVar[str] = "data"
    size: int = field(init=False, default=0)


class Model(BaseModel):
    a: int
    log: Annotated[list[str], operator.add] = Field(default_factory=list)
    _secret: int = 0


class Described(BaseModel):
    log: Annotated[list[str], Field(description="said"), operator.add] = []


class Managed(TypedDict):
    a: int
    left: RemainingSteps
    last: NotRequired[IsLastStep]


class Unresolved(TypedDict):
    a: "NowhereDefined"  # type: ignore[name-defined]  # noqa: F821


T = TypeVar("T")


class Box(BaseModel, Generic[T]):
    item: T


def test_each_key_of_a_typed_dict_is_a_channel_those_of_its_bases_too() -> None:
    schema = read_schema(Child)
    assert {name: c.kind for name, c in schema.channels.items()} == {"a": "last", "b": "last", "log": "append"}
    assert schema.make is None


@pytest.mark.parametrize("key", list("abcd"))
def test_required_not_required_and_read_only_hide_no_reducer(key: str) -> None:
    assert read_schema(Marked).channels[key].kind == "append"


def test_a_dataclass_gives_its_fields_and_becomes_an_instance_for_nodes() -> None:
    schema = read_schema(Data)
    assert {name: c.kind for name, c in schema.channels.items()} == {"a": "last", "log": "append"}
    assert schema.make is not None
    assert schema.make({"a": 1}) == Data(a=1)


def test_a_class_variable_is_no_key() -> None:
    class Loose:
        kind: ClassVar[str] = "loose"
        a: int

    assert list(read_schema(Loose).channels) == ["a"]


def test_a_model_gives_its_fields_and_validates_for_nodes() -> None:
    schema = read_schema(Model)
    assert {name: c.kind for name, c in schema.channels.items()} == {"a": "last", "log": "append"}
    assert schema.make is not None
    assert schema.make({"a": "1"}) == Model(a=1)
    with pytest.raises(ValueError, match="valid integer"):
        schema.make({"a": "x"})


def test_a_reducer_behind_other_extras_is_found() -> None:
    assert read_schema(Described).channels["log"].kind == "append"


def test_a_model_defined_in_a_function_needs_no_module_to_resolve_it() -> None:
    class Local(BaseModel):
        n: int

    class Holder(BaseModel):
        local: "Local"
        log: Annotated[list["Local"], operator.add]

    kinds = {name: c.kind for name, c in read_schema(Holder).channels.items()}
    assert kinds == {"local": "last", "log": "append"}


def test_a_generic_model_is_a_schema() -> None:
    assert list(read_schema(Box[int]).channels) == ["item"]


@pytest.mark.parametrize("declared", [dict, list, int, Annotated[list[str], operator.add]])
def test_a_bare_type_is_the_whole_state_under_one_key(declared: Any) -> None:
    schema = read_schema(declared)
    assert list(schema.channels) == ["__root__"]
    assert schema.is_whole
    assert schema.reader().whole


def test_add_messages_on_a_list_is_a_channel_of_messages() -> None:
    found = read_schema(MessagesState).channels["messages"]
    assert found == Channel("messages", "messages", added, list, prepared)


def test_add_messages_with_a_format_is_a_channel_of_messages() -> None:
    found = channel(Annotated[list[Any], add_messages(format="langchain-openai")])
    assert (found.kind, found.default) == ("messages", list)
    assert channel(Annotated[list[Any], partial(add_messages, format=None)]).kind == "messages"


@pytest.mark.parametrize("hint", [list, list[str], collections.abc.Sequence[int], collections.abc.MutableSequence[int]])
def test_operator_add_on_a_list_appends(hint: Any) -> None:
    assert channel(Annotated[hint, operator.add]) == Channel("k", "append", operator.add, list)


@pytest.mark.parametrize("hint", [int, str, tuple, tuple[int, ...], MaybeList, Any])
def test_operator_add_on_anything_else_folds(hint: Any) -> None:
    assert channel(Annotated[hint, operator.add]).kind == "fold"


def test_another_reducer_on_a_list_folds() -> None:
    assert channel(Annotated[list[str], both]) == Channel("k", "fold", both, list)


@pytest.mark.parametrize(
    ("hint", "empty"),
    [
        (int, 0),
        (str, ""),
        (float, 0.0),
        (bool, False),
        (list[int], []),
        (dict[str, int], {}),
        (set[int], set()),
        (frozenset[int], frozenset()),
        (tuple[int, ...], ()),
        (collections.abc.Mapping[str, int], {}),
        (collections.abc.MutableMapping[str, int], {}),
        (collections.abc.Set[int], set()),
        (collections.abc.MutableSet[int], set()),
        (NotRequired[list[int]], []),
        (Annotated[list[int], "extra"], []),
        (Plain, {}),
    ],
)
def test_a_reducer_starts_from_the_empty_value_of_its_type(hint: Any, empty: Any) -> None:
    default = channel(Annotated[hint, both]).default
    assert default is not None
    assert default() == empty
    assert type(default()) is type(empty)


@pytest.mark.parametrize("hint", [Any, MaybeList, list[int] | None, Literal["a"], Data, type[int], object])
def test_a_type_that_is_not_made_from_nothing_gives_no_default(hint: Any) -> None:
    assert channel(Annotated[hint, both]).default is None


def test_extras_that_cannot_be_called_are_no_reducer() -> None:
    assert channel(Annotated[int, "in seconds"]) == Channel("k", "last")
    assert channel(Annotated[list[int], operator.add, "in seconds"]) == Channel("k", "last")


def one(a: Any) -> Any:
    return a


def three(a: Any, b: Any, c: Any) -> Any:
    return a


@pytest.mark.parametrize("reducer", [one, three, str, lambda: None])
def test_a_reducer_that_does_not_take_two_values_is_refused_by_key(reducer: Any) -> None:
    with pytest.raises(GraphValidationError, match="Invalid reducer") as caught:
        channel(Annotated[list[int], reducer])
    assert "'k'" in str(caught.value)


@pytest.mark.parametrize("reducer", [max, operator.or_, partial(three, 1), lambda a, b: a, lambda a, b, *, c=1: a])
def test_whatever_takes_two_values_is_a_reducer(reducer: Any) -> None:
    assert channel(Annotated[int, reducer]).reducer is reducer


def test_managed_values_are_no_channels() -> None:
    schema = read_schema(Managed)
    assert list(schema.channels) == ["a"]
    assert schema.managed == {"left": "remaining_steps", "last": "is_last_step"}
    assert schema.reader().managed == schema.managed


def test_an_unknown_annotation_is_refused_by_schema_and_name() -> None:
    with pytest.raises(GraphValidationError, match="'Unresolved' names 'NowhereDefined'"):
        read_schema(Unresolved)


@pytest.mark.parametrize("name", ["__interrupt__", "__start__"])
def test_keys_that_results_use_are_reserved(name: str) -> None:
    with pytest.raises(GraphValidationError, match=f"'{name}' is reserved"):
        read_schema(typing_extensions.TypedDict("Odd", {name: int}))


def test_a_type_alias_hides_no_reducer() -> None:
    alias = typing_extensions.TypeAliasType("Log", Annotated[list[str], operator.add])
    assert channel(alias).kind == "append"
    assert channel(NotRequired[alias]).kind == "append"  # type: ignore[valid-type]


def test_two_declarations_of_a_key_are_compared_by_what_they_do() -> None:
    add = channel(Annotated[list[int], operator.add])
    assert is_same_channel(add, channel(Annotated[list[str], operator.add]))
    assert not is_same_channel(add, channel(Annotated[list[int], both]))
    assert not is_same_channel(add, channel(list[int]))
    assert is_same_channel(channel(Annotated[int, lambda a, b: a]), channel(Annotated[int, lambda a, b: b]))
    bound = [channel(Annotated[int, partial(three, n)]) for n in (1, 1, 2)]
    assert is_same_channel(bound[0], bound[1])
    assert not is_same_channel(bound[0], bound[2])
