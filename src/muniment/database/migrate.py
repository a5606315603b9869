"""The schema, made and migrated by the owner of the tables, and settings only the owner makes.

A new database runs the files of `schema`, which say what the tables are now, and counts as migrated. A database that is
there gets the `migrations` it lacks, once each in order; both ways lead to the same tables, which a test compares.

A migration that older programs can work with says so (`-- oldest program: 45`: those whose last migration is 45 or
later); any other needs a program that has it. So programs can be upgraded one by one after the database.
"""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, LiteralString, cast, get_args

import psycopg
from psycopg import AsyncConnection, sql
from pydantic_core import to_json

from muniment.database import job_queue
from muniment.database.address import Address
from muniment.database.cluster import checks
from muniment.database.cluster.catalogue import is_unfinished
from muniment.database.cluster.errors import node_lost, refused_connection
from muniment.database.cluster.guard import weakened
from muniment.database.scripts import statements
from muniment.database.server_liveness import unavailable
from muniment.database.storage import TASKS, Task
from muniment.errors import Conflict, KeyUnavailable, SchemaMissing, SchemaNewer, StorageUnavailable
from muniment.model.candidate import GateName

# "muniment" as a number: only one migration of a database at a time.
_LOCK = 0x6D756E69
_FILE = re.compile(r"^(\d{4})_(\w+)\.sql$")
# A migration that makes what a file of the schema makes has this line instead of the same text.
_INCLUDE = re.compile(r"^-- include (\S+)\n", re.MULTILINE)
_OLDEST = re.compile(r"^-- oldest program: (\d+)$", re.MULTILINE)
# The version of a database of release 0.1.0. The steps up to it are not in this program: a database has all or none.
FIRST_RELEASE = 20
# What `migrate` and `status` call the step that makes a new database.
SCHEMA_STEP = "schema"
# What `migrate` and `status` call the step that sets the gates; what the function says before that.
GATES_STEP = "gates"
_NO_GATES = "none"


@dataclass(frozen=True)
class Migration:
    """One step of the schema."""

    version: int
    name: str
    sql: str

    @property
    def digest(self) -> str:
        """A digest of the file, so that a changed file is noticed."""
        return sha256(self.sql.encode()).hexdigest()

    @property
    def oldest(self) -> int:
        """The last migration of the oldest program that works with the schema after this step."""
        found = _OLDEST.search(self.sql)
        return int(found[1]) if found is not None else self.version


@dataclass(frozen=True)
class SchemaStatus:
    """The version of a database's schema, and what is pending."""

    current: int
    latest: int
    oldest: int
    pending: tuple[str, ...]
    server: str
    changed: tuple[str, ...] = ()
    clock_bound: timedelta | None = None

    @property
    def ready(self) -> bool:
        """Whether this program can work with the database, which may be ahead of it."""
        return self.oldest <= self.latest <= self.current and not self.pending


@cache
def migrations() -> tuple[Migration, ...]:
    """All migrations that this program has, in order."""
    return read_migrations(files("muniment.database") / "migrations")


def read_migrations(folder: Traversable) -> tuple[Migration, ...]:
    """The migrations of a folder, in order."""
    found = [(match, file) for file in folder.iterdir() if (match := _FILE.match(file.name))]
    steps = [Migration(int(match[1]), match[2], _included(file.read_text("utf-8"))) for match, file in found]
    return tuple(sorted(steps, key=lambda step: step.version))


def _included(text: str) -> str:
    return _INCLUDE.sub(lambda match: (files("muniment.database") / match[1]).read_text("utf-8"), text)


def _schema_files() -> list[str]:
    """What makes a new database, in the order to run it."""
    found = [file for file in (files("muniment.database") / "schema").iterdir() if file.name.endswith(".sql")]
    return [file.read_text("utf-8") for file in sorted(found, key=lambda file: file.name)]


