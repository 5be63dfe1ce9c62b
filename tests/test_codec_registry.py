"""Tags: which class a stored value is of, who knows it, and what happens when nobody does."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, NamedTuple, NewType, TypedDict, TypeVar

import pytest
from pydantic import BaseModel
from typing_extensions import TypeAliasType

from waitpoint import codec, errors, records
from waitpoint.codec import Registry, UnknownValue
from waitpoint.errors import UsageError


@dataclass
class Point:
    x: int
    y: int = 0


@dataclass(frozen=True)
class Frozen:
    x: int


@dataclass(frozen=True, slots=True)
class Slotted:
    x: int
    inner: Frozen | None = None


class Color(enum.Enum):
    RED = "r"


class Level(enum.IntEnum):
    LOW = 1


class Pair(NamedTuple):
    a: int


class State(TypedDict):
    point: Point
    slotted: Slotted
    color: Color


@dataclass
class Box:
    item: Any


REGISTRY = Registry.from_schemas(State)
BOXES = Registry.from_schemas(State, Box)


def there_and_back(value: Any, registry: Registry = REGISTRY) -> Any:
    return codec.loads(codec.dumps(value, registry), registry)


def stored_by(cls: type, value: Any, tag: str = "t") -> bytes:
    registry = Registry()
    registry.register(cls, tag=tag)
    return codec.dumps(value, registry)


# --- tags -------------------------------------------------------------------------------------------------------------


def test_unknown_tag_is_inert_shown_as_json_and_written_back_byte_for_byte() -> None:
    data = codec.dumps({"p": [Slotted(1, Frozen(2)), Color.RED, {1: b"x"}]}, REGISTRY)
    back = codec.loads(data)
    shown = back["p"][0]
    assert isinstance(shown, UnknownValue)
    assert shown.tag == f"{__name__}:Slotted"
    assert codec.to_json(shown) == {
        "tag": f"{__name__}:Slotted",
        "value": {"x": 1, "inner": {"tag": f"{__name__}:Frozen", "value": {"x": 2}}},
    }
    assert codec.dumps(back) == data
    assert codec.loads(codec.dumps(back), REGISTRY) == codec.loads(data, REGISTRY)
    assert codec.to_json(back) == {
        "p": [codec.to_json(shown), {"tag": f"{__name__}:Color", "value": "RED"}, {"1": "eA=="}]
    }


def test_unknown_values_are_counted_and_found_with_their_paths() -> None:
    data = codec.dumps({"items": [1, Point(1), Box(Frozen(1))], "k": {Frozen(2): 1}}, BOXES)
    before = codec.made[0]
    value = codec.loads(data, REGISTRY)
    assert codec.made[0] == before + 1
    assert list(codec.find_unknown(value)) == [("items[2]", value["items"][2])]
    value = codec.loads(data, Registry())
    assert [path for path, _ in codec.find_unknown(value, "state")] == [
        "state.items[1]",
        "state.items[2]",
        "state.k (key [<UnknownValue>])",
    ]
    boxed = codec.loads(codec.dumps(Box(Frozen(1)), BOXES), Registry.from_schemas(Box))
    assert [path for path, _ in codec.find_unknown([boxed])] == ["[0].item"]


def test_json_view_shows_fields_and_text() -> None:
    class Order(BaseModel):
        at: date
        size: Decimal

    value = {"o": Order(at=date(2024, 1, 1), size=Decimal("1.5")), "p": Frozen(1), "c": Color.RED, "t": (timedelta(1),)}
    assert codec.to_json(value) == {"o": {"at": "2024-01-01", "size": "1.5"}, "p": {"x": 1}, "c": "r", "t": [86400.0]}


def test_placeholder_made_by_hand_is_stored_like_any_unknown_value() -> None:
    made = UnknownValue("app:lost", "could not be stored")
    assert there_and_back(made) == made
    assert codec.to_json(made) == {"tag": "app:lost", "value": "could not be stored"}


def test_alias_reads_data_written_before_a_class_moved() -> None:
    registry = Registry()
    registry.register(Point, tag="new", aliases=["old:Point"])
    assert codec.loads(stored_by(Point, Point(3), "old:Point"), registry) == Point(3)
    assert b"new" in codec.dumps(Point(3), registry)


def test_class_of_a_script_is_read_when_the_script_is_imported_by_name() -> None:
    registry = Registry()
    registry.register(Point, tag="app:Point")
    assert codec.loads(stored_by(Point, Point(3), "__main__:Point"), registry) == Point(3)
    registry = Registry()
    registry.register(Point, tag="__main__:Point")
    assert codec.loads(stored_by(Point, Point(3), "app:Point"), registry) == Point(3)
    ambiguous = Registry()
    ambiguous.register(Point, tag="app:Point")
    ambiguous.register(Frozen, tag="other:Point")
    assert isinstance(codec.loads(stored_by(Point, Point(3), "__main__:Point"), ambiguous), UnknownValue)
    registry.register(Frozen, tag="other:Point")
    assert codec.loads(stored_by(Point, Point(3), "elsewhere:Point"), registry) == Point(3)
    assert isinstance(codec.loads(stored_by(Point, Point(3), "app:Other"), registry), UnknownValue)


def test_two_classes_with_one_tag_are_refused() -> None:
    registry = Registry()
    registry.register(Point, tag="same")
    registry.register(Point, tag="same")
    with pytest.raises(UsageError, match="'same' would name two classes"):
        registry.register(Frozen, tag="same")
    with pytest.raises(UsageError, match="would name two classes"):
        registry.register(Frozen, tag="other", aliases=["same"])


def test_tags_of_our_own_are_refused() -> None:
    for tag in ("wp.send", "lc.ai"):
        with pytest.raises(UsageError, match="Waitpoint's own"):
            Registry().register(Point, tag=tag)


def test_two_local_classes_of_one_name_in_one_graph_are_refused() -> None:
    def make() -> type:
        @dataclass
        class Local:
            x: int

        return Local

    first, second = make(), make()
    assert there_and_back(first(1), Registry.from_schemas(list[first])) == first(1)
    with pytest.raises(UsageError, match="would name two classes"):
        Registry.from_schemas(first, second)


def test_process_wide_registration_serves_every_graph_and_may_be_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    @codec.register
    class Anywhere:
        def __init__(self, x: int) -> None:
            self.x = x

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Anywhere) and other.x == self.x

        __hash__ = None  # type: ignore[assignment]

    codec.register(Anywhere, aliases=["older"])
    assert there_and_back(Anywhere(1)) == Anywhere(1)
    assert there_and_back(Anywhere(1), codec.PROCESS) == Anywhere(1)


def test_class_whose_process_wide_tag_means_another_class_in_the_graph_is_refused() -> None:
    @dataclass
    class Outer:
        x: int

    codec.register(Outer, tag="shadowed")
    registry = Registry(codec.PROCESS)
    registry.register(Point, tag="shadowed")
    with pytest.raises(UsageError, match="could not be read back"):
        codec.dumps(Outer(1), registry)


# --- registered classes of other kinds --------------------------------------------------------------------------------


class Text(str):
    __slots__ = ()


class Names(list):  # type: ignore[type-arg]
    pass


class Table(dict):  # type: ignore[type-arg]
    pass


class Size(int):
    pass


class Group(frozenset):  # type: ignore[type-arg]
    pass


class Bare:
    __slots__ = ("__hidden", "x")

    def __init__(self, x: int) -> None:
        self.x = x
        self.__hidden = x

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bare) and (self.x, self.__hidden) == (other.x, other.__hidden)

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("value", [Text("a"), Names([1]), Table(a=1), Size(3), Size(2**70), Group([1]), Bare(1)])
def test_registered_class_of_any_other_kind_comes_back(value: Any) -> None:
    registry = Registry()
    registry.register(type(value))
    back = there_and_back([value], registry)[0]
    assert type(back) is type(value)
    assert back == value


def test_attributes_of_a_derived_class_are_kept() -> None:
    registry = Registry()
    registry.register(Table)
    value = Table(a=1)
    value.owner = "ana"
    assert there_and_back(value, registry).owner == "ana"


def test_class_with_its_state_outside_python_cannot_be_registered() -> None:
    for cls in (re.Match, memoryview, type(iter([]))):
        with pytest.raises(UsageError, match="cannot be registered"):
            Registry().register(cls)
    with pytest.raises(UsageError, match="plain dicts"):
        Registry().register(State)  # type: ignore[type-var]


# --- what a schema leads to -------------------------------------------------------------------------------------------

UserId = NewType("UserId", Box)  # type: ignore[valid-newtype]
Alias = TypeAliasType("Alias", list[Slotted])
Bound = TypeVar("Bound", bound=Point)


def test_every_form_of_annotation_is_followed() -> None:
    def task(a: UserId, *more: Alias, b: Bound, c: Callable[[Color], Level]) -> dict[str, Pair]:
        raise NotImplementedError

    registry = Registry.from_schemas(task)
    for cls in (Box, Frozen, Slotted, Point, Color, Level, Pair):
        assert registry.tag_of(cls) == f"{__name__}:{cls.__qualname__}", cls
    assert registry.tag_of(State) is None


def test_class_that_refers_to_itself_ends() -> None:
    @dataclass
    class Node:
        children: list[Node]
        color: Color = Color.RED

    registry = Registry.from_schemas(Node)
    assert there_and_back(Node([Node([])]), registry) == Node([Node([])])
    assert registry.tag_of(Color) is not None


def test_annotation_that_raises_is_skipped_and_the_others_count() -> None:
    @dataclass
    class Odd:
        a: 1 / 0  # type: ignore[valid-type]
        b: Color

    assert Registry.from_schemas(Odd).tag_of(Color) is not None


# --- Waitpoint's own --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        records.Send("node", {"x": (1,)}, timeout=2.0),
        records.Command(update={"a": 1}, goto=["n"]),
        records.Command(resume=None),
        records.Interrupt({"q": 1}, "0" * 32, response_schema={"type": "object"}),
        records.Overwrite([1]),
        records.Answer(1, by="ana"),
        errors.NodeError("n", None),  # type: ignore[arg-type]
    ],
    ids=lambda v: type(v).__name__,
)
def test_own_records_are_known_everywhere(value: Any) -> None:
    assert there_and_back(value) == value
    assert f":{type(value).__qualname__}".encode() not in codec.dumps(value)


def test_no_answer_given_is_still_no_answer_after_storage() -> None:
    assert not there_and_back(records.Command(goto="n")).has_resume
    assert there_and_back(records.Command(resume=None)).has_resume


def test_own_errors_keep_what_they_carry() -> None:
    error = errors.AlreadyAnsweredError("who", interrupt_ids=["a"], answered_by="ana")
    back = there_and_back(error)
    assert type(back) is errors.AlreadyAnsweredError
    assert (str(back), back.answered_by, back.interrupt_ids) == ("who", "ana", ("a",))
