"""Enters candidates that passed the gates into the review queue, with what policy derives for them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from muniment.candidates.rules import Draft, due_at, priority_for, tier_for
from muniment.contradictions import store as contradictions
from muniment.contradictions.rules import Compared, Contradicted, is_own_update, may_supersede, repeated
from muniment.database.storage import Transaction
from muniment.model.capture import holder_of
from muniment.model.fields import Tier, WriteClass
from muniment.model.ids import make_ids
from muniment.model.proposal import HumanReason
from muniment.pack import Pack
from muniment.review.opposites import Opposite
from muniment.review.rules import reasons_for_a_person
from muniment.review.store import mark_duplicates


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
        """Whether policy may promote it: no reason for a person, and no duplicate.

        That it was asked for holds nothing up; what asks to forget or to correct waits for a person (CAN-12).
        """
        asked = self.draft.action == "promote" and self.reasons == ("user_asked",)
        return (not self.reasons or asked) and self.draft.action == "promote" and self.duplicate_of is None

    @property
    def waits(self) -> bool:
        """Whether it waits to be promoted, unless that happens at once: no duplicate, no sample, no other request."""
        return self.duplicate_of is None and self.draft.audits is None and self.draft.action == "promote"


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
    candidate, capture = draft.candidate, draft.capture
    tier = tier_for(candidate, capture.kind, pack)
    # A sample repeats what was promoted: a person says whether it is right.
    sampled = draft.audits is not None
    # What asks to forget something states nothing.
    states = not sampled and draft.action != "retract"
    against = compared.contradicts if states else ()
    same = repeated(candidate, tier, compared, pack) if states else []
    settled = [may_supersede(candidate, tier, capture, one, pack) for one in against]
    unsettled = not all(one.passed for one in settled)
    if draft.action == "correct" and settled and all(is_own_update(one) for one in settled):
        # A user's newer fact about themselves: nobody has to pick what it replaces (CAN-12, CTR-4).
        draft = replace(draft, action="promote", targets=())
    reasons = reasons_for_a_person(
        candidate,
        capture,
        tier=tier,
        contradicts=unsettled,
        returned=draft.reopens is not None,
        sampled=sampled,
        suspended=candidate.write_class in suspended,
        uncertain=(bool(compared.uncertain) or draft.uncertain) and not sampled,
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


async def enqueue(
    tx: Transaction,
    entries: Sequence[QueueEntry],
    pack: Pack,
    waiting: Collection[str],
    opposites: Sequence[Opposite] = (),
    *,
    edit_of: str | None = None,
) -> None:
    """Put candidates that passed the gates into the queue; `waiting` are the proposals that stay there.

    Of the `opposites` that were found those are recorded of which both stay.

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
        "action": [one.action for one in drafts],
        "targets": [list(one.targets) for one in drafts],
    }
    tx.defer_columns("review.enqueue", columns, seq=tick.seq, at=tick.at, pack=pack.ref, edit_of=edit_of)
    holders = {
        one.proposal_id: holder_of(one.draft.candidate.subject, one.draft.candidate.scope.user_id) for one in entries
    }
    tx.defer_many("review.wait", [one for one in holders.items() if one[0] in waiting], seq=tick.seq)
    against = _opposites(entries, waiting, opposites, edit_of)
    tx.defer_many("review.oppose", against, seq=tick.seq, at=tick.at)
    named: dict[str, list[str]] = {}
    for proposal_id, other, _ in against:
        named.setdefault(proposal_id, []).append(other)
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
            **({"opposites": named[one.proposal_id]} if one.proposal_id in named else {}),
        )
    for one in entries:
        if one.duplicate_of is None:
            await contradictions.open_(tx, "auto", one.proposal_id, one.draft.candidate, one.contradicts)
    for one in entries:
        if one.duplicate_of is not None:
            repeats = {one.proposal_id: one.draft.candidate}
            await mark_duplicates(tx, repeats, pack.ref, one.duplicate_of, new=True)


def _opposites(
    entries: Sequence[QueueEntry], waiting: Collection[str], opposites: Sequence[Opposite], edit_of: str | None
) -> list[tuple[str, str, str]]:
    """Return the pairs of proposals that contradict each other and both stay open, with the reasons.

    What an entry replaces, as its edit or as its copy under another pack, is no opposite of it.
    """
    entered = {one.draft.candidate.candidate_id: one for one in entries}
    found: list[tuple[str, str, str]] = []
    for one in opposites:
        entry, beside = entered[one.candidate_id], entered.get(one.other)
        other = beside.proposal_id if beside is not None else one.other
        stays = entry.proposal_id in waiting and (beside is None or other in waiting)
        if stays and other not in (edit_of, entry.draft.reopens):
            found.append((entry.proposal_id, other, one.reason))
    return found
