"""The port of caches: results by namespace and key, each for as long as it may be used.

Rule: what a cache loses is computed again, so it may lose anything; what it returns is what was put, never a guess.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

from waitpoint import codec
from waitpoint.checkpoint.base import offload
from waitpoint.errors import ConfigError, UnstorableValueError
from waitpoint.records import CachePolicy

ValueT = TypeVar("ValueT")
Namespace = tuple[str, ...]
FullKey = tuple[Namespace, str]


class BaseCache(ABC, Generic[ValueT]):
    """What a cache does. Safe to call from several threads at once.

    `blocking` tells whether calls may wait for a disk or another machine, and so belong in a worker thread.
    """

    blocking: bool = True

    @abstractmethod
    def get(self, keys: Sequence[FullKey]) -> dict[FullKey, ValueT]:
        """Return what is cached under these keys; those that are missing or expired are left out."""

    @abstractmethod
    def set(self, pairs: Mapping[FullKey, tuple[ValueT, float | None]]) -> None:
        """Cache values, each with the seconds it may be used, or None for no end."""

    @abstractmethod
    def clear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        """Forget what is cached in these namespaces, or everything."""

    async def aget(self, keys: Sequence[FullKey]) -> dict[FullKey, ValueT]:
        """Do what `get` does, from an event loop."""
        found: dict[FullKey, ValueT] = await offload(self, self.get, keys)
        return found

    async def aset(self, pairs: Mapping[FullKey, tuple[ValueT, float | None]]) -> None:
        """Do what `set` does, from an event loop."""
        await offload(self, self.set, pairs)

    async def aclear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        """Do what `clear` does, from an event loop."""
        await offload(self, self.clear, namespaces)


def key_of(
    policy: CachePolicy,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    what: str,
    registry: codec.Registry | None = None,
) -> str:
    """Return the key of a call's result. `what` names the node or task in errors.

    Raises `ConfigError` for arguments that cannot be told from others: only what can be stored can be compared for sure.
    """
    if policy.key_func is None:
        try:
            codec.dumps([list(args), dict(kwargs)], registry)
        except UnstorableValueError as error:
            raise ConfigError(
                f"Cannot tell whether {what} was called with this before, since its input is of a type that cannot be "
                f"compared ({error}); give CachePolicy(key_func=...) what makes inputs equal"
            ) from error
        return codec.args_digest(args, kwargs, registry)
    key = policy.key_func(*args, **kwargs)
    if not isinstance(key, str | bytes):
        raise ConfigError(
            f"The key_func of the cache policy of {what} returned a {type(key).__name__}; return a text or bytes"
        )
    return hashlib.sha256(key.encode("utf-8", "surrogatepass") if isinstance(key, str) else key).hexdigest()


def seconds(ttl: Any) -> float | None:
    """Return a time to live if it is one. Raises `ConfigError`."""
    if ttl is not None and (isinstance(ttl, bool) or not isinstance(ttl, int | float) or not ttl > 0):
        raise ConfigError(f"`ttl` is {ttl!r}; give seconds greater than 0, or None to keep it until it is cleared")
    return ttl
