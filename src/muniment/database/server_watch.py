"""Restarts an embedded server that died, for as long as a process uses it.

Every process with an open fabric watches the server. When the postmaster ends, all of them try to start it;
`start.lock` lets one through, and the others find the server running. A server that was stopped on purpose
(`embedded.stop`) stays stopped until a process opens the home again: the file `stopped` in the home says so.
"""

import contextlib
import logging
import os
import select
import signal
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from muniment.database.home import explained, locked_unless, postmaster_lines, postmaster_pid
from muniment.database.postmaster import collect_exited, ensure_running
from muniment.database.server_liveness import DISK_FULL, no_answer
from muniment.database.server_log import has_no_space, was_full_since
from muniment.errors import StorageUnavailable

log = logging.getLogger("muniment.database")

STOPPED = "stopped"
_DIED = "the database server died and is being started again"
_WAS_STOPPED = "the database server was stopped, by: muniment db stop"
_CANNOT_START = "the database server cannot be started, see server.log in its home"

# Seconds between two checks of a running server; with pidfd its end is noticed at once, without it more often.
_LOOK_EVERY = 2.0
_LOOK_OFTEN = 0.2
# Seconds before the next try to start it: at first, and at most.
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 2.0
# Seconds for which an explanation is kept: many calls fail at once.
_EXPLANATION_KEPT = 0.5
# How recent an error about a full disk in the log must be to explain why the server ends connections.
_RECENTLY = timedelta(seconds=30)


class ServerWatch:
    """Watches the server of a home whose lease this process holds, in a thread, until `stop`."""

    def __init__(self, home: Path) -> None:
        self._home = home
        # How often the server was found dead.
        self.deaths = 0
        self._trouble: str | None = None
        self._explained_at = 0.0
        self._explanation = no_answer()
        self._stopping = threading.Event()
        self._woken, self._wake = os.pipe()
        self._thread = threading.Thread(target=self._run, name="muniment-server-watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop watching; a start in progress is given up."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        os.write(self._wake, b".")
        self._thread.join()
        os.close(self._wake)
        os.close(self._woken)

    def explain(self) -> str:
        """Why the database does not answer, as far as is known."""
        now = time.monotonic()
        if now - self._explained_at > _EXPLANATION_KEPT:
            self._explanation = self._explain()
            self._explained_at = now
        return self._explanation

    def _explain(self) -> str:
        if has_no_space(self._home) or was_full_since(self._home, datetime.now(UTC) - _RECENTLY):
            return DISK_FULL
        return self._trouble or no_answer()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                with explained(self._home):
                    pid = postmaster_pid(self._home)
                    if pid is not None:
                        self._trouble = None
                        self._wait_for_end(pid)
                        continue
            except StorageUnavailable as error:
                self._note(_CANNOT_START, error)
            if not self._stopping.is_set():
                self._start_again()

    def _wait_for_end(self, pid: int) -> None:
        """Return when the process has ended, at the next regular check, or when told to stop."""
        if self._is_stopping_slowly():
            # A polite shutdown waits for connections that do not end, and meanwhile lets no new one in.
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGINT)
        try:
            process = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None
        except ProcessLookupError:
            return
        except OSError:
            process = None
        poll = select.poll()
        poll.register(self._woken, select.POLLIN)
        if process is not None:
            poll.register(process, select.POLLIN)
        try:
            poll.poll((_LOOK_EVERY if process is not None else _LOOK_OFTEN) * 1000)
        finally:
            if process is not None:
                os.close(process)
        # A server that this process started stays in the process table until it is collected.
        collect_exited()

    def _is_stopping_slowly(self) -> bool:
        lines = postmaster_lines(self._home)
        return len(lines) > 7 and lines[7].strip() == b"stopping"

    def _start_again(self) -> None:
        """Try until the server runs; returns early when told to stop."""
        self.deaths += 1
        self._note(_DIED)
        pause, failures = _FIRST_PAUSE, 0
        while not self._stopping.is_set():
            try:
                if self._try_to_start():
                    self._trouble = None
                    log.warning("the database server in %s runs again", self._home)
                    return
            except StorageUnavailable as error:
                if self._stopping.is_set():
                    return
                failures += 1
                # The first may be the end of a server that was killed while it started.
                if failures > 1:
                    self._note(_CANNOT_START, error)
            self._stopping.wait(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _try_to_start(self) -> bool:
        with explained(self._home), locked_unless(self._home / "start.lock", self._stopping.is_set) as obtained:
            if not obtained:
                return False
            collect_exited()
            if (self._home / STOPPED).exists():
                self._note(_WAS_STOPPED)
                return False
            ensure_running(self._home, create=False, cancelled=self._stopping.is_set)
            return True

    def _note(self, trouble: str, details: StorageUnavailable | None = None) -> None:
        # Callers see neither folders nor lines of the log; the program's log has both.
        if trouble != self._trouble:
            log.warning("%s (%s)", trouble, details or self._home)
        self._trouble = trouble
