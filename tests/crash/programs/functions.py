"""An entrypoint whose tasks have effects: in a row, side by side, in each other, with questions between and in them."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.crash.programs.server import Request, main
from tests.crash.programs.world import World, effect, effect_async
from waitpoint.checkpoint.base import BaseCheckpointSaver
from waitpoint.func import entrypoint, task
from waitpoint.types import interrupt

EFFECTS = ("first", "second", "left", "right", "inner", "after inner", "last")


@task
def pay(name: str) -> str:
    return effect(name)


@task
def asks(name: str) -> list[Any]:
    return [pay(name).result(), interrupt(f"{name}?"), pay(f"after {name}").result()]


@task
async def pay_async(name: str) -> str:
    return await effect_async(name)


@task
async def asks_async(name: str) -> list[Any]:
    return [await pay_async(name), interrupt(f"{name}?"), await pay_async(f"after {name}")]


def build(saver: BaseCheckpointSaver) -> Any:
    """Return the entrypoint."""

    @entrypoint(checkpointer=saver)
    def order(_: Any) -> list[Any]:
        done = [pay("first").result(), interrupt("between?"), pay("second").result()]
        both = [pay("left"), pay("right")]
        return [*done, *(f.result() for f in both), *asks("inner").result(), pay("last").result()]

    return order


def build_async(saver: BaseCheckpointSaver) -> Any:
    """Return the same for an event loop."""

    @entrypoint(checkpointer=saver)
    async def order(_: Any) -> list[Any]:
        done = [await pay_async("first"), interrupt("between?"), await pay_async("second")]
        both = await asyncio.gather(pay_async("left"), pay_async("right"))
        return [*done, *both, *(await asks_async("inner")), await pay_async("last")]

    return order


def played(request: Request, world: World) -> dict[str, Any]:
    """Run the entrypoint to its end."""
    if request["program"] == "async":
        return asyncio.run(world.to_the_end_async(build_async(world.saver), durability=request["durability"]))
    return world.to_the_end(build(world.saver), durability=request["durability"])


if __name__ == "__main__":
    main(played)
