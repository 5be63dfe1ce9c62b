"""What cannot be stored is refused at once, with the place, the reason and the cure."""

from __future__ import annotations

import asyncio
import io
import re
import threading
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any

import ormsgpack
import pytest
from pydantic import BaseModel, PrivateAttr, SecretStr

from waitpoint import codec
from waitpoint.codec import limits
from waitpoint.errors import UnstorableValueError, UsageError


@dataclass
class Item:
    lock: Any
    name: str = ""


class Holder(BaseModel):
    model_config = {"arbitrary_types_allowed": True}

    lock: Any = None
    _private: Any = PrivateAttr(default=None)


class Unregistered:
    def __init__(self) -> None:
        self.x = 1


class Text(str):
    __slots__ = ()


class Zone(tzinfo):
    pass


REGISTRY = codec.Registry.from_schemas(Item, Holder)


def refusal(value: Any, path: str = "state") -> UnstorableValueError:
    with pytest.raises(UnstorableValueError) as caught:
        codec.dumps(value, REGISTRY, path=path)
    assert isinstance(caught.value, UsageError)
    assert isinstance(caught.value, TypeError)
    assert repr(caught.value.path) in str(caught.value)
    return caught.value


def private() -> Holder:
    made = Holder()
    made._private = threading.Lock()
    return made


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"items": [1, 2, 3, {"lock": threading.Lock()}]}, "state.items[3].lock"),
        ({"items": (1, Item(threading.Lock()))}, "state.items[1].lock"),
        ({"a b": {1: {"x": threading.Lock()}}}, "state['a b'][1].x"),
        ([Holder(lock=threading.Lock())], "state[0].lock"),
        ([private()], "state[0]._private"),
        ({"e": ValueError("x", threading.Lock())}, "state.e.args[1]"),
        ({"t": datetime(2024, 1, 1, tzinfo=Zone())}, "state.t.tzinfo"),
        ({"d": defaultdict(lambda: 1)}, "state.d.default_factory"),
        ({Text("k"): 1}, "state (key k)"),
        (threading.Lock(), "state"),
        ({"m": memoryview(b"x")}, "state.m"),
        ({"b": [b"x", memoryview(b"x")]}, "state.b[1]"),
        ({1: ormsgpack.Ext(4, b"\x90")}, "state[1]"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_refusal_names_the_path_of_the_culprit(value: Any, path: str) -> None:
    assert refusal(value).path == path


def test_unknown_class_is_refused_with_the_line_to_add() -> None:
    error = refusal({"x": Unregistered()})
    assert "waitpoint.codec.register(Unregistered)" in str(error)
    assert "declare it in the schema" in str(error)
    assert error.type_name == f"{__name__}.Unregistered"
    assert "waitpoint.codec.register(SecretStr)" in str(refusal(SecretStr("hunter2")))


@pytest.mark.parametrize(
    "value",
    [
        threading.Lock(),
        lambda: 1,
        len,
        threading,
        (n for n in [1]),
        io.StringIO(),
        Unregistered,
        "".join,
        asyncio.Event,
    ],
    ids=lambda v: type(v).__name__,
)
def test_live_object_is_refused_as_one_that_belongs_outside_the_state(value: Any) -> None:
    error = refusal({"x": value})
    assert "live object" in str(error)
    assert "outside the state" in str(error)
    assert "register(" not in str(error)


@pytest.mark.parametrize("cls", [str, int, float, bytes, list, dict, tuple, set, frozenset, bytearray])
def test_derived_class_of_a_plain_type_is_refused_and_not_flattened(cls: type) -> None:
    derived = type("Derived", (cls,), {})
    for value in (derived(), [derived()], {"x": (derived(),)}, {1: derived()}):
        assert refusal(value).type_name.endswith("Derived")
    assert f"derived from {cls.__name__!r}" in str(refusal(derived())) or cls is bytearray


def test_refusal_never_shows_the_value() -> None:
    error = refusal({"password": [Text("hunter2")], "other": "hunter2"})
    assert "hunter2" not in str(error)


def test_value_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append({"again": loop})
    assert refusal(loop).path == "state[0].again"
    item = Item(None)
    item.lock = (item,)
    assert "contains itself" in str(refusal(item))


def test_what_nests_too_deep_is_refused_when_written() -> None:
    value: Any = 1
    for _ in range(limits.MAX_LEVELS + 5):
        value = (value,)
    assert "nests too deep" in str(refusal(value))
    for _ in range(300):
        value = [value]
    refusal(value)


def test_whatever_is_written_can_be_read() -> None:
    def nested(levels: int, lists: int) -> Any:
        value: Any = 1
        for _ in range(levels):
            value = (value,)
            for _ in range(lists):
                value = [value]
        return value

    for levels, lists in [(1, 250), (4, 240), (90, 1), (90, 3), (90, 5), (30, 20), (8, 100), (5, 200)]:
        value = nested(levels, lists)
        try:
            data = codec.dumps(value)
        except UnstorableValueError:
            continue
        assert codec.dumps(codec.loads(data)) == data
    assert codec.loads(codec.dumps(nested(90, 1))) == nested(90, 1)


def test_value_beyond_the_size_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("waitpoint.codec.wire.MAX_BYTES", 1000)
    assert "1003 bytes" in str(refusal("x" * 1000))


def test_property_that_raises_is_reported_with_its_cause() -> None:
    @dataclass
    class Broken:
        x: int

        @property  # type: ignore[no-redef]
        def x(self) -> int:
            raise RuntimeError("boom")

        @x.setter
        def x(self, value: int) -> None:
            pass

    registry = codec.Registry.from_schemas(Broken)
    with pytest.raises(UnstorableValueError) as caught:
        codec.dumps([Broken(1)], registry)
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_interruption_from_the_keyboard_is_not_lost() -> None:
    def interrupted(*_: Any) -> Any:
        """Stands for Ctrl-C at the moment a hook runs."""
        raise KeyboardInterrupt

    registry = codec.Registry()
    registry.register(Item, tag="t")
    data = codec.dumps([Item(1)], registry)
    registry._readers["t"] = interrupted
    with pytest.raises(KeyboardInterrupt):
        codec.loads(data, registry)
    once = [KeyboardInterrupt()]

    def interrupted_once(item: Item) -> tuple[int, Any]:
        if once:
            raise once.pop()
        return codec.Kind.TUPLE, []

    registry.packer._encoders[Item] = interrupted_once
    with pytest.raises(KeyboardInterrupt):
        codec.dumps([Item(1)], registry)
    assert codec.loads(codec.dumps([Item(1)], registry), registry) == [()]


def test_threads_share_a_registry() -> None:
    value = {"items": [Item(("x" * 1000, n)) for n in range(20)]}
    wrong: list[object] = []

    def work() -> None:
        backs = (codec.loads(codec.dumps(value, REGISTRY), REGISTRY) for _ in range(20))
        wrong.extend(back for back in backs if back != value)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_plain_key_path_reads_like_code() -> None:
    assert re.fullmatch(r"state\.a\[0\]\['b c'\]", refusal({"a": [{"b c": Text("x")}]}).path)
