"""The package as the house test sees it: modules, their imports, their functions. Read from text, never imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Import:
    """One imported module, as written at one place."""

    target: str  # dotted; for our own package resolved to the module that is meant
    line: int
    in_function: bool


@dataclass(frozen=True)
class Module:
    """One Python file."""

    name: str  # dotted; a package's `__init__.py` bears the package's name
    path: Path
    is_package: bool

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, filename=str(self.path))

    def functions(self) -> Iterator[tuple[str, Function]]:
        """Give every function with its qualified name, nested ones too."""
        yield from _functions(self.tree, "")

    def strings(self) -> Iterator[ast.Constant]:
        """Give every string that is not a docstring."""
        docstrings = {id(node) for node in _docstrings(self.tree)}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                yield node


class Package:
    """All modules below one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = folder.name
        self.modules = {module.name: module for module in self._read()}

    def _read(self) -> Iterator[Module]:
        for path in sorted(self.folder.rglob("*.py")):
            parts = [self.name, *path.relative_to(self.folder).with_suffix("").parts]
            is_package = parts[-1] == "__init__"
            yield Module(".".join(parts[:-1] if is_package else parts), path, is_package)

    def inside(self, *prefixes: str) -> list[Module]:
        """List the modules at or below the given dotted names (without the package's own name)."""
        return [m for m in self.modules.values() if any(is_below(self.short(m.name), p) for p in prefixes)]

    def short(self, name: str) -> str:
        """Drop the package's own name: `waitpoint.core.plan` is `core.plan`, the package itself is ``."""
        return name.removeprefix(self.name).removeprefix(".")

    def owns(self, target: str) -> bool:
        return is_below(target, self.name)

    def imports(self, module: Module) -> list[Import]:
        """List what a module imports, anywhere in it, also under TYPE_CHECKING."""
        found: list[Import] = []
        inner = {id(n) for _, f in module.functions() for n in ast.walk(f)}
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Import):
                targets = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                targets = [self._meant(base, alias.name) for alias in node.names for base in [_base(module, node)]]
            elif isinstance(node, ast.Call):
                targets = _imported_by_name(node)
            else:
                continue
            found += [Import(t, node.lineno, id(node) in inner) for t in dict.fromkeys(targets)]
        return found

    def _meant(self, base: str, name: str) -> str:
        whole = f"{base}.{name}"
        return whole if whole in self.modules else base


def is_below(name: str, prefix: str) -> bool:
    """Tell whether a dotted name is the prefix or lies under it."""
    return name == prefix or name.startswith(f"{prefix}.")


def _base(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = module.name.split(".")
    parts = parts[: len(parts) - node.level + module.is_package]
    return ".".join([*parts, node.module] if node.module else parts)


def _imported_by_name(call: ast.Call) -> list[str]:
    """Give the module of `import_module("name")`; a computed name says nothing here."""
    if not ast.unparse(call.func).endswith(("import_module", "__import__")) or not call.args:
        return []
    name = call.args[0]
    return [name.value] if isinstance(name, ast.Constant) and isinstance(name.value, str) else []


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, Function]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function | ast.ClassDef):
            name = f"{prefix}{child.name}"
            if isinstance(child, Function):
                yield name, child
            yield from _functions(child, f"{name}.")
        else:
            yield from _functions(child, prefix)


def _docstrings(tree: ast.Module) -> Iterator[ast.expr]:
    """Give every bare string expression: docstrings, and texts under a field."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value
