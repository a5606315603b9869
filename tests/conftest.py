"""One embedded server a run; one migrated database that most tests share, each in a tenant of its own."""

import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from hypothesis import settings

from muniment import Fabric, load_pack
from muniment.language.readers import Readers
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.cluster.listing import many_shards
from tests.cluster.server import NODES, ClusterServer
from tests.connections import Connections
from tests.pack_activation import put_in_force
from tests.soak import SOAKING, examples

# The first example of a property may load what later ones use; no bar stands on a clock. The suite tries the same examples
# each time, so that a change is judged by itself; `make soak` draws new ones.
settings.register_profile("suite", deadline=None, max_examples=examples(40), derandomize=not SOAKING)
settings.load_profile("suite")

HEAD = 'pack_meta: {id: acme, version: "1.0.0"}\n'
Opener = Callable[[str], AbstractContextManager[Fabric]]
ReadingOpener = Callable[..., AbstractContextManager[Fabric]]
Connect = Callable[..., "psycopg.Connection[tuple[object, ...]]"]

MEMORY = Path("/dev/shm")
ROOM = 5 * 1024**3
ENDING = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
_of_this_run = pytest.StashKey[Path]()


def pytest_configure(config: pytest.Config) -> None:
    """Temporary files lie in memory where there is room: making a server is mostly waiting for a disk.

    A TMPDIR that is given stays, and so does what the tests leave in it. Texts are read by the rules alone, unless a test
    names its readers: what the tests expect does not change with the weights.
    """
    os.environ["MUNIMENT_READERS"] = "off"
    # A shell has what it runs in the background ignore some signals, and so would every process that a test starts.
    for ignored in (one for one in ENDING if signal.getsignal(one) is signal.SIG_IGN):
        signal.signal(ignored, signal.default_int_handler if ignored is signal.SIGINT else signal.SIG_DFL)
    if "TMPDIR" in os.environ or not os.access(MEMORY, os.W_OK) or shutil.disk_usage(MEMORY).free < ROOM:
        return
    folder = config.stash[_of_this_run] = Path(tempfile.mkdtemp(prefix="mun-", dir=MEMORY))
    folder.chmod(0o755)  # Some tests run servers as another user below it.
    # What this process looked up before stays where it was; those it starts, the workers too, read the environment.
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)


def pytest_collection() -> None:
    """While all modules are loaded nothing becomes rubbish worth a search for it."""
    gc.disable()


def pytest_collection_finish() -> None:
    """What was loaded stays to the end: it is not searched for rubbish again and again."""
    gc.freeze()
    gc.enable()


def pytest_unconfigure(config: pytest.Config) -> None:
    if (folder := config.stash.get(_of_this_run, None)) is not None:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def server() -> Iterator[TestServer]:
    if NODES:
        with ClusterServer() as cluster:
            yield cluster
        return
    with tempfile.TemporaryDirectory(prefix="mt") as folder, TestServer(Path(folder) / "home") as running:
        yield running


@pytest.fixture(scope="session")
def database(server: TestServer) -> Iterator[str]:
    name = server.clone()
    yield name
    if NODES:
        server.drop(name)


@pytest.fixture
def fresh_database(server: TestServer) -> Iterator[str]:
    """A database of the test's own."""
    name = server.clone()
    yield name
    server.drop(name)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def tenant() -> str:
    return f"tenant_{uuid4().hex[:12]}"


@pytest.fixture
def people(tenant: str) -> People:
    return People(tenant)


@pytest.fixture
def others() -> People:
    """The people of another tenant."""
    return People(f"tenant_{uuid4().hex[:12]}")


@pytest.fixture(scope="session")
def connections(server: TestServer, database: str) -> Iterator[Connections]:
    """Open connections to the shared database, for fabrics that are about something else than opening and closing."""
    with Connections.to(server.url(database)) as opened:
        yield opened


@pytest.fixture
def fabric(connections: Connections, clock: FakeClock) -> Iterator[Fabric]:
    with connections.fabric(clock=clock) as opened:
        yield opened


@pytest.fixture
def as_role(server: TestServer, database: str, tenant: str) -> Iterator[Connect]:
    """Connect to the shared database as a task's login, with a tenant set (or none) for the session."""
    opened: dict[tuple[str, str | None], psycopg.Connection[tuple[object, ...]]] = {}

    def connect(task: str, in_tenant: str | None = tenant) -> "psycopg.Connection[tuple[object, ...]]":
        if (connection := opened.get((task, in_tenant))) is None:
            if in_tenant is not None and isinstance(server, ClusterServer):
                connection = server.connect_with(database, f"muniment_{task}", {"muniment.tenant": in_tenant})
            else:
                connection = server.connect(database, f"muniment_{task}")
                if in_tenant is not None:
                    connection.execute("SELECT set_config('muniment.tenant', %s, false)", [in_tenant])
            opened[task, in_tenant] = connection
        return connection

    yield connect
    for connection in opened.values():
        connection.close()


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
def reading(server: TestServer, database: str, clock: FakeClock, tenant: str, readers: Readers) -> ReadingOpener:
    """A fabric with the trained readers of the test's own fixture `readers`, and with the pack given in force."""

    @contextmanager
    def opened(text: str = "") -> Generator[Fabric]:
        pack, place = load_pack(HEAD + text), server.url(database)
        with Fabric.open(place, pack=pack, clock=clock, master_keys=MASTER_KEYS, readers=readers) as fabric:
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


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("MUNIMENT_") and name != "MUNIMENT_READERS"]:
        monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def to_many_shards() -> Iterator[list[str]]:
    """The statements that went to several shards of a cluster and list no tenants; there must be none (SCL-1)."""
    found: list[str] = []
    with many_shards(found) if NODES else nullcontext():
        yield found
    assert found == []


@pytest.fixture(autouse=True)
def no_terminal_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
