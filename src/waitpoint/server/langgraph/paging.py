"""Pages and selections, alike for all lists: a bare array, with the rest in headers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi.responses import Response


def tell(response: Response, total: int, offset: int, shown: int) -> None:
    """Say in headers how many there are, and where the next page begins if there is one."""
    response.headers["X-Pagination-Total"] = str(total)
    if offset + shown < total:
        response.headers["X-Pagination-Next"] = str(offset + shown)


def selected(document: Mapping[str, Any], select: Sequence[str] | None) -> dict[str, Any]:
    """Return only the keys asked for; all where nothing was asked."""
    return {k: v for k, v in document.items() if k in select} if select else dict(document)


def extracted(document: Mapping[str, Any], paths: Mapping[str, str]) -> dict[str, Any]:
    """Return what lies at paths like `values.messages[0].content`, by the names given; null where nothing does."""
    return {name: _at(document, path) for name, path in paths.items()}


def _at(value: Any, path: str) -> Any:
    for part in path.replace("[", ".[").split("."):
        if part.startswith("["):
            number = part[1:-1]
            if not isinstance(value, list) or not number.lstrip("-").isdigit():
                return None
            at = int(number)
            value = value[at] if -len(value) <= at < len(value) else None
        elif part:
            value = value.get(part) if isinstance(value, dict) else None
    return value
