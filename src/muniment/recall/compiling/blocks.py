"""The blocks of a prompt: their order, and what each shows of its memories."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from muniment.model.compiled import Block, BlockKind, Citation, ManifestEntry
from muniment.model.recall import ConflictSet, Record
from muniment.model.speakers import USER, is_only_claimed
from muniment.model.validity import validity_text
from muniment.recall.compiling.neutral import visible, visible_name


@dataclass(frozen=True)
class Fact:
    """What a prompt shows of one memory: strings without invisible characters, not escaped yet."""

    label: str
    text: str
    provenance_fields: tuple[tuple[str, str], ...]
    low_confidence: bool = False
    truncated: bool = False


@dataclass(frozen=True)
class Entry:
    """What is to become one block: a memory, or a conflict set, which is never split (CTR-6)."""

    id: str
    kind: BlockKind
    records: tuple[Record, ...]

    @property
    def memory_ids(self) -> tuple[str, ...]:
        """The ids of the memories in this entry."""
        return tuple(record.id for record in self.records)

    @property
    def priority(self) -> int:
        """The priority of the record, or the highest among several, as an integer from 0 to 100."""
        return max(min(100, max(0, int(record.priority * 100 + 0.5))) for record in self.records)

    @property
    def provenance_refs(self) -> tuple[str, ...]:
        """The ids of the capture, candidate, proposal and verdict of each record, and its evidence."""
        return tuple(dict.fromkeys(ref for record in self.records for ref in _refs(record)))

    def facts(self, first_label: int) -> tuple[Fact, ...]:
        """What is shown of each record, labelled `m1`, `m2` and so on from that number."""
        low = self.kind == "low_confidence"
        return tuple(
            Fact(f"m{number}", _text(record), tuple(_provenance_fields(record)), low_confidence=low)
            for number, record in enumerate(self.records, first_label)
        )


@dataclass(frozen=True)
class Placed:
    """An entry that fits, as it is written."""

    entry: Entry
    facts: tuple[Fact, ...]
    content: str
    tokens: int

    @property
    def truncated(self) -> bool:
        """Whether a fact in it was shortened."""
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

    def as_manifest_entry(self) -> ManifestEntry:
        """The entry in the manifest."""
        shown = zip(self.facts, self.entry.memory_ids, strict=True)
        return ManifestEntry(
            block_id=self.entry.id,
            kind=self.entry.kind,
            citations=tuple(Citation(label=fact.label, memory_id=memory_id) for fact, memory_id in shown),
            tokens=self.tokens,
            priority=self.entry.priority,
            truncated=self.truncated,
        )


def order_entries(
    records: Sequence[Record], low_confidence: Sequence[Record], conflicts: Sequence[ConflictSet]
) -> Iterator[Entry]:
    """Yield the entries, most important first: conflicts, plain records, records of low confidence, each by rank.

    Conflicts come first because a planner that does not see one would rely on one of its sides without knowing. A
    memory in a conflict is shown only there, even if it is also among the records.
    """
    shown: set[str] = set()
    for conflict in conflicts:
        if conflict.records:
            first = next(iter(conflict.contradiction_ids), conflict.records[0].id)
            yield Entry(f"conflict:{first}", "conflict", conflict.records)
            shown.update(record.id for record in conflict.records)
    kinds: tuple[tuple[BlockKind, Sequence[Record]], ...] = (("plain", records), ("low_confidence", low_confidence))
    for kind, ranked in kinds:
        for record in ranked:
            if record.id not in shown:
                yield Entry(f"mem:{record.id}", kind, (record,))
                shown.add(record.id)


def shorten(fact: Fact, text: str) -> Fact:
    """Replace the text of a fact by its beginning, with an ellipsis, and mark the fact as truncated."""
    return replace(fact, text=f"{text} …", truncated=True)


def _text(record: Record) -> str:
    """The text of a memory; for an evidence link, which has none, its references."""
    if record.write_class == "evidence_link" and record.provenance.evidence_refs:
        return visible(", ".join(map(visible_name, record.provenance.evidence_refs)))
    return visible(as_said(record))


_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
# The hash of a person's own words in a predicate, behind a first word that says nothing by itself.
_HASHED = re.compile(r"([a-z]+)\.[0-9a-f]{16}")


def as_said(fact: Record) -> str:
    """Return the text of a memory with who said it and when, and with what its relative dates mean (CAN-11)."""
    if fact.said_at is None:
        return fact.text
    at = _in_utc(fact.said_at)
    day = f"{at.day} {_MONTHS[at.month - 1]} {at.year}"
    by = f"{visible_name(fact.speaker)}, {day}" if fact.speaker is not None else day
    means = "; ".join(f"{said}: {date}" for said, date in fact.dates.items())
    return f"{by}: {fact.text} ({means})" if means else f"{by}: {fact.text}"


def _predicate(record: Record) -> str | None:
    """Return the predicate in words; of a hash only its first word."""
    if record.predicate_name is not None or record.predicate is None:
        return record.predicate_name
    hashed = _HASHED.fullmatch(record.predicate)
    return hashed.group(1) if hashed else record.predicate


def _provenance_fields(record: Record) -> Iterator[tuple[str, str]]:
    """What helps a reader judge a fact. The ids for tracing it are in the manifest and the block (REC-5)."""
    origin = record.provenance
    yield "class", record.write_class
    yield "confidence", f"{record.confidence:.2f}"
    # The words of the run's own user are theirs, whoever wrote them down.
    yield "source", "end_user" if origin.vouched == USER else origin.source
    yield "kind", origin.kind
    yield "observed", minute_text(origin.observed_at)
    if (valid := validity_text(record.valid_from, record.valid_until)) is not None:
        yield "valid", valid
    yield "approver", visible_name(origin.approver)
    origin_field = "claimed_origin" if is_only_claimed(origin.origin, origin.vouched) else "origin"
    for name, value in (("about", record.entity), ("predicate", _predicate(record)), (origin_field, origin.origin)):
        if value is not None:
            yield name, visible_name(value)


def minute_text(at: datetime) -> str:
    """Return a time in UTC, to the minute."""
    return _in_utc(at).replace(tzinfo=None).isoformat(timespec="minutes") + "Z"


def _in_utc(at: datetime) -> datetime:
    # Otherwise a time without a zone would be taken as local time.
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


def _refs(record: Record) -> Iterator[str]:
    origin = record.provenance
    yield from (origin.capture_id, origin.candidate_id, origin.proposal_id, origin.verdict_id)
    yield from origin.evidence_refs
