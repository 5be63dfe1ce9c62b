"""The port of stores: items by namespace and key, for all threads, found again by where they lie or what they mean.

Rule: an item is a dict of its own, copied in and copied out. A batch reads the store as it was before its writes, and
its writes happen together or not at all. An item that has expired is not there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, Final, Literal, NamedTuple, TypedDict, cast

from waitpoint.config import check_count
from waitpoint.errors import ConfigError, UsageError

NamespacePath = tuple[str, ...]
NamespaceMatchType = Literal["prefix", "suffix"]

Embed = Callable[[Sequence[str]], list[list[float]]] | Callable[[Sequence[str]], Awaitable[list[list[float]]]]


class NotProvided:
    """Stands for an argument that was left out, where None means something."""

    def __bool__(self) -> Literal[False]:
        return False

    def __repr__(self) -> str:
        return "NOT_GIVEN"


NOT_PROVIDED: Final = NotProvided()


class Item:
    """A stored item. `value` is a dict; times are aware datetimes in UTC."""

    __slots__ = ("created_at", "key", "namespace", "updated_at", "value")

    def __init__(
        self,
        *,
        value: dict[str, Any],
        key: str,
        namespace: tuple[str, ...],
        created_at: datetime | str,
        updated_at: datetime | str,
    ) -> None:
        self.value = value
        self.key = key
        self.namespace = tuple(namespace)
        self.created_at = datetime.fromisoformat(created_at) if isinstance(created_at, str) else created_at
        self.updated_at = datetime.fromisoformat(updated_at) if isinstance(updated_at, str) else updated_at

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Item):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in Item.__slots__)

    def __hash__(self) -> int:
        return hash((self.namespace, self.key))

    def dict(self) -> dict[str, Any]:
        """Return it as a dict that JSON can hold, if JSON can hold the value."""
        return {
            "namespace": list(self.namespace),
            "key": self.key,
            "value": self.value,
            "created_at": self.created_at.isoformat(),
            "updated_at": self.updated_at.isoformat(),
        }

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.dict().items())})"


class SearchItem(Item):
    """An item that a search found. `score`: how near it is to the query, 1 the same; None if it was not compared."""

    __slots__ = ("score",)

    def __init__(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: dict[str, Any],
        created_at: datetime,
        updated_at: datetime,
        score: float | None = None,
    ) -> None:
        super().__init__(value=value, key=key, namespace=namespace, created_at=created_at, updated_at=updated_at)
        self.score = score

    def dict(self) -> dict[str, Any]:
        """Return it as a dict that JSON can hold, if JSON can hold the value."""
        return {**super().dict(), "score": self.score}


# --- operations -------------------------------------------------------------------------------------------------------


class GetOp(NamedTuple):
    """Read one item. Its result is an `Item` or None."""

    namespace: tuple[str, ...]
    key: str
    refresh_ttl: bool = True


class SearchOp(NamedTuple):
    """Find items in a namespace and below it; see `BaseStore.search`. Its result is a list of `SearchItem`."""

    namespace_prefix: tuple[str, ...]
    filter: dict[str, Any] | None = None
    limit: int = 10
    offset: int = 0
    query: str | None = None
    refresh_ttl: bool = True


class MatchCondition(NamedTuple):
    """How namespaces have to begin ("prefix") or end ("suffix"); "*" in `path` stands for any one label."""

    match_type: NamespaceMatchType
    path: NamespacePath


class ListNamespacesOp(NamedTuple):
    """List the namespaces that hold items; see `BaseStore.list_namespaces`. All conditions have to be met."""

    match_conditions: tuple[MatchCondition, ...] | None = None
    max_depth: int | None = None
    limit: int = 100
    offset: int = 0


class PutOp(NamedTuple):
    """Write one item, or delete it if `value` is None; see `BaseStore.put`. Its result is None."""

    namespace: tuple[str, ...]
    key: str
    value: Mapping[str, Any] | None
    index: Literal[False] | list[str] | None = None  # type: ignore[assignment]  # LangGraph's name, and tuple's too
    ttl: float | None = None


Op = GetOp | SearchOp | PutOp | ListNamespacesOp
Result = Item | list[Item] | list[SearchItem] | list[tuple[str, ...]] | None


class TTLConfig(TypedDict, total=False):
    """How items expire; times are minutes.

    `refresh_on_read` (True): reading an item starts its time anew. `default_ttl`: for items put without one. The other
    two are known for compatibility: expired items are never read, and go with the next write.
    """

    refresh_on_read: bool
    default_ttl: float | None
    omit_expired: bool
    sweep_interval_minutes: int | None


class IndexConfig(TypedDict, total=False):
    """How items are made searchable by meaning.

    `embed` turns a list of texts into a list of vectors: a function, an async function, or an object with
    `embed_documents` and `embed_query`. `dims` is how long its vectors are. `fields` are the paths of what is embedded
    (`["$"]`, all of the value as one text): "a.b", "list[0].c", "list[*].c" (each by itself).
    """

    dims: int
    embed: Any
    fields: list[str] | None


# --- the port ---------------------------------------------------------------------------------------------------------


class InvalidNamespaceError(UsageError, ValueError):
    """A namespace cannot be used: it is empty, reserved, or a label is no text, is empty or holds a period."""

    code = "invalid_namespace"


class BaseStore(ABC):
    """What a store does. A node reaches the one that its graph was compiled with as `runtime.store`.

    A store implements `batch` and `abatch`; everything else is made of them.
    """

    supports_ttl: ClassVar[bool] = False
    ttl_config: TTLConfig | None = None

    @abstractmethod
    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do several operations at once; results come in their order."""

    @abstractmethod
    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do what `batch` does, from an event loop."""

    def get(self, namespace: tuple[str, ...], key: str, *, refresh_ttl: bool | None = None) -> Item | None:
        """Return an item, None if there is none. `refresh_ttl`: start its time to live anew."""
        return cast("Item | None", self.batch([self._get(namespace, key, refresh_ttl)])[0])

    def search(
        self,
        namespace_prefix: tuple[str, ...],
        /,
        *,
        query: str | None = None,
        filter: dict[str, Any] | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh_ttl: bool | None = None,
    ) -> list[SearchItem]:
        """Find items in a namespace and below it, in the order in which they were first put.

        `filter` maps keys of the value to what they have to equal, or to operators: `{"n": {"$gte": 3, "$ne": 5}}` with
        $eq, $ne, $gt, $gte, $lt, $lte. With a `query`, in a store with an index, the nearest in meaning come first, and
        last those that are not indexed.
        """
        op = SearchOp(namespace_prefix, filter, limit, offset, query, self._refreshes(refresh_ttl))
        return cast("list[SearchItem]", self.batch([op])[0])

    def put(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: Mapping[str, Any],
        index: Literal[False] | list[str] | None = None,
        *,
        ttl: float | NotProvided | None = NOT_PROVIDED,
    ) -> None:
        """Store an item, in place of the one that is there.

        `index`: paths of what is embedded (None: the store's own), False: nothing. `ttl`: minutes until it expires, None
        for never.
        """
        self.batch([self._put(namespace, key, value, index, ttl)])

    def delete(self, namespace: tuple[str, ...], key: str) -> None:
        """Delete an item, if it is there."""
        self.batch([PutOp(namespace, str(key), None)])

    def list_namespaces(
        self,
        *,
        prefix: NamespacePath | None = None,
        suffix: NamespacePath | None = None,
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[tuple[str, ...]]:
        """List the namespaces that hold items, sorted; those deeper than `max_depth` are cut there, and listed once."""
        op = _listing(prefix, suffix, max_depth, limit, offset)
        return cast("list[tuple[str, ...]]", self.batch([op])[0])

    async def aget(self, namespace: tuple[str, ...], key: str, *, refresh_ttl: bool | None = None) -> Item | None:
        """Do what `get` does, from an event loop."""
        return cast("Item | None", (await self.abatch([self._get(namespace, key, refresh_ttl)]))[0])

    async def asearch(
        self,
        namespace_prefix: tuple[str, ...],
        /,
        *,
        query: str | None = None,
        filter: dict[str, Any] | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh_ttl: bool | None = None,
    ) -> list[SearchItem]:
        """Do what `search` does, from an event loop."""
        op = SearchOp(namespace_prefix, filter, limit, offset, query, self._refreshes(refresh_ttl))
        return cast("list[SearchItem]", (await self.abatch([op]))[0])

    async def aput(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: Mapping[str, Any],
        index: Literal[False] | list[str] | None = None,
        *,
        ttl: float | NotProvided | None = NOT_PROVIDED,
    ) -> None:
        """Do what `put` does, from an event loop."""
        await self.abatch([self._put(namespace, key, value, index, ttl)])

    async def adelete(self, namespace: tuple[str, ...], key: str) -> None:
        """Do what `delete` does, from an event loop."""
        await self.abatch([PutOp(namespace, str(key), None)])

    async def alist_namespaces(
        self,
        *,
        prefix: NamespacePath | None = None,
        suffix: NamespacePath | None = None,
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[tuple[str, ...]]:
        """Do what `list_namespaces` does, from an event loop."""
        op = _listing(prefix, suffix, max_depth, limit, offset)
        return cast("list[tuple[str, ...]]", (await self.abatch([op]))[0])

    def _get(self, namespace: tuple[str, ...], key: str, refresh_ttl: bool | None) -> GetOp:
        check_labels(namespace)
        return GetOp(namespace, str(key), self._refreshes(refresh_ttl))

    def _put(self, namespace: tuple[str, ...], key: str, value: Any, index: Any, ttl: Any) -> PutOp:
        check_namespace(namespace)
        if value is None:
            raise ConfigError(f"The value of item {key!r} is None; give a dict, or call delete() to remove the item")
        if ttl is NOT_PROVIDED:
            ttl = (self.ttl_config or {}).get("default_ttl")
        elif ttl is not None and not self.supports_ttl:
            raise NotImplementedError(f"{type(self).__name__} keeps items for good; leave out `ttl`")
        return PutOp(namespace, str(key), value, index, ttl)

    def _refreshes(self, given: bool | None) -> bool:
        return (self.ttl_config or {}).get("refresh_on_read", True) if given is None else given


def _listing(
    prefix: NamespacePath | None, suffix: NamespacePath | None, max_depth: int | None, limit: int, offset: int
) -> ListNamespacesOp:
    conditions = [MatchCondition("prefix", tuple(prefix))] if prefix else []
    conditions += [MatchCondition("suffix", tuple(suffix))] if suffix else []
    return ListNamespacesOp(tuple(conditions), max_depth, limit, offset)


# --- what is refused --------------------------------------------------------------------------------------------------


def check_op(op: Any) -> None:
    """Refuse an operation that no store can do. Raises `InvalidNamespaceError`, `ConfigError` or `UsageError`."""
    if isinstance(op, GetOp):
        check_labels(op.namespace)
    elif isinstance(op, PutOp):
        (check_labels if op.value is None else check_namespace)(op.namespace)
        value: Any = op.value
        if value is not None and not (isinstance(value, Mapping) and all(isinstance(k, str) for k in value)):
            raise ConfigError(f"The value of item {op.key!r} is no dict whose keys are texts; give one")
        ttl: Any = op.ttl
        if ttl is not None and (isinstance(ttl, bool) or not isinstance(ttl, int | float) or not ttl > 0):
            raise ConfigError(f"`ttl` of item {op.key!r} is {ttl!r}; give minutes greater than 0, or None for no end")
    elif isinstance(op, SearchOp):
        check_labels(op.namespace_prefix)
        check_count("limit", op.limit)
        check_count("offset", op.offset)
    elif isinstance(op, ListNamespacesOp):
        for condition in op.match_conditions or ():
            check_labels(condition.path)
            if condition.match_type not in ("prefix", "suffix"):
                raise ConfigError(f"Namespaces match by 'prefix' or 'suffix', not by {condition.match_type!r}; use one")
        check_count("max_depth", op.max_depth)
        check_count("limit", op.limit)
        check_count("offset", op.offset)
    else:
        raise UsageError(
            f"A {type(op).__name__} is no operation of a store; give GetOp, SearchOp, PutOp or ListNamespacesOp"
        )


def check_namespace(namespace: Any) -> None:
    """Refuse a namespace that no item can be put into. Raises `InvalidNamespaceError`."""
    check_labels(namespace)
    if not namespace:
        raise InvalidNamespaceError(
            "Namespace cannot be empty: items lie in one; give a tuple of labels like ('users', id)"
        )
    if namespace[0] == "langgraph":
        raise InvalidNamespaceError(
            f'Root label for namespace cannot be "langgraph", which is reserved. Got: {namespace}'
        )


def check_labels(namespace: Any) -> None:
    """Refuse a namespace, or a part of one, whose labels are not texts that can be told apart.

    Raises `InvalidNamespaceError`.
    """
    if isinstance(namespace, str) or not isinstance(namespace, Sequence):
        raise InvalidNamespaceError(
            f"Invalid namespace {namespace!r}: it is no tuple of labels; write ('users', 'ana')"
        )
    for label in namespace:
        if not isinstance(label, str):
            reason = f"must be strings, but got {type(label).__name__}"
        elif not label:
            reason = "cannot be empty strings"
        elif "." in label:
            reason = "cannot contain periods ('.')"
        elif "\x00" in label:
            reason = "cannot contain NUL bytes ('\\x00')"
        elif any("\ud800" <= character <= "\udfff" for character in label):
            reason = "must be valid Unicode, without lone surrogates"
        else:
            continue
        raise InvalidNamespaceError(
            f"Invalid namespace label {label!r} found in {tuple(namespace)}. Namespace labels {reason}; use another label"
        )
