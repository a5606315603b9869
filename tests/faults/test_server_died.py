"""An embedded server that dies: started again by those who use it, one of them, while calls fail at once."""

import asyncio
import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from muniment import AsyncFabric, Fabric
from muniment.database import embedded
from muniment.errors import StorageUnavailable
from muniment.testing import People
from tests.faults.servers import eventually, family, paused_checkpointer, postmaster, program, value
from tests.faults.test_storage_away import captured, outcome, statuses

# Seconds; a start takes a fraction of one, but the machine may be busy.
SOON = 30.0
AT_ONCE = 2.0
PEOPLE = People("tenant_embedded")


def kill(home: Path) -> int:
    """Kill the postmaster alone, as the system does when memory runs out; its pid."""
    pid = postmaster(home)
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: is_dead(pid))
    return pid


def is_dead(pid: int) -> bool:
    """Whether it has ended, though its parent may not have asked how yet."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True


def starts(home: Path) -> int:
    """How many servers were started in that home so far."""
    return (home / "server.log").read_text().count("starting PostgreSQL")


def is_served(home: Path, than: int) -> bool:
    """Whether another server than that one accepts connections."""
    return embedded.is_running(home) and postmaster(home) != than


async def until_ok(call: Callable[[], object]) -> list[tuple[str, float]]:
    """Call again and again until it works; how each call ended."""
    ends_at = time.monotonic() + SOON
    outcomes: list[tuple[str, float]] = []
    while not outcomes or outcomes[-1][0] != "ok":
        outcomes.append(await outcome(call()))  # type: ignore[arg-type]  # it makes an awaitable
        assert time.monotonic() < ends_at
        await asyncio.sleep(0)
    return outcomes


@pytest.mark.rule("ERR-6", "ERR-3", "ERR-2")
def test_a_server_that_was_killed_is_started_again_and_calls_meanwhile_fail_at_once(home: Path) -> None:
    async def story() -> None:
        async with AsyncFabric.open(home=home) as fabric:
            await captured(fabric, PEOPLE, "before")
            for turn in range(3):
                killed = kill(home)
                # One that was under way when the server was killed may still be answered.
                await asyncio.to_thread(eventually, lambda: not embedded.is_running(home) or postmaster(home) != killed)  # noqa: B023
                outcomes = await until_ok(lambda: captured(fabric, PEOPLE, f"line {turn}"))  # noqa: B023
                assert statuses(outcomes) <= {"storage_unavailable", "ok"}
                assert max(seconds for _, seconds in outcomes) < AT_ONCE
                # Nor need the new server be there already, if a process of the old one answered.
                await asyncio.to_thread(eventually, lambda: is_served(home, killed))  # noqa: B023
            await fabric.consolidate(PEOPLE.tenant_id)
            said = {one.candidate.text for one in await fabric.queue.list(PEOPLE.reviewer)}
            assert said >= {"before", "line 0", "line 1", "line 2"}

    asyncio.run(story())
    assert not embedded.is_running(home)


@pytest.mark.rule("ERR-6")
def test_a_call_while_the_server_restarts_gets_an_error_that_says_so(home: Path) -> None:
    with Fabric.open(home=home) as fabric:
        fabric.recall(PEOPLE.run())
        with paused_checkpointer(home):  # an orphan that does not end, so that no new server can start yet
            kill(home)
            eventually(lambda: says(fabric, "the database server died and is being started again"))
        eventually(lambda: works(fabric))


@pytest.mark.rule("ERR-6")
def test_of_several_processes_one_starts_the_server_again_and_all_are_served(home: Path) -> None:
    with program(home) as one, program(home) as another, Fabric.open(home=home) as fabric:
        fabric.recall(PEOPLE.run())
        before, killed = starts(home), kill(home)
        eventually(lambda: is_served(home, killed))
        eventually(lambda: works(fabric))
        assert starts(home) == before + 1
        for process in (one, another):
            process.communicate("")
            assert process.returncode == 0
            assert embedded.is_running(home), "it is used by another process"
    assert not embedded.is_running(home)


def works(fabric: Fabric) -> bool:
    try:
        fabric.recall(PEOPLE.run())
    except StorageUnavailable:
        return False
    return True


@pytest.mark.rule("ERR-6")
def test_a_process_that_did_not_start_the_server_starts_it_again_when_the_one_that_did_is_gone(home: Path) -> None:
    with program(home) as starter:
        with Fabric.open(home=home) as fabric:
            starter.kill()
            starter.wait()
            killed = kill(home)
            eventually(lambda: is_served(home, killed))
            eventually(lambda: works(fabric))
        assert not embedded.is_running(home)


@pytest.mark.rule("ERR-6")
def test_a_server_killed_again_while_it_recovers_is_started_until_it_runs(home: Path) -> None:
    with Fabric.open(home=home) as fabric:
        fabric.recall(PEOPLE.run())
        killed = {kill(home)}
        for _ in range(3):
            eventually(lambda: next_postmaster(home, killed) is not None)
            pid = next_postmaster(home, killed)
            assert pid is not None
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            killed.add(pid)
        eventually(lambda: works(fabric))
        assert postmaster(home) not in killed


def next_postmaster(home: Path, than: set[int]) -> int | None:
    """Another postmaster than those, as soon as it has written its pid; that of the process which starts it is none."""
    with contextlib.suppress(FileNotFoundError, ValueError):
        pid = postmaster(home)
        return pid if pid not in {*than, os.getpid()} else None
    return None


@pytest.mark.rule("ERR-6")
def test_a_server_that_was_stopped_on_purpose_stays_stopped_until_the_home_is_opened_anew(home: Path) -> None:
    with Fabric.open(home=home) as fabric:
        fabric.recall(PEOPLE.run())
        assert embedded.stop(home)
        before = starts(home)
        eventually(lambda: says(fabric, "was stopped, by: muniment db stop"))
        assert starts(home) == before
        with Fabric.open(home=home) as other:
            other.recall(PEOPLE.run())
            eventually(lambda: works(fabric))
        assert embedded.is_running(home)
    assert not embedded.is_running(home)


def says(fabric: Fabric, words: str) -> bool:
    """Whether a call is refused in those words; a watch takes a moment to see that the server is gone."""
    try:
        fabric.recall(PEOPLE.run())
    except StorageUnavailable as error:
        return words in str(error)
    return False


# ---- what a killed postmaster leaves behind ----


@pytest.mark.rule("ERR-6", "ERR-2")
def test_a_process_that_outlives_its_postmaster_is_ended_before_a_new_server_starts(home: Path) -> None:
    with embedded.acquire(home):
        pid = postmaster(home)
        stuck = next(child for child, title in family(pid).items() if "checkpointer" in title)
        os.kill(stuck, signal.SIGSTOP)
        kill(home)
        began = time.monotonic()
        with embedded.acquire(home) as lease:
            assert time.monotonic() - began < SOON
            assert value(lease.conninfo, "SELECT 1") == 1
            assert stuck not in family(postmaster(home))
            assert is_dead(stuck)


@pytest.mark.rule("ERR-6", "ERR-2")
def test_no_server_starts_beside_processes_of_one_that_somebody_else_started(home: Path) -> None:
    with embedded.acquire(home):
        # As if started by hand: its processes do not hold our lock, so that only PostgreSQL knows that they are there.
        (home / "server.lock").rename(home / "server.lock.aside")
        with paused_checkpointer(home):
            kill(home)
            with pytest.raises(StorageUnavailable, match="processes of a server that died still use the database"):
                embedded.acquire(home)
        (home / "server.lock.aside").rename(home / "server.lock")
        eventually(lambda: not embedded.is_in_use(home))
        with embedded.acquire(home) as lease:
            assert value(lease.conninfo, "SELECT 1") == 1


# ---- opening ----


@pytest.mark.rule("ERR-6", "ERR-1")
def test_opening_while_the_server_dies_raises_our_own_error(new_home: Path) -> None:
    # The first time: the database is created and migrated, which takes a while, and the server dies meanwhile.
    embedded.acquire(new_home).release()
    ended = threading.Event()
    killed: set[int] = set()

    def keep_killing() -> None:
        while not ended.wait(0.05):
            with contextlib.suppress(FileNotFoundError, ValueError, ProcessLookupError):
                lines = (new_home / "data" / "postmaster.pid").read_text().split("\n")
                if len(lines) > 7 and lines[7].strip() == "ready":
                    os.kill(int(lines[0]), signal.SIGKILL)
                    killed.add(int(lines[0]))

    killing = threading.Thread(target=keep_killing)
    killing.start()
    try:
        for _ in range(4):
            with pytest.raises(StorageUnavailable):
                Fabric.open(home=new_home).close()
    finally:
        ended.set()
        killing.join()
    assert len(killed) >= 4
    with Fabric.open(home=new_home) as fabric:
        assert fabric.recall(PEOPLE.run()).records == ()


@pytest.mark.rule("ERR-6")
def test_a_server_that_was_told_to_stop_politely_does_not_wait_for_connections_for_ever(home: Path) -> None:
    with Fabric.open(home=home) as fabric:
        fabric.recall(PEOPLE.run())
        stopped = postmaster(home)
        with psycopg.connect(embedded.acquire(home).conninfo):
            os.kill(stopped, signal.SIGTERM)
            eventually(lambda: is_served(home, stopped))
            eventually(lambda: works(fabric))


@pytest.mark.rule("ERR-6")
def test_a_home_that_was_removed_under_an_open_fabric_is_not_made_anew(new_home: Path, place: Path) -> None:
    with Fabric.open(home=new_home) as fabric:
        fabric.recall(PEOPLE.run())
        new_home.rename(place / "aside")
        kill(place / "aside")
        eventually(lambda: says(fabric, "cannot be started"))
        assert not new_home.exists()
