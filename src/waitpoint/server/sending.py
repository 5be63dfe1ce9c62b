"""A response that is sent piece by piece as long as its client listens, and tells when the client left too early."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

Left = Callable[[], Awaitable[None]]


class Sending(StreamingResponse):
    """`left` is awaited when the client goes before the last piece, not when the server stops."""

    def __init__(
        self, pieces: AsyncIterator[bytes], media_type: str, headers: Mapping[str, str] | None = None,
        left: Left | None = None,
    ) -> None:  # fmt: skip
        super().__init__(pieces, media_type=media_type, headers=headers)
        self._left = left

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        sending = asyncio.create_task(self.stream_response(send))
        leaving = asyncio.create_task(_gone(receive))
        try:
            await asyncio.wait([sending, leaving], return_when=asyncio.FIRST_COMPLETED)
            is_gone = not sending.done() or isinstance(sending.exception(), OSError)
        finally:
            sending.cancel()
            leaving.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)
        if not is_gone:
            sending.result()
        elif self._left is not None:
            await self._left()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
