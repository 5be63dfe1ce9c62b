"""Requests made from the server's own description: whatever comes, it never fails, and it says so as described."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema_rs
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from hypothesis.internal.conjecture import utils as conjecture
from hypothesis_jsonschema import _from_schema
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import _hypothesis

from tests.server.graphs import asking
from tests.server.serving import served
from waitpoint.server import create_app


class Many:
    """What hypothesis had under the name `many` until it became a context manager; hypothesis-jsonschema asks for that."""

    def __init__(self, *given: Any, **more: Any) -> None:
        self._many = conjecture.many(*given, **more).__enter__()
        self._elements = iter(self._many)

    def more(self) -> bool:
        """Whether one more element is wanted."""
        for _ in self._elements:
            return True
        self._many.__exit__(None, None, None)
        return False

    def reject(self) -> None:
        """Do not count the last element."""
        self._many.reject()


if not hasattr(conjecture.many, "more"):
    _from_schema.cu = SimpleNamespace(**vars(conjecture) | {"many": Many})
if not hasattr(jsonschema_rs.canonicalize({}), "is_satisfiable"):  # that generator asks another version of the library
    _hypothesis._canonical_strategy_or_none = lambda *_: None

# Streams that go on until their reader leaves.
_ENDLESS = r"^/threads/\{thread_id\}/stream"


def described() -> dict[str, Any]:
    """Return the description, without a server behind it."""
    return create_app({"asking": asking()}, ":memory:").openapi()


schema = schemathesis.openapi.from_dict(described()).exclude(path_regex=_ENDLESS)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """Serve in a thread of its own, for requests that are made one by one."""
    folder: Path = tmp_path_factory.mktemp("schema")
    found: list[str] = []
    ready, over = threading.Event(), threading.Event()

    async def run() -> None:
        async with served(create_app({"asking": asking()}, folder / "threads.db")) as address:
            found.append(address)
            ready.set()
            await asyncio.to_thread(over.wait)

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    ready.wait(30)
    yield found[0]
    over.set()
    thread.join(30)


def tried(case: schemathesis.Case, url: str) -> None:
    """Send a request; what answers is no failure of the server."""
    case.call_and_validate(base_url=url, checks=[not_a_server_error], timeout=20)


@pytest.mark.slow
@schema.parametrize()
@settings(
    max_examples=8, deadline=None, derandomize=True, database=None, phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
def test_no_request_makes_the_server_fail(case: schemathesis.Case, url: str) -> None:
    tried(case, url)


@pytest.mark.proof
@schema.parametrize()
@settings(max_examples=150, deadline=None, database=None, suppress_health_check=list(HealthCheck))
def test_no_request_of_many_makes_the_server_fail(case: schemathesis.Case, url: str) -> None:
    tried(case, url)
