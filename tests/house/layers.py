"""Who may import whom: the layers, no rings, what each room must not know."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from tests.house.source import Import, Module, Package, is_below

# From the bottom up. A module may import its own layer and those before it. The longest name that fits decides.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("version", ""),
    ("records", "errors", "config", "runtime", "threads"),
    ("ids", "clock", "codec", "canonical", "schemas"),
    (
        "checkpoint",
        "checkpoint.rows",
        "checkpoint.keeping",
        "checkpoint.base",
        "store",
        "store.base",
        "cache",
        "cache.base",
        "ledger",
        "ledger.base",
    ),
    ("interrupts",),
    ("core",),
    ("stream", "tracing"),
    ("engine",),
    ("graph", "func"),
    ("protocol",),
    ("agents", "callbacks"),
    ("checkpoint.*", "store.*", "cache.*", "ledger.*"),
    ("hosting", "shown"),
    ("review",),
    ("server", "inbox", "worker"),
    ("cli",),
    ("testing",),
)

# Paths that users know from LangGraph and LangChain. They only re-export, and nothing of ours imports them.
FACADES = ("types", "constants", "channels", "managed", "prebuilt", "tools", "messages", "chat_models")

# Imported when used, since `import waitpoint.graph` must stay quick; anything else is imported at the top.
IMPORTED_WHEN_USED = {
    "asyncio": "40 ms, and a blocking program never needs it",
    "concurrent.futures": "13 ms, and one task at a time never needs it",
    "difflib": "1 ms, and only mistakes need it",
    "fractions": "1 ms, and few values are any",
    "json": "1 ms, and only questions with a schema need it",
    "jsonschema_rs": "only questions with a schema need it",
    "langchain_core": "about a second, and most graphs hold no messages",
    "opentelemetry": "only where a tracer provider is set",
    "pydantic": "100 ms, and most graphs hold no models",
    "pydantic_core": "comes with pydantic",
    "redis": "only caches in Redis",
    "rich": "only the command line on a terminal",
    "typer": "only the command line",
    "waitpoint.server": "only `serve`, and what it needs comes with an extra",
    "watchfiles": "only `serve --reload`",
    "xxhash": "only threads that come from LangGraph",
    "zoneinfo": "2 ms, and few values have any",
    "zstandard": "only values that are large enough to compress",
}

# Where langchain_core may be named at all.
KNOWS_LANGCHAIN_CORE = (
    "agents",
    "callbacks",
    "chat_models",
    "codec",
    "engine.drawing",
    "engine.langchain",
    "graph.message",
    "messages",
    "stream",
    "testing",
    "tools",
    "tracing",
)

# The rooms that put a program together, and so may name a concrete store.
WIRING = ("checkpoint", "store", "cache", "ledger", "server", "worker", "cli", "testing")

IMPURE_MODULES = ("asyncio", "os", "random", "secrets", "socket", "sqlite3", "subprocess", "threading", "time", "uuid")
IMPURE_CALLS = re.compile(
    r"\.(now|utcnow|today|time|time_ns|monotonic|perf_counter|uuid1|uuid4|urandom)$|^(open|print|input)$"
)
WALL_CLOCK = re.compile(r"^(time\.(time|time_ns)|(datetime\.)?(datetime|date)\.(now|utcnow|today))$")
DATABASE_MODULES = ("aiosqlite", "psycopg", "psycopg_pool", "pymongo", "sqlite3")
HTTP_MODULES = ("aiohttp", "fastapi", "http", "httpx", "requests", "starlette", "urllib.request", "uvicorn")
SQL = re.compile(
    r"\s*(SELECT\s.*\bFROM\b|INSERT\s+(OR\s+\w+\s+)?INTO\s|UPDATE\s+\S+\s+SET\s|DELETE\s+FROM\s"
    r"|CREATE\s+(UNIQUE\s+)?(TABLE|INDEX|VIEW|TRIGGER)\s|ALTER\s+TABLE\s|DROP\s+TABLE\s|PRAGMA\s|BEGIN\s+IMMEDIATE)",
    re.DOTALL,
)


def layer_of(short: str) -> int | None:
    """Find a module's layer by the longest name that fits, or None for a module that has no place."""
    best: tuple[int, int] | None = None
    for number, names in enumerate(LAYERS):
        for name in names:
            below = name.removesuffix(".*")
            is_child_only = below != name
            fits = short.startswith(f"{below}.") if is_child_only else _fits(short, name)
            if fits and (best is None or len(below) > best[0]):
                best = (len(below), number)
    return None if best is None else best[1]


