"""Packs: the schema they follow, checking one, and those registered in a tenant."""

from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from muniment.cli.asking import WHERE, WHO, Call, verb
from muniment.cli.output import Screen, document
from muniment.fabric.settings import Settings
from muniment.governance.packs import RegisteredPack
from muniment.pack import Pack, builtin_pack, load_pack, pack_schema

app = typer.Typer(no_args_is_help=True)
_OPTIONS = (*WHO, *WHERE)

File = Annotated[Path, typer.Argument(metavar="FILE", help="A pack in YAML or JSON.")]


@verb(app, "schema", example="muniment pack schema > pack.schema.json")
def schema(call: Call) -> None:
    """Print the JSON Schema of packs; it is JSON with or without --json."""
    document(pack_schema())


@verb(app, "validate", example="muniment pack validate acme.pack.yaml")
def validate(call: Call, file: File) -> None:
    """Check a pack, and name everything wrong with it at its line."""
    pack = load_pack(file)
    call.show({"pack": pack.ref, "digest": pack.digest}, lambda: Screen().line(f"{pack.ref} is valid"))


@verb(app, "register", options=_OPTIONS, example="muniment pack register acme.pack.yaml --tenant tenant_acme_prod")
def register(call: Call, file: File) -> None:
    """Register a pack in the tenant. It is immutable from then on; the same again changes nothing."""
    pack = load_pack(file)
    with call.open() as fabric:
        registered = fabric.packs.register(call.principal("admin"), pack)
    call.show(_entry(registered), lambda: _table([registered]))


@verb(app, "show", options=_OPTIONS, example="muniment pack show acme@1.2.0")
def show(
    call: Call,
    ref: Annotated[
        str | None, typer.Argument(metavar="PACK", help="A registered one; the one in force here when not said.")
    ] = None,
) -> None:
    """Print a registered pack, or the one that rules where no run pins another."""
    if ref is None:
        pack = _in_force(call)
    else:
        with call.open() as fabric:
            pack = fabric.packs.get(call.principal("admin"), ref).pack
    contents = pack.document()
    call.show(contents, lambda: Screen().write(_as_yaml(contents)))


@verb(app, "list", options=_OPTIONS, example="muniment pack list")
def list_packs(call: Call) -> None:
    """List the packs registered in the tenant, in the order of their registration."""
    with call.open() as fabric:
        found = fabric.packs.list(call.principal("admin"))
    call.show([_entry(one) for one in found], lambda: _table(found))


def _in_force(call: Call) -> Pack:
    settings = Settings.gather(None, pack=call.given["pack_file"], home=None, clock=None)
    return settings.pack or builtin_pack()


def _as_yaml(contents: dict[str, Any]) -> str:
    # Escapes whatever is not plain ASCII, so a terminal has nothing to obey.
    return yaml.safe_dump(contents, sort_keys=False, allow_unicode=False)


def _entry(one: RegisteredPack) -> dict[str, object]:
    return {
        "pack": one.ref,
        "digest": one.digest,
        "registered_at": one.registered_at,
        "registered_by": one.registered_by,
    }


def _table(found: list[RegisteredPack]) -> None:
    rows = [(one.ref, one.registered_at, one.registered_by, one.digest[:12]) for one in found]
    Screen().table(("pack", "registered", "by", "digest"), rows)
