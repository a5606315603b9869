"""`db distribute` on a running cluster: what was there is there, and what a cluster would weaken is found."""

import asyncio
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from muniment import Fabric
from muniment.database.address import Address
from muniment.database.cluster import checks, moving
from muniment.database.cluster.distribute import bring_up_to_date, distribute, examine
from muniment.database.cluster.script import superuser_script
from muniment.database.migrate import Migration, migrate, migrations, require_ready, set_bound
from muniment.errors import InvalidInput, StorageUnavailable
from muniment.opening import OWNER
from muniment.testing import FakeClock, People
from muniment.testing.database import MASTER_KEYS
from tests.cluster.server import NODES, SHARDS, ClusterServer
from tests.stories import promoted, run_job


@pytest.fixture
def undistributed(cluster: ClusterServer) -> Iterator[str]:
    """The name of a migrated database on the coordinator of a cluster."""
    name = cluster.empty()
    address = _address(cluster, name)
    asyncio.run(migrate(address))
    asyncio.run(set_bound(address.for_owner(), None))
    yield name
    cluster.drop(name)


@pytest.fixture(scope="module")
def distributed(cluster: ClusterServer) -> Iterator[str]:
    name = cluster.clone()
    yield name
    cluster.drop(name)


@pytest.fixture
def tenants() -> list[People]:
    return [People(f"tenant_{uuid4().hex[:8]}") for _ in range(6)]


def _address(cluster: ClusterServer, name: str) -> Address:
    return Address(conninfo_to_dict(cluster.url(name)), None)


def _open(cluster: ClusterServer, name: str) -> Fabric:
    return Fabric.open(cluster.url(name), clock=FakeClock(), master_keys=MASTER_KEYS)


def _values(fabric: Fabric, people: People) -> list[Any]:
    return [one.value for one in fabric.recall(people.run("cust_1")).records]


def _shard(cluster: ClusterServer, name: str, table: str) -> tuple[str, dict[str, Any]]:
    """The shard of a table with the most rows, and the address of the node that has it."""
    with cluster.connect(name) as connection:
        row = connection.execute(
            "SELECT s.shardid, s.nodename, s.nodeport FROM citus_shards s"
            " JOIN run_command_on_shards(%s, 'SELECT count(*) FROM %%s') r ON r.shardid = s.shardid"
            " ORDER BY r.result::int DESC, s.shardid LIMIT 1",
            [f"muniment.{table}"],
        ).fetchone()
    assert row is not None
    return f"{table}_{row[0]}", conninfo_to_dict(NODES[0]) | {"host": row[1], "port": row[2], "dbname": name}


def _on_shard(cluster: ClusterServer, name: str, table: str, statement: str) -> None:
    """Run a statement on one shard of a table, on the node that has it; `{}` is its name."""
    shard, place = _shard(cluster, name, table)
    with psycopg.connect(**place, autocommit=True) as node:
        node.execute("SET citus.enable_manual_changes_to_shards = on")
        node.execute(sql.SQL(statement).format(sql.Identifier("muniment", shard)))  # type: ignore[arg-type]


def _samples(cluster: ClusterServer, name: str, table: str) -> int:
    """How many samples the planner has of the content in that shard."""
    shard, place = _shard(cluster, name, table)
    with psycopg.connect(**place, autocommit=True) as node:
        found = node.execute(
            "SELECT count(*) FROM pg_statistic s JOIN pg_attribute a ON a.attrelid = s.starelid AND a.attnum = s.staattnum"
            " WHERE s.starelid = to_regclass(%s) AND a.attname = 'content'",
            [f"muniment.{shard}"],
        ).fetchone()
    assert found is not None
    return int(found[0])


@pytest.mark.rule("SCL-1", "ISO-1")
def test_what_was_remembered_before_is_remembered_on_the_cluster(
    cluster: ClusterServer, undistributed: str, tenants: list[People]
) -> None:
    with _open(cluster, undistributed) as fabric:
        for n, people in enumerate(tenants):
            promoted(fabric, people, value=f"before {n}")
    done = asyncio.run(distribute(_address(cluster, undistributed), shards=SHARDS))
    assert done.problems == ()
    with _open(cluster, undistributed) as fabric:
        for n, people in enumerate(tenants):
            assert _values(fabric, people) == [f"before {n}"]
            promoted(fabric, people, value="after", predicate="prefers_language")
            assert set(_values(fabric, people)) == {f"before {n}", "after"}
            run_job(fabric, "seal", people.tenant_id)
            assert fabric.verify(people.auditor).ok
    with cluster.connect(undistributed) as superuser:
        left = superuser.execute("SELECT pg_relation_size('muniment.events'), pg_relation_size('muniment.captures_3')")
        assert left.fetchone() == (0, 0), "the coordinator keeps no rows that an erasure would not reach"
    found = asyncio.run(examine(_address(cluster, undistributed)))
    assert found is not None and sum(node.shards for node in found.nodes) > 0
    assert len([node for node in found.nodes if node.shards]) > 1, "the tenants are on several nodes"


