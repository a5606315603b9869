"""Stage 2, candidate: a capture becomes typed facts; each passes the gates, or is refused and kept nowhere."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb
from pydantic_core import to_json

from muniment.candidates.comparison import EmbeddedCandidate, TextComparer
from muniment.candidates.extractors import Extracted
from muniment.candidates.extractors.messages import MESSAGES
from muniment.candidates.gates import FIRST_GATES, LAST_GATES, Circumstances, pass_gates
from muniment.candidates.rules import (
    calibrated,
    class_of_source,
    load_points,
    statement_confidence,
    subject_of,
    trust_of_source,
    uncalibrated_confidence,
)
from muniment.database.rows import consent_of, fact_content
from muniment.database.sealing import SubjectKey, Vault
from muniment.database.storage import Named, Row, Transaction
from muniment.language.messages.turns import only_own_words
from muniment.model.candidate import Candidate, GateName, Refusal, Scope
from muniment.model.capture import Capture, TypedFact, holder_of
from muniment.model.consent import Consent
from muniment.model.decision import Decision
from muniment.model.fields import EVIDENCE_LIMIT
from muniment.model.ids import make_ids
from muniment.model.speakers import USER
from muniment.pack import Pack
from muniment.review import rejection_store as rejections
from muniment.review.rules import Rejected

STATEMENT = "statement@1"
DIRECT = "direct@1"

# The beginnings of predicates made of people's own words that say nothing by themselves.
_HEADS = frozenset({"likes", "prefers", "favourite", "allergic", "wants", "name", "decided", "effect"})

# What an extractor, by its name, read in a capture.
Found = tuple[str, Extracted]


@dataclass(frozen=True)
class Draft:
    """A candidate before the gates, with the capture it comes from and its place among that capture's candidates.

    `reopens` is the duplicate that comes back with it, if one does; `audits` the memory that it is a sample of.
    `stated` is what the capture states, before any gate changes it; None for edits and copies. `consolidation` is the
    number of the capture's consolidation that it comes from.
    """

    candidate: Candidate
    capture: Capture
    ordinal: int = 0
    prior_editors: tuple[str, ...] = ()
    reopens: str | None = None
    audits: str | None = None
    stated: bytes | None = None
    consolidation: int = 1


@dataclass(frozen=True)
class Screened:
    """A draft that passed the first gates, with the place of what is left of its text."""

    draft: Draft
    probe: EmbeddedCandidate


Refused = tuple[Draft, GateName, Decision]


def drafts(
    capture: Capture,
    pack: Pack,
    found: Sequence[Found],
    ids: Iterator[str],
    key: SubjectKey | None = None,
    consolidation: int = 1,
) -> list[Draft]:
    """What a capture states, in order: what was proposed with it, or the plain text of a statement; and what extractors
    read in it.

    A predicate made of somebody's own words is content: it becomes a hash under the `key` of the capture's holder, the
    same for the same words, and means nothing once the key is gone.
    """
    first = _stated(capture, pack)
    every = [first, *found] if first is not None else found
    made: list[Draft] = []
    for place, (name, read) in enumerate(every):
        candidate = _candidate(capture, pack, name, _unspoken(read, key, pack), next(ids))
        stated = fact_identity(read.fact, read.evidence_refs)
        made.append(Draft(candidate, capture, place, stated=stated, consolidation=consolidation))
    return made


def fact_identity(fact: TypedFact, evidence_refs: Sequence[str]) -> bytes:
    """What makes two facts read from one capture the same fact, as canonical bytes; they are content.

    A fact on a key is the same with the same key and value, whatever words it is told in; a plain text is the same with
    the same words. Extractor, version and confidence do not count: another extractor may read the same fact.
    """
    if fact.entity is not None and fact.predicate is not None:
        said: list[Any] = [fact.entity, fact.predicate, fact.value]
    elif fact.write_class == "evidence_link":
        said = [fact.entity, list(evidence_refs)]
    else:
        said = [" ".join((fact.text or "").split())]
    return to_json([fact.write_class, fact.corrects, *said])


def _unspoken(read: Extracted, key: SubjectKey | None, pack: Pack) -> Extracted:
    predicate = read.fact.predicate
    # What the pack declares is nobody's own word.
    if not read.own_words or predicate is None or key is None or predicate in pack.ontology.predicates:
        return read
    head = re.split(r"[_.]", predicate, maxsplit=1)[0]
    head = head if head in _HEADS else "said"
    mark = key.digest(b"predicate\0" + predicate.encode()).hex()[:16]
    text = read.fact.text or rendered(read.fact)
    return replace(read, fact=read.fact.model_copy(update={"predicate": f"{head}.{mark}", "text": text}))


def _stated(capture: Capture, pack: Pack) -> Found | None:
    content = capture.content
    if content is None:
        return None
    if content.fact is not None:
        return DIRECT, Extracted(content.fact)
    if capture.kind in pack.memory_layer.statements_from and content.text is not None:
        raw = statement_confidence(capture.source, pack)
        return STATEMENT, Extracted(TypedFact(write_class="statement", text=content.text, confidence=raw))
    return None


def _candidate(capture: Capture, pack: Pack, extractor: str, read: Extracted, candidate_id: str) -> Candidate:
    fact, content = read.fact, capture.content
    assert content is not None
    vouched = _vouched(capture, extractor)
    return Candidate(
        candidate_id=candidate_id,
        tenant_id=capture.tenant_id,
        capture_id=capture.capture_id,
        author=capture.author,
        source=capture.source,
        write_class=fact.write_class,
        entity=fact.entity,
        predicate=fact.predicate,
        value=fact.value,
        text=fact.text or rendered(fact),
        evidence_refs=tuple(dict.fromkeys((*content.evidence_refs, *read.evidence_refs)))[:EVIDENCE_LIMIT],
        raw_confidence=fact.confidence,
        confidence=uncalibrated_confidence(fact.confidence, pack),
        classification=_least(capture.classification, read.classification, pack),
        subject=subject_of(capture.subject, capture.user_id, pack),
        scope=Scope(
            user_id=capture.user_id,
            session_id=capture.session_id,
            workflow_id=capture.workflow_id,
            intent_id=capture.intent_id,
            qualifiers=capture.qualifiers,
        ),
        trust=trust_of_source(capture.source, vouched, pack),
        extractor=extractor,
        claimed_by=f"{capture.author} {class_of_source(capture.source, vouched)} {extractor}",
        flags=("user_correction",) if read.user_correction and vouched == USER else (),
        corrects=fact.corrects,
    )


def _vouched(capture: Capture, extractor: str) -> str | None:
    """What the author's credential vouches for in what an extractor read in the capture.

    A message of the user's may hold the words of others too. The rules for messages read the user's own alone; what
    anything else read there counts as the author's word.
    """
    if capture.vouched != USER or capture.kind != "message" or extractor == MESSAGES or only_own_words(capture):
        return capture.vouched
    return None


def _least(label: str, least: str | None, pack: Pack) -> str:
    """The capture's own label, or the higher one that an extractor asks for."""
    if least is None or not pack.has_label(least) or not pack.has_label(label):
        return label
    return max(label, least, key=pack.rank)


