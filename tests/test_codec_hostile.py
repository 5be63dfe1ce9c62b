"""Bytes that nobody wrote: reading them ends in a StoreError, never in code, a crash or exhausted memory."""

from __future__ import annotations

import contextlib
import struct
import subprocess
import sys
import time
from typing import Any

import ormsgpack
import pytest
import zstandard
from hypothesis import example, given
from hypothesis import strategies as st

from waitpoint import codec
from waitpoint.codec import Kind, limits
from waitpoint.errors import StoreError
from waitpoint.records import Send


def ext(kind: int, payload: bytes) -> bytes:
    return b"\xc9" + struct.pack(">IB", len(payload), kind) + payload


def plain(packed: bytes) -> bytes:
    return b"\x01\x00" + packed


def refused(data: bytes) -> str:
    with pytest.raises(StoreError) as caught:
        codec.loads(data)
    return str(caught.value)


@pytest.mark.parametrize(
    "data", [b"", b"\x01", b"\x00\x00\xc0", b"\x02\x00\xc0", b"\x01\x02\xc0", b"\x01\x00", b"\x01\x01"]
)
def test_header_that_is_cut_off_or_of_another_version_is_refused(data: bytes) -> None:
    refused(data)


def test_newer_form_is_refused_by_its_number() -> None:
    assert "form 2.0" in refused(b"\x02\x00\xc0")


@pytest.mark.parametrize("kind", [0, 99, 127, 128, 200, 255])
def test_kind_that_does_not_exist_is_refused(kind: int) -> None:
    refused(plain(ext(kind, b"\xc0")))


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (Kind.TAGGED, 5),
        (Kind.TAGGED, []),
        (Kind.TAGGED, [5]),
        (Kind.TAGGED, ["wp.send"]),
        (Kind.TAGGED, ["wp.send", 5]),
        (Kind.TAGGED, ["wp.send", {}, 5]),
        (Kind.TAGGED, ["lc.ai", []]),
        (Kind.TAGGED, ["lc.ai", {"content": "x"}, 5]),
        (Kind.TAGGED, ["lc.ai", {"content": "x"}, {}, 5]),
        (Kind.BIG_INT, "x"),
        (Kind.BYTEARRAY, 10**12),
        (Kind.DEFAULTDICT, ["eval", []]),
        (Kind.EXCEPTION, ["eval", ["1"], {}]),
        (Kind.EXCEPTION, ["ValueError", 5, {}]),
        (Kind.FRACTION, ["1e9999999", "1"]),
        (Kind.FRACTION, [1, 0]),
        (Kind.PAIRS, [1]),
        (Kind.PAIRS, [[], 1]),
        (Kind.SET, [[]]),
        (Kind.PATTERN, ["(", 0]),
        (Kind.ZONEINFO, "../../etc/passwd"),
        (Kind.PATH, ["os", "posix", "x"]),
        (Kind.IP, ["IPv4Address", "x"]),
        (Kind.DATETIME, "yesterday"),
    ],
)
def test_payload_that_contradicts_its_kind_never_escapes_as_another_error(kind: int, payload: Any) -> None:
    data = plain(ext(kind, ormsgpack.packb(payload)))
    try:
        back = codec.loads(data)
    except StoreError:
        return
    assert isinstance(back, (codec.UnknownValue, Send)) or type(back).__name__ == "AIMessage"


def test_kind_below_zero_does_not_count_from_the_end_of_the_table() -> None:
    refused(plain(ext(255, ormsgpack.packb([None, []]))))


def test_number_in_place_of_bytes_reserves_no_memory() -> None:
    refused(plain(ext(Kind.BYTEARRAY, ormsgpack.packb(1000))))


def test_tag_that_names_code_is_only_an_unknown_value() -> None:
    for tag in ("os:system", "builtins:eval", "subprocess:Popen", "waitpoint.codec:Registry"):
        back = codec.loads(plain(ext(Kind.TAGGED, ormsgpack.packb([tag, "echo"]))))
        assert isinstance(back, codec.UnknownValue)
        assert codec.to_json(back) == {"tag": tag, "value": "echo"}


SAMPLE = codec.dumps({"a": [1, (2.5, "x"), {3: b"y"}], "s": Send("n", {"deep": ({1}, None)}), "t": "long " * 200})
SMALL = codec.dumps({"a": [1, (2.5, "x"), {3: b"y"}], "s": Send("n", {"deep": ({1}, None)})})


@given(st.binary(max_size=200))
def test_random_bytes_are_refused_or_read(data: bytes) -> None:
    for start in (b"", b"\x01\x00", b"\x01\x01"):
        with contextlib.suppress(StoreError):
            codec.loads(start + data)


@given(st.data())
def test_changed_bytes_are_refused_or_read(data: st.DataObject) -> None:
    for sample in (SMALL, SAMPLE):
        changed = bytearray(sample)
        for _ in range(data.draw(st.integers(1, 4))):
            changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
        with contextlib.suppress(StoreError):
            codec.loads(bytes(changed))


def test_every_truncation_is_refused() -> None:
    for sample in (SMALL, SAMPLE):
        for length in range(len(sample)):
            refused(sample[:length])


