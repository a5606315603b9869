from collections.abc import Iterator

import pytest

from muniment import Fabric
from muniment.testing import FakeClock, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.worker.tenants import BUSY, QUIET, say


@pytest.fixture
def works(server: TestServer, fresh_database: str, clock: FakeClock) -> Iterator[Fabric]:
    """Two tenants in a database of their own, and a fabric that has read nothing of them yet."""
    place = server.url(fresh_database)
    with Fabric.open(place, clock=clock, master_keys=MASTER_KEYS) as first:
        for people in (QUIET, BUSY):
            say(first, people)
    with Fabric.open(place, clock=clock, master_keys=MASTER_KEYS) as opened:
        yield opened
