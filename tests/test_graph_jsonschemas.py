"""JSON Schemas of input, output and context, beside the peer's."""

import operator
import sys
from dataclasses import dataclass, field
from typing import Annotated, Any, NotRequired, Optional, Required, TypedDict

import pytest
import typing_extensions
from langgraph.graph import StateGraph as PeerGraph
from pydantic import BaseModel

from waitpoint.graph import START, StateGraph
from waitpoint.graph.managed import RemainingSteps


class Inner(TypedDict):
    """Inside."""

    n: int


class Plain(TypedDict):
    a: int
    user_name: str | None
    log: Annotated[list[Inner], operator.add]
    by_name: NotRequired[dict[str, Inner]]
    either: int | Inner


class Partial(TypedDict, total=False):
    a: Required[int]
    b: Annotated[list[str], operator.add]


class Extended(typing_extensions.TypedDict):
    a: int
    b: NotRequired[str]


@dataclass
class Data:
    a: int
    b: str = "x"
    c: list[int] = field(default_factory=list)
    d: Optional[str] = None  # noqa: UP045 - another object than `str | None`
    log: Annotated[list[str], operator.add] = field(default_factory=lambda: ["first"])


class Model(BaseModel):
    a: int
    b: str = "x"


class Bare:
    a: int
    b: str | None
    _c: str | None
    copy: str


def node(state: Any) -> Any: ...


def schemas(builder: Any, declared: Any) -> tuple[Any, Any]:
    graph = builder(declared).add_node("n", node).add_edge(START, "n").compile(name="Some")
    return graph.get_input_jsonschema(), graph.get_output_jsonschema()


@pytest.mark.parametrize("declared", [Extended, Data, Model, Bare, Annotated[list[str], operator.add], dict])
def test_schemas_are_those_of_the_peer(declared: Any) -> None:
    ours, theirs = schemas(StateGraph, declared), schemas(PeerGraph, declared)
    for mine, other in zip(ours, theirs, strict=True):
        mine.pop("default", None)  # the peer lets a whole state be null
        other.pop("default", None)
        assert mine == other


@pytest.mark.parametrize("declared", [Plain, Partial])
@pytest.mark.skipif(sys.version_info < (3, 12), reason="the peer refuses typing.TypedDict there")
def test_schemas_of_a_standard_typed_dict_are_those_of_the_peer(declared: Any) -> None:
    assert schemas(StateGraph, declared) == schemas(PeerGraph, declared)


def test_a_standard_typed_dict_has_a_schema_on_every_python() -> None:
    given, returned = schemas(StateGraph, Plain)
    assert given == returned
    assert given["required"] == ["a", "user_name", "log", "either"]
    assert given["$defs"]["Inner"] == {
        "description": "Inside.",
        "properties": {"n": {"title": "N", "type": "integer"}},
        "required": ["n"],
        "title": "Inner",
        "type": "object",
    }
    assert schemas(StateGraph, Partial)[0]["required"] == ["a"]


def test_not_required_counts_in_a_plain_class_too() -> None:
    class Loose:
        a: NotRequired[int]
        b: Required[int | None]

    assert schemas(StateGraph, Loose)[0]["required"] == ["b"]


def test_defaults_of_a_dataclass_are_not_required() -> None:
    assert schemas(StateGraph, Data)[0]["required"] == ["a"]


def test_input_and_output_have_their_own_schemas_and_titles() -> None:
    graph = StateGraph(Plain, input_schema=Bare, output_schema=Extended).add_node("n", node).add_edge(START, "n")
    compiled = graph.compile()
    assert compiled.get_input_jsonschema()["title"] == "LangGraphInput"
    assert compiled.get_input_jsonschema()["required"] == ["a", "copy"]
    assert compiled.get_output_jsonschema()["title"] == "Extended"
    assert (compiled.InputType, compiled.OutputType) == (Bare, Extended)


def test_managed_values_are_in_no_schema() -> None:
    class Counting:
        a: int
        left: RemainingSteps

    assert list(schemas(StateGraph, Counting)[0]["properties"]) == ["a"]


def test_input_and_output_schemas_are_models_that_validate() -> None:
    compiled = StateGraph(Data).add_node("n", node).add_edge(START, "n").compile()
    assert compiled.get_input_schema().model_validate({"a": "1"})
    with pytest.raises(ValueError, match="valid integer"):
        compiled.get_output_schema().model_validate({"a": "x"})


@pytest.mark.parametrize("context", [None, Plain, Extended, Data, Model])
def test_a_context_has_the_schema_of_its_class(context: Any) -> None:
    found = StateGraph(Plain, context).add_node("n", node).add_edge(START, "n").compile().get_context_jsonschema()
    assert (found and found["title"]) == (context and context.__name__)
