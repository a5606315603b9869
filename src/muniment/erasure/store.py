"""Erasure in one transaction: the content about a person is removed; tombstones and a receipt remain (ERA-2)."""

from typing import Any

from muniment.access import idempotency
from muniment.access import store as api_keys
from muniment.consent import store as consent
from muniment.contradictions import store as contradictions
from muniment.database import cursors, locks
from muniment.database.rows import fields_of
from muniment.database.sealing import Vault
from muniment.database.storage import LATEST, Row, Transaction
from muniment.erasure.rules import concerned
from muniment.errors import Conflict, NotFound, PurgeIncomplete
from muniment.model.context import Principal
from muniment.model.erasure import Erasure, ErasureInput
from muniment.model.ids import is_ceid, make_id
from muniment.model.promoted import Retraction
from muniment.pack import Pack
from muniment.promotion.retraction_store import remove_content, retract_locked
from muniment.review.store import record_verdict


async def erase(
    tx: Transaction, vault: Vault, officer: Principal, person: ErasureInput, pack: Pack
) -> tuple[Erasure, dict[str, list[str]]]:
    """Destroy the person's keys, end what is open about them, blank all content, and leave tombstones.

    Returns the receipt and, by session, the memories that the session store may still hold. The tick is taken before
    anything is blanked: what was committed under a lower sequence number is there to be blanked.
    """
    whom = concerned(person, pack)
    names = whom.names((await vault.tenant_data_key(tx)).digest)
    locks.create(tx, [locks.ERASURE])
    await tx.gather(("erasure.hold", {}), ("erasure.lock_holders", {"holders": whom.holders}))
    if whom.user_id is not None:
        await api_keys.lock_keys_of_user(tx, whom.user_id)
    memories, consents = await tx.gather(("erasure.memories", {"names": names}), ("erasure.consents", {"names": names}))
    ids = [row["memory_id"] for row in memories]
    live_rows, digests = await tx.gather(
        ("tombstone.lock_live", {"memory_ids": ids}), ("tombstone.digests", {"memory_ids": ids})
    )
    live = [row["memory_id"] for row in live_rows]
    for row in consents:
        # The evidence is blanked with everything else below.
        await consent.revoke(tx, vault, officer, row["consent_id"], ())
    tick = await tx.tick()
    # After the tick: every proposal made so far is visible, and no reviewer can decide on one any more.
    proposals = await tx.rows("erasure.proposals", names=names)
    waiting = [row["proposal_id"] for row in proposals]
    erasure_id = make_id("era", tick.at)
    at: dict[str, Any] = {"seq": tick.seq, "at": tick.at}
    tx.defer("erasure.record", erasure_id=erasure_id, by=officer.id, memories=len(ids), names=names, **at, **vars(whom))
    await retract_locked(tx, live, by=officer.id, reason="erased")
    await remove_content(tx, ids, digests)
    by = (officer.id, "operator")
    for row in proposals:
        whose = {"pack": row["pack"], "holder": row["holder"]}
        await record_verdict(tx, row["proposal_id"], "withdraw", by, **whose, locked=True)
    if whom.user_id is not None:
        await api_keys.erase_user(tx, officer.id, whom.user_id)
    await contradictions.end(tx, officer.id, "withdrawn", proposal_ids=waiting)
    idempotency.close_all(tx)
    await tx.rows("erasure.erase_content", erasure_id=erasure_id)
    receipt = await one_receipt(tx, erasure_id)
    for kind, count in receipt.rows.items():
        tx.event_rows.add("erased_rows", erasure_id=erasure_id, what=kind, rows=count)
    for row in await tx.rows("rows.blanked"):
        tx.event_rows.add_blanked(row["form"], [row["id"]])
    tx.emit("memory.erased", officer.id, erasure_id=erasure_id, memories=len(ids), rows=receipt.rows)
    sessions: dict[str, list[str]] = {}
    for row in memories:
        if row["tier"] == "working":
            sessions.setdefault(row["session_id"], []).append(row["memory_id"])
    return receipt, sessions


async def erase_memory(tx: Transaction, officer: Principal, memory_id: str) -> tuple[Retraction, str | None]:
    """Retract one memory as erased and delete its body, words and vectors, also if it is already retracted.

    Returns the retraction, and the session whose store may hold the memory. Raises `NotFound`, or `Conflict` if its
    text is already deleted. Its capture and candidate keep their text.
    """
    await locks.block_erasures(tx)
    ids = [memory_id]
    found, live, digests = await tx.gather(
        ("erasure.memory", {"memory_id": memory_id}),
        ("tombstone.lock_live", {"memory_ids": ids}),
        ("tombstone.digests", {"memory_ids": ids}),
    )
    if not found:
        raise NotFound("no such memory", field="memory_id")
    if not digests:
        raise Conflict("the text of this memory was deleted before", field="memory_id")
    await retract_locked(tx, [row["memory_id"] for row in live], by=officer.id, reason="erased")
    await remove_content(tx, [memory_id], digests)
    tx.emit("memory.note", officer.id, about="memory_erased", memory_id=memory_id)
    idempotency.close_all(tx)
    (row,) = await tx.rows("erasure.retraction", memory_id=memory_id)
    return Retraction(**row), found[0]["session_id"] if found[0]["tier"] == "working" else None


async def receipts(tx: Transaction, count: int, after: str | None = None) -> list[Erasure]:
    """A page of receipts, the latest first; raises `NotFound` for an `after` that is no erasure of the tenant."""
    start = await cursors.page_start(tx, "erasure.place", after, latest_first=True)
    return [_erasure(row) for row in await tx.rows("erasure.list", erasure_id=None, count=count, **start)]


async def one_receipt(tx: Transaction, erasure_id: str) -> Erasure:
    """The receipt of one erasure; raises `NotFound`."""
    row = await tx.row("erasure.list", erasure_id=erasure_id, count=1, seq=LATEST, after="")
    if row is None:
        raise NotFound("no such erasure", field="erasure_id")
    return _erasure(row)


def _erasure(row: Row) -> Erasure:
    aliases = [one for one in row["holders"] if is_ceid(one) and one != row["subject"]]
    waits = row["purge_waits"].removeprefix(f"{PurgeIncomplete.code}: ") if row["purge_waits"] is not None else None
    return Erasure(**fields_of(Erasure, row, rows=row["rows"] or {}, aliases=aliases, purge_waits=waits))
