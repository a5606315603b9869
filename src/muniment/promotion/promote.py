"""Promotion: the one path to promoted memory, for a person's approval and for policy's alike.

A proposal made under another pack passes the gates again first (`regate`).
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from muniment.archives import store as archives
from muniment.candidates import store as candidates
from muniment.candidates.intake import Intake
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
from muniment.pack import Pack
from muniment.promotion import store as promote
from muniment.promotion.rules import budget_name
from muniment.review import store as review
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
    uncontradicted: bool = False,
) -> None:
    """Approve a proposal that is locked and undecided; a sample is confirmed as a duplicate of its memory.

    Raises `SelfApproval`, `Conflict`, `NotPromotable`; with `uncontradicted` also `Contradicts`.
    """
    four_eyes(principal, loaded, pack)
    if (audits := loaded.proposal.audits) is not None:
        if not await promote.lock_live(tx, audits, expired_too=True):
            raise Conflict("the memory was retracted meanwhile: reject the sample", field="proposal_id")
        await review.decide(tx, loaded, "duplicate", principal, pack, reason=reason, note=note, memory_id=audits)
    else:
        what = {"note": note, "reason": reason, "supersedes": supersedes}
        await promote_proposal(context, tx, loaded, pack, principal, **what, uncontradicted=uncontradicted)


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
    uncontradicted: bool = False,
) -> str | None:
    """Promote a proposal with the approval of a person, or of policy (`principal` None); returns the memory's id.

    Returns None if it turned out a duplicate, or was held or blocked for a contradiction or a full budget. A
    contradiction with the memory `beside` does not hold it: the caller settles that. With `uncontradicted` it may
    contradict nothing, not even what it would replace: `Contradicts` is raised before anything is written.
    """
    proposal, comparer = loaded.proposal, await context.comparer(tx, pack)
    signature = by, _ = review.signature(principal)
    # The embedder is called before anything is locked.
    (embedded,) = await comparer.embed([proposal.candidate])
    if await promote.lock_proposals(tx, [proposal]):
        raise NotPromotable("what it says was erased", field="proposal_id")
    room = await promote.lock_room(tx, pack)
    capture = await capture_of(context, tx, loaded)
    check = await promote.check_promotion(
        tx, context.vault, proposal, embedded, comparer, pack, capture.observed_at, supersedes
    )
    if check.duplicate_of is not None:
        await review.mark_duplicate(tx, proposal.proposal_id, proposal.candidate, pack.ref, check.duplicate_of)
        await contradictions.end(tx, by, "duplicate", proposal_ids=[proposal.proposal_id])
        return None
    if uncontradicted and check.contradicts:
        raise Contradicts(*(one.memory.memory_id for one in check.contradicts))
    # Policy leaves to a person what the trained judge cannot say for sure.
    if any(one.memory.memory_id != beside for one in check.unsettled) or (principal is None and check.uncertain):
        unresolved = "hold" if principal is None else pack.memory_layer.contradiction.unresolved
        if unresolved != "mark_both":
            await contradictions.open_new(tx, by, proposal.proposal_id, proposal.candidate, check.contradicts)
            why: review.Cause = "contradiction"
            await review.decide(tx, loaded, unresolved, principal, pack, reason=why, note=note, cause=why)
            return None
    tier, priority = proposal.tier_target, proposal.priority
    # What it replaces gives its room to it.
    for old in check.supersedes:
        room.give_back(old.tier, old.write_class, len(fact_content(old.text, old.value, old.evidence_refs)))
    full = room.take(tier, proposal.write_class, _size(loaded))
    if full is not None:
        await review.decide(tx, loaded, "hold", principal, pack, reason="budget", note=note, cause="budget")
        tx.emit("memory.budget_exceeded", by, budget=budget_name(full), proposal_id=proposal.proposal_id, full=True)
        return None
    verdict_id = await review.decide(
        tx, loaded, "approve", principal, pack, reason=reason, note=note, tier=tier, priority=priority
    )
    promotion = promote.Promotion.of(loaded, verdict_id, capture, check)
    return await promote.insert_one(tx, context.vault, promotion, signature, comparer, pack)


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
    checks = await promote.check_many(tx, context.vault, embedded, comparer, pack)
    chosen: list[tuple[review.Loaded, Capture, promote.PromotionCheck]] = []
    for one, check in zip(loaded, checks, strict=True):
        capture = found.get(one.proposal.candidate.capture_id)
        if check is None or capture is None or one.proposal.proposal_id in erased:
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
    await archives.block_archiving(tx)
    draft, in_database = await _draft(context, tx, loaded, pack)
    decision = await (await Intake.of(context, tx, pack, [draft])).decide(tx)
    if decision.refused:
        _, gate, refusal = decision.refused[0]
        await _withdraw(tx, loaded, pack, f"{gate}.{refusal.reasons[0].code}")
        return proposal.proposal_id
    (passed,) = decision.passed
    if _derived_fields(passed.draft.candidate, pack) == _stored_fields(loaded):
        return None
    if not in_database:
        # No new candidate can rest on an archived capture; the fact can be proposed again.
        await _withdraw(tx, loaded, pack, "capture_archived")
        return proposal.proposal_id
    await _withdraw(tx, loaded, pack, "changed_by_pack")
    (entered,), _ = await decision.enqueue(tx)
    return entered


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
    return Draft(again, capture, ordinal, *prior, reopens=loaded.proposal.proposal_id), in_database


def _derived_fields(candidate: Candidate, pack: Pack) -> dict[str, Any]:
    """Return the fields that a reviewer judges, as this pack derives them."""
    tier = tier_for(candidate, pack)
    reasons = reasons_for_a_person(candidate, tier=tier, contradicts=False, pack=pack)
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
