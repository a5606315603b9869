"""The socket of an embedded server: its folder, and whether the server answers there."""

import contextlib
import hashlib
import os
import stat
import tempfile
from pathlib import Path

from psycopg import pq
from psycopg.conninfo import make_conninfo

from muniment.database.home import open_file, postmaster_lines, resolve
from muniment.errors import StorageUnavailable

SOCKET_NAME = ".s.PGSQL.5432"
# Names the socket folder where that is not the home itself.
_RECORD = "socket_dir"
_SOCKET_BYTES = 100  # sockaddr_un holds 108 bytes on Linux and 104 on macOS

# All set here, because the PG* variables of the caller are meant for another server.
_CONNECTION = {
    "hostaddr": "",
    "port": "5432",
    "user": "postgres",
    "dbname": "postgres",
    "options": "",
    "sslmode": "disable",
    "gssencmode": "disable",
    "channel_binding": "disable",
    "target_session_attrs": "any",
}


def conninfo(socket_dir: Path) -> str:
    """The connection string for the server there, as superuser of the database postgres."""
    return make_conninfo(host=str(socket_dir), **_CONNECTION)


def answering_in(home: Path) -> Path | None:
    """The socket folder of the server that wrote postmaster.pid, if it accepts connections."""
    lines = postmaster_lines(home)
    # asking one that is still recovering would only fill its log
    if len(lines) < 8 or lines[7].strip() != b"ready":
        return None
    socket_dir = Path(os.fsdecode(lines[4]))
    answer = pq.PGconn.ping(make_conninfo(conninfo(socket_dir), connect_timeout=2).encode())
    if answer == pq.Ping.NO_ATTEMPT:
        raise StorageUnavailable("the environment keeps libpq from connecting: unset PGSERVICE")
    return socket_dir if answer == pq.Ping.OK else None


def socket_dir_for(home: Path) -> Path:
    """The folder for the socket of a server to be started: the home, or a private folder with a shorter path.

    A server that is started again uses the folder of the last start, whatever the environment now: the processes that
    use it know that address.
    """
    if _is_address(home):
        return home
    if (recorded := _recorded(home)) is not None:
        return _private_socket_dir(recorded)
    name = f"muniment-{os.geteuid()}-{hashlib.sha256(os.fsencode(home)).hexdigest()[:16]}"
    for place in (os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"):  # noqa: S108  used only if guarded
        folder = resolve(Path(place)) / name if place else home
        if _is_address(folder) and _is_guarded(folder.parent):
            _record(home, folder)
            return _private_socket_dir(folder)
    raise StorageUnavailable(f"no folder for the socket of {home}: its path is too long or has a comma in it")


def _recorded(home: Path) -> Path | None:
    """The socket folder of the last start, if it can still be used."""
    try:
        folder = Path(os.fsdecode((home / _RECORD).read_bytes()))
    except FileNotFoundError:
        return None
    return folder if folder.is_absolute() and _is_address(folder) and _is_guarded(folder.parent) else None


def _record(home: Path, folder: Path) -> None:
    file = open_file(home / _RECORD, os.O_WRONLY | os.O_TRUNC)
    try:
        os.write(file, os.fsencode(folder))
    finally:
        os.close(file)


def _is_address(folder: Path) -> bool:
    """Whether libpq accepts this folder as a host: short, without a comma, in UTF-8."""
    try:
        name = str(folder / SOCKET_NAME).encode()
    except UnicodeEncodeError:
        return False
    return len(name) <= _SOCKET_BYTES and not any(byte in name for byte in b",\n")


def _is_guarded(folder: Path) -> bool:
    """Whether nobody else can rename what we create in it: only we and root may write, or it is sticky."""
    if not folder.is_dir():
        return False
    found = folder.stat()
    closed = not found.st_mode & 0o022 or bool(found.st_mode & stat.S_ISVTX)
    return closed and found.st_uid in {0, os.geteuid()}


def _private_socket_dir(folder: Path) -> Path:
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise StorageUnavailable(f"{folder} must be a folder of our own with mode 700: remove it")
    return folder
