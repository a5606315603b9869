"""Erasure: what is said of a subject goes, in one transaction; what stays is a receipt (ERA-2)."""

from collections.abc import Sequence
from typing import Any

from muniment.access import store as api_keys
from muniment.candidates.rules import subject_of, user_of
from muniment.consent import store as consent
from muniment.contradictions import store as contradictions
from muniment.database import idempotency as requests
from muniment.database import pages
from muniment.database.sealing import Vault
from muniment.database.storage import LATEST, Named, Row, Transaction
from muniment.erasure import rules as naming
from muniment.errors import Conflict, NotFound, PurgeIncomplete
from muniment.model.context import Principal
from muniment.model.erasure import Erasure, ErasureInput
from muniment.model.ids import make_id
from muniment.model.promoted import Retraction
from muniment.pack import Pack
from muniment.promotion.retraction_store import remove_content, retract_locked
from muniment.review.verdict_store import record_verdict

# Held in share by whoever writes anew what was read before, alone by an erasure.
LOCK = "erasure"
HOLD_OFF: Named = ("erasure.hold_off", {})


async def hold_off_erasure(tx: Transaction) -> None:
    """Let no erasure pass beside this transaction. It comes before the tenant's clock."""
    tx.defer_many("promote.make_locks", [(LOCK,)])
    await tx.gather(HOLD_OFF)


def asked_reached(candidate_ids: Sequence[str]) -> Named:
    """The statement that finds those of the candidates that an erasure after them covers."""
    return "erasure.reached_candidates", {"candidate_ids": list(candidate_ids)}


def _whole_person(named: ErasureInput, pack: Pack) -> ErasureInput:
    """Whom it concerns: a user and the subject that the pack takes the user for are one person (CAP-12).

    What was captured with a user and no subject is sealed under the user's key, what came of it under the subject's.
    """
    subject = subject_of(named.subject, named.user_id, pack)
    user_id = named.user_id if named.user_id is not None else user_of(subject, pack)
    return named.model_copy(update={"subject": subject, "user_id": user_id})


async def erase(
    tx: Transaction, vault: Vault, officer: Principal, named: ErasureInput, pack: Pack
) -> tuple[Erasure, dict[str, list[str]]]:
    """Destroy the keys, end what is open, blank all content, leave tombstones. Aliases are those of the pack.

    Gives the receipt, and by session the memories that the working tier's store may still hold.
    The tenant's clock is taken before anything is blanked: whatever was committed under a lower number is there to be
    blanked, and whatever comes after is not about the past.
    """
    given = _whole_person(named, pack)
    holders = naming.holders(given.subject, given.user_id, pack)
    own = await vault.comparing(tx)
    names = [*holders, *(naming.hashed(own.digest, one) for one in holders if naming.is_entity(one))]
    tx.defer_many("promote.make_locks", [(LOCK,)])
    await tx.gather(("erasure.hold", {}), ("erasure.lock_holders", {"holders": holders}))
    if given.user_id is not None:
        await api_keys.hold_of_user(tx, given.user_id)
    memories, consents = await tx.gather(("erasure.memories", {"names": names}), ("erasure.consents", {"names": names}))
    ids = [row["memory_id"] for row in memories]
    live_rows, digests = await tx.gather(
        ("tombstone.lock_live", {"memory_ids": ids}), ("tombstone.digests", {"memory_ids": ids})
    )
    live = [row["memory_id"] for row in live_rows]
    for row in consents:
        # Its evidence is blanked with everything else below.
        await consent.revoke(tx, vault, officer, row["consent_id"], ())
    tick = await tx.tick()
    # Under the clock: what was proposed until this moment is there, and whoever reviews is held off.
    proposals = await tx.rows("erasure.proposals", names=names)
    waiting = [row["proposal_id"] for row in proposals]
    at: dict[str, Any] = {"seq": tick.seq, "at": tick.at}
    erasure_id = make_id("era", tick.at)
    whom = {"subject": given.subject, "user_id": given.user_id, "holders": holders, "names": names}
    tx.defer("erasure.record", erasure_id=erasure_id, by=officer.id, memories=len(ids), **at, **whom)
    await retract_locked(tx, live, by=officer.id, reason="erased")
    await remove_content(tx, ids, digests)
    by = (officer.id, "operator")
    for row in proposals:
        whose = {"pack": row["pack"], "holder": row["holder"]}
        await record_verdict(tx, row["proposal_id"], "withdraw", by, **whose, locked=True)
    if given.user_id is not None:
        await api_keys.forget_user(tx, officer.id, given.user_id)
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


async def take_away(tx: Transaction, officer: Principal, memory_id: str) -> tuple[Retraction, str | None]:
    """Retract one memory as erased and take its body, words and vectors away; one that was retracted before too.

    Gives the retraction, and the session whose store may hold the memory. Raises `NotFound`, or `Conflict` where its
    text is gone. Its capture and its candidate keep theirs.
    """
    await hold_off_erasure(tx)
    given = {"memory_ids": [memory_id]}
    found, live, digests = await tx.gather(
        ("erasure.memory", {"memory_id": memory_id}), ("tombstone.lock_live", given), ("tombstone.digests", given)
    )
    if not found:
        raise NotFound("no such memory", field="memory_id")
    if not digests:
        raise Conflict("its text was taken away before", field="memory_id")
    await retract_locked(tx, [row["memory_id"] for row in live], by=officer.id, reason="erased")
    await remove_content(tx, [memory_id], digests)
    tx.emit("memory.note", officer.id, about="memory_erased", memory_id=memory_id)
    requests.close(tx)
    (row,) = await tx.rows("erasure.retraction", memory_id=memory_id)
    return Retraction(**row), found[0]["session_id"] if found[0]["tier"] == "working" else None


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
    said = {name: row[name] for name in Erasure.model_fields if name in row}
    aliases = [one for one in row["holders"] if naming.is_entity(one) and one != row["subject"]]
    waits = row["purge_waits"]
    waits = waits.removeprefix(f"{PurgeIncomplete.code}: ") if waits is not None else None
    return Erasure.model_validate(said | {"rows": row["rows"] or {}, "aliases": aliases, "purge_waits": waits})
