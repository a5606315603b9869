"""Undo of a promotion by policy: it is retracted, and what it had superseded comes back (PRO-8)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from muniment.audit import provenance_store as trail
from muniment.candidates.rules import due_at
from muniment.candidates.store import remember_rejection
from muniment.context import FabricContext
from muniment.contradictions.store import TextComparer
from muniment.database.rows import fact_content
from muniment.database.storage import Row, Transaction
from muniment.errors import Conflict, NotFound, NotPromotable, SelfApproval
from muniment.model.capture import Capture
from muniment.model.context import Principal
from muniment.model.ids import make_id
from muniment.model.promoted import NotRestored, PromotedMemory, Undone
from muniment.model.proposal import HumanReason
from muniment.pack import Pack, format_duration
from muniment.promotion import store as promote
from muniment.promotion.promote import capture_of, four_eyes, why_changed
from muniment.promotion.retraction_store import lock_to_retract, supersede
from muniment.promotion.rules import Room, undo_until
from muniment.review import store as review


@dataclass(frozen=True)
class _Returning:
    """A memory that the undone one had superseded, with its proposal; and either the check it passed or why it did not.

    `for_a_person`: a person can still approve it.
    """

    row: Row
    loaded: review.Loaded
    capture: Capture | None = None
    check: promote.PromotionCheck | None = None
    reason: str = ""
    for_a_person: bool = False


async def undo_promotion(
    context: FabricContext, tx: Transaction, memory_id: str, principal: Principal, pack: Pack, note: str | None = None
) -> Undone:
    """Retract what policy promoted, within the pack's term, and restore what it had superseded.

    Whatever cannot be restored at once waits for a person, if a person could approve it. The undone fact is remembered
    like a rejection. Raises `NotFound`, and `Conflict` if it was retracted, if a person approved it or if the term is
    over. INVARIANT: the caller may undo it: a reviewer, or the person whom it is about.
    """
    memory = await trail.memory(tx, context.vault, memory_id)
    _check_may_undo(memory, tx, pack)
    before = await tx.rows("promote.superseded_by", memory_id=memory_id)
    proposals = [memory.proposal_id, *(row["proposal_id"] for row in before)]
    await review.lock(tx, proposals)
    loaded = {one.proposal.proposal_id: one for one in await review.load_many(tx, context.vault, proposals)}
    comparer = await context.comparer(tx, pack)
    candidates = [one.proposal.candidate for one in loaded.values()]
    await promote.lock_scopes(tx, candidates, ("erasure.reached_candidates", {"candidate_ids": []}))
    room = await promote.lock_room(tx, pack)
    await lock_to_retract(tx, memory_id)
    room.give_back(memory.tier, memory.write_class, len(fact_content(memory)))
    returning = [
        await _checked(context, tx, row, loaded[row["proposal_id"]], memory, principal, pack, comparer, room)
        for row in before
    ]
    own = loaded[memory.proposal_id]
    retraction = await supersede(tx, memory_id, by=principal.id, reason="undone")
    await review.decide(tx, own, "undo", principal, pack, note=note, memory_id=memory_id)
    await remember_rejection(tx, context.vault, memory.proposal_id, own.proposal.candidate, comparer)
    restored, left = await _restore(context, tx, returning, principal, pack, comparer)
    return Undone(retraction=retraction, restored=restored, not_restored=tuple(left))


def _check_may_undo(memory: PromotedMemory, tx: Transaction, pack: Pack) -> None:
    until = undo_until(memory.approver, memory.promoted_at, pack)
    if until is None:
        raise Conflict(f"was approved by {memory.approver}, not by policy: retract it", field="memory_id")
    if memory.retracted_at is None and tx.now > until:
        term, ended = format_duration(pack.memory_layer.undo.term), f"{until:%Y-%m-%d %H:%M:%S}"
        raise Conflict(f"could be undone for {term}, until {ended} UTC: retract it", field="memory_id")


async def _checked(
    context: FabricContext,
    tx: Transaction,
    row: Row,
    loaded: review.Loaded,
    undone: PromotedMemory,
    principal: Principal,
    pack: Pack,
    comparer: TextComparer,
    room: Room,
) -> _Returning:
    """Check a memory that comes back as a promotion is checked (PRO-1), without the one that is undone."""
    found = _Returning(row, loaded)
    if row["ends_at"] is not None and row["ends_at"] <= tx.now:
        return replace(found, reason="expired")
    if not loaded.row["content"]:
        return replace(found, reason="erased")
    try:
        capture = await capture_of(context, tx, loaded)
        found = replace(found, capture=capture)
        if loaded.proposal.pack != pack.ref and (why := await why_changed(context, tx, loaded, pack)) is not None:
            return replace(found, reason=why, for_a_person=True)
        if row["approver_kind"] != "system":
            if principal.kind == "end_user":
                return replace(found, reason="person_required", for_a_person=True)
            four_eyes(principal, loaded, pack)
        (embedded,) = await comparer.embed([loaded.proposal.candidate])
        check = await promote.check_promotion(
            tx, context.vault, loaded.proposal, embedded, comparer, pack, capture, None
        )
    except (NotPromotable, NotFound) as error:
        return replace(found, reason=error.code)
    except SelfApproval as error:
        return replace(found, reason=error.code, for_a_person=True)
    if any(one.memory.memory_id != undone.memory_id for one in check.contradicts) or check.uncertain:
        return replace(found, reason="contradiction", for_a_person=True)
    if check.duplicate_of not in (None, undone.memory_id):
        return replace(found, reason="duplicate")
    candidate = loaded.proposal.candidate
    if room.take(row["tier"], candidate.write_class, len(loaded.row["content"])) is not None:
        return replace(found, reason="budget", for_a_person=True)
    clean = replace(check, supersedes=(), contradicts=(), duplicate_of=None, ends_by=row["ends_at"])
    return replace(found, check=clean)


async def _restore(
    context: FabricContext,
    tx: Transaction,
    returning: Sequence[_Returning],
    principal: Principal,
    pack: Pack,
    comparer: TextComparer,
) -> tuple[dict[str, str], list[NotRestored]]:
    """Propose each candidate once more; promote those that passed the checks, leave the others to a person."""
    restored: dict[str, str] = {}
    left: list[NotRestored] = []
    for one in returning:
        memory_id = one.row["memory_id"]
        if one.check is None and not one.for_a_person:
            left.append(NotRestored(memory_id=memory_id, reason=one.reason))
            continue
        proposal_id = await _propose_again(tx, one, pack)
        if one.check is None:
            left.append(NotRestored(memory_id=memory_id, reason=one.reason, proposal_id=proposal_id))
            continue
        restored[memory_id] = await _promote_again(context, tx, one, proposal_id, principal, pack, comparer)
    return restored, left


async def _propose_again(tx: Transaction, one: _Returning, pack: Pack) -> str:
    """Enqueue the candidate of a memory once more; under its own pack where the gates have to look at it again."""
    tick, proposal = await tx.tick(), one.loaded.proposal
    proposal_id = make_id("mwp", tick.at)
    reasons: list[HumanReason] = ["returned"]
    tx.defer(
        "review.propose_again",
        seq=tick.seq,
        at=tick.at,
        proposal_id=proposal_id,
        candidate_id=proposal.candidate.candidate_id,
        **{"class": proposal.write_class},
        tier_derived=proposal.tier_derived,
        priority=one.row["priority"],
        risk=proposal.risk,
        sensitive=proposal.sensitive,
        consent_check=proposal.consent_check,
        contradicts=[],
        auto_eligible=False,
        human_reasons=reasons,
        due_at=due_at(proposal.write_class, sensitive=proposal.sensitive, now=tick.at, pack=pack),
        pack=pack.ref if one.check is not None else proposal.pack,
        run_id=one.capture.run_id if one.capture is not None else None,
        restores=one.row["memory_id"],
    )
    tx.emit(
        "memory.proposed",
        "auto",
        proposal_id=proposal_id,
        candidate_id=proposal.candidate.candidate_id,
        write_class=proposal.write_class,
        tier=proposal.tier_target,
        reasons=reasons,
        restores=one.row["memory_id"],
    )
    return proposal_id


async def _promote_again(
    context: FabricContext,
    tx: Transaction,
    one: _Returning,
    proposal_id: str,
    principal: Principal,
    pack: Pack,
    comparer: TextComparer,
) -> str:
    """Promote it by whom it was promoted: by policy, or now by the person who undoes."""
    assert one.check is not None and one.capture is not None
    by = principal if one.row["approver_kind"] != "system" else None
    proposal = one.loaded.proposal
    holder, tier, priority = one.loaded.row["holder"], one.row["tier"], one.row["priority"]
    approval = review.Approval(proposal_id, holder, tier, priority, one.loaded.key)
    (verdict_id,) = await review.approve(tx, [approval], by, pack)
    promotion = promote.Promotion(
        proposal_id=proposal_id,
        proposal_action="promote",
        verdict_id=verdict_id,
        candidate=proposal.candidate,
        capture=one.capture,
        tier=tier,
        tier_derived=proposal.tier_derived,
        priority=priority,
        editors=one.loaded.editors,
        key=one.loaded.key,
        check=one.check,
    )
    (memory_id,) = await promote.insert(tx, context.vault, [promotion], review.signature(by), comparer, pack)
    return memory_id
