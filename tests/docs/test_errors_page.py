"""docs/errors.md lists every class that is raised or warned of, with its code."""

import inspect
from pathlib import Path

import pytest

import waitpoint.checkpoint.base
import waitpoint.errors
import waitpoint.store.base

PAGE = Path(__file__).parents[2] / "docs" / "errors.md"
RAISED = [
    cls
    for module in (waitpoint.errors, waitpoint.checkpoint.base, waitpoint.store.base)
    for cls in vars(module).values()
    if inspect.isclass(cls) and issubclass(cls, BaseException) and cls.__module__ == module.__name__
]


@pytest.mark.parametrize("raised", RAISED, ids=lambda cls: cls.__name__)
def test_the_page_on_errors_lists_every_class_with_its_code(raised: type[BaseException]) -> None:
    code = getattr(raised, "code", None)
    row = f"| `{raised.__name__}` |" + (f" `{code}` |" if code else "")
    assert row in PAGE.read_text(encoding="utf-8")