def _fits(short: str, name: str) -> bool:
    # A port's package (`checkpoint`) stands for its `__init__` alone: what lies below is a concrete store.
    if name in {"", "checkpoint", "store", "cache", "ledger"}:
        return short == name
    return is_below(short, name)


def modules_without_a_place(package: Package) -> list[str]:
    """Each module belongs to a layer or is a facade."""
    return [
        f"{module.name}: belongs to no layer; give it a place in LAYERS"
        for module in package.modules.values()
        if not _is_facade(package, module) and layer_of(package.short(module.name)) is None
    ]


def imports_from_a_higher_layer(package: Package) -> list[str]:
    """A module imports its own layer and lower ones, never a facade."""
    found = []
    for module in package.modules.values():
        mine = layer_of(package.short(module.name))
        if mine is None or _is_facade(package, module):
            continue
        for item in _own_imports(package, module):
            theirs = layer_of(package.short(item.target))
            if _is_below_any(package.short(item.target), FACADES):
                found.append(f"{_at(module, item)} imports {item.target}, a facade; import what it re-exports")
            elif theirs is not None and theirs > mine:
                found.append(f"{_at(module, item)} imports {item.target} from a higher layer")
    return found


def import_rings(package: Package) -> list[str]:
    """No module reaches itself by imports, at run time or for types."""
    edges = {name: _edges(package, module) for name, module in package.modules.items()}
    state: dict[str, int] = {}
    rings: list[str] = []

    def visit(name: str, path: list[str]) -> None:
        state[name] = 1
        for target in sorted(edges[name]):
            if state.get(target) == 1:
                rings.append(" -> ".join([*path[path.index(target) :], target]))
            elif target not in state:
                visit(target, [*path, target])
        state[name] = 2

    for name in sorted(edges):
        if name not in state:
            visit(name, [name])
    return rings


def _edges(package: Package, module: Module) -> set[str]:
    targets: set[str] = set()
    for item in _own_imports(package, module):
        # Importing `a.b` runs the `__init__` of `a` too, unless the importer lies in `a` and so has run it already.
        parts = item.target.split(".")
        parents = {".".join(parts[:n]) for n in range(1, len(parts))}
        targets |= {item.target} | {p for p in parents if not is_below(module.name, p)}
    # A package's `__init__` names its own modules; only they must not import it back by its own name.
    return (targets & package.modules.keys()) - {module.name}


def impure_core(package: Package) -> list[str]:
    """core/ never awaits, never reads a clock, never draws a random number, never touches the world."""
    found = []
    for module in package.inside("core"):
        found += _imports_of(package, module, (*IMPURE_MODULES, f"{package.name}.clock"))
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Await | ast.AsyncFunctionDef | ast.AsyncFor | ast.AsyncWith):
                found.append(f"{module.name}:{node.lineno} awaits")
            elif isinstance(node, ast.Call) and IMPURE_CALLS.search(called := ast.unparse(node.func)):
                found.append(f"{module.name}:{node.lineno} calls {called}")
    return found


def clocks_outside_the_clock(package: Package) -> list[str]:
    """Only the one clock reads the time of day, so a test can pin it."""
    return [
        f"{module.name}:{node.lineno} calls {ast.unparse(node.func)}; ask waitpoint.clock"
        for module in package.modules.values()
        if package.short(module.name) != "clock"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and WALL_CLOCK.match(ast.unparse(node.func))
    ]