async def migrate(address: Address, *, reset_logins: bool = False) -> tuple[str, ...]:
    """Apply what is pending and return its names; raises `SchemaNewer` if the database is ahead of this program.

    Raises `SchemaMissing` for a database that was never brought to the first release, 0.1.0.

    The logins belong to the whole server: if they exist with passwords from another master key, this raises
    `KeyUnavailable` rather than lock another fabric out, unless `reset_logins` is set.
    """
    async with holding_the_schema(address) as connection:
        await connection.execute("CREATE SCHEMA IF NOT EXISTS muniment")
        await connection.execute(
            "CREATE TABLE IF NOT EXISTS muniment.schema_migrations (version int PRIMARY KEY, name text NOT NULL,"
            " digest text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now(), oldest int)"
        )
        applied = await _applied(connection)
        _refuse_newer(max(applied, default=0), await _oldest(connection))
        _refuse_unreleased(applied)
        await connection.execute("ALTER TABLE muniment.schema_migrations ADD COLUMN IF NOT EXISTS oldest int")
        logins_are_new = not await _logins_exist(connection)
        done = list(_pending(applied))
        if applied:
            for step in migrations():
                if step.version not in applied:
                    await _apply(connection, step)
        else:
            await _create(connection)
        if await _set_gates(connection):
            done.append(GATES_STEP)
        await job_queue.migrate(connection)
        if address.login_secret is not None:
            await _fit_logins(connection, address, are_new=logins_are_new or reset_logins)
        return tuple(done)


@asynccontextmanager
async def as_owner_of_schema(address: Address) -> AsyncGenerator[AsyncConnection]:
    """A connection of the owner, whose errors are explained."""
    async with _explained(), await _connect(address) as connection:
        yield connection


@asynccontextmanager
async def holding_the_schema(address: Address) -> AsyncGenerator[AsyncConnection]:
    """A connection of the owner that holds the lock under which the schema is changed."""
    async with as_owner_of_schema(address) as connection:
        await connection.execute("SET lock_timeout = '10s'")
        await connection.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
        # On a cluster, a function or type is made on one node after the other. Without Citus it has no effect.
        await connection.execute("SET citus.multi_shard_modify_mode = 'sequential'")
        # A second copy of a shard would be neither purged nor checked.
        await connection.execute("SET citus.shard_replication_factor = 1")
        yield connection


async def _fit_logins(connection: AsyncConnection, address: Address, *, are_new: bool) -> None:
    """Set the passwords of the logins that are new, all or one that a migration added; raises `KeyUnavailable`."""
    if not are_new and not await _logins_fit(address):
        raise KeyUnavailable(
            "the logins on this server have passwords from another master key: use that key, "
            "or run: muniment db migrate --reset-logins"
        )
    if are_new or not await _logins_fit(address, "subject"):
        await _set_passwords(connection, address)


async def status(address: Address) -> SchemaStatus:
    """The state of the schema, read as its owner."""
    async with _explained(), await _connect(address) as connection:
        try:
            applied, oldest = await _applied(connection), await _oldest(connection)
        except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
            applied, oldest = {}, 0
        row = await (await connection.execute("SELECT current_setting('server_version')")).fetchone()
        clock_bound = await read_bound(connection)
        gates = await _gates(connection)
    steps = _pending(applied)
    return SchemaStatus(
        current=max(applied, default=0),
        latest=migrations()[-1].version,
        oldest=oldest,
        pending=(*steps, GATES_STEP) if gates is not None and gates != gate_names() else steps,
        server=str(row[0]) if row else "",
        changed=tuple(m.name for m in migrations() if applied.get(m.version, m.digest) != m.digest),
        clock_bound=clock_bound,
    )


async def require_ready(address: Address) -> None:
    """Raise `SchemaMissing` or `SchemaNewer` unless the logins of the tasks find the schema of this program.

    On a cluster that keeps less than is promised, or is not distributed to the end, it raises `StorageUnavailable`.
    """
    try:
        place = address.direct().for_task("recall")
        async with await AsyncConnection.connect(place, autocommit=True) as connection:
            if await is_unfinished(connection):
                raise StorageUnavailable("the tables are being distributed; to continue, run: muniment db distribute")
            applied, oldest = await _applied(connection), await _oldest(connection)
            gates = await _gates(connection)
            if problems := await checks.problems(connection, serving=place):
                raise weakened(problems)
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName, psycopg.errors.InsufficientPrivilege):
        applied, oldest, gates = {}, 0, None
    except psycopg.OperationalError as error:
        # A failed login has no SQLSTATE. If the owner can connect, the logins are missing or not ours.
        await (await _connect(address)).close()
        if await _logins_fit(address):
            # It was away a moment ago.
            raise unavailable(error) from error
        raise SchemaMissing(
            "the logins of this database are not set up, or not for this master key; run: muniment db migrate"
        ) from error
    current = max(applied, default=0)
    _refuse_newer(current, oldest)
    _refuse_more_gates(gates)
    if current < migrations()[-1].version or (gates is not None and gates != gate_names()):
        raise SchemaMissing("the database is not migrated to this version; run: muniment db migrate")


