"""A standby of a cluster's node."""

import contextlib
from collections.abc import Generator
from dataclasses import dataclass

import psycopg
from psycopg.conninfo import conninfo_to_dict

from tests.cluster.databases import ClusterDatabase, wait_until_nodes_know
from tests.cluster.node_copies import copy_of
from tests.faults.servers import eventually, value


@dataclass(frozen=True)
class Standby:
    """A standby of the cluster's last node, and the superuser's address of the test's database on it."""

    place: str
    port: int
    of: ClusterDatabase

    def register(self) -> None:
        """Have the cluster know it as the node's secondary."""
        self.of.execute(f"SELECT citus_add_secondary_node('127.0.0.1', {self.port}, '127.0.0.1', {self.of.last.port})")
        self._told()

    def take_over(self) -> None:
        """Cut the node off, and have the standby take its place, as docs/how-to/scale-out.md says."""
        self.wait_for_all()
        self.of.last.cut()
        with psycopg.connect(self.place, autocommit=True) as connection:
            connection.execute("SELECT pg_promote()")
        change = "SELECT citus_update_node(nodeid, '{}', {}{}) FROM pg_dist_node WHERE nodeport = {}"
        # No row of a node can be removed while one is away, and no two have the same address.
        self._changed(change.format("former", self.port, "", self.port))
        self._changed(change.format("127.0.0.1", self.port, ", force => true", self.of.last.port))
        self._told()
        self.of.execute(f"SELECT citus_remove_node('former', {self.port})")

    def _changed(self, statement: str) -> None:
        """Change the cluster's list of nodes; Citus's own maintenance can get into a deadlock with it, which ends it."""
        for tries_left in (2, 1, 0):
            try:
                self.of.execute(statement)
            except psycopg.errors.DeadlockDetected:
                if not tries_left:
                    raise
            else:
                return

    def wait_for_all(self) -> None:
        """Wait until it has everything that the node has written."""
        written = value(self.of.workers[-1], "SELECT pg_current_wal_insert_lsn()")
        eventually(lambda: value(self.place, f"SELECT pg_last_wal_replay_lsn() >= '{written}'"))

    def _told(self) -> None:
        with psycopg.connect(self.of.coordinator, autocommit=True) as connection:
            wait_until_nodes_know(connection)


@contextlib.contextmanager
def standby_of_last(cluster: ClusterDatabase) -> Generator[Standby]:
    """A standby of the cluster's last node, which the cluster knows nothing of yet; it is removed at the end."""
    with copy_of(cluster.workers[-1]) as made:
        made.copy("-R", "-X", "stream")
        with made.serving() as place:
            yield Standby(place, int(str(conninfo_to_dict(place)["port"])), cluster)
