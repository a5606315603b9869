"""`muniment serve --workers 2` with trained readers: one process reads for all, and nothing is decided without it."""

import os
import re
import signal
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from muniment import Fabric
from muniment.language.readers import Readers, Weights
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.faults.load import token
from tests.faults.servers import eventually
from tests.faults.test_processes import Several, is_alive
from tests.language.tiny_readers import install_weights

WORDS = {"attack": {"ignore": 9.0, "[CLS]": -5.0}, "contradicts": {"berlin": 10.0, "hamburg": 10.0, "[CLS]": -15.0}}
SECRET = "Zanzibar"


class Reading(Several):
    """A server of two processes with tiny readers as its package muniment-models."""

    def __init__(self, folder: Path, *arguments: object, **weights: Any) -> None:
        package = install_weights(folder / "package", **WORDS, **weights)
        paths = os.pathsep.join([str(package), *filter(None, [os.environ.get("PYTHONPATH")])])
        self.weights = Weights.read(package / "muniment_models" / "weights")
        self.temporary = folder / "t"
        self.temporary.mkdir()
        super().__init__(folder, *arguments, PYTHONPATH=paths, MUNIMENT_READERS="on", TMPDIR=str(self.temporary))

    def readers(self) -> list[int]:
        """The processes that were started to read, in order."""
        return [one["pid"] for one in self.lines() if one["message"] == "the readers' process started"]

    def sockets(self) -> list[Path]:
        return [path for path in self.temporary.rglob("*") if path.is_socket()]

    def propose(self, key: str, text: str) -> httpx2.Response:
        """Propose over a new connection, so that any process may answer."""
        body = {"write_class": "statement", "text": text, "confidence": 0.9, "classification": "INTERNAL"}
        headers = {"Authorization": f"Bearer {key}", "Connection": "close"}
        return httpx2.post(f"{self.url}/v1/proposals", json=body, headers=headers, timeout=30)


def maps(pid: int) -> str:
    return Path(f"/proc/{pid}/maps").read_text()


def has_loaded(pid: int) -> bool:
    return "onnxruntime" in maps(pid)


@contextmanager
def stopped(pid: int) -> Generator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def serving(reading: Reading) -> Generator[Reading]:
    with reading.running():
        yield reading


@pytest.fixture
def address(server: TestServer, fresh_database: str) -> str:
    return server.url(fresh_database)


def key_of(address: str, people: People, readers: Readers | None = None) -> str:
    with Fabric.open(address, master_keys=MASTER_KEYS, readers=readers) as local:
        return token(local, people.run(None))


@pytest.mark.rule("CAN-15", "ERA-1")
def test_one_process_reads_for_all_and_the_others_load_nothing(
    server: TestServer, fresh_database: str, address: str, people: People, place: Path
) -> None:
    reading = Reading(place, "--url", address)
    key = key_of(address, people, Readers(reading.weights))
    with serving(reading):
        for number in range(6):
            answer = reading.propose(key, f"Ignore the {SECRET} of box {number}.")
            assert answer.status_code == 201, answer.text
        (reader,) = reading.readers()
        assert has_loaded(reader)
        numbered = reading.processes()
        assert len(numbered) == 2 and not any(has_loaded(pid) for pid in numbered.values())
        assert set(reading.said("request")) == {1, 2}
        (path,) = reading.sockets()
        assert path.parent.stat().st_mode & 0o777 == 0o700
        limits = Path(f"/proc/{reader}/limits").read_text()
        assert re.search(r"Max core file size +0 +0 ", limits)
        assert reading.stop() == 0
    with server.connect(fresh_database) as owner:
        read_by = {row[0] for row in owner.execute("SELECT language FROM muniment.candidates").fetchall()}
    assert read_by == {reading.weights.version}
    assert not any(is_alive(pid) for pid in [reader, *numbered.values()])
    assert reading.sockets() == [] and not path.parent.exists()
    kept = b"".join(file.read_bytes() for file in place.rglob("*") if file.is_file())
    assert SECRET.encode() not in kept and b"readers' process started" in kept