@pytest.mark.rule("SCL-1")
@pytest.mark.parametrize("step", ["distributing candidates", "key memories", "row security of events"])
def test_an_interrupted_distribution_lets_nobody_in_and_is_continued(
    cluster: ClusterServer, undistributed: str, tenants: list[People], step: str
) -> None:
    people = tenants[0]
    with _open(cluster, undistributed) as fabric:
        promoted(fabric, people)
    address = _address(cluster, undistributed)

    class Interrupted(Exception): ...

    def interrupt(what: str, _n: int, _total: int) -> None:
        if what.startswith(step):
            raise Interrupted

    with pytest.raises(Interrupted):
        asyncio.run(distribute(address, interrupt, shards=SHARDS))
    with pytest.raises(StorageUnavailable, match="being distributed"):
        asyncio.run(require_ready(address))
    with (
        cluster.connect(undistributed, "muniment_writer") as login,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        login.execute("SELECT * FROM muniment.tenants")
    assert asyncio.run(distribute(address, shards=SHARDS)).problems == ()
    with _open(cluster, undistributed) as fabric:
        assert _values(fabric, people) == ["email"]
    with cluster.connect(undistributed) as owner:
        kept = owner.execute(
            "SELECT count(*) FROM pg_constraint WHERE contype = 'f' AND connamespace = 'muniment'::regnamespace"
            " AND conparentid = 0 AND NOT EXISTS (SELECT FROM pg_dist_shard s WHERE conname LIKE '%_' || s.shardid)"
        ).fetchone()
    assert kept is not None and int(str(kept[0])) > 100


@pytest.mark.rule("SCL-2")
@pytest.mark.parametrize(
    ("table", "statement", "says"),
    [
        ("captures_3", "ALTER TABLE {} ALTER COLUMN content SET STATISTICS 100", "samples"),
        ("memories", "CREATE POLICY narrow ON {} AS RESTRICTIVE FOR SELECT USING (false)", "restrictive"),
        ("memories", "ALTER TABLE {} NO FORCE ROW LEVEL SECURITY", "without forced row-level security"),
        ("retractions", "DROP POLICY tenant_read ON {}", "other policies"),
        ("memories", "ALTER POLICY tenant_read ON {} USING (true)", "other policies, open"),
    ],
)
def test_what_a_cluster_weakens_is_found_and_nothing_is_served_meanwhile(
    cluster: ClusterServer, distributed: str, table: str, statement: str, says: str
) -> None:
    address = _address(cluster, distributed)
    asyncio.run(require_ready(address))
    undo = {
        "samples": "ALTER TABLE {} ALTER COLUMN content SET STATISTICS 0",
        "restrictive": "DROP POLICY narrow ON {}",
        "without forced row-level security": "ALTER TABLE {} FORCE ROW LEVEL SECURITY",
        "other policies": "CREATE POLICY tenant_read ON {} FOR SELECT TO muniment_writer, muniment_recall,"
        " muniment_auditor, muniment_privacy, muniment_jobs, muniment_owner USING (tenant_id = current_setting('muniment.tenant', true))",
    }
    undo["other policies, open"] = (
        "ALTER POLICY tenant_read ON {} USING (tenant_id = current_setting('muniment.tenant', true))"
    )
    _on_shard(cluster, distributed, table, statement)
    try:
        with pytest.raises(StorageUnavailable, match=says.partition(",")[0]):
            asyncio.run(require_ready(address))
    finally:
        _on_shard(cluster, distributed, table, undo[says])
    asyncio.run(require_ready(address))


@pytest.mark.rule("SCL-2", "ERA-3", "ISO-1")
@pytest.mark.parametrize(
    ("statement", "undo", "says"),
    [
        (
            "ALTER DATABASE {} SET log_min_error_statement = error",
            "ALTER DATABASE {} SET log_min_error_statement = panic",
            "log may contain values, because of log_min_error_statement",
        ),
        (
            "ALTER DATABASE {} SET log_min_duration_statement = 500",
            "ALTER DATABASE {} SET log_min_duration_statement = -1",
            "log may contain values, because of log_min_duration_statement",
        ),
        (
            "ALTER ROLE muniment_auditor BYPASSRLS",
            "ALTER ROLE muniment_auditor NOBYPASSRLS",
            "row-level security does not apply to muniment_auditor there",
        ),
    ],
)
def test_a_node_that_logs_what_it_is_given_or_frees_a_login_is_found(
    cluster: ClusterServer, distributed: str, statement: str, undo: str, says: str
) -> None:
    address = _address(cluster, distributed)

    def change(text: str) -> None:
        with psycopg.connect(NODES[-1], dbname=distributed, autocommit=True) as node:
            node.execute("SET citus.enable_ddl_propagation = off")
            node.execute(sql.SQL(text).format(sql.Identifier(distributed)))  # type: ignore[arg-type]

    change(statement)
    try:
        with pytest.raises(StorageUnavailable, match=says):
            asyncio.run(require_ready(address))
    finally:
        change(undo)
    asyncio.run(require_ready(address))


@pytest.mark.rule("SCL-2")
def test_the_owner_may_call_nothing_that_copies_only_what_it_sees(cluster: ClusterServer, distributed: str) -> None:
    """Row security hides all rows from the owner: a shard that it moved would arrive empty."""
    address = _address(cluster, distributed)
    with cluster.connect(distributed, OWNER) as owner, pytest.raises(psycopg.errors.InsufficientPrivilege):
        owner.execute("SELECT isolate_tenant_to_new_shard('muniment.tenants', 'one'::text, 'CASCADE')")
    with cluster.connect(distributed) as superuser:
        superuser.execute("SET citus.enable_ddl_propagation = off")
        moves = "FUNCTION citus_move_shard_placement(bigint, text, int, text, int, citus.shard_transfer_mode)"
        superuser.execute(f"GRANT EXECUTE ON {moves} TO PUBLIC")
        try:
            with pytest.raises(StorageUnavailable, match="citus_move_shard_placement"):
                asyncio.run(require_ready(address))
        finally:
            superuser.execute(f"REVOKE EXECUTE ON {moves} FROM PUBLIC")
    asyncio.run(require_ready(address))


_COPY_ROWS = """
SELECT p.proname FROM pg_proc p
JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'citus'
WHERE p.proname ~ '^(citus|master)_(move|copy|split|drain)_|^isolate_|^replicate_table|rebalance_(table_shards|start)$'
  OR p.proname ~ 'undistribute_table$|^alter_(distributed_table|table_set)|_concurrently$'
"""


@pytest.mark.rule("SCL-2")
def test_every_function_of_citus_that_is_named_like_one_that_copies_rows_is_revoked_from_the_owner(
    cluster: ClusterServer, distributed: str
) -> None:
    with cluster.connect(distributed) as superuser:
        copying = {str(name) for (name,) in superuser.execute(_COPY_ROWS)}  # type: ignore[arg-type]
        allowed = superuser.execute(
            "SELECT DISTINCT proname FROM pg_proc WHERE proname = ANY (%s) AND has_function_privilege(%s, oid, 'EXECUTE')",
            [list(copying), OWNER],
        ).fetchall()
    assert len(copying) > 10
    assert allowed == []


@pytest.mark.rule("SCL-1")
def test_the_superusers_script_makes_a_cluster_and_can_be_run_again(cluster: ClusterServer, tmp_path: Path) -> None:
    psql = shutil.which("psql")
    if psql is None:
        pytest.skip("psql is not installed")
    name = f"test_{uuid4().hex}"
    places = [conninfo_to_dict(node) for node in NODES]
    workers = [f"{place['host']}:{place['port']}" for place in places[1:]]
    file = tmp_path / "prepare.sql"
    file.write_text(superuser_script(Address(conninfo_to_dict(cluster.url(name)), b"x" * 32), workers))
    with cluster.connect("postgres") as superuser:
        superuser.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(name), sql.Identifier(OWNER)))
    with cluster.connect(name) as superuser:
        superuser.execute("CREATE EXTENSION vector SCHEMA public")
    try:
        for _ in range(2):
            done = subprocess.run(
                [psql, "-q", "-v", "ON_ERROR_STOP=1", "-d", NODES[0], "-f", str(file)], capture_output=True, text=True
            )
            assert done.returncode == 0, done.stderr
        asyncio.run(migrate(_address(cluster, name)))
        assert asyncio.run(distribute(_address(cluster, name), shards=SHARDS)).problems == ()
    finally:
        cluster.drop(name)


