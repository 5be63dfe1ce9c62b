"""Runs the Python blocks of a Markdown page as one program and compares what the page says they give.

A ```python block runs in the namespace of the blocks before it on the page. Three things are compared:
- `expression  # -> value`: what it prints or, if it prints nothing, its repr; also after an assignment;
- a ```text block right after a ```python block: all that the block printed;
- nothing else: a block without either must only run.
`...` in an expected text stands for anything. ```python norun is shown and not run. `await` works at the top level.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import io
import linecache
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, OutputChecker
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^`\n]*)$")
EXPECTED = re.compile(r"#\s*->\s*(?P<text>.+?)\s*$")


@dataclass(frozen=True)
class Block:
    """A fenced block: what follows the fence, the line its text starts at, its text, the text block after it."""

    info: str
    line: int
    text: str
    output: str | None = None


def blocks(markdown: str) -> list[Block]:
    """List the Python blocks of a page that run, each with the output the page shows for it."""
    lines = markdown.splitlines()
    runs = []
    for block, after in pairwise([*_fenced(markdown), None]):
        if block is None or block.info != "python":
            continue
        end = block.line + block.text.count("\n")  # lines are counted from 1: this one follows the closing fence
        shows = after is not None and after.info == "text" and not "".join(lines[end : after.line - 2]).strip()
        runs.append(replace(block, output=after.text if after and shows else None))
    return runs


def run_page(path: Path, name: str) -> int:
    """Run a page's blocks in order, tell how many there were; raise AssertionError at the first that disagrees."""
    found = blocks(path.read_text(encoding="utf-8"))
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module  # type hints and stored classes are looked up by module name
    # Sources of functions are looked up by file name and line: let the page itself be the file.
    filename = f"{path}.py"
    source = "".join(f"{line}\n" for line in _only_code(path, found))
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    try:
        with asyncio.Runner() as runner:
            for block in found:
                _run_block(block, module, filename, runner)
    finally:
        sys.modules.pop(name, None)
        linecache.cache.pop(filename, None)
    return len(found)


def _run_block(block: Block, module: ModuleType, filename: str, runner: asyncio.Runner) -> None:
    lines = block.text.splitlines()
    printed = ""
    for node in ast.parse(block.text).body:
        last = lines[(node.end_lineno or node.lineno) - 1]
        expected = EXPECTED.search(last)
        ast.increment_lineno(node, block.line - 1)
        output, value = _run_statement(node, module, filename, runner)
        printed += output
        if expected:
            where = f"{filename.removesuffix('.py')}:{node.lineno}"
            _compare(where, expected["text"], output.strip() or repr(value))
    if block.output is not None:
        _compare(f"{filename.removesuffix('.py')}:{block.line}", block.output, printed)


def _run_statement(node: ast.stmt, module: ModuleType, filename: str, runner: asyncio.Runner) -> tuple[str, object]:
    """Run one statement; give what it printed and the value it has or assigned."""
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    namespace = module.__dict__
    out = io.StringIO()
    value: Any = None
    with contextlib.redirect_stdout(out):
        if isinstance(node, ast.Expr):
            code = compile(ast.Expression(node.value), filename, "eval", flags, dont_inherit=True)
        else:
            code = compile(ast.Module([node], []), filename, "exec", flags, dont_inherit=True)
        value = eval(code, namespace)
        if code.co_flags & inspect.CO_COROUTINE:
            value = runner.run(value)
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        value = namespace[node.targets[0].id]
    return out.getvalue(), value


def _compare(where: str, expected: str, got: str) -> None:
    options = ELLIPSIS | NORMALIZE_WHITESPACE
    if not OutputChecker().check_output(expected.strip() + "\n", got.strip() + "\n", options):
        raise AssertionError(f"{where}\nthe page says: {expected.strip()}\nit gives:      {got.strip()}")


def _fenced(markdown: str) -> Iterator[Block]:
    opened: re.Match[str] | None = None
    start = 0
    text: list[str] = []
    for number, line in enumerate(markdown.splitlines(), start=1):
        if opened is None:
            opened = FENCE.match(line)
            start, text = number + 1, []
        elif line.strip() == "```":
            yield Block(opened["info"].strip(), start, "".join(f"{t}\n" for t in text))
            opened = None
        else:
            text.append(line.removeprefix(opened["indent"]))
    if opened is not None:
        raise AssertionError(f"the block that opens at line {start - 1} is never closed")


def _only_code(path: Path, found: list[Block]) -> list[str]:
    lines = [""] * len(path.read_text(encoding="utf-8").splitlines())
    for block in found:
        code = block.text.splitlines()
        lines[block.line - 1 : block.line - 1 + len(code)] = code
    return lines
