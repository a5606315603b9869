"""What the tests of the stages share."""

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager

import pytest

from muniment import Fabric, load_pack
from muniment.testing import FakeClock, TestServer
from muniment.testing.database import MASTER_KEYS

HEAD = 'pack_meta: {id: acme, version: "1.0.0"}\n'
Opener = Callable[[str], AbstractContextManager[Fabric]]


@pytest.fixture
def under(server: TestServer, database: str, clock: FakeClock) -> Opener:
    """A fabric whose own pack is the one given."""

    @contextmanager
    def opened(text: str) -> Generator[Fabric]:
        pack = load_pack(HEAD + text)
        with Fabric.open(server.url(database), pack=pack, clock=clock, master_keys=MASTER_KEYS) as fabric:
            yield fabric

    return opened
