"""Opens and closes a fabric: the embedded server or another database, its schema, its keys."""

import logging
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread
import psycopg
from psycopg import AsyncConnection, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from muniment.archives.folder import Archives
from muniment.context import FabricContext
from muniment.database import embedded
from muniment.database.address import Address
from muniment.database.cluster.guard import ClusterRepair
from muniment.database.embedders import Embedders
from muniment.database.languages import Languages
from muniment.database.master import MasterKeys, find_master_keys
from muniment.database.migrate import migrate, require_ready, status
from muniment.database.replica import FIELD, NOT_READ, ReplicaSettings, StandbyUnfit
from muniment.database.sealing import Vault
from muniment.database.server_liveness import answering, no_answer
from muniment.database.storage import Storage
from muniment.errors import MunimentError, StorageUnavailable
from muniment.language.embedding.choose import find_embedder
from muniment.language.redaction import redactor_of
from muniment.packs.store import Packs
from muniment.recall.index_guard import IndexGuard
from muniment.recall.scope_index import ScopeIndexes
from muniment.sessions.store import session_store
from muniment.settings import Settings

log = logging.getLogger("muniment.database")

DATABASE = "muniment"
OWNER = "muniment_owner"


@dataclass(frozen=True)
class Opened:
    """An open fabric's parts, and the embedded server's lease where there is one."""

    context: FabricContext
    address: Address
    lease: embedded.Lease | None

    @property
    def superuser(self) -> str:
        """The login that may purge: the embedded server's superuser, elsewhere the owner of the tables."""
        if self.lease is None:
            return self.address.for_owner()
        return make_conninfo(self.lease.conninfo, dbname=DATABASE)

    @property
    def standbys(self) -> tuple[str, ...]:
        """The owner's address of the standby that auditors read, whether or not the database's own address names it."""
        replica = self.context.storage.replica
        return (replica.owner,) if replica is not None else ()

    @property
    def data(self) -> Path | None:
        """The data folder of the embedded server."""
        return self.lease.home / "data" if self.lease is not None else None

    @property
    def deaths(self) -> int:
        """How often the embedded server died while this was open."""
        return self.lease.watch().deaths if self.lease is not None else 0

    async def close(self) -> None:
        """Drop the index, close the connections, then release the embedded server."""
        # One that fails leaves none of the others open: a pool that is never closed keeps the process from ending.
        async with AsyncExitStack() as closing:
            if self.lease is not None:
                closing.push_async_callback(_release, self.lease)
            closing.push_async_callback(self.context.sessions.close)
            closing.push_async_callback(self.context.storage.close)
            closing.push_async_callback(self.context.index.close)


async def connect(settings: Settings, master_keys: MasterKeys | None, *, repairs: bool = False) -> Opened:
    """Open a fabric; raises `StorageUnavailable`, `SchemaMissing`, `SchemaNewer`, `KeyUnavailable`, `PackInvalid`.

    A process that `repairs` a cluster does so first, if the cluster fails a check: else none could start that would.
    """
    if settings.pack is not None:
        redactor_of(settings.pack)  # A rule whose package is not installed fails here, not at the first candidate.
    if settings.url is not None:
        keys = master_keys or find_master_keys(None)
        address = Address.parse(settings.url, keys.login_secret())
        await _require_ready(address, repairs=repairs)
        opened = Opened(_context(settings, address, keys), address, None)
        try:
            await _check_replica(opened.context.storage)
        except BaseException:
            await opened.close()
            raise
        return opened
    embedded.release_before_ending()
    lease = await anyio.to_thread.run_sync(embedded.acquire, settings.home)
    try:
        watch = lease.watch()
        address = await prepared(lease)
        with answering(watch.explain):
            has_tenants = await _has_tenants(address)
        keys = master_keys or find_master_keys(settings.home, may_make=not has_tenants)
    except BaseException:
        await _release(lease)
        raise
    return Opened(_context(settings, address, keys, watch.explain), address, lease)


async def _require_ready(address: Address, *, repairs: bool) -> None:
    try:
        await require_ready(address)
    except StorageUnavailable:
        if not (repairs and await ClusterRepair(address).repair_when_due()):
            raise
        await require_ready(address)


