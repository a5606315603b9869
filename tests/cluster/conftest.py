"""Tests on a running Citus cluster, which `MUNIMENT_TEST_CLUSTER` names; not run without one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.databases import ClusterDatabase, cluster_database
from tests.cluster.server import NODES, ClusterServer
from tests.cluster.tables import make_tables

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not NODES:
        for item in items:
            if HERE in item.path.parents:
                item.add_marker(
                    pytest.mark.skip(reason="MUNIMENT_TEST_CLUSTER names no cluster: tests/cluster was not run")
                )


@pytest.fixture(scope="module")
def cluster() -> Iterator[ClusterServer]:
    """Databases of their own on the cluster, for a module that empties and distributes them itself."""
    with ClusterServer() as server:
        yield server


@pytest.fixture(scope="module")
def divided() -> Iterator[ClusterDatabase]:
    """A few tables on every node, which the tests of a module share."""
    with cluster_database(distributed=False) as made:
        make_tables(made)
        yield made


@pytest.fixture(scope="module")
def distributed() -> Iterator[ClusterDatabase]:
    """All tables, distributed as `muniment db distribute` does it; the tests of a module share them."""
    with cluster_database(distributed=True) as made:
        yield made
