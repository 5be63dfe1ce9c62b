"""The program `waitpoint`: its commands, and errors turned into one sentence and an exit code."""

from __future__ import annotations

import re
import sys
from typing import Any

import typer

from waitpoint.cli import (
    answering,
    deciding,
    exits,
    importing,
    keeping,
    keys,
    listing,
    serving,
    starting,
    terminal,
    tracing,
)
from waitpoint.cli.migrate import migrate
from waitpoint.version import __version__

_ABOUT = """Run graphs that wait for people, and answer what they ask.

Exit codes: 0 done or waiting, 2 usage, 3 refused, 4 a node failed, 130 stopped by Ctrl-C.
"""


def main(arguments: list[str] | None = None) -> None:
    """Run the program on the arguments given (default: those of the process) and exit."""
    terminal.prepare()
    words = sys.argv[1:] if arguments is None else arguments
    try:
        code = _run(words)
        sys.stdout.flush()
    except BrokenPipeError:
        terminal.drop_output()
        code = exits.DONE
    sys.exit(code)


def _run(words: list[str]) -> int:
    try:
        done = _app()(words, standalone_mode=False, prog_name="waitpoint")
        return done if isinstance(done, int) else exits.DONE
    except (KeyboardInterrupt, typer.Abort):
        terminal.note("Stopped.")
        return exits.STOPPED
    except Exception as error:  # noqa: BLE001 - whatever it is, the user gets one sentence
        return _told(error, words)


def _told(error: Exception, words: list[str]) -> int:
    """Write an error as one sentence; return its exit code."""
    code = exits.code_of(error)
    if hasattr(error, "format_message"):  # of the command line's own grammar
        code = exits.USAGE
        text, name = _grammar(error), "usage"
    else:
        text, name = exits.sentence(error), exits.name_of(error)
    if "--traceback" in words:
        terminal.trace_of(error)
    if code is None:
        code = exits.FAILED
        text = f"Unexpected {text}; --traceback shows the place"
    terminal.note(text)
    if "--json" in words:
        terminal.document({"error": {"code": name, "message": text}})
    return code


def _grammar(error: Any) -> str:
    """Return an error of the parser as a sentence with the cure."""
    text = str(error.format_message()).rstrip(".")
    context = getattr(error, "ctx", None)
    path = "waitpoint" if context is None else context.command_path
    if re.search(r": -[0-9.]", text):
        return f"{text}; put -- before an answer that begins with a minus: `{path} ID -- -5`"
    return f"{text}; see `{path} --help`"


def _app() -> typer.Typer:
    app = typer.Typer(
        name="waitpoint", help=_ABOUT, no_args_is_help=False, add_completion=False, rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )  # fmt: skip
    app.callback(invoke_without_command=True)(_front)
    app.command("run")(starting.run)
    app.command("inbox")(listing.inbox)
    app.command("show")(listing.show)
    app.command("answer")(answering.answer)
    app.command("approve")(deciding.approve)
    app.command("edit")(deciding.edit)
    app.command("reject")(deciding.reject)
    app.command("respond")(deciding.respond)
    app.command("decide")(deciding.decide)
    app.command("withdraw")(answering.withdraw)
    app.command("continue")(starting.go_on)
    app.add_typer(_threads(), name="threads")
    app.command("trace")(tracing.trace)
    app.command("serve")(serving.serve)
    app.add_typer(_keys(), name="key")
    app.command("migrate")(migrate)
    app.command("import")(importing.bring)
    return app


def _threads() -> typer.Typer:
    """Return the group `threads`, which by itself lists them."""
    group = typer.Typer(add_completion=False, rich_markup_mode=None)
    group.callback(invoke_without_command=True)(listing.threads)
    group.command("prune")(keeping.prune)
    group.command("copy")(keeping.copy)
    group.command("delete")(keeping.delete)
    return group


def _keys() -> typer.Typer:
    """Return the group `key`."""
    group = typer.Typer(add_completion=False, rich_markup_mode=None, help="The API keys of a server.")
    group.command("create")(keys.create)
    group.command("list")(keys.listed)
    group.command("revoke")(keys.revoke)
    return group


def _front(
    context: typer.Context, version: bool = typer.Option(False, "--version", help="Show the version and exit.")
) -> int:
    if version:
        terminal.say(f"waitpoint {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        terminal.say(context.get_help())
        raise typer.Exit(exits.USAGE)
    return exits.DONE