def afresh(old: Candidate, candidate_id: str, capture: Capture, pack: Pack, **changed: Any) -> Candidate:
    """A candidate to go through the gates again: nothing that they once found of it counts any more."""
    start: dict[str, Any] = {
        "candidate_id": candidate_id,
        "trust": trust_of_source(capture.source, _vouched(capture, old.extractor), pack),
        "consent_id": None,
        "gates": (),
        "redactions": {},
    }
    return old.model_copy(update=start | changed)


def rendered(fact: TypedFact) -> str:
    """A typed fact in words."""
    if fact.write_class == "evidence_link":
        return "evidence link"
    value = fact.value if isinstance(fact.value, str) else str(fact.value)
    return f"{fact.entity} {(fact.predicate or '').replace('_', ' ')}: {value}"


async def screen(
    drafts: Sequence[Draft], comparer: TextComparer, pack: Pack, now: datetime
) -> tuple[list[Screened], list[Refused]]:
    """The gates that need the candidate and the pack alone; what passes is redacted from here on."""
    passed: list[Draft] = []
    refused: list[Refused] = []
    for draft in drafts:
        known = Circumstances(pack, now, draft.capture.kind, draft.capture.decision_key)
        passage = pass_gates(draft.candidate, known, FIRST_GATES)
        if passage.refused_by is None:
            passed.append(replace(draft, candidate=passage.candidate))
        else:
            refused.append((draft, *passage.refused_by))
    probes = await comparer.probes([draft.candidate for draft in passed])
    return [Screened(draft, probe) for draft, probe in zip(passed, probes, strict=True)], refused


