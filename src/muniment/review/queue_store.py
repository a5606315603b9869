"""Stage 3, review: candidates that passed the gates enter the queue, with what policy derives for them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from muniment.candidates.rules import Draft, due_at, priority_for, tier_for
from muniment.contradictions import store as contradictions
from muniment.contradictions.rules import Compared, Contradicted, may_supersede, repeated
from muniment.database.storage import Transaction
from muniment.model.fields import Tier, WriteClass
from muniment.model.ids import make_ids
from muniment.model.proposal import HumanReason
from muniment.pack import Pack
from muniment.review.rules import reasons_for_a_person
from muniment.review.store import mark_duplicate


@dataclass(frozen=True, slots=True)
class QueueEntry:
    """A candidate that passed the gates, with what policy derives for its proposal."""

    proposal_id: str
    draft: Draft
    tier: Tier
    priority: float
    sensitive: bool
    reasons: tuple[HumanReason, ...]
    contradicts: tuple[Contradicted, ...]
    duplicate_of: str | None

    @property
    def auto_eligible(self) -> bool:
        """Whether policy may promote it: no reason for a person, and no duplicate."""
        return not self.reasons and self.duplicate_of is None


def queue_entries(
    tx: Transaction,
    passed: Sequence[tuple[Draft, Compared]],
    pack: Pack,
    suspended: frozenset[WriteClass] = frozenset(),
) -> list[QueueEntry]:
    """Derive the proposals of candidates that passed the gates; nothing is read or written."""
    ids = make_ids("mwp", len(passed), tx.now)
    return [
        _queue_entry(proposal_id, draft, compared, pack, suspended)
        for proposal_id, (draft, compared) in zip(ids, passed, strict=True)
    ]


def _queue_entry(
    proposal_id: str, draft: Draft, compared: Compared, pack: Pack, suspended: frozenset[WriteClass]
) -> QueueEntry:
    candidate, tier = draft.candidate, tier_for(draft.candidate, pack)
    # A sample repeats what was promoted: a person says whether it is right.
    sampled = draft.audits is not None
    against = () if sampled else compared.contradicts
    same = [] if sampled else repeated(candidate, tier, compared, pack)
    observed_at = draft.capture.observed_at
    unsettled = any(
        not may_supersede(candidate, tier, observed_at, one.memory, pack, judged=one.judged).passed for one in against
    )
    reasons = reasons_for_a_person(
        candidate,
        tier=tier,
        contradicts=unsettled,
        returned=draft.reopens is not None,
        sampled=sampled,
        suspended=candidate.write_class in suspended,
        uncertain=bool(compared.uncertain) and not sampled,
        pack=pack,
    )
    return QueueEntry(
        proposal_id,
        draft,
        tier,
        priority_for(candidate, pack),
        pack.is_sensitive(candidate.classification),
        reasons,
        against,
        same[0].memory_id if same else None,
    )


async def enqueue(tx: Transaction, entries: Sequence[QueueEntry], pack: Pack, *, edit_of: str | None = None) -> None:
    """Put candidates that passed the gates into the queue.

    What repeats a live memory is marked a duplicate at once; otherwise each contradiction is opened.
    """
    if not entries:
        return
    tick = await tx.tick()
    drafts = [one.draft for one in entries]
    candidates = [one.candidate for one in drafts]
    policies = [pack.policy_for(one.write_class) for one in candidates]
    columns: dict[str, Sequence[Any]] = {
        "proposal_id": [one.proposal_id for one in entries],
        "candidate_id": [one.candidate_id for one in candidates],
        "class": [one.write_class for one in candidates],
        "tier_derived": [one.tier for one in entries],
        "priority": [one.priority for one in entries],
        "risk": [one.risk for one in policies],
        "sensitive": [one.sensitive for one in entries],
        "consent_check": ["passed" if one.consent_id is not None else "not_required" for one in candidates],
        "contradicts": [[found.memory.memory_id for found in one.contradicts] for one in entries],
        "auto_eligible": [one.auto_eligible for one in entries],
        "human_reasons": [list(one.reasons) for one in entries],
        "due_at": [
            due_at(one.draft.candidate.write_class, sensitive=one.sensitive, now=tick.at, pack=pack) for one in entries
        ],
        "reopens": [one.reopens for one in drafts],
        "run_id": [one.capture.run_id for one in drafts],
        "audits": [one.audits for one in drafts],
    }
    tx.defer_columns("review.enqueue", columns, seq=tick.seq, at=tick.at, pack=pack.ref, edit_of=edit_of)
    for one in entries:
        candidate = one.draft.candidate
        tx.emit(
            "memory.proposed",
            "auto",
            proposal_id=one.proposal_id,
            candidate_id=candidate.candidate_id,
            write_class=candidate.write_class,
            tier=one.tier,
            reasons=list(one.reasons),
            **({"reopens": one.draft.reopens} if one.draft.reopens else {}),
        )
    for one in entries:
        if one.duplicate_of is None:
            await contradictions.open_(tx, "auto", one.proposal_id, one.draft.candidate, one.contradicts)
    for one in entries:
        if one.duplicate_of is not None:
            await mark_duplicate(tx, one.proposal_id, one.draft.candidate, pack.ref, one.duplicate_of)
