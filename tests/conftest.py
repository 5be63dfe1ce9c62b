"""What every test shares: how hard hypothesis works, and readable failures of the shipped suites."""

import pytest
from hypothesis import settings

settings.register_profile("fast", max_examples=60, deadline=None)
settings.register_profile("proof", max_examples=3000, deadline=None)
settings.load_profile("fast")

pytest.register_assert_rewrite("waitpoint.testing.conformance")  # before anything imports it


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse names that differ from process to process: workers that share the tests have to see the same ones."""
    for item in items:
        if " at 0x" in item.nodeid:
            raise pytest.UsageError(f"{item.nodeid!r} names an object by its address; give its parameters `ids`")
