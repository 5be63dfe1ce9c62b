"""What every test shares: how hard hypothesis works, and readable failures of the shipped suites."""

import sys
import zlib

import pytest
from hypothesis import settings

settings.register_profile("fast", max_examples=60, deadline=None)
settings.register_profile("proof", max_examples=3000, deadline=None)
settings.load_profile("fast")

pytest.register_assert_rewrite("waitpoint.testing.conformance")  # before anything imports it


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--short", action="store_true", help="for the Pythons beside the first: see ARCHITECTURE.md")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:  # workers that share the tests have to see the same names
        if " at 0x" in item.nodeid:
            raise pytest.UsageError(f"{item.nodeid!r} names an object by its address; give its parameters `ids`")
    if config.getoption("--short"):
        left_out = [item for item in items if _is_left_to_another_python(item)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not _is_left_to_another_python(item)]


def _is_left_to_another_python(item: pytest.Item) -> bool:
    """Peers, providers and browsers are other people's code, and drawn graphs show no Python. Of a test
    that takes every store, one store shows the Python.

    The cases of such tests, and of those of one module, are dealt out: each Python takes a twelfth.
    """
    folder = item.nodeid.split("/")[1]
    if folder in {"browser", "differential", "model", "providers"}:
        return True
    case = item.nodeid.partition("[")[2].lower()
    if not case or not (folder in {"agents", "behaviours", "founding", "scenarios"} or folder.startswith("test_")):
        return False
    return "sqlite" in case or zlib.crc32(item.nodeid.encode()) % 12 != sys.version_info.minor % 3
