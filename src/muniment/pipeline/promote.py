"""Stage 4, promote: the only way into promoted memory, one transaction each.

The order holds every race: lock the subject (against revocation and erasure) and the key (against another
promotion), only then look, in a new statement, at what is live; last the tenant's clock.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import psycopg
from psycopg.types.json import Jsonb

from muniment.errors import Conflict, NotFound, NotPromotable, SealBroken
from muniment.model.candidate import Candidate
from muniment.model.capture import Capture, holder_of
from muniment.model.consent import Consent
from muniment.model.fields import Source, Tier
from muniment.model.ids import make_id, make_ids
from muniment.model.promoted import PromotedMemory, Retraction, RetractionReason
from muniment.model.proposal import Proposal
from muniment.pack import Pack
from muniment.policy import consent as consent_policy
from muniment.policy import routing
from muniment.policy.contradiction import contradicted, repeated, saying_the_same
from muniment.policy.scope import covers
from muniment.policy.visibility import sensitive_labels
from muniment.storage.rows import consent_of, fact_content, memory_of
from muniment.storage.sealing import SubjectKey, Vault
from muniment.storage.session import Transaction


@dataclass(frozen=True)
class Ground:
    """What was found under the locks: what the memory would rest on, replace, contradict or repeat."""

    consent: Consent | None
    supersedes: tuple[PromotedMemory, ...]
    contradicts: tuple[PromotedMemory, ...]
    duplicate_of: str | None


@dataclass(frozen=True)
class Approval:
    """Whose verdict promotes it."""

    verdict_id: str
    by: str
    by_kind: Source
    editors: tuple[str, ...]


async def lock(tx: Transaction, candidate: Candidate) -> None:
    """Hold the subject and the key, or for a plain text the scope, until the commit."""
    await tx.row("promote.lock_subject", holder=holder_of(candidate.subject, candidate.scope.user_id))
    key = f"{candidate.entity} {candidate.predicate}" if candidate.on_key else f"text @{candidate.scope.user_id or ''}"
    await tx.insert_many("promote.make_locks", [(key,)])
    await tx.rows("promote.take_locks", keys=[key])


async def examine(
    tx: Transaction, vault: Vault, proposal: Proposal, tier: Tier, pack: Pack, supersedes: str | None
) -> Ground:
    """Look again, under the locks, at what may have changed since the review (PRO-1).

    Raises `NotPromotable` when consent is gone or what it supersedes was retracted.
    """
    candidate = proposal.candidate
    neighbours = await live_neighbours(tx, vault, [candidate], pack)
    against = contradicted(candidate, tier, neighbours, pack)
    same = repeated(candidate, tier, neighbours)
    replaced: list[PromotedMemory] = []
    if candidate.write_class == "correction":
        # Also what said the same before: from now on it has a correction's protection.
        others = [*against, *(m for m in saying_the_same(candidate, tier, neighbours) if m not in same)]
        others = [m for m in others if covers(candidate.scope, tier, m.scope, m.tier)]
        replaced = [m for m in sorted(others, key=lambda m: m.memory_id) if await _lock_live(tx, m.memory_id)]
    if supersedes is not None and all(memory.memory_id != supersedes for memory in replaced):
        replaced.append(await _superseded(tx, vault, supersedes, candidate, tier))
    for old in replaced:
        if not pack.has_label(old.classification) or pack.rank(old.classification) > pack.rank(
            candidate.classification
        ):
            raise NotPromotable(f"it replaces a memory of label {old.classification} and must have that label at least")
    gone = {memory.memory_id for memory in replaced}
    return Ground(
        consent=await _consent(tx, candidate, pack),
        supersedes=tuple(replaced),
        contradicts=tuple(memory for memory in against if memory.memory_id not in gone),
        duplicate_of=next((memory.memory_id for memory in same if memory.memory_id not in gone), None),
    )


async def insert(
    tx: Transaction,
    key: SubjectKey,
    proposal: Proposal,
    capture: Capture,
    ground: Ground,
    approval: Approval,
    pack: Pack,
    *,
    tier: Tier,
    priority: float,
) -> None:
    """Write the memory with its body and filters, retract what it supersedes, open what it contradicts."""
    candidate, scope, tick = proposal.candidate, proposal.candidate.scope, await tx.tick()
    memory_id = make_id("pm", tick.at)
    common = {
        "memory_id": memory_id,
        "seq": tick.seq,
        "at": tick.at,
        "expires_at": routing.expires_at(candidate.write_class, tier, tick.at, pack),
        "class": candidate.write_class,
        "entity": candidate.entity,
        "predicate": candidate.predicate,
        "classification": candidate.classification,
        "tier": tier,
        "priority": priority,
        "confidence": candidate.confidence,
        "user_id": scope.user_id or "",
        "session_id": scope.session_id or "",
        "workflow_id": scope.workflow_id or "",
        "intent_id": scope.intent_id or "",
        "qualifiers": Jsonb(scope.qualifiers) if scope.qualifiers else None,
        "consent_root": ground.consent.root_id if ground.consent else None,
    }
    await tx.do(
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
        source=candidate.source,
        author=candidate.author,
        editors=list(approval.editors),
        approver=approval.by,
        approver_kind=approval.by_kind,
        captured_at=capture.captured_at,
        observed_at=capture.observed_at,
    )
    content = fact_content(candidate.text, candidate.value, candidate.evidence_refs)
    await tx.do(
        "promote.insert_body",
        memory_id=memory_id,
        content=key.seal("memory_bodies.content", memory_id, content),
    )
    await tx.do("promote.insert_scope", **common)
    tx.emit(
        "memory.promoted",
        approval.by,
        memory_id=memory_id,
        proposal_id=proposal.proposal_id,
        write_class=candidate.write_class,
        tier=tier,
    )
    reason: RetractionReason = "corrected" if candidate.write_class == "correction" else "superseded"
    for old in ground.supersedes:
        await retract(tx, old.memory_id, by=approval.by, reason=reason, superseded_by=memory_id)
    if candidate.write_class == "correction":
        replaced = [old.memory_id for old in ground.supersedes]
        tx.emit("memory.correction", candidate.author, memory_id=memory_id, replaced=replaced)
    opened = make_ids("ctr", len(ground.contradicts), tick.at)
    for contradiction_id, other in zip(opened, ground.contradicts, strict=True):
        await tx.do(
            "promote.contradict",
            contradiction_id=contradiction_id,
            seq=tick.seq,
            at=tick.at,
            entity=candidate.entity,
            predicate=candidate.predicate,
            existing=other.memory_id,
            incoming=memory_id,
        )
        tx.emit(
            "memory.contradiction",
            approval.by,
            contradiction_id=contradiction_id,
            existing=other.memory_id,
            incoming=memory_id,
        )


async def retract(
    tx: Transaction, memory_id: str, *, by: str, reason: RetractionReason, superseded_by: str | None = None
) -> Retraction:
    """Withdraw a memory, once; raises `NotFound`, or `Conflict` when it was withdrawn before."""
    if superseded_by is None:
        found = await tx.row("promote.live", memory_id=memory_id)
        if found is None:
            raise NotFound("no such memory", field="memory_id")
        if found["dead_seq"] is not None:
            raise Conflict("was retracted before", field="memory_id")
        # The row's own lock comes before the clock's: of two retractions at once the second finds it dead.
        if not await _lock_live(tx, memory_id, expired_too=True):
            raise Conflict("was retracted before", field="memory_id")
    tick = await tx.tick()
    try:
        await tx.do(
            "promote.retract",
            memory_id=memory_id,
            seq=tick.seq,
            at=tick.at,
            by=by,
            reason=reason,
            superseded_by=superseded_by,
        )
    except psycopg.errors.UniqueViolation as error:
        raise Conflict("was retracted before", field="memory_id") from error
    await tx.do("promote.bury", memory_id=memory_id, seq=tick.seq)
    tx.emit("memory.retracted", by, memory_id=memory_id, reason=reason, superseded_by=superseded_by)
    return Retraction(
        memory_id=memory_id,
        seq=tick.seq,
        retracted_at=tick.at,
        retracted_by=by,
        reason=reason,
        superseded_by=superseded_by,
    )


async def live_neighbours(
    tx: Transaction, vault: Vault, candidates: Sequence[Candidate], pack: Pack
) -> list[PromotedMemory]:
    """The live memories on the candidates' keys, opened; what the pack would hide for want of consent left out."""
    keys = sorted({(c.entity, c.predicate) for c in candidates if c.entity is not None and c.predicate is not None})
    if not keys:
        return []
    rows = await tx.rows(
        "promote.live_on_keys",
        entities=[k[0] for k in keys],
        predicates=[k[1] for k in keys],
        sensitive=sensitive_labels(pack),
    )
    memories: list[PromotedMemory] = []
    for row in rows:
        try:
            key = await vault.open_key(tx, row["holder"], row["wrapped_key"], row["key_version"])
            memories.append(memory_of(row, key.open("memory_bodies.content", row["memory_id"], row["content"])))
        except SealBroken:
            continue  # Nobody can read it: it says nothing that could be contradicted or repeated.
    return memories


async def _lock_live(tx: Transaction, memory_id: str, *, expired_too: bool = False) -> bool:
    return await tx.row("promote.lock_live", memory_id=memory_id, expired_too=expired_too) is not None


async def _superseded(
    tx: Transaction, vault: Vault, memory_id: str, candidate: Candidate, tier: Tier
) -> PromotedMemory:
    row = await tx.row("audit.memory", memory_id=memory_id)
    if row is None:
        raise NotFound("no such memory", field="supersedes")
    if not await _lock_live(tx, memory_id):
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
