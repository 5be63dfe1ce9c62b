"""What every cache must do.

Derive from it in a test module and give it a fixture `cache` that yields an empty cache.
"""

from __future__ import annotations

import asyncio
from datetime import date
from typing import Any

import pytest

from waitpoint import clock
from waitpoint.cache.base import BaseCache
from waitpoint.errors import ConfigError, UnstorableValueError

NS = ("a", "b")


class CacheConformance:
    """Every promise of `waitpoint.cache.base`, one test each; the one on expiry holds the clock in the hand."""

    def test_what_was_set_is_got_and_the_rest_is_left_out(self, cache: BaseCache[Any]) -> None:
        value = {"n": 1, "when": date(2026, 1, 2), "pair": (1, b"x")}
        cache.set({(NS, "k"): (value, None), (NS, "none"): (None, 60), (("a",), "k"): ("other", None)})
        found = cache.get([(NS, "k"), (NS, "none"), (NS, "missing"), (("a",), "k"), (("c",), "k")])
        assert found == {(NS, "k"): value, (NS, "none"): None, (("a",), "k"): "other"}
        assert cache.get([]) == {}
        cache.set({})

    def test_the_last_set_counts(self, cache: BaseCache[Any]) -> None:
        cache.set({(NS, "k"): (1, 60)})
        cache.set({(NS, "k"): (2, None)})
        assert cache.get([(NS, "k")]) == {(NS, "k"): 2}

    def test_a_change_of_what_was_set_or_got_changes_nothing_cached(self, cache: BaseCache[Any]) -> None:
        value = [1]
        cache.set({(NS, "k"): (value, None)})
        value.append(2)
        cache.get([(NS, "k")])[NS, "k"].append(3)
        assert cache.get([(NS, "k")]) == {(NS, "k"): [1]}

    @pytest.mark.parametrize("label", ["x:y", "*", "", "%", "[x]", "a,b", "ü", '"', "\\"])
    def test_namespaces_and_keys_are_told_apart_whatever_they_hold(self, cache: BaseCache[Any], label: str) -> None:
        places = [
            ((label,), "k"),
            (("p", label), "k"),
            (("p",), label),
            (("p",), f"{label}:k"),
            (("p", label, "k"), "k"),
        ]
        cache.set({place: (n, None) for n, place in enumerate(places)})
        assert cache.get(places) == {place: n for n, place in enumerate(places)}
        cache.clear([("p", label)])
        assert cache.get(places) == {place: n for n, place in enumerate(places) if place[0] != ("p", label)}

    def test_clearing_takes_some_namespaces_or_all(self, cache: BaseCache[Any]) -> None:
        places = [(NS, "k"), (NS, "l"), (("a",), "k"), (("a", "b", "c"), "k"), (("z",), "k")]
        cache.set(dict.fromkeys(places, (1, None)))
        cache.clear([])
        assert len(cache.get(places)) == 5
        cache.clear([NS, ("z",), ("missing",)])
        assert list(cache.get(places)) == [(("a",), "k"), (("a", "b", "c"), "k")]
        cache.clear()
        assert cache.get(places) == {}

    def test_what_has_expired_is_left_out(self, cache: BaseCache[Any]) -> None:
        times = [0.0]
        with clock.fixed(lambda: times[0]):
            cache.set({(NS, "k"): (1, 10), (NS, "l"): (2, None), (NS, "m"): (3, 20.5)})
            times[0] = 9.9
            assert len(cache.get([(NS, "k"), (NS, "l"), (NS, "m")])) == 3
            times[0] = 10.0
            assert cache.get([(NS, "k"), (NS, "l"), (NS, "m")]) == {(NS, "l"): 2, (NS, "m"): 3}
            cache.set({(NS, "k"): (4, None)})
            times[0] = 20.5
            assert cache.get([(NS, "k"), (NS, "l"), (NS, "m")]) == {(NS, "k"): 4, (NS, "l"): 2}

    @pytest.mark.parametrize("ttl", [0, -1, "5", True])
    def test_a_time_to_live_is_a_number_of_seconds(self, cache: BaseCache[Any], ttl: Any) -> None:
        with pytest.raises(ConfigError, match="`ttl`"):
            cache.set({(NS, "k"): (1, ttl)})

    def test_a_value_of_an_unknown_type_is_refused_and_nothing_is_cached(self, cache: BaseCache[Any]) -> None:
        with pytest.raises(UnstorableValueError):
            cache.set({(NS, "k"): (1, None), (NS, "l"): (object(), None)})
        assert cache.get([(NS, "k")]) == {}

    def test_each_call_has_an_asyncio_form(self, cache: BaseCache[Any]) -> None:
        async def calls() -> None:
            await cache.aset({(NS, "k"): (1, 60)})
            assert await cache.aget([(NS, "k")]) == {(NS, "k"): 1}
            await cache.aclear([NS])
            assert await cache.aget([(NS, "k")]) == {}

        asyncio.run(calls())
