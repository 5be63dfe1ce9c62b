"""`key`: the API keys of a server, made, listed and revoked in its store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from waitpoint import clock
from waitpoint.cli import exits, safe, stores, terminal
from waitpoint.cli.options import command
from waitpoint.cli.place import Place
from waitpoint.errors import ConfigError, NotFoundError
from waitpoint.ledger.base import KeyRow
from waitpoint.ledger.sqlite import SqliteLedger

Scope = Annotated[
    list[str], typer.Option("--scope", metavar="SCOPE", help="What it may do: run, answer, read, admin. Once for each.")
]


@command()
def create(
    place: Place,
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="Whose it is: the author of its answers.")],
    scope: Scope,
) -> int:
    """Make an API key, and show it this once."""
    with _ledger(place) as ledger:
        row, key = _server_keys().create(ledger, name, [each for given in scope for each in given.split(",")])
    if place.as_json:
        terminal.document({**_document(row), "key": key})
    else:
        terminal.say(key)
        terminal.note(
            f"Key of {safe.line(row.name)} ({', '.join(row.scopes)}). It is not shown again; callers send it as x-api-key."
        )
    return exits.DONE


@command()
def listed(place: Place) -> int:
    """List the keys, without what is secret of them."""
    with _ledger(place) as ledger:
        rows = ledger.api_keys()
    if place.as_json:
        terminal.document({"keys": [_document(row) for row in rows]})
        return exits.DONE
    for row in rows:
        state = "" if row.revoked_at is None else f"  revoked {clock.iso(row.revoked_at)}"
        terminal.say(
            f"{row.id[:8]}  {safe.line(row.name)}  {' '.join(row.scopes)}  made {clock.iso(row.created_at)}{state}"
        )
    if not rows:
        terminal.say("There are no keys; the server takes anyone on its own machine, and nobody else.")
    return exits.DONE


@command()
def revoke(
    place: Place, id: Annotated[str, typer.Argument(metavar="ID", help="Its id, or the beginning of it.")]
) -> int:
    """Revoke a key: within seconds it opens nothing any more."""
    with _ledger(place) as ledger:
        found = [row for row in ledger.api_keys() if row.id.startswith(id)]
        if len(found) != 1:
            raise NotFoundError(
                f"{'No key' if not found else 'More than one key'} begins with '{id}'; see `waitpoint key list`"
            )
        was_valid = ledger.revoke_key(found[0].id, clock.now())
    text = f"Revoked the key of {safe.line(found[0].name)}." if was_valid else "It was revoked already."
    if place.as_json:
        terminal.document({"id": found[0].id, "revoked": was_valid})
    else:
        terminal.say(text)
    return exits.DONE


def _ledger(place: Place) -> SqliteLedger:
    place.saver(create=True)
    folder = Path.cwd() if place.store_flag else place.settings.folder
    return stores.open_ledger(place.store_flag or place.settings.store_url or "", folder)


def _server_keys() -> Any:
    try:
        from waitpoint.server.auth import keys
    except ModuleNotFoundError as error:
        raise ConfigError(f"Keys need '{error.name}', which is not installed; install waitpoint[server]") from None
    return keys


def _document(row: KeyRow) -> dict[str, Any]:
    revoked = None if row.revoked_at is None else clock.iso(row.revoked_at)
    return {
        "id": row.id,
        "name": row.name,
        "scopes": list(row.scopes),
        "created_at": clock.iso(row.created_at),
        "revoked_at": revoked,
    }
