"""What goes into a prompt as one piece, in which order, and what is shown of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from muniment.model.compiled import Block, BlockKind, Citation, ManifestEntry
from muniment.model.recall import ConflictSet, Record
from muniment.model.speakers import is_only_claimed
from muniment.recall.compiling.neutral import visible, visible_name


@dataclass(frozen=True)
class Fact:
    """What a prompt shows of one memory, every string of it visible and none of it escaped yet."""

    label: str
    text: str
    provenance_fields: tuple[tuple[str, str], ...]
    low_confidence: bool = False
    truncated: bool = False


@dataclass(frozen=True)
class Entry:
    """One block to be: a memory, or a conflict set, which is never parted (CTR-6)."""

    id: str
    kind: BlockKind
    records: tuple[Record, ...]

    @property
    def memory_ids(self) -> tuple[str, ...]:
        """The memories it shows."""
        return tuple(record.id for record in self.records)

    @property
    def priority(self) -> int:
        """That of the record, of the highest where there are several, as a whole number from 0 to 100."""
        return max(min(100, max(0, int(record.priority * 100 + 0.5))) for record in self.records)

    @property
    def provenance_refs(self) -> tuple[str, ...]:
        """The ids of what each record rests on, and its evidence."""
        return tuple(dict.fromkeys(ref for record in self.records for ref in _refs(record)))

    def facts(self, first_label: int) -> tuple[Fact, ...]:
        """What is shown of it, labelled from that number on."""
        low = self.kind == "low_confidence"
        return tuple(
            Fact(f"m{number}", _text(record), tuple(_papers(record)), low_confidence=low)
            for number, record in enumerate(self.records, first_label)
        )


@dataclass(frozen=True)
class Placed:
    """An entry that found its place."""

    entry: Entry
    facts: tuple[Fact, ...]
    content: str
    tokens: int

    @property
    def truncated(self) -> bool:
        """Whether a part of it is missing."""
        return any(fact.truncated for fact in self.facts)

    def as_block(self) -> Block:
        """The block as the caller gets it."""
        return Block(
            id=self.entry.id,
            content=self.content,
            priority=self.entry.priority,
            provenance_refs=self.entry.provenance_refs,
            truncated=self.truncated,
        )

    def in_manifest(self) -> ManifestEntry:
        """Its line in the manifest."""
        shown = zip(self.facts, self.entry.memory_ids, strict=True)
        return ManifestEntry(
            block_id=self.entry.id,
            kind=self.entry.kind,
            citations=tuple(Citation(label=fact.label, memory_id=memory_id) for fact, memory_id in shown),
            tokens=self.tokens,
            priority=self.entry.priority,
            truncated=self.truncated,
        )


def entries(
    records: Sequence[Record], low_confidence: Sequence[Record], conflicts: Sequence[ConflictSet]
) -> Iterator[Entry]:
    """What is to be shown, the most needed first: conflicts, plain records, those of low confidence, each as ranked.

    A planner that does not see a conflict takes one of its sides unknowing, so conflicts go before all else. A memory
    in a conflict is shown there and nowhere else, whatever else it is given as.
    """
    shown: set[str] = set()
    for conflict in conflicts:
        if conflict.records:
            first = next(iter(conflict.contradiction_ids), conflict.records[0].id)
            yield Entry(f"conflict:{first}", "conflict", conflict.records)
            shown.update(record.id for record in conflict.records)
    kinds: tuple[tuple[BlockKind, Sequence[Record]], ...] = (("plain", records), ("low_confidence", low_confidence))
    for kind, given in kinds:
        for record in given:
            if record.id not in shown:
                yield Entry(f"mem:{record.id}", kind, (record,))
                shown.add(record.id)


def shortened(fact: Fact, text: str) -> Fact:
    """The fact with the beginning of its text alone, and the mark of it."""
    return replace(fact, text=f"{text} …", truncated=True)


def _text(record: Record) -> str:
    """What a memory says; an evidence link states nothing, it is the references that it holds."""
    if record.write_class == "evidence_link" and record.provenance.evidence_refs:
        return visible(", ".join(map(visible_name, record.provenance.evidence_refs)))
    return visible(record.text)


def _papers(record: Record) -> Iterator[tuple[str, str]]:
    """What a reader weighs a fact by; the ids that lead further back are the manifest's and the block's (REC-5)."""
    origin = record.provenance
    yield "class", record.write_class
    yield "confidence", f"{record.confidence:.2f}"
    yield "source", origin.source
    yield "kind", origin.kind
    yield "observed", _minute(origin.observed_at)
    yield "approver", visible_name(origin.approver)
    called = "claimed_origin" if is_only_claimed(origin.origin, origin.vouched) else "origin"
    for name, value in (("about", record.entity), ("predicate", record.predicate), (called, origin.origin)):
        if value is not None:
            yield name, visible_name(value)


def _minute(at: datetime) -> str:
    # A time without a zone would be read in the zone of the machine.
    known = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    return known.replace(tzinfo=None).isoformat(timespec="minutes") + "Z"


def _refs(record: Record) -> Iterator[str]:
    origin = record.provenance
    yield from (origin.capture_id, origin.candidate_id, origin.proposal_id, origin.verdict_id)
    yield from origin.evidence_refs
