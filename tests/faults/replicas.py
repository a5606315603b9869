"""A primary and a standby for reading, and the reads that may go there."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from muniment import Fabric
from muniment.database.address import Address
from muniment.database.migrate import migrate
from muniment.model.reads import ReadFrom, noting_reads
from muniment.testing import People
from muniment.testing.database import MASTER_KEYS
from tests.faults.servers import eventually, separate, standby_of, value
from tests.stories import submitted

SETTINGS = ("wal_recycle=off", "autovacuum=off", "max_wal_size=96MB", "min_wal_size=32MB")


@dataclass
class Servers:
    """A primary, and a standby that it does not wait for; the superuser's addresses."""

    primary: str
    standby: str

    @property
    def url(self) -> str:
        hosts = [str(conninfo_to_dict(place)["host"]) for place in (self.primary, self.standby)]
        return make_conninfo(host=",".join(hosts), user="muniment_owner", dbname="muniment")

    @contextmanager
    def paused(self) -> Generator[None]:
        """The standby gets the log and replays none of it."""
        self.on_standby("SELECT pg_wal_replay_pause()")
        eventually(lambda: value(self.standby, "SELECT pg_get_wal_replay_pause_state()") == "paused")
        try:
            yield
        finally:
            self.on_standby("SELECT pg_wal_replay_resume()")

    def on_standby(self, statement: str) -> None:
        with psycopg.connect(self.standby, autocommit=True) as connection:
            connection.execute(statement.encode())

    def on_primary(self, *statements: str) -> None:
        with psycopg.connect(self.primary, autocommit=True) as connection:
            for one in statements:
                connection.execute(one.encode())

    def caught_up(self) -> None:
        """Wait until the standby has replayed everything."""
        reached = value(self.primary, "SELECT pg_current_wal_lsn()::text")
        eventually(lambda: value(self.standby, f"SELECT pg_last_wal_replay_lsn() >= '{reached}'::pg_lsn"))


@contextmanager
def primary_and_standby(folder: Path) -> Generator[Servers]:
    """Both, in folders below this one."""
    folder.chmod(0o755)
    with separate(folder / "primary", *SETTINGS) as primary:
        address = Address.parse(make_conninfo(primary, user="muniment_owner"), MASTER_KEYS.login_secret())
        anyio.run(migrate, address)
        with standby_of(primary, folder / "standby", *SETTINGS) as standby:
            found = Servers(primary, standby)
            # A standby for reading: the primary does not wait for it.
            found.on_primary("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
            yield found


def opened(servers: Servers, **options: Any) -> Fabric:
    return Fabric.open(servers.url, master_keys=MASTER_KEYS, replica_url=servers.standby, **options)


def history(fabric: Fabric, people: People) -> None:
    """A memory, a recall of it, a refusal, and a sealed chain."""
    made = fabric.propose(people.run(), write_class="statement", text="Lamps are blue.", classification="INTERNAL")
    fabric.queue.approve(people.reviewer, submitted(made))
    assert [one.text for one in fabric.recall(people.run()).records] == ["Lamps are blue."]
    fabric.compile(people.run(), "lamps")
    fabric.seal(people.tenant_id)


READS: dict[str, Callable[[Fabric, People], Any]] = {
    "metrics": lambda fabric, people: fabric.metrics(people.auditor),
    "events": lambda fabric, people: fabric.events(people.auditor),
    "verify": lambda fabric, people: fabric.verify(people.auditor),
    "recalls.list": lambda fabric, people: fabric.recalls.list(people.auditor),
    "archives": lambda fabric, people: fabric.archives(people.auditor),
    "refusals.list": lambda fabric, people: fabric.refusals.list(people.auditor),
    "refusals.counts": lambda fabric, people: fabric.refusals.counts(people.auditor),
}


def read(call: Callable[[Fabric, People], Any], fabric: Fabric, people: People) -> tuple[Any, ReadFrom]:
    with noting_reads() as noted:
        found = call(fabric, people)
    (one,) = noted
    return found, one
