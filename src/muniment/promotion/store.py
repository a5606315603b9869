"""Stage 4, promotion: the only way into promoted memory, one transaction each.

The order holds every race: lock the subject (against revocation and erasure) and the scope (against another
promotion), only then read, in a new statement, what is live; last take the tenant's clock.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from psycopg.types.json import Jsonb

from muniment.candidates.rules import expires_at
from muniment.capture.rules import vouched_in
from muniment.consent.rules import covering
from muniment.contradictions import store as contradictions
from muniment.contradictions.rules import Compared, Contradicted, compare, covers, may_supersede, repeated
from muniment.contradictions.store import ROUNDING, EmbeddedCandidate, TextComparer, neighbours
from muniment.database import locks
from muniment.database.packed_words import pack_words
from muniment.database.rows import consent_of, fact_content, memory_of
from muniment.database.sealing import SubjectKey, Vault
from muniment.database.storage import LATEST, NamedStatement, Row, Transaction
from muniment.database.vectors import Vector, to_sql
from muniment.errors import NotFound, NotPromotable
from muniment.language.words import index_of
from muniment.model.candidate import Candidate
from muniment.model.capture import Capture, holder_of
from muniment.model.consent import Consent
from muniment.model.fields import Source, Tier
from muniment.model.ids import make_id
from muniment.model.promoted import PromotedMemory, RetractionReason
from muniment.model.proposal import Proposal
from muniment.pack import Pack
from muniment.promotion.retraction_store import lock_live, supersede
from muniment.promotion.rules import Room, linked_entity
from muniment.review.store import Loaded

# The lock of the scope of all users; that of one user has the user id behind it.
_SCOPE = "scope @"
_BUDGET = "budget"
# What a memory has of its candidate and of its capture as it is.
_OF_CANDIDATE = ("candidate_id", "capture_id", "trust", "subject", "source", "author")
_OF_CAPTURE = ("decision_key", "kind", "origin", "captured_at", "observed_at")


@dataclass(frozen=True)
class PromotionCheck:
    """What was found under the locks: what the memory would rest on, replace, contradict or repeat."""

    consent: Consent | None
    supersedes: tuple[PromotedMemory, ...]
    contradicts: tuple[Contradicted, ...]
    duplicate_of: str | None
    embedded: EmbeddedCandidate
    # It expires after its own term, and no later than this.
    ends_by: datetime | None = None

    @property
    def unsettled(self) -> tuple[Contradicted, ...]:
        """What it contradicts and does not replace."""
        replaced = {memory.memory_id for memory in self.supersedes}
        return tuple(one for one in self.contradicts if one.memory.memory_id not in replaced)


async def lock_proposals(tx: Transaction, proposals: Sequence[Proposal]) -> set[str]:
    """Lock the subjects and scopes of proposals until the commit; returns those erased since they were proposed."""
    candidates = [one.candidate for one in proposals]
    ids = [one.candidate_id for one in candidates]
    rows = await lock_scopes(tx, candidates, ("erasure.reached_candidates", {"candidate_ids": ids}))
    reached = {row["candidate_id"] for row in rows}
    return {one.proposal_id for one in proposals if one.candidate.candidate_id in reached}


async def lock_scopes(tx: Transaction, candidates: Sequence[Candidate], *reads: NamedStatement) -> list[Row]:
    """Lock the subjects and scopes of candidates; returns the rows of the last statement sent.

    Two promotions that some run could see side by side never pass at once: what is for all users waits for every
    other, what is for one user waits for that user's and for what is for all. All take the locks in one order.
    """
    users = {one.scope.user_id for one in candidates}
    scopes: list[NamedStatement] = [("promote.take_lock" if None in users else "promote.share_lock", {"key": _SCOPE})]
    scopes += [("promote.take_lock", {"key": _SCOPE + user}) for user in sorted(user for user in users if user)]
    locks.create(tx, [locks.ERASURE, *(values["key"] for _, values in scopes)])
    holders = {holder_of(one.subject, one.scope.user_id) for one in candidates}
    subjects: list[NamedStatement] = [("promote.lock_subject", {"holder": holder}) for holder in sorted(holders)]
    # The reads are statements of their own after the locks: they see what was committed while those were waited for.
    return (await tx.gather(locks.BLOCK_ERASURES, *subjects, *scopes, *reads))[-1]


async def room(tx: Transaction, pack: Pack) -> Room:
    """Return what is left under the pack's budgets."""
    rows = await tx.rows("jobs.use") if pack.memory_layer.budgets else []
    return Room.under(pack, {(row["tier"], row["class"]): (row["records"], row["bytes"]) for row in rows})


