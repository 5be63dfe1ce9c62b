"""Values to bytes and back.

A stored value is one byte for the version of the form, one for its flags (0 plain, 1 compressed with zstd), then
MessagePack. See docs/decisions/0002-codec.md.
"""

from __future__ import annotations

import threading
from typing import Any, Final

import ormsgpack

from waitpoint.codec import careful, hooks
from waitpoint.codec.culprit import refusal, too_large
from waitpoint.codec.limits import MAX_BYTES
from waitpoint.codec.registry import PROCESS, Registry
from waitpoint.errors import StoreError, UnstorableValueError

_VERSION: Final = 1
_PLAIN: Final = bytes([_VERSION, 0])
_ZSTD: Final = bytes([_VERSION, 1])
_WORTH_COMPRESSING: Final = 400
_LEVEL: Final = 3


class _Zstd(threading.local):
    """Compressor and decompressor of this thread: making one costs more than using it, sharing one is not safe."""

    def __init__(self) -> None:
        import zstandard

        self.compress = zstandard.ZstdCompressor(level=_LEVEL).compress
        self.decompress = zstandard.ZstdDecompressor().decompress
        self.size_of = zstandard.frame_content_size


_zstd: _Zstd | None = None


def _compression() -> _Zstd:
    global _zstd  # noqa: PLW0603 - made when first needed, since zstandard is loaded only then
    if _zstd is None:
        _zstd = _Zstd()
    return _zstd


def dumps(value: Any, registry: Registry | None = None, *, path: str = "") -> bytes:
    """Return the bytes of a value.

    `path` names the value in errors. Raises UnstorableValueError, with the path of the culprit, for a value whose type
    a fresh process could not know.
    """
    registry = registry or PROCESS
    try:
        data = hooks.pack(value, registry.packer)
    except TypeError:
        data = _pack_carefully(value, registry, path)
    if len(data) <= _WORTH_COMPRESSING:
        return _PLAIN + data
    if len(data) > MAX_BYTES:
        raise too_large(value, path, len(data))
    return _framed(data)


def dumps_plain(value: Any) -> bytes:
    """Return the bytes of data of our own making: text, bytes, small numbers, lists, and dicts with text for keys.

    Tuples come back as lists. Several times as fast as `dumps`, which has to look for what could not be stored.
    """
    try:
        data = ormsgpack.packb(value)
    except TypeError:  # text that UTF-8 cannot carry
        return dumps(value)
    return _framed(data) if len(data) > _WORTH_COMPRESSING else _PLAIN + data


def _framed(data: bytes) -> bytes:
    """Put version and flags in front of packed data; what is long is compressed if that makes it shorter."""
    compressed = (_zstd or _compression()).compress(data)
    return _ZSTD + compressed if len(compressed) < len(data) else _PLAIN + data


def _pack_carefully(value: Any, registry: Registry, path: str) -> bytes:
    _reraise_interruption(hooks.take_raised())
    try:
        return careful.pack(value, registry.packer)
    except Exception as error:  # noqa: BLE001 - fields may be properties that raise anything
        _reraise_interruption(hooks.take_raised())
        cause = None if type(error) is UnstorableValueError else error
        raise refusal(value, path, lambda cls: registry.packer.encoder_for(cls) is not None, error) from cause


def _reraise_interruption(error: BaseException | None) -> None:
    """Let Ctrl-C out: a library that calls back drops it."""
    if error is not None and not isinstance(error, Exception):
        raise error


def loads(data: bytes, registry: Registry | None = None) -> Any:
    """Return the value that these bytes stand for.

    A value of an unknown type comes back as an `UnknownValue`. Raises StoreError for bytes that are not a stored value.
    """
    registry = registry or PROCESS
    try:
        version, flags = data[0], data[1]
    except IndexError:
        raise StoreError("a stored value cannot be read - it is empty or cut off - restore it from a backup") from None
    if version != _VERSION or flags > 1:
        raise StoreError(
            f"a stored value cannot be read - it is in form {version}.{flags}, this release knows 1.0 and 1.1 - "
            "use the release that wrote it, or a later one"
        )
    try:
        packed = _decompress(data) if flags else memoryview(data)[2:]
        return ormsgpack.unpackb(packed, ext_hook=registry.unpacker)
    except Exception as error:  # noqa: BLE001 - hostile bytes may raise anything
        cause = hooks.take_raised() or error
        _reraise_interruption(cause)
        raise StoreError(f"a stored value cannot be read - {cause} - restore it from a backup") from cause


def _decompress(data: bytes) -> bytes:
    zstd = _zstd or _compression()
    packed = data[2:]
    size = zstd.size_of(packed)
    if not 0 <= size <= MAX_BYTES:
        raise StoreError("its size is unknown or beyond the limit")
    return zstd.decompress(packed)