def test_compressed_bomb_is_refused_by_its_announced_size() -> None:
    packed = zstandard.ZstdCompressor().compress(b"\x00" * (limits.MAX_BYTES + 1))
    assert len(packed) < 100_000
    assert "limit" in refused(b"\x01\x01" + packed)


def test_compressed_bomb_that_hides_its_size_is_refused() -> None:
    stream = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    packed = stream.compress(b"\x00" * 10**7) + stream.flush()
    assert "size is unknown" in refused(b"\x01\x01" + packed)


@pytest.mark.parametrize("packed", [b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff"])
def test_length_that_the_bytes_do_not_have_reserves_nothing(packed: bytes) -> None:
    refused(plain(packed))
    refused(plain(ext(Kind.TUPLE, packed)))


# --- nesting ----------------------------------------------------------------------------------------------------------


def nested(levels: int, lists: int) -> bytes:
    packed = b"\xc0"
    for _ in range(levels):
        packed = b"\x91" * lists + ext(Kind.TUPLE, b"\x91" + packed)
    return plain(packed)


def test_deep_nesting_does_not_end_the_process() -> None:
    code = (
        "import sys\nfrom waitpoint import codec\nfrom waitpoint.errors import StoreError\n"
        "for line in sys.stdin:\n"
        "    try: codec.loads(bytes.fromhex(line))\n"
        "    except StoreError as error: print('refused')\n"
        "    else: print('read')\n"
    )
    cases = [nested(1, 1000), nested(4, 1000), nested(5, 1000), nested(60, 1000), nested(99, 1000), nested(200, 0)]
    lines = "\n".join(case.hex() for case in cases)
    done = subprocess.run([sys.executable, "-c", code], input=lines, capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, f"ended by signal {-done.returncode}"
    assert done.stdout.split() == ["read", "read", "refused", "refused", "refused", "refused"]


def test_nesting_is_counted_through_every_form_of_container() -> None:
    def deep(opener: bytes, closer: bytes = b"") -> bytes:
        return opener * 500 + b"\xc0" + closer

    assert limits.too_deep(deep(b"\x91"))
    assert limits.too_deep(deep(b"\x81\xa1k"))
    assert limits.too_deep(deep(b"\xdc\x00\x01"))
    assert limits.too_deep(deep(b"\xdd\x00\x00\x00\x01"))
    assert limits.too_deep(deep(b"\xde\x00\x01\xa1k"))
    assert limits.too_deep(deep(b"\xdf\x00\x00\x00\x01\xa1k"))
    assert limits.too_deep(deep(b"\x92\xc0"))
    packed = b"\xc0"
    for _ in range(500):
        packed = ext(Kind.TUPLE, packed)
    assert limits.too_deep(packed)
    assert not limits.too_deep(b"\x91" * 400 + b"\xc0")


def test_wide_data_is_not_taken_for_deep() -> None:
    assert not limits.too_deep(
        ormsgpack.packb([[{"k": [n]}, "text", b"\x91" * 50, 1.5, -n, n * 10**9] for n in range(500)])
    )
    wide = ext(Kind.TUPLE, b"\x91\xc0") * 1000
    assert not limits.too_deep(b"\xdc" + struct.pack(">H", 1000) + wide)


def test_nesting_cannot_hide_behind_bytes_that_are_not_read() -> None:
    """An extension's payload ends with its value; what follows in there must not swallow what comes after it."""
    hidden = ext(Kind.TUPLE, b"\xc0" + b"\xc6\x00\xff\xff\xff")
    assert limits.too_deep(b"\x92" + hidden + b"\x91" * 1000 + b"\xc0")
    assert limits.too_deep(b"\x93" + b"\xd4\x05\xc0" + b"\xc0" + b"\x91" * 1000 + b"\xc0")


def native_depth(value: Any) -> int:
    if isinstance(value, list):
        return 1 + max(map(native_depth, value), default=0)
    if isinstance(value, dict):
        return 1 + max(map(native_depth, value.values()), default=0)
    return 0


trees = st.recursive(
    st.none() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, min_size=1, max_size=20) | st.dictionaries(st.text(), inner, min_size=1),
    max_leaves=40,
)


@given(trees)
@example([b"x" * 70_000, "y" * 70_000, "z" * 300, b"w" * 300, [[1]] * 70_000])
def test_counted_depth_is_the_depth(tree: Any) -> None:
    packed = ormsgpack.packb(tree)
    depth = native_depth(tree)
    assert limits._depth(packed, 1000) == depth
    assert limits._depth(packed, depth - 1) == depth if depth else True


@given(st.binary(max_size=300))
def test_counting_ends_on_any_bytes(data: bytes) -> None:
    limits._depth(b"\xc7" * 20 + data, 100)
    limits._depth(data, 100)


def test_counting_takes_time_in_proportion_to_the_bytes() -> None:
    data = ormsgpack.packb([[n, "x"] for n in range(20_000)])
    began = time.process_time()
    assert not limits.too_deep(data)
    assert time.process_time() - began < 2
