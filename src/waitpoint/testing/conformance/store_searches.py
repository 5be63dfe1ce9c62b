"""What a search finds: below a namespace, by filter, by meaning."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from waitpoint.errors import AsyncOnlyError, ConfigError
from waitpoint.store.base import BaseStore, PutOp, SearchItem, SearchOp

NewStore = Callable[..., BaseStore]

ANA = ("users", "ana")
BEN = ("users", "ben")

TOPICS = ("fruit", "metal", "music")


def meaning(texts: Sequence[str]) -> list[list[float]]:
    """Stand for a model: how often a text names each topic."""
    return [[float(text.count(topic)) for topic in TOPICS] for text in texts]


async def ameaning(texts: Sequence[str]) -> list[list[float]]:
    """Do the same in an async function."""
    return meaning(texts)


class Meanings:
    """The same as an embeddings object of LangChain; texts and queries are embedded by different calls."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed texts of items."""
        return meaning(texts)

    def embed_query(self, text: str) -> list[float]:
        """Embed a query, which is written backwards here."""
        return meaning([text[::-1]])[0]


INDEX = {"dims": 3, "embed": meaning, "fields": ["text"]}


def keys(found: Sequence[SearchItem]) -> list[str]:
    """Return the keys of what was found."""
    return [item.key for item in found]


