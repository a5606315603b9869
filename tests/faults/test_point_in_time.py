"""Recovery to a point in time: what came after it is gone, erasures are repeated, and the chain proves the history."""

import time
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
from muniment.testing import People
from muniment.testing.database import MASTER_KEYS
from tests.faults.servers import base_backup, eventually, recovered, separate, value
from tests.faults.test_purge_settings import in_log, sealed

SUBJECT = "customer:cus_77"
SECRET = "the violet giraffe sings at noon"
SETTINGS = ("wal_recycle=off", "autovacuum=off", "max_wal_size=96MB", "min_wal_size=32MB")


def _opened(superuser: str) -> Fabric:
    return Fabric.open(make_conninfo(superuser, user="muniment_owner"), master_keys=MASTER_KEYS)


def _now(superuser: str) -> str:
    with psycopg.connect(superuser) as connection:
        row = connection.execute("SELECT clock_timestamp()::text").fetchone()
    assert row is not None
    return str(row[0])


def _archived(superuser: str) -> None:
    """Have the log archived up to now."""
    with psycopg.connect(superuser, autocommit=True) as connection:
        row = connection.execute("SELECT pg_walfile_name(pg_switch_wal())").fetchone()
    assert row is not None
    eventually(lambda: str(value(superuser, "SELECT last_archived_wal FROM pg_stat_archiver")) >= str(row[0]))


@pytest.mark.rule("SCL-5", "SCL-6", "ERA-3", "AUD-4")
def test_a_server_is_brought_to_a_moment_and_what_was_erased_after_it_is_erased_again(tmp_path: Path) -> None:
    people, archive = People("acme"), tmp_path / "archive"
    archive.mkdir()
    archive.chmod(0o777)
    kept = (f"archive_command=cp %p {archive}/%f", "archive_mode=on", *SETTINGS)
    with separate(tmp_path / "server", *kept) as superuser:
        address = Address.parse(make_conninfo(superuser, user="muniment_owner"), MASTER_KEYS.login_secret())
        anyio.run(migrate, address)
        base_backup(superuser, tmp_path / "restored")
        with _opened(superuser) as fabric:
            said = {"kind": "statement", "text": SECRET, "classification": "INTERNAL"}
            fabric.capture(people.run(None), **said, subject=SUBJECT)
            fabric.consolidate(people.tenant_id)
            fabric.seal(people.tenant_id)
            head = fabric.chain_head(people.auditor)
            before, moment = sealed(superuser), _now(superuser)
            time.sleep(0.01)
            fabric.erase(people.officer, subject=SUBJECT)
            (receipt,) = fabric.erasures(people.auditor)
            late = fabric.capture(people.run(None), **said | {"text": "Lamps are blue."})
        _archived(superuser)

    with recovered(tmp_path / "restored", archive, moment, *SETTINGS) as superuser, _opened(superuser) as fabric:
        assert fabric.verify(people.auditor, head=head).ok
        assert fabric.erasures(people.auditor) == [] and sealed(superuser) == before
        assert late.capture_id not in {one.capture_id for one in fabric.captures.list(people.auditor)}

        again = fabric.erase(people.officer, subject=SUBJECT)
        assert again.erasure_id != receipt.erasure_id and sealed(superuser) == set()
        opened: Any = fabric._fabric._opened
        fabric._portal.call(purge.run, opened, people.tenant_id)
        assert fabric.erasures(people.auditor)[0].purged_at is not None
        assert in_log(tmp_path / "restored" / "data", before) == set()
        fabric.seal(people.tenant_id)
        assert fabric.verify(people.auditor, head=head).ok, "the head from before shows that this is the same history"