def sql_outside_the_stores(package: Package) -> list[str]:
    """Only checkpoint/, store/, cache/ and ledger/ hold SQL, queries and database drivers."""
    stores = {m.name for m in package.inside("checkpoint", "store", "cache", "ledger")}
    found = []
    for module in package.modules.values():
        if module.name in stores:
            continue
        found += [f"{module.name}:{s.lineno} holds SQL" for s in module.strings() if SQL.match(str(s.value))]
        found += _imports_of(package, module, DATABASE_MODULES)
    return found


def concrete_stores_outside_the_wiring(package: Package) -> list[str]:
    """Nothing but the wiring names a concrete store."""
    concrete = next(number for number, names in enumerate(LAYERS) if "checkpoint.*" in names)
    return [
        f"{_at(module, item)} imports {item.target}, a concrete store; take the port"
        for module in package.modules.values()
        if not _is_below_any(package.short(module.name), (*WIRING, *FACADES))
        for item in _own_imports(package, module)
        if layer_of(package.short(item.target)) == concrete
    ]


def http_outside_its_rooms(package: Package) -> list[str]:
    """Only server/, inbox/ and clients know HTTP."""
    allowed = {m.name for m in package.inside("server", "inbox", "worker", "cli", "testing")}
    return [
        line
        for module in package.modules.values()
        if module.name not in allowed
        for line in _imports_of(package, module, HTTP_MODULES)
    ]


def faces_known_to_the_engine(package: Package) -> list[str]:
    """engine/ knows nothing of agents, approvals, HTTP or the command line, neither as imports nor as names."""
    found = []
    for module in package.inside("engine"):
        faces = ("agents", "protocol", "review", "server", "inbox", "worker", "cli")
        found += _imports_of(package, module, tuple(f"{package.name}.{face}" for face in faces))
        for node in ast.walk(module.tree):
            name = getattr(node, "id", None) or getattr(node, "attr", None) or getattr(node, "name", None)
            if isinstance(name, str) and re.search(r"approv|reviewer|http|_sql|sql_", name, re.IGNORECASE):
                found.append(f"{module.name}:{getattr(node, 'lineno', 0)} speaks of '{name}'")
    return found


def forbidden_dependencies(package: Package) -> list[str]:
    """The product never imports LangGraph or LangChain, and langchain_core only where it is listed."""
    found = []
    for module in package.modules.values():
        found += _imports_of(package, module, ("langgraph", "langchain"))
        if not _is_below_any(package.short(module.name), KNOWS_LANGCHAIN_CORE):
            found += _imports_of(package, module, ("langchain_core",))
    return found


def imports_inside_functions(package: Package) -> list[str]:
    """Imports stand at the top, except those of heavy packages."""
    return [
        f"{_at(module, item)} imports {item.target} inside a function; move it to the top"
        for module in package.modules.values()
        for item in package.imports(module)
        if item.in_function
        and not _is_below_any(item.target, IMPORTED_WHEN_USED)
        # A lazy re-export imports when asked; `shape.definitions` says where that is allowed.
        and not (package.owns(item.target) and (module.is_package or _is_facade(package, module)))
    ]


def _own_imports(package: Package, module: Module) -> list[Import]:
    return [item for item in package.imports(module) if package.owns(item.target)]


def _imports_of(package: Package, module: Module, prefixes: Iterable[str]) -> list[str]:
    wanted = tuple(prefixes)
    return [
        f"{_at(module, item)} imports {item.target}"
        for item in package.imports(module)
        if _is_below_any(item.target, wanted)
    ]


def _is_facade(package: Package, module: Module) -> bool:
    return _is_below_any(package.short(module.name), FACADES)


def _is_below_any(name: str, prefixes: Iterable[str]) -> bool:
    return any(is_below(name, prefix) for prefix in prefixes)


def _at(module: Module, item: Import) -> str:
    return f"{module.name}:{item.line}"
