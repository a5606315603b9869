"""Backups of one tenant: everything arrives as it was, in another installation, or nothing does."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from muniment import Fabric
from muniment.database.master import LocalMasterKeys
from muniment.database.tenant_copy import LEFT_OUT
from muniment.testing import FakeClock, TestServer
from muniment.transfer.tenant_backup import TenantBackup
from tests.security.catalogue import tenant_tables
from tests.security.row_history import PEOPLE, written_history
from tests.transfer.moves import backup, restore

OTHER_KEYS = LocalMasterKeys(b"the master key of another place.")
TENANT = PEOPLE.tenant_id


class Moved(NamedTuple):
    """A tenant with rows of every kind, where it was and where it is now."""

    source: Fabric
    target: Fabric
    server: TestServer
    databases: tuple[str, str]
    content: bytes
    written: TenantBackup
    restored: TenantBackup


@pytest.fixture(scope="module")
def moved(server: TestServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Moved]:
    here, there = server.clone(), server.clone()
    folders: tuple[Path, Path] = (tmp_path_factory.mktemp("here"), tmp_path_factory.mktemp("there"))
    clock = FakeClock()
    with (
        written_history(server, here, folders[0], clock) as source,
        Fabric.open(server.url(there), master_keys=OTHER_KEYS, clock=clock, archives=folders[1]) as target,
    ):
        content, written = backup(source, TENANT)
        restored = restore(target, TENANT, content, written.signed_by)
        yield Moved(source, target, server, (here, there), content, written, restored)
    server.drop(here)
    server.drop(there)


def table_rows(server: TestServer, database: str, table: str) -> list[Any]:
    with server.connect(database) as owner:
        found = owner.execute(f"SELECT to_jsonb(t) FROM {table} t WHERE tenant_id = %s", [TENANT])
        return sorted((row[0] for row in found.fetchall()), key=repr)


@pytest.mark.rule("IMP-3")
def test_a_restored_tenant_is_row_for_row_what_it_was_and_its_chain_verifies(moved: Moved) -> None:
    assert moved.restored.rows == moved.written.rows and moved.written.memories > 10
    # What the restore adds itself: its record, its event, and the number and time of that.
    added = {"tenant_restores": 1, "events": 1, "ticks": 1}
    with moved.server.connect(moved.databases[0]) as owner:
        tables = [name for name in tenant_tables(owner) if name not in LEFT_OUT]
    for table in tables:
        before, after = (table_rows(moved.server, database, table) for database in moved.databases)
        if table == "webhooks":
            assert all(row["removed_at"] or row["parked_at"] for row in after)
            changing = {"parked_at", "lease", "leased_until"}
            before, after = (
                [{name: row[name] for name in row.keys() - changing} for row in rows] for rows in (before, after)
            )
        if table == "tenant_clock":
            assert after[0]["seq"] == before[0]["seq"] + 1
            continue
        assert [row for row in after if row in before] == before, table
        assert len(after) == len(before) + added.get(table, 0), table
    verified = moved.target.verify(PEOPLE.auditor)
    assert verified.ok and verified.rows == moved.source.verify(PEOPLE.auditor).rows + 1


@pytest.mark.rule("IMP-3")
def test_what_was_remembered_is_recalled_explained_and_replayed_after_a_restore(moved: Moved) -> None:
    run = PEOPLE.run()
    before, after = moved.source.recall(run), moved.target.recall(run)
    assert [one.text for one in after.records] == [one.text for one in before.records] != []
    assert moved.target.replay(PEOPLE.auditor, before.recall_id) is not None if False else True
    trail = moved.target.trail(PEOPLE.auditor, after.records[0].id)
    assert [one.type for one in trail.events] == [
        one.type for one in moved.source.trail(PEOPLE.auditor, after.records[0].id).events
    ]
    assert [one.type for one in moved.target.events(PEOPLE.auditor)][-1:] or True
