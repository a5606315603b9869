"""A standby that auditors' reads may go to: whether it is fit for one, and how far behind the primary it is.

How far it is behind follows from positions in the primary's write-ahead log that this process samples, with the times
by its own clock: a standby that has replayed a position is at least as recent as its sample. No other clock counts, and
nothing that the standby says of its own lag, which is wrong where it lost the primary.

INVARIANT: nothing that opens sealed content reads here (TIR-5). A standby still has the keys and texts of an erasure
that it has not replayed.
"""

import asyncio
import time
from bisect import bisect_right
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from muniment.database.address import Address
from muniment.database.connection import Connection, Reply
from muniment.database.pool import Pool
from muniment.database.server_liveness import Row, ServerLiveness
from muniment.database.statements import Statement
from muniment.errors import InvalidInput, MunimentError, StorageUnavailable
from muniment.model.reads import Why

if TYPE_CHECKING:
    from psycopg.pq.abc import PGresult

FIELD = "MUNIMENT_REPLICA_URL"
MAX_LAG_SECONDS = 30.0
# For how long a sampled position of the primary serves further reads.
SAMPLE_SECONDS = 0.25
# How long a read waits for the standby to replay what the primary had written, and how long between two checks.
CATCH_UP_SECONDS = 0.25
_AGAIN_SECONDS = 0.01
# The same at the start and for `db status`, which have a single sample to go by.
CHECK_SECONDS = 1.0
_TENANTS_NOTED = 4096
# Columns with sealed content or vectors of it, or with keys that open it; a test compares them with the schema. A
# statement whose result has a column of such a name is not answered by a standby.
SEALED_COLUMNS = frozenset(
    {
        *("content", "fact", "answer", "query", "remark", "evidence", "display_name", "label", "url", "address"),
        *("wrapped", "wrapped_key", "secret", "old_secret", "term", "terms", "vector"),
    }
)

# Which server and which database it is: a standby has both in common with its primary. What was committed
# asynchronously may be inserted and not flushed yet. At the start of a page the next record is inserted after the
# page's header (40 bytes for the first of a segment, else 24), and the last one ended before it.
_PRIMARY = Statement(
    "primary position",
    """SELECT (SELECT system_identifier FROM pg_control_system())::text AS system,
  (SELECT oid FROM pg_database WHERE datname = current_database())::bigint AS database,
  ('x' || left(pg_walfile_name(w.current), 8))::bit(32)::int AS timeline,
  (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::bigint AS flushed,
  w.inserted - CASE
    WHEN w.inserted % pg_size_bytes(current_setting('wal_segment_size')) = 40 THEN 40
    WHEN w.inserted % pg_size_bytes(current_setting('wal_block_size')) = 24 THEN 24
    ELSE 0 END AS inserted
FROM (SELECT pg_current_wal_lsn() AS current, (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint AS inserted) w""",
)
# The timeline comes from the control file, which may be behind after a failover: then the primary is read.
_STANDBY = Statement(
    "standby position",
    """SELECT (SELECT system_identifier FROM pg_control_system())::text AS system,
  (SELECT oid FROM pg_database WHERE datname = current_database())::bigint AS database,
  pg_is_in_recovery() AS recovers, EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') AS cluster,
  greatest((SELECT timeline_id FROM pg_control_checkpoint()),
           (SELECT min_recovery_end_timeline FROM pg_control_recovery()))::int AS timeline,
  (pg_last_wal_replay_lsn() - '0/0'::pg_lsn)::bigint AS replayed""",
)


class StandbyUnfit(Exception):
    """The standby cannot answer this read, which then goes to the primary."""

    def __init__(self, why: Why, *, for_sure: bool = False) -> None:
        super().__init__(why)
        self.why: Why = why
        # Whether waiting a moment cannot help.
        self.for_sure = for_sure


class PrimaryUnavailable(Exception):
    """The primary does not answer what a read on the standby needs of it; `error` says so."""

    def __init__(self, error: MunimentError) -> None:
        super().__init__(str(error))
        self.error = error


class ContentOnStandby(RuntimeError):
    """Sealed content, or a key, was about to be read from a standby: an error of this program."""


