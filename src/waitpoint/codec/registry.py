"""Which classes stored values may be of: a closed table of tags for each graph, over one for the whole process.

Rule: bytes name a tag, and only a class that this process put into the table itself can have it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeVar

import ormsgpack

from waitpoint.codec import builtin, foreign, messages, natives
from waitpoint.codec.classes import Form, Reader, form_of
from waitpoint.codec.hooks import Packer, Unpacker
from waitpoint.codec.natives import Encoder, Kind
from waitpoint.codec.reachable import classes_of
from waitpoint.codec.unknown import UnknownValue
from waitpoint.errors import StoreError, UsageError

C = TypeVar("C", bound=type)

_RESERVED = (builtin.PREFIX, messages.PREFIX)
_MAIN = "__main__"


class Registry:
    """The classes whose instances can be stored, by tag; what it lacks is looked up in the process-wide registry."""

    def __init__(self, parent: Registry | None = None) -> None:
        self._parent = parent
        self._encoders: dict[type, Encoder] = dict(natives.ENCODERS) | {UnknownValue: _unknown_bytes}
        self._classes: dict[str, type] = {}
        self._readers: dict[str, Reader] = {}
        self._tags: dict[type, str] = {}
        self.packer: Final = Packer(self._encoders, self._find)
        self.unpacker: Final = Unpacker(self._read_tagged)

    @classmethod
    def from_schemas(cls, *schemas: Any) -> Registry:
        """Make the registry of a graph: all types that its schemas and task signatures lead to."""
        registry = cls(PROCESS)
        registry.add_schemas(*schemas)
        return registry

    def add_schemas(self, *schemas: Any) -> None:
        """Add all types that these schemas (classes, annotations, functions) lead to."""
        for found in classes_of(schemas):
            if self.tag_of(found) is None:
                self.add(found, default_tag(found))

    def register(self, cls: C, *, tag: str | None = None, aliases: Iterable[str] = ()) -> C:
        """Let instances of a class be stored; also usable as a decorator.

        `tag` names the class in stored bytes (default "module:qualified name"); keep it when the class moves. `aliases`
        are tags of older data that the class reads too. Raises UsageError if another class has one of them.
        """
        for name in (tag or "", *aliases):
            if name.startswith(_RESERVED) and ":" not in name:
                raise UsageError(f"tag {name!r} is taken - tags that begin with {name[:3]!r} are Waitpoint's own")
        self.add(cls, tag or default_tag(cls), aliases)
        return cls

    def tag_of(self, cls: type) -> str | None:
        """Return the tag under which instances are stored, or None if the class is not registered."""
        return self._tags.get(cls) or (self._parent.tag_of(cls) if self._parent else None)

    def add(self, cls: type, tag: str, aliases: Iterable[str] = (), form: Form | None = None) -> None:
        """Put a class into the table; any tag is allowed here."""
        form = form or form_of(cls, tag)
        for name in (tag, *aliases):
            other = self._classes.get(name)
            if other is not None and other is not cls and not self._replaces(cls, other):
                raise UsageError(
                    f"tag {name!r} would name two classes - {other.__qualname__!r} of {other.__module__!r} has it - "
                    f"give {cls.__qualname__!r} of {cls.__module__!r} its own: waitpoint.codec.register(cls, tag=...)"
                )
            self._classes[name] = cls
            self._readers[name] = form.read
        self._encoders[cls] = form.encode
        self._tags[cls] = tag

    def _replaces(self, cls: type, other: type) -> bool:
        """Whether this is the same class defined once more, as when a notebook cell or a module is run again."""
        is_same = (cls.__module__, cls.__qualname__) == (other.__module__, other.__qualname__)
        return is_same and self._parent is None and "<locals>" not in cls.__qualname__

    def _find(self, cls: type) -> Encoder | None:
        """Return the encoder of a class met for the first time, and remember it."""
        encoder: Encoder | None = None
        if self._parent is not None and (encoder := self._parent.packer.encoder_for(cls)):
            self._refuse_shadowed(cls)
        elif cls.__module__.startswith(messages.MODULE):
            encoder = messages.encoder_of(cls)
        else:
            encoder = foreign.encoder_of(cls)
        if encoder is not None:
            self._encoders[cls] = encoder
        return encoder

    def _refuse_shadowed(self, cls: type) -> None:
        tag = self.tag_of(cls)
        if tag is not None and self._classes.get(tag, cls) is not cls:
            raise UsageError(
                f"tag {tag!r} names {cls.__qualname__!r} in this process and another class in this graph - what is "
                "stored could not be read back - give one of them another tag"
            )

    def _read_tagged(self, payload: list[Any], data: bytes) -> Any:
        tag = payload[0]
        reader = self.reader(tag)
        return UnknownValue(tag, data) if reader is None else reader(payload, data)

    def reader(self, tag: str) -> Reader | None:
        """Return what reads values of this tag, or None if no class has it."""
        if type(tag) is not str:
            raise StoreError("it holds a tag that is no text")
        reader = self._readers.get(tag)
        if reader is None and self._parent is not None:
            reader = self._parent.reader(tag)
        if reader is None and tag.startswith(messages.PREFIX):
            form = messages.forms()[1].get(tag)
            reader = form.read if form else None
        if reader is None and tag == foreign.TAG:
            reader = foreign.URL.read
        return reader or self._main_reader(tag)

    def _main_reader(self, tag: str) -> Reader | None:
        """Find a class whose module was run as a script when it was stored, or is now, if just one fits."""
        module, _, name = tag.partition(":")
        fits = {
            cls: self._readers[known]
            for known, cls in self._classes.items()
            if name and known.endswith(f":{name}") and _MAIN in {module, known.partition(":")[0]}
        }
        return next(iter(fits.values())) if len(fits) == 1 else None


def _unknown_bytes(value: UnknownValue) -> tuple[int, Any]:
    return Kind.TAGGED, ormsgpack.Fragment(value.payload)


def default_tag(cls: type) -> str:
    """Return the tag of a class that was given none."""
    return f"{cls.__module__}:{cls.__qualname__}"


PROCESS: Final = Registry()


def register(cls: C, *, tag: str | None = None, aliases: Iterable[str] = ()) -> C:
    """Let instances of a class be stored by every graph of this process; also usable as a decorator.

    Call it where the class is defined, so that every process that reads the data has called it. See `Registry.register`
    for the arguments.
    """
    return PROCESS.register(cls, tag=tag, aliases=aliases)


def register_builtin(cls: type, tag: str) -> None:
    """Register one of Waitpoint's own records under its short tag; those of `builtin` are already there."""
    PROCESS.add(cls, tag)


for _tag, _cls in builtin.CLASSES.items():
    register_builtin(_cls, _tag)
for _tag, (_cls, _form) in builtin.SPECIAL.items():
    PROCESS.add(_cls, _tag, form=_form)
