"""A model provider on this machine: one HTTP server, told what to say, that refuses what a strict provider refuses."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Protocol

KEY = "a-key-of-the-tests"


@dataclass(frozen=True)
class Call:
    """A tool call that the model makes."""

    id: str
    name: str
    args: Mapping[str, Any]

    def pieces(self) -> list[str]:
        """Give the JSON text of the arguments in three pieces, as a stream brings it."""
        text = json.dumps(self.args, ensure_ascii=False)
        third = max(1, len(text) // 3)
        return [text[:third], text[third : 2 * third], text[2 * third :]]


@dataclass(frozen=True)
class Turn:
    """What the model says in answer to one request: pieces of text, then tool calls."""

    texts: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()

    @property
    def text(self) -> str:
        return "".join(self.texts)


@dataclass(frozen=True)
class Request:
    """One request as it came in; `headers` have lower-case names."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]


class Wire(Protocol):
    """A wire format."""

    stream_type: ClassVar[str]

    def faults(self, request: Request) -> list[str]:
        """List what a strict provider would refuse."""
        ...

    def wants_stream(self, request: Request) -> bool: ...

    def whole(self, turn: Turn) -> Any:
        """Make the JSON body that says all at once."""
        ...

    def parts(self, turn: Turn) -> Iterator[str]:
        """Make the pieces of the body of a stream, each sent on its own."""
        ...

    def refusal(self, text: str) -> Any: ...


@dataclass
class Provider:
    """A running server: what it was asked, and what it still has to say.

    While `may_finish` is not set, a stream stops after the part that holds the first piece of text.
    """

    url: str
    turns: list[Turn] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    may_finish: threading.Event = field(default_factory=threading.Event)
    finished: threading.Event = field(default_factory=threading.Event)


@contextmanager
def serving(wire: Wire, *turns: Turn) -> Iterator[Provider]:
    """Serve the wire format on a free port of 127.0.0.1; the turns are said in order, one for each request."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"wire": wire}))
    server.daemon_threads = True
    provider = Provider(f"http://127.0.0.1:{server.server_port}", list(turns))
    provider.may_finish.set()
    server.RequestHandlerClass.provider = provider  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield provider
    finally:
        provider.may_finish.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wire: Wire
    provider: Provider

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["content-length"]))
        request = Request(self.path, {k.lower(): v for k, v in self.headers.items()}, json.loads(raw))
        self.provider.requests.append(request)
        faults = [*_without_key(request), *self.wire.faults(request)]
        if not faults and not self.provider.turns:
            faults = ["nothing is left to say: one request too many"]
        if faults:
            self.provider.refused += faults
            self._send(400, self.wire.refusal("; ".join(faults)))
        elif self.wire.wants_stream(request):
            self._stream(self.provider.turns.pop(0))
        else:
            self._send(200, self.wire.whole(self.provider.turns.pop(0)))

    def _send(self, status: int, value: Any) -> None:
        body = json.dumps(value).encode()
        self._start(status, {"content-type": "application/json", "content-length": str(len(body))})
        self.wfile.write(body)

    def _start(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        # Clients keep connections open for later calls, and some are never closed: each would be a warning at its end.
        for name, value in {**headers, "connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()

    def _stream(self, turn: Turn) -> None:
        self._start(200, {"content-type": self.wire.stream_type, "transfer-encoding": "chunked"})
        for part in self.wire.parts(turn):
            data = part.encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()
            if turn.texts and json.dumps(turn.texts[0])[1:-1] in part:
                self.provider.may_finish.wait(30)
        self.provider.finished.set()
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_: object) -> None:
        """Say nothing on the terminal."""


def _without_key(request: Request) -> list[str]:
    sent = [request.headers.get(name, "") for name in ("authorization", "x-api-key", "x-goog-api-key")]
    return [] if KEY in " ".join(sent).split() else ["the key is missing"]


def event(data: Any, name: str | None = None) -> str:
    """Write one server-sent event."""
    text = data if isinstance(data, str) else json.dumps(data)
    return f"event: {name}\ndata: {text}\n\n" if name else f"data: {text}\n\n"
