"""Promotion: the one path to promoted memory, for a person's approval and for policy's alike.

A proposal made under another pack passes the gates again first (`regate`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from muniment.archives import store as archives
from muniment.candidates import store as candidates
from muniment.candidates.intake import Intake, IntakeDecision
from muniment.candidates.rules import Draft, reset_candidate, tier_for
from muniment.capture import store as captures
from muniment.context import FabricContext
from muniment.contradictions import store as contradictions
from muniment.database.rows import fact_content
from muniment.database.storage import Transaction
from muniment.errors import Conflict, NotFound, NotPromotable, SelfApproval
from muniment.model.candidate import Candidate
from muniment.model.capture import Capture
from muniment.model.context import Principal
from muniment.model.fields import Tier
from muniment.pack import Pack
from muniment.promotion import store as promote
from muniment.promotion.retract import retract_memory
from muniment.promotion.rules import budget_name
from muniment.review import store as review
from muniment.review.item_store import Item, end_as_duplicates
from muniment.review.rules import is_strict, may_approve, reasons_for_a_person
from muniment.tracing import with_span


class Contradicts(Exception):
    """Raised for a proposal that was to contradict nothing, with the ids of the memories that it contradicts."""


async def approve_one(
    context: FabricContext,
    tx: Transaction,
    loaded: review.Loaded,
    pack: Pack,
    principal: Principal,
    *,
    note: str | None = None,
    reason: str | None = None,
    supersedes: str | None = None,
    repeats: Sequence[review.Loaded] = (),
    uncontradicted: bool = False,
) -> None:
    """Approve a proposal that is locked and undecided; a sample is confirmed as a duplicate of its memory.

    `repeats` are the other open proposals that say the same, locked too: they end with it.
    A request to forget retracts the memory that `supersedes` names, one of its targets, and is withdrawn as done.
    Raises `SelfApproval`, `Conflict`, `NotPromotable`; with `uncontradicted` also `Contradicts`.
    """
    four_eyes(principal, loaded, pack)
    if loaded.proposal.action == "retract":
        await _retract_target(context, tx, loaded, pack, principal, supersedes, note=note, reason=reason)
    elif (audits := loaded.proposal.audits) is not None:
        if not await promote.lock_live(tx, audits, expired_too=True):
            raise Conflict("the memory was retracted meanwhile: reject the sample", field="proposal_id")
        await review.decide(tx, loaded, "duplicate", principal, pack, reason=reason, note=note, memory_id=audits)
    else:
        what = {"note": note, "reason": reason, "supersedes": supersedes}
        await promote_proposal(
            context, tx, loaded, pack, principal, **what, repeats=repeats, uncontradicted=uncontradicted
        )


async def approve_item(
    context: FabricContext,
    tx: Transaction,
    item: Item,
    pack: Pack,
    principal: Principal,
    *,
    note: str | None = None,
    reason: str | None = None,
    supersedes: str | None = None,
    uncontradicted: bool = False,
) -> None:
    """Approve an item (REV-11): the first member that is not the approver's own and can be promoted is, the others end.

    Raises as `approve_one` does, `NotPromotable` only if no member can be promoted.
    INVARIANT: the item is locked and undecided, its first member to promote stands under the pack (`regate`), and the
    tenant's clock was not taken yet.
    """
    first, *further = item.to_promote(principal)
    failed: NotPromotable | None = None
    for one in (first, *(one for one in further if one.proposal.pack == pack.ref)):
        what = {"note": note, "reason": reason, "supersedes": supersedes}
        rest = item.beside(one)
        try:
            await approve_one(context, tx, one, pack, principal, **what, repeats=rest, uncontradicted=uncontradicted)
        except NotPromotable as error:
            # Nothing was written: another that says the same may rest on another consent.
            failed = failed or error
        else:
            return
    assert failed is not None, "there is a first"
    raise failed


async def _retract_target(
    context: FabricContext,
    tx: Transaction,
    loaded: review.Loaded,
    pack: Pack,
    principal: Principal,
    memory_id: str | None,
    *,
    note: str | None,
    reason: str | None,
) -> None:
    """Retract the memory that a person picked for a request to forget; raises `NotPromotable`, `Conflict` (CAN-12)."""
    if memory_id is None or memory_id not in loaded.proposal.targets:
        raise NotPromotable("it asks to forget something: name which of its targets in supersedes", field="supersedes")
    await retract_memory(context, tx, memory_id, by=principal.id, reason="deprecated", pack=pack)
    await review.decide(tx, loaded, "withdraw", principal, pack, reason=reason or "retracted", note=note)


@with_span("promote")
async def promote_proposal(
    context: FabricContext,
    tx: Transaction,
    loaded: review.Loaded,
    pack: Pack,
    principal: Principal | None,
    *,
    note: str | None = None,
    reason: str | None = None,
    supersedes: str | None = None,
    beside: str | None = None,
    repeats: Sequence[review.Loaded] = (),
    uncontradicted: bool = False,
) -> str | None:
    """Promote a proposal with the approval of a person, or of policy (`principal` None); returns the memory's id.

    Returns None if it turned out a duplicate, or was held or blocked for a contradiction or a full budget. A
    contradiction with the memory `beside` does not hold it: the caller settles that. With `uncontradicted` it may
    contradict nothing, not even what it would replace: `Contradicts` is raised before anything is written. `repeats`
    say the same: they become duplicates of the memory, or are blocked with it; while it is held they stay open.
    """
    proposal, comparer = loaded.proposal, await context.comparer(tx, pack)
    signature = by, _ = review.signature(principal)
    # The embedder is called before anything is locked.
    (embedded,) = await comparer.embed([proposal.candidate])
    locked = [proposal, *(one.proposal for one in repeats)]
    if proposal.proposal_id in await promote.lock_proposals(tx, locked):
        raise NotPromotable("what it says was erased", field="proposal_id")
    room = await promote.lock_room(tx, pack)
    capture = await capture_of(context, tx, loaded)
    check = await promote.check_promotion(tx, context.vault, proposal, embedded, comparer, pack, capture, supersedes)
    if check.duplicate_of is not None:
        found = {proposal.proposal_id: proposal.candidate}
        await review.mark_duplicates(tx, found, pack.ref, check.duplicate_of)
        await contradictions.end(tx, by, "duplicate", proposal_ids=[proposal.proposal_id])
        await end_as_duplicates(tx, {check.duplicate_of: repeats}, review.signature(None), pack)
        return None
    if uncontradicted and check.contradicts:
        raise Contradicts(*(one.memory.memory_id for one in check.contradicts))
    # Policy leaves to a person what the trained judge cannot say for sure.
    if any(one.memory.memory_id != beside for one in check.unsettled) or (principal is None and check.uncertain):
        unresolved = "hold" if principal is None else pack.memory_layer.contradiction.unresolved
        if unresolved != "mark_both":
            await contradictions.open_new(tx, by, proposal.proposal_id, proposal.candidate, check.contradicts)
            why: review.Cause = "contradiction"
            for one in (loaded, *(repeats if unresolved == "block" else ())):
                await review.decide(tx, one, unresolved, principal, pack, reason=why, note=note, cause=why)
            return None
    tier, priority = proposal.tier_target, proposal.priority
    # What it replaces gives its room to it.
    for old in check.supersedes:
        room.give_back(old.tier, old.write_class, len(fact_content(old)))
    full = room.take(tier, proposal.write_class, _size(loaded))
    if full is not None:
        await review.decide(tx, loaded, "hold", principal, pack, reason="budget", note=note, cause="budget")
        tx.emit("memory.budget_exceeded", by, budget=budget_name(full), proposal_id=proposal.proposal_id, full=True)
        return None
    verdict_id = await review.decide(
        tx, loaded, "approve", principal, pack, reason=reason, note=note, tier=tier, priority=priority
    )
    promotion = promote.Promotion.of(loaded, verdict_id, capture, check)
    memory_id = await promote.insert_one(tx, context.vault, promotion, signature, comparer, pack)
    await end_as_duplicates(tx, {memory_id: repeats}, signature, pack)
    return memory_id


async def promote_many(
    context: FabricContext,
    tx: Transaction,
    loaded: Sequence[review.Loaded],
    pack: Pack,
    principal: Principal | None,
    note: str | None,
    reasons: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """Promote together the proposals that need no check of their own; returns the memory of each promoted one.

    `reasons` holds, by proposal, the reason that is recorded with its verdict.

    INVARIANT: the proposals are locked and undecided, and the tenant's clock was not taken yet.
    """
    comparer = await context.comparer(tx, pack)
    embedded = await comparer.embed([one.proposal.candidate for one in loaded])
    erased = await promote.lock_proposals(tx, [one.proposal for one in loaded])
    room = await promote.lock_room(tx, pack)
    wanted = sorted({one.proposal.candidate.capture_id for one in loaded})
    found = await captures.read(tx, context.vault, wanted, context.archives)
    tiers: list[Tier] = [one.proposal.tier_target for one in loaded]
    checks = await promote.check_many(tx, context.vault, embedded, tiers, comparer, pack)
    chosen: list[tuple[review.Loaded, Capture, promote.PromotionCheck]] = []
    for one, check in zip(loaded, checks, strict=True):
        capture = found.get(one.proposal.candidate.capture_id)
        if check is None or capture is None or one.proposal.action != "promote" or one.proposal.proposal_id in erased:
            continue
        if room.take(one.proposal.tier_target, one.proposal.write_class, _size(one)) is None:
            chosen.append((one, capture, check))  # The others are held with the reason when they are promoted alone.
    if not chosen:
        return {}
    approvals = [_approval(one, reasons.get(one.proposal.proposal_id)) for one, _, _ in chosen]
    verdicts = await review.approve(tx, approvals, principal, pack, note)
    promotions = [
        promote.Promotion.of(one, verdict_id, capture, check)
        for verdict_id, (one, capture, check) in zip(verdicts, chosen, strict=True)
    ]
    ids = await promote.insert(tx, context.vault, promotions, review.signature(principal), comparer, pack)
    return {one.proposal_id: memory_id for one, memory_id in zip(approvals, ids, strict=True)}


def _approval(loaded: review.Loaded, reason: str | None) -> review.Approval:
    proposal = loaded.proposal
    where = (proposal.tier_target, proposal.priority)
    return review.Approval(proposal.proposal_id, loaded.row["holder"], *where, loaded.key, reason)


def _size(loaded: review.Loaded) -> int:
    """Return the size of its body, about that of its candidate's."""
    return len(loaded.row["content"])


