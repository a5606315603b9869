"""Proposals made under another pack pass the gates again under the one in force before any verdict (PAC-9)."""

from dataclasses import dataclass
from typing import Any

from muniment.archives import store as archives
from muniment.candidates import store as candidates
from muniment.candidates.intake import Admission
from muniment.candidates.rules import tier_for
from muniment.candidates.store import Draft
from muniment.context import FabricContext
from muniment.database.storage import Transaction
from muniment.errors import NotFound
from muniment.model.candidate import Candidate
from muniment.pack import Pack
from muniment.promotion.promote import capture_of
from muniment.review import store as review
from muniment.review.rules import reasons_for_a_person

# Reasons for a person that depend on what else is there at the moment, not on the pack.
_OF_THE_MOMENT = frozenset({"contradiction", "returned", "suspended"})
_CHANGED = "changed_by_pack"
_ARCHIVED = "capture_archived"


@dataclass(frozen=True)
class Regated:
    """What the gates made of a proposal under the pack in force: it stands, or it was withdrawn.

    A fact that the new pack changes (another mask, label, tier or trust) is withdrawn and comes back as a proposal of
    its own, `replaced_by`, for a person to look at.
    """

    stands: bool
    replaced_by: str | None = None


async def regate(context: FabricContext, tx: Transaction, loaded: review.Loaded, pack: Pack) -> Regated:
    """Pass an open proposal through the gates under the pack in force, if it was made under another one.

    INVARIANT: the proposal is locked and undecided, and the tenant's clock was not taken yet.
    """
    proposal = loaded.proposal
    # A sample stays what it was when it was promoted: its approval promotes nothing.
    if proposal.pack == pack.ref or proposal.audits is not None:
        return Regated(stands=True)
    await archives.hold_off(tx)
    draft, in_database = await _draft(context, tx, loaded, pack)
    admission = await Admission.of(context, tx, pack, [draft])
    decided = await admission.decided(tx)
    if decided.refused:
        _, gate, decision = decided.refused[0]
        await _withdraw(tx, loaded, pack, f"{gate}.{decision.reasons[0].code}")
        return Regated(stands=False)
    ((passed, _),) = decided.admitted
    if _standing(passed.candidate, pack) == _stood(loaded):
        return Regated(stands=True)
    if not in_database:
        # No new candidate can rest on an archived capture: the fact can be proposed anew.
        await _withdraw(tx, loaded, pack, _ARCHIVED)
        return Regated(stands=False)
    await _withdraw(tx, loaded, pack, _CHANGED)
    (entered,), _ = await decided.enter(tx)
    return Regated(stands=False, replaced_by=entered)


async def _draft(context: FabricContext, tx: Transaction, loaded: review.Loaded, pack: Pack) -> tuple[Draft, bool]:
    """The proposal's candidate before the gates, and whether its capture is in the database."""
    try:
        capture, in_database = await capture_of(context, tx, loaded, to_edit=True), True
    except NotFound:
        capture, in_database = await capture_of(context, tx, loaded), False
    (candidate_id,) = candidates.new_ids(tx, 1)
    ordinals = await candidates.ordinals(tx, [capture.capture_id])
    again = candidates.afresh(loaded.proposal.candidate, candidate_id, capture, pack)
    prior = tuple(loaded.row["prior_editors"] or ())
    ordinal = ordinals.get(capture.capture_id, 0)
    return Draft(again, capture, ordinal, prior, loaded.proposal.proposal_id), in_database


def _standing(candidate: Candidate, pack: Pack) -> dict[str, Any]:
    """What a reviewer judges of a fact, as the pack makes it."""
    tier = tier_for(candidate, pack)
    reasons = reasons_for_a_person(candidate, tier=tier, contradicts=False, pack=pack)
    return {
        "text": candidate.text,
        "value": candidate.value,
        "evidence_refs": candidate.evidence_refs,
        "classification": candidate.classification,
        "trust": candidate.trust,
        "consent": candidate.consent_id is not None,
        "tier": tier,
        "sensitive": pack.is_sensitive(candidate.classification),
        "risk": pack.policy_for(candidate.write_class).risk,
        "reasons": set(reasons) - _OF_THE_MOMENT,
    }


def _stood(loaded: review.Loaded) -> dict[str, Any]:
    """The same, as the pack made it that the proposal was made under."""
    proposal, candidate = loaded.proposal, loaded.proposal.candidate
    return {
        "text": candidate.text,
        "value": candidate.value,
        "evidence_refs": candidate.evidence_refs,
        "classification": candidate.classification,
        "trust": candidate.trust,
        "consent": candidate.consent_id is not None,
        "tier": proposal.tier_derived,
        "sensitive": loaded.row["sensitive"],
        "risk": proposal.risk,
        "reasons": set(loaded.row["human_reasons"]) - _OF_THE_MOMENT,
    }


async def _withdraw(tx: Transaction, loaded: review.Loaded, pack: Pack, reason: str) -> None:
    await review.decide(tx, loaded, "withdraw", None, pack, reason=reason, cause="pack")
