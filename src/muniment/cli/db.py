"""The database: its address, its schema, and the embedded server."""

import contextlib
from collections.abc import AsyncGenerator, Callable, Coroutine
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, urlencode

import anyio
import anyio.to_thread
import typer

from muniment.candidates import languages
from muniment.cli import cluster
from muniment.cli.call import Call
from muniment.cli.command import command, group
from muniment.cli.options import PLACE, flag
from muniment.cli.output import Screen, joined
from muniment.database import embedded
from muniment.database.address import Address
from muniment.database.cluster.catalogue import NodeUse
from muniment.database.cluster.distribute import Cluster, bring_up_to_date, examine
from muniment.database.cluster.tenants import ReachedTenants, reached_tenants
from muniment.database.languages import Languages, MissingLanguage, missing_languages
from muniment.database.master import find_master_keys
from muniment.database.migrate import (
    SCHEMA_STEP,
    SchemaStatus,
    migrations,
    require_ready,
    status,
)
from muniment.database.primaries import ServerState, server_states
from muniment.database.refused_names import RefusedName, refused_names
from muniment.database.server_liveness import answering
from muniment.erasure.purge_nodes import Servers
from muniment.errors import InvalidInput, StorageError, StorageUnavailable
from muniment.opening import Opened, ReplicaState, connect, embedded_address, prepared, replica_state
from muniment.promotion import reindex as maintenance
from muniment.settings import Settings

app = typer.Typer()
db = group(app, "db")
cluster.add_commands(db)
# Parameters of a connection that are never shown.
_SECRETS = frozenset({"password", "sslpassword", "oauth_client_secret"})
_KEEPS_RUNNING = "the server keeps running; muniment db stop stops it"

Tenants = Annotated[list[str] | None, flag("--tenant ID", "Only this tenant; can be repeated; by default all.")]
_Result = dict[str, Any]


@command(db, "url", options=PLACE)
def url(call: Call) -> None:
    """Print the address of the database for psql, as the owner of the tables, without a password.

    An embedded server is started if necessary, and keeps running. Row-level security applies to the owner too:
    SET muniment.tenant = 'default' shows the rows of that tenant.
    """
    settings = call.settings()
    if settings.url is not None:
        address = _format_url(Address.parse(settings.url, None).owner)
    else:
        owner = anyio.run(_start, settings.home).owner
        # A client over a socket needs nothing else.
        own = {name: owner[name] for name in ("host", "port", "user", "dbname")}
        address = _format_url(own | {"options": "-c search_path=muniment,public"})
        call.note(_KEEPS_RUNNING)
    call.show({"url": address}, lambda screen, _: screen.write(f"{address}\n"))


@command(db, "start", options=PLACE)
def start(call: Call) -> None:
    """Start the embedded server and keep it running, so that later commands start faster."""
    home = _embedded_home(call)
    anyio.run(_start, home)
    call.show_line({"home": str(home), "running": True}, f"running in {home}")
    call.note(_KEEPS_RUNNING)


@command(db, "stop", options=PLACE)
def stop(call: Call) -> None:
    """Stop the embedded server; its connections are closed."""
    home = _embedded_home(call)
    stopped = embedded.stop(home)
    words = f"stopped in {home}" if stopped else f"no server was running in {home}"
    call.show_line({"home": str(home), "stopped": stopped}, words)


@command(db, "migrate", options=PLACE)
def migrate_database(
    call: Call,
    reset_logins: Annotated[
        bool, flag("--reset-logins", "Set the passwords of the server's logins from this master key.")
    ] = False,
) -> None:
    """Migrate the schema to the version of this program; an external database needs the master key."""
    settings = call.settings()
    applied = anyio.run(_migrate, settings, reset_logins)
    latest = migrations()[-1].version
    lines = [f"applied {name}" for name in applied] or [f"nothing to apply: the schema is at {latest}"]
    if reset_logins and settings.url is not None:
        lines.append("the logins have the passwords of this master key")
    call.show_line({"applied": applied, "latest": latest}, *lines)


