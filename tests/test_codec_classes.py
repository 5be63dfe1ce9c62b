"""Instances of declared classes survive storage, and changes of their classes."""

from __future__ import annotations

import enum
import functools
import re
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, Optional, TypedDict, TypeVar

import pydantic
import pytest
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, RootModel
from typing_extensions import TypeAliasType

from waitpoint import codec, errors, records
from waitpoint.codec import Registry, UnknownValue
from waitpoint.errors import UnknownTagError, UsageError

T = TypeVar("T")


@dataclass
class Point:
    x: int
    y: int = 0
    label: str = field(default_factory=str)


@dataclass(frozen=True)
class Frozen:
    x: int


@dataclass(frozen=True, slots=True)
class Slotted:
    x: int
    inner: Frozen | None = None


@dataclass
class Refuses:
    x: int

    def __post_init__(self) -> None:
        raise AssertionError("must not run on load")


@dataclass
class Counts:
    x: int
    doubled: int = field(init=False)

    def __post_init__(self) -> None:
        self.doubled = self.x * 2
        self.undeclared = "kept"

    @functools.cached_property
    def tripled(self) -> int:
        return self.x * 3


class Color(enum.Enum):
    RED = "r"
    GREEN = "g"


class Level(enum.IntEnum):
    LOW = 1


class Word(enum.StrEnum):
    YES = "yes"


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


class Pair(NamedTuple):
    a: int
    b: Any = None


OldPair = namedtuple("OldPair", "a b")  # noqa: PYI024 - both ways to make one are in use


class Inner(BaseModel):
    n: int


class Model(BaseModel):
    model_config = ConfigDict(extra="allow")

    n: int = Field(gt=0)
    inner: Inner | None = None
    tags: list[str] = Field(default_factory=list)
    _seen: int = PrivateAttr(default=0)

    @pydantic.field_validator("n")
    @classmethod
    def _even(cls, n: int) -> int:
        if n % 2:
            raise ValueError("odd")
        return n


class FrozenModel(BaseModel):
    model_config = ConfigDict(frozen=True)

    n: int


class Numbers(RootModel[list[int]]):
    pass


class Box(BaseModel, Generic[T]):
    item: T


@pydantic.dataclasses.dataclass
class Checked:
    n: int


