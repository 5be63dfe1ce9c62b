"""The harness itself: a page that is wrong must fail, at the right line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import blocks, run_page


def page(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "page.md"
    path.write_text(text.replace("'''", "```"), encoding="utf-8")
    return path


def test_blocks_of_one_page_share_a_namespace(tmp_path: Path) -> None:
    text = "'''python\nx = 2\n'''\n\nand then\n\n'''python\nx + 1  # -> 3\n'''\n"
    assert run_page(page(tmp_path, text), "page_shared") == 2


@pytest.mark.parametrize(
    ("block", "says", "gives"),
    [
        ("1 + 1  # -> 3", "3", "2"),
        ("x = 1 + 1  # -> 3", "3", "2"),
        ("print('a')  # -> b", "b", "a"),
        ("len(\n  'abc',\n)  # -> 4", "4", "3"),
        ("print('a')\n'''\n\n'''text\nb", "b", "a"),
    ],
)
def test_a_page_that_says_something_else_fails(tmp_path: Path, block: str, says: str, gives: str) -> None:
    with pytest.raises(AssertionError) as caught:
        run_page(page(tmp_path, f"# Title\n\n'''python\n{block}\n'''\n"), "page_wrong")
    text = str(caught.value)
    assert "page.md:4" in text
    assert f"the page says: {says}" in text
    assert f"it gives:      {gives}" in text


@pytest.mark.parametrize(
    "block",
    [
        "1 + 1  # -> 2",
        "print('one', 'two')  # -> one ...",
        "import asyncio\nawait asyncio.sleep(0, 'woke')  # -> 'woke'",
        "for n in range(2):\n    print(n)\n'''\n\n'''text\n0\n1",
        "import inspect\ndef f(): return 1\ninspect.getsource(f)  # -> 'def f(): return 1\\n'",
        "import sys\nclass A: pass\ngetattr(sys.modules[A.__module__], 'A') is A  # -> True",
        "1 + 1  # -> 2\n'''\n\nprose between, so the next block is not its output\n\n'''text\nsomething",
    ],
)
def test_a_page_that_is_right_passes(tmp_path: Path, block: str) -> None:
    assert run_page(page(tmp_path, f"'''python\n{block}\n'''\n"), "page_right") == 1


def test_a_block_that_raises_fails_at_its_line(tmp_path: Path) -> None:
    path = page(tmp_path, "# Title\n\n'''python\nx = 1\nx / 0\n'''\n")
    with pytest.raises(ZeroDivisionError) as caught:
        run_page(path, "page_raises")
    assert caught.traceback[-1].lineno == 4  # counted from 0


def test_other_blocks_do_not_run() -> None:
    text = "'''python norun\n1 / 0\n'''\n'''sh\nfalse\n'''\n'''\nnothing\n'''\n".replace("'''", "```")
    assert blocks(text) == []


def test_an_indented_block_runs(tmp_path: Path) -> None:
    assert run_page(page(tmp_path, "- item\n\n  '''python\n  if True:\n      x = 1\n  '''\n"), "page_indented") == 1


def test_a_block_that_is_never_closed_fails() -> None:
    with pytest.raises(AssertionError, match="line 1 is never closed"):
        blocks("```python\nx = 1\n")
