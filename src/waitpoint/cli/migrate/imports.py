"""Rewrites imports of LangGraph and LangChain, and says of each that stays why it does."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from waitpoint.cli.migrate import table
from waitpoint.cli.migrate.source import Source

_TEXT = re.compile(r"(langgraph|langchain)(\.[A-Za-z_]\w*)+\Z")


class Kept(NamedTuple):
    """What could not be mapped: where, its name, and why."""

    line: int
    name: str
    why: str


def rewrite(source: Source) -> list[Kept]:
    """Note the edits of all imports in a file; return what stays as it is."""
    kept: list[Kept] = []
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ImportFrom) and not node.level and node.module:
            kept += _from(source, node, node.module)
        elif isinstance(node, ast.Import):
            kept += _plain(source, node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _TEXT.match(node.value):
            kept.append(
                Kept(node.lineno, node.value, "a text that names a module or a name is not changed; see what reads it")
            )
    return sorted(set(kept))


# --- from M import a, b as c ------------------------------------------------------------------------------------------


def _from(source: Source, node: ast.ImportFrom, module: str) -> Iterator[Kept]:
    if module.partition(".")[0] in table.BESIDE:
        yield Kept(
            node.lineno, module, "what this package builds are graphs of LangGraph; they do not run in Waitpoint"
        )
    if not table.is_theirs(module):
        return
    if any(alias.name == "*" for alias in node.names):
        yield Kept(node.lineno, f"{module}.*", "a star does not say which names are meant; import them by name")
        return
    homes: list[str] = []
    for alias in node.names:
        name = f"{module}.{alias.name}"
        home = table.counterpart(module, alias.name)
        if home is None and name in table.MODULES:
            home = _home_of_module(source, name, alias.asname or alias.name)
            if home is None:
                yield Kept(alias.lineno, name, "not all that the file uses of it has a counterpart; import these names")
        elif home is None:
            yield Kept(alias.lineno, name, table.reason(name))
        homes.append(home or module)
    _redirect(source, node, module, homes)


def _home_of_module(source: Source, module: str, bound_as: str) -> str | None:
    """Return where an imported module stands here, if everything that the file takes from it is there."""
    uses = _uses(source.tree, bound_as)
    if not table.same_place(module) or any(table.counterpart(module, attr) is None for attr in uses):
        return None
    return f"waitpoint.{module.partition('.')[2]}".rpartition(".")[0]


def _redirect(source: Source, node: ast.ImportFrom, module: str, homes: Sequence[str]) -> None:
    """Let each name come from its home; names that part ways get a statement of their own behind the first."""
    if all(home == module for home in homes):
        return
    start, end = source.span(node)
    first = homes[0]
    at = source.text.index(module, start)
    if all(home == first for home in homes):
        source.replace(at, at + len(module), first)
        return
    staying = max(dict.fromkeys(homes), key=lambda home: (home != module, homes.count(home)))
    source.replace(at, at + len(module), staying)
    moved: dict[str, list[str]] = {}
    remarks: dict[str, list[str]] = {}
    for index, (alias, home) in enumerate(zip(node.names, homes, strict=True)):
        if home == staying:
            continue
        moved.setdefault(home, []).append(f"{alias.name} as {alias.asname}" if alias.asname else alias.name)
        if remark := _take_out(source, node, index, [h == staying for h in homes]):
            remarks.setdefault(home, []).append(remark)
    lines = [f"from {home} import {', '.join(names)}" for home, names in moved.items()]
    tail = source.text[end : source.line_end(end)]
    is_alone = not source.text[source.line_start(start) : start].strip() and tail.lstrip()[:1] in ("", "#")
    if not is_alone:  # another statement stands on the line
        source.replace(end, end, "".join(f"; {line}" for line in lines))
        return
    indent = source.text[source.line_start(start) : start]
    said = ["  " + "  ".join(remarks[home]) if home in remarks else "" for home in moved]
    close = source.line_end(end)
    source.replace(close, close, "".join(f"{source.newline}{indent}{x}{r}" for x, r in zip(lines, said, strict=True)))


def _take_out(source: Source, node: ast.ImportFrom, index: int, stays: Sequence[bool]) -> str:
    """Cut one name out of a statement, with its line if it has one to itself; return the remark that stood there."""
    start, end = source.span(node.names[index])
    text = source.text
    line, close = source.line_start(start), source.line_end(end)
    after = re.match(r"\s*,?[ \t]*(#[^\r\n]*)?\Z", text[end:close])
    if not text[line:start].strip() and after:
        source.replace(line, close + len(re.match(r"\r\n|\r|\n|", text[close:]).group()), "")  # type: ignore[union-attr]
        return after[1] or ""
    if any(stays[index + 1 :]):
        end = source.span(node.names[index + 1])[0]
    elif index:
        start = source.span(node.names[index - 1])[1]
    source.replace(start, end, "")
    remark = re.search(r"#[^\r\n]*", text[start:end])
    return remark.group() if remark else ""


# --- import M, import M as x ------------------------------------------------------------------------------------------


def _plain(source: Source, node: ast.Import) -> Iterator[Kept]:
    dotted = [alias for alias in node.names if table.is_theirs(alias.name)]
    for alias in node.names:
        if alias.name.partition(".")[0] in table.BESIDE:
            yield Kept(
                node.lineno, alias.name, "what this package builds are graphs of LangGraph; they do not run here"
            )
    for alias in dotted:
        if alias.asname is None:
            missing = list(dict.fromkeys(_missing(source.tree, alias.name)))
        elif not table.same_place(alias.name):
            missing = [alias.name]
        else:
            uses = dict.fromkeys(_uses(source.tree, alias.asname))
            missing = [f"{alias.name}.{attr}" for attr in uses if table.counterpart(alias.name, attr) is None]
        for name in missing:
            yield Kept(alias.lineno, name, f"{table.reason(name)}, so `import {alias.name}` stays")
        if missing:
            continue
        start, _ = source.span(alias)
        source.replace(start, start + len(alias.name.partition(".")[0]), "waitpoint")
        if alias.asname is None:
            _rename_roots(source, alias.name.partition(".")[0])


def _uses(tree: ast.AST, bound_as: str) -> list[str]:
    return [a.attr for a in _attributes(tree) if isinstance(a.value, ast.Name) and a.value.id == bound_as]


def _missing(tree: ast.AST, imported: str) -> Iterator[str]:
    """Yield the dotted names under a package's name, anywhere in the file, that have no counterpart."""
    root = imported.partition(".")[0]
    if imported not in table.MODULES or not table.same_place(imported):
        yield imported
        return
    for chain in _chains(tree, root):
        parts = chain.split(".")
        if not any(
            table.same_place(module := ".".join(parts[:n])) and (n == len(parts) or table.counterpart(module, parts[n]))
            for n in range(len(parts), 1, -1)
        ):
            yield chain


def _chains(tree: ast.AST, root: str) -> Iterator[str]:
    """Yield each dotted name that begins with `root`, as far as it goes."""
    inner = {id(each.value) for each in _attributes(tree)}
    for each in ast.walk(tree):
        if isinstance(each, ast.Attribute | ast.Name) and id(each) not in inner:
            parts: list[str] = []
            at: ast.AST = each
            while isinstance(at, ast.Attribute):
                parts.append(at.attr)
                at = at.value
            if isinstance(at, ast.Name) and at.id == root:
                yield ".".join([root, *reversed(parts)])


def _rename_roots(source: Source, root: str) -> None:
    for each in ast.walk(source.tree):
        if isinstance(each, ast.Name) and each.id == root:
            source.replace(*source.span(each), "waitpoint")


def _attributes(tree: ast.AST) -> list[ast.Attribute]:
    return [each for each in ast.walk(tree) if isinstance(each, ast.Attribute)]
