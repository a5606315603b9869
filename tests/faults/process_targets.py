"""What the supervisor runs in the tests of test_supervisor."""

import os
import signal
import time
from pathlib import Path

import anyio
import anyio.lowlevel

from muniment.errors import InvalidInput
from muniment.supervisor import Command, Link


def refuse(_number: int, _link: Link) -> None:
    """Ends with an error before it is ready."""
    raise InvalidInput("no such thing", field="pack")


def break_off(_number: int, _link: Link) -> None:
    """Ends with an error that is not for callers."""
    raise RuntimeError("a secret")


def die(_number: int, link: Link) -> None:
    """Is ready, and dies at once."""
    link.send("ready")
    time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGKILL)


def freeze(_number: int, link: Link) -> None:
    """Is ready, and never does anything again, not even end."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    link.send("ready")
    link.send(os.getpid())
    while True:
        time.sleep(60)


def stay(number: int, link: Link, folder: Path) -> None:
    """Writes down what happens to it, and ends when it is told to; a file `broken` keeps new ones from starting."""
    if (folder / "broken").exists():
        raise InvalidInput("broken")
    anyio.run(_stay, number, link, folder)


async def _stay(number: int, link: Link, folder: Path) -> None:
    def write(what: str) -> None:
        with (folder / "story").open("a") as story:
            story.write(f"{number} {os.getpid()} {what}\n")

    def obey(command: Command) -> None:
        write(command)
        if command != "work":
            ended.set()

    async def end_on_signal() -> None:
        with anyio.open_signal_receiver(signal.SIGTERM) as signals:
            async for _ in signals:
                write("terminated")
                ended.set()

    ended = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(end_on_signal)
        tasks.start_soon(link.follow, obey)
        await anyio.lowlevel.checkpoint()
        write("started")
        link.send("ready")
        await ended.wait()
        link.send(number)
        tasks.cancel_scope.cancel()