# ---- who may approve, and what it rests on ----


async def capture_of(
    context: FabricContext, tx: Transaction, loaded: review.Loaded, *, to_edit: bool = False
) -> Capture:
    """Return the capture of a proposal; raises `NotFound` if it is gone.

    To be edited it has to be in the database: no new candidate can rest on an archived capture.
    """
    places = None if to_edit else context.archives
    found = await captures.read_one(tx, context.vault, loaded.proposal.candidate.capture_id, places)
    if found is None:
        raise NotFound("the capture it came from is archived", field="proposal_id")
    return found


def four_eyes(principal: Principal, loaded: review.Loaded, pack: Pack) -> None:
    """Raise `SelfApproval` if the rules require somebody else to approve (REV-4)."""
    proposal = loaded.proposal
    strict = is_strict(
        sensitive=pack.is_sensitive(proposal.candidate.classification) or proposal.candidate.third_party,
        derived=proposal.tier_derived,
        final=proposal.tier_target,
    )
    decision = may_approve(principal, proposal.candidate, loaded.editors, strict=strict)
    if not decision.passed:
        raise SelfApproval(decision.reasons[0].detail, field="proposal_id")


# ---- the gates again: a proposal made under another pack passes them before any verdict (PAC-9) ----

# Why a proposal is replaced by a new one: the pack in force derives something else for it.
_CHANGED = "changed_by_pack"
# Reasons for a person that depend on other memories and proposals, not on the pack.
_NOT_BY_PACK = frozenset({"contradiction", "returned", "suspended", "near_threshold"})


