"""Caches results in Redis, for programs on several machines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from waitpoint import codec
from waitpoint.cache.base import BaseCache, FullKey, Namespace, ValueT, seconds
from waitpoint.errors import ConfigError, MissingPackageError, StoreError

if TYPE_CHECKING:
    import redis as client

_AT_ONCE = 500  # keys in one command


class RedisCache(BaseCache[ValueT]):
    """Caches in Redis: Redis itself forgets what has expired.

    `redis` is a client (`redis.Redis`, not the one for asyncio: calls go to a worker thread there). `prefix` begins all
    keys; whatever lies under another prefix is left alone.
    """

    def __init__(self, redis: client.Redis, *, prefix: str = "waitpoint:cache:") -> None:
        if hasattr(redis, "aclose"):
            raise ConfigError(
                "A RedisCache was given a client for asyncio, and its calls would be awaited by nobody; give it a "
                "redis.Redis, which under asyncio is called in a worker thread"
            )
        if redis.get_encoder().decode_responses:
            raise ConfigError(
                "A RedisCache was given a client that decodes what it reads as text, and results are bytes; make it without "
                "decode_responses=True"
            )
        self._redis = redis
        self._prefix = prefix

    @classmethod
    def from_url(cls, url: str, *, prefix: str = "waitpoint:cache:") -> Self:
        """Return a cache for an address such as "redis://localhost:6379/0"."""
        try:
            import redis as client
        except ImportError as error:
            raise MissingPackageError(
                "A RedisCache needs the package 'redis', which is not installed; pip install 'waitpoint[redis]'",
                package="redis",
            ) from error
        return cls(client.Redis.from_url(url), prefix=prefix)

    def get(self, keys: Sequence[FullKey]) -> dict[FullKey, ValueT]:
        """Return what is cached under these keys; those that are missing or expired are left out."""
        wanted = [(tuple(ns), key) for ns, key in keys]
        if not wanted:
            return {}
        found: Any = self._call(self._redis.mget, [self._name(ns, key) for ns, key in wanted])
        return {full: codec.loads(data) for full, data in zip(wanted, found, strict=True) if data is not None}

    def set(self, pairs: Mapping[FullKey, tuple[ValueT, float | None]]) -> None:
        """Cache values, each with the seconds it may be used, or None for no end."""
        if not pairs:
            return
        pipe = self._redis.pipeline(transaction=False)
        for (ns, key), (value, ttl) in pairs.items():
            ends = None if seconds(ttl) is None else max(1, round((ttl or 0) * 1000))
            pipe.set(self._name(ns, key), codec.dumps(value), px=ends)
        self._call(pipe.execute)

    def clear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        """Forget what is cached in these namespaces, or everything."""
        starts = [self._prefix] if namespaces is None else [self._name(ns, "") for ns in namespaces]
        for start in starts:
            # A name holds no character of a pattern but those of the prefix.
            pattern = re.sub(r"([\[\]*?\\^-])", r"\\\1", start) + "*"
            names: list[bytes] = self._call(self._scanned, pattern)
            below = len(start.encode())
            found = names if namespaces is None else [name for name in names if b":" not in name[below:]]
            for first in range(0, len(found), _AT_ONCE):
                self._call(self._redis.delete, *found[first : first + _AT_ONCE])

    def close(self) -> None:
        """Close the connections to the server."""
        self._redis.close()

    def _scanned(self, pattern: str) -> list[bytes]:
        return list(self._redis.scan_iter(match=pattern, count=_AT_ONCE))

    def _name(self, ns: Iterable[str], key: str) -> str:
        """Return the name of an entry: the labels and the key, with ':' between them and in none of them."""
        return self._prefix + ":".join([*map(_plain, ns), _plain(key)])

    def _call(self, call: Any, *args: Any) -> Any:
        import redis as client

        try:
            return call(*args)
        except client.RedisError as error:
            raise StoreError(
                f"the cache in Redis cannot be used - {error}; check that the server runs and that its address is right"
            ) from error


def _plain(label: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.]", lambda found: f"%{ord(found[0]):x};", label)
