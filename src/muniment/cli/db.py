"""The database: where it is, how far its schema is, starting and stopping the embedded server."""

import contextlib
from collections.abc import AsyncGenerator, Callable, Coroutine
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import quote, urlencode

import anyio
import anyio.to_thread
import typer

from muniment.cli.asking import Call, verb
from muniment.cli.options import PLACE
from muniment.cli.output import Screen, listed, progress
from muniment.database import embedded
from muniment.database.address import Address
from muniment.database.master import find_master_keys
from muniment.database.migrate import (
    RefusedName,
    SchemaStatus,
    migrate,
    migrations,
    refused_names,
    require_ready,
    status,
)
from muniment.erasure.purge import obstacles
from muniment.errors import InvalidInput, StorageError, StorageUnavailable
from muniment.opening import Opened, connect, embedded_address, prepared
from muniment.promotion import reindex as upkeep
from muniment.settings import Settings

app = typer.Typer(no_args_is_help=True)
# What a connection string may hold that nobody should read over a shoulder.
_SECRETS = frozenset({"password", "sslpassword", "oauth_client_secret"})
_STAYS_UP = "the server stays up; muniment db stop stops it"

_T = TypeVar("_T")


@verb(app, "url", options=PLACE, example='psql "$(muniment db url)"')
def url(call: Call) -> None:
    """Print the address of the database, for psql: as the owner of the tables, without a password.

    An embedded server is started if need be, and stays up. Row security holds for the owner too:
    SET muniment.tenant = 'default' shows the rows of that tenant.
    """
    settings = call.settings()
    if settings.url is not None:
        address = as_url(Address.parse(settings.url, None).owner)
    else:
        place = _wait(_started, settings.home).owner
        # Of the rest a client over a socket needs nothing.
        own = {name: place[name] for name in ("host", "port", "user", "dbname")}
        address = as_url(own | {"options": "-c search_path=muniment,public"})
        call.note(_STAYS_UP)
    call.show({"url": address}, lambda: Screen().write(f"{address}\n"))


@verb(app, "start", options=PLACE, example="muniment db start")
def start(call: Call) -> None:
    """Start the embedded server and let it run on, so that later commands need not."""
    home = _embedded_home(call)
    _wait(_started, home)
    call.show({"home": str(home), "running": True}, lambda: Screen().line(f"running in {home}"))
    call.note(_STAYS_UP)


@verb(app, "stop", options=PLACE, example="muniment db stop")
def stop(call: Call) -> None:
    """Stop the embedded server; connections to it are cut."""
    home = _embedded_home(call)
    stopped = embedded.stop(home)
    words = f"stopped in {home}" if stopped else f"no server was running in {home}"
    call.show({"home": str(home), "stopped": stopped}, lambda: Screen().line(words))


@verb(app, "migrate", options=PLACE, example="muniment db migrate --url postgresql://owner@db.example.com/muniment")
def migrate_database(
    call: Call,
    reset_logins: Annotated[
        bool, typer.Option("--reset-logins", help="Give the server's logins the passwords of this master key.")
    ] = False,
) -> None:
    """Bring the schema up to this program's; needs the master key for a database that is not embedded."""
    settings = call.settings()
    applied = _wait(_migrated, settings, reset_logins)
    call.show({"applied": applied, "latest": migrations()[-1].version}, lambda: _draw_applied(applied))


@verb(app, "status", options=PLACE, example="muniment db status --json")
def show_status(call: Call) -> None:
    """Show how far the database is; ends with 1 unless it is ready for this program."""
    settings = call.settings()
    state = _wait(_state, settings)
    call.show(state.as_dict(), lambda: state.draw(Screen()))
    if state.schema is not None and state.schema.changed:
        call.note(f"applied from other files than this program's: {listed(state.schema.changed)}")
    for one in state.refused_names:
        call.note(f"tenant {one.tenant_id}: nobody is let in by {one.key_id}, its principal's name {one.problem}")
    if state.refusal is not None:
        raise state.refusal


Tenants = Annotated[
    list[str] | None, typer.Option("--tenant", metavar="ID", help="Only this tenant; all of them where none is given.")
]


