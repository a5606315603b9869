"""Drafts: a capture becomes typed facts, each a candidate that has yet to pass the gates."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic_core import to_json

from muniment.candidates.extractors import Extracted
from muniment.candidates.extractors.messages import MESSAGES
from muniment.candidates.rules import statement_confidence, trust_of_source, uncalibrated_confidence
from muniment.capture.rules import class_of_source, subject_of
from muniment.database.sealing import SubjectKey
from muniment.language.messages.speakers import only_own_words
from muniment.model.candidate import Candidate, GateName, Scope
from muniment.model.capture import Capture, TypedFact
from muniment.model.decision import Decision
from muniment.model.fields import EVIDENCE_LIMIT
from muniment.model.speakers import USER
from muniment.pack import Pack

STATEMENT = "statement@1"
DIRECT = "direct@1"

# Predicates made of a person's own words keep these first words: they say nothing by themselves.
_HEADS = frozenset({"likes", "prefers", "favourite", "allergic", "wants", "name", "decided", "effect"})

# An extractor's name, and a fact that it read in a capture.
Found = tuple[str, Extracted]


@dataclass(frozen=True)
class Draft:
    """A candidate before the gates, with its capture and its number (`ordinal`) among that capture's candidates.

    `reopens` is the duplicate proposal that returns with it, `audits` the memory that it is a sample of. `stated`
    identifies the fact as the capture states it (`fact_identity`); None for edits and copies. `consolidation` counts
    the capture's consolidations, from 1.
    """

    candidate: Candidate
    capture: Capture
    ordinal: int = 0
    prior_editors: tuple[str, ...] = ()
    reopens: str | None = None
    audits: str | None = None
    stated: bytes | None = None
    consolidation: int = 1


# A draft that a gate refused: which gate, and why.
Refused = tuple[Draft, GateName, Decision]


def draft_facts(
    capture: Capture,
    pack: Pack,
    found: Sequence[Found],
    ids: Iterator[str],
    key: SubjectKey | None = None,
    consolidation: int = 1,
) -> list[Draft]:
    """Draft the facts of a capture: the fact proposed with it or its plain statement, then what extractors read.

    A predicate made of a person's own words is content: it becomes a hash under the `key` of the capture's holder, the
    same for the same words, which means nothing once the key is gone.
    """
    first = _stated_fact(capture, pack)
    every = [first, *found] if first is not None else found
    made: list[Draft] = []
    for ordinal, (name, read) in enumerate(every):
        candidate = _candidate(capture, pack, name, _hash_own_words(read, key, pack), next(ids))
        stated = fact_identity(read.fact, read.evidence_refs)
        made.append(Draft(candidate, capture, ordinal, stated=stated, consolidation=consolidation))
    return made


def fact_identity(fact: TypedFact, evidence_refs: Sequence[str]) -> bytes:
    """Return canonical bytes that are equal for equal facts of one capture; they are content.

    A fact on a key is equal with the same key and value, in whatever words; a plain text is equal with the same
    words. Extractor, version and confidence do not count: another extractor may read the same fact.
    """
    if fact.entity is not None and fact.predicate is not None:
        parts: list[Any] = [fact.entity, fact.predicate, fact.value]
    elif fact.write_class == "evidence_link":
        parts = [fact.entity, list(evidence_refs)]
    else:
        parts = [" ".join((fact.text or "").split())]
    return to_json([fact.write_class, fact.corrects, *parts])


def _hash_own_words(read: Extracted, key: SubjectKey | None, pack: Pack) -> Extracted:
    predicate = read.fact.predicate
    # A predicate that the pack declares is nobody's own word.
    if not read.own_words or predicate is None or key is None or predicate in pack.ontology.predicates:
        return read
    head = re.split(r"[_.]", predicate, maxsplit=1)[0]
    head = head if head in _HEADS else "said"
    digest = key.digest(b"predicate\0" + predicate.encode()).hex()[:16]
    text = read.fact.text or fact_text(read.fact)
    return replace(read, fact=read.fact.model_copy(update={"predicate": f"{head}.{digest}", "text": text}))


def _stated_fact(capture: Capture, pack: Pack) -> Found | None:
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
    vouched = vouched_for_extractor(capture, extractor)
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
        text=fact.text or fact_text(fact),
        evidence_refs=tuple(dict.fromkeys((*content.evidence_refs, *read.evidence_refs)))[:EVIDENCE_LIMIT],
        raw_confidence=fact.confidence,
        confidence=uncalibrated_confidence(fact.confidence, pack),
        classification=_higher_label(capture.classification, read.classification, pack),
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


def vouched_for_extractor(capture: Capture, extractor: str) -> str | None:
    """Return what the author's credential vouches for in the facts that an extractor read in the capture.

    A user's message may quote others. The rules for messages read the user's own words alone; what any other
    extractor reads there counts as the author's word.
    """
    if capture.vouched != USER or capture.kind != "message" or extractor == MESSAGES or only_own_words(capture):
        return capture.vouched
    return None


def _higher_label(label: str, least: str | None, pack: Pack) -> str:
    """Return the capture's label, or the extractor's where that is higher."""
    if least is None or not pack.has_label(least) or not pack.has_label(label):
        return label
    return max(label, least, key=pack.rank)


def reset_candidate(old: Candidate, candidate_id: str, capture: Capture, pack: Pack, **changed: Any) -> Candidate:
    """Copy a candidate to pass the gates again, without anything that they found before."""
    start: dict[str, Any] = {
        "candidate_id": candidate_id,
        "trust": trust_of_source(capture.source, vouched_for_extractor(capture, old.extractor), pack),
        "consent_id": None,
        "gates": (),
        "redactions": {},
    }
    return old.model_copy(update=start | changed)


def fact_text(fact: TypedFact) -> str:
    """Return a typed fact in words."""
    if fact.write_class == "evidence_link":
        return "evidence link"
    value = fact.value if isinstance(fact.value, str) else str(fact.value)
    return f"{fact.entity} {(fact.predicate or '').replace('_', ' ')}: {value}"