async def lock_room(tx: Transaction, pack: Pack) -> Room:
    """Return what is left under the budgets, locked until the commit: no two promotions take the same room.

    It comes before the tenant's clock.
    """
    if pack.memory_layer.budgets:
        locks.create(tx, [_BUDGET])
        await tx.row("promote.take_lock", key=_BUDGET)
    return await room(tx, pack)


async def check_promotion(
    tx: Transaction,
    vault: Vault,
    proposal: Proposal,
    embedded: EmbeddedCandidate,
    comparer: TextComparer,
    pack: Pack,
    observed_at: datetime,
    supersedes: str | None,
) -> PromotionCheck:
    """Check again, under the locks, what may have changed since the review (PRO-1).

    Raises `NotPromotable` when consent is gone or what it supersedes was retracted.
    """
    candidate, tier = proposal.candidate, proposal.tier_target
    (around,) = await neighbours(tx, vault, [embedded], comparer, pack)
    compared = compare(candidate, tier, around, pack, comparer.by)
    replaced = [
        memory
        for memory in _replaceable(candidate, tier, observed_at, compared, pack)
        if await lock_live(tx, memory.memory_id)
    ]
    named = [supersedes] if supersedes is not None else []
    # A memory that was retracted since needs no correction any more; its key still does.
    if candidate.corrects is not None and await lock_live(tx, candidate.corrects):
        named.append(candidate.corrects)
    for memory_id in named:
        if all(memory.memory_id != memory_id for memory in replaced):
            replaced.append(await _superseded(tx, vault, memory_id, candidate, tier))
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
        embedded=embedded,
    )


async def check_many(
    tx: Transaction, vault: Vault, embedded: Sequence[EmbeddedCandidate], comparer: TextComparer, pack: Pack
) -> list[PromotionCheck | None]:
    """Check many at once; None for each that has to be checked alone.

    That is what meets a memory or an earlier one of these, is a correction, or needs consent.
    """
    around = await neighbours(tx, vault, embedded, comparer, pack)
    meets = _meets_earlier(embedded, comparer)
    checks: list[PromotionCheck | None] = []
    for one, near, met in zip(embedded, around, meets, strict=True):
        candidate = one.candidate
        alone = near or met or candidate.write_class == "correction" or candidate.corrects is not None
        alone = alone or pack.is_sensitive(candidate.classification)
        checks.append(None if alone else PromotionCheck(None, (), (), None, one))
    return checks


def _meets_earlier(embedded: Sequence[EmbeddedCandidate], comparer: TextComparer) -> list[bool]:
    """Whether each is on the key of an earlier one, or as near to it as neighbours are."""
    nowhere = np.zeros(comparer.embedder.dimensions, dtype=np.float32)
    vectors = np.stack([one.vector if one.vector is not None else nowhere for one in embedded])
    near: list[list[bool]] = np.tril(vectors @ vectors.T >= comparer.by.thresholds.similarity - ROUNDING, k=-1).tolist()
    keys: set[tuple[str | None, str | None]] = set()
    met: list[bool] = []
    for one, row in zip(embedded, near, strict=True):
        key = (one.candidate.entity, one.candidate.predicate)
        met.append(any(row) or (one.candidate.on_key and key in keys))
        keys.add(key)
    return met


def _replaceable(
    candidate: Candidate, tier: Tier, observed_at: datetime, compared: Compared, pack: Pack
) -> list[PromotedMemory]:
    """Return what the rules let it replace, in the order of their locks."""
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