@command(db, "status", options=PLACE)
def show_status(call: Call) -> None:
    """Show the status of the database; ends with 1 unless it is ready for this program."""
    state = anyio.run(_read_state, call.settings())
    call.show(state.as_dict(), lambda screen, _: state.draw(screen))
    if state.schema is not None and state.schema.changed:
        call.note(f"migrations applied from files that differ from this program's: {joined(state.schema.changed)}")
    for one in state.refused_names:
        call.note(f"tenant {one.tenant_id}: the key {one.key_id} is refused, the name of its principal {one.problem}")
    if state.language_problem is not None:
        call.note(f"the trained readers cannot be used: {state.language_problem}")
    for one in state.missing_languages:
        call.note(f"tenant {one.tenant_id}: its captures wait, {one.problem}")
    for node in state.nodes_away:
        call.note(f"the node {node} does not answer: its tenants are not served, and were not looked at here")
    if state.refusal is not None:
        raise state.refusal


@command(db, "rebuild-durable", options=PLACE)
def rebuild_durable(call: Call, tenant: Tenants = None) -> None:
    """Rebuild the index of the durable tier from its log, and report whether it was correct.

    Readers continue; writers wait, one tenant at a time.
    """
    found = anyio.run(_for_tenants, call, tenant, "rebuilding", _rebuild)
    lines: list[str] = []
    for one in found:
        result = "the index was correct" if one["equal"] else f"{len(one['repaired'])} repaired"
        lines += [f"{one['tenant_id']}  {one['memories']} durable memories, {result}"]
        lines += [f"    {memory_id}" for memory_id in one["repaired"]]
    call.show_line({"tenants": found}, *(lines or ["there is no tenant yet"]))


@command(db, "reindex", options=PLACE)
def reindex(call: Call, tenant: Tenants = None) -> None:
    """Index memories that lack words or vectors, after an upgrade or a change of the embedder.

    Until a tenant is done, recall uses the earlier vectors. It can be interrupted and run again.
    """
    found = anyio.run(_for_tenants, call, tenant, "reindexing", _reindex)
    lines = [f"{one['tenant_id']}  {one['memories']} memories indexed, by {one['embedder']}" for one in found]
    call.show_line({"tenants": found}, *(lines or ["there is no tenant yet"]))


@command(db, "language", options=PLACE)
def adopt_language(call: Call, tenant: Tenants = None) -> None:
    """Let this program's language version read the texts of tenants, and show what it was before.

    The version is that of the trained readers, if the package muniment-models is installed, else that of the rules.
    Readers that cannot be used are refused; with MUNIMENT_READERS=off the version is that of the rules.
    """
    found = anyio.run(_for_tenants, call, tenant, "adopting", _adopt_language)
    lines = [f"{one['tenant_id']}  {one['before']} -> {one['version']}" for one in found]
    call.show_line({"tenants": found}, *(lines or ["there is no tenant yet"]))


async def _for_tenants(
    call: Call, names: list[str] | None, what: str, work: Callable[[Opened, str], Coroutine[Any, Any, _Result]]
) -> list[_Result]:
    """Do the same work for each tenant, one after the other."""
    opened = await connect(call.settings(), None)
    try:
        known = await maintenance.tenants(opened.context)
        if unknown := [one for one in names or () if one not in known]:
            raise InvalidInput(f"there is no tenant {unknown[0]}", field="tenant")
        chosen = names or known
        found: list[_Result] = []
        with call.progress(what, len(chosen)) as steps:
            for place, tenant_id in enumerate(chosen):
                steps.update(f"{what} {tenant_id}", place)
                found.append({"tenant_id": tenant_id} | await work(opened, tenant_id))
            steps.update(f"{len(chosen)} of {len(chosen)}", len(chosen))
        return found
    finally:
        await opened.close()