@verb(app, "rebuild-durable", options=PLACE, example="muniment db rebuild-durable --tenant tenant_acme_prod")
def rebuild_durable(call: Call, tenant: Tenants = None) -> None:
    """Make what the durable tier is found by again from its log, and say whether it equals what it replaces.

    Readers go on meanwhile; writers wait for one tenant at a time.
    """
    found = _wait(_for_tenants, call, tenant, "rebuilding", _rebuilt)
    call.show({"tenants": found}, lambda: _draw_rebuilt(found))


@verb(app, "reindex", options=PLACE, example="MUNIMENT_EMBEDDER=... muniment db reindex")
def reindex(call: Call, tenant: Tenants = None) -> None:
    """Give memories the words and vectors that they lack: after an upgrade, or a change of embedder.

    Recall goes on with the vectors of before until a tenant is done. Safe to interrupt and to run again.
    """
    found = _wait(_for_tenants, call, tenant, "reindexing", _reindexed)
    call.show({"tenants": found}, lambda: _draw_reindexed(found))


_Done = dict[str, Any]


async def _for_tenants(
    call: Call,
    named: list[str] | None,
    what: str,
    work: Callable[[Opened, str], Coroutine[Any, Any, _Done]],
) -> list[_Done]:
    """The same work for each tenant, one after the other, on the open database."""
    opened = await connect(call.settings(), None)
    try:
        known = await upkeep.tenants(opened.context)
        if unknown := [one for one in named or () if one not in known]:
            raise InvalidInput(f"there is no tenant {unknown[0]}", field="tenant")
        wanted = named or known
        found: list[_Done] = []
        with progress(what, len(wanted), as_json=call.as_json) as steps:
            for place, tenant_id in enumerate(wanted):
                steps.at(f"{what} {tenant_id}", place)
                found.append({"tenant_id": tenant_id} | await work(opened, tenant_id))
            steps.at(f"{len(wanted)} of {len(wanted)}", len(wanted))
        return found
    finally:
        await opened.close()


async def _rebuilt(opened: Opened, tenant_id: str) -> _Done:
    done = await upkeep.rebuilt(opened.context, opened.address, tenant_id)
    return {"memories": done.memories, "equal": not done.repaired, "repaired": list(done.repaired)}


async def _reindexed(opened: Opened, tenant_id: str) -> _Done:
    done = await upkeep.reindexed(opened.context, tenant_id)
    return {"memories": done.memories, "embedder": done.embedder}


def _draw_rebuilt(found: list[_Done]) -> None:
    screen = Screen()
    for one in found:
        said = "equal to what was there" if one["equal"] else f"{len(one['repaired'])} repaired"
        screen.line(f"{one['tenant_id']}  {one['memories']} durable memories, {said}")
        for memory_id in one["repaired"]:
            screen.line(memory_id, indent=4)
    if not found:
        screen.line("there is no tenant yet")


def _draw_reindexed(found: list[_Done]) -> None:
    screen = Screen()
    for one in found:
        screen.line(f"{one['tenant_id']}  {one['memories']} memories indexed, by {one['embedder']}")
    if not found:
        screen.line("there is no tenant yet")


@dataclass(frozen=True)
class _State:
    """What `status` found."""

    place: str
    embedded: bool
    running: bool
    schema: SchemaStatus | None
    refusal: Exception | None
    refused_names: tuple[RefusedName, ...] = ()
    purging: list[str] | None = None

    def as_dict(self) -> dict[str, object]:
        found = self.schema
        return {
            "home" if self.embedded else "url": self.place,
            "embedded": self.embedded,
            "running": self.running,
            "ready": self.refusal is None,
            "server": found.server if found else None,
            "schema": found.current if found else None,
            "latest": migrations()[-1].version,
            "pending": found.pending if found else [f"{step.version:04d}_{step.name}" for step in migrations()],
            "changed": found.changed if found else (),
            "refused_names": [asdict(one) for one in self.refused_names],
            "clock_bound_s": found.clock_bound.total_seconds() if found and found.clock_bound else None,
            "purge_waits": self.purging,
        }

    def draw(self, screen: Screen) -> None:
        found = self.schema
        screen.facts(
            [
                ("home" if self.embedded else "url", self.place),
                ("embedded", ("running" if self.running else "stopped") if self.embedded else "no"),
                ("server", f"PostgreSQL {found.server}" if found else None),
                ("schema", f"{found.current} of {migrations()[-1].version}" if found else "none"),
                ("pending", listed(found.pending) if found else None),
                ("clock bound", _bound(found) if found else None),
                ("ready", "no" if self.refusal else "yes"),
                ("purges", None if self.purging is None else listed(self.purging) or "possible"),
            ],
            indent=0,
        )