class SearchConformance:
    """Tests of searches."""

    def test_a_search_finds_what_lies_below_in_the_order_it_was_first_put(self, new_store: NewStore) -> None:
        store = new_store()
        for namespace, key in (
            (BEN, "1"),
            (ANA, "2"),
            (("user",), "3"),
            (("usersx",), "4"),
            (("users",), "5"),
            (ANA, "6"),
        ):
            store.put(namespace, key, {})
        store.put(BEN, "1", {"new": True})
        assert keys(store.search(("users",))) == ["1", "2", "5", "6"]
        assert keys(store.search(ANA)) == ["2", "6"]
        assert keys(store.search(())) == ["1", "2", "3", "4", "5", "6"]
        assert keys(store.search(("users", "carl"))) == []
        assert all(type(item) is SearchItem and item.score is None for item in store.search(()))

    def test_a_search_gives_ten_or_as_many_as_are_wanted(self, new_store: NewStore) -> None:
        store = new_store()
        store.batch([PutOp(ANA, str(n), {"n": n}) for n in range(15)])
        assert keys(store.search(ANA)) == [str(n) for n in range(10)]
        assert keys(store.search(ANA, limit=3, offset=12)) == ["12", "13", "14"]
        assert keys(store.search(ANA, limit=2, offset=1, filter={"n": {"$gte": 5}})) == ["6", "7"]
        assert store.search(ANA, limit=0) == []
        assert store.search(ANA, offset=15) == []

    @pytest.mark.parametrize(
        ("wanted", "found"),
        [
            ({"n": 2}, ["b"]),
            ({"n": {"$eq": 2}}, ["b"]),
            ({"n": {"$ne": 2}}, ["a", "c", "d"]),
            ({"n": {"$gt": 1}}, ["b", "c"]),
            ({"n": {"$gte": 2, "$lt": 3.5}}, ["b"]),
            ({"n": {"$lte": 1}}, ["a"]),
            ({"n": {"$gt": 0}, "kind": "x"}, ["a", "c"]),
            ({"kind": {"$lt": "y"}}, ["a", "c"]),
            ({"kind": None}, ["d"]),
            ({"missing": 1}, []),
            ({"deep": {"in": 1}}, ["c"]),
            ({"deep": {"in": {"$gte": 1}}}, ["c"]),
            ({"tags": ["p", "q"]}, ["b"]),
            ({"tags": ["p"]}, []),
            ({}, ["a", "b", "c", "d"]),
        ],
        ids=repr,
    )
    def test_a_filter_lets_through_what_fits_all_of_it(
        self, new_store: NewStore, wanted: dict[str, Any], found: list[str]
    ) -> None:
        store = new_store()
        store.put(ANA, "a", {"n": 1, "kind": "x"})
        store.put(ANA, "b", {"n": 2, "kind": "y", "tags": ["p", "q"]})
        store.put(ANA, "c", {"n": 3.5, "kind": "x", "deep": {"in": 1, "more": 2}})
        store.put(ANA, "d", {"n": "text"})
        assert keys(store.search(ANA, filter=wanted)) == found

    def test_an_unknown_operator_is_refused(self, new_store: NewStore) -> None:
        store = new_store()
        store.put(ANA, "a", {"n": 1})
        with pytest.raises(ConfigError, match=r"'\$in'"):
            store.search(ANA, filter={"n": {"$in": [1]}})

    # --- by meaning ---

    def test_the_nearest_in_meaning_come_first_with_their_scores(self, new_store: NewStore) -> None:
        store = new_store(index=INDEX)
        store.put(ANA, "metal", {"text": "metal metal"})
        store.put(ANA, "both", {"text": "fruit metal"})
        store.put(ANA, "fruit", {"text": "fruit"})
        found = store.search(ANA, query="fruit fruit fruit")
        assert keys(found) == ["fruit", "both", "metal"]
        assert [item.score for item in found] == pytest.approx([1.0, 0.5**0.5, 0.0], abs=1e-6)
        assert keys(store.search(ANA, query="fruit", limit=1, offset=1)) == ["both"]
        assert keys(store.search(ANA, query="fruit", filter={"text": {"$ne": "fruit"}})) == ["both", "metal"]
        assert keys(store.search(BEN, query="fruit")) == []

    def test_without_an_index_a_query_changes_nothing(self, new_store: NewStore) -> None:
        store = new_store()
        store.put(ANA, "a", {"text": "metal"}, index=["text"])
        store.put(ANA, "b", {"text": "fruit"})
        found = store.search(ANA, query="fruit")
        assert [(item.key, item.score) for item in found] == [("a", None), ("b", None)]

    def test_what_is_not_indexed_comes_last_and_has_no_score(self, new_store: NewStore) -> None:
        store = new_store(index=INDEX)
        store.put(ANA, "left out", {"text": "fruit"}, index=False)
        store.put(ANA, "without text", {"other": "fruit"})
        store.put(ANA, "indexed", {"text": "metal"})
        found = store.search(ANA, query="fruit")
        assert [(item.key, item.score) for item in found] == [
            ("indexed", 0.0),
            ("left out", None),
            ("without text", None),
        ]

    def test_an_item_put_anew_is_found_by_what_it_says_now(self, new_store: NewStore) -> None:
        store = new_store(index=INDEX)
        store.put(ANA, "a", {"text": "fruit"})
        store.put(ANA, "b", {"text": "metal fruit"})
        store.put(ANA, "a", {"text": "music"})
        assert keys(store.search(ANA, query="fruit")) == ["b", "a"]
        store.put(ANA, "b", {"text": "fruit"}, index=False)
        assert [item.score for item in store.search(ANA, query="music")] == pytest.approx([1.0, None])
        store.delete(ANA, "a")
        store.put(ANA, "a", {"other": 1})
        assert all(item.score is None for item in store.search(ANA, query="music"))

    @pytest.mark.parametrize(
        ("fields", "value"),
        [
            (["$"], {"any": {"where": "fruit"}}),
            (None, {"any": ["fruit"]}),
            (["a.b"], {"a": {"b": "fruit"}}),
            (["list[1].t"], {"list": [{"t": "metal"}, {"t": "fruit"}]}),
            (["list[-1]"], {"list": ["metal", "fruit"]}),
            (["list[*].t"], {"list": [{"t": "metal"}, {"t": "fruit"}]}),
            (["a.*"], {"a": {"x": "fruit"}}),
            (["{x,a.b}"], {"x": "music", "a": {"b": "fruit"}}),
            (["missing", "a"], {"a": {"deep": "fruit"}}),
        ],
        ids=repr,
    )
    def test_fields_say_what_is_embedded(
        self, new_store: NewStore, fields: list[str] | None, value: dict[str, Any]
    ) -> None:
        index = {"dims": 3, "embed": meaning} | ({} if fields is None else {"fields": fields})
        store = new_store(index=index)
        store.put(ANA, "other", {"x": "music"}, index=["x"])
        store.put(ANA, "a", value)
        found = store.search(ANA, query="fruit")
        assert found[0].key == "a"
        assert found[0].score == pytest.approx(1.0)

    def test_paths_of_a_put_take_the_place_of_the_fields(self, new_store: NewStore) -> None:
        store = new_store(index=INDEX)
        store.put(ANA, "a", {"text": "metal", "note": "fruit"}, index=["note"])
        assert [item.score for item in store.search(ANA, query="fruit")] == pytest.approx([1.0])
        assert [item.score for item in store.search(ANA, query="metal")] == pytest.approx([0.0])

    def test_an_async_function_embeds_from_an_event_loop_and_is_refused_elsewhere(self, new_store: NewStore) -> None:
        store = new_store(index={**INDEX, "embed": ameaning})

        async def calls() -> list[SearchItem]:
            await store.aput(ANA, "a", {"text": "metal"})
            await store.aput(ANA, "b", {"text": "fruit"})
            return await store.asearch(ANA, query="fruit")

        assert keys(asyncio.run(calls())) == ["b", "a"]
        with pytest.raises(AsyncOnlyError, match="aput"):
            store.put(ANA, "c", {"text": "fruit"})
        assert store.get(ANA, "c") is None

    @pytest.mark.parametrize("is_async", [False, True])
    def test_an_embeddings_object_embeds_texts_and_queries(self, new_store: NewStore, *, is_async: bool) -> None:
        store = new_store(index={**INDEX, "embed": Meanings()})
        ops = [PutOp(ANA, "a", {"text": "metal"}), PutOp(ANA, "b", {"text": "fruit"})]
        search = [SearchOp(ANA, query="tiurf")]
        found: Any
        if is_async:
            asyncio.run(store.abatch(ops))
            found = asyncio.run(store.abatch(search))[0]
        else:
            store.batch(ops)
            found = store.batch(search)[0]
        assert keys(found) == ["b", "a"]

    def test_an_index_that_cannot_work_is_refused(self, new_store: NewStore) -> None:
        with pytest.raises(ConfigError, match="`embed`"):
            new_store(index={"dims": 3, "embed": "openai:text-embedding-3-small"})
        with pytest.raises(ConfigError, match="cannot be read"):
            new_store(index={**INDEX, "fields": ["a..b"]})
        with pytest.raises(ConfigError, match="`dims`"):
            new_store(index={**INDEX, "dims": 4}).put(ANA, "a", {"text": "fruit"})
        with pytest.raises(ConfigError, match="1 vectors for 2 texts"):
            new_store(index={**INDEX, "embed": lambda _: [[1.0, 2.0, 3.0]]}).put(
                ANA, "a", {"text": "a", "n": "b"}, ["text", "n"]
            )
