"""The postmaster of an embedded home killed at random under load: nothing acknowledged is lost, all serve again soon.

MUNIMENT_KILL_SECONDS says for how long; `make soak` gives it five minutes.
"""

import os
import random
import signal
import statistics
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from muniment import Fabric
from muniment.client import Client
from muniment.database import embedded
from muniment.errors import ServerUnavailable, StorageUnavailable
from muniment.testing import People
from tests.faults.fabric_process import PEOPLE as LIBRARY
from tests.faults.load import MASTER_KEY, MUNIMENT, Serving, token
from tests.faults.servers import eventually, postmaster, program

IS_SOAK = "MUNIMENT_KILL_SECONDS" in os.environ
SECONDS = float(os.environ.get("MUNIMENT_KILL_SECONDS", "20"))
# Seconds after a kill within which every process serves again; where the suite shares the machine it may take longer.
BAR = 5.0 if IS_SOAK else 20.0
PAUSE = 0.2
HTTP = People("tenant_http")


class Process:
    """One of the processes under load: when it last served, and what it acknowledged."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.served_at = 0.0
        self.acknowledged: set[str] = set()
        self.refused = 0
        self.took: list[float] = []

    def serve(self, line: str | None = None) -> None:
        """It did something."""
        self.served_at = time.monotonic()
        if line is not None:
            self.acknowledged.add(line)

    def figures(self) -> str:
        median, longest = statistics.median(self.took), max(self.took)
        return f"{self.name}: serving again after {median:.2f} s (median), {longest:.2f} s (longest)"


def load_over_http(url: str, key: str, process: Process, ended: threading.Event) -> None:
    """Captures one after the other; none is tried again."""
    number = 0
    with Client.open(url, key, retries=0) as client:
        while not ended.wait(PAUSE):
            number += 1
            line = f"http_{number}"
            try:
                run = HTTP.run(session_id=line)
                client.capture(run, kind="statement", text=f"this is line {number}", classification="PUBLIC")
            except (StorageUnavailable, ServerUnavailable) as error:
                assert error.code == "storage_unavailable", "the server itself must live"
                process.refused += 1
            else:
                process.serve(line)


@contextmanager
def library(home: Path, process: Process) -> Generator[None]:
    """A program that captures by itself."""
    with program(home, "write") as running:

        def read() -> None:
            assert running.stdout is not None
            for word, number in (line.split() for line in running.stdout):
                if word == "ok":
                    process.serve(f"library_{number}")
                else:
                    process.refused += 1

        reading = threading.Thread(target=read)
        reading.start()
        yield
        assert running.stdin is not None
        running.stdin.close()
        reading.join(60)
        assert running.wait(60) == 0


@contextmanager
def worker(home: Path, process: Process) -> Generator[None]:
    """A worker, which tells of each consolidation."""
    with subprocess.Popen([MUNIMENT, "worker", "--home", str(home)], stderr=subprocess.PIPE, text=True) as running:

        def read() -> None:
            assert running.stderr is not None
            for line in running.stderr:
                if '"job done"' in line and '"job":"consolidate"' in line:
                    process.serve()

        reading = threading.Thread(target=read)
        reading.start()
        try:
            yield
            running.send_signal(signal.SIGTERM)
            assert running.wait(60) == 0
        finally:
            running.kill()
            reading.join(60)


def next_server(home: Path, killed: set[int], *, ready: bool) -> int | None:
    """Another server than those, once it has begun, or once it is ready."""
    with suppress(FileNotFoundError, ProcessLookupError, ValueError, IndexError):
        lines = (home / "data" / "postmaster.pid").read_text().split("\n")
        pid = int(lines[0])
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        if pid not in killed and b"postgres" in command and (not ready or lines[7].strip() == "ready"):
            return pid
    return None


def kill(home: Path, chance: random.Random) -> float:
    """Kill the postmaster, now and then the next one too while it recovers; when the last was killed."""
    killed = {postmaster(home)}
    os.kill(*killed, signal.SIGKILL)
    at = time.monotonic()
    if chance.random() < 0.25:
        eventually(lambda: next_server(home, killed, ready=False) is not None)
        again = next_server(home, killed, ready=False)
        assert again is not None
        with suppress(ProcessLookupError):
            os.kill(again, signal.SIGKILL)
        killed.add(again)
        at = time.monotonic()
    eventually(lambda: next_server(home, killed, ready=True) is not None)
    return at


def until(condition: Callable[[], bool]) -> None:
    eventually(condition, seconds=60)


@pytest.mark.rule("ERR-6", "ERR-2", "ERR-3", "CAP-10")
def test_a_postmaster_killed_at_random_under_load_loses_nothing_and_every_process_serves_again_soon(
    new_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUNIMENT_MASTER_KEY", MASTER_KEY)
    chance, kills, ended = random.Random(11), 0, threading.Event()
    with Fabric.open(home=new_home) as fabric:
        key = token(fabric, HTTP.run())
    over_http, in_library, at_work = processes = Process("server"), Process("library"), Process("worker")
    serving = Serving("--home", new_home, "--no-worker")
    with ExitStack() as stack:
        stack.enter_context(serving.running())
        stack.enter_context(library(new_home, in_library))
        stack.enter_context(worker(new_home, at_work))
        loading = threading.Thread(target=load_over_http, args=(serving.url, key, over_http, ended))
        loading.start()
        stack.callback(loading.join)
        stack.callback(ended.set)
        for process in processes:
            until(lambda: process.served_at > 0)  # noqa: B023  called at once
        ends_at = time.monotonic() + SECONDS
        # A kill that met no call shows little: it goes on, for a while, until each of the two was refused one.
        while time.monotonic() < ends_at or (
            not (over_http.refused and in_library.refused) and time.monotonic() < ends_at + SECONDS
        ):
            killed_at = kill(new_home, chance)
            ready_at = time.monotonic()
            kills += 1
            for process in processes:
                # What a process of the killed server still did does not count.
                until(lambda: process.served_at > ready_at)  # noqa: B023  called at once
                process.took.append(process.served_at - killed_at)
            time.sleep(chance.uniform(0.2, 2.5))
        ended.set()
        loading.join()
        assert serving.stop() == 0
        assert embedded.is_running(new_home), "others use it"
    assert not embedded.is_in_use(new_home)

    captured = Counter(sessions(new_home))
    assert captured.keys() >= over_http.acknowledged | in_library.acknowledged
    assert set(captured.values()) == {1}
    with Fabric.open(home=new_home) as fabric:
        for people in (HTTP, LIBRARY):
            assert fabric.verify(people.auditor).ok
    lines = len(over_http.acknowledged | in_library.acknowledged)
    print(f"\n{kills} kills in {SECONDS:.0f} s, {lines:,} captures acknowledged, 0 lost")
    print("\n".join(process.figures() for process in processes))
    assert kills > SECONDS / 15, "it must have been killed often, or this shows nothing"
    assert over_http.refused or in_library.refused, "no kill met a call"
    assert max(max(process.took) for process in processes) < BAR


def sessions(home: Path) -> list[str]:
    with (
        embedded.acquire(home) as lease,
        psycopg.connect(make_conninfo(lease.conninfo, dbname="muniment")) as connection,
    ):
        return [str(row[0]) for row in connection.execute("SELECT session_id FROM muniment.captures").fetchall()]
