"""Rows that come without an event are digested when the chain is sealed; rows of before an upgrade are listed once."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from muniment.audit.row_audit import first_key, key_of
from muniment.database.row_forms import FORMS, Form
from muniment.database.row_lists import EventRow, RowKey, listing_of, pack
from muniment.database.storage import Row, Transaction
from muniment.model.ids import first_id, made_at

# Of a sweep, in one batch of the chain.
AT_ONCE = 4096
# How long after the time in its id a row may be committed, and how far two clocks may be apart.
LATE = timedelta(hours=1)

SWEPT = tuple(form for form in FORMS if form.id_prefix is not None)


@dataclass(frozen=True)
class Sweep:
    """Rows for the batch after that number, and the time up to which all were looked for."""

    after: int
    rows: bytes
    until: datetime


async def sweep(tx: Transaction, key: RowKey) -> Sweep | None:
    """The rows that came without an event since the last sweep; None where there is none."""
    last = await tx.row("chain.last")
    if last is None:
        return None  # A batch ends at an event.
    row = await tx.row("rows.swept_until")
    since: datetime | None = row["at"] if row is not None else None
    known: dict[str, set[str]] = {}
    if since is not None:
        for listed in await tx.rows("rows.lists_since", since=since - 2 * LATE):
            for (name, _), rows in listing_of(listed["rows"]).standing.items():
                known.setdefault(name, set()).update(rows.ids)
    told: list[EventRow] = []
    until = tx.now
    for form in SWEPT:
        found, last_id = await _unknown(tx, form, since, known.get(form.name, set()), AT_ONCE - len(told))
        told += found
        if last_id is not None:
            # There are more: the next sweep goes on here.
            until = min(until, made_at(last_id) or until)
    return Sweep(last["number"], pack(key, told, AT_ONCE), until) if told else None


async def _unknown(
    tx: Transaction, form: Form, since: datetime | None, known: set[str], count: int
) -> tuple[list[EventRow], str | None]:
    """At most so many that are not known, and the last of them where there may be more."""
    assert form.id_prefix is not None
    after = first_id(form.id_prefix, since - LATE) if since is not None else ""
    found: list[EventRow] = []
    while True:
        rows = await tx.rows(f"form.{form.name} walk", count=AT_ONCE, **{f"key_{form.key}": after})
        for row in rows:
            if row["id"] in known:
                continue
            if len(found) == count:
                return found, found[-1].row_id if found else after
            found.append(_told(form, row))
        if len(rows) < AT_ONCE:
            return found, None
        after = rows[-1]["id"]


def settled_until(until: datetime | None) -> dict[str, str]:
    """For each form of such rows the id before which every row was listed."""
    if until is None:
        return {}
    return {form.name: first_id(form.id_prefix, until - LATE) for form in SWEPT if form.id_prefix is not None}


async def every_row(tx: Transaction) -> list[EventRow]:
    """All rows that events would have told of, hashed, for a tenant whose log lists none yet."""
    told: list[EventRow] = []
    for form in FORMS:
        if form.id_prefix is not None:
            continue
        after = first_key(form)
        while True:
            rows = await tx.rows(f"form.{form.name} walk", count=AT_ONCE, **after)
            told += [_told(form, row) for row in rows]
            if len(rows) < AT_ONCE:
                break
            after = key_of(form, rows[-1])
    return told


def _told(form: Form, row: Row) -> EventRow:
    return EventRow(form.name, form.version, row["id"], row["lasting"], row.get("losing"))
