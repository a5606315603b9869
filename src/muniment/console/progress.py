"""Long work: answered as a page, or to the page's script as a stream of progress lines."""

from collections.abc import Awaitable, Callable
from contextlib import suppress

from anyio import BrokenResourceError, WouldBlock, create_memory_object_stream, create_task_group
from anyio.streams.memory import MemoryObjectSendStream
from fastapi import Request, Response
from pydantic_core import to_json
from starlette.types import Receive, Scope, Send

from muniment.console.rendering import HEADERS
from muniment.console.visitors import error_text
from muniment.errors import MunimentError

LINES = "application/x-ndjson"

Progress = Callable[[int, int | None], None]
Work = Callable[[Progress], Awaitable[Response]]


async def respond(request: Request, work: Work) -> Response:
    """Do the work and return its page; where the request accepts lines of JSON, stream the progress first."""
    if LINES in request.headers.get("accept", ""):
        return _ProgressStream(work)
    return await work(lambda _done, _total: None)


class _ProgressStream(Response):
    """Lines of JSON: `{"done": 3, "total": 10}` while it runs, `{"page": "<html>"}` or `{"problem": "..."}` at the end.

    The work is cancelled when the client disconnects. A stream without a last line was cut off.
    """

    def __init__(self, work: Work) -> None:
        super().__init__(headers=HEADERS, media_type=LINES)
        del self.headers["content-length"]
        self._work = work

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        sender, lines = create_memory_object_stream[bytes](8)
        async with create_task_group() as group:

            async def cancel_on_disconnect() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                group.cancel_scope.cancel()

            group.start_soon(cancel_on_disconnect)
            group.start_soon(self._run, sender)
            async with lines:
                async for line in lines:
                    await send({"type": "http.response.body", "body": line, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
            group.cancel_scope.cancel()

    async def _run(self, sender: MemoryObjectSendStream[bytes]) -> None:
        def on_progress(done: int, total: int | None) -> None:
            # A slow reader misses some of the progress.
            with suppress(WouldBlock, BrokenResourceError):
                sender.send_nowait(to_json({"done": done, "total": total}) + b"\n")

        async with sender:
            try:
                page = await self._work(on_progress)
                last = {"page": bytes(page.body).decode()}
            except MunimentError as error:
                last = {"problem": error_text(error)}
            await sender.send(to_json(last) + b"\n")
