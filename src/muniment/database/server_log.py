"""The log of an embedded server, and what it says about a server that failed."""

import errno
import os
import re
from datetime import UTC, datetime
from pathlib import Path

from muniment.database.unprivileged import NOT_ALLOWED
from muniment.errors import StorageUnavailable

# Every line begins with its time in UTC, the process and the SQLSTATE.
PREFIX_SETTINGS = ("log_line_prefix=%m [%p] %e ", "log_timezone=UTC")
_FULL_LINE = re.compile(rb"^(\S+ \S+) UTC \[\d+\] 53100 ", re.MULTILINE)
_SHARED_MEMORY_LINE = re.compile(rb"^\S+ \S+ UTC \[\d+\] F0001 ", re.MULTILINE)

_LOG_BYTES = 4 * 1024 * 1024
_LOG_LINES = 6
_TAIL_BYTES = 16 * 1024
# With less free space than this PostgreSQL cannot even write into its log why it ended.
_NO_SPACE_BYTES = 1024 * 1024


def log_file(home: Path) -> Path:
    """The log of the server of that home."""
    return home / "server.log"


def rotate_log(home: Path) -> int:
    """Rename a log that is too long, keeping one old log; return the length of the current log."""
    log = log_file(home)
    if not log.exists():
        return 0
    length = log.stat().st_size
    if length <= _LOG_BYTES:
        return length
    log.replace(home / "server.log.1")
    return 0


def log_since(home: Path, position: int) -> bytes:
    """What was written to the log after that position."""
    with log_file(home).open("rb") as log:
        log.seek(position)
        return log.read()


def start_failure(what: str, home: Path, status: int, output: bytes) -> StorageUnavailable:
    """The error for a PostgreSQL program that ended with that status and output."""
    if status == NOT_ALLOWED:
        return StorageUnavailable(
            f"{what}: it refuses to run as root, and root may not change to another user here; "
            "run Muniment as an ordinary user"
        )
    lines = [line.strip() for line in output.decode(errors="replace").splitlines() if line.strip()]
    details = "; ".join(lines[-_LOG_LINES:]) or f"exit status {status}"
    # initdb reports without SQLSTATEs, in the C locale, and frees the space again before it ends
    if _FULL_LINE.search(output) or os.strerror(errno.ENOSPC).encode() in output or has_no_space(home):
        return StorageUnavailable(f"the disk is full: {what}: {details}")
    if _SHARED_MEMORY_LINE.search(output):
        return StorageUnavailable(
            f"{what}: processes of a server that died still use the database; end them first: {details}"
        )
    return StorageUnavailable(f"{what}: {details}")


def has_no_space(home: Path) -> bool:
    """Whether a disk of the database has no free space for an ordinary user."""
    for folder in (home, home / "data", home / "data" / "pg_wal"):
        try:
            found = os.statvfs(folder)
        except OSError:
            continue
        if found.f_bavail * found.f_frsize < _NO_SPACE_BYTES:
            return True
    return False


def was_full_since(home: Path, since: datetime) -> bool:
    """Whether the log has an error about a full disk since that time."""
    try:
        with log_file(home).open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL_BYTES))
            tail = log.read()
    except OSError:
        return False
    return any(_time_of(match[1]) >= since for match in _FULL_LINE.finditer(tail))


def _time_of(written: bytes) -> datetime:
    try:
        return datetime.fromisoformat(written.decode()).replace(tzinfo=UTC)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
