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
    cut = _cut(source, node, [home == staying for home in homes])
    for index, (alias, home) in enumerate(zip(node.names, homes, strict=True)):
        if home != staying:
            moved.setdefault(home, []).append(f"{alias.name} as {alias.asname}" if alias.asname else alias.name)
            if cut[index]:
                remarks.setdefault(home, []).extend(cut[index])
    lines = [f"from {home} import {', '.join(names)}" for home, names in moved.items()]
    tail = source.text[end : source.line_end(end)]
    is_alone = not source.text[source.line_start(start) : start].strip() and tail.lstrip()[:1] in ("", "#")
    if not is_alone:  # another statement stands on the line
        added = "".join(f"; {line}" for line in lines)
        said = "".join(f"  {each}" for home in moved for each in remarks.get(home, ()))
        close = source.line_end(end)
        if close == end:
            source.replace(end, end, added + said)
            return
        source.replace(end, end, added)
        if said and _is_whole(tail):
            source.replace(close, close, said)
        return
    indent = source.text[source.line_start(start) : start]
    close = source.line_end(end)
    ends = ["  " + "  ".join(remarks[home]) if home in remarks else "" for home in moved]
    source.replace(close, close, "".join(f"{source.newline}{indent}{x}{r}" for x, r in zip(lines, ends, strict=True)))


def _is_whole(tail: str) -> bool:
    """Whether what follows a statement on its line ends there too, so that a remark may stand behind it."""
    try:
        ast.parse(tail.lstrip(" \t;"))
    except SyntaxError:
        return False
    return not tail.endswith("\\")


def _cut(source: Source, node: ast.ImportFrom, stays: Sequence[bool]) -> dict[int, list[str]]:
    """Cut the names that do not stay out of a statement; return the remarks that stood behind each of them."""
    text, (_, end) = source.text, source.span(node)
    in_parentheses = text[end - 1] == ")"
    spans = [source.span(alias) for alias in node.names]
    follows = [start for start, _ in spans[1:]] + [end - 1 if in_parentheses else end]
    remarks = {}
    first = 0  # of the names in a row that go
    for index, goes in enumerate(not each for each in stays):
        if not goes:
            first = index + 1
            continue
        # Between two names stand a comma, layout and remarks, nothing else.
        remarks[index] = re.findall(r"#[^\r\n]*", text[spans[index][1] : follows[index]])
        if index + 1 < len(stays) and not stays[index + 1]:
            continue
        if index + 1 < len(stays):
            source.replace(spans[first][0], follows[index], "")
        elif not in_parentheses:
            source.replace(spans[first - 1][1], spans[index][1], "")
        else:
            start, close = len(text[: spans[first][0]].rstrip()), len(text[: end - 1].rstrip())
            is_broken = "\n" in text[close : end - 1] or "\r" in text[close : end - 1]
            is_remark = "#" in text[spans[first - 1][1] : start]
            source.replace(start, close, source.newline if is_remark and not is_broken else "")
    return remarks


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
            if not missing and (line := _hidden(source, alias.name.partition(".")[0])):
                yield Kept(
                    line,
                    alias.name,
                    f"it is used in an f-string, which is not rewritten, so `import {alias.name}` stays",
                )
                continue
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


def _hidden(source: Source, root: str) -> int | None:
    """Return the line of a use of a package's name whose place in the text is not known."""
    names = (each for each in ast.walk(source.tree) if isinstance(each, ast.Name) and each.id == root)
    return next((each.lineno for each in names if not source.is_at(each, root)), None)


def _rename_roots(source: Source, root: str) -> None:
    for each in ast.walk(source.tree):
        if isinstance(each, ast.Name) and each.id == root:
            source.replace(*source.span(each), "waitpoint")


def _attributes(tree: ast.AST) -> list[ast.Attribute]:
    return [each for each in ast.walk(tree) if isinstance(each, ast.Attribute)]
