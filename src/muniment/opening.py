"""Opens and closes a fabric: the embedded server or another database, its schema, its keys."""

from collections.abc import Callable
from contextlib import suppress
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
from muniment.database.embedders import Embedders
from muniment.database.languages import Languages
from muniment.database.master import MasterKeys, find_master_keys
from muniment.database.migrate import migrate, require_ready, status
from muniment.database.sealing import Vault
from muniment.database.server_liveness import answering, no_answer
from muniment.database.storage import Storage
from muniment.errors import StorageUnavailable
from muniment.language.embedding.choose import find_embedder
from muniment.language.redaction import redactor_of
from muniment.packs.store import Packs
from muniment.recall.index_guard import IndexGuard
from muniment.recall.scope_index import ScopeIndexes
from muniment.sessions.store import session_store
from muniment.settings import Settings

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
    def data(self) -> Path | None:
        """The data folder of the embedded server."""
        return self.lease.home / "data" if self.lease is not None else None

    @property
    def deaths(self) -> int:
        """How often the embedded server died while this was open."""
        return self.lease.watch().deaths if self.lease is not None else 0

    async def close(self) -> None:
        """Drop the index, close the connections, then release the embedded server."""
        try:
            await self.context.index.close()
            await self.context.storage.close()
            await self.context.sessions.close()
        finally:
            if self.lease is not None:
                await _release(self.lease)


async def connect(settings: Settings, master_keys: MasterKeys | None) -> Opened:
    """Open a fabric; raises `StorageUnavailable`, `SchemaMissing`, `SchemaNewer`, `KeyUnavailable`, `PackInvalid`."""
    if settings.pack is not None:
        redactor_of(settings.pack)  # A rule whose package is not installed fails here, not at the first candidate.
    if settings.url is not None:
        keys = master_keys or find_master_keys(None)
        address = Address.parse(settings.url, keys.login_secret())
        await require_ready(address)
        return Opened(_context(settings, address, keys), address, None)
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
        Storage(address, processes=settings.processes, explain=explain),
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
