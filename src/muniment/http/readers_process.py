"""The readers' process of a server of several processes: it alone loads the trained readers, and reads for the others.

It holds texts, which are content (ERA-1), while it reads them: it writes nothing down, and no core dump is made of it.
"""

import ctypes
import resource
import sys
from contextlib import suppress
from dataclasses import dataclass
from socket import socket

from muniment.http.logs import Form
from muniment.supervisor import Command, Link

NAME = "the readers' process"
_PR_SET_DUMPABLE = 4


@dataclass(frozen=True)
class ReadersProcess:
    """What the process is started with."""

    log: Form | None

    def run(self, number: int, link: Link, listening: socket) -> None:
        """Answer the processes of the server until the supervisor or a signal ends this one."""
        # Not by the supervisor, which has to pickle this and needs none of it.
        import anyio

        from muniment import loops
        from muniment.http import logs

        refuse_core_dumps()
        logs.set_up(self.log, process=number)
        anyio.run(_serve, link, listening, backend_options=loops.OPTIONS)


async def _serve(link: Link, listening: socket) -> None:
    import anyio

    from muniment.database.end_signals import ending_signals
    from muniment.language.readers import find_readers
    from muniment.language.readers.serving import serve_readers

    ending = anyio.Event()

    def on_command(_command: Command) -> None:
        ending.set()

    async def end_on_signal() -> None:
        with anyio.open_signal_receiver(*ending_signals()) as signals:
            async for _ in signals:
                ending.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(end_on_signal)
        tasks.start_soon(link.follow, on_command)
        link.send("ready")
        await serve_readers(find_readers(), listening, ending)
        tasks.cancel_scope.cancel()


def refuse_core_dumps() -> None:
    """Keep the system from writing the memory of this process to a file, or to a program that collects core dumps.

    Where the system does not allow that, the process runs without it.
    """
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # The limit does not bind a program that collects them; this does, and keeps other processes from tracing this one.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
