"""The orders of backfills in the database (JOB-8)."""

import psycopg

from muniment.database import cursors
from muniment.database.storage import LATEST, Row, Tick, Transaction
from muniment.errors import Conflict
from muniment.model.backfill import Backfill, BackfillItem
from muniment.model.context import Principal
from muniment.model.ids import make_id
from muniment.pack import Pack
from muniment.packs import backfill_rules as migration

LEFT_SHOWN = 1000
Place = tuple[int, str]
START: Place = (0, "")


async def order(tx: Transaction, principal: Principal, plan: Backfill) -> tuple[str, Tick]:
    """Record the order; raises `Conflict` while another is in progress."""
    if await in_progress(tx) is not None:
        raise Conflict("a backfill of this tenant is in progress", field="ref")
    tick = await tx.tick()
    backfill_id = make_id("bkf", tick.at)
    try:
        await tx.do(
            "backfill.order",
            backfill_id=backfill_id,
            seq=tick.seq,
            at=tick.at,
            by=principal.id,
            pack=plan.pack,
            ontology_version=plan.ontology_version,
            from_versions=list(plan.from_versions),
        )
    except psycopg.errors.UniqueViolation as error:
        raise Conflict("a backfill of this tenant is in progress", field="ref") from error
    about = {"about": "backfill_ordered", "backfill_id": backfill_id, "pack": plan.pack}
    tx.emit("memory.note", principal.id, **about, planned=plan.planned)
    return backfill_id, tick


async def lock_order(tx: Transaction) -> Row | None:
    """The order in progress, locked until the commit; None if there is none."""
    return await tx.row("backfill.take")


async def due(tx: Transaction, pack: Pack, place: Place, *, seq: int = LATEST, count: int = 1) -> list[Row]:
    """The next live memories whose predicate the pack's ontology may change, or whose names are aliases."""
    predicates, aliases = migration.concerned(pack), sorted(pack.identity.aliases)
    if not predicates and not aliases:
        return []
    version: Row = {"pack": pack.ref, "ontology_version": pack.meta.ontology_version}
    after: Row = {"place_seq": place[0], "place": place[1]}
    what = {"predicates": predicates, "aliases": aliases}
    return await tx.rows("backfill.next", **what, seq=seq, count=count, **version, **after)


def record_item(tx: Transaction, current: Row, item: BackfillItem) -> None:
    """Record what became of one memory; a second record for the same order violates the primary key."""
    tx.defer("backfill.item", backfill_id=current["backfill_id"], **item.model_dump())


def move_past(tx: Transaction, current: Row, memory: Row) -> None:
    """Move the order past a memory."""
    place = {"place_seq": memory["born_seq"], "place": memory["memory_id"]}
    tx.defer("backfill.move", backfill_id=current["backfill_id"], **place)


async def finish(tx: Transaction, current: Row) -> None:
    """Finish the order, with an event that says what became of its memories."""
    (row,) = await tx.rows("backfill.list", backfill_id=current["backfill_id"], count=1, seq=LATEST, after="")
    tx.defer("backfill.finish", backfill_id=current["backfill_id"])
    tx.event_rows.add("backfills.finished", backfill_id=current["backfill_id"], finished_at=tx.now)
    about = {"about": "backfill_finished", "backfill_id": current["backfill_id"], "pack": current["pack"]}
    tx.emit("memory.note", current["ordered_by"], **about, **row["done"])


async def in_progress(tx: Transaction) -> str | None:
    """The id of the order in progress, or None."""
    row = await tx.row("backfill.under_way")
    return row["backfill_id"] if row is not None else None


async def listed(
    tx: Transaction, count: int, backfill_id: str | None = None, *, after: str | None = None
) -> list[Backfill]:
    """A page of the orders, the latest first, or one of them, with the results and the memories that were left.

    Raises `NotFound` for an `after` that is no order of the tenant.
    """
    start = await cursors.page_start(tx, "backfill.place", after, latest_first=True)
    rows = await tx.rows("backfill.list", backfill_id=backfill_id, count=count, **start)
    stay = await tx.rows("backfill.left", backfill_ids=[row["backfill_id"] for row in rows], count=LEFT_SHOWN)
    left: dict[str, list[BackfillItem]] = {}
    for row in stay:
        left.setdefault(row.pop("backfill_id"), []).append(BackfillItem(**row))
    return [Backfill(**row, left=tuple(left.get(row["backfill_id"], ()))) for row in rows]
