"""Erasure in one transaction: the content about a person, or of one fact, is removed; a receipt remains (ERA-2)."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from muniment.access import idempotency
from muniment.access import store as api_keys
from muniment.consent import store as consent
from muniment.contradictions import store as contradictions
from muniment.database import cursors, locks
from muniment.database.rows import fields_of
from muniment.database.sealing import Vault
from muniment.database.storage import LATEST, Row, Transaction
from muniment.erasure import requests
from muniment.erasure.rules import FactPlan, concerned
from muniment.errors import Conflict, NotFound, PurgeIncomplete
from muniment.model.context import Principal
from muniment.model.erasure import Erasure, ErasureInput
from muniment.model.ids import is_ceid, make_id
from muniment.model.promoted import Retraction
from muniment.pack import Pack
from muniment.promotion.retraction_store import remove_content, retract_locked
from muniment.review.store import record_verdict, signature
from muniment.subject import consent_requests

# What an erasure covers: the `names` of a person, or the candidates (`facts`) and `captures` of one fact.
Reach = dict[str, list[str]]


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
    reach: Reach = {"names": names, "facts": [], "captures": []}
    memories, consents = await tx.gather(("erasure.memories", reach), ("erasure.consents", {"names": names}))
    live, digests = await _lock(tx, memories)
    for row in consents:
        # The evidence is blanked with everything else below.
        await consent.revoke(tx, vault, officer, row["consent_id"], ())
    receipt = await _carry_out(tx, officer, reach, memories, live, digests, **vars(whom))
    return receipt, _by_session(memories)


async def erase_facts(
    tx: Transaction, officer: Principal, plan: FactPlan, requested_by: str | None
) -> tuple[Erasure, dict[str, list[str]]]:
    """Blank the candidates and proposals of one fact and the captures that go with it, and leave tombstones (ERA-8).

    Returns as `erase` does. Raises `Conflict` if there is more in one of the captures than was planned; the database
    itself lets no capture go on which something rests that stays.
    """
    locks.create(tx, [locks.ERASURE])
    await tx.gather(("erasure.hold", {}))
    there = await tx.rows("erasure.candidates_of", capture_ids=plan.looked_at)
    if not {row["candidate_id"] for row in there} <= plan.known:
        raise Conflict("something was found in its capture, or edited, meanwhile; look again", field="fact_id")
    reach: Reach = {"names": [], "facts": plan.facts, "captures": plan.captures}
    memories = await tx.rows("erasure.memories", **reach)
    live, digests = await _lock(tx, memories)
    nobody: dict[str, Any] = {"subject": None, "user_id": None, "holders": []}
    receipt = await _carry_out(
        tx, officer, reach, memories, live, digests, **nobody, fact_id=plan.fact_id, requested_by=requested_by
    )
    return receipt, _by_session(memories)


async def _lock(tx: Transaction, memories: Sequence[Row]) -> tuple[list[str], list[Row]]:
    """Lock memories; returns which of them are live, and the digests of their bodies."""
    ids = [row["memory_id"] for row in memories]
    live, digests = await tx.gather(
        ("tombstone.lock_live", {"memory_ids": ids}), ("tombstone.digests", {"memory_ids": ids})
    )
    return [row["memory_id"] for row in live], digests


async def _carry_out(
    tx: Transaction,
    officer: Principal,
    reach: Reach,
    memories: Sequence[Row],
    live: Sequence[str],
    digests: Sequence[Row],
    *,
    user_id: str | None,
    fact_id: str | None = None,
    requested_by: str | None = None,
    **whom: Any,
) -> Erasure:
    """Record the erasure, end what is open about what it reaches, blank all of that, and return the receipt."""
    ids = [row["memory_id"] for row in memories]
    tick = await tx.tick()
    # After the tick: every proposal made so far is visible, and no reviewer can decide on one any more.
    proposals = await tx.rows("erasure.proposals", **reach)
    waiting = [row["proposal_id"] for row in proposals]
    erasure_id = make_id("era", tick.at)
    noted: dict[str, Any] = {"user_id": user_id, "fact_id": fact_id, "requested_by": requested_by, **whom, **reach}
    tx.defer(
        "erasure.record", erasure_id=erasure_id, by=officer.id, memories=len(ids), seq=tick.seq, at=tick.at, **noted
    )
    await retract_locked(tx, live, by=officer.id, reason="erased")
    await remove_content(tx, ids, digests)
    # Where the pack releases what an end user asks for, nobody else decided.
    by = signature(officer if officer.kind == "operator" else None)
    for row in proposals:
        whose = {"pack": row["pack"], "holder": row["holder"]}
        await record_verdict(tx, row["proposal_id"], "withdraw", by, **whose, locked=True)
    if user_id is not None:
        await api_keys.erase_user(tx, officer.id, user_id)
    await contradictions.end(tx, officer.id, "withdrawn", proposal_ids=waiting)
    await consent_requests.withdraw_all(tx, whom["holders"], officer.id)
    idempotency.close_all(tx)
    if user_id is not None:
        await requests.answer_all(tx, user_id, officer.id, erasure_id)
    await tx.rows("erasure.erase_content", erasure_id=erasure_id)
    receipt = await one_receipt(tx, erasure_id)
    for kind, count in receipt.rows.items():
        tx.event_rows.add("erased_rows", erasure_id=erasure_id, what=kind, rows=count)
    for row in await tx.rows("rows.blanked"):
        tx.event_rows.add_blanked(row["form"], [row["id"]])
    tx.emit("memory.erased", officer.id, erasure_id=erasure_id, memories=len(ids), rows=receipt.rows)
    return receipt


def _by_session(memories: Sequence[Row]) -> dict[str, list[str]]:
    """Return the memories of the working tier by session."""
    sessions: dict[str, list[str]] = {}
    for row in memories:
        if row["tier"] == "working":
            sessions.setdefault(row["session_id"], []).append(row["memory_id"])
    return sessions


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


async def receipts(
    tx: Transaction, count: int, after: str | None, since: datetime | None, until: datetime | None
) -> list[Erasure]:
    """A page of receipts of a range of time, the latest first; raises `NotFound` for an `after` that is no erasure."""
    start = await cursors.page_start(tx, "erasure.place", after, latest_first=True)
    narrowed = {"erasure_id": None, "since": since, "until": until}
    return [_erasure(row) for row in await tx.rows("erasure.list", count=count, **narrowed, **start)]


async def one_receipt(tx: Transaction, erasure_id: str) -> Erasure:
    """The receipt of one erasure; raises `NotFound`."""
    row = await tx.row("erasure.list", erasure_id=erasure_id, count=1, seq=LATEST, after="", since=None, until=None)
    if row is None:
        raise NotFound("no such erasure", field="erasure_id")
    return _erasure(row)


def _erasure(row: Row) -> Erasure:
    aliases = [one for one in row["holders"] if is_ceid(one) and one != row["subject"]]
    waits = row["purge_waits"].removeprefix(f"{PurgeIncomplete.code}: ") if row["purge_waits"] is not None else None
    return Erasure(**fields_of(Erasure, row, rows=row["rows"] or {}, aliases=aliases, purge_waits=waits))
