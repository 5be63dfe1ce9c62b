"""A run's first event and each of its tokens over HTTP, beside the development server of LangGraph.

    python -m benchmarks.server --peer FOLDER/bin/langgraph

Both serve the same graph, which streams tokens as custom events without a pause, and both are asked by the same client, in
turns. The peer runs as a black box from an environment of its own, where `langgraph-cli[inmem]` is installed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from statistics import median
from typing import Any

import httpx

TOKENS = 1000
GRAPH = """
from typing import TypedDict

from {package}.config import get_stream_writer
from {package}.graph import START, StateGraph


class State(TypedDict):
    count: int


async def say(state: State) -> State:
    write = get_stream_writer()
    for number in range(state["count"]):
        write({{"token": number}})
    return {{"count": 0}}


graph = StateGraph(State).add_node("say", say).add_edge(START, "say").compile({named})
"""


def free_port() -> int:
    """Return a port that nobody uses now."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@contextlib.contextmanager
def served(folder: Path, words: list[str], port: int) -> Generator[str]:
    """Run a server until the block ends."""
    url = f"http://127.0.0.1:{port}"
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(words, cwd=folder, stdout=log, stderr=log, start_new_session=True)
    try:
        for _ in range(600):
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{url}/ok").status_code == 200:
                    break
            if process.poll() is not None:
                raise SystemExit(f"{words[0]} ended:\n{(folder / 'log').read_text()}")
            time.sleep(0.1)
        yield url
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def ours(folder: Path, port: int) -> list[str]:
    """Write the graph for Waitpoint; return the command that serves it."""
    (folder / "said.py").write_text(GRAPH.format(package="waitpoint", named='name="said"'))
    settings = '[graphs]\nsaid = "said:graph"\n[store]\nurl = "sqlite:///threads.db"\n'
    (folder / "waitpoint.toml").write_text(settings)
    return [str(Path(sys.executable).with_name("waitpoint")), "serve", "--port", str(port)]


def theirs(folder: Path, port: int, program: str) -> list[str]:
    """Write the graph for LangGraph; return the command that serves it."""
    (folder / "said.py").write_text(GRAPH.format(package="langgraph", named=""))
    (folder / "langgraph.json").write_text(json.dumps({"dependencies": ["."], "graphs": {"said": "./said.py:graph"}}))
    return [program, "dev", "--no-browser", "--no-reload", "--port", str(port)]


def timed(http: httpx.Client, count: int) -> tuple[float, float]:
    """Stream a run; return the seconds to its first event, and to its end."""
    thread = http.post("/threads", json={}).json()["thread_id"]
    body: dict[str, Any] = {"assistant_id": "said", "input": {"count": count}, "stream_mode": ["custom"]}
    begun, first, tokens = time.perf_counter(), 0.0, 0
    with http.stream("POST", f"/threads/{thread}/runs/stream", json=body) as stream:
        for line in stream.iter_lines():
            if line.startswith("event:"):
                first = first or time.perf_counter() - begun
                tokens += line.split() == ["event:", "custom"]
    if tokens != count:
        raise SystemExit(f"{tokens} of {count} tokens came")
    return first, time.perf_counter() - begun


def measured(url: str) -> tuple[float, float]:
    """Return the milliseconds to the first event, and the microseconds that each token adds; medians."""
    with httpx.Client(base_url=url, timeout=60) as http:
        timed(http, 10)
        short = [timed(http, 1) for _ in range(11)]
        long = [timed(http, TOKENS) for _ in range(5)]
    per_token = (median(end for _, end in long) - median(end for _, end in short)) / (TOKENS - 1)
    return median(first for first, _ in short) * 1e3, per_token * 1e6


def main() -> None:
    """Measure both and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument(
        "--peer", metavar="PROGRAM", help="the program langgraph; without it only Waitpoint is measured"
    )
    options = parser.parse_args()
    found: list[tuple[float, float]] = []
    for program in [None, options.peer] if options.peer else [None]:
        with tempfile.TemporaryDirectory() as name:
            folder, port = Path(name), free_port()
            words = ours(folder, port) if program is None else theirs(folder, port, program)
            with served(folder, words, port) as url:
                found.append(measured(url))
    for row, what in enumerate(("first event, ms", "each token, µs")):
        numbers = [f"{side[row]:.2f}" for side in found]
        ratio = f" | {found[1][row] / found[0][row]:.1f}x" if len(found) > 1 else ""
        print(f"| {what} | {' | '.join(numbers)}{ratio} |")


if __name__ == "__main__":
    main()