async def regate(context: FabricContext, tx: Transaction, loaded: review.Loaded, pack: Pack) -> str | None:
    """Pass an open proposal through the gates under the pack in force, if it was made under another one.

    Returns None if it stands. Otherwise it is withdrawn, and the id to show instead is returned: a fact that the new
    pack changes (another name, mask, label, tier or trust) is a new proposal for a person to review; for what a gate
    refuses it is the withdrawn proposal's own.

    INVARIANT: the proposal is locked and undecided, and the tenant's clock was not taken yet.
    """
    proposal = loaded.proposal
    # A sample stays as it was promoted: its approval promotes nothing.
    if proposal.pack == pack.ref or proposal.audits is not None:
        return None
    decision, why, in_database = await _gated_again(context, tx, loaded, pack)
    if why is None:
        return None
    if why == _CHANGED and not in_database:
        # No new candidate can rest on an archived capture; the fact can be proposed again.
        why = "capture_archived"
    await _withdraw(tx, loaded, pack, why)
    if why != _CHANGED:
        return proposal.proposal_id
    (entered,), _ = await decision.enqueue(tx)
    return entered


async def why_changed(context: FabricContext, tx: Transaction, loaded: review.Loaded, pack: Pack) -> str | None:
    """Return why a fact does not stand as it is under the pack in force; None if it does. Nothing is written."""
    return (await _gated_again(context, tx, loaded, pack))[1]