def _refuse_newer(current: int, oldest: int) -> None:
    """Raise `SchemaNewer` if the database is ahead of this program, and needs a later one."""
    if oldest > migrations()[-1].version:
        raise SchemaNewer(
            f"the database is at schema {current} and needs a program that knows {oldest}, this one knows "
            f"{migrations()[-1].version}: upgrade muniment, or open another database"
        )


def _refuse_unreleased(applied: dict[int, str]) -> None:
    there = len([version for version in applied if version <= FIRST_RELEASE])
    if applied and there < FIRST_RELEASE:
        raise SchemaMissing(
            f"the database has {there} of the {FIRST_RELEASE} migrations of 0.1.0, and this program has none of them: "
            "run muniment db migrate of 0.1.0 first"
        )


def _pending(applied: dict[int, str]) -> tuple[str, ...]:
    """The names of the steps that a database with these migrations lacks."""
    if not applied:
        return (SCHEMA_STEP,)
    return tuple(f"{step.version:04d}_{step.name}" for step in migrations() if step.version not in applied)


def gate_names() -> list[str]:
    """The gates that this program has every candidate pass, in order."""
    return list(get_args(GateName))


async def _gates(connection: AsyncConnection) -> list[str] | None:
    """The gates that the database requires of every new candidate; None for a schema without that check."""
    row = await (await connection.execute("SELECT to_regprocedure('muniment.required_gates()') IS NULL")).fetchone()
    if row is None or row[0]:
        return None
    row = await (await connection.execute("SELECT muniment.required_gates()")).fetchone()
    return cast("list[str]", row[0]) if row is not None else None


def _refuse_more_gates(gates: list[str] | None) -> None:
    # A candidate that this program makes would lack the record of a gate, and be refused.
    if unknown := set(gates or ()) - {*gate_names(), _NO_GATES}:
        raise SchemaNewer(
            f"the database asks for a gate that this program does not know, {min(unknown)}: upgrade muniment"
        )


async def _set_gates(connection: AsyncConnection) -> bool:
    """Make the database require this program's gates; return whether it required others until now.

    The names are in a function and not in a constraint, so that a gate can be added without a migration. Raises
    `SchemaNewer` for a gate that this program does not know: only a migration removes one.
    """
    gates = await _gates(connection)
    if gates is None or gates == gate_names():
        return False
    _refuse_more_gates(gates)
    body = sql.Literal(to_json(gate_names()).decode())
    await connection.execute(
        sql.SQL(
            "CREATE OR REPLACE FUNCTION muniment.required_gates() RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL SAFE"
            " RETURN {}::jsonb"
        ).format(body)
    )
    return gates != [_NO_GATES]


async def _connect(address: Address) -> AsyncConnection:
    try:
        return await AsyncConnection.connect(address.for_owner(), autocommit=True, connect_timeout=5)
    except psycopg.OperationalError as error:
        raise StorageUnavailable(_why_not_connected(error)) from error


def _why_not_connected(error: psycopg.OperationalError) -> str:
    """Say why there is no connection, without anything of the address."""
    tried = error.pgconn
    if tried is not None and tried.needs_password:
        return "the database asks for this user's password: put it into the file that PGPASSFILE names"
    if tried is not None and tried.used_password:
        return "there is no such database, or it refuses this user or the password in PGPASSFILE or in the address"
    return "the database does not answer, or refuses this user"


