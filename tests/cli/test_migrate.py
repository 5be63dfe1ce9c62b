"""`waitpoint migrate`: programs come over by their imports, and do the same afterwards."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.cli.program import Program

PROGRAMS = sorted((Path(__file__).parent / "programs_to_migrate").glob("*.py"))
ASKS = """\
from langgraph.graph import START, StateGraph
from langgraph.types import PregelExecutableTask, interrupt

graph = StateGraph(dict).add_node("ask", lambda s: interrupt("?")).add_edge(START, "ask").compile()
"""


def loaded(path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_migrated_program_does_what_it_did_before(path: Path, bare: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    before: list[Any] = loaded(path, f"{path.stem}_before", monkeypatch).main()
    bare.write("program.py", path.read_text(encoding="utf-8"))
    assert bare("migrate", "program.py", "--write").code == 0
    after = loaded(bare.folder / "program.py", f"{path.stem}_after", monkeypatch)
    assert not {"langgraph", "langchain"} & {
        (getattr(each, "__module__", None) or "").partition(".")[0] for each in vars(after).values()
    }
    assert after.main() == before
    assert before


def test_without_write_only_a_diff_is_shown(bare: Program) -> None:
    bare.write("program.py", "from langgraph.types import interrupt\n")
    done = bare("migrate", "program.py")
    assert done.code == 0
    assert "-from langgraph.types import interrupt\n+from waitpoint.types import interrupt\n" in done.out
    assert "Would change 1 file; --write changes them." in done.out
    assert (bare.folder / "program.py").read_text() == "from langgraph.types import interrupt\n"


def test_what_could_not_be_mapped_is_listed_with_place_and_reason_and_gives_code_3(bare: Program) -> None:
    bare.write("app/program.py", ASKS)
    done = bare("migrate", "app", "--write")
    assert done.code == 3
    assert "app/program.py:2: langgraph.types.PregelExecutableTask - " in done.out
    assert "app/program.py:4: line 4 asks; in a graph without a checkpointer that is an error" in done.out
    text = (bare.folder / "app" / "program.py").read_text()
    assert text.startswith(
        "from waitpoint.graph import START, StateGraph\n"
        "from waitpoint.types import interrupt\n"
        "from langgraph.types import PregelExecutableTask\n"
    )


def test_json_says_the_same_for_programs(bare: Program) -> None:
    bare.write("program.py", ASKS)
    done = bare("migrate", "program.py", "--json")
    (file,) = json.loads(done.out)["files"]
    assert (file["path"], file["changed"], file["written"]) == ("program.py", True, False)
    assert "+from waitpoint.types import interrupt" in file["diff"]
    assert [(u["line"], u["name"]) for u in file["unmapped"]] == [(2, "langgraph.types.PregelExecutableTask")]
    assert [(d["line"], d["about"]) for d in file["differences"]] == [(4, "no-checkpointer")]


def test_a_second_time_nothing_is_left_to_change(bare: Program) -> None:
    bare.write("program.py", "from langgraph.types import interrupt\n")
    bare("migrate", ".", "--write")
    before = (bare.folder / "program.py").read_bytes()
    done = bare("migrate", ".", "--write")
    assert (done.code, done.out) == (0, "Nothing here imports LangGraph or LangChain.\n")
    assert (bare.folder / "program.py").read_bytes() == before


def test_folders_are_searched_but_not_environments_and_hidden_ones(bare: Program) -> None:
    text = "import langgraph.types\n"
    for name in ("a/b.py", ".venv/c.py", "venv/d.py", "node_modules/e.py", "__pycache__/f.py", "a/notes.txt"):
        bare.write(name, text)
    bare("migrate", ".", "--write")
    changed = [p.name for p in bare.folder.rglob("*.*") if p.is_file() and "waitpoint" in p.read_text()]
    assert changed == ["b.py"]


def test_a_path_that_is_not_there_is_a_mistake(bare: Program) -> None:
    done = bare("migrate", "nowhere.py")
    assert done.code == 2
    assert "There is no file or folder 'nowhere.py'" in done.err


def test_a_file_that_is_no_python_is_listed_and_left_alone(bare: Program) -> None:
    bare.write("old.py", "print 'langgraph'\nfrom langgraph.types import interrupt\n")
    done = bare("migrate", "old.py", "--write")
    assert done.code == 3
    assert "old.py:1: (the file) - this is not Python that can be read" in done.out
    assert "waitpoint" not in (bare.folder / "old.py").read_text()


def test_notebooks_are_reported_by_cell_and_left_alone(bare: Program) -> None:
    lines = ["import json\n", "from langgraph.types import interrupt\n", "from waitpoint.types import step"]
    cells = [{"cell_type": "markdown", "source": ["from langgraph"]}, {"cell_type": "code", "source": lines}]
    text = json.dumps({"cells": cells, "nbformat": 4}, indent=1)
    bare.write("book.ipynb", text)
    done = bare("migrate", "book.ipynb", "--write")
    line = next(n for n, each in enumerate(text.splitlines(), 1) if "langgraph.types" in each)
    assert done.code == 3
    assert f"book.ipynb:{line}: langgraph.types - cell 2 of a notebook" in done.out
    assert done.out.count("book.ipynb:") == 1
    assert (bare.folder / "book.ipynb").read_text() == text


def test_bytes_that_are_not_part_of_an_import_stay_as_they_are(bare: Program) -> None:
    text = "# -*- coding: latin-1 -*-\r\nname = 'é'; from langgraph.types import interrupt  # ü\r\n\tx = 1\r\n"
    path = bare.folder / "old.py"
    path.write_bytes(text.replace("\t", "").encode("latin-1"))
    assert bare("migrate", "old.py", "--write").code == 0
    assert path.read_bytes() == text.replace("\t", "").replace("langgraph", "waitpoint").encode("latin-1")


def test_a_mark_of_byte_order_stays(bare: Program) -> None:
    path = bare.folder / "bom.py"
    path.write_bytes(b"\xef\xbb\xbffrom langgraph.types import interrupt\n")
    bare("migrate", "bom.py", "--write")
    assert path.read_bytes() == b"\xef\xbb\xbffrom waitpoint.types import interrupt\n"
