"""Serves an application on an address until it is told to stop, and then stops quickly and in order."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import signal
import socket
from collections.abc import Callable, Generator
from dataclasses import dataclass

import uvicorn
from fastapi import FastAPI

from waitpoint.errors import ConfigError

STOP_SECONDS = 1  # for requests that are being answered when the server stops


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen; port 0 is any that is free."""

    host: str = "127.0.0.1"
    port: int = 2024

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        if self.host == "localhost":
            return True
        with contextlib.suppress(ValueError):
            return ipaddress.ip_address(self.host).is_loopback
        return False


def listen(address: Address) -> socket.socket:
    """Return a socket that listens. Raises `ConfigError`."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    # Named as TCP, for asyncio sends small pieces at once only where it sees that name.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address.host, address.port))
        listener.listen(2048)
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(
            f"Cannot listen on {address.host}:{address.port} - {reason}; stop what uses it, or give another --host or --port"
        ) from None
    return listener


def url_of(listener: socket.socket) -> str:
    """Return the address under which a listener is reached from this machine."""
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class _Server(uvicorn.Server):
    """Ends open streams first, and stops by the signals it is given without passing them on."""

    def __init__(self, app: FastAPI, started: Callable[[], None]) -> None:
        config = uvicorn.Config(
            app, log_config=None, access_log=False, lifespan="on", timeout_graceful_shutdown=STOP_SECONDS,
            ws="websockets-sansio", server_header=False,
        )  # fmt: skip
        super().__init__(config)
        self._app, self._started = app, started
        self.stopped_by: int | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if not self.should_exit:
            self._started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.state.streams.close()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._told, number)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    def _told(self, number: int) -> None:
        self.force_exit = self.should_exit and number == signal.SIGINT
        self.should_exit = True
        self.stopped_by = self.stopped_by or number


def serve(
    app: FastAPI, listener: socket.socket, started: Callable[[], None], ended: Callable[[int | None], None]
) -> None:
    """Serve until SIGINT or SIGTERM; a second Ctrl-C stops at once.

    `ended` is called with the signal, on the event loop: a plain function of a graph that still runs in a thread would
    otherwise hold up the end of the process. None stands for a server that could not start.
    """

    async def served() -> None:
        server = _Server(app, started)
        await server.serve([listener])
        ended(server.stopped_by)

    asyncio.run(served())
