"""Erasure: what is said of a subject goes, in one transaction; what stays is a receipt (ERA-2)."""

from typing import Any

from muniment.errors import NotFound
from muniment.governance import api_keys, consent, contradictions, pages, requests, trail
from muniment.model.candidate import Candidate
from muniment.model.capture import holder_of
from muniment.model.context import Principal
from muniment.model.erasure import Erasure, ErasureInput
from muniment.model.ids import make_id
from muniment.storage.sealing import Vault
from muniment.storage.session import LATEST, Named, Row, Transaction

# Held in share by whoever writes anew what was read before, alone by an erasure.
LOCK = "erasure"
HOLD_OFF: Named = ("erasure.hold_off", {})


async def hold_off_erasure(tx: Transaction) -> None:
    """Let no erasure pass beside this transaction. It comes before the tenant's clock."""
    tx.insert_later("promote.make_locks", [(LOCK,)])
    await tx.gather(HOLD_OFF)


def was_erased(candidate: Candidate, seq: int, erasures: list[Row]) -> bool:
    """Whether one of those erasures, found under the lock, reached a candidate that was written at that number."""
    holder = holder_of(candidate.subject, candidate.scope.user_id)
    return any(
        row["seq"] > seq
        and (
            holder in row["holders"]
            or (row["subject"] is not None and row["subject"] in (candidate.subject, candidate.entity))
            or (row["user_id"] is not None and row["user_id"] == candidate.scope.user_id)
        )
        for row in erasures
    )


async def erase(
    tx: Transaction, vault: Vault, officer: Principal, given: ErasureInput
) -> tuple[Erasure, dict[str, list[str]]]:
    """Destroy the keys, end what is open, blank all content, leave tombstones.

    Gives the receipt, and by session the memories that the working tier's store may still hold.
    The tenant's clock is taken before anything is blanked: whatever was committed under a lower number is there to be
    blanked, and whatever comes after is not about the past.
    """
    named = ((given.subject, None), (None, given.user_id))
    holders = [holder_of(*one) for one in named if any(one)]
    concerned: dict[str, Any] = {"holders": holders, "subject": given.subject, "user_id": given.user_id}
    tx.insert_later("promote.make_locks", [(LOCK,)])
    await tx.gather(("erasure.hold", {}), ("erasure.lock_holders", {"holders": holders}))
    if given.user_id is not None:
        await api_keys.hold_of_user(tx, given.user_id)
    memories, consents = await tx.gather(
        ("erasure.memories", concerned), ("erasure.consents", {"subject": given.subject})
    )
    ids = [row["memory_id"] for row in memories]
    live_rows, digests = await tx.gather(
        ("tombstone.lock_live", {"memory_ids": ids}), ("tombstone.digests", {"memory_ids": ids})
    )
    live = [row["memory_id"] for row in live_rows]
    used = await trail.used_lately(tx, live)
    for row in consents:
        # Its evidence is blanked with everything else below.
        await consent.revoke(tx, vault, officer, row["consent_id"], ())
    tick = await tx.tick()
    # Under the clock: what was proposed until this moment is there, and whoever reviews is held off.
    proposals = await tx.rows("erasure.proposals", **concerned)
    waiting = [row["proposal_id"] for row in proposals]
    at: dict[str, Any] = {"seq": tick.seq, "at": tick.at}
    erasure_id = make_id("era", tick.at)
    tx.later("erasure.record", erasure_id=erasure_id, by=officer.id, memories=len(ids), **at, **concerned)
    tx.insert_later(
        "promote.retract", [(one,) for one in live], by=officer.id, reason="erased", superseded_by=None, **at
    )
    tx.later("promote.mark_dead", memory_ids=live, seq=tick.seq)
    tx.insert_later("tombstone.insert", [(row["memory_id"], row["digest"]) for row in digests], **at)
    tx.later("tombstone.entomb", memory_ids=ids, **at)
    tx.later("tombstone.delete_bodies", memory_ids=ids)
    for row in proposals:
        tx.add("review.decide", **_withdrawn(row, officer.id, make_id("rv", tick.at)), **at)
    for one in live:
        tx.emit("memory.retracted", officer.id, memory_id=one, reason="erased", superseded_by=None, **used[one])
    if given.user_id is not None:
        await api_keys.forget_user(tx, officer.id, given.user_id)
    await contradictions.end(tx, officer.id, "retracted", memory_ids=live)
    await contradictions.end(tx, officer.id, "withdrawn", proposal_ids=waiting)
    requests.close(tx)
    await tx.rows("erasure.erase_content", erasure_id=erasure_id)
    receipt = await one_receipt(tx, erasure_id)
    for what, touched in receipt.rows.items():
        tx.told.row("erased_rows", erasure_id=erasure_id, what=what, rows=touched)
    for row in await tx.rows("rows.blanked"):
        tx.told.lost(row["form"], [row["id"]])
    tx.emit("memory.erased", officer.id, erasure_id=erasure_id, memories=len(ids), rows=receipt.rows)
    sessions: dict[str, list[str]] = {}
    for row in memories:
        if row["tier"] == "working":
            sessions.setdefault(row["session_id"], []).append(row["memory_id"])
    return receipt, sessions


def _withdrawn(row: Row, by: str, verdict_id: str) -> dict[str, Any]:
    nothing: dict[str, Any] = dict.fromkeys(("tier", "priority", "assignee", "memory_id", "remark", "cause"))
    said = {"verdict_id": verdict_id, "action": "withdraw", "by": by, "by_kind": "operator"}
    return nothing | said | {"proposal_id": row["proposal_id"], "pack": row["pack"], "holder": row["holder"]}


async def receipts(tx: Transaction, count: int, after: str | None = None) -> list[Erasure]:
    """The latest first; raises `NotFound` for an `after` that is no erasure of the tenant."""
    place = await pages.place(tx, "erasure.place", after, latest_first=True)
    return [_erasure(row) for row in await tx.rows("erasure.list", erasure_id=None, count=count, **place)]


async def one_receipt(tx: Transaction, erasure_id: str) -> Erasure:
    """Raises `NotFound`."""
    row = await tx.row("erasure.list", erasure_id=erasure_id, count=1, seq=LATEST, after="")
    if row is None:
        raise NotFound("no such erasure", field="erasure_id")
    return _erasure(row)


def _erasure(row: Row) -> Erasure:
    return Erasure.model_validate({**row, "rows": row["rows"] or {}})