@pytest.mark.rule("SCL-2", "ERA-1")
def test_samples_of_content_that_a_shard_took_are_removed(
    cluster: ClusterServer, distributed: str, tenants: list[People]
) -> None:
    with _open(cluster, distributed) as fabric:
        for people in tenants:
            promoted(fabric, people)
    with cluster.connect(distributed) as superuser:
        rows = {n: superuser.execute(f"SELECT count(*) FROM captures_{n}").fetchone() for n in range(8)}
    table = f"captures_{next(n for n, count in rows.items() if count != (0,))}"
    _on_shard(cluster, distributed, table, "ALTER TABLE {} ALTER COLUMN content SET STATISTICS 100")
    _on_shard(cluster, distributed, table, "ANALYZE {}")

    async def repair() -> tuple[list[str], int, list[str]]:
        async with await psycopg.AsyncConnection.connect(cluster.url(distributed), autocommit=True) as owner:
            return await checks.problems(owner), await checks.repair(owner), await checks.problems(owner)

    assert _samples(cluster, distributed, table) == 1
    before, repaired, after = asyncio.run(repair())
    assert "samples" in before[0]
    assert repaired == 1
    assert after == []
    assert _samples(cluster, distributed, table) == 0


@pytest.mark.rule("SCL-2", "SCL-5", "SCL-1")
def test_a_tenant_gets_a_shard_of_its_own_and_moves_with_all_it_has(
    cluster: ClusterServer, distributed: str, tenants: list[People]
) -> None:
    people, other = tenants[:2]
    address = _address(cluster, distributed)
    with _open(cluster, distributed) as fabric:
        promoted(fabric, people)
        promoted(fabric, other)
        before = {row.seq for row in fabric.events(people.auditor)}
        with pytest.raises(InvalidInput, match="superuser"):
            asyncio.run(moving.isolate(address, people.tenant_id))
        superuser = Address(conninfo_to_dict(cluster.conninfo) | {"dbname": distributed}, None)
        place = asyncio.run(moving.isolate(superuser, people.tenant_id))
        assert place.alone
        found = asyncio.run(examine(address))
        assert found is not None
        target = next(node.name for node in found.nodes if node.name != place.node and not node.coordinator)
        moved = asyncio.run(moving.move(superuser, people.tenant_id, target))
        assert (moved.node, moved.alone) == (target, True)
        assert moved.repaired > 0, "a shard that moves loses settings, and they were made again"
        assert _values(fabric, people) == ["email"]
        assert _values(fabric, other) == ["email"]
        # Numbers go on where they were, whichever node gives them.
        promoted(fabric, people, value="de", predicate="prefers_language")
        after = [row.seq for row in fabric.events(people.auditor) if row.seq not in before]
        assert after and min(after) > max(before)
        run_job(fabric, "seal", people.tenant_id)
        assert fabric.verify(people.auditor).ok
    asyncio.run(require_ready(address))


