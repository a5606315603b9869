"""Work that takes a while: answered as a page, or line by line with how far it is where the page's script asks so."""

from collections.abc import Awaitable, Callable
from contextlib import suppress

from anyio import BrokenResourceError, WouldBlock, create_memory_object_stream, create_task_group
from anyio.streams.memory import MemoryObjectSendStream
from fastapi import Request, Response
from pydantic_core import to_json
from starlette.types import Receive, Scope, Send

from muniment.console.rendering import HEADERS
from muniment.console.visitors import told
from muniment.errors import MunimentError

LINES = "application/x-ndjson"

Progress = Callable[[int, int | None], None]
Work = Callable[[Progress], Awaitable[Response]]


async def answered(request: Request, work: Work) -> Response:
    """What the work gives, a page; to a script its progress first."""
    if LINES in request.headers.get("accept", ""):
        return _Lines(work)
    return await work(lambda _done, _total: None)


class _Lines(Response):
    """Lines of JSON: `{"done": 3, "total": 10}` as it goes, `{"page": "<html>"}` or `{"problem": "..."}` in the end.

    Who goes away ends the work. A stream without either is one that broke off.
    """

    def __init__(self, work: Work) -> None:
        super().__init__(headers=HEADERS, media_type=LINES)
        del self.headers["content-length"]
        self._work = work

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        telling, lines = create_memory_object_stream[bytes](8)
        async with create_task_group() as group:

            async def until_gone() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                group.cancel_scope.cancel()

            group.start_soon(until_gone)
            group.start_soon(self._do, telling)
            async with lines:
                async for line in lines:
                    await send({"type": "http.response.body", "body": line, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
            group.cancel_scope.cancel()

    async def _do(self, telling: MemoryObjectSendStream[bytes]) -> None:
        def on_progress(done: int, total: int | None) -> None:
            # Who reads slowly misses some of it.
            with suppress(WouldBlock, BrokenResourceError):
                telling.send_nowait(to_json({"done": done, "total": total}) + b"\n")

        async with telling:
            try:
                page = await self._work(on_progress)
                end = {"page": bytes(page.body).decode()}
            except MunimentError as error:
                end = {"problem": told(error)}
            await telling.send(to_json(end) + b"\n")
