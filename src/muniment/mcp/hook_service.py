"""Answers the hooks of assistants on a home, at a socket that only its owner can reach.

One process of a home listens: a `muniment mcp --personal`, or one that a hook started (`hook_host`). What the user
typed is captured as their own words, by the embedded agent `memory` (MEM-5, ISO-8): it comes from the assistant's
program, not from its model. What a model writes comes through the tools, and is the agent's word.
"""

import hmac
import json
import logging
import os
import shlex
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import anyio
from anyio.abc import SocketStream, TaskStatus
from pydantic import AfterValidator, Field

from muniment.assistants.hook_client import ADDRESS, CLASSIFICATION, SAME_WITHIN, START_TOKENS
from muniment.assistants.hook_events import TEXT_LIMIT, Action
from muniment.errors import IdempotencyConflict, MunimentError, StorageUnavailable
from muniment.memory.opening import AGENT, TENANT, person_of
from muniment.model.context import RunContext
from muniment.model.fields import Artifact, Label, OpenName, build
from muniment.model.ids import is_ceid

if TYPE_CHECKING:
    from muniment.fabric import AsyncFabric

log = logging.getLogger("muniment.mcp")

_LOCK, _SOCKET = "hooks.lock", "hooks.sock"
_LINE_LIMIT = 8 * TEXT_LIMIT
# Seconds: between tries to become the one who listens; for a request to come; after the last prompt to read what was
# said, where no hook says that the turn is over; for that to be done before a session begins.
_TRY_EVERY = 2.0
_REQUEST_WITHIN = 5.0
_READ_AFTER = 10.0
_READ_WITHIN = 2.0
_WAITS = {
    "pending": ("fact waits", "facts wait"),
    "requests": ("question whether something may be kept waits", "questions whether something may be kept wait"),
}


def _one_user(user: str) -> str:
    if not is_ceid(f"user:{user}"):
        raise ValueError("expected 1 to 128 letters, digits, dots, hyphens or underscores")
    return user


class HookRequest(Artifact):
    """What a hook says."""

    action: Action
    session: OpenName
    text: str | None = None
    program: OpenName
    user: Annotated[OpenName, AfterValidator(_one_user)]
    allow: list[Label] = Field(default_factory=list, max_length=16)
    # Seconds of the clock, when it happened.
    at: Annotated[int, Field(ge=0, le=2**40)] = 0

    def run(self) -> RunContext:
        """The run of the embedded agent: it speaks for its user, in the session of the assistant."""
        return RunContext(
            tenant_id=TENANT,
            agent_id=AGENT,
            run_id=f"hook_{self.session}",
            session_id=self.session,
            user_id=self.user,
            classification_allowed={"PUBLIC", "INTERNAL", *self.allow},
            speaks_for={"channels": [self.program]},
        )


