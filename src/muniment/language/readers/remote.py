"""Readers for a process that loads none itself: it asks the readers' process of its server."""

import socket
from asyncio import get_running_loop
from collections.abc import Sequence
from os import fsencode
from pathlib import Path
from typing import Any, cast

from anyio import Semaphore, create_task_group, move_on_after
from anyio.to_thread import run_sync

from muniment.errors import ReadersUnavailable
from muniment.language.readers.frames import FrameError, encode, is_own_user, receive, send
from muniment.language.readers.guard import GuardScores
from muniment.language.readers.pairs import PairScores
from muniment.language.readers.readers import CHUNK, GUARD, PAIRS, TAGGER, THREADS, Loaded, Readers
from muniment.language.readers.tagger import Tag
from muniment.language.readers.weights import Weights

# Seconds in which the readers' process takes a call, and in which it then answers: others may be read before it.
TAKEN_SECONDS, ANSWERED_SECONDS = 5.0, 60.0
# Characters of a call from which on its frame takes longer than a thread does.
_LONG = 1 << 16


class RemoteReaders(Readers):
    """The same answers as `Readers`, from the process that listens at a path.

    Raises `ReadersUnavailable` where that process is gone, is being started, has another version, or does not answer in
    time. It keeps what it has read by the hash of the text; nothing is kept here.
    """

    def __init__(
        self, weights: Weights, path: Path, *, taken: float = TAKEN_SECONDS, answered: float = ANSWERED_SECONDS
    ) -> None:
        super().__init__(weights)
        self._path = path
        self._taken, self._answered = taken, answered

    def load(self) -> Loaded:
        """Raise `ReadersUnavailable`: another process loads them."""
        raise ReadersUnavailable("this process does not load the readers: the readers' process of the server does")

    async def read_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[PairScores]:
        """Judge pairs of texts."""
        return [PairScores(*one) for one in await self._ask(PAIRS, pairs)]

    async def read_guard(self, texts: Sequence[str]) -> list[GuardScores]:
        """Score texts for instructions to the model and for worth."""
        return [GuardScores(*one) for one in await self._ask(GUARD, texts)]

    async def read_tags(self, texts: Sequence[str]) -> list[tuple[Tag, ...]]:
        """Tag the personal data and the special categories in texts."""
        return [tuple(Tag(*tag) for tag in one) for one in await self._ask(TAGGER, texts)]

    async def _ask(self, reader: str, items: Sequence[object]) -> list[Any]:
        """Ask in parts, as many at a time as the process has threads; all of them, or an error."""
        found: dict[int, list[Any]] = {}
        errors: list[ReadersUnavailable] = []
        turns = Semaphore(THREADS)

        async def ask_part(first: int) -> None:
            async with turns:
                try:
                    found[first] = await self._ask_part(reader, items[first : first + CHUNK])
                except ReadersUnavailable as error:
                    errors.append(error)

        async with create_task_group() as tasks:
            for first in range(0, len(items), CHUNK):
                tasks.start_soon(ask_part, first)
        if errors:
            raise errors[0]
        return [answer for first in sorted(found) for answer in found[first]]

    async def _ask_part(self, reader: str, items: Sequence[object]) -> list[Any]:
        gone = ""
        try:
            request = await _encoded({"reader": reader, "items": list(items)})
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.setblocking(False)
                if await self._is_taken(connection, request):
                    with move_on_after(self._answered):
                        answers = _said(await receive(connection), "answers")
                        if not isinstance(answers, list) or len(cast("list[Any]", answers)) != len(items):
                            raise FrameError("the number of answers is wrong")
                        return cast("list[Any]", answers)
        except (OSError, FrameError) as error:
            gone = type(error).__name__
        # INVARIANT: not raised where the time was up. A transaction would take what lies behind the error for a
        # cancellation of its caller.
        if gone:
            raise ReadersUnavailable(f"the readers' process ended or is not there: {gone}")
        raise ReadersUnavailable("the readers' process did not answer in time")

    async def _is_taken(self, connection: socket.socket, request: bytes) -> bool:
        """Whether the process takes the call in time; raises `ReadersUnavailable` where it is not the one to ask."""
        with move_on_after(self._taken):
            await get_running_loop().sock_connect(connection, fsencode(self._path))
            if not is_own_user(connection):
                raise ReadersUnavailable("the readers' process belongs to another user")
            # At once, not after the greeting: each way takes a turn of both processes.
            await send(connection, request)
            self._check_version(_said(await receive(connection), "version"))
            return True
        return False

    def _check_version(self, version: object) -> None:
        """Check which readers the process has."""
        if version != self.version:
            raise ReadersUnavailable(
                f"the readers' process has version {version}, and this process {self.version}: renew the processes of"
                " the server with SIGHUP"
            )


async def _encoded(message: dict[str, Any]) -> bytes:
    """Return the frame of a request; that of long texts is not made in the event loop."""
    is_long = sum(len(one) for item in message["items"] for one in ((item,) if isinstance(item, str) else item)) > _LONG
    return await run_sync(encode, message) if is_long else encode(message)


def _said(message: Any, name: str) -> object:
    """Return a part of what the process said; raises `ReadersUnavailable` where it says that it cannot read."""
    if not isinstance(message, dict):
        raise FrameError("the answer is not an object")
    said = cast("dict[str, object]", message)
    if "unavailable" in said:
        raise ReadersUnavailable(str(said["unavailable"]))
    return said.get(name)