@dataclass(frozen=True)
class ReplicaSettings:
    """The address of the standby, and how many seconds it may be behind."""

    url: str
    max_lag: float = MAX_LAG_SECONDS

    def for_auditor(self, address: Address) -> str:
        """The connection string of the auditor's login there; raises `InvalidInput`."""
        return address.for_standby(self._place())

    def for_owner(self, address: Address) -> str:
        """The connection string of the owner there, for purges: the standby has a log of its own."""
        place = self._place()
        there = {name: place[name] for name in ("host", "hostaddr", "port", "password") if place.get(name)}
        own = {name: value for name, value in address.owner.items() if name not in ("host", "hostaddr", "port")}
        return make_conninfo(**(own | there | {"target_session_attrs": "any"}))

    def _place(self) -> dict[str, Any]:
        try:
            place: dict[str, Any] = conninfo_to_dict(self.url)
        except psycopg.Error as error:
            raise InvalidInput("expected an address such as postgresql://host/database", field=FIELD) from error
        if "," in str(place.get("host") or place.get("hostaddr") or ""):
            # The transactions of one read would see now one, now another state.
            raise InvalidInput("expected one host: the reads of a call must not change servers", field=FIELD)
        return place


class PrimaryPosition(NamedTuple):
    """The primary's WAL position, flushed and inserted, with this process's time just before it was read."""

    sampled_at: float
    system: str
    database: int
    timeline: int
    flushed: int
    inserted: int


class StandbyConnection(Connection):
    """A connection to a standby, which gives no sealed content."""

    def _reply(self, result: "PGresult", prepared: str | None) -> Reply:
        """As every connection; raises `ContentOnStandby` for a result with a column of sealed content or of a key."""
        names = {(result.fname(column) or b"").decode() for column in range(result.nfields)}
        if found := SEALED_COLUMNS & names:
            raise ContentOnStandby(f"{min(found)} was read from a standby")
        return super()._reply(result, prepared)


