"""waitpoint.toml, stores and graphs: where they are found, and what is said when they are not."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.cli.program import APPROVE, FLOW, SETTINGS, Program


def test_settings_are_found_upward_and_their_paths_are_relative_to_them(program: Program) -> None:
    inner = program.folder / "a" / "b"
    inner.mkdir(parents=True)
    program.start("x")
    assert program("inbox", folder=inner).out == program("inbox").out
    done = program("run", "release", "--input", '{"parts": []}', folder=inner)
    assert done.code == 0, done.err
    assert [p.name for p in inner.iterdir()] == []


def test_flags_take_the_place_of_what_the_settings_say(program: Program) -> None:
    program.start("x")
    other = ("--store", "sqlite:///other.db")
    assert program("run", "flow:graph", "--input", '{"parts": ["y"]}', "--thread", "o", *other).code == 0
    assert [q["thread_id"] for q in program("inbox", "--json", *other).json["questions"]] == ["o"]
    assert [q["thread_id"] for q in program("inbox", "--json").json["questions"]] == ["t"]
    moved = program.write("conf/mine.toml", SETTINGS.replace("threads.db", "../other.db"))
    found = program("inbox", "--json", "--config", str(moved)).json["questions"]
    assert [q["thread_id"] for q in found] == ["o"]


def test_lines_to_type_repeat_the_flags_that_are_needed(bare: Program) -> None:
    bare.write("flow.py", FLOW)
    flags = ("--store", "sqlite:///x.db")
    done = bare("run", "flow:graph", "--input", '{"parts": ["y"]}', *flags)
    (line,) = [each.strip() for each in done.out.splitlines() if "approve" in each]
    assert line.startswith("waitpoint answer ")
    assert line.endswith("--store sqlite:///x.db --graph flow:graph")
    answered = bare(*shlex.split(line)[1:])
    assert answered.code == 0
    assert "published y" in answered.out


def test_an_absolute_store_and_one_with_spaces_work(program: Program, tmp_path: Path) -> None:
    path = tmp_path / "with space" / "a%20b.db"
    path.parent.mkdir()
    for url in (f"sqlite:///{path.parent}/a%2520b.db", "sqlite:///with%20space/a%2520b.db"):
        assert program("run", "release", "--input", '{"parts": []}', "--store", url).code == 0
    assert [p.name for p in path.parent.glob("*.db")] == ["a%20b.db"]


@pytest.mark.parametrize(
    ("toml", "says"),
    [
        ("[graphs", "is not TOML"),
        ('[graph]\na = "b:c"', "did you mean 'graphs'?"),
        ('graphs = "x"', "write it as a table"),
        ('[graphs]\na = "b"', 'write a = "module:attr"'),
        ("[graphs]\na = 5", 'write a = "module:attr"'),
        ('[store]\nurls = "x"', "did you mean 'url'?"),
        ("[store]\nurl = 5", 'write url = "sqlite:///threads.db"'),
        ('[python]\npath = "src"', 'write path = ["src"]'),
        ("", "No store is named"),
        ("[store]", "No store is named"),
        ('[store]\nurl = "threads.db"', "write sqlite:///threads.db"),
        ('[store]\nurl = "postgres://h/d"', "a 'postgres' store, which this version does not have"),
        ('[store]\nurl = "sqlite://"', "names no file"),
        ('[store]\nurl = "sqlite:///"', "names no file"),
        ('[store]\nurl = "sqlite:///:memory:"', "lives only as long as one command"),
        ('[store]\nurl = "sqlite:///nowhere/threads.db"', "nothing was run on it yet"),
        ('[store]\nurl = "sqlite:///flow.py"', "is not a SQLite database"),
        ('[store]\nurl = "sqlite:///."', "is a folder"),
    ],
)
def test_settings_that_cannot_work_are_told_in_one_sentence(program: Program, toml: str, says: str) -> None:
    program.write("waitpoint.toml", toml)
    assert says in program("inbox").refused(2)


def test_reading_makes_no_store_and_running_makes_no_folder(program: Program) -> None:
    for words in (["inbox"], ["threads"], ["show", "a"], ["answer", "a", "1"], ["trace", "t"], ["continue", "t"]):
        assert "no store at" in program(*words).refused(2)
    url = "sqlite:///nowhere/threads.db"
    assert "no folder" in program("run", "release", "--input", "{}", "--store", url).refused(2)
    assert sorted(p.name for p in program.folder.iterdir()) == ["flow.py", "waitpoint.toml"]


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("relaese", "Unknown graph 'relaese'"),
        ("flow:", "names no graph"),
        (":graph", "names no graph"),
        ("flow.py:graph", "no module 'flow.py'"),
        ("./flow:graph", "names no graph"),
        ("nowhere:graph", "no module 'nowhere'"),
        ("flow:grph", "did you mean 'graph'?"),
        ("flow:zzz", "its graphs are 'graph'"),
        ("flow:builder", "not compiled"),
        ("flow:Decision", "is the class Decision, not a compiled graph"),
        ("flow:plan", "is a function, not a compiled graph"),
        ("broken:graph", "NameError: name 'undefined_thing' is not defined"),
        ("wrong:graph", "SyntaxError"),
        ("needs:graph", "ModuleNotFoundError: No module named 'not_installed'"),
        ("leaves:graph", "SystemExit: 3"),
    ],
)
def test_a_graph_that_cannot_be_had_is_told_in_one_sentence(program: Program, target: str, says: str) -> None:
    program.write("broken.py", "undefined_thing\n")
    program.write("wrong.py", "def (:\n")
    program.write("needs.py", "import not_installed\n")
    program.write("leaves.py", "import sys\nsys.exit(3)\n")
    assert says in program("run", target, "--input", "{}").refused(2)
    assert not (program.folder / "threads.db").exists()


def test_a_folder_of_the_settings_is_importable(program: Program) -> None:
    program.write("src/app/__init__.py", "")
    program.write("src/app/flows.py", FLOW.replace('"release"', '"inner"'))
    program.write("waitpoint.toml", SETTINGS + '\n[python]\npath = ["src"]\n')
    assert program("run", "app.flows:graph", "--input", '{"parts": []}').code == 0


def test_a_thread_finds_its_graph_by_the_graphs_own_name(program: Program) -> None:
    program.write("waitpoint.toml", SETTINGS.replace("release =", "any_label ="))
    done = program("run", "any_label", "--input", '{"parts": ["x"]}', "--thread", "t", "--json")
    (question,) = done.json["questions"]
    assert question["graph"] == "release"
    assert program("answer", question["id"], APPROVE).code == 0


def test_graphs_of_one_name_are_told_apart_by_the_flag(program: Program) -> None:
    program.write("flow.py", FLOW.replace('name="release"', "") + "\nother = builder.compile()\n")
    program.write("waitpoint.toml", SETTINGS.replace("[store]", 'second = "flow:other"\n[store]'))
    ids = program.start("x", "y")
    before = program.state()
    assert "'release' and 'second' are all named 'LangGraph'" in program("answer", ids["x"], APPROVE).refused(2)
    assert program.state() == before
    assert program("answer", ids["x"], APPROVE, "--graph", "second").code == 0
    assert program("answer", ids["y"], APPROVE, "--graph", "flow:other").code == 0


def test_an_answer_without_its_graph_is_not_recorded(program: Program) -> None:
    ids = program.start("x")
    before = program.state()
    program.write("waitpoint.toml", SETTINGS.replace('release = "flow:graph"', ""))
    assert "is not in [graphs]" in program("answer", ids["x"], APPROVE).refused(2)
    program.write("waitpoint.toml", SETTINGS.replace("flow:graph", "gone:graph"))
    assert "no module 'gone'" in program("answer", ids["x"], APPROVE).refused(2)
    program.write("other.py", FLOW.replace('"release"', '"other"'))
    assert "is named 'other', but the thread belongs to graph 'release'" in (
        program("answer", ids["x"], APPROVE, "--graph", "other:graph").refused(2)
    )
    program.write("waitpoint.toml", SETTINGS)
    assert program.state() == before


def test_a_broken_graph_beside_does_no_harm(program: Program) -> None:
    ids = program.start("x")
    program.write("waitpoint.toml", SETTINGS.replace("[graphs]", '[graphs]\nbad = "gone:graph"'))
    assert program("answer", ids["x"], APPROVE).code == 0


def test_a_graph_with_another_checkpointer_is_refused_and_one_with_the_same_store_works(program: Program) -> None:
    own = "\nfrom waitpoint.checkpoint.{0} import {1}\nown = builder.compile(name='own', checkpointer={1}({2}))\n"
    program.write("memory.py", FLOW + own.format("memory", "InMemorySaver", ""))
    assert "compiled with its own InMemorySaver" in program("run", "memory:own", "--input", '{"parts": []}').refused(2)
    program.write("file.py", FLOW + own.format("sqlite", "SqliteSaver", f"{str(program.folder / 'threads.db')!r}"))
    assert program("run", "file:own", "--input", '{"parts": []}').code == 0
    program.write("elsewhere.py", FLOW + own.format("sqlite", "SqliteSaver", f"{str(program.folder / 'else.db')!r}"))
    assert "compiled with its own SqliteSaver" in program("run", "elsewhere:own", "--input", '{"parts": []}').refused(2)
