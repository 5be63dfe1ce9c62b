"""What is put into a store is there: items, batches, namespaces."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

import pytest

from waitpoint import clock
from waitpoint.errors import ConfigError, UnstorableValueError, UsageError
from waitpoint.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)

NewStore = Callable[..., BaseStore]

ANA = ("users", "ana")
BEN = ("users", "ben")
BAD = [("a.b",), ("",), (1,), ("a\x00",), ("\ud800",), "users", None]


class ItemConformance:
    """Tests of items, batches and namespaces."""

    @pytest.fixture
    def store(self, new_store: NewStore) -> BaseStore:
        """Return an empty store without an index."""
        return new_store()

    def test_what_was_put_is_got(self, store: BaseStore) -> None:
        with clock.fixed(lambda: 1000.5):
            store.put(ANA, "likes", {"food": "figs", "since": date(2026, 1, 2), "deep": {"list": [1, (2, 3)]}})
        found = store.get(ANA, "likes")
        at = datetime.fromtimestamp(1000.5, UTC)
        value = {"food": "figs", "since": date(2026, 1, 2), "deep": {"list": [1, (2, 3)]}}
        assert found == Item(value=value, key="likes", namespace=ANA, created_at=at, updated_at=at)
        assert type(found) is Item
        assert found.dict()["created_at"] == "1970-01-01T00:16:40.500000+00:00"

    def test_what_was_not_put_is_none(self, store: BaseStore) -> None:
        store.put(ANA, "likes", {})
        assert store.get(BEN, "likes") is None
        assert store.get(ANA, "hates") is None
        assert store.get(("users",), "likes") is None
        assert store.get((), "likes") is None

    def test_the_last_put_counts_and_the_first_time_stays(self, store: BaseStore) -> None:
        with clock.fixed(lambda: 1.0):
            store.put(ANA, "likes", {"food": "figs", "drink": "tea"})
        with clock.fixed(lambda: 2.0):
            store.put(ANA, "likes", {"food": "dates"})
        found = store.get(ANA, "likes")
        assert found is not None
        assert found.value == {"food": "dates"}
        assert (found.created_at.timestamp(), found.updated_at.timestamp()) == (1.0, 2.0)

    def test_a_change_of_what_was_put_or_got_changes_nothing_stored(self, store: BaseStore) -> None:
        value: dict[str, Any] = {"foods": ["figs"]}
        store.put(ANA, "likes", value)
        value["foods"].append("stones")
        first = store.get(ANA, "likes")
        assert first is not None
        first.value["foods"].append("sand")
        again = store.get(ANA, "likes")
        assert again is not None
        assert again.value == {"foods": ["figs"]}
        store.search(ANA)[0].value.clear()
        assert store.search(ANA)[0].value == {"foods": ["figs"]}

    def test_a_deleted_item_is_gone_and_deleting_it_again_does_nothing(self, store: BaseStore) -> None:
        store.put(ANA, "likes", {})
        store.put(ANA, "hates", {})
        store.delete(ANA, "likes")
        store.delete(ANA, "likes")
        assert store.get(ANA, "likes") is None
        assert [item.key for item in store.search(ANA)] == ["hates"]
        store.delete(ANA, "hates")
        assert store.list_namespaces() == []

    @pytest.mark.parametrize("key", ["", "a.b", "a/b", "%", "ключ", "\ud800", "k" * 3000])
    def test_any_text_is_a_key(self, store: BaseStore, key: str) -> None:
        store.put(ANA, key, {"n": 1})
        store.put(ANA, f"{key}x", {"n": 2})
        found = store.get(ANA, key)
        assert found is not None
        assert (found.key, found.value) == (key, {"n": 1})
        assert [item.key for item in store.search(ANA)] == [key, f"{key}x"]
        store.delete(ANA, key)
        assert [item.key for item in store.search(ANA)] == [f"{key}x"]

    @pytest.mark.parametrize("label", ["a/b", "%", "_", "a*", "Ä", " ", "a-b", "[x]", "a\nb", "/"])
    def test_labels_are_told_apart_whatever_they_hold(self, store: BaseStore, label: str) -> None:
        store.put((label, "x"), "k", {})
        store.put(("a", "x"), "k", {})
        assert [item.namespace for item in store.search((label,))] == [(label, "x")]
        assert store.search((label[0] + "zzz",)) == []
        assert set(store.list_namespaces()) == {(label, "x"), ("a", "x")}

    # --- what is refused ---

    @pytest.mark.parametrize("namespace", BAD, ids=repr)
    def test_a_namespace_that_cannot_be_one_is_refused_everywhere(self, store: BaseStore, namespace: Any) -> None:
        ops: list[Any] = [
            GetOp(namespace, "k"),
            PutOp(namespace, "k", {}),
            PutOp(namespace, "k", None),
            SearchOp(namespace),
            ListNamespacesOp((MatchCondition("prefix", namespace),)),
        ]
        for op in ops:
            with pytest.raises(InvalidNamespaceError):
                store.batch([PutOp(ANA, "k", {}), op])
        calls: list[Callable[[], Any]] = [
            lambda: store.get(namespace, "k"),
            lambda: store.put(namespace, "k", {}),
            lambda: store.delete(namespace, "k"),
            lambda: store.search(namespace),
        ]
        for call in calls:
            with pytest.raises(InvalidNamespaceError):
                call()
        assert store.list_namespaces() == []

    def test_items_lie_in_a_namespace_and_not_in_a_reserved_one(self, store: BaseStore) -> None:
        with pytest.raises(InvalidNamespaceError, match="cannot be empty"):
            store.put((), "k", {})
        with pytest.raises(InvalidNamespaceError, match='cannot be "langgraph"'):
            store.put(("langgraph", "x"), "k", {})
        with pytest.raises(InvalidNamespaceError, match="cannot be empty"):
            store.batch([PutOp((), "k", {})])

    @pytest.mark.parametrize("value", [None, "text", ["list"], {1: "x"}])
    def test_a_value_is_a_dict_with_texts_as_keys(self, store: BaseStore, value: Any) -> None:
        with pytest.raises(ConfigError, match="'likes'"):
            store.put(ANA, "likes", value)

    def test_a_value_of_an_unknown_type_is_refused_with_its_path(self, store: BaseStore) -> None:
        with pytest.raises(UnstorableValueError, match="likes"):
            store.batch([PutOp(BEN, "k", {}), PutOp(ANA, "likes", {"food": object()})])
        assert store.list_namespaces() == []

    @pytest.mark.parametrize("count", [-1, 1.5, True, "2"])
    def test_limits_and_offsets_count(self, store: BaseStore, count: Any) -> None:
        for options in ({"limit": count}, {"offset": count}):
            with pytest.raises(ConfigError):
                store.search(ANA, **options)
            with pytest.raises(ConfigError):
                store.list_namespaces(**options)

    def test_an_unknown_operation_is_refused_and_nothing_is_done(self, store: BaseStore) -> None:
        operation: Any = "get"
        with pytest.raises(UsageError, match="GetOp"):
            store.batch([PutOp(ANA, "k", {}), operation])
        assert store.get(ANA, "k") is None

    # --- batches ---

    def test_a_batch_gives_results_in_order_and_reads_before_it_writes(self, store: BaseStore) -> None:
        store.put(ANA, "old", {"n": 1})
        results = store.batch(
            [
                PutOp(ANA, "new", {"n": 2}),
                GetOp(ANA, "new"),
                PutOp(ANA, "old", None),
                GetOp(ANA, "old"),
                SearchOp(("users",)),
                ListNamespacesOp(),
                PutOp(BEN, "new", {"n": 3}),
            ]
        )
        assert [type(result) for result in results] == [type(None)] * 3 + [Item, list, list, type(None)]
        assert isinstance(results[3], Item)
        assert results[3].value == {"n": 1}
        searched: Any = results[4]
        assert [item.key for item in searched] == ["old"]
        assert results[5] == [ANA]
        assert [(item.namespace, item.key) for item in store.search(())] == [(ANA, "new"), (BEN, "new")]

    def test_of_several_writes_to_one_item_in_a_batch_the_last_counts(self, store: BaseStore) -> None:
        store.batch([PutOp(ANA, "k", {"n": 1}), PutOp(ANA, "k", None), PutOp(ANA, "k", {"n": 2})])
        found = store.get(ANA, "k")
        assert found is not None
        assert found.value == {"n": 2}
        store.batch([PutOp(ANA, "k", {"n": 3}), PutOp(ANA, "k", None)])
        assert store.get(ANA, "k") is None

    def test_an_empty_batch_does_nothing(self, store: BaseStore) -> None:
        assert store.batch([]) == []

    def test_each_call_has_an_asyncio_form(self, store: BaseStore) -> None:
        async def calls() -> None:
            await store.aput(ANA, "k", {"n": 1})
            found = await store.aget(ANA, "k")
            assert found is not None
            assert found.value == {"n": 1}
            assert [item.key for item in await store.asearch(("users",), filter={"n": 1})] == ["k"]
            assert await store.alist_namespaces(prefix=("users",)) == [ANA]
            await store.adelete(ANA, "k")
            assert await store.abatch([GetOp(ANA, "k")]) == [None]

        asyncio.run(calls())

    # --- namespaces ---

    def test_namespaces_are_listed_sorted_each_once(self, store: BaseStore) -> None:
        for namespace in (("b",), ("a", "y"), ("a",), ("a", "x"), ("a", "x")):
            for key in ("k", "l"):
                store.put(namespace, key, {})
        assert store.list_namespaces() == [("a",), ("a", "x"), ("a", "y"), ("b",)]
        assert store.list_namespaces(limit=2, offset=1) == [("a", "x"), ("a", "y")]
        assert store.list_namespaces(limit=0) == []

    def test_deeper_namespaces_are_cut_and_listed_once(self, store: BaseStore) -> None:
        for path in ("abc", "abde", "abdi", "abf", "acf"):
            store.put(tuple(path), "k", {})
        assert store.list_namespaces(prefix=("a", "b"), max_depth=3) == [tuple("abc"), tuple("abd"), tuple("abf")]
        assert store.list_namespaces(max_depth=1) == [("a",)]
        assert store.list_namespaces(max_depth=2, limit=1, offset=1) == [("a", "c")]

    def test_namespaces_match_by_how_they_begin_and_end(self, store: BaseStore) -> None:
        for path in ("ax1", "ay1", "ay2", "b1", "1"):
            store.put(tuple(path), "k", {})
        assert store.list_namespaces(suffix=("1",)) == [("1",), tuple("ax1"), tuple("ay1"), tuple("b1")]
        assert store.list_namespaces(prefix=("a",), suffix=("1",)) == [tuple("ax1"), tuple("ay1")]
        assert store.list_namespaces(prefix=("a", "*", "2")) == [tuple("ay2")]
        assert store.list_namespaces(suffix=("y", "*")) == [tuple("ay1"), tuple("ay2")]
        assert store.list_namespaces(prefix=("a", "x", "1", "z")) == []
        with pytest.raises(ConfigError, match="'middle'"):
            store.batch([ListNamespacesOp((MatchCondition("middle", ("a",)),))])  # type: ignore[arg-type]
