"""A database on a running cluster, whose last node a test can cut off."""

import contextlib
import time
from collections.abc import AsyncGenerator, Generator
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from muniment.database.address import Address
from muniment.database.storage import Storage
from muniment.opening import OWNER
from tests.cluster.proxies import Proxy, proxy
from tests.cluster.server import NODES, ClusterServer


@dataclass(frozen=True)
class ClusterDatabase:
    """A database on every node; the coordinator knows the last node through a proxy."""

    name: str
    last: Proxy

    @property
    def coordinator(self) -> str:
        """The superuser's address of the coordinator."""
        return make_conninfo(NODES[0], dbname=self.name)

    @property
    def workers(self) -> tuple[str, ...]:
        """The superuser's address of each other node, not through the proxy."""
        return tuple(make_conninfo(node, dbname=self.name) for node in NODES[1:])

    @property
    def owner(self) -> str:
        return make_conninfo(self.coordinator, user=OWNER)

    def execute(self, statement: str, *, place: str | None = None) -> list[tuple[Any, ...]]:
        """Run statements as superuser at the coordinator, or elsewhere."""
        with psycopg.connect(place or self.coordinator, autocommit=True) as connection:
            found = connection.execute(statement.encode())
            return found.fetchall() if found.description else []

    def tenants(self, count: int) -> tuple[list[str], list[str]]:
        """Names of tenants on the last node, and as many on others, once the tables are distributed."""
        places = self.execute(
            "SELECT 'tenant_' || n, (SELECT nodeport FROM pg_dist_placement JOIN pg_dist_node USING (groupid) WHERE shardid"
            " = get_shard_id_for_distribution_column('muniment.tenant_clock', 'tenant_' || n))"
            f" FROM generate_series(1, {40 * count}) n"
        )
        far = [tenant for tenant, port in places if port == self.last.port]
        near = [tenant for tenant, port in places if port != self.last.port]
        return far[:count], near[:count]


def wait_until_nodes_know(connection: "psycopg.Connection[tuple[object, ...]]") -> None:
    """Wait until Citus has told the nodes of a changed address: until then no table can be distributed."""
    give_up_at = time.monotonic() + 90
    while (
        connection.execute("SELECT FROM pg_dist_node WHERE hasmetadata AND NOT metadatasynced").fetchone() is not None
    ):
        assert time.monotonic() < give_up_at, "the nodes are not told of the change"
        time.sleep(0.05)


@contextlib.asynccontextmanager
async def storage_of(cluster: ClusterDatabase) -> AsyncGenerator[Storage]:
    """The tables of a cluster's database, as its owner."""
    storage = Storage(Address.parse(cluster.owner, None))
    try:
        yield storage
    finally:
        await storage.close()


@contextlib.contextmanager
def cluster_database(*, distributed: bool) -> Generator[ClusterDatabase]:
    """A database on every node, dropped at the end: empty, or migrated and distributed."""
    with ClusterServer() as server:
        name = server.clone() if distributed else server.empty()
        place = conninfo_to_dict(NODES[-1])
        try:
            with proxy((str(place["host"]), int(place["port"]))) as last:
                with server.connect(name) as connection:
                    connection.execute(
                        "SELECT citus_update_node(nodeid, '127.0.0.1', %s) FROM pg_dist_node WHERE nodename = %s"
                        " AND nodeport = %s::int",
                        [last.port, place["host"], place["port"]],
                    )
                    wait_until_nodes_know(connection)
                yield ClusterDatabase(name, last)
        finally:
            server.drop(name)
