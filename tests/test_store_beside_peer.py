"""Stores, caches and cached nodes beside LangGraph's: the same names and signatures, and the same results of sessions."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import warnings
from typing import Any, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waitpoint.cache.base import BaseCache
from waitpoint.store.base import BaseStore

NAMES = {
    "store.base": [
        "BaseStore", "Item", "SearchItem", "Op", "PutOp", "GetOp", "SearchOp", "ListNamespacesOp", "MatchCondition",
        "NamespacePath", "NamespaceMatchType", "IndexConfig", "TTLConfig", "NotProvided", "NOT_PROVIDED", "Result",
        "InvalidNamespaceError",
    ],
    "store.memory": ["InMemoryStore"],
    "store.sqlite": ["SqliteStore", "AsyncSqliteStore"],
    "store.sqlite.aio": ["AsyncSqliteStore"],
    "cache.base": ["BaseCache", "Namespace", "FullKey", "ValueT"],
    "cache.memory": ["InMemoryCache"],
    "cache.sqlite": ["SqliteCache"],
    "cache.redis": ["RedisCache"],
    "types": ["CachePolicy"],
}  # fmt: skip


@pytest.mark.parametrize("path", NAMES)
def test_names_are_where_the_peer_has_them(path: str) -> None:
    ours, peer = importlib.import_module(f"waitpoint.{path}"), importlib.import_module(f"langgraph.{path}")
    for name in NAMES[path]:
        assert hasattr(peer, name)
        assert hasattr(ours, name)


@pytest.mark.parametrize(
    "name",
    ["get", "search", "put", "delete", "list_namespaces", "aget", "asearch", "aput", "adelete", "alist_namespaces"],
)
def test_calls_of_a_store_take_what_the_peers_take(name: str) -> None:
    peer = importlib.import_module("langgraph.store.base").BaseStore
    assert parameters(getattr(BaseStore, name)) == parameters(getattr(peer, name))


def parameters(call: Any) -> list[tuple[str, Any, str]]:
    found = inspect.signature(call).parameters.values()
    return [(p.name, p.kind, repr(p.default)) for p in found]


@pytest.mark.parametrize("name", ["GetOp", "PutOp", "SearchOp", "ListNamespacesOp", "MatchCondition"])
def test_operations_have_the_peers_fields_and_defaults(name: str) -> None:
    ours = getattr(importlib.import_module("waitpoint.store.base"), name)
    peer = getattr(importlib.import_module("langgraph.store.base"), name)
    assert (ours._fields, ours._field_defaults) == (peer._fields, peer._field_defaults)


@pytest.mark.parametrize("name", ["get", "set", "clear", "aget", "aset", "aclear"])
def test_calls_of_a_cache_take_what_the_peers_take(name: str) -> None:
    peer = importlib.import_module("langgraph.cache.base").BaseCache
    assert parameters(getattr(BaseCache, name)) == parameters(getattr(peer, name))


# --- sessions ---------------------------------------------------------------------------------------------------------

labels = st.sampled_from(["a", "b", "c"])
namespaces = st.lists(labels, min_size=1, max_size=3).map(tuple)
keys = st.sampled_from(["k", "l"])
values = st.fixed_dictionaries(
    {}, optional={"n": st.integers(0, 4), "tag": labels, "deep": st.fixed_dictionaries({"n": st.integers(0, 2)})}
)
tests = st.sampled_from(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"])
# The peer takes numbers to be compared only, and fails where the key is missing: both are asked for what all items have.
filters = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "every": st.integers(0, 3) | st.dictionaries(tests, st.integers(0, 3), min_size=1),
        "tag": labels,
        "deep": st.fixed_dictionaries({"n": st.integers(0, 2)}),
    },
)
paths = st.none() | st.lists(st.sampled_from(["a", "b", "*"]), min_size=1, max_size=2).map(tuple)
counts = st.integers(0, 3)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), namespaces, keys, values, st.integers(0, 3)),
        st.tuples(st.just("delete"), namespaces, keys),
        st.tuples(st.just("get"), namespaces, keys),
        st.tuples(st.just("search"), st.just(()) | namespaces, filters),
        st.tuples(st.just("list"), paths, paths, st.none() | st.integers(1, 2), st.integers(0, 9), counts),
    ),
    max_size=14,
)


def played(store: Any, session: Any) -> list[Any]:
    """Play a session on a store; a search gives its items in no order, since the peer's stores differ in it."""
    seen: list[Any] = []
    for name, *parts in session:
        if name == "put":
            namespace, key, value, every = parts
            store.put(namespace, key, {**value, "every": every})
        elif name == "delete":
            store.delete(*parts)
        elif name == "get":
            item = store.get(*parts)
            seen.append(None if item is None else (item.namespace, item.key, item.value))
        elif name == "search":
            found = store.search(parts[0], filter=parts[1], limit=100)
            seen.append(sorted((item.namespace, item.key, repr(item.value), item.score) for item in found))
        else:
            prefix, suffix, depth, limit, offset = parts
            seen.append(
                store.list_namespaces(prefix=prefix, suffix=suffix, max_depth=depth, limit=limit, offset=offset)
            )
    return seen


