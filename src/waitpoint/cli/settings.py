"""`waitpoint.toml`: which graphs there are and where their threads are kept.

    [graphs]
    name = "module:attr"

    [store]
    url = "sqlite:///threads.db"

    [python]
    path = ["src"]

    [server]
    host = "127.0.0.1"
    port = 2024
    ... see waitpoint.cli.server_settings

Found in the current folder or the nearest one above it; paths in it are relative to it.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from waitpoint.cli.server_settings import KEYS, ServerSettings, server_settings
from waitpoint.errors import ConfigError

FILE_NAME = "waitpoint.toml"

_KNOWN: Mapping[str, tuple[str, ...]] = {
    "graphs": (),
    "store": ("url",),
    "python": ("path",),
    "server": KEYS,
}


@dataclass(frozen=True, slots=True)
class Settings:
    """What the file says; without one nothing, in the current folder. `graphs` maps names to "module:attr"."""

    folder: Path
    path: Path | None = None
    graphs: Mapping[str, str] = field(default_factory=dict)
    store_url: str | None = None
    python_path: tuple[Path, ...] = ()
    server: ServerSettings = field(default_factory=ServerSettings)


def read_settings(given: str | None) -> Settings:
    """Read the file at the path given, or the nearest one. Raises `ConfigError`."""
    path = _nearest(Path.cwd()) if given is None else Path(given).absolute()
    if path is None:
        return Settings(Path.cwd())
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"Cannot read '{path}' - {error.strerror or error}; check --config") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"'{path}' is not TOML - {error}; see https://toml.io") from None
    return _checked(path, data)


def _nearest(folder: Path) -> Path | None:
    places = [folder, *folder.parents]
    return next((place / FILE_NAME for place in places if (place / FILE_NAME).is_file()), None)


def _checked(path: Path, data: Mapping[str, Any]) -> Settings:
    for name, table in data.items():
        if name not in _KNOWN:
            raise ConfigError(f"'{path}' has an unknown table [{name}]{_meant(name, _KNOWN)}")
        if not isinstance(table, dict):
            raise ConfigError(f"'{path}' has '{name}' as a value; write it as a table, [{name}]")
        for key in table if _KNOWN[name] else ():
            if key not in _KNOWN[name]:
                raise ConfigError(f"'{path}' has an unknown key '{key}' in [{name}]{_meant(key, _KNOWN[name])}")
    graphs = data.get("graphs", {})
    for name, target in graphs.items():
        if not isinstance(target, str) or ":" not in target:
            raise ConfigError(f"'{path}' names graph '{name}' as {target!r}; write {name} = \"module:attr\"")
    url = data.get("store", {}).get("url")
    if url is not None and not isinstance(url, str):
        raise ConfigError(f"'{path}' has {url!r} as [store] url; write url = \"sqlite:///threads.db\"")
    python_path = data.get("python", {}).get("path", [])
    if not isinstance(python_path, list) or not all(isinstance(each, str) for each in python_path):
        raise ConfigError(f"'{path}' has {python_path!r} as [python] path; write path = [\"src\"]")
    folders = tuple(path.parent / each for each in python_path)
    return Settings(path.parent, path, graphs, url, folders, server_settings(path, data.get("server", {})))


def _meant(name: str, known: Any) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean '{close[0]}'?" if close else f"; known are {', '.join(repr(each) for each in known)}"