async def _gated_again(
    context: FabricContext, tx: Transaction, loaded: review.Loaded, pack: Pack
) -> tuple[IntakeDecision, str | None, bool]:
    """Pass the gates again; returns the decision, why the fact does not stand, and whether its capture is here."""
    await archives.block_archiving(tx)
    draft, in_database = await _draft(context, tx, loaded, pack)
    decision = await (await Intake.of(context, tx, pack, [draft])).decide(tx)
    if decision.refused:
        _, gate, refusal = decision.refused[0]
        return decision, f"{gate}.{refusal.reasons[0].code}", in_database
    (passed,) = decision.passed
    same = _derived_fields(passed.draft.candidate, passed.draft.capture, pack) == _stored_fields(loaded)
    return decision, None if same else _CHANGED, in_database


async def _draft(context: FabricContext, tx: Transaction, loaded: review.Loaded, pack: Pack) -> tuple[Draft, bool]:
    """Draft the proposal's candidate anew; returns the draft, and whether its capture is in the database."""
    try:
        capture, in_database = await capture_of(context, tx, loaded, to_edit=True), True
    except NotFound:
        capture, in_database = await capture_of(context, tx, loaded), False
    (candidate_id,) = candidates.new_ids(tx, 1)
    ordinals = await candidates.next_ordinals(tx, [capture.capture_id])
    again = reset_candidate(loaded.proposal.candidate, candidate_id, capture, pack)
    ordinal, prior = ordinals.get(capture.capture_id, 0), candidates.prior_of(loaded.row)
    draft = Draft(again, capture, ordinal, *prior, reopens=loaded.proposal.proposal_id)
    return replace(draft, action=loaded.proposal.action, targets=loaded.proposal.targets), in_database


def _derived_fields(candidate: Candidate, capture: Capture, pack: Pack) -> dict[str, Any]:
    """Return the fields that a reviewer judges, as this pack derives them."""
    tier = tier_for(candidate, capture.kind, pack)
    reasons = reasons_for_a_person(candidate, capture, tier=tier, contradicts=False, pack=pack)
    return _content(candidate) | {
        "tier": tier,
        "sensitive": pack.is_sensitive(candidate.classification),
        "risk": pack.policy_for(candidate.write_class).risk,
        "reasons": set(reasons) - _NOT_BY_PACK,
    }


def _stored_fields(loaded: review.Loaded) -> dict[str, Any]:
    """Return the same fields as they were stored with the proposal, under its own pack."""
    return _content(loaded.proposal.candidate) | {
        "tier": loaded.proposal.tier_derived,
        "sensitive": loaded.row["sensitive"],
        "risk": loaded.proposal.risk,
        "reasons": set(loaded.row["human_reasons"]) - _NOT_BY_PACK,
    }


def _content(candidate: Candidate) -> dict[str, Any]:
    names = {
        "entity",
        "predicate",
        "subject",
        "text",
        "value",
        "evidence_refs",
        "classification",
        "trust",
        "third_party",
    }
    return {name: getattr(candidate, name) for name in names} | {"consent": candidate.consent_id is not None}


async def _withdraw(tx: Transaction, loaded: review.Loaded, pack: Pack, reason: str) -> None:
    await review.decide(tx, loaded, "withdraw", None, pack, reason=reason, cause="pack")
