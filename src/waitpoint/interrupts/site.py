"""Call sites: where in the user's code a question was asked, so that its answer never moves to another place.

A site is the chain of the user's frames from `interrupt()` out to the task: module, qualified name, a hash of the
function's code and the offset in it. Frames of Waitpoint, langchain-core and the standard library are left out.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

from waitpoint.ids import module_name


class Frame(NamedTuple):
    """One of the user's frames: the function by name and by what it does, and the place in it."""

    module: str
    function: str
    code: str
    offset: int


Site = tuple[Frame, ...]

_OURS = str(Path(__file__).resolve().parent.parent) + os.sep
_STDLIB = str(Path(os.__file__).parent) + os.sep
_LOOP = tuple(str(Path(_STDLIB, "asyncio", name)) for name in ("events.py", "base_events.py", "runners.py"))
_USER, _SKIP, _END = range(3)
_kinds: dict[str, int] = {}
_hashes: dict[int, tuple[CodeType, str]] = {}
_boundaries: dict[int, CodeType] = {}  # by id(code): to hash a code object takes longer than all else here


def boundary(function: Any) -> Any:
    """Mark a function (decorator) as the frame at which a task begins."""
    _boundaries[id(function.__code__)] = function.__code__
    return function


def here() -> Site:
    """Return the site of the caller, innermost frame first."""
    frames: list[Frame] = []
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        kind = _kinds.get(code.co_filename)
        if kind is None:
            kind = _kinds[code.co_filename] = _kind(code.co_filename)
        if kind == _USER:
            module = module_name(frame.f_globals.get("__name__", ""))
            frames.append(Frame(module, code.co_qualname, code_hash(code), frame.f_lasti))
        elif kind == _END or id(code) in _boundaries:
            break
        frame = frame.f_back  # type: ignore[assignment]
    return tuple(frames)


def of_function(function: Any) -> Frame | None:
    """Return what a function is and does, without a place in it; None for one that is not written in Python."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if not isinstance(code, CodeType):
        return None
    module = getattr(getattr(function, "__func__", function), "__globals__", {}).get("__name__", "")
    return Frame(module, code.co_qualname, code_hash(code), 0)


def same(a: Site, b: Site) -> bool:
    """Whether two sites are one place, compared as far out as both reach."""
    n = min(len(a), len(b))
    return a[:n] == b[:n]


def is_stale(site: Site) -> bool:
    """Whether the code that a recorded site speaks of is gone or was changed (a deploy happened in between)."""
    return any(not _still_there(frame) for frame in site)


def text(site: Site) -> str:
    """Return the innermost place, for people."""
    return f"{site[0].module}.{site[0].function}" if site else "an unknown place"


def code_hash(code: CodeType) -> str:
    """Return a hash of what a function does: its instructions, names and constants (nested functions have their own)."""
    known = _hashes.get(id(code))
    if known is not None and known[0] is code:
        return known[1]
    constants = [repr(c) for c in code.co_consts if not isinstance(c, CodeType | frozenset)]
    data = repr((constants, code.co_names, code.co_varnames, code.co_freevars)).encode("utf-8", "backslashreplace")
    digest = hashlib.sha256(code.co_code + data).hexdigest()[:16]
    _hashes[id(code)] = (code, digest)
    return digest


def _kind(filename: str) -> int:
    if filename in _LOOP:
        return _END
    if filename.startswith((_OURS, "<frozen")):
        return _SKIP
    if f"{os.sep}langchain_core{os.sep}" in filename:
        return _SKIP
    if filename.startswith(_STDLIB) and "site-packages" not in filename:
        return _SKIP
    return _USER


def _still_there(frame: Frame) -> bool:
    started = module_name("__main__") == frame.module  # the script itself, not a second copy of it
    module = sys.modules.get("__main__" if started else frame.module)
    if module is None:
        return False
    codes = _codes_named(module, frame.function.split("."))
    return any(code_hash(code) == frame.code for code in codes)


def _codes_named(module: Any, parts: list[str]) -> list[CodeType]:
    """Return the code objects that a qualified name can mean; nested ones are found in their parents' constants."""
    name = ".".join(parts)
    outer: Any = module
    for i, part in enumerate(parts):
        if part == "<locals>" or part.startswith("<"):
            break
        outer = getattr(outer, part, None)
        outer = getattr(outer, "__wrapped__", outer)
        outer = getattr(outer, "fget", None) or outer
        if i + 1 < len(parts) and parts[i + 1] == "<locals>":
            break
    code = getattr(getattr(outer, "__func__", outer), "__code__", None)
    if isinstance(code, CodeType):
        return [c for c in _with_nested(code) if c.co_qualname == name]
    return _lambdas(module, name) if "<" in parts[0] else _wrapped(outer, name)


def _lambdas(module: Any, name: str) -> list[CodeType]:
    """Module-level lambdas have no name to look up: search what the module holds, one container deep."""
    found: list[CodeType] = []
    for value in list(vars(module).values()):
        code = getattr(value, "__code__", None)
        if isinstance(code, CodeType) and code.co_qualname == name:
            found.append(code)
    return found


def _wrapped(value: Any, name: str) -> list[CodeType]:
    """Return a function inside a wrapper object, such as a decorated tool."""
    inner = (getattr(value, a, None) for a in ("func", "coroutine", "fn", "afunc"))
    codes = (getattr(f, "__code__", None) for f in inner)
    return [c for c in codes if isinstance(c, CodeType) and c.co_qualname == name]


def _with_nested(code: CodeType) -> list[CodeType]:
    found = [code]
    for const in code.co_consts:
        if isinstance(const, CodeType):
            found.extend(_with_nested(const))
    return found
