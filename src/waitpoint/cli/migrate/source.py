"""A Python file as text: read and written byte for byte, edited by places in its syntax tree."""

from __future__ import annotations

import ast
import io
import tokenize
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(slots=True)
class Source:
    """The text of a file, its tree, and the edits to be made. Line ends and encoding stay as they are."""

    text: str
    encoding: str = "utf-8"
    tree: ast.Module = field(init=False)
    _lines: list[str] = field(init=False)
    _starts: list[int] = field(init=False)
    _edits: list[tuple[int, int, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tree = ast.parse(self.text)
        self._lines = io.StringIO(self.text, newline="").readlines()
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    @classmethod
    def read(cls, path: Path) -> Source:
        """Read a file. Raises SyntaxError, UnicodeDecodeError or OSError."""
        data = path.read_bytes()
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return cls(data.decode(encoding), encoding)

    def offset(self, line: int, column: int) -> int:
        """Return the place in the text of a place in the tree, which counts bytes of UTF-8."""
        before = self._lines[line - 1].encode("utf-8", "surrogatepass")[:column]
        return self._starts[line - 1] + len(before.decode("utf-8", "surrogatepass"))

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Return where a node begins and ends in the text."""
        start = self.offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]
        return start, self.offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def is_at(self, node: ast.AST, text: str) -> bool:
        """Whether a text stands where a node is said to be: before Python 3.12 that is not so in f-strings."""
        try:
            start, end = self.span(node)
        except (UnicodeDecodeError, IndexError):
            return False
        return self.text[start:end] == text

    def line_start(self, at: int) -> int:
        """Return where the line of a place begins."""
        return max(self.text.rfind("\n", 0, at), self.text.rfind("\r", 0, at)) + 1

    def line_end(self, at: int) -> int:
        """Return where the line of a place ends, before its line break."""
        ends = [e for e in (self.text.find("\n", at), self.text.find("\r", at)) if e >= 0]
        return min(ends, default=len(self.text))

    @property
    def newline(self) -> str:
        """What ends a line of this file."""
        first = self._lines[0] if self._lines else "\n"
        return "\r\n" if first.endswith("\r\n") else ("\r" if first.endswith("\r") else "\n")

    def replace(self, start: int, end: int, new: str) -> None:
        """Put a text in the place of another, once `edited` is asked for."""
        self._edits.append((start, end, new))

    def edited(self) -> str:
        """Return the text with all edits made."""
        parts, at = [], 0
        for start, end, new in sorted(set(self._edits)):  # cuts may overlap
            parts += [self.text[at:start], new]
            at = max(at, end)
        return "".join([*parts, self.text[at:]])

    def encoded(self, text: str) -> bytes:
        """Return a text as the file's bytes."""
        return text.encode(self.encoding)