async def insert(
    tx: Transaction,
    vault: Vault,
    loaded: Loaded,
    capture: Capture,
    check: PromotionCheck,
    verdict_id: str,
    by: tuple[str, Source],
    comparer: TextComparer,
    pack: Pack,
) -> str:
    """Insert the memory with its body, filters and index, retract what it supersedes, open its contradictions.

    `by` is who gave the verdict, and of which kind. Returns its id.
    """
    proposal, (approver, approver_kind) = loaded.proposal, by
    candidate, scope, tier = proposal.candidate, proposal.candidate.scope, proposal.tier_target
    tick = await tx.tick()
    tenant_data_key = await vault.tenant_data_key(tx)
    memory_id = make_id("pm", tick.at)
    ends = [expires_at(candidate.write_class, tier, tick.at, pack), check.ends_by]
    common = {
        **{name: getattr(candidate, name) for name in ("entity", "predicate", "classification", "confidence")},
        **{name: getattr(scope, name) or "" for name in ("user_id", "session_id", "workflow_id", "intent_id")},
        "memory_id": memory_id,
        "seq": tick.seq,
        "at": tick.at,
        "expires_at": min((at for at in ends if at is not None), default=None),
        "class": candidate.write_class,
        "tier": tier,
        "priority": proposal.priority,
        "qualifiers": Jsonb(scope.qualifiers) if scope.qualifiers else None,
        "consent_root": check.consent.root_id if check.consent else None,
    }
    tx.defer_row(
        "promote.insert",
        **common,
        **{name: getattr(candidate, name) for name in _OF_CANDIDATE},
        **{name: getattr(capture, name) for name in _OF_CAPTURE},
        proposal_id=proposal.proposal_id,
        verdict_id=verdict_id,
        sensitive=pack.is_sensitive(candidate.classification),
        tier_derived=proposal.tier_derived,
        holder=holder_of(candidate.subject, scope.user_id),
        consent_id=check.consent.consent_id if check.consent else None,
        pack=pack.ref,
        ontology_version=pack.meta.ontology_version,
        vouched=vouched_in(candidate, capture.vouched),
        editors=list(loaded.editors),
        approver=approver,
        approver_kind=approver_kind,
    )
    content = fact_content(candidate.text, candidate.value, candidate.evidence_refs)
    sealed = loaded.key.seal("memory_bodies.content", memory_id, content)
    tx.defer_row("promote.insert_body", memory_id=memory_id, content=sealed)
    tx.defer_row("promote.insert_scope", **common)
    vectors = (check.embedded.vector, check.embedded.next_vector)
    index_memory(tx, memory_id, candidate, capture.observed_at, vectors, comparer, tenant_data_key)
    what = {"proposal_id": proposal.proposal_id, "write_class": candidate.write_class, "tier": tier}
    tx.emit("memory.promoted", approver, memory_id=memory_id, **what)
    # Contradictions that arose while it waited are opened too, before what it replaces is retracted.
    await contradictions.open_new(tx, approver, proposal.proposal_id, candidate, check.contradicts)
    reason: RetractionReason = "corrected" if candidate.write_class == "correction" else "superseded"
    for old in check.supersedes:
        await supersede(tx, old.memory_id, by=approver, reason=reason, superseded_by=memory_id)
    if candidate.write_class == "correction":
        replaced = [old.memory_id for old in check.supersedes]
        tx.emit("memory.correction", candidate.author, memory_id=memory_id, replaced=replaced)
    return memory_id


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
    matched = covering(
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


# ---- the index of promoted memory: words, links and vectors, all rebuildable from the bodies (TIR-4) ----


def term_hash(key: SubjectKey, term: str) -> int:
    """Hash a word under the tenant's key: only hashes are stored."""
    return int.from_bytes(key.digest(b"term\0" + term.encode())[:8], "big", signed=True)


def entity_hash(key: SubjectKey, entity: str) -> int:
    """Hash an entity at the end of a link under the tenant's key."""
    return int.from_bytes(key.digest(b"link\0" + entity.encode())[:8], "big", signed=True)


def index_memory(
    tx: Transaction,
    memory_id: str,
    fact: Candidate | PromotedMemory,
    observed_at: datetime,
    vectors: tuple[Vector | None, Vector | None],
    comparer: TextComparer,
    key: SubjectKey,
) -> None:
    """Index a memory: its words, its link, and its vectors by the embedder in use and by the next one."""
    if fact.write_class == "evidence_link":
        return
    words = index_of(fact.text, observed_at)
    terms = {term_hash(key, term): times for term, times in words.terms.items()}
    tx.defer_row("indexing.add_words", memory_id=memory_id, words=words.words, terms=pack_words(terms))
    if (other := linked_entity(fact.entity, fact.value)) is not None:
        assert fact.entity is not None
        ends = {"entity": entity_hash(key, fact.entity), "links_to": entity_hash(key, other)}
        tx.defer_row("indexing.add_link", memory_id=memory_id, **ends)
    for vector, embedder in zip(vectors, (comparer.embedder, comparer.next_embedder), strict=True):
        if vector is not None and vector.any() and embedder is not None:
            tx.defer_row("indexing.add_vector", memory_id=memory_id, embedder=embedder.name, vector=to_sql(vector))
