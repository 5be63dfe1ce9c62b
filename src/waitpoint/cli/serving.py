"""`serve`: the graphs of the settings behind HTTP, until stopped."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from waitpoint.cli import exits, stores, terminal
from waitpoint.cli.options import command
from waitpoint.cli.place import Place
from waitpoint.cli.settings import FILE_NAME
from waitpoint.engine.runner import Runner
from waitpoint.errors import ConfigError

_HOST, _PORT = "127.0.0.1", 2024


@command()
def serve(
    place: Place,
    host: Annotated[str | None, typer.Option("--host", metavar="HOST", help="Where to listen.")] = None,
    port: Annotated[
        int | None, typer.Option("--port", metavar="PORT", min=0, max=65535, help="0: any free one.")
    ] = None,
    reload: Annotated[bool, typer.Option("--reload", help="Start anew when a file changes, for development.")] = False,
) -> int:
    """Serve the graphs of waitpoint.toml over HTTP, with an inbox, until stopped."""
    try:
        from waitpoint.server import logs, serving
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"The server needs '{error.name}', which is not installed; install waitpoint[server]"
        ) from None
    if reload:
        return _reloading(place)
    settings = place.settings
    address = serving.Address(host or settings.server.host or _HOST, _PORT if port is None else port)
    if port is None and settings.server.port is not None:
        address = serving.Address(address.host, settings.server.port)
    graphs = _graphs(place)
    app = _app(place, graphs, address)
    listener = serving.listen(address)
    logs.prepare(as_json=True if place.as_json else None)
    url = serving.url_of(listener)

    def started() -> None:
        if place.as_json:
            terminal.document({"url": url, "inbox": f"{url}/inbox", "graphs": list(graphs)})
        else:
            terminal.say(f"Serving {', '.join(graphs)}")
            for name, path in (("API", ""), ("Inbox", "/inbox"), ("Docs", "/docs")):
                terminal.say(f"  {name:<6} {url}{path}")
            if address.is_loopback:
                terminal.say("Only this machine can reach it. Stop with Ctrl-C.")
        sys.stdout.flush()

    serving.serve(app, listener, started, _ended)
    return exits.FAILED


def _graphs(place: Place) -> dict[str, Runner]:
    """Import all graphs; each that cannot be is told of, then nothing is served."""
    if not place.settings.graphs:
        raise ConfigError(f'There is nothing to serve; name graphs in [graphs] of {FILE_NAME}, as name = "module:attr"')
    found: dict[str, Runner] = {}
    broken: list[ConfigError] = []
    for name in place.settings.graphs:
        try:
            found[name] = place.graph_named(name)
        except ConfigError as error:
            broken.append(error)
    for each in broken[:-1]:
        terminal.note(str(each))
    if broken:
        raise broken[-1]
    return found


def _app(place: Place, graphs: dict[str, Runner], address: Any) -> Any:
    from waitpoint.server import create_app

    place.saver(create=True)
    url = place.store_flag or place.settings.store_url or ""
    path = stores.path_of(url, Path.cwd() if place.store_flag else place.settings.folder)
    app = create_app(graphs, path, webhook_hosts=place.settings.server.webhook_hosts, security=_security(place))
    if not address.is_loopback and not app.state.is_guarded:
        raise ConfigError(
            f"Nobody has to say who they are here, so anyone who reaches {address.host} could answer; make a key first "
            f"(waitpoint key create), or listen on {_HOST}"
        )
    return app


def _security(place: Place) -> Any:
    from waitpoint.server import Security, Tokens

    given = place.settings.server
    limits = {"max_body": given.max_body, "requests_a_minute": given.requests_a_minute}
    return Security(
        authenticate=None if given.authenticate is None else place.object_named(given.authenticate, "function"),
        tokens=None if given.tokens is None else Tokens(**given.tokens),
        cors_origins=given.cors_origins,
        **{name: value for name, value in limits.items() if value is not None},
    )


def _ended(number: int | None) -> None:
    """End the process here and now: whatever still runs is given back or taken over."""
    code = exits.FAILED if number is None else exits.STOPPED if number == signal.SIGINT else exits.DONE
    if number is not None:
        terminal.note("Stopped.")
    sys.stdout.flush()
    os._exit(code)


def _reloading(place: Place) -> int:
    """Run the server in a child, which is started anew when a file of the settings' folders changes."""
    import watchfiles

    words = [word for word in sys.argv[1:] if word != "--reload"]
    code = f"from waitpoint.cli import main; main({words!r})"
    folders = {Path.cwd(), place.settings.folder, *place.settings.python_path}
    outer = [f for f in folders if f.is_dir() and not any(o != f and o in f.parents for o in folders)]

    def matters(_: Any, path: str) -> bool:
        file = Path(path)
        return not any(part.startswith((".", "__pycache__")) for part in file.parts[-3:]) and (
            file.suffix == ".py" or file.name == FILE_NAME
        )

    def changed(changes: Any) -> None:
        names = sorted({Path(path).name for _, path in changes})
        terminal.note(f"{', '.join(names[:3])} changed; starting anew.")

    line = shlex.join([sys.executable, "-c", code])
    watchfiles.run_process(
        *outer, target=line, target_type="command", watch_filter=matters, callback=changed, debounce=300
    )
    return exits.DONE
