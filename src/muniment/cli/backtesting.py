"""How a change of packs is shown: what differs between two, what history says, what became of memories."""

from datetime import datetime, timedelta
from typing import Any, cast

from muniment.cli.output import Screen, moment
from muniment.errors import InvalidInput
from muniment.model.backfill import Backfill
from muniment.model.backtest import FATES, Backtest, Tally
from muniment.model.pack_difference import PackDifference
from muniment.pack import parse_duration

_SIGNS = {"added": "+", "removed": "-", "changed": "~"}


def difference(screen: Screen, found: PackDifference) -> None:
    """The changes by section."""
    if not found.changes:
        screen.line(f"{found.other} says what {found.one} says")
        return
    for section, changes in found.by_section().items():
        screen.line((section, "bold"))
        for change in changes:
            path = change.path.removeprefix(f"{section}.")
            sides = f"{_plain(change.before)} -> {_plain(change.after)}"
            shown = {"added": _plain(change.after), "removed": _plain(change.before)}.get(change.kind, sides)
            screen.line(f"{_SIGNS[change.kind]} {path}: {shown}", indent=2)


def backtest(screen: Screen, found: Backtest) -> None:
    """Counts under both packs, then every rule that decides differently."""
    window = f"{f'{moment(found.since)} to ' if found.since else 'up to '}{moment(found.until)}"
    screen.line(f"{found.pack} beside {found.against}, {window}")
    screen.line(
        f"{found.captures} captures{' (there are more)' if found.more else ''}, {found.recalls.recalls} recalls"
        f"{f', {found.unreadable + found.recalls.unreadable} could not be read' if found.unreadable else ''}"
    )
    rows = [(fate, _count(found.before, fate), _count(found.after, fate)) for fate in FATES]
    screen.table(("would be", found.against, found.pack), [row for row in rows if row[1] or row[2]])
    if found.recalls.changed:
        screen.line(
            f"{found.recalls.changed} recalls differ: {found.recalls.come} records come, {found.recalls.gone} go"
        )
    if not found.differences:
        screen.line("nothing would be decided differently")
    for one in found.differences:
        screen.line((one.rule, "bold"), f"  {one.count} times: {one.before} -> {one.after}")
        for example in one.examples:
            records = f" ({', '.join(example.records)})" if example.records else ""
            screen.line(f"{example.id}{records}{f'  {example.text}' if example.text else ''}", indent=4)
    for name, count in found.left_out.items():
        screen.line(f"{name} was not asked about {count} captures")
    for note in found.notes:
        screen.line((note, "dim"))


def _count(tally: Tally, fate: Any) -> int:
    return tally.fates.get(fate, 0)


def backfill(screen: Screen, found: Backfill) -> None:
    """One order, how far it is, and what waits for a person."""
    state = "not ordered" if found.backfill_id is None else "finished" if found.finished_at else "under way"
    screen.line((found.backfill_id or found.pack, "bold"), f"  {state}")
    screen.facts(
        [
            ("pack", found.pack),
            ("ontology", f"{', '.join(found.from_versions) or 'none'} -> {found.ontology_version}"),
            ("ordered", f"{moment(found.ordered_at)} by {found.ordered_by}" if found.backfill_id else None),
            ("planned", _counted(found.planned)),
            ("done", _counted(found.done)),
        ]
    )
    if found.left:
        rows = [(one.memory_id, one.change, one.outcome, one.reason, one.proposal_id) for one in found.left]
        screen.table(("memory", "change", "outcome", "reason", "proposal"), [[cell or "" for cell in r] for r in rows])


def _counted(counts: Any) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))


def _plain(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case list():
            return f"[{', '.join(map(_plain, cast('list[Any]', value)))}]"
        case dict():
            said = {key: item for key, item in cast("dict[str, Any]", value).items() if item is not None}
            return "{" + ", ".join(f"{key}: {_plain(item)}" for key, item in said.items()) + "}"
        case _:
            return str(value)


def since(given: str | None, now: datetime) -> datetime | None:
    """A time in ISO 8601, or how long ago, such as 30d; raises `InvalidInput`."""
    if given is None:
        return None
    try:
        ago: timedelta = parse_duration(given)
        return now - ago
    except (ValueError, OverflowError):
        pass
    try:
        return datetime.fromisoformat(given)
    except ValueError:
        raise InvalidInput("expected how long ago, such as 30d, or a time in ISO 8601", field="since") from None
