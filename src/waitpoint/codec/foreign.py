"""Types that pydantic makes of validated text: URLs and time zones.

They are stored as text and made again from it. pydantic is imported only to read a URL.
"""

from __future__ import annotations

from typing import Any, Final

from waitpoint.codec import natives
from waitpoint.codec.classes import Form
from waitpoint.codec.natives import Encoder, Kind

TAG: Final = "pydantic.url"

# The classes that this may be; the list is closed, since bytes must not choose among all names of a module.
_URLS: Final = frozenset({
    "AmqpDsn", "AnyHttpUrl", "AnyUrl", "AnyWebsocketUrl", "ClickHouseDsn", "CockroachDsn", "FileUrl", "FtpUrl",
    "HttpUrl", "KafkaDsn", "MariaDBDsn", "MongoDsn", "MySQLDsn", "NatsDsn", "PostgresDsn", "RedisDsn", "SnowflakeDsn",
    "WebsocketUrl",
})  # fmt: skip


def encoder_of(cls: type) -> Encoder | None:
    """Return how values of this class are taken apart, if it is one of these types."""
    if encoder := natives.seldom(cls):
        return encoder
    if cls.__module__ == "pydantic.networks" and cls.__name__ in _URLS:
        return _encode_url
    if cls.__module__.startswith("pydantic_core.") and cls.__name__ == "TzInfo":
        return natives.fixed_offset
    return None


def _encode_url(value: Any) -> tuple[int, Any]:
    return Kind.TAGGED, [TAG, type(value).__name__, str(value)]


def _read_url(payload: list[Any], _: bytes) -> Any:
    from pydantic import networks

    _tag, name, text = payload
    if name not in _URLS:
        message = "it holds a URL of an unknown class"
        raise ValueError(message)
    return getattr(networks, name)(text)


URL: Final = Form(_encode_url, _read_url)