async def _rebuild(opened: Opened, tenant_id: str) -> _Result:
    done = await maintenance.rebuilt(opened.context, opened.address, tenant_id)
    return {"memories": done.memories, "equal": not done.repaired, "repaired": list(done.repaired)}


async def _reindex(opened: Opened, tenant_id: str) -> _Result:
    done = await maintenance.reindexed(opened.context, tenant_id)
    return {"memories": done.memories, "embedder": done.embedder}


async def _adopt_language(opened: Opened, tenant_id: str) -> _Result:
    before, version = await languages.adopt_language(opened.context, tenant_id)
    return {"before": before, "version": version}


@dataclass(frozen=True)
class _State:
    """The status of a database."""

    place: str
    embedded: bool
    running: bool
    schema: SchemaStatus | None
    refusal: Exception | None
    refused_names: tuple[RefusedName, ...] = ()
    purge_obstacles: list[str] | None = None
    cluster: Cluster | None = None
    # The language version of this program, and why it cannot be used.
    language: str | None = None
    language_problem: str | None = None
    missing_languages: tuple[MissingLanguage, ...] = ()
    # The nodes that do not answer: nothing is known about the tenants there.
    nodes_away: tuple[str, ...] = ()
    # The standby that auditors' reads may go to.
    replica: ReplicaState | None = None
    # What each server is, where the address names several.
    servers: tuple[ServerState, ...] = ()

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
            "oldest": found.oldest if found else None,
            "pending": found.pending if found else (SCHEMA_STEP,),
            "changed": found.changed if found else (),
            "refused_names": [asdict(one) for one in self.refused_names],
            "language": self.language,
            "language_problem": self.language_problem,
            "missing_languages": [asdict(one) for one in self.missing_languages],
            "clock_bound_s": found.clock_bound.total_seconds() if found and found.clock_bound else None,
            "purge_waits": self.purge_obstacles,
            "replica": asdict(self.replica) if self.replica is not None else None,
            "servers": [asdict(one) for one in self.servers],
            "cluster": asdict(self.cluster) if self.cluster is not None else None,
            "nodes_away": self.nodes_away,
        }

    def draw(self, screen: Screen) -> None:
        found = self.schema
        unbounded = "none: events can be dated in the future of the database's clock"
        screen.fields(
            [
                ("home" if self.embedded else "url", self.place),
                ("embedded", ("running" if self.running else "stopped") if self.embedded else "no"),
                ("server", f"PostgreSQL {found.server}" if found else None),
                ("schema", f"{found.current} of {migrations()[-1].version}" if found else "none"),
                ("programs", f"those that know schema {found.oldest} or later" if found else None),
                ("pending", joined(found.pending) if found else None),
                (
                    "clock bound",
                    (str(found.clock_bound) if found.clock_bound is not None else unbounded) if found else None,
                ),
                ("language", self.language),
                ("ready", "no" if self.refusal else "yes"),
                *(("host", f"{one.server} ({one.state})") for one in self.servers),
                ("replica", self.replica.words if self.replica is not None else None),
                *self._cluster_fields(),
                ("purges", None if self.purge_obstacles is None else joined(self.purge_obstacles) or "possible"),
            ],
            indent=0,
        )

    def _cluster_fields(self) -> list[tuple[str, str | None]]:
        if self.cluster is None:
            return []
        below = joined(self.cluster.problems) or "nothing"
        nodes = (_describe(node, away=node.name in self.nodes_away) for node in self.cluster.nodes)
        return [*(("node", one) for one in nodes), ("below promise", below)]


def _describe(node: NodeUse, *, away: bool) -> str:
    role = "coordinator, " if node.coordinator else ""
    # The size is that node's to say.
    size = "does not answer" if away else f"{node.bytes / 1e6:,.0f} MB"
    active = "" if node.active else ", not active"
    return f"{node.name} ({role}{node.shards:,} shards, {size}{active})"