@pytest.mark.rule("CAN-15", "CAN-3", "ERR-2")
def test_a_readers_process_that_is_killed_is_replaced_and_meanwhile_nothing_is_decided(
    server: TestServer, fresh_database: str, address: str, people: People, place: Path
) -> None:
    reading = Reading(place, "--url", address)
    key = key_of(address, people, Readers(reading.weights))
    with serving(reading):
        assert reading.propose(key, "Ignore box 0.").status_code == 201
        statuses: list[int] = []
        for number in range(1, 4):
            os.kill(reading.readers()[-1], signal.SIGKILL)
            for attempt in range(3):
                answer = reading.propose(key, f"Ignore box {number} {attempt}.")
                statuses.append(answer.status_code)
                if answer.status_code != 201:
                    assert (answer.status_code, answer.json()["code"]) == (503, "readers_unavailable")
            eventually(lambda count=number + 1: len(reading.readers()) == count)
        eventually(lambda: reading.propose(key, "Ignore the last box.").status_code == 201)
        killed, (last,) = reading.readers()[:-1], reading.readers()[-1:]
        assert is_alive(last) and not any(map(is_alive, killed))
        # The processes that serve were not touched.
        assert len(reading.said("process 1 started")) == len(reading.said("process 2 started")) == 1
        assert reading.stop() == 0
    assert 201 in statuses
    with server.connect(fresh_database) as owner:
        rows = owner.execute("SELECT language, gates::text LIKE '%guard%' FROM muniment.candidates").fetchall()
    # Each text that was accepted was read: the guard saw the instruction in all of them.
    assert len(rows) == statuses.count(201) + 2
    assert set(rows) == {(reading.weights.version, True)}


@pytest.mark.rule("CAN-15", "CAN-3")
def test_while_there_is_no_readers_process_calls_fail_and_captures_wait(
    address: str, people: People, place: Path
) -> None:
    reading = Reading(place, "--url", address, "--worker")
    key = key_of(address, people, Readers(reading.weights))
    with serving(reading):
        assert reading.propose(key, "Ignore box 0.").status_code == 201
        (reader,) = reading.readers()
        # It lives and does nothing, so that it is not replaced before a minute is over.
        with stopped(reader):
            began = time.monotonic()
            answer = reading.propose(key, "Ignore box 1.")
            assert (answer.status_code, answer.json()["code"]) == (503, "readers_unavailable")
            assert time.monotonic() - began < 25
            with Fabric.open(address, master_keys=MASTER_KEYS, readers=Readers(reading.weights)) as local:
                local.capture(people.run(None), kind="statement", text="Ignore box 2.", classification="INTERNAL")
                eventually(lambda: any("captures of tenant" in one["message"] for one in reading.lines()))
                assert local.work.backlog(people.admin).behind == 1
        eventually(lambda: reading.propose(key, "Ignore box 3.").status_code == 201)
        assert reading.stop() == 0


def test_on_hangup_the_readers_process_is_renewed_and_no_call_fails(address: str, people: People, place: Path) -> None:
    reading = Reading(place, "--url", address)
    key = key_of(address, people, Readers(reading.weights))
    with serving(reading):
        (old,) = reading.readers()
        before = reading.processes()
        os.kill(reading.pid, signal.SIGHUP)
        sent = 0
        while is_alive(old) or any(is_alive(pid) for pid in before.values()):
            answer = reading.propose(key, f"Ignore box {sent}.")
            assert answer.status_code == 201, answer.text
            sent += 1
        assert sent and len(reading.readers()) == 2
        assert reading.stop() == 0


def test_if_the_supervisor_is_killed_the_readers_process_ends(address: str, place: Path) -> None:
    reading = Reading(place, "--url", address)
    with serving(reading):
        pids = [*reading.readers(), *reading.processes().values()]
        reading.kill()
        eventually(lambda: not any(map(is_alive, pids)))


@pytest.mark.rule("CAN-15")
def test_a_broken_package_stops_no_server_and_needs_no_readers_process(
    address: str, people: People, place: Path
) -> None:
    reading = Reading(place, "--url", address)
    (reading.weights.folder / "manifest.json").write_text("{")
    with serving(reading):
        with Fabric.open(address, master_keys=MASTER_KEYS, readers=Readers(reading.weights)) as local:
            key = token(local, people.run(None))
        answer = reading.propose(key, "The office closes at six.")
        assert (answer.status_code, answer.json()["code"]) == (503, "readers_unavailable")
        assert "manifest cannot be read" in answer.json()["detail"]
        assert reading.get("/readyz").status_code == 200
        assert reading.stop() == 0
