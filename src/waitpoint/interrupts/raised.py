"""Exceptions of recorded effects: kept so that `except` finds them again on replay, whatever their class.

The class of an exception needs no registration: on replay it is looked for among the exception classes that the process
has loaded, and made without running its `__init__`. What cannot be stored of it is left out. Where the class is not
there any more, the nearest built-in one takes its place, with the same text.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, cast

from waitpoint import codec, ids
from waitpoint.codec import Registry
from waitpoint.errors import UnknownTagError, UnstorableValueError, UsageError

Read = Callable[[bytes, Registry | None], Any]


def kept(error: Exception, registry: Registry | None) -> dict[str, Any]:
    """Return what goes on record of an exception."""
    with contextlib.suppress(UnstorableValueError):
        return {"error": codec.dumps(error, registry)}
    body: dict[str, Any] = {"error": codec.dumps(_stand_in(error))}
    if isinstance(error, ExceptionGroup):
        return body | {"group": error.message, "errors": [kept(e, registry) for e in error.exceptions]}
    with contextlib.suppress(UnstorableValueError, UsageError, TypeError):
        own = _with(type(error), registry)
        data = codec.dumps(_storable(error, own), own)
        codec.loads(data, own)  # some classes refuse to be made this way
        body |= {"class": _tag(type(error)), "own": data}
    return body


def again(body: dict[str, Any], read: Read, registry: Registry | None) -> Exception:
    """Return the exception on record, to be raised. `read` decodes for the body of the node."""
    if "group" in body:
        return ExceptionGroup(body["group"], [again(part, read, registry) for part in body["errors"]])
    if "class" in body:
        for cls in _loaded(Exception):
            if _tag(cls) == body["class"]:
                with contextlib.suppress(UnknownTagError, UsageError, TypeError):
                    return cast("Exception", read(body["own"], _with(cls, registry)))
    return cast("Exception", read(body["error"], None))


def _with(cls: type, registry: Registry | None) -> Registry:
    own = Registry(registry or codec.PROCESS)
    own.add(cls, _tag(cls))
    return own


def _tag(cls: type) -> str:
    return f"{ids.module_name(cls.__module__)}:{cls.__qualname__}"


def _loaded(cls: type) -> Iterator[type]:
    """Yield all classes derived from this one, those defined last first: a module that was run again counts as it is."""
    derived: type
    for derived in reversed(type.__subclasses__(cls)):
        yield derived
        yield from _loaded(derived)


def _storable(error: Exception, registry: Registry) -> Exception:
    """Return a copy of an exception without what cannot be stored."""
    copy = _builtin_bases(error)[0].__new__(type(error), *error.args)
    copy.args = tuple(a if _can_store(a, registry) else str(a) for a in error.args)
    vars(copy).update({name: value for name, value in vars(error).items() if _can_store(value, registry)})
    return copy


def _can_store(value: Any, registry: Registry) -> bool:
    try:
        codec.dumps(value, registry)
    except UnstorableValueError:
        return False
    return True


def _stand_in(error: Exception) -> Exception:
    text = f"{type(error).__module__}.{type(error).__qualname__}: {error}"
    for base in _builtin_bases(error):
        if base is not Exception and not issubclass(base, ExceptionGroup):
            with contextlib.suppress(TypeError):
                return base(text)
    return RuntimeError(text)


def _builtin_bases(error: Exception) -> list[type[Exception]]:
    return [base for base in type(error).__mro__ if base.__module__ == "builtins" and issubclass(base, Exception)]