async def admit(
    tx: Transaction,
    vault: Vault,
    screened: Sequence[Screened],
    comparer: TextComparer,
    pack: Pack,
    *,
    counts: Callable[[Draft, Rejected], bool] = lambda _draft, _rejected: True,
) -> tuple[list[Screened], list[Refused]]:
    """The one way in: every draft passes the other gates here, however it came (CAN-9). Nothing is written yet.

    `counts` says which rejections are held against a draft: all, but when history is tried again.
    """
    consents = await _consents(tx, [one.draft.candidate for one in screened])
    weighed = await _calibrations(tx, [one.draft.candidate for one in screened])
    rejected = await rejections.found_for(tx, vault, [one.probe for one in screened], comparer, pack)
    admitted: list[Screened] = []
    refused: list[Refused] = []
    for one, before in zip(screened, rejected, strict=True):
        capture = one.draft.capture
        # A sample stays what it was when policy promoted it: what is asked is whether that was right.
        candidate = one.draft.candidate if one.draft.audits else _weighed(one.draft.candidate, weighed, pack)
        known = Circumstances(
            pack,
            tx.now,
            capture.kind,
            capture.decision_key,
            capture.origin,
            consents.get(candidate.subject or "", ()),
            tuple(rejected for rejected in before if counts(one.draft, rejected)),
            comparer.by,
            _vouched(capture, candidate.extractor),
        )
        passage = pass_gates(candidate, known, LAST_GATES)
        if passage.refused_by is None:
            probe = replace(one.probe, candidate=passage.candidate)
            admitted.append(Screened(replace(one.draft, candidate=passage.candidate), probe))
        else:
            refused.append((one.draft, *passage.refused_by))
    return admitted, refused


async def store(tx: Transaction, vault: Vault, drafts: Sequence[Draft]) -> None:
    """Write down those that passed."""
    if not drafts:
        return
    counted: Counter[tuple[str, bytes]] = Counter()
    places: list[int] = []
    for draft in drafts:
        said = (draft.capture.capture_id, draft.stated or b"")
        counted[said] += 1
        places.append(counted[said])
    holders = {holder_of(draft.candidate.subject, draft.candidate.scope.user_id) for draft in drafts}
    keys = await vault.keys(tx, holders, make=True)
    tick = await tx.tick()
    tx.defer_many(
        "candidate.insert", [_row(draft, keys, nth) for draft, nth in zip(drafts, places, strict=True)], seq=tick.seq
    )


def _fact_digest(key: SubjectKey, capture_id: str, stated: bytes, nth: int = 1) -> bytes:
    """A fact of a capture as it can be found again; `nth` tells apart equal facts that one consolidation read."""
    return key.digest(f"fact\0{capture_id}\0{nth}\0".encode() + stated)[:16]


async def not_proposed_before(tx: Transaction, vault: Vault, drafts: Sequence[Draft]) -> list[Draft]:
    """Those whose fact was never proposed from their capture, whatever became of the proposal (CAP-11).

    A candidate from before there were digests is known by its extractor and its place.
    """
    rows: dict[str, list[Row]] = {}
    for row in await tx.rows("candidate.facts_of", capture_ids=sorted({one.capture.capture_id for one in drafts})):
        rows.setdefault(row["capture_id"], []).append(row)
    holders = {row["holder"] for found in rows.values() for row in found if row["fact"] is not None}
    keys = await vault.keys(tx, holders, skip_broken=True)

    def known(draft: Draft, row: Row) -> bool:
        if row["fact"] is None:
            return (row["extractor"], row["ordinal"]) == (draft.candidate.extractor, draft.ordinal)
        key = keys.get(row["holder"])
        if key is None or draft.stated is None:
            return False
        return row["fact"] == _fact_digest(key, draft.capture.capture_id, draft.stated)

    return [one for one in drafts if not any(known(one, row) for row in rows.get(one.capture.capture_id, ()))]


def _row(draft: Draft, keys: dict[str, SubjectKey], nth: int) -> tuple[Any, ...]:
    candidate, scope, prior_editors = draft.candidate, draft.candidate.scope, draft.prior_editors
    holder = holder_of(candidate.subject, scope.user_id)
    content = fact_content(candidate.text, candidate.value, candidate.evidence_refs)
    edited = candidate.edits is not None
    return (
        candidate.candidate_id,
        candidate.capture_id,
        candidate.capture_id,
        draft.capture.seq,
        candidate.author,
        candidate.source,
        candidate.write_class,
        candidate.entity,
        candidate.predicate,
        candidate.classification,
        holder,
        candidate.subject,
        scope.user_id,
        scope.session_id,
        scope.workflow_id,
        scope.intent_id,
        Jsonb(scope.qualifiers) if scope.qualifiers else None,
        candidate.raw_confidence,
        candidate.confidence,
        candidate.trust,
        candidate.consent_id,
        candidate.extractor,
        candidate.claimed_by or None,
        candidate.calibration,
        list(candidate.flags),
        draft.ordinal,
        candidate.corrects,
        Jsonb([passed.model_dump(exclude_defaults=True) for passed in candidate.gates]),
        Jsonb(candidate.redactions),
        candidate.edits,
        candidate.editor,
        list(prior_editors) if edited else None,
        [*prior_editors, candidate.editor] if edited else [],
        draft.consolidation,
        _fact_digest(keys[holder], candidate.capture_id, draft.stated, nth) if draft.stated is not None else None,
        keys[holder].seal("candidates.content", candidate.candidate_id, content),
    )