class OrderError(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(f"code {code}")
        self.code = code


class Row(TypedDict, total=False):
    color: Color
    others: list[Row]


class State(TypedDict):
    point: Point
    frozen: Annotated[list[Frozen], "reducer"]
    slotted: Optional[Slotted]  # noqa: UP045 - both spellings are in use
    refuses: dict[str, Refuses]
    counts: tuple[Counts, ...]
    row: Row
    level: Level | Word
    rights: Literal[Rights.READ]
    pair: type[Pair] | OldPair
    model: Model
    frozen_model: FrozenModel
    numbers: Numbers
    box: Box[int]
    checked: Checked
    failed: OrderError
    broken: DoesNotExist  # type: ignore[name-defined]  # noqa: F821
    call: Callable[[int], int]


REGISTRY = Registry.from_schemas(State)


def model(n: int, **more: Any) -> Model:
    made = Model(n=n, **more)
    made._seen = 7
    return made


def refuses(x: int) -> Refuses:
    made = object.__new__(Refuses)
    made.x = x
    return made


INSTANCES = [
    *(Point(1), Point(1, 2, "p"), Frozen(1), Slotted(1, Frozen(2)), refuses(1), Counts(4), Checked(n=1)),
    *(Color.GREEN, Level.LOW, Word.YES, Rights.READ, Rights.READ | Rights.WRITE, Rights(0), Pair(1, (2,))),
    OldPair(1, 2),
    *(model(2), model(4, inner=Inner(n=1), unknown=[1]), FrozenModel(n=1), Numbers([1]), Box[int](item=1)),
]  # fmt: skip


def there_and_back(value: Any, registry: Registry = REGISTRY) -> Any:
    return codec.loads(codec.dumps(value, registry), registry)


@pytest.mark.parametrize("value", INSTANCES, ids=repr)
def test_instance_comes_back_equal_and_of_the_same_type(value: Any) -> None:
    back = there_and_back({"deep": [value, (value,)]})["deep"]
    assert type(back[0]) is type(value)
    assert back == [value, (value,)]
    assert codec.dumps(back[0], REGISTRY) == codec.dumps(value, REGISTRY)


def test_attributes_outside_the_fields_are_kept_but_not_what_was_cached() -> None:
    value = Counts(4)
    assert value.tripled == 12
    back = there_and_back(value)
    assert (back.doubled, back.undeclared) == (8, "kept")
    assert "tripled" not in vars(back)


def test_model_keeps_what_was_set_its_extra_fields_and_its_private_attributes() -> None:
    back = there_and_back(model(2, unknown=[1]))
    assert back.model_fields_set == {"n", "unknown"}
    assert back.model_extra == {"unknown": [1]}
    assert back._seen == 7
    assert list(back.__dict__) == ["n", "inner", "tags"]
    assert there_and_back(FrozenModel(n=1)).model_extra is None


def test_validators_do_not_run_on_load() -> None:
    value = Model.model_construct(n=3)
    assert there_and_back(value).n == 3


def test_exception_of_a_declared_class_keeps_arguments_and_attributes() -> None:
    back = there_and_back(OrderError(5))
    assert (type(back), back.args, back.code) == (OrderError, ("code 5",), 5)


def test_members_of_flags_and_enums_are_the_members_themselves() -> None:
    assert there_and_back(Color.RED) is Color.RED
    assert there_and_back([Level.LOW, Word.YES]) == [Level.LOW, Word.YES]
    assert type(there_and_back([Level.LOW])[0]) is Level


def test_keys_that_are_enums_stay_enums() -> None:
    back = there_and_back({Word.YES: 1, "yes2": 2})
    assert [type(key) for key in back] == [Word, str]


# --- the class has changed since --------------------------------------------------------------------------------------


def stored_by(cls: type, value: Any, tag: str = "t") -> bytes:
    registry = Registry()
    registry.register(cls, tag=tag)
    return codec.dumps(value, registry)


def read_as(cls: type, data: bytes, tag: str = "t") -> Any:
    registry = Registry()
    registry.register(cls, tag=tag)
    return codec.loads(data, registry)


def test_new_field_takes_its_default_and_a_lost_one_is_dropped() -> None:
    @dataclass
    class Later:
        x: int
        fresh: list[int] = field(default_factory=lambda: [1])
        limit: int = 5

    back = read_as(Later, stored_by(Point, Point(1, 2)))
    assert back == Later(1)
    assert vars(back) == {"x": 1, "fresh": [1], "limit": 5}


def test_new_field_without_default_leaves_the_value_inert_and_says_so() -> None:
    @dataclass
    class Later:
        x: int
        needed: int

    data = stored_by(Point, Point(1))
    back = read_as(Later, data)
    assert isinstance(back, UnknownValue)
    assert "'needed'" in back.reason
    assert codec.dumps(back) == data


def test_model_takes_defaults_drops_or_keeps_fields_as_its_settings_say() -> None:
    class Later(BaseModel):
        fresh: list[int] = [1]
        n: int
        seen: str = Field(default_factory=lambda data: f"n={data['n']}")
        _new: int = PrivateAttr(default=3)

    class Keeps(Later):
        model_config = ConfigDict(extra="allow")

    data = stored_by(Model, model(2, tags=["a"]))
    back = read_as(Later, data)
    assert (back.fresh, back.n, back.seen, back._new, back.model_fields_set) == ([1], 2, "n=2", 3, {"n"})
    assert list(back.__dict__) == ["fresh", "n", "seen"]
    assert read_as(Keeps, data).model_extra == {"tags": ["a"], "inner": None}
    back.fresh.append(2)
    assert read_as(Later, data).fresh == [1]


def test_stored_default_stays_when_the_class_gets_another_default() -> None:
    class Before(BaseModel):
        limit: int = 100

    class After(BaseModel):
        limit: int = 5

    assert read_as(After, stored_by(Before, Before())).limit == 100


def test_namedtuple_is_read_by_field_names() -> None:
    class Later(NamedTuple):
        fresh: int = 9
        a: int = 0

    assert read_as(Later, stored_by(Pair, Pair(1, 2))) == Later(9, 1)


def test_lost_enum_member_leaves_the_value_inert() -> None:
    class Later(enum.Enum):
        GREEN = "g"

    back = read_as(Later, stored_by(Color, Color.RED))
    assert isinstance(back, UnknownValue)
    assert "'RED'" in back.reason


# --- tags -------------------------------------------------------------------------------------------------------------


def test_unknown_tag_is_inert_shown_as_json_and_written_back_byte_for_byte() -> None:
    data = codec.dumps({"p": [Slotted(1, Frozen(2)), Color.RED, {1: b"x"}]}, REGISTRY)
    back = codec.loads(data)
    shown = back["p"][0]
    assert isinstance(shown, UnknownValue)
    assert shown.tag == f"{__name__}:Slotted"
    assert shown.to_json() == {
        "tag": f"{__name__}:Slotted",
        "value": {"x": 1, "inner": {"tag": f"{__name__}:Frozen", "value": {"x": 2}}},
    }
    assert codec.dumps(back) == data
    assert codec.loads(codec.dumps(back), REGISTRY) == codec.loads(data, REGISTRY)
    assert codec.to_json(back) == {"p": [shown.to_json(), {"tag": f"{__name__}:Color", "value": "RED"}, {"1": "eA=="}]}


def test_unknown_value_is_refused_where_it_is_needed_naming_path_tag_and_cure() -> None:
    registry = Registry()
    value = codec.loads(codec.dumps({"items": [1, Point(1)]}, REGISTRY), registry)
    with pytest.raises(UnknownTagError, match=re.escape("'state.items[1]'")) as caught:
        registry.require_known(value, "state")
    assert caught.value.tag == f"{__name__}:Point"
    assert caught.value.path == "state.items[1]"
    assert "waitpoint.codec.register" in str(caught.value)
    REGISTRY.require_known(value, "state")  # knows of no unknown value: does not look


def test_placeholder_made_by_hand_is_stored_like_any_unknown_value() -> None:
    made = UnknownValue("app:lost", "could not be stored")
    assert there_and_back(made) == made
    assert made.to_json() == {"tag": "app:lost", "value": "could not be stored"}


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

UserId = NewType("UserId", Frozen)  # type: ignore[valid-newtype]
Alias = TypeAliasType("Alias", list[Slotted])
Bound = TypeVar("Bound", bound=Point)


def test_every_form_of_annotation_is_followed() -> None:
    def task(a: UserId, *more: Alias, b: Bound, c: Callable[[Color], Level]) -> dict[str, Pair]:
        raise NotImplementedError

    registry = Registry.from_schemas(task)
    for cls in (Frozen, Slotted, Point, Color, Level, Pair):
        assert registry.tag_of(cls) == f"{__name__}:{cls.__qualname__}", cls
    assert registry.tag_of(Inner) is None


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
