"""Packs: their schema, validation of a file, and the versions registered in a tenant."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from muniment.cli import pack_views
from muniment.cli.call import Call
from muniment.cli.command import command, group
from muniment.cli.inputs import parse_since
from muniment.cli.options import ASKER, argument, flag
from muniment.cli.output import Screen, table, write_json
from muniment.cli.plain import plain
from muniment.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from muniment.pack import Pack
    from muniment.packs.store import RegisteredPack

app = typer.Typer()
pack = group(app, "pack")
_ACTIVATION = "pack activated_at activated_by previous_pack reason"

Ref = Annotated[str, argument("PACK", "A registered version, such as acme@1.2.0.")]
FileOrRef = Annotated[str, argument("PACK", "A file, a profile, or a registered version such as acme@1.2.0.")]
Reason = Annotated[str, flag("--reason TEXT", "Why; it is kept in the event log.")]


@command(pack, "schema")
def schema(call: Call) -> None:
    """Print the JSON Schema of packs, as JSON also without --json."""
    from muniment.pack import pack_schema

    write_json(pack_schema())


@command(pack, "validate")
def validate(call: Call, file: Annotated[Path, argument("FILE", "A pack in YAML or JSON.")]) -> None:
    """Validate a pack, and show every problem with its line."""
    from muniment.pack import load_pack

    found = load_pack(file)
    call.show_line({"pack": found.ref, "digest": found.digest}, f"{found.ref} is valid")


def _entry(one: "RegisteredPack") -> dict[str, Any]:
    return {
        "pack": one.ref,
        "digest": one.digest,
        "registered_at": one.registered_at,
        "registered_by": one.registered_by,
        "in_force": one.in_force,
        "retired": one.retired,
    }


def _draw(screen: Screen, entries: Sequence[Mapping[str, Any]]) -> None:
    rows = [
        (
            one["pack"],
            "in force" if one["in_force"] else "retired" if one["retired"] else "",
            one["registered_at"],
            one["registered_by"],
            one["digest"][:12],
        )
        for one in entries
    ]
    screen.table(("pack", "state", "registered", "by", "digest"), rows)


@command(pack, "register", options=ASKER)
def register(
    call: Call,
    file: Annotated[Path | None, argument("FILE", "A pack in YAML or JSON, or the name of a profile.")] = None,
    builtin: Annotated[bool, flag("--builtin", "The built-in pack of this version of the program.")] = False,
) -> None:
    """Register a pack in the tenant. It cannot be changed afterwards; registering it again changes nothing.

    It has no effect until it is activated: muniment pack activate.
    """
    from muniment.pack import PROFILES, builtin_pack, load_pack, profile_pack

    if (file is None) is not builtin:
        raise InvalidInput("give a file, a profile's name, or --builtin", field="file")
    named = str(file) in PROFILES and file is not None and not file.exists()
    found = profile_pack(str(file)) if named else load_pack(file) if file is not None else builtin_pack()
    with call.open() as fabric:
        registered = fabric.packs.register(call.principal("admin"), found)
    entry = _entry(registered)
    call.show(entry, lambda screen, _: _draw(screen, [entry]))


@command(pack, "activate", options=ASKER)
def activate(
    call: Call,
    ref: Ref,
    reason: Reason = "",
    dry_run: Annotated[bool, flag("--dry-run", "Only show what would change, and who may do it.")] = False,
    yes: Annotated[bool, flag("--yes", "Do not ask for confirmation.")] = False,
) -> None:
    """Put a registered version in force: it decides everything in the tenant from then on.

    On a terminal the differences from the version in force are shown first. If it loosens a rule, or a pack requires
    four eyes, it has to be activated by another admin than the one who registered it.
    """
    admin = call.principal("admin")
    if not dry_run and not reason.strip():
        raise InvalidInput("is required: say why, with --reason", field="reason")
    with call.open() as fabric:
        plan = fabric.packs.plan_activation(admin, ref)
        if dry_run:
            call.show(plan, pack_views.draw_plan)
            return
        if not yes and not call.as_json and sys.stdin.isatty():
            pack_views.draw_plan(Screen(), plan)
            call.confirm(f"Put {ref} in force?", yes=yes)
        made = fabric.packs.activate(admin, ref, reason=reason, expected=plan.in_force)
    call.show(made, table(_ACTIVATION))


plain(pack, "retire", draw=lambda screen, done: screen.line(f"{done.pack} is retired"))
plain(pack, "in-force", draw=_ACTIVATION)
plain(pack, "history", draw=_ACTIVATION, empty="no pack was ever in force")


@command(pack, "show", options=ASKER)
def show(
    call: Call,
    ref: Annotated[str | None, argument("PACK", "A registered version; by default the one in force.")] = None,
) -> None:
    """Print a registered version, or the one in force.

    In a tenant that has none yet: the pack that its first write puts in force.
    """
    import yaml

    contents = _find(call, ref).document()
    # Whatever is not plain ASCII is escaped, so that it holds nothing that a terminal obeys.
    call.show(contents, lambda screen, _: screen.write(yaml.safe_dump(contents, sort_keys=False, allow_unicode=False)))


def _find(call: Call, ref: str | None) -> "Pack":
    if ref is not None or call.is_remote() or not call.is_new(call.settings()):
        admin = call.principal("admin")
        with call.open() as fabric:
            try:
                return fabric.packs.get(admin, ref or fabric.packs.in_force(admin).pack).pack
            except NotFound:
                if ref is not None or call.is_remote():
                    raise
    return _first_pack(call)


def _first_pack(call: Call) -> "Pack":
    """Return the pack that the first write puts in force in a tenant without one."""
    from muniment.pack import builtin_pack
    from muniment.settings import Settings

    call.note("no pack is in force yet; the first write puts this one in force")
    return Settings.gather(None, pack=call.options["pack_file"], home=None, clock=None).pack or builtin_pack()


plain(pack, "list", draw=_draw, document=lambda found, _: [_entry(one) for one in found], empty="no packs")


@command(pack, "compare", options=ASKER)
def compare(call: Call, one: FileOrRef, other: FileOrRef) -> None:
    """Show how the second pack differs from the first, rule by rule."""
    with call.open() as fabric:
        found = fabric.packs.compare(call.principal("admin"), _file_or_ref(one), _file_or_ref(other))
    call.show(found, pack_views.draw_difference)


@command(pack, "backtest", options=ASKER)
def backtest(
    call: Call,
    tried: FileOrRef,
    against: Annotated[
        str | None, flag("--against REF", "The registered version to compare with; by default the one in force.")
    ] = None,
    since: Annotated[str | None, flag("--since TIME", "How long ago, such as 30d, or a time in ISO 8601.")] = None,
    limit: Annotated[int, flag("--limit", "At most this many captures, the latest.")] = 1000,
    recalls: Annotated[int, flag("--recalls", "At most this many recalls, the latest.")] = 200,
    texts: Annotated[
        bool, flag("--texts", "For reviewers: show the beginning of texts that the queue shows, masked.")
    ] = False,
) -> None:
    """Run recorded captures and recalls through a pack, and show what it would decide differently.

    It is a dry run: nothing is written.
    """
    start = parse_since(since)
    asker = call.principal("reviewer" if texts else "admin")
    with call.open() as fabric, call.progress("backtest") as steps:
        found = fabric.packs.backtest(
            asker,
            _file_or_ref(tried),
            against=against,
            since=start,
            limit=limit,
            recalls=recalls,
            texts=texts,
            on_progress=lambda done: steps.update(f"{done} captures and recalls"),
        )
    call.show(found, pack_views.draw_backtest)


@command(pack, "backfill", options=ASKER)
def backfill(
    call: Call,
    ref: Annotated[str, argument("REF", "A registered version, such as acme@2.0.0.")],
    dry_run: Annotated[bool, flag("--dry-run", "Only show what it would do.")] = False,
) -> None:
    """Adapt live memories to the ontology of a pack: renamed, retyped and dropped predicates.

    You approve every memory that it changes. Memories that cannot be adapted stay, and are listed. With a server's key
    without the role admin it is ordered, and the worker there carries it out.
    """
    reviewer = call.principal("reviewer")
    with call.open() as fabric, call.progress("backfill") as steps:
        found = fabric.packs.backfill(reviewer, ref, dry_run=dry_run)
        if not dry_run and call.may_work():
            done = fabric.packs.run_backfill(call.tenant, on_progress=lambda number: steps.update(f"{number} memories"))
            found = done or found
    call.show(found, pack_views.draw_backfill)


plain(pack, "backfills", draw=pack_views.draw_backfill, empty="no backfills", limit=10)


def _file_or_ref(given: str) -> str | Path:
    """Return a reference or a profile's name if it looks like one and no file has that name, else a path."""
    from muniment.pack import PROFILES

    named = "@" in given or given in PROFILES
    return given if named and not Path(given).exists() else Path(given)
