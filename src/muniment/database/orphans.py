"""Processes that a killed postmaster left behind: waited for, then ended, before a new server may start.

PostgreSQL's processes end by themselves when their postmaster is gone, except for one that computes or is stopped.
Ending them at any moment is safe: the new server recovers from the write-ahead log, as it does after any crash.
Starting a new server while one of them lives is not, and never happens: they hold `server.lock`.
"""

import contextlib
import os
import signal
import sys
import time
from pathlib import Path

from muniment.database.home import postmaster_pid
from muniment.errors import StorageUnavailable

# Seconds after the postmaster was found dead, and what the processes are sent then.
_STEPS = ((1.0, signal.SIGQUIT), (2.0, signal.SIGKILL))
# Seconds after which to give up, although the processes are still there.
_GIVE_UP_SECONDS = 10.0
_TITLE = b"postgres: "


class Orphans:
    """The processes of a home's server, for as long as its postmaster is dead."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._dead_since: float | None = None
        self._steps = list(_STEPS)

    def urge(self) -> None:
        """Signal the processes once it is time; call this again and again while `server.lock` is held.

        Does nothing while there is a postmaster. Raises `StorageUnavailable` when they do not end.
        """
        if postmaster_pid(self._home) is not None:
            self._dead_since = None
            return
        if self._dead_since is None:
            self._dead_since = time.monotonic()
            self._steps = list(_STEPS)
        waited = time.monotonic() - self._dead_since
        if self._steps and waited >= self._steps[0][0]:
            _, number = self._steps.pop(0)
            # A folder without data belongs to an initdb at work, which ends by itself.
            for pid in orphans_of(self._home) if (self._home / "data").is_dir() else ():
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
        if waited >= _GIVE_UP_SECONDS and (found := orphans_of(self._home)):
            listed = ", ".join(map(str, found))
            raise StorageUnavailable(
                f"processes of a server that died still use the database in {self._home}: end them first (pid {listed})"
            )


def orphans_of(home: Path) -> list[int]:
    """Processes of the home's server, none of them its postmaster; empty if there may be a postmaster.

    They are known by their title and by holding `server.lock`. Linux only: elsewhere none is found.
    """
    if sys.platform != "linux":
        return []
    try:
        lock = (home / "server.lock").stat()
    except FileNotFoundError:
        return []
    data = os.fsencode(home / "data")
    found: list[int] = []
    for process in Path("/proc").iterdir():
        if not process.name.isdigit() or not _holds(process, lock):
            continue
        try:
            command = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if command.startswith(_TITLE):
            found.append(int(process.name))
        elif data in command.split(b"\0"):
            # A postmaster that has not written its postmaster.pid yet, or lost it.
            return []
    return sorted(found)


def _holds(process: Path, lock: os.stat_result) -> bool:
    try:
        for entry in (process / "fd").iterdir():
            with contextlib.suppress(OSError):
                if os.path.samestat(entry.stat(), lock):
                    return True
    except OSError:
        return False
    return False
