"""The demo up to its first questions, run once for all tests; and its agent as a module."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.demo.runs import (
    demo,
    imported,
)


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Run the demo up to its questions, once for all tests; return its folder and what it printed."""
    folder = tmp_path_factory.mktemp("template") / "demo"
    done = demo(folder)
    assert (done.returncode, done.stderr) == (0, "")
    return folder, done.stdout


@pytest.fixture
def folder(template: tuple[Path, str], tmp_path: Path) -> Path:
    """Return a folder in which the demo waits; it lies as deep as the first, whose paths are relative."""
    copy = tmp_path / "demo"
    shutil.copytree(template[0], copy)
    return copy


@pytest.fixture
def program() -> Iterator[Any]:
    with imported() as module:
        yield module
