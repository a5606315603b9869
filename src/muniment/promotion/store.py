"""Stage 4, promote: the only way into promoted memory, one transaction each.

The order holds every race: lock the subject (against revocation and erasure) and the scope (against another
promotion), only then look, in a new statement, at what is live; last the tenant's clock.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from psycopg.types.json import Jsonb

from muniment.audit import provenance_store as trail
from muniment.candidates.comparison import EmbeddedCandidate, TextComparer
from muniment.candidates.neighbours import neighbours
from muniment.candidates.rules import expires_at
from muniment.capture.rules import vouched_in
from muniment.consent import rules as consent_policy
from muniment.contradictions import store as contradictions
from muniment.contradictions.rules import Compared, Contradicted, compare, may_supersede, repeated
from muniment.database.rows import consent_of, fact_content, memory_of
from muniment.database.sealing import SubjectKey, Vault
from muniment.database.storage import LATEST, Named, Row, Transaction
from muniment.erasure import store as erasure
from muniment.errors import Conflict, NotFound, NotPromotable
from muniment.model.candidate import Candidate
from muniment.model.capture import Capture, holder_of
from muniment.model.consent import Consent
from muniment.model.contradiction import Outcome
from muniment.model.fields import Source, Tier
from muniment.model.ids import make_id
from muniment.model.promoted import PromotedMemory, Retraction, RetractionReason
from muniment.model.proposal import Proposal
from muniment.pack import Pack
from muniment.promotion import indexing
from muniment.promotion.rules import covers

# The lock of what is for all users; a user's own follows it.
_SCOPE = "scope @"
_OUTCOMES: dict[RetractionReason, Outcome] = {
    "superseded": "superseded",
    "corrected": "corrected",
    "consent_revoked": "consent_revoked",
}


@dataclass(frozen=True)
class PromotionCheck:
    """What was found under the locks: what the memory would rest on, replace, contradict or repeat."""

    consent: Consent | None
    supersedes: tuple[PromotedMemory, ...]
    contradicts: tuple[Contradicted, ...]
    duplicate_of: str | None
    probe: EmbeddedCandidate

    @property
    def unsettled(self) -> tuple[Contradicted, ...]:
        """What it contradicts and does not replace."""
        replaced = {memory.memory_id for memory in self.supersedes}
        return tuple(one for one in self.contradicts if one.memory.memory_id not in replaced)


@dataclass(frozen=True)
class Approval:
    """Whose verdict promotes it."""

    verdict_id: str
    by: str
    by_kind: Source
    editors: tuple[str, ...]


async def lock(tx: Transaction, proposals: Sequence[Proposal]) -> set[str]:
    """Hold their subjects and scopes until the commit; gives those that were erased since they were proposed.

    Two promotions that some run could see side by side never pass at once: what is for all users waits for every
    other, what is for one user waits for that user's and for what is for all. All take them in one order.
    """
    candidates = [one.candidate for one in proposals]
    rows = await hold(tx, candidates, erasure.asked_reached([one.candidate_id for one in candidates]))
    reached = {row["candidate_id"] for row in rows}
    return {one.proposal_id for one in proposals if one.candidate.candidate_id in reached}


async def hold(tx: Transaction, candidates: Sequence[Candidate], *asked: Named) -> list[Row]:
    """The locks of those candidates; gives what the last statement asked, after the locks, finds."""
    users = {one.scope.user_id for one in candidates}
    scopes: list[Named] = [("promote.take_lock" if None in users else "promote.share_lock", {"key": _SCOPE})]
    scopes += [("promote.take_lock", {"key": _SCOPE + user}) for user in sorted(user for user in users if user)]
    tx.defer_many("promote.make_locks", [(erasure.LOCK,), *((given["key"],) for _, given in scopes)])
    holders = {holder_of(one.subject, one.scope.user_id) for one in candidates}
    subjects: list[Named] = [("promote.lock_subject", {"holder": holder}) for holder in sorted(holders)]
    # What is asked is a statement of its own, after the locks: it sees what was committed while they were waited for.
    return (await tx.gather(erasure.HOLD_OFF, *subjects, *scopes, *asked))[-1]


async def examine(
    tx: Transaction,
    vault: Vault,
    proposal: Proposal,
    probe: EmbeddedCandidate,
    comparer: TextComparer,
    pack: Pack,
    observed_at: datetime,
    supersedes: str | None,
) -> PromotionCheck:
    """Look again, under the locks, at what may have changed since the review (PRO-1).

    Raises `NotPromotable` when consent is gone or what it supersedes was retracted.
    """
    candidate, tier = proposal.candidate, proposal.tier_target
    (around,) = await neighbours(tx, vault, [probe], comparer, pack)
    compared = compare(candidate, tier, around, pack, comparer.by)
    replaced = [
        memory
        for memory in _to_replace(candidate, tier, observed_at, compared, pack)
        if await lock_live(tx, memory.memory_id)
    ]
    for named in await _named(tx, candidate, supersedes):
        if all(memory.memory_id != named for memory in replaced):
            replaced.append(await _superseded(tx, vault, named, candidate, tier))
    for old in replaced:
        if not pack.at_least(candidate.classification, old.classification):
            raise NotPromotable(f"it replaces a memory of label {old.classification} and must have that label at least")
    gone = {memory.memory_id for memory in replaced}
    same = [memory.memory_id for memory in repeated(candidate, tier, compared, pack)]
    return PromotionCheck(
        consent=await _consent(tx, candidate, pack),
        supersedes=tuple(replaced),
        contradicts=compared.contradicts,
        duplicate_of=next((memory_id for memory_id in same if memory_id not in gone), None),
        probe=probe,
    )


async def undisputed(
    tx: Transaction, vault: Vault, probes: Sequence[EmbeddedCandidate], comparer: TextComparer, pack: Pack
) -> list[PromotionCheck | None]:
    """Of many at once, the ground of each that has nothing around it: neither a memory nor an earlier one of them.

    None for whoever has to be examined alone: it meets something, corrects something, or rests on consent.
    """
    around = await neighbours(tx, vault, probes, comparer, pack)
    meets = _meets_earlier(probes, comparer)
    grounds: list[PromotionCheck | None] = []
    for probe, near, met in zip(probes, around, meets, strict=True):
        candidate = probe.candidate
        alone = near or met or candidate.write_class == "correction" or candidate.corrects is not None
        if alone or pack.is_sensitive(candidate.classification):
            grounds.append(None)
        else:
            grounds.append(PromotionCheck(None, (), (), None, probe))
    return grounds


def _meets_earlier(probes: Sequence[EmbeddedCandidate], comparer: TextComparer) -> list[bool]:
    """Whether each is on the key of an earlier one, or as near to it as neighbours are."""
    nowhere = np.zeros(comparer.embedder.dimensions, dtype=np.float32)
    vectors = np.stack([probe.vector if probe.vector is not None else nowhere for probe in probes])
    close = np.tril(vectors @ vectors.T >= comparer.by.thresholds.similarity, k=-1)
    near: list[bool] = [bool(row.any()) for row in close]
    keys: set[tuple[str | None, str | None]] = set()
    met: list[bool] = []
    for place, probe in enumerate(probes):
        key = (probe.candidate.entity, probe.candidate.predicate)
        met.append(near[place] or (probe.candidate.on_key and key in keys))
        keys.add(key)
    return met


def _to_replace(
    candidate: Candidate, tier: Tier, observed_at: datetime, compared: Compared, pack: Pack
) -> list[PromotedMemory]:
    """What the rules let it take the place of, in the order of their locks."""
    found = [
        one.memory
        for one in compared.contradicts
        if may_supersede(candidate, tier, observed_at, one.memory, pack).passed
    ]
    if candidate.write_class == "correction":
        # Also what said the same before: from now on it has a correction's protection.
        plain = [memory for memory in compared.says_the_same if memory.write_class != "correction"]
        found += [memory for memory in plain if covers(candidate.scope, tier, memory.scope, memory.tier)]
    return sorted(found, key=lambda memory: memory.memory_id)


async def _named(tx: Transaction, candidate: Candidate, supersedes: str | None) -> list[str]:
    """What its approver, or its author as a correction, said it takes the place of."""
    named = [supersedes] if supersedes is not None else []
    # What was withdrawn since needs no correction any more; the key still does.
    if candidate.corrects is not None and await lock_live(tx, candidate.corrects):
        named.append(candidate.corrects)
    return named


async def insert(
    tx: Transaction,
    vault: Vault,
    key: SubjectKey,
    proposal: Proposal,
    capture: Capture,
    ground: PromotionCheck,
    approval: Approval,
    comparer: TextComparer,
    pack: Pack,
    *,
    ends_by: datetime | None = None,
) -> str:
    """Write the memory with its body, filters and vector, retract what it supersedes, open what it contradicts.

    It lives for its term, and not beyond `ends_by`.
    """
    candidate, scope, tier = proposal.candidate, proposal.candidate.scope, proposal.tier_target
    tick = await tx.tick()
    comparing = await vault.comparing(tx)
    memory_id = make_id("pm", tick.at)
    ends = [expires_at(candidate.write_class, tier, tick.at, pack), ends_by]
    common = {
        "memory_id": memory_id,
        "seq": tick.seq,
        "at": tick.at,
        "expires_at": min((at for at in ends if at is not None), default=None),
        "class": candidate.write_class,
        "entity": candidate.entity,
        "predicate": candidate.predicate,
        "classification": candidate.classification,
        "tier": tier,
        "priority": proposal.priority,
        "confidence": candidate.confidence,
        "user_id": scope.user_id or "",
        "session_id": scope.session_id or "",
        "workflow_id": scope.workflow_id or "",
        "intent_id": scope.intent_id or "",
        "qualifiers": Jsonb(scope.qualifiers) if scope.qualifiers else None,
        "consent_root": ground.consent.root_id if ground.consent else None,
    }
    tx.defer_row(
        "promote.insert",
        **common,
        candidate_id=candidate.candidate_id,
        proposal_id=proposal.proposal_id,
        verdict_id=approval.verdict_id,
        capture_id=candidate.capture_id,
        sensitive=pack.is_sensitive(candidate.classification),
        tier_derived=proposal.tier_derived,
        trust=candidate.trust,
        holder=holder_of(candidate.subject, scope.user_id),
        subject=candidate.subject,
        decision_key=capture.decision_key,
        consent_id=ground.consent.consent_id if ground.consent else None,
        pack=pack.ref,
        ontology_version=pack.meta.ontology_version,
        kind=capture.kind,
        origin=capture.origin,
        vouched=vouched_in(candidate, capture.vouched),
        source=candidate.source,
        author=candidate.author,
        editors=list(approval.editors),
        approver=approval.by,
        approver_kind=approval.by_kind,
        captured_at=capture.captured_at,
        observed_at=capture.observed_at,
    )
    content = fact_content(candidate.text, candidate.value, candidate.evidence_refs)
    tx.defer_row(
        "promote.insert_body",
        memory_id=memory_id,
        content=key.seal("memory_bodies.content", memory_id, content),
    )
    tx.defer_row("promote.insert_scope", **common)
    probe = ground.probe
    indexing.index(tx, memory_id, candidate, capture.observed_at, probe.vector, probe.coming, comparer, comparing)
    tx.emit(
        "memory.promoted",
        approval.by,
        memory_id=memory_id,
        proposal_id=proposal.proposal_id,
        write_class=candidate.write_class,
        tier=tier,
    )
    # What arose while it waited is opened too, before what it replaces goes: nothing is overwritten in silence.
    await contradictions.open_new(tx, approval.by, proposal.proposal_id, candidate, ground.contradicts)
    reason: RetractionReason = "corrected" if candidate.write_class == "correction" else "superseded"
    for old in ground.supersedes:
        await supersede(tx, old.memory_id, by=approval.by, reason=reason, superseded_by=memory_id)
    if candidate.write_class == "correction":
        replaced = [old.memory_id for old in ground.supersedes]
        tx.emit("memory.correction", candidate.author, memory_id=memory_id, replaced=replaced)
    return memory_id


async def retract(tx: Transaction, memory_id: str, *, by: str, reason: RetractionReason) -> Retraction:
    """Withdraw a memory, once; raises `NotFound`, or `Conflict` when it was withdrawn before."""
    # The row's own lock comes before the clock's: of two retractions at once the second finds it dead.
    if not await lock_live(tx, memory_id, expired_too=True):
        if await tx.row("promote.is_there", memory_id=memory_id) is None:
            raise NotFound("no such memory", field="memory_id")
        raise Conflict("was retracted before", field="memory_id")
    return await supersede(tx, memory_id, by=by, reason=reason)


async def supersede(
    tx: Transaction, memory_id: str, *, by: str, reason: RetractionReason, superseded_by: str | None = None
) -> Retraction:
    """Write the retraction of a memory that is held (`lock_live`), with what takes its place, and end its disputes."""
    used = await trail.used_lately(tx, [memory_id])
    tick = await tx.tick()
    tx.defer(
        "promote.retract",
        memory_id=memory_id,
        seq=tick.seq,
        at=tick.at,
        by=by,
        reason=reason,
        superseded_by=superseded_by,
    )
    tx.defer("promote.mark_dead", memory_ids=[memory_id], seq=tick.seq)
    tx.emit("memory.retracted", by, memory_id=memory_id, reason=reason, superseded_by=superseded_by, **used[memory_id])
    await contradictions.end(tx, by, _OUTCOMES.get(reason, "retracted"), memory_ids=[memory_id])
    return Retraction(
        memory_id=memory_id,
        seq=tick.seq,
        retracted_at=tick.at,
        retracted_by=by,
        reason=reason,
        superseded_by=superseded_by,
    )


async def lock_live(tx: Transaction, memory_id: str, *, expired_too: bool = False) -> bool:
    """Hold a live memory until the commit; whether there was one. It comes before the clock's lock."""
    return await tx.row("promote.lock_live", memory_id=memory_id, expired_too=expired_too) is not None


