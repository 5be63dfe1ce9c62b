"""`migrate`: shows or makes the changes by which programs come over from LangGraph, and lists what is left to do."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from waitpoint.cli import exits, safe, terminal
from waitpoint.cli.migrate import imports, notes, table
from waitpoint.cli.migrate.imports import Kept
from waitpoint.cli.migrate.notes import Difference
from waitpoint.cli.migrate.source import Source
from waitpoint.errors import ConfigError

_KINDS = (".py", ".pyi", ".ipynb")
_SKIPPED = ("__pycache__", "node_modules", "site-packages", "venv", "build", "dist")
_NOT_READ = "(the file)"


@dataclass(slots=True)
class Report:
    """What is to be said of one file."""

    path: Path
    before: str = ""
    after: str = ""
    kept: list[Kept] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    data: bytes | None = None  # what the file becomes

    @property
    def is_theirs(self) -> bool:
        """Whether the file has anything to do with LangGraph or LangChain."""
        return bool(self.kept) or self.data is not None


def migrate(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files, and folders with all below them.")],
    write: Annotated[
        bool, typer.Option("--write", help="Change the files; without it the changes are only shown.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write one JSON document, for programs.")] = False,
    traceback: Annotated[bool, typer.Option("--traceback", help="Show where an error came from.")] = False,  # noqa: ARG001
) -> int:
    """Move programs from LangGraph and LangChain to Waitpoint by their imports, and list what is left to do."""
    reports = [report for path in _files(paths) if (report := examine(path)).is_theirs]
    if write:
        for report in reports:
            if report.data is not None:
                _write(report)
    if as_json:
        terminal.document({"files": [_document(report, written=write) for report in reports]})
    else:
        _say(reports, written=write)
    return exits.REFUSED if any(report.kept for report in reports) else exits.DONE


def examine(path: Path) -> Report:
    """Return what is to be said of a file; changes nothing."""
    try:
        if path.suffix == ".ipynb":
            return Report(path, kept=_of_notebook(path))
        source = Source.read(path)
    except SyntaxError as error:
        return Report(
            path, kept=[Kept(error.lineno or 1, _NOT_READ, f"this is not Python that can be read: {error.msg}")]
        )
    except (UnicodeDecodeError, ValueError) as error:
        return Report(path, kept=[Kept(1, _NOT_READ, f"it cannot be read: {error}")])
    except OSError as error:
        raise ConfigError(f"Cannot read '{path}' - {error.strerror or error}; check the path") from None
    kept = imports.rewrite(source)
    after = source.edited()
    report = Report(path, source.text, after, kept, data=source.encoded(after) if after != source.text else None)
    if report.is_theirs:
        report.differences = notes.differences(source.tree)
    return report


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    seen = set()
    for path in paths:
        if not path.exists():
            raise ConfigError(f"There is no file or folder '{path}'; check the path")
        for each in [path] if path.is_file() else _below(path):
            if each.resolve() not in seen:
                seen.add(each.resolve())
                yield each


def _below(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if f not in _SKIPPED and not f.startswith("."))
        yield from (Path(place, name) for name in sorted(names) if name.endswith(_KINDS))


def _write(report: Report) -> None:
    assert report.data is not None
    try:
        report.path.write_bytes(report.data)
    except OSError as error:
        raise ConfigError(f"Cannot write '{report.path}' - {error.strerror or error}; check its rights") from None


def _of_notebook(path: Path) -> list[Kept]:
    """Return what a notebook imports; its cells are not rewritten. `line` counts within the file, as an editor shows it."""
    text = path.read_text(encoding="utf-8")
    cells = json.loads(text).get("cells", [])
    found = []
    for number, cell in enumerate(cells, start=1):
        if cell.get("cell_type") != "code":
            continue
        for line in "".join(cell.get("source", ())).splitlines():
            words = line.split()
            if len(words) > 1 and words[0] in ("from", "import") and table.is_theirs(words[1].strip(",;")):
                at = text[: max(text.find(json.dumps(line)[1:-1]), 0)].count("\n") + 1
                name = words[1].strip(",;")
                found.append(
                    Kept(at, name, f"cell {number} of a notebook, and these are not rewritten; export it as a script")
                )
    return found


# --- what is said -----------------------------------------------------------------------------------------------------


def _document(report: Report, *, written: bool) -> dict[str, Any]:
    return {
        "path": str(report.path),
        "changed": report.data is not None,
        "written": written and report.data is not None,
        "diff": "".join(_diff(report)),
        "unmapped": [kept._asdict() for kept in report.kept],
        "differences": [each._asdict() for each in report.differences],
    }


def _diff(report: Report) -> Iterator[str]:
    old, new = report.before.splitlines(keepends=True), report.after.splitlines(keepends=True)
    name = report.path.as_posix().lstrip("/")
    for line in difflib.unified_diff(old, new, f"a/{name}", f"b/{name}"):
        yield line if line.endswith("\n") else f"{line}\n"


def _say(reports: Sequence[Report], *, written: bool) -> None:
    if not reports:
        terminal.say("Nothing here imports LangGraph or LangChain.")
        return
    for report in reports:
        if report.data is not None and not written:
            for line in _diff(report):
                terminal.say(safe.line(line.rstrip("\r\n")))
    kept = [(r.path, k) for r in reports for k in r.kept]
    hints = [(r.path, d) for r in reports for d in r.differences]
    if kept:
        terminal.say("Not mapped:", "bold")
        for path, each in kept:
            terminal.say(safe.line(f"  {path}:{each.line}: {each.name} - {each.why}"))
    if hints:
        terminal.say("Does something else here, on purpose (see docs/from-langgraph.md):", "bold")
        for path, hint in hints:
            terminal.say(safe.line(f"  {path}:{hint.line}: {hint.text} [{hint.about}]"))
    changed = sum(report.data is not None for report in reports)
    files = f"{changed} file{'' if changed == 1 else 's'}"
    if changed:
        terminal.say(f"Changed {files}." if written else f"Would change {files}; --write changes them.")
    else:
        terminal.say("Nothing to change.")
