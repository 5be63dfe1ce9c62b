"""Run configuration: the dict that users pass as `config`, checked at the door, and what a node reads of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from typing_extensions import TypedDict

from waitpoint.errors import ConfigError
from waitpoint.runtime import StreamWriter, scope

RECURSION_LIMIT = 10_000

_CHECKED = frozenset({"metadata", "tags", "checkpoint_id", "checkpoint_ns"})


class RunnableConfig(TypedDict, total=False):
    """The keys of a run's configuration that Waitpoint reads; LangChain's other keys pass through."""

    tags: list[str]
    metadata: dict[str, Any]
    callbacks: Any
    run_name: str
    run_id: Any
    max_concurrency: int | None
    recursion_limit: int
    configurable: dict[str, Any]


def checked_config(config: Any) -> Mapping[str, Any]:
    """Return a config whose parts are what they have to be; None is an empty one. Raises `ConfigError`."""
    if config is None:
        return {}
    if type(config) is dict and _CHECKED.isdisjoint(config):
        configurable = config.get("configurable")
        if type(configurable) is dict and _CHECKED.isdisjoint(configurable):
            return config  # most have nothing that could be wrong
    if not isinstance(config, Mapping):
        raise ConfigError(
            f'`config` is a {type(config).__name__}; give a dict like {{"configurable": {{"thread_id": "..."}}}}'
        )
    for name in ("configurable", "metadata"):
        if not isinstance(config.get(name) or {}, Mapping):
            raise ConfigError(f"`{name}` of the config is a {type(config[name]).__name__}; give a dict")
    if isinstance(config.get("tags"), str) or not isinstance(config.get("tags") or [], Iterable):
        raise ConfigError(f"`tags` of the config is a {type(config['tags']).__name__}; give a list of texts")
    for name in ("checkpoint_id", "checkpoint_ns"):
        value = (config.get("configurable") or {}).get(name)
        if value is not None and not isinstance(value, str):
            raise ConfigError(f"`{name}` is a {type(value).__name__}; give the text that a snapshot's config has")
    return config


def merged(*configs: Mapping[str, Any] | None) -> dict[str, Any]:
    """Merge configs, later ones winning; `configurable` and `metadata` merge by key, tags are joined."""
    out: dict[str, Any] = {}
    for config in configs:
        if not config:
            continue
        for key, value in checked_config(config).items():
            if value is None:
                continue
            if key in ("configurable", "metadata"):
                out[key] = {**out.get(key, {}), **value}
            elif key == "tags":
                out[key] = [*out.get(key, []), *(t for t in value if t not in out.get(key, []))]
            else:
                out[key] = value
    return out


def text_id(value: Any, name: str) -> str | None:
    """Return an id of the `configurable` as text: whole numbers and UUIDs become text, anything else is refused."""
    if value is None or isinstance(value, str):
        if value == "":
            raise ConfigError(f"`{name}` is empty; give a text that names the thread")
        return value
    if (isinstance(value, int) and not isinstance(value, bool)) or type(value).__name__ == "UUID":
        return str(value)
    raise ConfigError(f"`{name}` is a {type(value).__name__}; ids are texts (whole numbers and UUIDs become text)")


def check_count(name: str, value: object) -> None:
    """Refuse a limit or an offset that is no whole number from 0 on; None stands for none."""
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        raise ConfigError(f"`{name}` is {value!r}, and it counts rows; give a whole number from 0 on, or leave it out")


def get_config() -> RunnableConfig:
    """Return the config of the node that runs here."""
    return scope("get_config()").config  # type: ignore[return-value]


def get_stream_writer() -> StreamWriter:
    """Return a function that emits a value in stream mode `custom`."""
    return scope("get_stream_writer()").writer


def get_store() -> Any:
    """Return the store that the graph was compiled with, or None."""
    return scope("get_store()").runtime.store
