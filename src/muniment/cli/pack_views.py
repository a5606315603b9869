"""Views of packs: differences, activations, backtests and backfills."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from muniment.cli.output import Screen, by_and_at, counted, format_time, joined
from muniment.model.backtest import FATES, Backtest

if TYPE_CHECKING:
    from muniment.model.activation import ActivationPlan, PackDifference
    from muniment.model.backfill import Backfill


_SIGNS = {"added": "+", "removed": "-", "changed": "~"}


def draw_difference(screen: Screen, found: PackDifference) -> None:
    """Draw the changes between two packs, by section."""
    if not found.changes:
        screen.line(f"{found.one} and {found.other} are the same")
        return
    for section, changes in found.by_section().items():
        screen.line((section, "bold"))
        for change in changes:
            path = change.path.removeprefix(f"{section}.")
            before, after = _plain(change.before), _plain(change.after)
            shown = {"added": after, "removed": before}.get(change.kind, f"{before} -> {after}")
            screen.line(f"{_SIGNS[change.kind]} {path}: {shown}", indent=2)


def draw_plan(screen: Screen, found: ActivationPlan) -> None:
    """Draw what the activation of a version would change, and who may do it."""
    screen.line(f"in force now: {found.in_force or 'none'}")
    if found.difference is not None:
        draw_difference(screen, found.difference)
    for rule in found.loosens:
        screen.line(f"loosens {rule}")
    if found.second_person:
        screen.line(f"must be activated by an admin other than {found.registered_by}, who registered it")
    else:
        screen.line("any admin may activate it")
    if found.proposals:
        screen.line(f"open proposals that have to pass the gates again: {found.proposals}")
    if found.horizons_from is not None:
        screen.line(
            f"from {found.horizons_from:%Y-%m-%d %H:%M} UTC on: deletes {found.collects_memories} memories, "
            f"archives {found.archives_captures} captures"
        )


def draw_backtest(screen: Screen, found: Backtest) -> None:
    """Draw the outcomes under both packs, and every rule that decides differently."""
    window = f"{f'{format_time(found.since)} to ' if found.since else 'up to '}{format_time(found.until)}"
    screen.line(f"{found.pack} compared with {found.against}, {window}")
    unreadable = found.unreadable + found.recalls.unreadable
    screen.line(
        f"{found.captures} captures{' (there are more)' if found.more else ''}, {found.recalls.recalls} recalls"
        f"{f', {unreadable} could not be read' if found.unreadable else ''}"
    )
    rows = [(fate, found.before.fates.get(fate, 0), found.after.fates.get(fate, 0)) for fate in FATES]
    screen.table(("would be", found.against, found.pack), [row for row in rows if row[1] or row[2]])
    if found.recalls.changed:
        changed = f"{found.recalls.come} records are added, {found.recalls.gone} are missing"
        screen.line(f"{found.recalls.changed} recalls differ: {changed}")
    if not found.differences:
        screen.line("no decision differs")
    for one in found.differences:
        screen.line((one.rule, "bold"), f"  {counted(one.count, 'time')}: {one.before} -> {one.after}")
        for example in one.examples:
            records = f" ({', '.join(example.records)})" if example.records else ""
            screen.line(f"{example.id}{records}{f'  {example.text}' if example.text else ''}", indent=4)
    for name, count in found.left_out.items():
        screen.line(f"{name} was not run on {count} captures")
    for note in found.notes:
        screen.line((note, "dim"))


def draw_backfill(screen: Screen, found: Backfill) -> None:
    """Draw a backfill, its progress, and the memories that need a person."""
    state = "not ordered" if found.backfill_id is None else "finished" if found.finished_at else "running"
    screen.line((found.backfill_id or found.pack, "bold"), f"  {state}")
    screen.fields(
        [
            ("pack", found.pack),
            ("ontology", f"{', '.join(found.from_versions) or 'none'} -> {found.ontology_version}"),
            ("ordered", by_and_at(found.ordered_by, found.ordered_at) if found.backfill_id else None),
            ("planned", _counts(found.planned) or "nothing to change"),
            ("done", _counts(found.done)),
        ]
    )
    screen.records("memory_id change outcome reason proposal_id", found.left)


def _counts(counts: Mapping[Any, int]) -> str:
    return joined(f"{count} {name}" for name, count in sorted(counts.items()))


def _plain(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case list():
            return f"[{', '.join(map(_plain, cast('list[Any]', value)))}]"
        case dict():
            shown = {key: item for key, item in cast("dict[str, Any]", value).items() if item is not None}
            return "{" + ", ".join(f"{key}: {_plain(item)}" for key, item in shown.items()) + "}"
        case _:
            return str(value)