@asynccontextmanager
async def _explained() -> AsyncGenerator[None]:
    """Turn errors about missing extensions, rights and locks into ours, with what to do."""
    try:
        yield
    except psycopg.errors.InsufficientPrivilege as error:
        raise StorageUnavailable(
            "the address's user may not create what is needed (schema, tables, logins, the extension vector): "
            "use the owner of the database with CREATEROLE, or a superuser"
        ) from error
    except (psycopg.errors.FeatureNotSupported, psycopg.errors.UndefinedFile) as error:
        if error.sqlstate == "0A000" and error.diag.source_function != "parse_extension_control_file":
            raise  # A cluster refuses much with the same error.
        raise StorageUnavailable("the server lacks the extension vector: install pgvector on it") from error
    except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected) as error:
        raise Conflict("the database is in use; try again when it is quiet") from error
    except psycopg.Error as error:
        if node_lost(error):
            why = ": ".join(filter(None, ("a node does not answer", refused_connection(error))))
            raise StorageUnavailable(f"{why}; see muniment db status") from error
        if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
            raise unavailable(error) from error
        raise


async def _logins_exist(connection: AsyncConnection) -> bool:
    cursor = await connection.execute("SELECT FROM pg_roles WHERE rolname = 'muniment_recall'")
    return await cursor.fetchone() is not None


async def _logins_fit(address: Address, task: Task = "recall") -> bool:
    try:
        await (await AsyncConnection.connect(address.direct().for_task(task))).close()
    except psycopg.OperationalError:
        return False
    return True


async def _applied(connection: AsyncConnection) -> dict[int, str]:
    cursor = await connection.execute("SELECT version, digest FROM muniment.schema_migrations")
    return {int(version): str(digest) for version, digest in await cursor.fetchall()}


async def _oldest(connection: AsyncConnection) -> int:
    """The last migration of the oldest program that the schema works with."""
    try:
        row = await (
            await connection.execute("SELECT max(coalesce(oldest, version)) FROM muniment.schema_migrations")
        ).fetchone()
    except psycopg.errors.UndefinedColumn:
        # Made before migrations said so: it needs a program that has all of them.
        row = await (await connection.execute("SELECT max(version) FROM muniment.schema_migrations")).fetchone()
    return int(row[0] or 0) if row is not None else 0


async def _create(connection: AsyncConnection) -> None:
    """Make the tables of a new database, and record the migrations that it does not need."""
    texts = _schema_files()
    digest = sha256("".join(texts).encode()).hexdigest()
    async with connection.transaction():
        for version in range(1, FIRST_RELEASE + 1):
            await _record(connection, version, SCHEMA_STEP, digest, version)
        for step in migrations():
            await _record(connection, step.version, step.name, step.digest, step.oldest)
        await connection.execute("SET LOCAL search_path = muniment, public")
        for text in texts:
            await connection.execute(cast("LiteralString", text))


async def _apply(connection: AsyncConnection, step: Migration) -> None:
    async with connection.transaction():
        await connection.execute("SET LOCAL search_path = muniment, public")
        for one in statements(step.sql):
            await connection.execute(one)
        await _record(connection, step.version, step.name, step.digest, step.oldest)


async def _record(connection: AsyncConnection, version: int, name: str, digest: str, oldest: int) -> None:
    statement = "INSERT INTO muniment.schema_migrations (version, name, digest, oldest) VALUES (%s, %s, %s, %s)"
    await connection.execute(statement, [version, name, digest, oldest])


async def _set_passwords(connection: AsyncConnection, address: Address) -> None:
    for task in TASKS:
        # Hashed here, so that the password itself never reaches the server's log.
        login = f"muniment_{task}"
        hashed = connection.pgconn.encrypt_password(address.password(task).encode(), login.encode(), b"scram-sha-256")
        await connection.execute(
            sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(login), sql.Literal(hashed.decode()))
        )


async def set_bound(conninfo: str, bound: timedelta | None) -> None:
    """Set how far ahead of the database's clock a tenant's may be (AUD-5), as the owner; None for no bound."""
    interval = sql.SQL("NULL::interval") if bound is None else sql.SQL("interval {}").format(sql.Literal(str(bound)))
    async with await AsyncConnection.connect(conninfo, autocommit=True) as connection:
        await connection.execute(
            sql.SQL(
                "CREATE OR REPLACE FUNCTION muniment.clock_bound() RETURNS interval"
                " LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN {}"
            ).format(interval)
        )


async def read_bound(connection: AsyncConnection[Any]) -> timedelta | None:
    """That bound; None if there is none, or the schema is too old to have one."""
    try:
        row = await (await connection.execute("SELECT muniment.clock_bound()")).fetchone()
    except (psycopg.errors.UndefinedFunction, psycopg.errors.InvalidSchemaName):
        return None
    return row[0] if row is not None else None
