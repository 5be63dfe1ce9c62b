"""Opening the store that a URL names; the one place of the command line that knows a concrete store."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

from waitpoint.checkpoint.base import BaseCheckpointSaver
from waitpoint.checkpoint.sqlite import SqliteSaver
from waitpoint.errors import ConfigError, NotFoundError, StoreError
from waitpoint.ledger.sqlite import SqliteLedger

_SQLITE = "sqlite:///"


def open_store(url: str, folder: Path, *, create: bool) -> BaseCheckpointSaver:
    """Return the saver of a URL; a relative path in it starts at `folder`. Only with `create` is a store made.

    Raises `ConfigError` for a URL of no store, `NotFoundError` where there is none yet.
    """
    path = path_of(url, folder)
    if path.is_dir():
        raise StoreError(f"'{path}' is a folder, and threads are kept in a file; name a file in it")
    if not path.exists():
        if not create:
            raise NotFoundError(
                f"There is no store at '{path}' - nothing was run on it yet; check --store, or run a graph"
            )
        if not path.parent.is_dir():
            raise NotFoundError(f"There is no folder '{path.parent}' to keep threads in; make it, or check --store")
    saver = SqliteSaver(path)
    saver.setup()
    return saver


def open_ledger(url: str, folder: Path) -> SqliteLedger:
    """Return what a server keeps in the store of a URL, beside its threads."""
    return SqliteLedger(path_of(url, folder))


def path_of(url: str, folder: Path) -> Path:
    """Return the file that a URL names. Raises `ConfigError`."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        raise ConfigError(f"'{url}' is not the URL of a store; write {_SQLITE}{url.removeprefix('./')}")
    if scheme != "sqlite":
        raise ConfigError(f"'{url}' names a '{scheme}' store, which this version does not have; write {_SQLITE}FILE")
    name = unquote(rest.removeprefix("/"))
    if not rest.startswith("/") or not name:
        raise ConfigError(
            f"'{url}' names no file; write {_SQLITE}FILE for a relative path, {_SQLITE}/FILE for an absolute one"
        )
    if name == ":memory:":
        raise ConfigError(f"'{url}' lives only as long as one command, so nothing could be answered; name a file")
    return folder / name
