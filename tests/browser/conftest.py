"""Leaves out what needs a browser where there is none, and says so at the end; everywhere else it runs."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser

from tests.browser import desk
from tests.server.serving import served
from waitpoint.server import create_app

CHROMIUM = os.environ.get("WAITPOINT_TEST_CHROMIUM") or shutil.which("chromium")
LEFT_OUT = pytest.StashKey[int]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if CHROMIUM is not None:
        return
    if "browser" in os.environ.get("WAITPOINT_REQUIRE", "").split(","):
        raise pytest.UsageError(
            "WAITPOINT_REQUIRE asks for the tests in a browser, and there is no chromium; install it"
        )
    left_out = [item for item in items if item.get_closest_marker("browser")]
    config.stash[LEFT_OUT] = len(left_out)
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not item.get_closest_marker("browser")]


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if count := config.stash.get(LEFT_OUT, 0):
        terminalreporter.write_line(f"LEFT OUT: {count} tests in a browser, since there is no chromium on this machine")


@pytest.fixture
async def browser() -> AsyncGenerator[Browser]:
    assert CHROMIUM is not None
    async with desk.chromium(Path(CHROMIUM)) as opened:
        yield opened


@pytest.fixture
async def url(tmp_path: Path) -> AsyncGenerator[str]:
    """Serve a graph that asks."""
    async with served(create_app({"assistant": desk.asking()}, tmp_path / "threads.db")) as address:
        yield address
