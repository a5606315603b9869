"""Behind PgBouncer, which gives each transaction any server connection: nothing depends on a session."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from muniment import Fabric
from muniment.database.address import Address
from muniment.database.statements import Statement
from muniment.database.storage import TASKS
from muniment.errors import InvalidInput
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS
from muniment.worker.worker import Worker

PGBOUNCER = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
NOBODY = 65534
SHOW = Statement("show", "SHOW synchronous_commit", planned_once=False)
# One server connection for each login, emptied after each transaction.
SETTINGS = """
[databases]
* = host={folder} port=5432
[pgbouncer]
unix_socket_dir = {folder}
listen_port = 6432
auth_type = trust
auth_file = {folder}/users.txt
pool_mode = transaction
default_pool_size = 1
server_reset_query = DISCARD ALL
server_reset_query_always = 1
"""


@pytest.fixture
def pooler(server: TestServer, fresh_database: str) -> Generator[str]:
    """The address of a pooler before a database."""
    if PGBOUNCER is None:
        pytest.skip("pgbouncer is not installed")
    place = conninfo_to_dict(server.conninfo)
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="pool") as name, _forwarded(Path(name), place):
        folder = Path(name)
        folder.chmod(0o777)
        (folder / "pgbouncer.ini").write_text(SETTINGS.format(folder=folder))
        (folder / "users.txt").write_text("".join(f'"muniment_{task}" ""\n' for task in TASKS))
        # It refuses to run as root, and nobody else can enter the folder of the server's own socket.
        user = NOBODY if os.geteuid() == 0 else None
        process = subprocess.Popen([PGBOUNCER, "-q", str(folder / "pgbouncer.ini")], user=user)
        try:
            address = make_conninfo(host=name, port=6432, dbname=fresh_database, user="muniment_recall")
            _wait_for(address)
            yield address
        finally:
            process.terminate()
            process.wait(10)


@contextmanager
def _forwarded(folder: Path, place: dict[str, object]) -> Generator[None]:
    """A socket in that folder that leads to the server's."""
    target = f"{place['host']}/.s.PGSQL.{place.get('port', 5432)}"

    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(folder / ".s.PGSQL.5432"))
    listening.listen()
    (folder / ".s.PGSQL.5432").chmod(0o777)
    with listening:
        Thread(target=_accept, args=(listening, target), daemon=True).start()
        yield
        listening.shutdown(socket.SHUT_RDWR)


def _accept(listening: socket.socket, target: str) -> None:
    with suppress(OSError):
        while True:
            near, _ = listening.accept()
            far = socket.socket(socket.AF_UNIX)
            far.connect(target)
            for one, other in ((near, far), (far, near)):
                Thread(target=_copy, args=(one, other), daemon=True).start()


def _copy(one: socket.socket, other: socket.socket) -> None:
    with suppress(OSError):
        while data := one.recv(65536):
            other.sendall(data)
    for end in (one, other):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
    one.close()


def _wait_for(address: str) -> None:
    for _ in range(200):
        try:
            psycopg.connect(address).close()
        except psycopg.OperationalError:
            time.sleep(0.05)
        else:
            return
    pytest.fail("pgbouncer does not answer")


@pytest.fixture
def fabric(pooler: str, server: TestServer, fresh_database: str, monkeypatch: pytest.MonkeyPatch) -> Generator[Fabric]:
    monkeypatch.setenv("MUNIMENT_POOLER", "transaction")
    monkeypatch.setenv("MUNIMENT_OWNER_URL", server.url(fresh_database))
    with Fabric.open(pooler, master_keys=MASTER_KEYS) as fabric:
        yield fabric


def test_a_memory_goes_through_a_pooler_from_capture_to_recall_and_the_worker_runs(
    fabric: Fabric, server: TestServer, fresh_database: str
) -> None:
    opened = fabric._fabric._opened
    assert opened is not None
    tenants = [People("acme"), People("globex")]
    for people in tenants:
        text = f"Parcels of {people.tenant_id} leave at noon."
        fabric.propose(people.run(), write_class="statement", text=text, classification="INTERNAL")
        fabric.capture(people.service, kind="message", text="hello", classification="INTERNAL")
        assert fabric._portal.call(Worker(opened).until_idle, [people.tenant_id]) > 0
        for waiting in fabric.queue.list(people.reviewer):
            fabric.queue.approve(people.reviewer, waiting.proposal_id)
    for people in tenants:
        records = fabric.recall(people.run(), "when do parcels leave?").records
        assert f"Parcels of {people.tenant_id} leave at noon." in [record.text for record in records]
    with server.connect(fresh_database) as owner:
        listening = owner.execute("SELECT FROM pg_stat_activity WHERE query ~ '^LISTEN'").fetchall()
    assert listening == [], "no session is kept for notifications"


def test_the_settings_of_a_task_hold_in_each_transaction_and_not_after_it(fabric: Fabric, pooler: str) -> None:
    people = People("acme")
    fabric.capture(people.service, kind="message", text="hello", classification="INTERNAL")

    async def setting() -> str:
        async with fabric._fabric._context.transaction(people.tenant_id, "recall") as tx:
            await tx.rows("tenant.clock")
            (reply,) = await tx._connection.exchange([(SHOW, [])])
            return str(reply.rows[0]["synchronous_commit"])

    assert fabric._portal.call(setting) == "off"
    with psycopg.connect(pooler, prepare_threshold=None) as session:
        assert session.execute("SHOW search_path").fetchone() == ('"$user", public',)


def test_a_pooler_needs_the_owners_own_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUNIMENT_POOLER", "transaction")
    with pytest.raises(InvalidInput, match="MUNIMENT_OWNER_URL: set it"):
        Address.parse("postgresql://pooler/memory", None)
    monkeypatch.setenv("MUNIMENT_POOLER", "session")
    with pytest.raises(InvalidInput, match="MUNIMENT_POOLER: expected transaction"):
        Address.parse("postgresql://pooler/memory", None)
