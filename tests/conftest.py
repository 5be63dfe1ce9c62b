"""What every test shares: how hard hypothesis works, and readable failures of the shipped suites."""

import pytest
from hypothesis import settings

settings.register_profile("fast", max_examples=60, deadline=None)
settings.register_profile("proof", max_examples=3000, deadline=None)
settings.load_profile("fast")

pytest.register_assert_rewrite("waitpoint.testing.conformance")  # before anything imports it


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--short", action="store_true", help="leave out what does not depend on the Python: for the others"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:  # workers that share the tests have to see the same names
        if " at 0x" in item.nodeid:
            raise pytest.UsageError(f"{item.nodeid!r} names an object by its address; give its parameters `ids`")
    if config.getoption("--short"):
        left_out = [item for item in items if _is_the_same_on_every_python(item)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not _is_the_same_on_every_python(item)]


def _is_the_same_on_every_python(item: pytest.Item) -> bool:
    """Peers and providers are other people's code; a test that takes every store shows the Python on one of them."""
    folder = item.nodeid.split("/")[1]
    on_sqlite = "sqlite" in item.nodeid.partition("[")[2].lower()
    takes_every_store = folder in {"agents", "behaviours", "founding", "scenarios"}
    return folder in {"differential", "providers"} or (takes_every_store and on_sqlite)