@pytest.mark.rule("SCL-1", "SCL-2")
def test_a_later_migration_runs_on_distributed_tables(
    cluster: ClusterServer, distributed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new table, a new column with content, a key between them: as CONTRIBUTING says that migrations are written."""
    latest = migrations()[-1].version
    text = """
-- oldest program: {latest}
-- include schema/00_helpers.sql
ALTER TABLE webhooks ADD COLUMN remark bytea;
SELECT no_samples('webhooks', 'remark');
CREATE TABLE webhook_remarks (
  tenant_id  text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  webhook_id text COLLATE "C" NOT NULL,
  content    bytea NOT NULL,
  PRIMARY KEY (tenant_id, webhook_id),
  FOREIGN KEY (tenant_id, webhook_id) REFERENCES webhooks (tenant_id, webhook_id)
);
SELECT no_samples('webhook_remarks', 'content');
SELECT rows_of_tenant('webhook_remarks');
ALTER TABLE webhook_remarks ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
DROP FUNCTION rows_of_tenant, rows_of_transaction, add_writing_policy, add_policy, divide_by_tenant, key_between_partitions, no_samples;
"""
    from muniment.database import migrate as module

    step = Migration(latest + 1, "remarks", module._included(text.format(latest=latest)))
    monkeypatch.setattr(module, "migrations", lambda: (*migrations(), step))
    address = _address(cluster, distributed)
    assert asyncio.run(bring_up_to_date(address)) == (f"{latest + 1:04d}_remarks",)
    found = asyncio.run(examine(address))
    assert found is not None and found.problems == ()
    with cluster.connect(distributed) as owner:
        row = owner.execute(
            "SELECT count(*) FROM pg_dist_partition WHERE logicalrelid = 'muniment.webhook_remarks'::regclass"
        ).fetchone()
    assert row == (1,)
