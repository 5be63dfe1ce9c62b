"""Instances of declared classes survive storage, and changes of their classes."""

from __future__ import annotations

import enum
import functools
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Any, Generic, Literal, NamedTuple, Optional, TypedDict, TypeVar

import pydantic
import pytest
from pydantic import BaseModel, ConfigDict, Field, HttpUrl, PostgresDsn, PrivateAttr, RootModel

from waitpoint import codec
from waitpoint.codec import Registry, UnknownValue

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


def test_generic_dataclass_called_with_its_parameter_is_stored() -> None:
    @dataclass
    class Crate(Generic[T]):
        item: T

    registry = Registry.from_schemas(Crate[Color])
    assert there_and_back(Crate[Color](Color.RED), registry) == Crate(Color.RED)


def test_urls_and_times_that_pydantic_made_come_back() -> None:
    class Link(BaseModel):
        url: HttpUrl
        db: PostgresDsn
        at: datetime

    value = Link.model_validate(
        {"url": "https://example.com/a", "db": "postgres://u@h1,h2/d", "at": "2024-01-01T00:00:00+01:30"}
    )
    back = there_and_back(value, Registry.from_schemas(Link))
    assert back == value
    assert (type(back.url), type(back.db)) == (HttpUrl, PostgresDsn)
    assert back.at.utcoffset() == timedelta(hours=1, minutes=30)


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


def test_dataclass_that_is_an_exception_or_a_dict_keeps_both_sides() -> None:
    @dataclass
    class Failed(Exception):
        code: int

    @dataclass
    class Options(dict[str, int]):
        owner: str = ""

    registry = Registry.from_schemas(Failed, Options)
    back = there_and_back(Failed(5), registry)
    assert (type(back), back.code, back.args) == (Failed, 5, (5,))
    options = Options("ana")
    options["a"] = 1
    back = there_and_back(options, registry)
    assert (type(back), dict(back), back.owner) == (Options, {"a": 1}, "ana")


def test_members_of_flags_and_enums_are_the_members_themselves() -> None:
    assert there_and_back(Color.RED) is Color.RED
    assert there_and_back([Level.LOW, Word.YES]) == [Level.LOW, Word.YES]
    assert type(there_and_back([Level.LOW])[0]) is Level


def test_keys_that_are_enums_stay_enums() -> None:
    back = there_and_back({Word.YES: 1, "yes2": 2})
    assert [type(key) for key in back] == [Word, str]


def test_exception_with_its_own_initialiser_keeps_its_arguments() -> None:
    class NetworkError(OSError):
        def __init__(self, host: str) -> None:
            super().__init__(f"no route to {host}")

    back = there_and_back(NetworkError("a"), Registry.from_schemas(NetworkError))
    assert (type(back), back.args) == (NetworkError, ("no route to a",))


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


def test_slot_that_is_gone_is_dropped() -> None:
    class Before:
        __slots__ = ("gone", "x")

    class After:
        __slots__ = ("x",)

    value = Before()
    value.x, value.gone = 1, 2
    assert read_as(After, stored_by(Before, value)).x == 1


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
