"""Which kind of class a class is, where Python has no single test for it."""

from __future__ import annotations

import sys


def is_model(cls: type) -> bool:
    """Whether the class is a pydantic model; pydantic is not imported to find out."""
    pydantic = sys.modules.get("pydantic.main")
    return pydantic is not None and issubclass(cls, pydantic.BaseModel)


def is_namedtuple(cls: type) -> bool:
    """Whether the class was made by `NamedTuple` or `namedtuple`."""
    return issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple)
