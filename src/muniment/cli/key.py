"""Keys: a fresh master key, and one that takes another's place."""

from pathlib import Path
from typing import Annotated, Any

import anyio
import typer

from muniment.cli.asking import PLACE, Call, verb
from muniment.cli.output import Screen, progress
from muniment.cli.views import count
from muniment.fabric import rotation, upkeep
from muniment.fabric.connect import connect
from muniment.storage.master import new_master_key, put_master_keys, read_master_keys

app = typer.Typer(no_args_is_help=True)


@verb(app, "new", example='export MUNIMENT_MASTER_KEY="$(muniment key new)"')
def new(call: Call) -> None:
    """Print a fresh master key, in the form MUNIMENT_MASTER_KEY takes. It is kept nowhere."""
    key = new_master_key()
    call.show({"master_key": key}, lambda: Screen().write(f"{key}\n"))


@verb(app, "rotate", options=PLACE, example="muniment key rotate --new-master")
def rotate(
    call: Call,
    new_master: Annotated[
        bool, typer.Option("--new-master", help="Put a fresh master key in the place of the one in the key file.")
    ] = False,
    key_file: Annotated[
        Path | None,
        typer.Option("--key-file", metavar="FILE", help="The key file; the embedded home's when not said."),
    ] = None,
) -> None:
    """Give every tenant a fresh key under the current master key, while everybody goes on working.

    Where the master key is in the environment, set MUNIMENT_MASTER_KEY to the new one and the old one with a comma
    between everywhere first, run this, and then leave the old one out.
    """
    done = anyio.run(_rotate, call, new_master, key_file)
    call.show({"tenants": done}, lambda: Screen().line(f"{count(len(done), 'tenant')} under a fresh key"))


async def _rotate(call: Call, new_master: bool, key_file: Path | None) -> list[dict[str, Any]]:
    settings = call.settings()
    path = key_file or settings.home / "master.key"
    opened = await connect(settings, None)
    try:
        earlier = read_master_keys(path) if new_master else []
        if new_master:
            put_master_keys(path, new_master_key(), *earlier)
        found = await upkeep.tenants(opened.desk)
        done: list[dict[str, Any]] = []
        with progress("rotating", len(found), as_json=call.as_json) as steps:
            for place, tenant_id in enumerate(found):
                steps.at(f"rotating {tenant_id}", place)
                done.append({"tenant_id": tenant_id, "version": await rotation.rotate(opened.desk, tenant_id)})
        if new_master:
            # Nothing is wrapped under the earlier ones any more.
            put_master_keys(path, *read_master_keys(path)[: -len(earlier)])
        return done
    finally:
        await opened.close()
