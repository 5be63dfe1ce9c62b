"""What of an item is searched by meaning: the texts at its paths, their vectors, and how near these are to a query."""

from __future__ import annotations

import inspect
import json
import math
import re
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import mul
from typing import Any, Final, TypeAlias

from waitpoint.errors import AsyncOnlyError, ConfigError
from waitpoint.store.base import IndexConfig

Vector: TypeAlias = "array[float]"  # of 32-bit floats and of length 1, so that a product of two is their cosine

WHOLE: Final = "$"
_PART: Final = re.compile(r"\.?(?:\[(?P<place>\*|-?\d+)\]|\{(?P<several>[^{}]*)\}|(?P<key>[^.\[\]{}]+))")


class Index:
    """How a store makes vectors. Raises `ConfigError` for a configuration that cannot work."""

    def __init__(self, config: IndexConfig) -> None:
        self._dims = config.get("dims")
        self._embed: Any = config.get("embed")
        self._is_object = hasattr(self._embed, "embed_documents") and hasattr(self._embed, "embed_query")
        if not self._is_object and not callable(self._embed):
            raise ConfigError(
                f"`embed` of the store's index is a {type(self._embed).__name__}; give a function that turns a list of texts "
                f"into a list of vectors, or an embeddings object of LangChain"
            )
        fields: Any = config.get("fields") or [WHOLE]
        self._fields = [fields] if isinstance(fields, str) else list(fields)
        for path in self._fields:
            _parts(path)

    def texts(self, value: Mapping[str, Any], paths: Sequence[str] | None) -> dict[str, str]:
        """Return the texts of a value that are to be embedded, by where they lie."""
        found: dict[str, str] = {}
        for path in self._fields if paths is None else paths:
            texts = texts_at(value, path)
            found |= {path: texts[0]} if len(texts) == 1 else {f"{path}.{n}": text for n, text in enumerate(texts)}
        return found

    def vectors(self, texts: Sequence[str], queries: Sequence[str]) -> tuple[dict[str, Vector], dict[str, Vector]]:
        """Return the vectors of items' texts, and those of queries."""
        if self._is_object:
            made = self._embed.embed_documents(list(texts)) if texts else []
            return self._named(texts, made), self._named(queries, [self._embed.embed_query(q) for q in queries])
        both = self._embed([*texts, *queries])
        if inspect.isawaitable(both):
            if inspect.iscoroutine(both):
                both.close()
            raise AsyncOnlyError(
                "`embed` of the store's index is an async function, so texts can be embedded from an event loop only; use "
                "aput() and asearch(), or give a plain function"
            )
        return self._named(texts, both[: len(texts)]), self._named(queries, both[len(texts) :])

    async def avectors(
        self, texts: Sequence[str], queries: Sequence[str]
    ) -> tuple[dict[str, Vector], dict[str, Vector]]:
        """Do what `vectors` does, from an event loop; what would block it goes to a worker thread."""
        if self._is_object and hasattr(self._embed, "aembed_documents"):
            made = await self._embed.aembed_documents(list(texts)) if texts else []
            return self._named(texts, made), self._named(queries, [await self._embed.aembed_query(q) for q in queries])
        call = getattr(self._embed, "__call__", None)  # noqa: B004 - an object's own may be async
        if not self._is_object and (inspect.iscoroutinefunction(self._embed) or inspect.iscoroutinefunction(call)):
            both = await self._embed([*texts, *queries])
            return self._named(texts, both[: len(texts)]), self._named(queries, both[len(texts) :])
        import asyncio

        return await asyncio.to_thread(self.vectors, texts, queries)

    def _named(self, texts: Sequence[str], vectors: Sequence[Sequence[float]]) -> dict[str, Vector]:
        if len(vectors) != len(texts):
            raise ConfigError(
                f"`embed` of the store's index returned {len(vectors)} vectors for {len(texts)} texts; return one for each"
            )
        for vector in vectors:
            if self._dims is not None and len(vector) != self._dims:
                raise ConfigError(
                    f"`embed` of the store's index returned a vector of {len(vector)} numbers, and its `dims` are "
                    f"{self._dims}; set `dims` to what the function returns"
                )
        return {text: _unit(vector) for text, vector in zip(texts, vectors, strict=True)}


def nearness(query: Vector, vectors: Sequence[Vector]) -> float | None:
    """Return the cosine of a query and the nearest of an item's vectors, None for an item that has none to compare."""
    return max((sum(map(mul, query, vector)) for vector in vectors if len(vector) == len(query)), default=None)


def _unit(vector: Sequence[float]) -> Vector:
    numbers = [float(number) for number in vector]
    length = math.hypot(*numbers)
    return array("f", [number / length for number in numbers] if length else numbers)


# --- paths ------------------------------------------------------------------------------------------------------------


def texts_at(value: Any, path: str) -> list[str]:
    """Return the texts at a path of a value: none if nothing is there, several if it leads to several places.

    A path is made of keys with periods between them, "[0]", "[-1]", "[*]" for items of a list, "*" for all there is, and
    "{a,b.c}" for several keys; "$" is all of the value. What is no text becomes one, lists and dicts as JSON.
    """
    places = [value]
    for part in _parts(path):
        places = [found for place in places for found in part(place)]
    return [_text(place) for place in places if place is not None]


def _parts(path: str) -> list[Callable[[Any], Iterator[Any]]]:
    parts: list[Callable[[Any], Iterator[Any]]] = []
    at = len(path) if path == WHOLE else 0
    while at < len(path):
        found = _PART.match(path, at)
        if found is None:
            raise ConfigError(
                f"The path {path!r} of a store's index cannot be read from {path[at:]!r} on; write for instance 'a.b', "
                f"'list[0].c' or 'list[*].c'"
            )
        parts.append(_part(found))
        at = found.end()
    return parts


def _part(found: re.Match[str]) -> Callable[[Any], Iterator[Any]]:
    place, several, key = found["place"], found["several"], found["key"]
    if place is not None:
        return lambda value: _items(value, place)
    if several is not None:
        within = [_parts(name.strip()) for name in several.split(",")]
        return lambda value: (end for parts in within for end in _walked(value, parts))
    return lambda value: _members(value, key)


def _walked(value: Any, parts: Sequence[Callable[[Any], Iterator[Any]]]) -> Iterator[Any]:
    places = [value]
    for part in parts:
        places = [found for place in places for found in part(place)]
    yield from places


def _items(value: Any, place: str) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        if place == "*":
            yield from value
        elif -len(value) <= int(place) < len(value):
            yield value[int(place)]


def _members(value: Any, key: str) -> Iterator[Any]:
    if isinstance(value, Mapping):
        if key in value:
            yield value[key]
        elif key == "*":
            yield from value.values()
    elif key == "*" and isinstance(value, list | tuple):
        yield from value


def _text(value: Any) -> str:
    if isinstance(value, str | int | float):
        return str(value)
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
