"""What the tests of the command line share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.others import OTHERS
from tests.cli.program import FLOW, SETTINGS, Program


@pytest.fixture
def bare(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Program:
    """Give the program in an empty folder."""
    return Program(tmp_path, capsys, monkeypatch)


@pytest.fixture
def program(bare: Program) -> Program:
    """Give the program in a folder with a graph, `release`, and settings that name it."""
    bare.write("waitpoint.toml", SETTINGS)
    bare.write("flow.py", FLOW)
    return bare


@pytest.fixture
def others(program: Program) -> Program:
    """Give the program in a folder with the graphs of `others.py`."""
    names = (
        "stopped",
        "stopped_async",
        "gated",
        "async_asks",
        "breaks",
        "withdrawn",
        "evens",
        "leaving",
        "nested",
        "remembered",
    )
    program.write("others.py", OTHERS)
    graphs = "".join(f'{name} = "others:{name}"\n' for name in names)
    program.write("waitpoint.toml", f'[graphs]\n{graphs}[store]\nurl = "sqlite:///threads.db"\n')
    return program
