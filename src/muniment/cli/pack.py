"""Packs: the schema they follow, checking one, and those registered in a tenant."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from muniment.cli import activations, backtesting
from muniment.cli.asking import Call, instant, verb
from muniment.cli.options import WHERE, WHO
from muniment.cli.output import Screen, document, progress
from muniment.errors import InvalidInput, NotFound
from muniment.pack import Pack, builtin_pack, load_pack, pack_schema
from muniment.packs.store import RegisteredPack
from muniment.settings import Settings

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
def register(
    call: Call,
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="A pack in YAML or JSON.")] = None,
    builtin: Annotated[
        bool, typer.Option("--builtin", help="The pack that this version of the program brings.")
    ] = False,
) -> None:
    """Register a pack in the tenant. It is immutable from then on; the same again changes nothing.

    Nothing is decided by it until it is activated: muniment pack activate.
    """
    if (file is None) is not builtin:
        raise InvalidInput("give a file, or --builtin", field="file")
    pack = load_pack(file) if file is not None else builtin_pack()
    with call.open() as fabric:
        registered = fabric.packs.register(call.principal("admin"), pack)
    call.show(_entry(registered), lambda: _table([registered]))


Ref = Annotated[str, typer.Argument(metavar="PACK", help="A registered version, such as acme@1.2.0.")]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it stands in the log.")]


@verb(app, "activate", options=_OPTIONS, example='muniment pack activate acme@1.2.0 --reason "new returns policy"')
def activate(
    call: Call,
    ref: Ref,
    reason: Reason = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change and who may do it.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask on a terminal.")] = False,
) -> None:
    """Put a registered version in force: everything in the tenant is decided under it from then on.

    What differs from the version in force is shown first. Where it loosens a rule, or a pack asks for four eyes,
    somebody other than who registered it has to activate it.
    """
    admin = call.principal("admin")
    if not dry_run and not reason.strip():
        raise InvalidInput("is required: say why, with --reason", field="reason")
    with call.open() as fabric:
        plan = fabric.packs.plan_activation(admin, ref)
        if dry_run:
            call.show(plan, lambda: activations.plan(Screen(), plan))
            return
        if not yes and not call.as_json and sys.stdin.isatty():
            activations.plan(Screen(), plan)
            typer.confirm(f"Put {ref} in force?", abort=True, err=True)
        made = fabric.packs.activate(admin, ref, reason=reason, expected=plan.in_force)
    call.show(made, lambda: activations.table(Screen(), [made]))


@verb(app, "retire", options=_OPTIONS, example='muniment pack retire acme@1.1.0 --reason "replaced"')
def retire(call: Call, ref: Ref, reason: Reason) -> None:
    """End the use of a version for good: it can be neither activated nor pinned; the past is still read under it."""
    with call.open() as fabric:
        done = fabric.packs.retire(call.principal("admin"), ref, reason=reason)
    call.show(done, lambda: Screen().line(f"{done.pack} is retired"))


@verb(app, "in-force", options=_OPTIONS, example="muniment pack in-force --at 2026-05-04T09:31:00Z")
def in_force(
    call: Call,
    at: Annotated[
        str | None, typer.Option("--at", metavar="TIME", help="At that time, in ISO 8601; now when not said.")
    ] = None,
) -> None:
    """Show which version is in force, or was at a time, and who put it there."""
    with call.open() as fabric:
        found = fabric.packs.in_force(call.principal("admin"), at=instant(at, "at") if at is not None else None)
    call.show(found, lambda: activations.table(Screen(), [found]))


@verb(app, "history", options=_OPTIONS, example="muniment pack history")
def history(
    call: Call,
    limit: Annotated[int, typer.Option("--limit", help="At most so many.")] = 50,
    after: Annotated[
        int | None, typer.Option("--after", metavar="SEQ", help="The last one of the page before.")
    ] = None,
) -> None:
    """Show every version that was in force, the latest first."""
    with call.open() as fabric:
        found = fabric.packs.activations(call.principal("admin"), limit=limit, after=after)
    call.show(found, lambda: activations.table(Screen(), found))
    if len(found) == limit:
        call.note(f"there may be more: muniment pack history --after {found[-1].seq}")


@verb(app, "show", options=_OPTIONS, example="muniment pack show acme@1.2.0")
def show(
    call: Call,
    ref: Annotated[
        str | None, typer.Argument(metavar="PACK", help="A registered one; the one in force when not said.")
    ] = None,
) -> None:
    """Print a registered pack, or the one in force.

    In a tenant that has none yet: the one that its first write puts in force.
    """
    contents = _shown(call, ref).document()
    call.show(contents, lambda: Screen().write(_as_yaml(contents)))


def _shown(call: Call, ref: str | None) -> Pack:
    if ref is None and not call.is_remote() and call.is_new(call.settings()):
        return _given_at_start(call)
    admin = call.principal("admin")
    with call.open() as fabric:
        try:
            return fabric.packs.get(admin, ref or fabric.packs.in_force(admin).pack).pack
        except NotFound:
            if ref is not None or call.is_remote():
                raise
    return _given_at_start(call)


def _given_at_start(call: Call) -> Pack:
    """What is put in force in a tenant that has no pack."""
    call.note("no pack is in force yet; this one is from the first write on")
    return Settings.gather(None, pack=call.given["pack_file"], home=None, clock=None).pack or builtin_pack()


@verb(app, "list", options=_OPTIONS, example="muniment pack list")
def list_packs(
    call: Call,
    limit: Annotated[int, typer.Option("--limit", help="At most so many.")] = 200,
    after: Annotated[
        str | None, typer.Option("--after", metavar="REF", help="The last one of the page before.")
    ] = None,
) -> None:
    """List the packs registered in the tenant, in the order of their registration."""
    with call.open() as fabric:
        found = fabric.packs.list(call.principal("admin"), limit=limit, after=after)
    call.show([_entry(one) for one in found], lambda: _table(found))
    if len(found) == limit:
        call.note(f"there may be more: muniment pack list --after {found[-1].ref}")


Side = Annotated[str, typer.Argument(metavar="PACK", help="A file, or a registered one such as acme@1.2.0.")]


@verb(app, "compare", options=_OPTIONS, example="muniment pack compare acme@1.2.0 acme.pack.yaml")
def compare(call: Call, one: Side, other: Side) -> None:
    """Show in what the second pack differs from the first, rule by rule."""
    with call.open() as fabric:
        found = fabric.packs.compare(call.principal("admin"), _side(one), _side(other))
    call.show(found, lambda: backtesting.difference(Screen(), found))


@verb(app, "backtest", options=_OPTIONS, example="muniment pack backtest acme.pack.yaml --since 30d")
def backtest(
    call: Call,
    tried: Side,
    against: Annotated[
        str | None, typer.Option("--against", metavar="REF", help="A registered pack; the one in force when not said.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="How long ago, such as 30d, or a time in ISO 8601.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", help="At most so many captures, the latest.")] = 1000,
    recalls: Annotated[int, typer.Option("--recalls", help="At most so many recalls, the latest.")] = 200,
    texts: Annotated[
        bool, typer.Option("--texts", help="Show reviewers the beginning of what can be read in the queue, masked.")
    ] = False,
) -> None:
    """Run recorded captures and recalls through a pack, and show what it would decide differently.

    Beside the pack in force, as a dry run that cannot write.
    """
    start = backtesting.since(since, datetime.now(UTC))
    asker = call.principal("reviewer" if texts else "admin")
    with call.open() as fabric, progress("backtest", as_json=call.as_json) as steps:
        found = fabric.packs.backtest(
            asker,
            _side(tried),
            against=against,
            since=start,
            limit=limit,
            recalls=recalls,
            texts=texts,
            on_progress=lambda done: steps.at(f"{done} captures and recalls"),
        )
    call.show(found, lambda: backtesting.backtest(Screen(), found))


@verb(app, "backfill", options=_OPTIONS, example="muniment pack backfill acme@2.0.0 --dry-run")
def backfill(
    call: Call,
    ref: Annotated[str, typer.Argument(metavar="REF", help="A registered pack, such as acme@2.0.0.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what it would be about.")] = False,
) -> None:
    """Have live memories follow the ontology of a pack: renamed, retyped and dropped predicates.

    You approve every record that comes of it. What cannot follow stays, and is listed. Under a server's key without
    the role admin it is ordered, and the worker there carries it out.
    """
    reviewer = call.principal("reviewer")
    with call.open() as fabric, progress("backfill", as_json=call.as_json) as steps:
        found = fabric.packs.backfill(reviewer, ref, dry_run=dry_run)
        if not dry_run and call.may_work():
            found = (
                fabric.packs.run_backfill(call.tenant, on_progress=lambda done: steps.at(f"{done} memories")) or found
            )
    call.show(found, lambda: backtesting.backfill(Screen(), found))


@verb(app, "backfills", options=_OPTIONS, example="muniment pack backfills")
def backfills(
    call: Call,
    limit: Annotated[int, typer.Option("--limit", help="At most so many.")] = 10,
    after: Annotated[str | None, typer.Option("--after", metavar="ID", help="The last one of the page before.")] = None,
) -> None:
    """Show the backfills of the tenant, the latest first, and the memories that wait for a person."""
    with call.open() as fabric:
        found = fabric.packs.backfills(call.principal("admin"), limit=limit, after=after)

    def draw() -> None:
        for one in found:
            backtesting.backfill(Screen(), one)

    call.show(found, draw)
    if len(found) == limit:
        call.note(f"there may be more: muniment pack backfills --after {found[-1].backfill_id}")


def _side(given: str) -> str | Path:
    """A registered pack where the words name one and no file is called so."""
    return given if "@" in given and not Path(given).exists() else Path(given)


def _as_yaml(contents: dict[str, Any]) -> str:
    # Escapes whatever is not plain ASCII, so a terminal has nothing to obey.
    return yaml.safe_dump(contents, sort_keys=False, allow_unicode=False)


def _entry(one: RegisteredPack) -> dict[str, object]:
    return {
        "pack": one.ref,
        "digest": one.digest,
        "registered_at": one.registered_at,
        "registered_by": one.registered_by,
        "in_force": one.in_force,
        "retired": one.retired,
    }


def _table(found: list[RegisteredPack]) -> None:
    rows = [(one.ref, _state(one), one.registered_at, one.registered_by, one.digest[:12]) for one in found]
    Screen().table(("pack", "state", "registered", "by", "digest"), rows)


def _state(one: RegisteredPack) -> str:
    return "in force" if one.in_force else "retired" if one.retired else ""
