"""The program's own migrations, on tables that an earlier version distributed (SCL-1)."""

import asyncio
from collections.abc import Iterator
from unittest.mock import patch

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from muniment import Fabric
from muniment.database.address import Address
from muniment.database.cluster.distribute import bring_up_to_date, distribute, examine
from muniment.database.migrate import migrations, set_bound
from muniment.testing import FakeClock, People
from muniment.testing.database import MASTER_KEYS
from tests.cluster.server import NODES, SHARDS, ClusterServer
from tests.database.databases import migrate_to
from tests.database.schema_dump import schema
from tests.stories import promoted, run_job, values

# The first migration after which the tables can be distributed.
DISTRIBUTABLE = 51


@pytest.fixture
def empty(cluster: ClusterServer) -> Iterator[str]:
    name = cluster.empty()
    yield name
    cluster.drop(name)


@pytest.fixture
def new(cluster: ClusterServer) -> Iterator[str]:
    """A database that this program made and distributed."""
    name = cluster.clone()
    yield name
    cluster.drop(name)


@pytest.mark.rule("SCL-1", "SCL-2")
def test_a_schema_that_an_earlier_version_distributed_gets_every_later_migration(
    cluster: ClusterServer, new: str, empty: str
) -> None:
    address = Address(conninfo_to_dict(cluster.url(empty)), None)
    with cluster.connect(empty) as superuser:
        # As on a server that is no cluster yet.
        database = sql.Identifier(empty)
        superuser.execute(sql.SQL("ALTER DATABASE {} SET citus.enable_ddl_propagation = off").format(database))
        migrate_to(cluster, empty, DISTRIBUTABLE)
        superuser.execute(sql.SQL("ALTER DATABASE {} RESET citus.enable_ddl_propagation").format(database))
    known = tuple(step for step in migrations() if step.version <= DISTRIBUTABLE)
    with patch("muniment.database.migrate.migrations", lambda: known):
        assert asyncio.run(distribute(address, shards=SHARDS)).problems == ()
    with cluster.connect(empty) as superuser:
        superuser.execute("INSERT INTO tenants (tenant_id, created_at) VALUES ('acme', now())")
    later = tuple(f"{step.version:04d}_{step.name}" for step in migrations() if step.version > DISTRIBUTABLE)
    assert later[:2] == ("0052_of_a_person", "0053_presence")
    assert asyncio.run(bring_up_to_date(address)) == later
    found = asyncio.run(examine(address))
    assert found is not None and found.problems == ()
    asyncio.run(set_bound(address.for_owner(), None))
    assert schema(cluster, empty) == schema(cluster, new)
    # Each node has shards of the new table, and none of the one that it replaces.
    shards = "SELECT substring(relname FROM '[a-z]+') FROM pg_class WHERE relkind = 'r' AND relname ~ '^(presence|attendances)_'"
    for node in NODES[1:]:
        with psycopg.connect(
            make_conninfo(node, dbname=empty), options="-c citus.override_table_visibility=off"
        ) as there:
            assert {name for (name,) in there.execute(shards.encode()).fetchall()} == {"presence"}
    with Fabric.open(cluster.url(empty), clock=FakeClock(), master_keys=MASTER_KEYS) as fabric:
        for people in (People("acme"), People("globex")):
            promoted(fabric, people)
            assert values(fabric, people) == ["email"]
            run_job(fabric, "seal", people.tenant_id)
            assert fabric.verify(people.auditor).ok