@given(steps)
def test_sessions_come_to_the_same_as_in_the_peers_memory(session: Any) -> None:
    results = []
    for library in ("waitpoint", "langgraph"):
        store = importlib.import_module(f"{library}.store.memory").InMemoryStore()
        # The peer lists namespaces that hold nothing, once something was looked for or deleted there.
        leaves_traces = any(step[0] in ("get", "delete") for step in session)
        results.append(played(store, [step for step in session if step[0] != "list" or not leaves_traces]))
    assert results[0] == results[1]


@given(steps)
def test_sessions_come_to_the_same_as_in_the_peers_sqlite(session: Any) -> None:
    results = []
    for library in ("waitpoint", "langgraph"):
        opened = importlib.import_module(f"{library}.store.sqlite").SqliteStore.from_conn_string(":memory:")
        with opened as store:
            store.setup()
            results.append(played(store, [step for step in session if not is_beyond_sqlite(step)]))
    assert results[0] == results[1]


def is_beyond_sqlite(step: Any) -> bool:
    """Whether the peer's SQLite store does otherwise than its memory store, which ours follows."""
    return step[0] == "search" and "deep" in (step[2] or {})


def embed(texts: Any) -> list[list[float]]:
    return [[float(text.count(letter)) + 0.1 for letter in "abc"] for text in texts]


@given(
    st.lists(st.text("abc", min_size=1, max_size=6), min_size=1, max_size=8, unique_by=lambda t: tuple(sorted(t))),
    st.text("abc", min_size=1, max_size=4),
    st.integers(1, 9),
)
def test_searches_by_meaning_come_to_the_same(texts: list[str], query: str, limit: int) -> None:
    results = []
    for library in ("waitpoint", "langgraph"):
        kind = importlib.import_module(f"{library}.store.memory").InMemoryStore
        store = kind(index={"dims": 3, "embed": embed, "fields": ["text"]})
        for text in texts:
            store.put(("a",), text, {"text": text})
        found = store.search(("a",), query=query, limit=limit)
        results.append({item.key: item.score for item in store.search(("a",), query=query, limit=99)})
        assert [item.score for item in found] == sorted((item.score for item in found), reverse=True)
        results.append([round(item.score, 5) for item in found])
    assert results[0] == pytest.approx(results[2], abs=1e-6)
    assert results[1] == pytest.approx(results[3], abs=2e-5)


# --- cached nodes -----------------------------------------------------------------------------------------------------


class State(TypedDict, total=False):
    given: int
    first: int
    second: Any


def runs(library: str, *, is_async: bool) -> list[Any]:
    """Run a graph whose nodes are cached in each stream mode, twice, and clear the cache."""
    graph, types = importlib.import_module(f"{library}.graph"), importlib.import_module(f"{library}.types")
    cache = importlib.import_module(f"{library}.cache.memory").InMemoryCache()
    ran: list[Any] = []

    def first(state: State) -> Any:
        ran.append("first")
        return {"first": state["given"] + 1}

    def second(state: State) -> Any:
        ran.append("second")
        return types.Command(update={"second": state["first"] * 10}, goto="third")

    def third(state: State) -> Any:
        ran.append("third")
        return {"second": [state["second"]]}

    builder = graph.StateGraph(State)
    builder.add_node("first", first, cache_policy=types.CachePolicy(ttl=100))
    builder.add_node(
        "second",
        second,
        cache_policy=types.CachePolicy(key_func=lambda state: str(state["first"])),
        destinations=("third",),
    )
    builder.add_node("third", third)
    compiled = builder.add_edge(graph.START, "first").add_edge("first", "second").compile(cache=cache)
    seen: list[Any] = []
    for number in (1, 1, 2, 1):
        for mode in ("updates", "values", "tasks", ["updates", "values"]):
            if is_async:

                async def collected() -> list[Any]:
                    return [part async for part in compiled.astream({"given": number}, stream_mode=mode)]  # noqa: B023

                parts = asyncio.run(collected())
            else:
                parts = list(compiled.stream({"given": number}, stream_mode=mode))
            seen.append([without_ids(part) for part in parts])
        seen.append(compiled.invoke({"given": number}))
    compiled.clear_cache(["first"])
    seen.append(list(compiled.stream({"given": 1}, stream_mode="updates")))
    compiled.clear_cache()
    seen.append(list(compiled.stream({"given": 1}, stream_mode="updates")))
    return [seen, ran]


def without_ids(part: Any) -> Any:
    return {k: v for k, v in part.items() if k not in ("id", "triggers")} if isinstance(part, dict) else part


@pytest.mark.parametrize("is_async", [False, True])
def test_cached_nodes_run_and_show_what_the_peers_do(is_async: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the peer
        assert runs("waitpoint", is_async=is_async) == runs("langgraph", is_async=is_async)
