"""Whatever an import looks like: after its migration the same names are bound, and no remark is lost."""

from __future__ import annotations

import ast
import io
import tokenize

from hypothesis import given
from hypothesis import strategies as st

from waitpoint.cli.migrate import imports
from waitpoint.cli.migrate.source import Source

MAPPED = ("interrupt", "Command", "Send")
KEPT = ("PregelExecutableTask", "TracePolicy", "omit_payload")
NAMES = st.lists(st.sampled_from([*MAPPED, *KEPT]), min_size=1, max_size=6, unique=True)


@st.composite
def statements(draw: st.DrawFn) -> str:
    """Draw a from-import with names, aliases, breaks and remarks in any of the forms that the grammar has."""
    parts = [name + draw(st.sampled_from(["", " as x", "  as   x"])) for name in draw(NAMES)]
    parts = [part.replace(" x", f" x{n}") for n, part in enumerate(parts)]
    before = draw(st.sampled_from(["", "if True: ", "x = 'ü🙂'; ", "try:\n    ", "def f():\n\t"]))
    if draw(st.booleans()):
        text = "(" + draw(st.sampled_from(["", "\n        ", "  # first\n        "]))
        for n, part in enumerate(parts):
            last = n + 1 == len(parts)
            text += part + ("" if last and draw(st.booleans()) else draw(st.sampled_from([",", " ,"])))
            text += draw(st.sampled_from([" ", f"  # of {n}\n        ", "\n        "]))
        text += ")"
    else:
        text = draw(st.sampled_from([", ", ",", ", \\\n        "])).join(parts)
    after = draw(st.sampled_from(["", "  # remark", "; y = 1", " ;y = 1  # remark"]))
    end = "\nexcept ImportError:\n    pass\n" if before.startswith("try") else draw(st.sampled_from(["", "\n"]))
    return f"{before}from langgraph.types import {text}{after}{end}"


def remarks(text: str) -> list[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    found = [part for token in tokens if token.type == tokenize.COMMENT for part in token.string.split("#")]
    return sorted(part.strip() for part in found if part.strip())


def bound(text: str) -> dict[str, str]:
    found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    return {f"{alias.name} as {alias.asname}": node.module or "" for node in found for alias in node.names}


@given(statements(), st.sampled_from(["\n", "\r\n"]))
def test_names_and_remarks_survive_and_each_name_comes_from_where_it_is(text: str, newline: str) -> None:
    text = text.replace("\n", newline)
    source = Source(text)
    kept = imports.rewrite(source)
    after = source.edited()
    assert bound(after).keys() == bound(text).keys()
    assert remarks(after) == remarks(text)
    homes = {name.split(" ")[0]: module for name, module in bound(after).items()}
    assert homes == {n: "waitpoint.types" if n in MAPPED else "langgraph.types" for n in homes}
    assert sorted(k.name for k in kept) == sorted(f"langgraph.types.{n}" for n in homes if n in KEPT)
    again = Source(after)
    imports.rewrite(again)
    assert again.edited() == after
    assert ("\r\n" in text) <= ("\n" not in after.replace("\r\n", ""))
