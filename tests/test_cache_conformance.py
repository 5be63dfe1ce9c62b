"""Every cache keeps every promise of the port."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from waitpoint.cache.base import BaseCache
from waitpoint.cache.memory import InMemoryCache
from waitpoint.cache.redis import RedisCache
from waitpoint.cache.sqlite import SqliteCache
from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.errors import ConfigError, StoreError
from waitpoint.testing.conformance import CacheConformance

FIND_REDIS = Path(__file__).parents[1] / "scripts" / "find-redis"


class TestMemory(CacheConformance):
    @pytest.fixture
    def cache(self) -> BaseCache[Any]:
        return InMemoryCache()


class TestSqliteFile(CacheConformance):
    @pytest.fixture
    def cache(self, tmp_path: Path) -> Iterator[BaseCache[Any]]:
        with SqliteCache[Any](path=tmp_path / "cache.db") as cache:
            yield cache


class TestSqliteInMemory(CacheConformance):
    @pytest.fixture
    def cache(self) -> BaseCache[Any]:
        return SqliteCache(":memory:")


class TestSqliteBesideThreads(CacheConformance):
    @pytest.fixture
    def cache(self, tmp_path: Path) -> Iterator[BaseCache[Any]]:
        with SqliteSaver(tmp_path / "threads.db"), SqliteCache[Any](tmp_path / "threads.db") as cache:
            yield cache


# --- Redis ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run a Redis server that speaks through a socket in a folder of its own; give the socket's path."""
    found = subprocess.run([FIND_REDIS], capture_output=True, text=True, check=False)
    if found.returncode:
        pytest.skip(f"left out: {found.stderr.strip()}")
    folder = tmp_path_factory.mktemp("redis")
    socket = folder / "redis.sock"
    options = ["--port", "0", "--unixsocket", str(socket), "--save", "", "--dir", str(folder)]
    with subprocess.Popen([found.stdout.strip(), *options], stdout=subprocess.DEVNULL) as process:
        client = redis.Redis(unix_socket_path=str(socket))
        deadline = time.monotonic() + 20
        while not _answers(client):
            assert process.poll() is None
            assert time.monotonic() < deadline
        client.close()
        yield str(socket)
        process.terminate()


def _answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False


@pytest.fixture
def client(server: str) -> Iterator[redis.Redis]:
    with redis.Redis(unix_socket_path=server) as client:
        client.flushall()
        yield client


@pytest.mark.timeout(300)  # the package may have to be installed
class TestRedis(CacheConformance):
    @pytest.fixture
    def cache(self, client: redis.Redis) -> BaseCache[Any]:
        return RedisCache(client)

    def test_what_has_expired_is_left_out(self, cache: BaseCache[Any]) -> None:  # by the server's own clock
        cache.set({(("a",), "k"): (1, 0.001), (("a",), "l"): (2, None)})
        deadline = time.monotonic() + 20
        while cache.get([(("a",), "k"), (("a",), "l")]) != {(("a",), "l"): 2}:
            assert time.monotonic() < deadline


@pytest.mark.timeout(300)
class TestRedisItself:
    def test_redis_is_told_when_a_result_expires(self, client: redis.Redis) -> None:
        RedisCache[Any](client).set({(("a",), "k"): (1, 90), (("a",), "l"): (2, None), (("a",), "m"): (3, 0.0001)})
        times = {name: client.pttl(name) for name in client.scan_iter()}
        assert 80_000 < times[b"waitpoint:cache:a:k"] <= 90_000
        assert times[b"waitpoint:cache:a:l"] == -1

    def test_what_has_another_prefix_is_left_alone(self, client: redis.Redis) -> None:
        client.set("mine", "x")
        one, other = RedisCache[Any](client, prefix="p[1]*:"), RedisCache[Any](client, prefix="p1x:")
        for cache in (one, other):
            cache.set({(("a",), "k"): (1, None)})
        one.clear()
        assert one.get([(("a",), "k")]) == {}
        assert other.get([(("a",), "k")]) == {(("a",), "k"): 1}
        assert client.get("mine") == b"x"

    def test_more_is_cleared_than_one_command_takes(self, client: redis.Redis) -> None:
        cache = RedisCache[Any](client)
        cache.set({(("a",), str(n)): (n, None) for n in range(1201)})
        cache.clear([("a",)])
        assert client.dbsize() == 0

    def test_a_cache_for_an_address_is_the_same(self, client: redis.Redis, server: str) -> None:
        cache = RedisCache[Any].from_url(f"unix://{server}")
        cache.set({(("a",), "k"): (1, None)})
        assert RedisCache[Any](client).get([(("a",), "k")]) == {(("a",), "k"): 1}
        cache.close()


def test_a_redis_server_that_is_not_there_is_an_error_that_says_so(tmp_path: Path) -> None:
    cache = RedisCache[Any].from_url(f"unix://{tmp_path / 'no.sock'}")
    with pytest.raises(StoreError, match="server runs"):
        cache.get([(("a",), "k")])
    with pytest.raises(StoreError, match="server runs"):
        cache.clear()


def test_clients_whose_results_cannot_be_used_are_refused() -> None:
    with pytest.raises(ConfigError, match="asyncio"):
        RedisCache(redis.asyncio.Redis())  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="decode_responses"):
        RedisCache(redis.Redis(decode_responses=True))
