"""Workers killed at random points under load: nothing acknowledged is lost, nothing done twice, nothing out of order.

MUNIMENT_KILL_SECONDS says for how long; `make soak` gives it five minutes.
"""

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from pydantic_core import from_json

from muniment import Fabric
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS
from muniment.worker.worker import Worker

SECONDS = float(os.environ.get("MUNIMENT_KILL_SECONDS", "30"))
ROOT = Path(__file__).parents[2]


class Receiver(ThreadingHTTPServer):
    """Keeps the number of every event that was posted, by tenant, in the order they came."""

    daemon_threads = True

    def __init__(self) -> None:
        self.got: dict[str, list[str]] = {}
        super().__init__(("127.0.0.1", 0), _Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        event = from_json(self.rfile.read(int(self.headers["content-length"])))
        receiver: Any = self.server
        receiver.got.setdefault(event["source"], []).append(event["sequence"])
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None: ...


def load(fabric: Fabric, people: People, until: float, acknowledged: list[str]) -> None:
    """Captures, some alone and some together, and now and then an approval, until then."""
    turn = 0
    while time.monotonic() < until:
        turn += 1
        said = [{"kind": "statement", "text": f"{people.tenant_id} said {turn} times {n}", "classification": "INTERNAL"}
                for n in range(1 + turn % 3)]  # fmt: skip
        run = people.run(f"user_{turn % 3}")
        acknowledged += [receipt.capture_id for receipt in fabric.capture_many(run, said)]
        if turn % 5 == 0:
            waiting = [one.proposal_id for one in fabric.queue.list(people.reviewer, limit=5)]
            if waiting:
                fabric.queue.approve_many(people.reviewer, waiting)
        time.sleep(0.4)


@pytest.mark.rule("JOB-1", "JOB-9", "ERR-2", "EVT-1", "AUD-2")
def test_workers_killed_at_random_lose_nothing_and_do_nothing_twice(server: TestServer, fresh_database: str) -> None:
    url, receiver = server.url(fresh_database), Receiver()
    cast = [People("tenant_a"), People("tenant_b")]
    acknowledged: dict[str, list[str]] = {people.tenant_id: [] for people in cast}
    with Fabric.open(url, master_keys=MASTER_KEYS, private_webhooks=True) as fabric:
        since = {people.tenant_id: fabric.webhooks.add(people.admin, url=receiver.url).seq for people in cast}
        command = [sys.executable, "-m", "tests.faults.kill_workers", url, str(SECONDS), "7"]
        killer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        ends_at = time.monotonic() + SECONDS
        loads = [
            threading.Thread(target=load, args=(fabric, people, ends_at, acknowledged[people.tenant_id]))
            for people in cast
        ]
        for thread in loads:
            thread.start()
        for thread in loads:
            thread.join()
        killed = int(killer.communicate(timeout=60)[0])
        assert killed > SECONDS / 2, "they must have been killed often, or this shows nothing"
        settle(fabric, cast, receiver)

        with server.connect(fresh_database) as owner:
            for people in cast:
                rows = owner.execute(
                    "SELECT c.capture_id, (SELECT count(*) FROM candidates d WHERE d.tenant_id = c.tenant_id AND d.capture_id = c.capture_id),"
                    " (SELECT count(*) FROM consolidations e WHERE e.tenant_id = c.tenant_id AND e.capture_id = c.capture_id)"
                    " FROM captures c WHERE c.tenant_id = %s",
                    [people.tenant_id],
                ).fetchall()
                assert {str(row[0]) for row in rows} == set(acknowledged[people.tenant_id])
                assert Counter(row[1:] for row in rows) == {(1, 1): len(acknowledged[people.tenant_id])}
                assert sent(owner, people.tenant_id, since[people.tenant_id]) == first_time(
                    receiver.got[f"/muniment/{people.tenant_id}"]
                )
                proof = fabric.verify(people.auditor)
                assert (proof.ok, proof.unsealed) == (True, 0)


def settle(fabric: Fabric, cast: list[People], receiver: Receiver) -> None:
    """A worker that is left alone finishes; a webhook is free when the lease of a dead one has ended."""
    give_up_at = time.monotonic() + 60
    while time.monotonic() < give_up_at:
        fabric._portal.call(Worker(fabric._fabric._opened).until_idle)  # type: ignore[arg-type]  # it is open
        positions = [fabric.webhooks.list(people.admin)[0] for people in cast]
        behind = [
            place for people, place in zip(cast, positions, strict=True)
            if fabric.events(people.auditor, after=place.seq, limit=1)
        ]  # fmt: skip
        if not behind:
            return
        time.sleep(0.4)
    raise AssertionError("webhooks do not catch up")


def sent(owner: Any, tenant_id: str, since: int) -> list[str]:
    """The numbers of all events since the webhook was there, as they are posted."""
    rows = owner.execute(
        "SELECT seq, n FROM events WHERE tenant_id = %s AND seq > %s ORDER BY seq, n", [tenant_id, since]
    )
    return [f"{seq:019d}.{n:05d}" for seq, n in rows.fetchall()]


def first_time(got: list[str]) -> list[str]:
    """Each once, in the order it came first: what is sent again after a kill comes in order too."""
    return list(dict.fromkeys(got))
