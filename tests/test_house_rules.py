"""The house test can fail: each rule is broken once in a made-up package and says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.house import files, layers, shape
from tests.house.source import Package

LONG = "def f():\n" + "    x = 1\n" * 70
TWO_ERRORS = "class A(Exception):\n    'Say.'\n    code = 'a'\nclass B(ValueError):\n    'Say.'\n    code = 'a'"
CONTROL_FLOW = "class GraphBubbleUp(BaseException):\n    'Say.'\nclass ParentCommand(GraphBubbleUp):\n    'Say.'"

# rule, files of the package, what the complaint says (None: there is none)
CASES: list[tuple[Callable[[Package], list[str]], Mapping[str, str], str | None]] = [
    (layers.modules_without_a_place, {"stuff.py": ""}, "stuff: belongs to no layer"),
    (layers.modules_without_a_place, {"types.py": "", "core/plan.py": "", "checkpoint/sqlite/rows.py": ""}, None),
    (layers.imports_from_a_higher_layer, {"core/a.py": "import waitpoint.engine.b", "engine/b.py": ""}, "higher layer"),
    (
        layers.imports_from_a_higher_layer,
        {"core/a.py": "from waitpoint import engine", "engine/__init__.py": ""},
        "higher",
    ),
    (
        layers.imports_from_a_higher_layer,
        {
            "ids.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from waitpoint.core.a import A",
            "core/a.py": "",
        },
        "higher layer",
    ),
    (
        layers.imports_from_a_higher_layer,
        {"checkpoint/base.py": "from waitpoint.checkpoint.memory import M", "checkpoint/memory.py": ""},
        "higher layer",
    ),
    (
        layers.imports_from_a_higher_layer,
        {"engine/a.py": "from .. import graph", "graph/__init__.py": ""},
        "higher layer",
    ),
    (layers.imports_from_a_higher_layer, {"engine/a.py": "from waitpoint.types import S", "types.py": ""}, "a facade"),
    (layers.imports_from_a_higher_layer, {"engine/a.py": "from waitpoint.core.b import B", "core/b.py": ""}, None),
    (
        layers.import_rings,
        {
            "core/a.py": "import waitpoint.core.b",
            "core/b.py": "import waitpoint.core.c",
            "core/c.py": "import waitpoint.core.a",
        },
        "waitpoint.core.a -> waitpoint.core.b -> waitpoint.core.c -> waitpoint.core.a",
    ),
    (
        layers.import_rings,
        {
            "core/a.py": "import waitpoint.core.b",
            "core/b.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from waitpoint.core.a import A",
        },
        "waitpoint.core.a -> waitpoint.core.b -> waitpoint.core.a",
    ),
    (
        layers.import_rings,
        {"graph/__init__.py": "import waitpoint.func.t", "graph/a.py": "", "func/t.py": "import waitpoint.graph.a"},
        "waitpoint.func.t -> waitpoint.graph -> waitpoint.func.t",
    ),
    (layers.import_rings, {"graph/__init__.py": "import waitpoint.graph.a", "graph/a.py": "", "func.py": ""}, None),
    (layers.impure_core, {"core/a.py": "import time"}, "core.a:1 imports time"),
    (layers.impure_core, {"core/a.py": "from os import path"}, "imports os"),
    (layers.impure_core, {"core/a.py": "from waitpoint import clock", "clock.py": ""}, "imports waitpoint.clock"),
    (layers.impure_core, {"core/a.py": "async def f(): ..."}, "core.a:1 awaits"),
    (layers.impure_core, {"core/a.py": "import datetime\nx = datetime.datetime.now()"}, "calls datetime.datetime.now"),
    (layers.impure_core, {"core/a.py": "x = open('f')"}, "calls open"),
    (
        layers.impure_core,
        {"core/a.py": "from datetime import datetime\nx: datetime", "engine/a.py": "import time"},
        None,
    ),
    (layers.clocks_outside_the_clock, {"engine/a.py": "import time\nx = time.time()"}, "calls time.time"),
    (layers.clocks_outside_the_clock, {"clock.py": "import time\nx = time.time()"}, None),
    (layers.sql_outside_the_stores, {"engine/a.py": "q = 'SELECT a FROM b'"}, "engine.a:1 holds SQL"),
    (layers.sql_outside_the_stores, {"cli/a.py": "q = f'''\n  DELETE FROM {1}'''"}, "holds SQL"),
    (layers.sql_outside_the_stores, {"cli/a.py": "import sqlite3"}, "imports sqlite3"),
    (layers.sql_outside_the_stores, {"checkpoint/a.py": "import sqlite3\nq = 'SELECT a FROM b'"}, None),
    (layers.sql_outside_the_stores, {"cli/a.py": "'''SELECT a FROM b'''\nx = 'SELECT one of these'"}, None),
    (
        layers.concrete_stores_outside_the_wiring,
        {"agents/a.py": "from waitpoint.checkpoint import sqlite", "checkpoint/sqlite.py": ""},
        "a concrete store",
    ),
    (
        layers.concrete_stores_outside_the_wiring,
        {
            "agents/a.py": "from waitpoint.checkpoint.base import Saver",
            "cli/a.py": "import waitpoint.checkpoint.sqlite",
            "checkpoint/base.py": "",
            "checkpoint/sqlite.py": "",
        },
        None,
    ),
    (layers.http_outside_its_rooms, {"engine/a.py": "import http.client"}, "imports http.client"),
    (layers.http_outside_its_rooms, {"server/a.py": "import fastapi"}, None),
    (layers.faces_known_to_the_engine, {"engine/a.py": "import waitpoint.agents.b", "agents/b.py": ""}, "imports"),
    (layers.faces_known_to_the_engine, {"engine/a.py": "def is_approved(): ..."}, "speaks of 'is_approved'"),
    (layers.forbidden_dependencies, {"agents/a.py": "import langgraph.graph"}, "imports langgraph.graph"),
    (layers.forbidden_dependencies, {"agents/a.py": "from langchain import agents"}, "imports langchain"),
    (layers.forbidden_dependencies, {"engine/a.py": "import langchain_core.messages"}, "imports langchain_core"),
    (layers.forbidden_dependencies, {"agents/a.py": "import langchain_core.messages"}, None),
    (layers.imports_inside_functions, {"cli/a.py": "def f():\n    import os"}, "cli.a:2 imports os inside"),
    (
        layers.imports_inside_functions,
        {"cli/a.py": "class A:\n    def f(self):\n        import re"},
        "imports re inside",
    ),
    (
        layers.imports_inside_functions,
        {"core/a.py": "def f():\n    return import_module('waitpoint.core.b')", "core/b.py": ""},
        "imports waitpoint.core.b inside",
    ),
    (layers.imports_inside_functions, {"cli/a.py": "def f():\n    from pydantic import BaseModel"}, None),
    (shape.packages_that_define_something, {"core/__init__.py": "def f(): ..."}, "core:1 defines something"),
    (
        shape.packages_that_define_something,
        {"core/__init__.py": "def __getattr__(name): ..."},
        "core:1 defines something",
    ),
    (shape.packages_that_define_something, {"core/__init__.py": "x = 1"}, "core:1 defines something"),
    (shape.packages_that_define_something, {"graph/__init__.py": "def __getattr__(name): ..."}, None),
    (shape.packages_that_define_something, {"core/__init__.py": "'''Doc.'''\nimport re\n__all__ = ['re']"}, None),
    (shape.modules_without_a_first_line, {"core/a.py": "x = 1"}, "core.a: has no docstring"),
    (shape.errors_outside_the_errors, {"core/a.py": "class OddError(ValueError): ..."}, "declares 'OddError'"),
    (shape.errors_without_text_or_code, {"errors.py": "class A(Exception):\n    code = 'a'"}, "A: has no docstring"),
    (shape.errors_without_text_or_code, {"errors.py": "class A(Exception):\n    'Say.'"}, "A: has no code of its own"),
    (
        shape.errors_without_text_or_code,
        {"errors.py": TWO_ERRORS},
        "B: has the code 'a' of A",
    ),
    (
        shape.errors_without_text_or_code,
        {"errors.py": "class A(Exception):\n    'Say.'\n    code = 'A b'"},
        "lower_snake_case",
    ),
    (
        shape.errors_without_text_or_code,
        {"errors.py": CONTROL_FLOW},
        None,
    ),
    (
        shape.errors_without_text_or_code,
        {"errors.py": "class A(Exception):\n    'Say.'\n    code = 'a'\nclass B(A): ..."},
        "B: has no docstring",
    ),
    (shape.long_parameter_lists, {"core/a.py": "def f(a, b, c, d, e, f, g, *h): ..."}, "core.a:f: 8 parameters"),
    (shape.long_parameter_lists, {"core/a.py": "class A:\n    def f(self, a, b, c, d, e, f, *, g): ..."}, None),
    (shape.long_parameter_lists, {"graph/a.py": "class A:\n    def compile(self, a, b, c, d, e, f, g, h): ..."}, None),
    (lambda p: shape.long_functions([*p.modules.values()]), {"core/a.py": LONG}, "core.a:f: 71 lines"),
    (lambda p: shape.long_files([*p.modules.values()]), {"core/a.py": "x = 1\n" * 500}, "core.a: 500 lines"),
]


@pytest.mark.parametrize(("rule", "sources", "complaint"), CASES, ids=lambda value: getattr(value, "__name__", ""))
def test_rule_complains_only_when_it_is_broken(
    tmp_path: Path, rule: Callable[[Package], list[str]], sources: Mapping[str, str], complaint: str | None
) -> None:
    folder = tmp_path / "waitpoint"
    for name, text in {"__init__.py": "", **sources}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    found = rule(Package(folder))
    if complaint is None:
        assert found == []
    else:
        assert any(complaint in line for line in found), found


@pytest.mark.parametrize(
    "line",
    ["see /wo~rk/main", "cd /ro~ot/x", "/t~mp/x", "../sh~ared/spec", "https://py~pi.org/simple", "Co-auth~ored-by: x"],
)
def test_forbidden_words_are_found_with_their_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "page.md"
    path.write_text("fine\n" + line.replace("~", ""), encoding="utf-8")
    assert [f.split(" ")[0] for f in files.forbidden_words(tmp_path, [path])] == ["page.md:2"]


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("resume-by-id.added.md", "Answers are given by id.\n", None),
        ("Resume.added.md", "Answers are given by id.\n", "the name"),
        ("resume.improved.md", "Answers are given by id.\n", "the name"),
        ("resume.added.md", "", "one paragraph"),
        ("resume.added.md", "One.\n\nTwo.\n", "one paragraph"),
        ("resume.added.md", "- a bullet.\n", "whole sentences"),
        ("resume.added.md", "no end\n", "whole sentences"),
    ],
)
def test_changelog_fragment_is_judged(tmp_path: Path, name: str, text: str, complaint: str | None) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    found = files.misshapen_fragments(tmp_path)
    assert len(found) == (complaint is not None)
    assert all(complaint in line for line in found if complaint)


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        ("| `core/` | Computes. |\n| `core/deep/` | Digs. |", None),
        ("| `core/` | Computes. |\n| `core/deep/` | Digs. |\n| `engine/` (planned) | Runs. |", None),
        ("| `core/` | Computes. |", "core/deep/ exists"),
        ("| `core/` | Computes. |\n| `core/deep/` | Digs. |\n| `engine/` | Runs. |", "engine/ is listed, but"),
        ("| `core/` | Computes. |\n| `core/` | Again. |\n| `core/deep/` | Digs. |", "core/ is listed twice"),
        ("| `core/` | Computes. |\n| `core/deep/` | |", "core/deep/ is listed without"),
    ],
)
def test_table_of_folders_is_compared_with_the_folders(tmp_path: Path, table: str, complaint: str | None) -> None:
    (tmp_path / "core" / "deep").mkdir(parents=True)
    (tmp_path / "core" / "__init__.py").touch()
    (tmp_path / "core" / "deep" / "a.py").touch()
    found = files.folders_that_disagree(table, tmp_path)
    assert len(found) == (complaint is not None)
    assert all(complaint in line for line in found if complaint)


def test_sleeping_test_is_found(tmp_path: Path) -> None:
    path = tmp_path / "tests" / "test_a.py"
    path.parent.mkdir()
    calls = "await asyncio.sl~eep(0)\ntime.sl~eep(1)\nawait asyncio.sl~eep(0.1)\n"
    path.write_text(calls.replace("~", ""), encoding="utf-8")
    assert [f.split(" ")[0] for f in files.calls_of_sleep(tmp_path, [path])] == [
        "tests/test_a.py:2",
        "tests/test_a.py:3",
    ]


def test_pages_and_links_are_compared_with_the_files(tmp_path: Path) -> None:
    index = tmp_path / "README.md"
    index.write_text("[a](a.md#part) [gone](gone.md) [web](https://example.org) [here](#x)", encoding="utf-8")
    (tmp_path / "a.md").touch()
    (tmp_path / "b.md").touch()
    assert files.pages_missing_from_the_index(tmp_path) == ["docs/README.md does not link b.md"]
    assert files.broken_links(tmp_path, [index]) == ["README.md links gone.md, which does not exist"]
