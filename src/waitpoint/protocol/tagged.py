"""Marks a union of TypedDicts as told apart by one key, without loading pydantic before a schema is wanted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any


@dataclass(frozen=True, slots=True)
class Tagged:
    """In `Annotated[A | B, Tagged("type")]`: the member is chosen by this key, which is a `Literal` in each."""

    key: str

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic import Field

        return handler(Annotated[source, Field(discriminator=self.key)])
