"""What the readers' process does: it takes calls on a socket and answers each with what the readers say."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from socket import socket
from typing import Any, cast

from anyio import Event, Semaphore, create_task_group, current_time, fail_after, sleep, wait_readable

from muniment.errors import ReadersUnavailable
from muniment.language.readers.frames import FrameError, encode, is_own_user, receive, send
from muniment.language.readers.readers import CHUNK, GUARD, PAIRS, TAGGER, THREADS, BrokenReaders, Readers

log = logging.getLogger("muniment.language")

# Seconds that a caller has for its request, and to take the answer; and that calls in progress have at the end.
_CALLER_SECONDS, GRACE = 10.0, 10.0
# Seconds until a call is taken again after no file could be opened for it.
_PAUSE = 0.1


async def serve_readers(readers: Readers | BrokenReaders | None, listening: socket, ending: Event) -> None:
    """Answer calls until `ending`; then nothing more is taken, and the calls in progress are answered.

    Another process may take calls from the same socket: those that wait there are not lost.
    """
    listening.setblocking(False)
    server = _Server(readers)
    async with create_task_group() as answering:
        async with create_task_group() as taking:

            async def take() -> None:
                while True:
                    await wait_readable(listening)
                    try:
                        connection, _ = listening.accept()
                    except (BlockingIOError, ConnectionError):
                        continue
                    except OSError:
                        # No more files can be opened just now: the call waits.
                        await sleep(_PAUSE)
                        continue
                    answering.start_soon(server.answer, connection)

            taking.start_soon(take)
            await ending.wait()
            taking.cancel_scope.cancel()
        answering.cancel_scope.deadline = current_time() + GRACE


class _Server:
    def __init__(self, readers: Readers | BrokenReaders | None) -> None:
        self._readers = readers if isinstance(readers, Readers) else None
        self._turns = Semaphore(THREADS)
        if isinstance(readers, Readers):
            self._greeting = {"version": readers.version}
        else:
            why = readers.problem if readers is not None else "the package muniment-models is not installed"
            self._greeting = {"unavailable": why}

    async def answer(self, connection: socket) -> None:
        """Answer one call. A caller that is gone, too slow or not ours gets nothing."""
        with connection:
            connection.setblocking(False)
            try:
                if not is_own_user(connection):
                    log.warning("a caller of another user was refused")
                    return
                with fail_after(_CALLER_SECONDS):
                    await send(connection, encode(self._greeting))
                    request = await receive(connection)
                frame = encode(await self._read(request))
                with fail_after(_CALLER_SECONDS):
                    await send(connection, frame)
            except (OSError, FrameError, TimeoutError):
                return
            except Exception as error:
                # INVARIANT: without the words of the error, which may quote a text.
                log.error("a call was not answered", extra={"error": type(error).__name__})

    async def _read(self, request: Any) -> dict[str, Any]:
        if self._readers is None:
            raise FrameError("this process has no readers")
        reader, items = _checked(request)
        reading: dict[str, Callable[[Any], Awaitable[Sequence[Any]]]] = {
            PAIRS: self._readers.read_pairs,
            GUARD: self._readers.read_guard,
            TAGGER: self._readers.read_tags,
        }
        try:
            # A call waits here for its turn, not on a thread.
            async with self._turns:
                return {"answers": await reading[reader](items)}
        except ReadersUnavailable as error:
            return {"unavailable": error.message}


def _checked(request: Any) -> tuple[str, list[Any]]:
    """Return the reader and what it is to read; raises `FrameError` for what no process of ours asks."""
    if isinstance(request, dict):
        said = cast("dict[str, Any]", request)
        reader, items = said.get("reader"), said.get("items")
        if isinstance(items, list) and 0 < len(cast("list[Any]", items)) <= CHUNK:
            given = cast("list[Any]", items)
            if reader in (GUARD, TAGGER) and all(type(one) is str for one in given):
                return reader, given
            if reader == PAIRS and all(_is_pair(one) for one in given):
                return reader, [(one[0], one[1]) for one in given]
    raise FrameError("no such request")


def _is_pair(one: Any) -> bool:
    return isinstance(one, list) and [*map(type, cast("list[Any]", one))] == [str, str]
