"""When items expire."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from waitpoint import clock
from waitpoint.errors import ConfigError
from waitpoint.store.base import BaseStore, GetOp, PutOp

NewStore = Callable[..., BaseStore]

ANA = ("users", "ana")
BEN = ("users", "ben")


class Hand:
    """The time, in minutes, as a test sets it."""

    minutes = 0.0


class TimeConformance:
    """Tests of times to live, for stores that support them."""

    @pytest.fixture
    def hand(self) -> Iterator[Hand]:
        """Hold the clock in the hand."""
        hand = Hand()
        with clock.fixed(lambda: hand.minutes * 60):
            yield hand

    def test_an_item_that_has_expired_is_not_there(self, new_store: NewStore, hand: Hand) -> None:
        store = new_store()
        store.put(ANA, "a", {}, ttl=10)
        store.put(BEN, "b", {})
        hand.minutes = 9.9
        assert store.get(ANA, "a", refresh_ttl=False) is not None
        hand.minutes = 10
        assert store.get(ANA, "a") is None
        assert [item.key for item in store.search(())] == ["b"]
        assert store.list_namespaces() == [BEN]

    def test_reading_starts_the_time_anew(self, new_store: NewStore, hand: Hand) -> None:
        store = new_store()
        store.put(ANA, "got", {}, ttl=10)
        store.put(ANA, "searched", {"n": 1}, ttl=10)
        store.put(ANA, "looked over", {"n": 2}, ttl=10)
        hand.minutes = 9
        store.get(ANA, "got")
        store.search(ANA, filter={"n": 1})
        hand.minutes = 18
        assert [item.key for item in store.search(ANA, refresh_ttl=False)] == ["got", "searched"]
        hand.minutes = 19
        assert store.search(ANA) == []

    def test_reading_in_a_batch_that_writes_starts_the_time_anew_too(self, new_store: NewStore, hand: Hand) -> None:
        store = new_store()
        store.put(ANA, "a", {}, ttl=10)
        hand.minutes = 9
        store.batch([GetOp(ANA, "a"), PutOp(BEN, "b", {})])
        hand.minutes = 18
        assert store.get(ANA, "a") is not None

    def test_reading_leaves_the_time_alone_where_that_is_wanted(self, new_store: NewStore, hand: Hand) -> None:
        store = new_store(ttl={"refresh_on_read": False})
        store.put(ANA, "a", {}, ttl=10)
        store.put(ANA, "b", {}, ttl=10)
        hand.minutes = 9
        store.get(ANA, "a")
        store.get(ANA, "b", refresh_ttl=True)
        hand.minutes = 12
        assert [item.key for item in store.search(ANA)] == ["b"]

    def test_putting_it_again_starts_the_time_anew_or_ends_it(self, new_store: NewStore, hand: Hand) -> None:
        store = new_store()
        store.put(ANA, "a", {}, ttl=10)
        store.put(ANA, "b", {}, ttl=10)
        hand.minutes = 9
        store.put(ANA, "a", {"n": 1}, ttl=5)
        store.put(ANA, "b", {"n": 2})
        hand.minutes = 13
        assert [item.key for item in store.search(ANA, refresh_ttl=False)] == ["a", "b"]
        hand.minutes = 1000
        assert [item.key for item in store.search(ANA)] == ["b"]

    def test_items_put_without_a_time_get_the_stores_own(self, new_store: NewStore, hand: Hand) -> None:
        store = new_store(ttl={"default_ttl": 2, "refresh_on_read": False})
        store.put(ANA, "a", {})
        store.put(ANA, "for good", {}, ttl=None)
        store.put(ANA, "longer", {}, ttl=5)
        hand.minutes = 3
        assert [item.key for item in store.search(ANA)] == ["for good", "longer"]

    def test_an_expired_item_put_again_is_a_new_one(self, new_store: NewStore, hand: Hand) -> None:
        store = new_store()
        store.put(ANA, "a", {"n": 1}, ttl=1)
        store.put(ANA, "b", {})
        hand.minutes = 2
        store.put(ANA, "a", {"n": 2})
        found = store.search(ANA)
        assert [item.key for item in found] == ["b", "a"]
        assert found[1].created_at.timestamp() == 120

    def test_sweeping_removes_what_has_expired(self, new_store: NewStore, hand: Hand) -> None:
        store: Any = new_store()
        store.batch([PutOp(ANA, str(n), {}, ttl=n + 1) for n in range(5)])
        hand.minutes = 3
        assert store.sweep_ttl() == 3
        assert store.sweep_ttl() == 0
        assert [item.key for item in store.search(ANA)] == ["3", "4"]

    @pytest.mark.parametrize("ttl", [0, -1, "5", True, float("nan")])
    def test_a_time_to_live_is_a_number_of_minutes(self, new_store: NewStore, ttl: Any) -> None:
        with pytest.raises(ConfigError, match="`ttl`"):
            new_store().put(ANA, "a", {}, ttl=ttl)