async def _superseded(
    tx: Transaction, vault: Vault, memory_id: str, candidate: Candidate, tier: Tier
) -> PromotedMemory:
    row = await tx.row("audit.memory", memory_id=memory_id, seq=LATEST, at=tx.now)
    if row is None:
        raise NotFound("no such memory", field="supersedes")
    if not await lock_live(tx, memory_id):
        raise NotPromotable("the memory it would supersede was retracted or has expired", field="supersedes")
    if row["class"] == "correction" and candidate.write_class != "correction":
        raise NotPromotable("a correction is superseded only by a later correction", field="supersedes")
    key = await vault.open_key(tx, row["holder"], row["wrapped_key"], row["key_version"])
    old = memory_of(row, key.open("memory_bodies.content", row["memory_id"], row["content"]))
    if not covers(candidate.scope, tier, old.scope, old.tier):
        raise NotPromotable("some run that sees the old memory would not see this one", field="supersedes")
    return old


async def _consent(tx: Transaction, candidate: Candidate, pack: Pack) -> Consent | None:
    if candidate.write_class == "evidence_link" or not pack.is_sensitive(candidate.classification):
        return None
    assert candidate.subject is not None, "the consent gate lets no anonymous fact through"
    rows = await tx.rows("consent.of_subjects", subjects=[candidate.subject])
    matched = consent_policy.covering(
        [consent_of(row) for row in rows],
        write_class=candidate.write_class,
        predicate=candidate.predicate,
        label=candidate.classification,
        pack=pack,
        now=tx.now,
    )
    if matched is None:
        raise NotPromotable("the subject's consent was revoked or has expired since it was proposed")
    return matched
