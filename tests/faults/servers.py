"""Clients of an embedded server as processes, and how to look at one from outside."""

import contextlib
import os
import secrets
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Literal

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

import muniment.errors
from muniment.database import postmaster as binaries

SOURCE = Path(muniment.errors.__file__).parent.parent
ROOT = Path(__file__).parents[2]
AS_ROOT = os.geteuid() == 0

# leases, says where, and gives back at the end of its input
CLIENT = """
import sys
from pathlib import Path
from typing import Literal
from muniment.database import embedded
with embedded.acquire(Path(sys.argv[1])) as lease:
    print(lease.conninfo, flush=True)
    sys.stdin.read()
"""


def environment() -> dict[str, str]:
    paths = [str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}


def client(home: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", CLIENT, str(home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )


def conninfo_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    if not line:
        pytest.fail(process.communicate()[1])
    return line


def leave(process: subprocess.Popen[str]) -> None:
    _, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def eventually(condition: Callable[[], object], seconds: float = 60.0) -> None:
    give_up_at = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up_at, "it never came"
        time.sleep(0.005)


def copy(home: Path, target: Path) -> Path:
    subprocess.run(["cp", "-pR", home, target], check=True)
    return target


def value(conninfo: str, query: str) -> object:
    with psycopg.connect(conninfo, autocommit=True) as connection:
        row = connection.execute(query.encode()).fetchone()
        return row[0] if row else None


def change(conninfo: str, query: str) -> None:
    with psycopg.connect(conninfo) as connection:
        connection.execute(query.encode())


def postmaster(home: Path) -> int:
    return int((home / "data" / "postmaster.pid").read_text().split("\n")[0])


def family(parent: int) -> dict[int, str]:
    """The server's processes by pid, itself first, each with its command line."""
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True)
    rows = [line.split(None, 2) for line in listed.stdout.splitlines()]
    found = {int(pid): args for pid, ppid, args in rows if parent in (int(pid), int(ppid))}
    return {parent: found[parent]} | found


def modes_above(folder: Path) -> dict[Path, int]:
    return {above: stat.S_IMODE(above.stat().st_mode) for above in folder.parents}


# ---- starting and stopping ----


@contextlib.contextmanager
def paused_checkpointer(home: Path) -> Generator[None]:
    pid = next(pid for pid, args in family(postmaster(home)).items() if "checkpointer" in args)
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def open_files(pid: int) -> list[Path]:
    if sys.platform != "linux":
        pytest.skip("needs /proc")
    with contextlib.suppress(FileNotFoundError):
        return [entry.readlink() for entry in Path(f"/proc/{pid}/fd").iterdir()]
    return []


# ---- a server that is not ours ----

# What deploy/owner.sql gives the owner of the tables.
OWNER = (
    "CREATE ROLE muniment_owner LOGIN CREATEROLE NOSUPERUSER NOBYPASSRLS",
    "GRANT pg_checkpoint, pg_monitor TO muniment_owner",
    "CREATE DATABASE muniment OWNER muniment_owner",
)
IN_DATABASE = (
    "GRANT EXECUTE ON FUNCTION pg_switch_wal() TO muniment_owner",
    "GRANT EXECUTE ON FUNCTION pg_ls_dir(text) TO muniment_owner",
    "CREATE EXTENSION vector SCHEMA public",
)


@contextlib.contextmanager
def separate(folder: Path, *settings: str) -> Generator[str]:
    """A server process that somebody else runs in `folder`/data; gives the superuser's address of the database.

    PostgreSQL's own defaults hold but for the settings given, `wal_recycle` among them.
    """
    data = _owned(folder) / "data"
    _run(data, "initdb", "-D", str(data), "-U", "postgres", "--auth=trust", "--no-sync", "--encoding=UTF8")
    with _serving(folder, *settings) as (place, _):
        with psycopg.connect(place, autocommit=True) as connection:
            for statement in OWNER:
                connection.execute(statement.encode())
        place = make_conninfo(place, dbname="muniment")
        with psycopg.connect(place, autocommit=True) as connection:
            for statement in IN_DATABASE:
                connection.execute(statement.encode())
        yield place


@contextlib.contextmanager
def follower_of(place: str, folder: Path, *settings: str) -> Generator[str]:
    """A standby that follows the server of that address, which is a primary or a standby itself, through a slot."""
    data, slot = _owned(folder) / "data", f"standby_{secrets.token_hex(4)}"
    source = make_conninfo(place, dbname="")
    _run(data, "pg_basebackup", "-d", source, "-D", str(data), "-R", "-c", "fast", "--create-slot", "--slot", slot)
    try:
        with _serving(folder, *settings) as (own, _):
            yield make_conninfo(own, dbname="muniment")
    finally:
        _drop_slot(place, slot)


