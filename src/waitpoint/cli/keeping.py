"""`threads prune`, `threads copy` and `threads delete`: keeping the store small, and trying something out on a copy."""

from __future__ import annotations

from typing import Annotated

import typer

from waitpoint.checkpoint.base import Pruned
from waitpoint.cli import exits, safe, terminal, times
from waitpoint.cli.options import command
from waitpoint.cli.place import Place
from waitpoint.errors import NotFoundError, UsageError

_IDS = Annotated[list[str], typer.Argument(metavar="THREAD...", help="Their ids, in full.")]


@command()
def prune(
    place: Place,
    threads: Annotated[
        list[str] | None,
        typer.Argument(metavar="[THREAD...]", help="Their ids, in full; without: all that are old enough."),
    ] = None,
    older_than: Annotated[
        str | None, typer.Option("--older-than", metavar="AGE", help="Unchanged for so long: 90s, 30min, 12h, 30d, 8w.")
    ] = None,
    keep_latest: Annotated[bool, typer.Option("--keep-latest", help="Take the history only (the default).")] = False,
    delete: Annotated[bool, typer.Option("--delete", help="Take whole threads, but none with open questions.")] = False,
) -> int:
    """Take away history that threads do not need to go on; what open questions need stays."""
    if keep_latest and delete:
        raise UsageError("--keep-latest and --delete exclude each other; give one of them")
    saver, age = place.saver(), None if older_than is None else times.seconds(older_than)
    for each in threads or ():
        if not saver.threads(thread_id=each):
            raise _unknown(each)
    pruned = saver.prune(threads or None, strategy="delete" if delete else "keep_latest", older_than=age)
    if place.as_json:
        terminal.document(
            {
                "threads": pruned.threads,
                "deleted": pruned.deleted,
                "checkpoints": pruned.checkpoints,
                "running": [key.thread_id for key in pruned.running],
            }
        )
    else:
        _say(pruned)
    return exits.DONE


@command()
def copy(
    place: Place,
    source: Annotated[str, typer.Argument(metavar="THREAD", help="Its id, in full.")],
    target: Annotated[str, typer.Argument(metavar="NEW", help="The id of the copy.")],
) -> int:
    """Copy a thread as it stands; what is decided on one of the two decides nothing in the other."""
    place.saver().copy_thread(source, target)
    if place.as_json:
        terminal.document({"thread_id": target, "source": source})
    else:
        terminal.say(f"Thread {safe.line(target)} is a copy of {safe.line(source)}.")
    return exits.DONE


@command()
def delete(place: Place, threads: _IDS) -> int:
    """Remove threads with all that belongs to them, open questions too."""
    saver = place.saver()
    for each in threads:
        if not saver.threads(thread_id=each):
            raise _unknown(each)
    for each in threads:
        saver.delete_thread(each)
    if place.as_json:
        terminal.document({"deleted": threads})
    else:
        terminal.say(f"Deleted {_counted(len(threads), 'thread')}.")
    return exits.DONE


def _unknown(thread_id: str) -> NotFoundError:
    return NotFoundError(f"Unknown thread '{thread_id}': this store has none of that id; `threads` lists them")


def _say(pruned: Pruned) -> None:
    if not pruned.threads:
        terminal.say("Nothing to take away.")
    else:
        whole = f", {pruned.deleted} of them wholly" if pruned.deleted else ""
        terminal.say(
            f"Took {_counted(pruned.checkpoints, 'checkpoint')} from {_counted(pruned.threads, 'thread')}{whole}."
        )
    if pruned.running:
        terminal.say(f"Left alone since they run: {', '.join(safe.line(key.thread_id) for key in pruned.running)}")


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
