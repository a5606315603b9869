"""A purge is said to be done only where the server's settings make it true: its log removed, and not renamed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from muniment import Fabric
from muniment.database.address import Address
from muniment.database.migrate import migrate
from muniment.erasure import job as purge
from muniment.erasure.purge import purge_problems
from muniment.metrics import job as alerts
from muniment.testing import FakeClock, People
from muniment.testing.database import MASTER_KEYS
from muniment.worker.due import Due
from muniment.worker.worker import run as run_job
from tests.faults.servers import eventually, separate, value

SUBJECT = "customer:cus_77"
SECRET = "the violet giraffe sings at noon"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A server with PostgreSQL's defaults, whose log is small enough to come round."""
    with separate(tmp_path / "server", "max_wal_size=96MB", "min_wal_size=96MB", "autovacuum=off") as superuser:
        yield tmp_path / "server" / "data", superuser


def sealed(superuser: str) -> set[bytes]:
    """What is sealed of the subject, and its wrapped key."""
    with psycopg.connect(superuser) as connection:
        connection.execute("SET row_security = off")
        found: set[bytes] = set()
        for table, column in (("captures", "content"), ("candidates", "content"), ("subjects", "wrapped_key")):
            statement = f"SELECT {column} FROM muniment.{table} WHERE holder = %s"
            rows = connection.execute(statement.encode(), [SUBJECT]).fetchall()
            found |= {bytes(row[0]) for row in rows if row[0]}
    return found


def in_log(data: Path, wanted: set[bytes]) -> set[str]:
    """The files of the write-ahead log that hold one of those."""
    files = [path for path in (data / "pg_wal").iterdir() if path.is_file()]
    return {path.name for path in files for content in [path.read_bytes()] if any(one in content for one in wanted)}


def segments(superuser: str) -> tuple[str, list[str]]:
    """The segment that is written now, and all there are."""
    with psycopg.connect(superuser) as connection:
        row = connection.execute("SELECT pg_walfile_name(pg_current_wal_insert_lsn())").fetchone()
        rows = connection.execute("SELECT name FROM pg_ls_waldir() WHERE name ~ '^[0-9A-F]{24}$'").fetchall()
    assert row is not None
    return str(row[0]), [str(one[0]) for one in rows]


def recycled(data: Path, superuser: str, wanted: set[bytes]) -> set[str]:
    """Go on to another segment until the server renames one with those for later use."""
    for _ in range(4):
        with psycopg.connect(superuser, autocommit=True) as connection:
            connection.execute("SELECT pg_switch_wal()")
            connection.execute("CHECKPOINT")
        current, there = segments(superuser)
        if found := in_log(data, wanted) & {name for name in there if name > current}:
            return found
    return set()


@pytest.mark.rule("SCL-6", "ERA-3")
def test_no_receipt_says_purged_while_the_server_renames_its_log_and_the_reason_is_reported(
    place: tuple[Path, str],
) -> None:
    data, superuser = place
    owner = make_conninfo(superuser, user="muniment_owner")
    address = Address.parse(owner, MASTER_KEYS.login_secret())
    anyio.run(migrate, address)
    people, clock = People("acme"), FakeClock()
    with Fabric.open(owner, clock=clock, master_keys=MASTER_KEYS) as fabric:
        opened: Any = fabric._fabric._opened
        fabric.capture(people.run(None), kind="statement", text=SECRET, subject=SUBJECT, classification="INTERNAL")
        fabric.consolidate(people.tenant_id)
        before = sealed(superuser)
        assert len(before) == 3
        assert recycled(data, superuser, before), "a segment of before was renamed for later use"

        fabric.erase(people.officer, subject=SUBJECT)
        fabric._portal.call(run_job, opened, Due(people.tenant_id, "purge"))
        (waits,) = fabric.erasures(people.auditor)
        assert waits.purged_at is None
        assert waits.purge_waits is not None and "wal_recycle is on" in waits.purge_waits
        assert "wal_recycle is on" in fabric._portal.call(purge_problems, owner)[0]
        fabric._portal.call(alerts.alert, opened, people.tenant_id)
        fabric._portal.call(alerts.alert, opened, people.tenant_id)
        result = [
            one.data for one in fabric.events(people.auditor, limit=200) if one.data.get("about") == "purge_waits"
        ]
        assert len(result) == 1 and result[0]["erasures"] == 1 and "wal_recycle" in result[0]["why"]
        assert in_log(data, before), "what is waited for is there"

        with psycopg.connect(superuser, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET wal_recycle = off")
            connection.execute("SELECT pg_reload_conf()")
        assert fabric._portal.call(purge_problems, owner) == []
        fabric._portal.call(purge.run, opened, people.tenant_id)
        (done,) = fabric.erasures(people.auditor)
        assert done.purged_at is not None
        assert done.purge_waits is None
    assert in_log(data, before) == set()


@pytest.mark.rule("SCL-6", "ERA-3")
def test_a_purge_waits_for_an_archive_that_gets_on_and_not_for_one_that_fails(tmp_path: Path) -> None:
    """A checkpoint removes no segment that the archive lacks, and an archive takes its time for each."""
    archive = tmp_path / "archive"
    archive.mkdir()
    archive.chmod(0o777)
    people, slow = People("acme"), f"archive_command=test ! -e {archive}/full && sleep 1 && cp %p {archive}/%f"
    with separate(tmp_path / "server", "archive_mode=on", slow, "wal_recycle=off", "autovacuum=off") as superuser:
        owner = make_conninfo(superuser, user="muniment_owner")
        anyio.run(migrate, Address.parse(owner, MASTER_KEYS.login_secret()))
        with Fabric.open(owner, clock=FakeClock(), master_keys=MASTER_KEYS) as fabric:
            opened: Any = fabric._fabric._opened

            def purged_after(subject: str) -> list[str | None]:
                said = {"kind": "statement", "text": SECRET, "classification": "INTERNAL"}
                fabric.capture(people.run(None), **said, subject=subject)
                fabric.consolidate(people.tenant_id)
                fabric.erase(people.officer, subject=subject)
                fabric._portal.call(run_job, opened, Due(people.tenant_id, "purge"))
                receipts = fabric.erasures(people.auditor)
                return [one.purge_waits for one in receipts if one.purged_at is None]

            assert purged_after(SUBJECT) == []
            (archive / "full").touch()
            with psycopg.connect(superuser, autocommit=True) as connection:
                connection.execute("SELECT pg_logical_emit_message(false, 'muniment', '')")
                connection.execute("SELECT pg_switch_wal()")
            eventually(lambda: value(superuser, "SELECT failed_count > 0 FROM pg_stat_archiver"))
            (waits,) = purged_after("customer:cus_78")
            assert waits is not None and "an archive_command that fails" in waits
