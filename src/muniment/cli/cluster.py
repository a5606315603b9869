"""The database on a cluster: distributing it, and where tenants are."""

from typing import Annotated

import anyio
import typer

from muniment.cli.call import Call
from muniment.cli.command import command
from muniment.cli.options import PLACE, flag
from muniment.database.address import Address
from muniment.database.cluster import distribute as distribution
from muniment.database.cluster import moving
from muniment.database.cluster.script import superuser_script
from muniment.database.master import find_master_keys
from muniment.errors import InvalidInput

Tenant = Annotated[str, typer.Argument(metavar="TENANT", help="The tenant.")]


def add_commands(db: typer.Typer) -> None:
    """Add the commands to the group `db`."""
    command(db, "distribute", options=PLACE)(distribute)
    command(db, "isolate-tenant", options=PLACE)(isolate_tenant)
    command(db, "move-tenant", options=PLACE)(move_tenant)


def distribute(
    call: Call,
    script: Annotated[
        bool, flag("--script", "Only print the script that a superuser has to run first; it holds passwords.")
    ] = False,
    worker: Annotated[list[str] | None, flag("--worker HOST", "With --script: another node; can be repeated.")] = None,
    shards: Annotated[int, flag("--shards N", "Number of shards of each table.")] = distribution.SHARDS,
) -> None:
    """Distribute the tables over a Citus cluster by tenant; on tables that are, check the cluster and repair it.

    Stop all servers and workers first. Until it ends, only the owner can use the tables. If it is interrupted, run it
    again: it continues.
    """
    address = _address(call)
    if script:
        if not worker:
            raise InvalidInput("name each other node with --worker", field="worker")
        text = superuser_script(address, worker)
        call.show({"script": text}, lambda screen, _: screen.write(text))
        return
    with call.progress("distributing") as steps:
        done = anyio.run(
            lambda: distribution.distribute(
                address, lambda what, n, total: steps.update(f"{what} ({n + 1} of {total})", n), shards=shards
            )
        )
    result = {"tables": done.tables, "keys": done.keys, "repaired": done.repaired, "problems": list(done.problems)}
    lines = [
        f"{done.tables} tables are distributed, {done.keys} foreign keys were created again",
        f"the planner's samples were switched off for {done.repaired} columns of shards",
    ]
    call.show_line(result, *lines, *done.problems)
    if done.problems:
        raise typer.Exit(1)


def isolate_tenant(call: Call, tenant: Tenant) -> None:
    """Give a large tenant a shard of its own, which can then be moved to a node of its own.

    The address has to be a superuser's, because row-level security hides the rows from the owner. Calls for the tenants
    of the shard wait while its rows are copied; a call that would wait for longer than ten seconds gets `conflict`.
    """
    address = _address(call)
    with call.progress(f"isolating {tenant}"):
        place = anyio.run(moving.isolate, address, tenant)
    _show(call, place)


def move_tenant(
    call: Call,
    tenant: Tenant,
    to: Annotated[str, flag("--to HOST:PORT", "The node, as `muniment db status` names it.")],
) -> None:
    """Move a tenant, and whoever shares its shard, to another node of the cluster.

    The address has to be a superuser's, because row-level security hides the rows from the owner. Calls for the tenants
    of the shard wait while its rows are copied; a call that would wait for longer than ten seconds gets `conflict`.
    """
    address = _address(call)
    with call.progress(f"moving {tenant}"):
        place = anyio.run(moving.move, address, tenant, to)
    _show(call, place)


def _show(call: Call, place: moving.Placement) -> None:
    alone = "alone in" if place.alone else "with others in"
    result = {
        "tenant_id": place.tenant_id,
        "node": place.node,
        "shard": place.shard,
        "alone": place.alone,
        "repaired": place.repaired,
    }
    call.show_line(result, f"{place.tenant_id} is on {place.node}, {alone} shard {place.shard}")


def _address(call: Call) -> Address:
    url = call.settings().url
    if url is None:
        raise InvalidInput("a cluster is an external database: give its coordinator's address", field="url")
    return Address.parse(url, find_master_keys(None).login_secret())
