"""The scripts behind `make`: which Python they take, and what `make test` runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


def find_python(path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run scripts/find-python where PATH is one folder and no version manager is near."""
    command = ["/bin/sh", str(ROOT / "scripts" / "find-python"), *arguments]
    nowhere = str(path / "nowhere")
    return subprocess.run(
        command, env={"PATH": str(path), "HOME": nowhere, "PYENV_ROOT": nowhere}, capture_output=True, text=True
    )


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """Give a folder in which every Python is a name that does not run."""
    for name in ("python3", "python3.11", "python3.12", "python3.13"):
        (tmp_path / name).write_text("#!/bin/sh\nexit 127\n")
        (tmp_path / name).chmod(0o755)
    return tmp_path


def replace_by_working(broken: Path, name: str) -> None:
    (broken / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')


@pytest.mark.parametrize("arguments", [(), (VERSION,)])
def test_a_python_that_does_not_run_is_passed_over(broken: Path, arguments: tuple[str, ...]) -> None:
    replace_by_working(broken, f"python{VERSION}")
    done = find_python(broken, *arguments)
    assert (done.returncode, done.stdout.strip()) == (0, sys.executable)


def test_plain_python3_serves_for_its_own_version(broken: Path) -> None:
    replace_by_working(broken, "python3")
    assert find_python(broken, VERSION).stdout.strip() == sys.executable


def test_a_python_of_another_version_is_not_taken_for_the_wanted_one(broken: Path) -> None:
    replace_by_working(broken, "python3")
    other = "3.12" if VERSION != "3.12" else "3.13"
    done = find_python(broken, other)
    assert (done.returncode, done.stdout) == (1, "")


def test_no_working_python_is_said_with_the_cure(broken: Path) -> None:
    done = find_python(broken)
    assert done.returncode == 1
    assert "no working Python 3.11 or newer" in done.stderr
    assert "python3-venv" in done.stderr


def test_a_version_manager_s_folder_is_searched(broken: Path) -> None:
    folder = broken / "nowhere" / "versions" / f"{VERSION}.99" / "bin"
    folder.mkdir(parents=True)
    replace_by_working(folder, f"python{VERSION}")
    (folder / f"python{VERSION}").chmod(0o755)
    assert find_python(broken, VERSION).stdout.strip() == sys.executable


def test_make_test_runs_every_check() -> None:
    done = subprocess.run(["make", "-n", "-C", str(ROOT), "test"], capture_output=True, text=True, check=True)
    for command in ("ruff format --check .", "ruff check .", "bin/mypy", "pytest -q", "scripts/test-other-pythons"):
        assert command in done.stdout
