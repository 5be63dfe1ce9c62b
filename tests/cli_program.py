"""The command line in this process: as quick as a call, and nothing of it stays behind."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from waitpoint.cli import main


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Program:
    """Runs `waitpoint` in a folder."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.capsys, self.monkeypatch = folder, capsys, monkeypatch
        monkeypatch.setattr("shutil.which", lambda name: name)

    def __call__(self, *words: str, folder: Path | None = None) -> Done:
        self.monkeypatch.chdir(folder or self.folder)
        self.capsys.readouterr()
        path, modules = list(sys.path), set(sys.modules)
        try:
            with pytest.raises(SystemExit) as ended:
                main(list(words))
        finally:
            sys.path[:] = path
            for name in sys.modules.keys() - modules:
                if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(self.folder)):
                    del sys.modules[name]
        out, err = self.capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Done(ended.value.code, out, err)


@pytest.fixture
def program(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Program:
    """Give the program in an empty folder."""
    return Program(tmp_path, capsys, monkeypatch)
