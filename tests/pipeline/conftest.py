"""What the tests of the stages share."""

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

from muniment import Fabric, load_pack
from muniment.testing import FakeClock, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.packs import put_in_force

HEAD = 'pack_meta: {id: acme, version: "1.0.0"}\n'
Opener = Callable[[str], AbstractContextManager[Fabric]]


@pytest.fixture
def under(server: TestServer, database: str, clock: FakeClock, tenant: str) -> Opener:
    """A fabric in whose tenant the pack given is in force."""

    @contextmanager
    def opened(text: str) -> Generator[Fabric]:
        pack = load_pack(HEAD + text)
        with Fabric.open(server.url(database), pack=pack, clock=clock, master_keys=MASTER_KEYS) as fabric:
            put_in_force(fabric, tenant, pack)
            yield fabric

    return opened


@pytest.fixture
def rows(server: TestServer, database: str, tenant: str) -> Any:
    """What stands in a table for this tenant, read as superuser on a connection of its own."""
    with server.connect(database) as owner:

        def read(table: str, columns: str = "*") -> list[dict[str, Any]]:
            # By number where there is one: a table's own order changes when space in it is used again.
            order = f"(to_jsonb({table.split()[-1]}) ->> 'seq')::bigint, ctid"
            found = owner.execute(f"SELECT {columns} FROM {table} WHERE tenant_id = %s ORDER BY {order}", [tenant])
            names = [column.name for column in found.description or []]
            return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

        yield read