def _format_url(parameters: dict[str, Any]) -> str:
    """Format the parameters of a connection as an address for any client, without its secrets."""
    rest = {name: str(value) for name, value in parameters.items() if name not in _SECRETS and value not in (None, "")}
    user, database = rest.pop("user", ""), rest.pop("dbname", "")
    host = rest.get("host", "")
    server = ""
    if host and not any(sign in host for sign in "/,:@"):
        port = rest.pop("port", "")
        server = rest.pop("host") + (f":{port}" if port else "")
    login = f"{quote(user, safe='')}@" if user else ""
    query = f"?{urlencode(rest, quote_via=quote)}" if rest else ""
    return f"postgresql://{login}{server}/{quote(database, safe='')}{query}"


def _embedded_home(call: Call) -> Path:
    settings = call.settings()
    if settings.url is not None:
        raise InvalidInput("names an external database, which is not started or stopped here; give --home", field="url")
    return settings.home


@contextlib.asynccontextmanager
async def _lease(home: Path) -> AsyncGenerator[embedded.Lease]:
    lease = await anyio.to_thread.run_sync(embedded.acquire, home)
    try:
        yield lease
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(lease.release)


async def _start(home: Path) -> Address:
    async with _lease(home) as lease:
        address = await prepared(lease)
        await anyio.to_thread.run_sync(embedded.keep_running, home)
        return address


async def _migrate(settings: Settings, reset_logins: bool) -> tuple[str, ...]:
    if settings.url is not None:
        address = Address.parse(settings.url, find_master_keys(None).login_secret())
        return await bring_up_to_date(address, reset_logins=reset_logins)
    async with _lease(settings.home) as lease:
        try:
            pending = (await status(embedded_address(lease))).pending
        except StorageUnavailable:
            pending = (SCHEMA_STEP,)
        await prepared(lease)
        return pending


async def _read_state(settings: Settings) -> _State:
    if settings.url is not None:
        address = Address.parse(settings.url, find_master_keys(None).login_secret())
        return await _examine(settings, address, _format_url(address.owner), embedded=False)
    running = embedded.is_running(settings.home)
    if not running and not (settings.home / "data").is_dir():
        refusal = StorageUnavailable(f"there is no database in {settings.home} yet; muniment db start creates one")
        return _State(str(settings.home), embedded=True, running=False, schema=None, refusal=refusal)
    async with _lease(settings.home) as lease:
        return await _examine(settings, embedded_address(lease), str(settings.home), embedded=True, running=running)


async def _examine(
    settings: Settings, address: Address, place: str, *, embedded: bool, running: bool | None = None
) -> _State:
    schema, refusal = None, None
    try:
        schema = await status(address)
        await require_ready(address)
    except StorageError as error:
        refusal = error
    ready = schema is not None and refusal is None
    languages = Languages(settings.readers)
    reached, names, missing = ReachedTenants(()), list[RefusedName](), list[MissingLanguage]()
    if ready:
        with answering():
            reached = await reached_tenants(address)
            names = await refused_names(address, reached.tenants)
            missing = await missing_languages(address, languages, reached.tenants)
    return _State(
        place,
        embedded=embedded,
        running=schema is not None if running is None else running,
        schema=schema,
        refusal=refusal,
        refused_names=tuple(names),
        cluster=await examine(address) if schema is not None and not embedded else None,
        language=languages.own,
        language_problem=languages.own_problem(),
        missing_languages=tuple(missing),
        nodes_away=reached.away,
        # The embedded server is configured for purges.
        purge_obstacles=await (await Servers.of(address.for_owner())).problems()
        if schema is not None and not embedded
        else None,
        servers=await server_states(address.servers()) if len(address.servers()) > 1 else (),
        replica=await replica_state(settings.replica, address) if ready and settings.replica is not None else None,
    )