def _bound(found: SchemaStatus) -> str:
    """How far ahead of the database's clock an event may be dated, in words."""
    return (
        "none: events may be dated ahead of the database's clock"
        if found.clock_bound is None
        else str(found.clock_bound)
    )


def as_url(place: dict[str, Any]) -> str:
    """A connection's parameters as an address that any client takes, without its secrets."""
    rest = {name: str(value) for name, value in place.items() if name not in _SECRETS and value not in (None, "")}
    user, database = rest.pop("user", ""), rest.pop("dbname", "")
    host = rest.get("host", "")
    server = ""
    if host and not any(sign in host for sign in "/,:@"):
        port = rest.pop("port", "")
        server = rest.pop("host") + (f":{port}" if port else "")
    who = f"{quote(user, safe='')}@" if user else ""
    query = f"?{urlencode(rest, quote_via=quote)}" if rest else ""
    return f"postgresql://{who}{server}/{quote(database, safe='')}{query}"


def _embedded_home(call: Call) -> Path:
    settings = call.settings()
    if settings.url is not None:
        raise InvalidInput("names a database that is not ours to start or stop; give --home instead", field="url")
    return settings.home


@contextlib.asynccontextmanager
async def _leased(home: Path) -> AsyncGenerator[embedded.Lease]:
    lease = await anyio.to_thread.run_sync(embedded.acquire, home)
    try:
        yield lease
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(lease.release)


async def _started(home: Path) -> Address:
    async with _leased(home) as lease:
        address = await prepared(lease)
        await anyio.to_thread.run_sync(embedded.keep_running, home)
        return address


async def _migrated(settings: Settings, reset_logins: bool) -> tuple[str, ...]:
    if settings.url is not None:
        address = Address.parse(settings.url, find_master_keys(None).login_secret())
        return await migrate(address, reset_logins=reset_logins)
    async with _leased(settings.home) as lease:
        try:
            pending = (await status(embedded_address(lease))).pending
        except StorageUnavailable:
            pending = tuple(f"{step.version:04d}_{step.name}" for step in migrations())
        await prepared(lease)
        return pending


async def _state(settings: Settings) -> _State:
    if settings.url is not None:
        address = Address.parse(settings.url, find_master_keys(None).login_secret())
        return await _examined(address, as_url(address.owner), embedded=False)
    running = embedded.is_running(settings.home)
    if not running and not (settings.home / "data").is_dir():
        refusal = StorageUnavailable(f"there is no database in {settings.home} yet; muniment db start makes one")
        return _State(str(settings.home), embedded=True, running=False, schema=None, refusal=refusal)
    async with _leased(settings.home) as lease:
        return await _examined(embedded_address(lease), str(settings.home), embedded=True, running=running)


async def _examined(address: Address, place: str, *, embedded: bool, running: bool | None = None) -> _State:
    schema, refusal = None, None
    try:
        schema = await status(address)
        await require_ready(address)
    except StorageError as error:
        refusal = error
    runs = schema is not None if running is None else running
    refused = tuple(await refused_names(address)) if schema is not None and refusal is None else ()
    # The embedded server's settings are its own.
    waits = await obstacles(address.for_owner()) if schema is not None and not embedded else None
    return _State(
        place,
        embedded=embedded,
        running=runs,
        schema=schema,
        refusal=refusal,
        refused_names=refused,
        purging=waits,
    )


def _draw_applied(applied: tuple[str, ...]) -> None:
    screen = Screen()
    for name in applied:
        screen.line(f"applied {name}")
    if not applied:
        screen.line(f"nothing to apply: the schema is at {migrations()[-1].version}")


def _wait(work: Callable[..., Coroutine[Any, Any, _T]], *arguments: Any) -> _T:
    return anyio.run(work, *arguments)
