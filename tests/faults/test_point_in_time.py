"""Recovery to a point in time: what came after it is gone, erasures are repeated, and the chain proves the history."""

import base64
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
from tests.interfaces.command import CommandResult, run

TENANT, SUBJECT = "acme", "customer:cus_77"
SECRET = "the violet giraffe sings at noon"
# MASTER_KEYS, as the commands read it.
MASTER_KEY = b"a master key for tests, 32 bytes"
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


def _command(*words: object) -> CommandResult:
    done = run(*words, "--tenant", TENANT)
    assert done.code == 0, done.err
    return done


@pytest.mark.rule("SCL-5", "SCL-6", "ERA-3", "AUD-2", "AUD-4")
def test_a_server_is_brought_to_a_moment_and_what_was_erased_after_it_is_erased_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As docs/how-to/run-in-production.md says, with the commands that it names."""
    people, archive = People(TENANT), tmp_path / "archive"
    archive.mkdir()
    archive.chmod(0o777)
    early, late, list_ = (tmp_path / name for name in ("early.json", "late.json", "erasures.json"))
    kept = (f"archive_command=cp %p {archive}/%f", "archive_mode=on", *SETTINGS)
    monkeypatch.setenv("MUNIMENT_MASTER_KEY", base64.b64encode(MASTER_KEY).decode())
    with separate(tmp_path / "server", *kept) as superuser:
        owner = make_conninfo(superuser, user="muniment_owner")
        monkeypatch.setenv("MUNIMENT_DATABASE_URL", owner)
        anyio.run(migrate, Address.parse(owner, MASTER_KEYS.login_secret()))
        base_backup(superuser, tmp_path / "restored")
        with _opened(superuser) as fabric:
            said = {"kind": "statement", "text": SECRET, "classification": "INTERNAL"}
            fabric.capture(people.run(None), **said, subject=SUBJECT)
            fabric.capture(people.run(None), **said, subject="customer:cus_1")
            fabric.consolidate(people.tenant_id)
            fabric.erase(people.officer, subject="customer:cus_1")
            fabric.seal(people.tenant_id)
            _command("verify", "--export-head", early)
            before, moment = sealed(superuser), _now(superuser)
            last = fabric.events(people.auditor, latest=True, limit=1)[0].seq
            time.sleep(0.01)
            fabric.erase(people.officer, subject=SUBJECT)
            gone = fabric.capture(people.run(None), **said | {"text": "Lamps are blue."})
            fabric.seal(people.tenant_id)
        list_.write_text(_command("erasures", "--limit", 1000, "--json").out)
        _command("verify", "--export-head", late)
        _archived(superuser)

    with recovered(tmp_path / "restored", archive, moment, *SETTINGS) as superuser:
        monkeypatch.setenv("MUNIMENT_DATABASE_URL", make_conninfo(superuser, user="muniment_owner"))
        with _opened(superuser) as fabric:
            # The history up to the moment and nothing after it: the person is back, and the later head is refused.
            assert fabric.events(people.auditor, latest=True, limit=1)[0].seq == last
            assert [one.subject for one in fabric.erasures(people.auditor)] == ["customer:cus_1"]
            assert sealed(superuser) == before
            assert gone.capture_id not in {one.capture_id for one in fabric.captures.list(people.auditor)}
        _command("verify", "--head", early)
        refused = run("verify", "--head", late, "--json", "--tenant", TENANT)
        assert refused.code == 1 and [one["kind"] for one in refused.json["breaks"]] == ["head_mismatch"]

        again = _command("erase", "--again", list_, "--yes", "--json").json
        assert [one["subject"] for one in again] == [SUBJECT] and sealed(superuser) == set()
        assert _command("erase", "--again", list_, "--yes", "--json").json == []
        with _opened(superuser) as fabric:
            opened: Any = fabric._fabric._opened
            fabric._portal.call(purge.run, opened, people.tenant_id)
            assert all(one.purged_at is not None for one in fabric.erasures(people.auditor))
            assert in_log(tmp_path / "restored" / "data", before) == set()
            fabric.seal(people.tenant_id)
        # The head from before the moment shows that the erasure was repeated in the same history, on its number and none
        # of those that were lost; the head of what was lost stays refused.
        _command("verify", "--head", early)
        assert run("verify", "--head", late, "--tenant", TENANT).code == 1
        with _opened(superuser) as fabric:
            repeated = [one for one in fabric.events(people.auditor, after=last) if one.type == "memory.erased"]
            assert [one.seq for one in repeated] and min(one.seq for one in repeated) > last