@dataclass(frozen=True)
class ReplicaState:
    """The standby that auditors' reads may go to: how far behind it is, or why it cannot be read."""

    lag_s: float | None = None
    problem: str | None = None

    @property
    def words(self) -> str:
        """The same for people."""
        return f"{self.lag_s:.1f} s behind" if self.lag_s is not None else f"not read: {self.problem}"


async def replica_state(settings: ReplicaSettings, address: Address) -> ReplicaState:
    """Find out how far behind the standby of that database is, or why it is not read."""
    storage = None
    try:
        storage = Storage(address, replica=settings)
        assert storage.replica is not None
        return ReplicaState(lag_s=round(await storage.replica.check(), 3))
    except MunimentError as error:
        return ReplicaState(problem=error.message)
    except StandbyUnfit as unfit:
        return ReplicaState(problem=NOT_READ[unfit.why])
    finally:
        if storage is not None:
            await storage.close()


async def _check_replica(storage: Storage) -> None:
    """Raise `InvalidInput` for an address of another server or database; any other problem may pass, and is logged."""
    if storage.replica is None:
        return
    try:
        lag = await storage.replica.check()
    except StorageUnavailable as error:
        log.warning("%s: %s; until it answers, reads go to the primary", FIELD, error.message)
    except StandbyUnfit as unfit:
        log.warning("%s: %s; until then, reads go to the primary", FIELD, NOT_READ[unfit.why])
    else:
        log.info("auditors' reads go to a standby, %.1f seconds behind", lag)


async def _release(lease: embedded.Lease) -> None:
    # Also when cancelled: a server that nobody uses must stop.
    with anyio.CancelScope(shield=True):
        await anyio.to_thread.run_sync(lease.release)


async def prepared(lease: embedded.Lease) -> Address:
    """Create and migrate the embedded server's database as needed; its address."""
    address = embedded_address(lease)
    try:
        if not (await status(address)).ready:
            await migrate(address)
    except StorageUnavailable:
        with answering():
            await _create_database(lease)
        await migrate(address)
    return address


def embedded_address(lease: embedded.Lease) -> Address:
    """The address of the fabric's database on the embedded server."""
    place = conninfo_to_dict(lease.conninfo)
    return Address({**place, "dbname": DATABASE, "user": OWNER}, None)


async def _create_database(lease: embedded.Lease) -> None:
    # As superuser, only here: the tables belong to an owner that is not a superuser and that no call runs as.
    async with await AsyncConnection.connect(lease.conninfo, autocommit=True) as connection:
        # Another process may be creating it at the same time.
        with suppress(psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):
            await connection.execute(
                sql.SQL("CREATE ROLE {} LOGIN CREATEROLE NOSUPERUSER NOBYPASSRLS").format(sql.Identifier(OWNER))
            )
        with suppress(psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation):
            await connection.execute(
                sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(DATABASE), sql.Identifier(OWNER))
            )
    place = make_conninfo(lease.conninfo, dbname=DATABASE)
    async with await AsyncConnection.connect(place, autocommit=True) as connection:
        with suppress(psycopg.errors.UniqueViolation):
            await connection.execute("CREATE EXTENSION IF NOT EXISTS vector")


async def _has_tenants(address: Address) -> bool:
    async with await AsyncConnection.connect(address.for_task("jobs"), autocommit=True) as connection:
        return await (await connection.execute("SELECT FROM tenants LIMIT 1")).fetchone() is not None


def _context(
    settings: Settings, address: Address, keys: MasterKeys, explain: Callable[[], str] = no_answer
) -> FabricContext:
    return FabricContext(
        Storage(address, processes=settings.processes, explain=explain, replica=settings.replica),
        Vault(keys),
        Packs(settings.pack),
        settings.clock,
        settings.judge,
        Embedders(find_embedder(settings.embedder)),
        session_store(settings.redis_url, processes=settings.processes),
        outbox=settings.webhooks,
        archives=Archives(settings.archives),
        models=settings.models,
        languages=Languages(settings.readers),
        index=IndexGuard(ScopeIndexes(settings.index_bytes // settings.processes)),
        local_owner=settings.local_owner and settings.url is None,
        notices=settings.notices,
    )
