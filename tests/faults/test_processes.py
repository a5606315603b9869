"""`muniment serve --workers 2` and `muniment worker --processes 2`: killed, renewed and ended under load."""

import asyncio
import contextlib
import os
import re
import signal
import socket
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from pydantic_core import from_json

from muniment import Fabric
from muniment.database import embedded
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.faults.load import Command, Measured, Serving, agent, clients, token
from tests.faults.servers import eventually
from tests.faults.test_workers_rows import EACH

CAPTURES = "SELECT capture_id FROM captures WHERE tenant_id = %s"
WORKERS = "SELECT count(*) FROM procrastinate.procrastinate_workers"


class Several(Serving):
    """A server of several processes, with its log in a file."""

    def __init__(self, folder: Path, *arguments: object, workers: int = 2, **environment: str) -> None:
        super().__init__("--workers", workers, "--log", "json", *arguments, **environment)
        self.log = folder / "log"
        self._http = httpx2.Client()

    def lines(self) -> list[dict[str, Any]]:
        """The lines of the log."""
        assert self.log is not None
        whole, _, _ = self.log.read_text().rpartition("\n")  # the last line may be written just now
        return [from_json(line) for line in whole.splitlines()]

    def processes(self) -> dict[int, int]:
        """The process that was started last in each address."""
        started = [one for one in self.lines() if re.fullmatch(r"process \d+ started", one["message"])]
        return {int(one["message"].split()[1]): one["pid"] for one in started}

    def said(self, message: str) -> list[int | None]:
        """The numbers of the processes that logged this."""
        return [one.get("process") for one in self.lines() if one["message"] == message]

    def get(self, path: str, key: str | None = None) -> httpx2.Response:
        """Ask over a new connection, so that any process may answer."""
        headers = {"Connection": "close"} | ({"Authorization": f"Bearer {key}"} if key else {})
        return self._http.get(f"{self.url}{path}", headers=headers)

    def figure(self, name: str) -> float:
        """A metric, asked over a new connection."""
        text = self.get("/metrics").text
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name))


@contextmanager
def serving(server: Several) -> Generator[Several]:
    with server.running():
        yield server


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def address(server: TestServer, fresh_database: str) -> str:
    return server.url(fresh_database)


def stored(server: TestServer, database: str, people: People) -> set[object]:
    with server.connect(database) as owner:
        return {row[0] for row in owner.execute(CAPTURES, [people.tenant_id]).fetchall()}


async def _load(local: Fabric, url: str, people: People, seconds: float, beside: Any, **how: Any) -> Measured:
    """Four agents for so long; `beside` runs in a thread meanwhile. Whatever fails is raised."""
    measured, until = Measured(), time.monotonic() + seconds
    keys = [await asyncio.to_thread(token, local, people.run()) for _ in range(4)]
    async with clients(url, keys, **how) as opened, asyncio.TaskGroup() as tasks:
        for n, client in enumerate(opened):
            tasks.create_task(agent(client, people, n, until, measured))
        tasks.create_task(asyncio.to_thread(beside))
    return measured


@pytest.mark.rule("ERR-2", "CAP-10", "CAP-4")
def test_a_process_killed_under_load_is_replaced_and_loses_nothing_that_was_acknowledged(
    server: TestServer, fresh_database: str, address: str, people: People, tmp_path: Path
) -> None:
    several = Several(tmp_path, "--url", address)
    with Fabric.open(address, master_keys=MASTER_KEYS) as local, serving(several):

        def kill_one() -> None:
            time.sleep(1)
            before = several.processes()
            os.kill(before[2], signal.SIGKILL)
            eventually(lambda: several.processes()[2] != before[2])
            eventually(lambda: is_alive(several.processes()[2]))

        measured = asyncio.run(_load(local, several.url, people, 6, kill_one))
        # Connections that are new reach the new process, too.
        before = len(several.said("request"))
        eventually(lambda: several.get("/healthz") and 2 in several.said("request")[before:])
        assert several.stop() == 0
    kept = [*measured.acknowledged[people.tenant_id]]
    assert measured.recalled and len(kept) == len(set(kept))
    assert set(kept) <= stored(server, fresh_database, people)
    assert {1, 2} == set(several.said("request"))
    assert not any(is_alive(pid) for pid in several.processes().values())


@pytest.mark.rule("CAP-10")
def test_renewed_under_load_no_request_fails_and_on_sigterm_nothing_is_left(
    server: TestServer, fresh_database: str, address: str, people: People, tmp_path: Path
) -> None:
    several = Several(tmp_path, "--url", address)
    with Fabric.open(address, master_keys=MASTER_KEYS) as local, serving(several):
        before = several.processes()

        def renew() -> None:
            time.sleep(0.5)
            os.kill(several.pid, signal.SIGHUP)
            eventually(lambda: all(several.processes()[n] != before[n] for n in before))
            eventually(lambda: not any(map(is_alive, before.values())))

        measured = asyncio.run(_load(local, several.url, people, 12, renew, retries=0))
        after = several.processes()
        assert several.stop() == 0
    assert len(measured.seconds) > 100 and not set(before.values()) & set(after.values())
    assert set(measured.acknowledged[people.tenant_id]) == stored(server, fresh_database, people)
    assert not any(map(is_alive, [*before.values(), *after.values()]))
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", urlsplit(several.url).port or 0))


