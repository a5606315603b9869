"""Keys: a fresh master key."""

import typer

from muniment.cli.asking import Call, verb
from muniment.cli.output import Screen
from muniment.storage.master import new_master_key

app = typer.Typer(no_args_is_help=True)


@verb(app, "new", example='export MUNIMENT_MASTER_KEY="$(muniment key new)"')
def new(call: Call) -> None:
    """Print a fresh master key, in the form MUNIMENT_MASTER_KEY takes. It is kept nowhere."""
    key = new_master_key()
    call.show({"master_key": key}, lambda: Screen().write(f"{key}\n"))
