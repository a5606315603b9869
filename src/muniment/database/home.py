"""The home folder of an embedded server: private to its owner, with its lock files."""

import contextlib
import errno
import fcntl
import os
import pwd
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import BinaryIO

from muniment.errors import StorageUnavailable

# No space left on the device, or the user's quota is used up.
FULL = (errno.ENOSPC, errno.EDQUOT)
_POLL_SECONDS = 0.01


def resolve(home: Path) -> Path:
    """The real path of a home, with links resolved."""
    return Path(os.path.realpath(home))


@contextlib.contextmanager
def explained(folder: Path) -> Generator[None]:
    """Turn OSError into StorageUnavailable, naming the folder."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise StorageUnavailable(f"the disk is full: cannot keep a database in {folder}") from error
        reason = (error.strerror or "input or output failed").lower()
        raise StorageUnavailable(f"cannot keep a database in {folder}: {reason}") from error


def make_private(folder: Path) -> None:
    """Create the folder, or check that it belongs to the caller and is closed to others."""
    if "\n" in str(folder):
        raise StorageUnavailable(f"the path {str(folder)!r} has a line break in it")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.stat()
    if found.st_uid != os.geteuid():
        raise StorageUnavailable(
            f"the folder {folder} belongs to user {_user_name(found.st_uid)}: "
            f"run as that user, or choose a folder of {_user_name(os.geteuid())}"
        )
    mode = stat.S_IMODE(found.st_mode)
    if mode & 0o077:
        if any(folder.iterdir()):
            raise StorageUnavailable(f"the folder {folder} is open to others: mode {mode:o}, expected 700")
        folder.chmod(0o700)


def _user_name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)


def open_file(path: Path, flags: int = os.O_RDWR) -> int:
    """Open a file of the home, created with mode 600 if missing; links are not followed, and it is not inherited."""
    return os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def new_file(path: Path) -> BinaryIO:
    """Create a file that only its owner can read; raises `FileExistsError`."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600), "wb")


def sync_folder(folder: Path) -> None:
    """Write a folder's directory entries to the disk."""
    opened = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


@contextlib.contextmanager
def locked(path: Path) -> Generator[None]:
    """Hold the lock exclusively, waiting for it."""
    lock = open_file(path)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def try_lock(path: Path, kind: int = fcntl.LOCK_EX) -> int | None:
    """Try to take the lock without waiting; return the open file that holds it, or None."""
    lock = open_file(path)
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


@contextlib.contextmanager
def locked_unless(path: Path, cancelled: Callable[[], bool]) -> Generator[bool]:
    """Hold the lock exclusively, waiting for it until `cancelled`; yields whether it was obtained."""
    lock = try_lock(path)
    while lock is None and not cancelled():
        time.sleep(_POLL_SECONDS)
        lock = try_lock(path)
    try:
        yield lock is not None
    finally:
        if lock is not None:
            os.close(lock)


def is_in_use(home: Path) -> bool:
    """Whether any process of this home's database lives; leaves a folder that is no home unchanged."""
    path = home / "server.lock"
    if not path.exists():
        return False
    lock = try_lock(path, fcntl.LOCK_SH)
    if lock is not None:
        os.close(lock)
    return lock is None


def postmaster_lines(home: Path) -> list[bytes]:
    """The lines of postmaster.pid; none if there is no such file."""
    try:
        return (home / "data" / "postmaster.pid").read_bytes().split(b"\n")
    except (FileNotFoundError, NotADirectoryError):
        return []


def postmaster_pid(home: Path) -> int | None:
    """The pid in postmaster.pid, if by its command line that process is the server of this folder."""
    lines = postmaster_lines(home)
    if not lines or not lines[0].strip().isdigit():
        return None
    pid, data = int(lines[0]), os.fsencode(home / "data")
    if sys.platform == "linux":
        try:
            arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            return None
        return pid if data in arguments and arguments[0].endswith(b"postgres") else None
    shown = subprocess.run(["/bin/ps", "-ww", "-p", str(pid), "-o", "command="], capture_output=True, check=False)
    return pid if data in shown.stdout and b"postgres" in shown.stdout else None
