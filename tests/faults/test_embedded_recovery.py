"""The embedded server when things go wrong: what cannot be a home, kills at any moment, what the log may hold."""

import contextlib
import os
import shutil
import signal
import threading
from pathlib import Path

import psycopg
import pytest

from muniment.database import embedded
from muniment.errors import StorageUnavailable
from tests.faults.servers import (
    AS_ROOT,
    change,
    client,
    conninfo_of,
    copy,
    eventually,
    family,
    kill,
    leave,
    open_files,
    paused_checkpointer,
    postmaster,
    value,
)


def test_a_path_that_cannot_be_a_home_is_named_in_the_error(place: Path) -> None:
    (place / "file").write_text("")
    for path in (place / "file", place / "file" / "below"):
        with pytest.raises(StorageUnavailable, match=f"cannot keep a database in {path}: "):
            embedded.acquire(path)
    (place / "open").mkdir()
    (place / "open").chmod(0o755)
    (place / "open" / "something").touch()
    with pytest.raises(StorageUnavailable, match=f"{place}/open is open to others: mode 755, expected 700"):
        embedded.acquire(place / "open")
    if not AS_ROOT:
        (place / "read-only").mkdir(mode=0o500)
        with pytest.raises(StorageUnavailable, match=f"{place}/read-only: permission denied"):
            embedded.acquire(place / "read-only")


def test_data_of_another_version_is_refused(new_home: Path) -> None:
    (new_home / "data").mkdir(parents=True)
    new_home.chmod(0o700)
    (new_home / "data" / "PG_VERSION").write_text("17\n")
    with pytest.raises(StorageUnavailable, match="version 17, expected 18"):
        embedded.acquire(new_home)
    (new_home / "data" / "PG_VERSION").rename(new_home / "data" / "letters")
    with pytest.raises(StorageUnavailable, match="version unknown, expected 18"):
        embedded.acquire(new_home)
    assert (new_home / "data" / "letters").exists()


def test_a_server_that_cannot_start_says_why(home: Path) -> None:
    settings = home / "data" / "postgresql.auto.conf"
    before = settings.read_text()
    settings.write_text("shared_buffers = plenty\n")
    with pytest.raises(StorageUnavailable, match=r"did not start in .*shared_buffers"):
        embedded.acquire(home)
    settings.write_text(before)
    embedded.acquire(home).release()


# ---- kill ----


def test_what_was_committed_is_there_after_everything_was_killed(home: Path) -> None:
    killed = client(home)
    conninfo = conninfo_of(killed)
    change(conninfo, "CREATE TABLE kept AS SELECT 42 AS answer")
    kill(killed)
    for pid in family(postmaster(home)):
        with contextlib.suppress(ProcessLookupError):  # Those of a worker's kind come and go by themselves.
            os.kill(pid, signal.SIGKILL)
    with embedded.acquire(home) as lease:
        assert value(lease.conninfo, "SELECT answer FROM kept") == 42


def test_a_server_whose_client_was_killed_is_used_again_and_stopped_by_the_next(home: Path) -> None:
    killed = client(home)
    conninfo_of(killed)
    pid = postmaster(home)
    kill(killed)
    with embedded.acquire(home):
        assert postmaster(home) == pid
    assert not embedded.is_running(home)


def test_a_killed_postmaster_is_replaced_once_its_orphans_are_gone(home: Path) -> None:
    with embedded.acquire(home) as first:
        change(first.conninfo, "CREATE TABLE survivor ()")
        old = family(postmaster(home))
        with paused_checkpointer(home):  # an orphan that does not notice yet
            os.kill(postmaster(home), signal.SIGKILL)
            comer = client(home)
            eventually(lambda: home / "start.lock" in open_files(comer.pid))
            assert not embedded.is_running(home)
        conninfo = conninfo_of(comer)
        assert value(conninfo, "SELECT to_regclass('survivor')::text") == "survivor"
        assert postmaster(home) not in old
        leave(comer)


def test_a_stale_pid_file_is_seen_through_though_the_pid_is_a_live_server(place: Path, home: Path) -> None:
    killed = copy(home, place / "killed")
    with embedded.acquire(home) as other:
        # the pid of the killed server is by now that of another one, which runs as the same user
        shutil.copy(home / "data" / "postmaster.pid", killed / "data")
        shutil.copy(home / ".s.PGSQL.5432.lock", killed)
        assert not embedded.is_running(killed)
        with embedded.acquire(killed) as lease:
            assert value(lease.conninfo, "SHOW data_directory") == str(killed / "data")
        assert value(other.conninfo, "SHOW data_directory") == str(home / "data")


def test_a_server_that_somebody_else_started_on_the_data_is_not_disturbed(home: Path) -> None:
    with embedded.acquire(home):
        # as if started by hand: it runs, but does not hold our lock
        (home / "server.lock").rename(home / "server.lock.aside")
        with pytest.raises(StorageUnavailable, match=f"in use by a server that others started, pid {postmaster(home)}"):
            embedded.acquire(home)
        (home / "server.lock.aside").rename(home / "server.lock")
        assert embedded.is_running(home)


def test_a_kill_in_the_middle_of_the_first_start_does_not_block_the_next(new_home: Path) -> None:
    killed = client(new_home)
    eventually((new_home / "data.new" / "PG_VERSION").exists)
    kill(killed)
    assert not (new_home / "data").exists()
    with embedded.acquire(new_home) as lease:
        assert value(lease.conninfo, "SELECT 1") == 1
    assert not (new_home / "data.new").exists()


def test_content_never_reaches_the_log(home: Path) -> None:
    with embedded.acquire(home) as lease:
        change(lease.conninfo, "CREATE TABLE notes (text text PRIMARY KEY)")
        with psycopg.connect(lease.conninfo, autocommit=True) as connection:
            for _ in range(2):
                with contextlib.suppress(psycopg.errors.UniqueViolation):
                    connection.execute("INSERT INTO notes VALUES (%s)", ["geheim"])
            with pytest.raises(psycopg.errors.InvalidTextRepresentation):
                connection.execute("SELECT 'geheim'::int")
            # a crashing backend has its statement told in the log, as a detail
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 'geheim', pg_terminate_backend(pg_backend_pid())")
        crash(lease.conninfo)
        # The server may answer once more before it notices that one of its processes was killed.
        log = home / "server.log"
        eventually(lambda: "was terminated by signal 9" in log.read_text())
        eventually(lambda: "database system is ready" in log.read_text().partition("was terminated by signal 9")[2])
        assert "geheim" not in log.read_text()


def crash(conninfo: str) -> None:
    """Kill a backend in the middle of a statement and wait until the server has recovered."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        pid = connection.info.backend_pid
        running = threading.Thread(target=run_until_cut, args=(connection,))
        running.start()
        eventually(lambda: value(conninfo, f"SELECT state FROM pg_stat_activity WHERE pid = {pid}") == "active")
        os.kill(pid, signal.SIGKILL)
        running.join()

    def is_up() -> bool:
        try:
            return value(conninfo, "SELECT 1") == 1
        except psycopg.OperationalError:
            return False

    eventually(is_up)


def run_until_cut(connection: psycopg.Connection) -> None:
    with contextlib.suppress(psycopg.OperationalError):
        connection.execute("SELECT 'geheim', pg_sleep(600)")


def test_a_long_log_is_put_aside(home: Path) -> None:
    with (home / "server.log").open("a") as log:
        log.write("x" * 5_000_000)
    with embedded.acquire(home):
        assert (home / "server.log").stat().st_size < 10_000
        assert (home / "server.log.1").stat().st_size > 5_000_000
