"""Runs programs in forked processes, on request: a process that has imported everything once and has no threads.

Reads a request a line (JSON: `folder`, `at`, `durability`, `program`) and answers a line: the points that the process
passed, how it died, and its result.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.crash.programs import order
from tests.crash.programs.world import World, enter
from waitpoint.testing.faults import Points

Request = dict[str, Any]
Play = Callable[[Request, World], dict[str, Any]]


def main(play: Play) -> None:
    """Serve until standard input ends."""
    for line in sys.stdin:
        print(json.dumps(serve(json.loads(line), play)), flush=True)


def serve(request: Request, play: Play) -> dict[str, Any]:
    """Fork a process for one request, and tell what became of it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _run(request, play, writing)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as pipe:
        told = [json.loads(line) for line in pipe]
    _, status = os.waitpid(child, 0)
    reply = {"points": [t["point"] for t in told if "point" in t], "signal": os.WTERMSIG(status)}
    for entry in told:
        reply |= {k: v for k, v in entry.items() if k != "point"}
    return reply


def _run(request: Request, play: Play, writing: int) -> None:
    """Run the program in this process, and end it."""

    def tell(what: dict[str, Any]) -> None:
        os.write(writing, f"{json.dumps(what)}\n".encode())

    try:
        points = Points(request["at"], told=lambda name: tell({"point": name}))
        tell({"result": play(request, enter(World(Path(request["folder"]), points)))})
    except BaseException:
        tell({"error": traceback.format_exc()})
    finally:
        os._exit(0)


def ordered(request: Request, world: World) -> dict[str, Any]:
    """Run the graph of all kinds of effects to its end."""
    options = {"durability": request["durability"]}
    if request["program"] == "async":
        return asyncio.run(world.to_the_end_async(order.build_async(world.saver), **options))
    return world.to_the_end(order.build(world.saver), **options)


if __name__ == "__main__":
    main(ordered)