async def refuse(tx: Transaction, refused: Sequence[Refused], *, keep: bool) -> list[Refusal]:
    """What is told of the refused, and kept if asked: capture, gate, reason and time, no content (CAN-5)."""
    made: list[Refusal] = []
    rows: list[tuple[Any, ...]] = []
    for draft, gate, decision in refused:
        capture_id, why = draft.candidate.capture_id, decision.reasons[0]
        rejection = why.detail if gate == "rejection" and why.code == "rejected_before" else None
        made.append(Refusal(capture_id=capture_id, gate=gate, reason=why.code, at=tx.now, rejection=rejection))
        rows.append(
            (capture_id, draft.consolidation, draft.candidate.extractor, draft.ordinal, gate, why.code, rejection)
        )
    if not refused or not keep:
        return made
    tick = await tx.tick()
    tx.defer_many("candidate.refuse", rows, seq=tick.seq, at=tick.at)
    for (draft, _, _), refusal in zip(refused, made, strict=True):
        tx.emit(
            "memory.refused",
            "auto",
            capture_id=refusal.capture_id,
            gate=refusal.gate,
            reason=refusal.reason,
            write_class=draft.candidate.write_class,
            **({"consolidation": draft.consolidation} if draft.consolidation > 1 else {}),
            **({"rejection": refusal.rejection} if refusal.rejection else {}),
        )
    return made


async def refusals_of(tx: Transaction, capture_id: str) -> list[Refusal]:
    """What became of a capture that was refused."""
    return [Refusal(**row) for row in await tx.rows("candidate.refusals", capture_id=capture_id)]


def consents_asked(candidates: Iterable[Candidate]) -> Named | None:
    """The statement that finds the consents of those candidates' subjects, if any of them has one."""
    subjects = sorted({candidate.subject for candidate in candidates if candidate.subject is not None})
    return ("consent.of_subjects", {"subjects": subjects}) if subjects else None


async def _consents(tx: Transaction, candidates: Sequence[Candidate]) -> dict[str, tuple[Consent, ...]]:
    found: dict[str, list[Consent]] = {}
    if (asked := consents_asked(candidates)) is not None:
        for row in await tx.rows(asked[0], **asked[1]):
            found.setdefault(row["subject"], []).append(consent_of(row))
    return {subject: tuple(records) for subject, records in found.items()}


def calibrations_asked(candidates: Iterable[Candidate]) -> Named | None:
    """The statement that finds how much the word of those candidates' sources is worth."""
    sources = sorted({candidate.claimed_by for candidate in candidates if candidate.claimed_by})
    return ("candidate.calibrations", {"sources": sources}) if sources else None


async def _calibrations(tx: Transaction, candidates: Sequence[Candidate]) -> dict[str, Row]:
    asked = calibrations_asked(candidates)
    rows = await tx.rows(asked[0], **asked[1]) if asked is not None else []
    return {row["source"]: row for row in rows}


def _weighed(candidate: Candidate, weighed: dict[str, Row], pack: Pack) -> Candidate:
    """With its confidence as its source's history has it; without one what it claims, up to the cap (CAN-6)."""
    found = weighed.get(candidate.claimed_by)
    if found is None or not found["points"]:
        least = uncalibrated_confidence(candidate.raw_confidence, pack)
        return candidate.model_copy(update={"confidence": least, "calibration": None})
    worth = calibrated(candidate.raw_confidence, load_points(found["points"]))
    return candidate.model_copy(update={"confidence": worth, "calibration": found["calibration_id"]})


async def ordinals(tx: Transaction, capture_ids: Iterable[str]) -> dict[str, int]:
    """The next free place among the candidates of those captures."""
    rows = await tx.rows("candidate.ordinals", capture_ids=sorted(set(capture_ids)))
    return {row["capture_id"]: row["ordinal"] for row in rows}


def new_ids(tx: Transaction, count: int) -> list[str]:
    """Ids for that many candidates."""
    return make_ids("mc", count, tx.now)
