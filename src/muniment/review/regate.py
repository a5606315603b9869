"""Regating: a proposal made under another pack passes the gates again before any verdict (PAC-9)."""

from dataclasses import dataclass
from typing import Any

from muniment.archives import store as archives
from muniment.candidates import store as candidates
from muniment.candidates.intake import Intake
from muniment.candidates.rules import Draft, reset_candidate, tier_for
from muniment.context import FabricContext
from muniment.database.storage import Transaction
from muniment.errors import NotFound
from muniment.model.candidate import Candidate
from muniment.pack import Pack
from muniment.promotion.promote import capture_of
from muniment.review import store as review
from muniment.review.rules import reasons_for_a_person

# Reasons for a person that depend on other memories and proposals, not on the pack.
_NOT_BY_PACK = frozenset({"contradiction", "returned", "suspended"})
_CHANGED = "changed_by_pack"
_ARCHIVED = "capture_archived"


@dataclass(frozen=True)
class Regated:
    """Whether a proposal stands under the pack in force, or was withdrawn.

    A fact that the new pack changes (another mask, label, tier or trust) is withdrawn and returns as a new proposal,
    `replaced_by`, for a person to review.
    """

    stands: bool
    replaced_by: str | None = None


async def regate(context: FabricContext, tx: Transaction, loaded: review.Loaded, pack: Pack) -> Regated:
    """Pass an open proposal through the gates under the pack in force, if it was made under another one.

    INVARIANT: the proposal is locked and undecided, and the tenant's clock was not taken yet.
    """
    proposal = loaded.proposal
    # A sample stays as it was promoted: its approval promotes nothing.
    if proposal.pack == pack.ref or proposal.audits is not None:
        return Regated(stands=True)
    await archives.block_archiving(tx)
    draft, in_database = await _draft(context, tx, loaded, pack)
    decision = await (await Intake.of(context, tx, pack, [draft])).decide(tx)
    if decision.refused:
        _, gate, refusal = decision.refused[0]
        await _withdraw(tx, loaded, pack, f"{gate}.{refusal.reasons[0].code}")
        return Regated(stands=False)
    ((passed, _),) = decision.passed
    if _standing(passed.candidate, pack) == _stood(loaded):
        return Regated(stands=True)
    if not in_database:
        # No new candidate can rest on an archived capture; the fact can be proposed again.
        await _withdraw(tx, loaded, pack, _ARCHIVED)
        return Regated(stands=False)
    await _withdraw(tx, loaded, pack, _CHANGED)
    (entered,), _ = await decision.enqueue(tx)
    return Regated(stands=False, replaced_by=entered)


async def _draft(context: FabricContext, tx: Transaction, loaded: review.Loaded, pack: Pack) -> tuple[Draft, bool]:
    """Draft the proposal's candidate anew; returns the draft, and whether its capture is in the database."""
    try:
        capture, in_database = await capture_of(context, tx, loaded, to_edit=True), True
    except NotFound:
        capture, in_database = await capture_of(context, tx, loaded), False
    (candidate_id,) = candidates.new_ids(tx, 1)
    ordinals = await candidates.next_ordinals(tx, [capture.capture_id])
    again = reset_candidate(loaded.proposal.candidate, candidate_id, capture, pack)
    prior = tuple(loaded.row["prior_editors"] or ())
    ordinal = ordinals.get(capture.capture_id, 0)
    return Draft(again, capture, ordinal, prior, loaded.proposal.proposal_id), in_database


def _standing(candidate: Candidate, pack: Pack) -> dict[str, Any]:
    """Return what a reviewer judges of a fact, as this pack derives it."""
    tier = tier_for(candidate, pack)
    reasons = reasons_for_a_person(candidate, tier=tier, contradicts=False, pack=pack)
    return _content(candidate) | {
        "tier": tier,
        "sensitive": pack.is_sensitive(candidate.classification),
        "risk": pack.policy_for(candidate.write_class).risk,
        "reasons": set(reasons) - _NOT_BY_PACK,
    }


def _stood(loaded: review.Loaded) -> dict[str, Any]:
    """Return the same as the proposal's own pack derived it."""
    return _content(loaded.proposal.candidate) | {
        "tier": loaded.proposal.tier_derived,
        "sensitive": loaded.row["sensitive"],
        "risk": loaded.proposal.risk,
        "reasons": set(loaded.row["human_reasons"]) - _NOT_BY_PACK,
    }


def _content(candidate: Candidate) -> dict[str, Any]:
    names = {"text", "value", "evidence_refs", "classification", "trust"}
    return {name: getattr(candidate, name) for name in names} | {"consent": candidate.consent_id is not None}


async def _withdraw(tx: Transaction, loaded: review.Loaded, pack: Pack, reason: str) -> None:
    await review.decide(tx, loaded, "withdraw", None, pack, reason=reason, cause="pack")
