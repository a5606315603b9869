"""Stage 4, promotion: the only way into promoted memory, one transaction each.

The order holds every race: lock the subject (against revocation and erasure) and the scope (against another
promotion), only then read, in a new statement, what is live; last take the tenant's clock.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from muniment.candidates.rules import confined_to, expires_at
from muniment.capture.rules import vouched_in
from muniment.consent.rules import covering
from muniment.contradictions import judge
from muniment.contradictions import store as contradictions
from muniment.contradictions.batch_rules import BatchMember
from muniment.contradictions.rules import Compared, Contradicted, compare, may_supersede, repeated
from muniment.contradictions.scopes import covers
from muniment.contradictions.store import EmbeddedCandidate, TextComparer, neighbours
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
from muniment.model.ids import make_ids
from muniment.model.promoted import PromotedMemory, RetractionReason
from muniment.model.proposal import Proposal, ProposalAction
from muniment.pack import Pack
from muniment.promotion.retraction_store import lock_live, supersede
from muniment.promotion.rules import Room, linked_entity
from muniment.review.store import Loaded

_BUDGET = "budget"
# What a memory has of its candidate and of its capture as it is.
_OF_CANDIDATE = ("candidate_id", "capture_id", "trust", "subject", "source", "author", "third_party", "corrects")
# What the rows of a memory and of its filters both have of its candidate and of its scope.
_IN_BOTH = ("entity", "predicate", "classification", "confidence", "valid_from", "valid_until")
_OF_SCOPE = ("user_id", "session_id", "workflow_id", "intent_id")
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
    # Memories of which the trained judge cannot say for sure whether it contradicts or repeats them.
    uncertain: tuple[PromotedMemory, ...] = ()

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


async def lock_scopes(
    tx: Transaction, candidates: Sequence[Candidate], *reads: NamedStatement, holders: Sequence[str] = ()
) -> list[Row]:
    """Lock the subjects and scopes of candidates, and further holders; returns the rows of the last statement sent."""
    users = {one.scope.user_id for one in candidates}
    locks.create(tx, [locks.ERASURE, *locks.scope_keys(users)])
    locked = sorted({*holders, *(holder_of(one.subject, one.scope.user_id) for one in candidates)})
    subjects: NamedStatement = ("promote.lock_subjects", {"holders": locked})
    # The reads are statements of their own after the locks: they see what was committed while those were waited for.
    return (await tx.gather(locks.BLOCK_ERASURES, subjects, *locks.scope_locks(users), *reads))[-1]


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
    capture: Capture,
    supersedes: str | None,
) -> PromotionCheck:
    """Check again, under the locks, what may have changed since the review (PRO-1).

    Raises `NotPromotable` when consent is gone or what it supersedes was retracted.
    """
    candidate, tier = proposal.candidate, proposal.tier_target
    near = await neighbours(tx, vault, [embedded], comparer, pack)
    (around,) = await judge.judge_neighbours([candidate], near, comparer, pack, [tier])
    compared = compare(candidate, tier, around, pack, comparer.by)
    replaced = [
        memory
        for memory in _replaceable(candidate, tier, capture, compared, pack)
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
        if old.third_party and confined_to(candidate) != old.scope.user_id:
            raise NotPromotable("it replaces a memory about a third party and must be one too, for the same user")
    gone = {memory.memory_id for memory in replaced}
    same = [memory.memory_id for memory in repeated(candidate, tier, compared, pack)]
    return PromotionCheck(
        consent=await _consent(tx, candidate, pack),
        supersedes=tuple(replaced),
        contradicts=compared.contradicts,
        uncertain=compared.uncertain,
        duplicate_of=next((memory_id for memory_id in same if memory_id not in gone), None),
        embedded=embedded,
    )


async def check_many(
    tx: Transaction,
    vault: Vault,
    embedded: Sequence[EmbeddedCandidate],
    tiers: Sequence[Tier],
    comparer: TextComparer,
    pack: Pack,
) -> list[PromotionCheck | None]:
    """Read the neighbours of many and check them at once, as `check_together` does; `tiers` are those they go to."""
    candidates = [one.candidate for one in embedded]
    found = await neighbours(tx, vault, embedded, comparer, pack)
    around = await judge.judge_neighbours(candidates, found, comparer, pack, tiers)
    members: list[BatchMember] = []
    for candidate, tier, near in zip(candidates, tiers, around, strict=True):
        compared = compare(candidate, tier, near, pack, comparer.by)
        met = any(judge.is_near(one, comparer) for one in near) or not compared.finds_nothing
        members.append(BatchMember(candidate, tier, judge.similarities_read(near), met))
    return await check_together(embedded, members, comparer, pack)


async def check_together(
    embedded: Sequence[EmbeddedCandidate], members: Sequence[BatchMember], comparer: TextComparer, pack: Pack
) -> list[PromotionCheck | None]:
    """Check many at once; None for each that has to be checked alone.

    That is what meets a memory (`alone` in `members`) or an earlier one of these, is a correction, or needs consent.
    Raises `ReadersUnavailable`.
    INVARIANT: the neighbours were read after the locks of their scopes were taken.
    """
    members = [replace(one, alone=one.alone or _needs_own_check(one.candidate, pack)) for one in members]
    met = await judge.meets_earlier(embedded, members, comparer, pack)
    return [
        None if member.alone or meets else PromotionCheck(None, (), (), None, one)
        for one, member, meets in zip(embedded, members, met, strict=True)
    ]


def _needs_own_check(candidate: Candidate, pack: Pack) -> bool:
    corrects = candidate.write_class == "correction" or candidate.corrects is not None
    return corrects or candidate.third_party or pack.is_sensitive(candidate.classification)


def _replaceable(
    candidate: Candidate, tier: Tier, capture: Capture, compared: Compared, pack: Pack
) -> list[PromotedMemory]:
    """Return what the rules let it replace, in the order of their locks."""
    found = [one.memory for one in compared.contradicts if may_supersede(candidate, tier, capture, one, pack).passed]
    if candidate.write_class == "correction":
        # Also what said the same before: from now on it has a correction's protection.
        plain = [memory for memory in compared.says_the_same if memory.write_class != "correction"]
        found += [memory for memory in plain if covers(candidate.scope, tier, memory.scope, memory.tier)]
    return sorted(found, key=lambda memory: memory.memory_id)


@dataclass(frozen=True, slots=True)
class Promotion:
    """A proposal that was checked and approved: what its memory is made of."""

    proposal_id: str
    proposal_action: ProposalAction
    verdict_id: str
    candidate: Candidate
    capture: Capture
    tier: Tier
    tier_derived: Tier
    priority: float
    editors: tuple[str, ...]
    key: SubjectKey
    check: PromotionCheck

    @classmethod
    def of(cls, loaded: Loaded, verdict_id: str, capture: Capture, check: PromotionCheck) -> "Promotion":
        """Make it of a proposal that was loaded."""
        proposal = loaded.proposal
        derived, editors = proposal.tier_derived, loaded.editors
        what = (proposal.candidate, capture, proposal.tier_target, derived, proposal.priority, editors)
        return cls(proposal.proposal_id, proposal.action, verdict_id, *what, loaded.key, check)


async def insert_one(
    tx: Transaction, vault: Vault, promotion: Promotion, by: tuple[str, Source], comparer: TextComparer, pack: Pack
) -> str:
    """Insert one memory, retract what it supersedes, open its contradictions; returns its id.

    `by` is who gave the verdict, and of which kind.
    """
    (memory_id,) = await insert(tx, vault, [promotion], by, comparer, pack)
    candidate, check, approver = promotion.candidate, promotion.check, by[0]
    # Contradictions that arose while it waited are opened too, before what it replaces is retracted.
    await contradictions.open_new(tx, approver, promotion.proposal_id, candidate, check.contradicts)
    reason: RetractionReason = "corrected" if candidate.write_class == "correction" else "superseded"
    for old in check.supersedes:
        await supersede(tx, old.memory_id, by=approver, reason=reason, superseded_by=memory_id)
    if candidate.write_class == "correction":
        replaced = [old.memory_id for old in check.supersedes]
        tx.emit("memory.correction", candidate.author, memory_id=memory_id, replaced=replaced)
    return memory_id


async def insert(
    tx: Transaction,
    vault: Vault,
    promotions: Sequence[Promotion],
    by: tuple[str, Source],
    comparer: TextComparer,
    pack: Pack,
) -> list[str]:
    """Insert memories with their bodies, filters and index; returns their ids."""
    tick = await tx.tick()
    hashes = TermHashes(await vault.tenant_data_key(tx))
    ids = make_ids("pm", len(promotions), tick.at)
    candidates = [one.candidate for one in promotions]
    captures = [one.capture for one in promotions]
    consents = [one.check.consent for one in promotions]
    scopes = [one.scope for one in candidates]
    labels = {label: pack.is_sensitive(label) for label in {one.classification for one in candidates}}
    common: dict[str, Sequence[Any]] = {
        **{name: [getattr(one, name) for one in candidates] for name in _IN_BOTH},
        **{name: [getattr(one, name) or "" for one in scopes] for name in _OF_SCOPE},
        "memory_id": ids,
        "expires_at": [_ends_at(one, tick.at, pack) for one in promotions],
        "class": [one.write_class for one in candidates],
        "tier": [one.tier for one in promotions],
        "priority": [one.priority for one in promotions],
        "qualifiers": [Jsonb(one.qualifiers) if one.qualifiers else None for one in scopes],
        "consent_root": [one.root_id if one is not None else None for one in consents],
    }
    columns: dict[str, Sequence[Any]] = {
        **common,
        **{name: [getattr(one, name) for one in candidates] for name in _OF_CANDIDATE},
        **{name: [getattr(one, name) for one in captures] for name in _OF_CAPTURE},
        "proposal_id": [one.proposal_id for one in promotions],
        "proposal_action": [one.proposal_action for one in promotions],
        "verdict_id": [one.verdict_id for one in promotions],
        "sensitive": [labels[one.classification] for one in candidates],
        "tier_derived": [one.tier_derived for one in promotions],
        "holder": [holder_of(one.subject, one.scope.user_id) for one in candidates],
        "consent_id": [one.consent_id if one is not None else None for one in consents],
        "vouched": [vouched_in(one.candidate, one.capture.vouched) for one in promotions],
        "editors": [list(one.editors) for one in promotions],
    }
    of_all = {"seq": tick.seq, "at": tick.at}
    policy = {"pack": pack.ref, "ontology_version": pack.meta.ontology_version}
    # The trust that the pack asks for where the person themselves confirms a fact (SUB-2).
    floor = pack.memory_layer.trust.floor if by[1] == "end_user" else None
    signed = {"approver": by[0], "approver_kind": by[1], "confirm_floor": floor}
    tx.defer_columns("promote.insert", columns, **of_all, **policy, **signed)
    bodies = [
        one.key.seal("memory_bodies.content", memory_id, fact_content(one.candidate))
        for memory_id, one in zip(ids, promotions, strict=True)
    ]
    tx.defer_columns("promote.insert_body", {"memory_id": ids, "content": bodies})
    tx.defer_columns("promote.insert_scope", common, **of_all)
    for memory_id, one in zip(ids, promotions, strict=True):
        vectors = (one.check.embedded.vector, one.check.embedded.next_vector)
        index_memory(tx, memory_id, one.candidate, one.capture.observed_at, vectors, comparer, hashes)
        what = {"proposal_id": one.proposal_id, "write_class": one.candidate.write_class, "tier": one.tier}
        tx.emit("memory.promoted", by[0], memory_id=memory_id, **what)
    return ids


def _ends_at(one: Promotion, promoted_at: datetime, pack: Pack) -> datetime | None:
    ends = (expires_at(one.candidate.write_class, one.tier, promoted_at, pack), one.check.ends_by)
    return min((at for at in ends if at is not None), default=None)


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
    needed = candidate.third_party or pack.is_sensitive(candidate.classification)
    if candidate.write_class == "evidence_link" or not needed:
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


class TermHashes(dict[str, int]):
    """The hashes of words under a tenant's key, each computed when it is first asked for; it ends with its caller."""

    def __init__(self, key: SubjectKey) -> None:
        super().__init__()
        self.key = key

    def __missing__(self, term: str) -> int:
        found = self[term] = term_hash(self.key, term)
        return found


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
    hashes: TermHashes,
) -> None:
    """Index a memory: its words, its link, and its vectors by the embedder in use and by the next one."""
    if fact.write_class == "evidence_link":
        return
    # "I moved to Munich." is found by where somebody lives: the name of its key counts as what stands beside it.
    key = (fact.predicate_name or fact.predicate or "").replace("_", " ").replace(".", " ")
    words = index_of(fact.text, fact.said_at or observed_at, fact.speaker or "", f"{fact.context}\n{key}")
    terms = {hashes[term]: times for term, times in words.terms.items()}
    tx.defer_row("indexing.add_words", memory_id=memory_id, words=words.words, terms=pack_words(terms))
    if (other := linked_entity(fact.entity, fact.value)) is not None:
        assert fact.entity is not None
        ends = {"entity": entity_hash(hashes.key, fact.entity), "links_to": entity_hash(hashes.key, other)}
        tx.defer_row("indexing.add_link", memory_id=memory_id, **ends)
    for vector, embedder in zip(vectors, (comparer.embedder, comparer.next_embedder), strict=True):
        if vector is not None and vector.any() and embedder is not None:
            tx.defer_row("indexing.add_vector", memory_id=memory_id, embedder=embedder.name, vector=to_sql(vector))
