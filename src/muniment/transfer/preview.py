"""What an import would do, item by item, in a transaction that cannot write (IMP-1).

The items pass the same gates and are compared with the same memories as when they are imported. Of those that policy
would promote each is also compared with the ones before it in the list, as if they came one by one.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muniment.candidates.dry_extraction import DryReading
from muniment.candidates.intake import Intake, IntakeDecision, PassedDraft
from muniment.candidates.propose import as_captured
from muniment.candidates.rules import Draft, draft_facts
from muniment.candidates.worth import worth_knowing
from muniment.capture.store import Receipt
from muniment.context import FabricContext
from muniment.contradictions.rules import Neighbour, compare, repeated
from muniment.contradictions.store import TextComparer
from muniment.database.storage import Transaction
from muniment.database.vectors import Vector
from muniment.loops import give_way
from muniment.model.capture import Capture
from muniment.model.context import Principal
from muniment.model.ids import make_ids
from muniment.model.imports import ImportPreview, ItemFact, ItemFate, ItemOutcome, outcome_of
from muniment.model.promoted import PromotedMemory
from muniment.pack import Pack
from muniment.review.queue_store import QueueEntry
from muniment.transfer.store import Checked, known_items

# Candidates compared between two event-loop checkpoints.
_SLICE = 50


async def preview(
    context: FabricContext, importer: Principal, system: str, items: Sequence[Checked], invalid: Sequence[ItemOutcome]
) -> ImportPreview:
    """Return what would become of each item under the pack in force; `invalid` are those that were not valid."""
    pack = await context.pack_for(importer)
    found = {one.number: one for one in invalid}
    async with context.read_only(importer.tenant_id) as tx:
        known = await known_items(tx, context.vault, items, system)
        for one, before in zip(items, known, strict=True):
            if before.fate is not None:
                found[one.number] = ItemOutcome(
                    number=one.number, id=one.item.id, fate=before.fate, capture_id=before.capture_id
                )
        fresh = [one for one, before in zip(items, known, strict=True) if before.fate is None]
        if fresh:
            found |= await _decide(context, tx, importer, fresh, pack)
    listed = tuple(found[number] for number in sorted(found))
    counts = Counter[ItemFate](one.fate for one in listed)
    return ImportPreview(system=system, pack=pack.ref, items=listed, counts=dict(counts))


async def _decide(
    context: FabricContext, tx: Transaction, importer: Principal, items: Sequence[Checked], pack: Pack
) -> dict[int, ItemOutcome]:
    comparer = await context.reading_comparer(tx, pack)
    ids = make_ids("cap", len(items), tx.now)
    captured = {
        capture_id: as_captured(one.capture, importer, Receipt(capture_id, 0, tx.now), pack)
        for capture_id, one in zip(ids, items, strict=True)
    }
    drafts = await _drafts(list(captured.values()), comparer, pack, tx)
    intake = await Intake.of(context, tx, pack, drafts, comparer=comparer, enters=False)
    decision = await intake.decide_on_memories(tx)
    numbers = {capture_id: one.number for capture_id, one in zip(ids, items, strict=True)}
    facts: dict[str, list[tuple[int, ItemFact]]] = {capture_id: [] for capture_id in ids}
    for draft, gate, why in decision.refused:
        refusal = ItemFact(fate="refused", gate=gate, reason=why.reasons[0].code)
        facts[draft.capture.capture_id].append((draft.ordinal, refusal))
    batch = _Batch(comparer, pack, numbers)
    for number, (entry, passed) in enumerate(_in_order(decision, tx, numbers), 1):
        facts[entry.draft.capture.capture_id].append((entry.draft.ordinal, batch.fact(entry, passed)))
        if number % _SLICE == 0:
            await give_way()
    return {
        one.number: outcome_of(
            one.number, one.item.id, tuple(fact for _, fact in sorted(facts[capture_id], key=lambda two: two[0]))
        )
        for capture_id, one in zip(ids, items, strict=True)
    }


def _in_order(
    decision: IntakeDecision, tx: Transaction, numbers: dict[str, int]
) -> list[tuple[QueueEntry, PassedDraft]]:
    both = zip(decision.entries(tx), decision.passed, strict=True)
    return sorted(both, key=lambda one: (numbers[one[0].draft.capture.capture_id], one[0].draft.ordinal))


async def _drafts(captures: Sequence[Capture], comparer: TextComparer, pack: Pack, tx: Transaction) -> list[Draft]:
    """Draft the facts of captures as consolidation would; models and plug-ins are not called."""
    (found,) = await DryReading(captures, {}, readers=comparer.readers).by_pack([pack])
    found = await worth_knowing(found, comparer.readers, pack)
    most = sum(1 + len(found.get(one.capture_id, ())) for one in captures)
    ids = iter(make_ids("mc", most, tx.now))
    return [draft for one in captures for draft in draft_facts(one, pack, found.get(one.capture_id, ()), ids)]


@dataclass
class _Batch:
    """The facts of the list so far that policy would promote, as if they were memories."""

    comparer: TextComparer
    pack: Pack
    numbers: dict[str, int]
    memories: list[PromotedMemory] = field(default_factory=list[PromotedMemory])
    vectors: list[Vector] = field(default_factory=list[Vector])
    _stacked: NDArray[np.float32] | None = None

    def fact(self, entry: QueueEntry, passed: PassedDraft) -> ItemFact:
        """Return what would become of a fact, and keep it if it would be promoted."""
        candidate = entry.draft.candidate
        about: dict[str, Any] = {"tier": entry.tier, "classification": candidate.classification}
        if entry.duplicate_of is not None:
            return ItemFact(fate="duplicate", repeats=entry.duplicate_of, **about)
        if not entry.auto_eligible:
            return ItemFact(fate="waiting", reasons=entry.reasons, **about)
        near = self._near(passed)
        compared = compare(candidate, entry.tier, near, self.pack, self.comparer.by)
        if same := repeated(candidate, entry.tier, compared, self.pack):
            return ItemFact(fate="duplicate", repeats=same[0].memory_id, **about)
        if compared.contradicts:
            return ItemFact(fate="waiting", reasons=("contradiction",), **about)
        self._keep(entry, passed)
        return ItemFact(fate="promoted", **about)

    def _near(self, passed: PassedDraft) -> list[Neighbour]:
        candidate, vector = passed.embedded.candidate, passed.embedded.vector
        similar = [0.0] * len(self.memories)
        if vector is not None and self.vectors:
            if self._stacked is None or len(self._stacked) < len(self.vectors):
                self._stacked = np.stack(self.vectors)
            similar = (self._stacked @ vector).tolist()
        least = self.comparer.by.thresholds.similarity
        key = (candidate.entity, candidate.predicate)
        return [
            Neighbour(memory, similarity)
            for memory, similarity in zip(self.memories, similar, strict=True)
            if similarity >= least or (candidate.on_key and (memory.entity, memory.predicate) == key)
        ]

    def _keep(self, entry: QueueEntry, passed: PassedDraft) -> None:
        vector = passed.embedded.vector
        number = self.numbers[entry.draft.capture.capture_id]
        self.memories.append(_as_memory(entry, self.pack, len(self.memories), f"item {number}"))
        self.vectors.append(vector if vector is not None else np.zeros(self.comparer.embedder.dimensions, np.float32))


def _as_memory(entry: QueueEntry, pack: Pack, seq: int, name: str) -> PromotedMemory:
    """Return the memory that a fact would become, under the name of its item."""
    candidate, capture = entry.draft.candidate, entry.draft.capture
    shared = set(PromotedMemory.model_fields) & set(type(candidate).model_fields)
    same: dict[str, Any] = {name: getattr(candidate, name) for name in shared}
    return PromotedMemory(
        **same,
        memory_id=name,
        proposal_id=entry.proposal_id,
        verdict_id="",
        tier=entry.tier,
        priority=entry.priority,
        sensitive=entry.sensitive,
        pack=pack.ref,
        ontology_version=pack.meta.ontology_version,
        kind=capture.kind,
        origin=capture.origin,
        vouched=capture.vouched,
        captured_at=capture.captured_at,
        observed_at=capture.observed_at,
        approver="auto",
        born_seq=seq,
        promoted_at=capture.captured_at,
    )