def _drop_slot(place: str, slot: str) -> None:
    # A slot that nobody uses keeps the log for good.
    found = f"FROM pg_replication_slots WHERE slot_name = '{slot}'"
    with contextlib.suppress(psycopg.OperationalError):
        eventually(lambda: not value(place, f"SELECT active {found}"))
        value(place, f"SELECT pg_drop_replication_slot(slot_name) {found}")


@contextlib.contextmanager
def standby_of(primary: str, folder: Path, *settings: str) -> Generator[str]:
    """A standby that follows the server of that address, which from then on waits for it at every commit."""
    with follower_of(primary, folder, *settings) as place:
        with psycopg.connect(primary, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            connection.execute("SELECT pg_reload_conf()")
            synchronous = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
            eventually(lambda: (connection.execute(synchronous).fetchone() or (0,))[0] == 1)
        yield place


def base_backup(place: str, folder: Path) -> None:
    """Copy the data of a running server to `folder`/data, to be brought to a later point in time from its archive."""
    data = _owned(folder) / "data"
    _run(data, "pg_basebackup", "-d", make_conninfo(place, dbname=""), "-D", str(data), "-X", "none", "-c", "fast")


@contextlib.contextmanager
def recovered(folder: Path, archive: Path, until: str, *settings: str) -> Generator[str]:
    """A server on a base backup that takes over the archived log until a moment; it is a primary when this returns."""
    signal_file = folder / "data" / "recovery.signal"
    signal_file.touch()
    if AS_ROOT:
        os.chown(signal_file, *binaries._server_account(folder / "data"))
    target = (f"restore_command=cp {archive}/%f %p", f"recovery_target_time={until}", "recovery_target_action=promote")
    with _serving(folder, *settings, *target) as (place, _):
        place = make_conninfo(place, dbname="muniment")
        eventually(lambda: value(place, "SELECT pg_is_in_recovery()") is False)
        yield place


def kill_server(folder: Path) -> None:
    """Kill a server with all its processes, as when its machine fails."""
    for pid in family(postmaster(folder)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _owned(folder: Path) -> Path:
    folder.mkdir(mode=0o700)
    if AS_ROOT:
        os.chown(folder, *binaries._server_account(folder / "data"))
    return folder


def _run(data: Path, name: str, *arguments: str) -> None:
    how: dict[str, object] = {"cwd": "/", "env": binaries._environment(), "stdin": subprocess.DEVNULL}
    subprocess.run(binaries._command(data, name, *arguments), check=True, capture_output=True, **how)  # type: ignore[call-overload]


@contextlib.contextmanager
def back_at(place: str, folder: Path, *settings: str) -> Generator[None]:
    """A server that was killed, started again on its data at its old address."""
    sockets = Path(str(conninfo_to_dict(place)["host"]))
    # The killed process is still known to the one that started it: its locks would look as if they were held.
    for lock in (folder / "data" / "postmaster.pid", *sockets.glob(".s.PGSQL.*")):
        lock.unlink()
    with _serving(folder, *settings, sockets=sockets):
        yield


@contextlib.contextmanager
def _serving(
    folder: Path, *settings: str, sockets: Path | None = None
) -> Generator[tuple[str, "subprocess.Popen[bytes]"]]:
    data = folder / "data"
    sockets = sockets or Path(tempfile.mkdtemp(prefix="s"))  # A socket's path must be short.
    if AS_ROOT:
        os.chown(sockets, *binaries._server_account(data))
    options = [f"--{one}" for one in ("listen_addresses=", f"unix_socket_directories={sockets}", *settings)]
    how: dict[str, object] = {"cwd": "/", "env": binaries._environment(), "stdin": subprocess.DEVNULL}
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            binaries._command(data, "postgres", "-D", str(data), *options),
            stdout=log,
            stderr=log,
            start_new_session=True,
            **how,  # type: ignore[call-overload]
        )
    try:
        place = make_conninfo(host=str(sockets), user="postgres", dbname="postgres")
        eventually(lambda: server.poll() is None and _answers(place))
        yield place, server
    finally:
        server.send_signal(signal.SIGQUIT)
        server.wait(30)


def _answers(place: str) -> bool:
    try:
        psycopg.connect(place).close()
    except psycopg.OperationalError:
        return False
    return True


@contextlib.contextmanager
def program(home: Path, mode: Literal["wait", "write", "async"] = "wait") -> Generator["subprocess.Popen[str]"]:
    """`fabric_process` on that home, which is open when this returns; killed at the end if it is still there."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.faults.fabric_process", str(home), mode],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=environment(),
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()
