"""Every example in a docstring runs, and gives what it says."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

from tests.house.source import Package

PACKAGE = Package(Path(__file__).resolve().parents[2] / "src" / "waitpoint")


def test_every_example_in_a_docstring_runs() -> None:
    names = [module.name for module in PACKAGE.modules.values() if ">>> " in module.text]
    results = {name: doctest.testmod(import_module(name), optionflags=doctest.ELLIPSIS) for name in names}
    assert {name: result.failed for name, result in results.items() if result.failed} == {}