class HookService:
    """Listens on a home, and answers one request for each connection."""

    def __init__(self, home: Path, fabric: Callable[[], Awaitable["AsyncFabric"]]) -> None:
        self._home = home
        self._fabric = fabric
        self._unread = anyio.Event()
        self._turn_over = anyio.Event()
        self._read = anyio.Event()
        self.last_asked = monotonic()

    async def run(self, *, task_status: TaskStatus[bool] = anyio.TASK_STATUS_IGNORED) -> None:
        """Listen as long as the task runs, as soon as no other process does; says at once whether that is now.

        A home that cannot be used is none to listen on: it is logged, and nothing is raised.
        """
        try:
            lock = await anyio.to_thread.run_sync(self._locked)
            task_status.started(lock is not None)
            while lock is None:
                await anyio.sleep(_TRY_EVERY)
                lock = await anyio.to_thread.run_sync(self._locked)
        except StorageUnavailable as error:
            log.warning("no hooks are answered: %s", error.code)
            task_status.started(False)
            return
        try:
            await self._listen()
        finally:
            # First: who finds no address starts a process of its own, and does not wait for this one.
            with suppress(OSError):
                (self._home / ADDRESS).unlink()
            os.close(lock)

    def _locked(self) -> int | None:
        from muniment.database.home import make_private, try_lock

        make_private(self._home)
        return try_lock(self._home / _LOCK)

    async def _listen(self) -> None:
        from muniment.database.home import open_file
        from muniment.database.server_socket import socket_dir_for

        place = socket_dir_for(self._home) / _SOCKET
        with suppress(FileNotFoundError):
            place.unlink()
        listener = await anyio.create_unix_listener(place, mode=0o600)
        try:
            file = open_file(self._home / ADDRESS, os.O_WRONLY | os.O_TRUNC)
            os.write(file, os.fsencode(place))
            os.close(file)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._consolidate)
                await listener.serve(self._answer, tasks)
        finally:
            await listener.aclose()
            with suppress(OSError):
                place.unlink()

    async def _answer(self, stream: SocketStream) -> None:
        async with stream:
            with suppress(anyio.EndOfStream, anyio.BrokenResourceError, TimeoutError):
                with anyio.fail_after(_REQUEST_WITHIN):
                    line = await _line(stream)
                await stream.send(json.dumps(await self.answered(line)).encode() + b"\n")

    async def answered(self, line: bytes) -> dict[str, Any]:
        """What is answered to one request, which is a line of JSON; never raises, and tells no content."""
        self.last_asked = monotonic()
        try:
            request = build(HookRequest, json.loads(line))
            return await self._done(request)
        except MunimentError as error:
            log.warning("a hook was refused: %s", error.code)
            return {"error": error.code}
        except Exception as error:
            # INVARIANT: the error's own words stay out of the log and the answer; they may quote what was said.
            log.error("a hook failed: %s", type(error).__name__)
            return {"error": "internal"}

    async def _done(self, request: HookRequest) -> dict[str, Any]:
        fabric, run = await self._fabric(), request.run()
        if request.action == "start":
            await self._read_first()
            return {"context": await self._context(fabric, request, run)}
        if request.action == "prompt":
            if request.text:
                await _captured(fabric, run, request, request.text)
                self._unread.set()
            return {}
        if request.action == "end":
            await fabric.sessions.end(run, request.session)
        self._turn_over.set()
        return {}

    async def _read_first(self) -> None:
        """Have what the last session left unread read now; that may take a moment, not longer."""
        self._read = anyio.Event()
        self._unread.set()
        self._turn_over.set()
        with anyio.move_on_after(_READ_WITHIN):
            await self._read.wait()

    async def _context(self, fabric: "AsyncFabric", request: HookRequest, run: RunContext) -> str:
        """The promoted memory to begin a session with, marked as data; and how much waits for the user."""
        compiled = await fabric.compile(run, token_budget=START_TOKENS)
        person = person_of(TENANT, request.user)
        waiting = {"pending": len(await fabric.me.pending(person)), "requests": len(await fabric.me.requests(person))}
        parts = [compiled.text.strip(), *(self._waits(request, *one) for one in waiting.items())]
        return "\n\n".join(part for part in parts if part)

    def _waits(self, request: HookRequest, command: str, many: int) -> str:
        if not many:
            return ""
        one, more = _WAITS[command]
        words = ["muniment", "me", command, "--home", str(self._home), "--tenant", TENANT, "--as", request.user]
        return f"{many} {one if many == 1 else more} for the user, who decides in a terminal: {shlex.join(words)}"

    async def _consolidate(self) -> None:
        """Read what was said: once at the beginning, then when a turn is over or a while after a prompt."""
        self._unread.set()
        self._turn_over.set()
        while True:
            await self._unread.wait()
            with anyio.move_on_after(_READ_AFTER):
                await self._turn_over.wait()
            self._unread, self._turn_over = anyio.Event(), anyio.Event()
            try:
                await (await self._fabric()).consolidate(TENANT)
            except MunimentError as error:
                # What waits is read the next time.
                log.warning("what was said is not read yet: %s", error.code)
            self._read.set()


async def _captured(fabric: "AsyncFabric", run: RunContext, request: HookRequest, text: str) -> None:
    """Capture what the user typed, once: some programs run each other's hooks too."""
    same = f"{request.user}\0{request.session}\0{text}\0{request.at // SAME_WITHIN}"
    # Keyed, so that it tells nothing of what was said once that is erased.
    key = hmac.digest(fabric.access.secret("hooks"), same.encode("utf-8", "replace"), "sha256").hex()
    with suppress(IdempotencyConflict):
        await fabric.capture(
            run,
            kind="message",
            text=text,
            origin=f"channel:{request.program}",
            classification=CLASSIFICATION,
            idempotency_key=f"hook_{key[:32]}",
        )


async def _line(stream: SocketStream) -> bytes:
    found = b""
    while not found.endswith(b"\n"):
        found += await stream.receive()
        if len(found) > _LINE_LIMIT:
            raise anyio.EndOfStream
    return found
