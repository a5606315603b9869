"""Captures and refusals to read: lists, one capture's history; and the order to consolidate a capture again."""

import re
from typing import Any

import psycopg

from muniment.archives import store as archived
from muniment.archives.folder import Archives
from muniment.capture import store
from muniment.database import cursors
from muniment.database.locks import block_erasures
from muniment.database.sealing import Vault
from muniment.database.storage import LATEST, Row, Transaction
from muniment.errors import Conflict, InvalidInput, NotFound
from muniment.model.capture import (
    CaptureEntry,
    CaptureHistory,
    ConsolidationEntry,
    RefusalEntry,
    Rerun,
    RerunReason,
)
from muniment.model.context import Principal

REFUSALS_SHOWN = 100
_REFUSAL_ID = re.compile(r"(.{1,200})\.(\d{1,9})\.(\d{1,9})")
_NO_CAPTURE, _WAITS = "no such capture", "waits to be consolidated already"


async def captures(
    tx: Transaction, filters: dict[str, Any], *, in_archives: bool, every: bool, count: int, after: str | None
) -> list[CaptureEntry]:
    """List captures, the latest first; without `every` only those that a proposal or a refusal came from.

    Raises `NotFound` for an unknown `after`.
    """
    place = await cursors.page_start(tx, "history.place", after, latest_first=True)
    statement = "history.archived" if in_archives else "history.list"
    rows = await tx.rows(statement, **filters, **place, count=count, all=every)
    return [CaptureEntry.model_validate({**row, "consolidations": row["consolidations"] or 0}) for row in rows]


async def history(tx: Transaction, vault: Vault, archives: Archives, capture_id: str, *, every: bool) -> CaptureHistory:
    """Read one capture, opened, with its consolidations, proposals and refusals; raises `NotFound`.

    Without `every` it must be one that a proposal or a refusal came from, and its archive is not opened.
    """
    found = await tx.row("history.state", capture_id=capture_id)
    in_archives = found is None
    if in_archives:
        found = await tx.row("history.archived_state", capture_id=capture_id)
    if found is None or not (every or found["reviewed"]):
        raise NotFound(_NO_CAPTURE, field="capture_id")
    capture = None
    if every or not in_archives:
        capture = await store.read_one(tx, vault, capture_id, archives if every else None)
    consolidations, proposals = await tx.gather(
        ("history.consolidations", {"capture_id": capture_id}), ("history.proposals", {"capture_id": capture_id})
    )
    return CaptureHistory(
        capture_id=capture_id,
        state=found["state"],
        capture=capture,
        archive=await archived.archive_of(tx, capture_id) if in_archives else None,
        consolidations=tuple(ConsolidationEntry(**row) for row in consolidations),
        proposals=tuple(row["proposal_id"] for row in proposals),
        refusals=tuple(await refusals(tx, {"capture_id": capture_id}, count=REFUSALS_SHOWN, after=None)),
    )


async def refusals(tx: Transaction, filters: dict[str, Any], *, count: int, after: str | None) -> list[RefusalEntry]:
    """List refusals, the latest first; raises `NotFound` for an unknown `after`."""
    none: dict[str, Any] = dict.fromkeys(("gate", "reason", "since", "until", "capture_id")) | {"only_latest": False}
    position = await _refusal_position(tx, after)
    rows = await tx.rows("history.refusals", **none | filters, **position, count=count)
    named = (f"{row['capture_id']}.{row['consolidation']}.{row['ordinal']}" for row in rows)
    return [RefusalEntry(**row, refusal_id=refusal_id) for row, refusal_id in zip(rows, named, strict=True)]


async def _refusal_position(tx: Transaction, after: str | None) -> dict[str, Any]:
    if after is None:
        return {"seq": LATEST, "after_capture": "", "after_ordinal": 0}
    if (parts := _REFUSAL_ID.fullmatch(after)) is None:
        raise InvalidInput("expected the refusal_id of the last entry of the previous page", field="after")
    named = {"capture_id": parts[1], "consolidation": int(parts[2]), "ordinal": int(parts[3])}
    row = await tx.row("history.refusal_place", **named)
    if row is None:
        raise NotFound("no such row to go on from", field="after")
    return {"seq": row["seq"], "after_capture": named["capture_id"], "after_ordinal": named["ordinal"]}


async def order(tx: Transaction, principal: Principal, capture_id: str, reason: RerunReason) -> Rerun:
    """Order another consolidation of a capture, and log it; a parked capture is tried again instead.

    Raises `NotFound`, and `Conflict` if it waits already, was erased or is archived; of two orders at once one
    wins.
    """
    await archived.block_archiving(tx)
    await block_erasures(tx)
    row = await tx.row("history.to_rerun", capture_id=capture_id)
    if row is None:
        if await tx.row("history.archived_state", capture_id=capture_id) is None:
            raise NotFound(_NO_CAPTURE, field="capture_id")
        raise Conflict("is in an archive: what is archived cannot be run again", field="capture_id")
    if row["erased"]:
        raise Conflict("its content was erased: there is nothing to run again", field="capture_id")
    if row["parked_at"] is None or row["late"] is not None:
        number = await _order_again(tx, principal, capture_id, reason, row)
    else:
        unparked = await tx.row("history.unpark", capture_id=capture_id)
        number = unparked["number"] if unparked is not None else None
    if number is None:
        raise Conflict(_WAITS, field="capture_id")
    tick = await tx.tick()
    tx.emit("memory.rerun", principal.id, capture_id=capture_id, number=number, reason=reason)
    return Rerun(capture_id=capture_id, number=number, reason=reason, by=principal.id, ordered_at=tick.at)


async def _order_again(
    tx: Transaction, principal: Principal, capture_id: str, reason: RerunReason, row: Row
) -> int | None:
    """Order a capture's next consolidation and return its number; None if the capture already waits for one.

    One that waits for a model's answer alone is consolidated as a whole instead.
    """
    if (row["waits"] and row["late"] is None) or row["done"] is None:
        return None
    number, tick = row["done"] + 1, await tx.tick()
    try:
        which = {"capture_id": capture_id, "number": number}
        await tx.do("history.order", **which, seq=tick.seq, at=tick.at, by=principal.id, reason=reason)
        if row["late"] is None:
            await tx.do("history.wait_again", **which, captured_seq=row["seq"], holder=row["holder"])
        elif not await tx.rows("history.take_over", **which):
            raise Conflict(_WAITS, field="capture_id")
    except psycopg.errors.UniqueViolation as error:
        raise Conflict(_WAITS, field="capture_id") from error
    return number