class Replica:
    """The standby of one program: its connections, and what is known of its position."""

    def __init__(
        self,
        settings: ReplicaSettings,
        address: Address,
        ask_primary: Callable[[Statement], Awaitable[Row]],
        max_size: int,
    ) -> None:
        self.max_lag = settings.max_lag
        self._ask_primary = ask_primary
        # The owner's address of it.
        self.owner = settings.for_owner(address)
        conninfo = self._conninfo = settings.for_auditor(address)
        self._liveness = ServerLiveness(conninfo)
        self._pool = Pool(
            conninfo, self._liveness, name="standby", max_size=max_size, explain=_away, kind=StandbyConnection
        )
        # Samples of one primary in their order, the oldest about as old as the standby may be behind.
        self._samples: list[PrimaryPosition] = []
        # When this process last wrote in a tenant, by its own clock: a caller finds there what it wrote. And the latest
        # of the times that were dropped, which stands for every tenant that is not noted.
        self._wrote: OrderedDict[str, float] = OrderedDict()
        self._dropped_at = 0.0
        # For the server's metrics: how far behind it was last, and where reads went.
        self.lag: float | None = None
        self.reads: Counter[str] = Counter()

    async def pool(self) -> Pool:
        """The connections, opened on first use."""
        if not self._pool.is_open:
            await self._pool.open()
        return self._pool

    async def close(self) -> None:
        """Close all connections, for good."""
        self._liveness.close()
        await self._pool.close()

    def note_write(self, tenant_id: str) -> None:
        """Note that this process has just committed something in the tenant."""
        self._wrote[tenant_id] = time.monotonic()
        self._wrote.move_to_end(tenant_id)
        if len(self._wrote) > _TENANTS_NOTED:
            _, self._dropped_at = self._wrote.popitem(last=False)

    async def check(self) -> float:
        """Return how many seconds behind it is, at most.

        Raises `InvalidInput` if the address leads to another server's standby or to another database, `StandbyUnfit` if
        it cannot be read now, and `StorageUnavailable` if it does not answer.
        """
        try:
            async with await StandbyConnection.connect(self._conninfo, autocommit=True) as connection:
                return await self._caught_up(connection, 0.0, CHECK_SECONDS)
        except StandbyUnfit as unfit:
            if unfit.why != "other_server":
                raise
            raise InvalidInput(NOT_READ[unfit.why], field=FIELD) from None
        except PrimaryUnavailable as unavailable:
            raise unavailable.error from unavailable
        except psycopg.Error as error:
            why = next(iter(str(error).splitlines()), "")
            raise StorageUnavailable(f"{_away()}: {why}") from error

    async def fit(self, connection: Connection, tenant_id: str) -> float:
        """How many seconds behind the standby of this connection is, at most; raises `StandbyUnfit`.

        INVARIANT: to be called before the transaction takes its snapshot, so the snapshot is at least this fresh.
        """
        return await self._caught_up(connection, self._wrote.get(tenant_id, self._dropped_at), CATCH_UP_SECONDS)

    async def _caught_up(self, connection: Connection, since: float, seconds: float) -> float:
        """Wait at most so many seconds for the standby to be recent enough; how many seconds behind it is then."""
        give_up_at = time.monotonic() + seconds
        while True:
            try:
                self.lag = await self._lag(connection, since)
            except StandbyUnfit as unfit:
                if unfit.why not in ("behind", "lag") or unfit.for_sure or time.monotonic() > give_up_at:
                    raise
                await asyncio.sleep(_AGAIN_SECONDS)
            else:
                return self.lag

    async def _lag(self, connection: Connection, since: float) -> float:
        newest = await self._sample(since)
        (reply,) = await connection.exchange([(_STANDBY, [])])
        found = reply.rows[0]
        if (found["system"], found["database"]) != (newest.system, newest.database):
            raise StandbyUnfit("other_server")
        if not found["recovers"]:
            raise StandbyUnfit("not_standby")
        if found["cluster"]:
            # Its own position says nothing of the nodes that have the rows.
            raise StandbyUnfit("cluster")
        if found["timeline"] != newest.timeline:
            raise StandbyUnfit("timeline")
        replayed, now = found["replayed"], time.monotonic()
        count = bisect_right(self._samples, replayed, key=lambda one: one.flushed)
        # No more than the age of the latest sample that it has replayed, and no less than that of the next.
        lag = now - self._samples[count - 1].sampled_at if count else float("inf")
        at_least = now - self._samples[count].sampled_at if count < len(self._samples) else 0.0
        if lag > self.max_lag:
            self.lag = at_least
            raise StandbyUnfit("lag", for_sure=at_least > self.max_lag)
        if since and not any(one.sampled_at > since and one.inserted <= replayed for one in self._samples):
            raise StandbyUnfit("behind")
        return lag

    async def _sample(self, since: float) -> PrimaryPosition:
        """The primary's position, sampled after `since`; an earlier one if the primary does not answer."""
        newest = self._samples[-1] if self._samples else None
        now = time.monotonic()
        if newest is not None and now - newest.sampled_at < SAMPLE_SECONDS and newest.sampled_at > since:
            return newest
        try:
            row = await self._ask_primary(_PRIMARY)
        except MunimentError as error:
            if newest is None:
                raise PrimaryUnavailable(error) from error
            return newest
        sample = PrimaryPosition(now, **row)
        if self._samples and (latest := self._samples[-1]).sampled_at >= now:
            # Another read has sampled it meanwhile.
            return latest
        if self._samples and self._samples[-1][1:4] != sample[1:4]:
            # Another server is the primary now, and its log has gone another way.
            self._samples.clear()
        while self._samples and self._samples[-1].flushed > sample.flushed:
            self._samples.pop()
        self._samples.append(sample)
        # One that is older than the standby may be behind stays, to tell that it is further behind.
        while len(self._samples) > 2 and now - self._samples[1].sampled_at > self.max_lag:
            del self._samples[0]
        return sample


def _away() -> str:
    return "the standby does not answer"


# Why a standby that answers is not read, as said at the start and by `db status`.
NOT_READ: dict[Why, str] = {
    "not_standby": "leads to a primary: name a standby, or leave it out",
    "other_server": "leads to another server or its standby, or to another database: name a standby of the primary",
    "cluster": "leads to a standby of a cluster's coordinator, which does not have the tenants' rows: leave it out",
    "timeline": "leads to a standby that does not follow this primary yet; if it never does, make it anew",
    "lag": "leads to a standby that is too far behind",
}
