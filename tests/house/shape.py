"""How the code is cut: sizes, parameters, `__init__` files, error classes. An exemption bears its reason."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping

from tests.house.source import Function, Module, Package

FILE_LINES = 500
FUNCTION_LINES = 70
PARAMETERS = 7

# Public calls whose parameters follow LangGraph, so that code moves over by changing an import: package, then name.
FOLLOWS_LANGGRAPH: Mapping[str, tuple[str, ...]] = {
    "agents": ("create_agent", "ModelRequest.__init__", "ToolRetryMiddleware.__init__"),
    "engine": ("invoke", "ainvoke", "stream", "astream", "Declared.__init__"),
    "func": ("entrypoint", "entrypoint.__init__"),
    "graph": ("add_node", "compile", "invoke", "ainvoke", "stream", "astream"),
}

# Packages whose `__init__.py` may define a lazy `__getattr__`: package, then reason.
LAZY_PACKAGES: Mapping[str, str] = {
    "waitpoint.graph": "MessagesState names message classes, which cost more to import than the whole graph API",
    "waitpoint.agents": "an agent module is imported for one name at a time, and some need optional packages",
    "waitpoint.stream": "event streams cost a tenth of the graph API's import, and most programs have none",
    "waitpoint.checkpoint": "a store is imported only by a program that uses it",
}

# Modules that declare what is raised; a port's own conflicts carry its rows, which errors.py must not know.
DECLARE_ERRORS = (
    "errors",
    "agents.errors",
    "checkpoint.rows",
    "store.base",
    "cache.base",
    "ledger.base",
    "server.refusals",
    "engine.commands",
)

# Raised to reach the runtime, never to be reported: no code.
CONTROL_FLOW = ("GraphBubbleUp", "GraphInterrupt", "GraphDrained", "ParentCommand", "Stopped")


def long_files(modules: Iterable[Module]) -> list[str]:
    """A file of more lines holds two ideas."""
    counted = [(m, m.text.count("\n")) for m in modules]
    return [f"{m.name}: {lines} lines; under {FILE_LINES} are wanted" for m, lines in counted if lines >= FILE_LINES]


def long_functions(modules: Iterable[Module]) -> list[str]:
    """A function of more lines does two things."""
    return [
        f"{module.name}:{name}: {lines} lines; under {FUNCTION_LINES} are wanted"
        for module in modules
        for name, function in module.functions()
        for lines in [(function.end_lineno or function.lineno) - function.lineno + 1]
        if lines >= FUNCTION_LINES
    ]


def long_parameter_lists(package: Package) -> list[str]:
    """At most seven parameters, an options object beyond; only names that follow LangGraph may have more."""
    return [
        f"{module.name}:{name}: {count} parameters; at most {PARAMETERS}, or an options object"
        for module in package.modules.values()
        for name, function in module.functions()
        for count in [_count_parameters(function)]
        if count > PARAMETERS and not _follows_langgraph(package.short(module.name), name)
    ]


def packages_that_define_something(package: Package) -> list[str]:
    """`__init__.py` files re-export and define nothing; a lazy re-export is allowed where it is listed."""
    return [line for module in package.modules.values() if module.is_package for line in definitions(module)]


def definitions(module: Module) -> list[str]:
    """List what a module defines beside re-exports."""
    is_lazy = module.name in LAZY_PACKAGES
    return [
        f"{module.name}:{node.lineno} defines something; move it to a module"
        for node in module.tree.body
        if not _only_reexports(node) and not (is_lazy and getattr(node, "name", "") in {"__getattr__", "__dir__"})
    ]


def modules_without_a_first_line(package: Package) -> list[str]:
    """A module's first line says what the room is for."""
    return [
        f"{module.name}: has no docstring" for module in package.modules.values() if not ast.get_docstring(module.tree)
    ]


def errors_outside_the_errors(package: Package) -> list[str]:
    """Whatever is raised is declared in errors.py, or in a port if it carries the port's rows."""
    return [
        f"{module.name}:{node.lineno} declares '{node.name}'; move it to {package.name}.errors"
        for module in package.modules.values()
        if package.short(module.name) not in DECLARE_ERRORS
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef) and any(map(_names_an_error, node.bases))
    ]


def errors_without_text_or_code(package: Package) -> list[str]:
    """Every error says what happened and what to do, and has a stable code of its own."""
    found: list[str] = []
    owners: dict[str, str] = {}
    errors: set[str] = set()
    for node in _classes(package, DECLARE_ERRORS):
        if not any(_names_an_error(base) or ast.unparse(base) in errors for base in node.bases):
            continue
        errors.add(node.name)
        if not ast.get_docstring(node):
            found.append(f"{node.name}: has no docstring")
        if node.name in CONTROL_FLOW:
            continue
        code = _declared_code(node)
        if code is None:
            found.append(f"{node.name}: has no code of its own")
        elif not re.fullmatch(r"[a-z][a-z0-9_]*", code):
            found.append(f"{node.name}: its code '{code}' is not lower_snake_case")
        elif owners.setdefault(code, node.name) != node.name:
            found.append(f"{node.name}: has the code '{code}' of {owners[code]}")
    return found


def _classes(package: Package, shorts: Iterable[str]) -> Iterator[ast.ClassDef]:
    for short in shorts:
        module = package.modules.get(f"{package.name}.{short}")
        yield from (node for node in (module.tree.body if module else []) if isinstance(node, ast.ClassDef))


def _declared_code(node: ast.ClassDef) -> str | None:
    for item in node.body:
        targets = (
            item.targets if isinstance(item, ast.Assign) else [item.target] if isinstance(item, ast.AnnAssign) else []
        )
        value = item.value if isinstance(item, ast.Assign | ast.AnnAssign) else None
        if any(isinstance(t, ast.Name) and t.id == "code" for t in targets) and isinstance(value, ast.Constant):
            return str(value.value)
    return None


def _names_an_error(base: ast.expr) -> bool:
    name = ast.unparse(base).rsplit(".", 1)[-1]
    return name.endswith(("Error", "Exception")) or name in CONTROL_FLOW


def _only_reexports(node: ast.stmt) -> bool:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.If):  # `if TYPE_CHECKING:`
        return ast.unparse(node.test).endswith("TYPE_CHECKING") and all(map(_only_reexports, node.body))
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        # `_LAZY` is the table of a lazy `__getattr__`: name, then module.
        return all(isinstance(t, ast.Name) and t.id in {"__all__", "_LAZY"} for t in targets)
    return False


def _count_parameters(function: Function) -> int:
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    extra = [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
    own = 1 if named and named[0].arg in {"self", "cls", "mcs"} else 0
    return len(named) + len(extra) - own


def _follows_langgraph(short: str, name: str) -> bool:
    allowed = FOLLOWS_LANGGRAPH.get(short.split(".", maxsplit=1)[0], ())
    return name in allowed or name.rsplit(".", 1)[-1] in allowed
