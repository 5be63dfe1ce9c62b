"""Where a program probably meets a difference of behaviour."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from waitpoint.cli.migrate.notes import differences

PAGE = Path(__file__).parents[2] / "docs" / "from-langgraph.md"
HEAD = "from langgraph.types import Command, interrupt\n"

FOUND = [
    ("interrupt(1)\nb.compile()", "no-checkpointer", 3),
    ("interrupt(1)\nb.compile(checkpointer=None)", "no-checkpointer", 3),
    ("HumanInTheLoopMiddleware(x)\ncreate_agent(m, t)", "no-checkpointer", 3),
    ("Command(resume={})", "empty-answer", 2),
    ("g.invoke(Command(), c)", "empty-command", 2),
    ("g.invoke(None, c)", "continued", 2),
    ("interrupt(1)\ng.invoke({'a': 1}, c)\ng.invoke({'a': 2}, c)", "new-input", 4),
    ("interrupt(1)\nwhile True:\n    g.stream(text, c)", "new-input", 4),
    ("interrupt('x', response_schema={'type': 'string'})", "raw-schema", 2),
    ("g.invoke(x, c, durability='exit')", "durability-exit", 2),
    ("HumanInTheLoopMiddleware({'a': True})", "rejection", 2),
    ("HumanInTheLoopMiddleware({'a': {'when': f}})", "when", 2),
    ("try:\n    x = interrupt(1)\nexcept:\n    pass", "swallowed", 4),
    ("try:\n    x = interrupt(1)\nexcept GraphInterrupt:\n    pass", "swallowed", 4),
    ("for x in y:\n    interrupt('go on?')", "identity", 3),
    ("c = {'configurable': {'__pregel_strict_resume': True}}", "strict-resume", 2),
]

NOT_FOUND = [
    "interrupt(1)\nb.compile(checkpointer=saver)",
    "interrupt(1)\nb.compile(saver)",
    "interrupt(1)\nb.compile(**options)",
    "interrupt(1)\nre.compile('x')",
    "b.compile()",
    "Command(resume={'a': 1})",
    "Command(resume=x)",
    "g.invoke({'a': 1}, c)\ng.invoke({'a': 1}, d)",
    "interrupt(1)\ng.invoke({'a': 1}, c)\ng.invoke(Command(resume=1), c)",
    "interrupt(1)\nfor part in g.stream({'a': 1}, c):\n    print(part)",
    "interrupt('x', response_schema=Model)",
    "try:\n    x = interrupt(1)\nexcept Exception:\n    pass",
    "try:\n    x = interrupt(1)\nexcept GraphInterrupt:\n    raise",
    "try:\n    f()\nexcept:\n    pass\ninterrupt(1)",
    "for x in y:\n    interrupt({'item': x})",
]


@pytest.mark.parametrize(("text", "about", "line"), FOUND)
def test_a_probable_difference_is_told_with_its_line(text: str, about: str, line: int) -> None:
    assert (line, about) in [(d.line, d.about) for d in differences(ast.parse(HEAD + text))]


@pytest.mark.parametrize("about", sorted({about for _, about, _ in FOUND}))
def test_the_page_has_a_row_for_it(about: str) -> None:
    assert f"\n| `{about}` |" in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("text", NOT_FOUND)
def test_nothing_is_told_where_nothing_differs(text: str) -> None:
    assert differences(ast.parse(HEAD + text)) == []
