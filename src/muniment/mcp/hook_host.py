"""A process that listens for hooks on a home, where no `muniment mcp` does; hooks start it and do not wait for it.

    python -m muniment.mcp.hook_host HOME

It ends after ten minutes without a hook. What it is to do first comes on its stdin.
"""

import logging
import signal
import sys
from pathlib import Path
from time import monotonic

import anyio
from anyio.abc import TaskStatus

from muniment.errors import MunimentError
from muniment.mcp.hook_service import HookService

# Seconds without a request after which it ends.
IDLE = 600.0
_FIRST_LIMIT = 1024 * 1024


async def host(home: Path, first: bytes, *, idle: float = IDLE) -> None:
    """Carry out the first request, if there is one, and listen until nobody asked for a while."""
    from muniment.fabric import AsyncFabric
    from muniment.memory.opening import PROFILE, TENANT

    opening = AsyncFabric.open(home=home, pack=PROFILE)
    opened = anyio.Event()

    async def fabric() -> AsyncFabric:
        await opened.wait()
        return opening

    service, listening = HookService(home, fabric), anyio.CancelScope()

    async def listen(*, task_status: TaskStatus[bool]) -> None:
        with listening:
            await service.run(task_status=task_status)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_end_on_signals, tasks.cancel_scope)
        # It listens before the database is up, so that no other hook starts another process.
        listens = await tasks.start(listen)
        if listens or first.strip():
            async with opening:
                opened.set()
                if first.strip():
                    await service.answered(first)
                    await opening.consolidate(TENANT)
                if listens:
                    await _quiet(service, idle)
                # Before the database is closed: whoever asks now starts another process.
                listening.cancel()
        tasks.cancel_scope.cancel()


async def _end_on_signals(scope: anyio.CancelScope) -> None:
    """End it when it is told to, so that the next hook finds no address of it."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            scope.cancel()


async def _quiet(service: HookService, idle: float) -> None:
    """Wait until nobody has asked for that long."""
    while True:
        left = service.last_asked + idle - monotonic()
        if left <= 0:
            return
        await anyio.sleep(left)


def main() -> int:
    """Run it; the exit code says whether the database could be opened."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(message)s")
    first = sys.stdin.buffer.read(_FIRST_LIMIT)
    try:
        anyio.run(host, Path(sys.argv[1]), first)
    except MunimentError as error:
        logging.getLogger("muniment.mcp").error("hooks are not answered: %s", error.code)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
