"""Every Python block of every page runs, and gives what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import run_page

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_runs_and_gives_what_it_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(page, f"page_{page.stem.replace('-', '_')}")