def test_the_limits_and_the_metrics_are_those_of_all_processes_together(address: str, tmp_path: Path) -> None:
    limits = {"MUNIMENT_RATE": "0.01", "MUNIMENT_BURST": "20", "MUNIMENT_CONNECTIONS": "40"}
    with (
        Fabric.open(address, master_keys=MASTER_KEYS) as local,
        serving(Several(tmp_path, "--url", address, **limits)) as all_,
    ):
        key = token(local, People("tenant_a").auditor)
        statuses = Counter[int]()
        # Each over a connection of its own, so that every process gets some.
        for _ in range(80):
            statuses[all_.get("/v1/whoami", key).status_code] += 1
        assert 1 <= statuses[200] <= 20 and statuses[200] + statuses[429] == 80
        counted = 'muniment_http_requests_total{method="GET",route='
        for _ in range(6):
            assert all_.figure(f'{counted}"/v1/whoami",status="200"') == statuses[200]
            assert all_.figure(f'{counted}"unknown",status="429"') == statuses[429]
            eventually(lambda: all_.figure("muniment_http_requests_in_flight") == 1)
            assert all_.figure("process_start_time_seconds{") > time.time()
        assert set(all_.said("request")) == {1, 2}

        refused = Counter(all_.get("/v1/whoami", "mun_none.none.none").status_code for _ in range(30))
        assert refused[401] <= 10 and refused[429] >= 20

        # The counts of a process that was killed stay, what it had open does not.
        os.kill(all_.processes()[1], signal.SIGKILL)
        eventually(lambda: len(all_.said("process 1 started")) == 2)
        assert all_.figure(f'{counted}"/v1/whoami",status="200"') == statuses[200]
        eventually(lambda: all_.figure("muniment_http_requests_in_flight") == 1)

        with contextlib.ExitStack() as stack:
            where = ("127.0.0.1", urlsplit(all_.url).port or 0)
            opened = [stack.enter_context(socket.create_connection(where)) for _ in range(60)]
            eventually(lambda: sum(_is_refused(one) for one in opened) >= 40)


def _is_refused(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return bool(connection.recv(4096, socket.MSG_PEEK))
    except BlockingIOError:
        return False


@pytest.mark.rule("JOB-1", "ERR-2")
def test_one_process_of_an_embedded_server_runs_the_worker_and_another_takes_over(
    new_home: Path, tmp_path: Path
) -> None:
    people = People("tenant_a")
    several = Several(tmp_path, "--home", new_home, MUNIMENT_MASTER_KEY="")
    with serving(several):
        with Fabric.open(home=new_home) as local:
            run = people.run()

            def consolidated(n: int) -> bool:
                local.capture(run, kind="statement", text=f"Box {n} holds plates.", classification="PUBLIC")
                eventually(lambda: local.work.backlog(people.admin).behind == 0)
                return True

            assert consolidated(1)
            (first,) = several.said("running the worker")
            assert first is not None
            os.kill(several.processes()[first], signal.SIGKILL)
            eventually(lambda: len(several.said("running the worker")) == 2)
            assert consolidated(2)
            os.kill(several.pid, signal.SIGHUP)
            eventually(lambda: len(several.said("stopping")) == 2)
            assert consolidated(3)
            # The old one may have done that while it ended: the new one begins after it.
            eventually(lambda: len(several.said("running the worker")) >= 3)
        assert several.stop() == 0
    # One at a time: each but the last was killed or told to end before the next one began.
    assert 3 <= len(several.said("running the worker")) <= 4
    assert not embedded.is_running(new_home)


def test_a_second_signal_ends_all_at_once(address: str, tmp_path: Path) -> None:
    several = Several(tmp_path, "--url", address)
    with Fabric.open(address, master_keys=MASTER_KEYS) as local, serving(several):
        key = token(local, People("tenant_a").run())
        head = f"POST /v1/captures HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nContent-Length: 9\r\n"
        with socket.create_connection(("127.0.0.1", urlsplit(several.url).port or 0)) as waiting:
            waiting.sendall(f"{head}Expect: 100-continue\r\n\r\n".encode())
            assert waiting.recv(12) == b"HTTP/1.1 100"
            os.kill(several.pid, signal.SIGTERM)
            eventually(lambda: set(several.said("stopping")) == {1, 2})
            time.sleep(0.2)
            # One of them waits for the body.
            assert sum(is_alive(pid) for pid in several.processes().values()) >= 1
            began = time.monotonic()
            assert several.stop() == 0
            assert time.monotonic() - began < 10
    assert not any(is_alive(pid) for pid in several.processes().values())


@pytest.mark.rule("JOB-1", "ERR-2", "CAP-10")
def test_workers_in_several_processes_share_the_jobs_and_are_replaced(
    server: TestServer, fresh_database: str, address: str, people: People, tmp_path: Path
) -> None:
    worker = Command("worker", "--processes", 2, "--json", "--url", address)
    worker.log = tmp_path / "log"
    with Fabric.open(address, master_keys=MASTER_KEYS) as local, server.connect(fresh_database) as owner:
        owner.autocommit = True

        def workers() -> int:
            found = owner.execute(WORKERS).fetchone()
            assert found is not None and isinstance(found[0], int)
            return found[0]

        def say(n: int) -> None:
            items = [
                {"kind": "statement", "classification": "PUBLIC", "text": f"Box {n} holds {m} plates."}
                for m in range(9)
            ]
            local.capture_many(people.run(), items)
            eventually(lambda: local.work.backlog(people.admin).behind == 0)

        with worker.running():
            eventually(lambda: workers() == 2 * EACH)
            say(1)
            children = Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text().split()
            killed = next(int(pid) for pid in children if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes())
            os.kill(killed, signal.SIGKILL)
            eventually(lambda: "ended (by SIGKILL), to be replaced" in (tmp_path / "log").read_text())
            eventually(lambda: workers() == 3 * EACH)
            say(2)
            os.kill(worker.pid, signal.SIGTERM)
            assert from_json("".join(worker.line() for _ in range(3)))["jobs"] >= 1
            eventually(lambda: not any(is_alive(int(pid)) for pid in children if int(pid) != killed))
