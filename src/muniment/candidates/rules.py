"""Rules of the candidate stage: drafts, trust, confidence, review flags, tier, priority and deadlines."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from pydantic_core import to_json

from muniment.candidates.extractors import Extracted
from muniment.candidates.extractors.extractor import name_own_user
from muniment.candidates.extractors.messages import OWN_WORDS
from muniment.candidates.utterance import flags_of, said_confidence, utterance_of
from muniment.capture.rules import class_of_source, source_of, subject_of, user_subject
from muniment.language.messages.speakers import only_own_words
from muniment.language.name_search import strings
from muniment.language.validity import Validity, read_validity
from muniment.model.candidate import Candidate, GateName, Scope, StoredFact
from muniment.model.capture import Capture, Content, TypedFact, holder_of
from muniment.model.decision import Decision
from muniment.model.fields import EVIDENCE_LIMIT, CaptureKind, Source, Tier, WriteClass
from muniment.model.ids import is_ceid
from muniment.model.item import ITEM_NAMESPACE, ITEM_PREDICATE
from muniment.model.promoted import PromotedMemory
from muniment.model.proposal import ProposalAction
from muniment.model.speakers import IMPORT, TOOL, USER
from muniment.pack import Pack
from muniment.pack.memory_layer import FlagRule
from muniment.pack.patterns import compiled
from muniment.pack.schema import Identity

# ---- trust: how far a source is believed ----


def trust_of_source(source: Source, vouched: str | None, pack: Pack) -> float:
    """Return the pack's trust score for the source of a fact (CAN-7)."""
    scores = pack.memory_layer.trust
    found = class_of_source(source, vouched)
    if found.startswith(TOOL):
        return scores.tools.get(found.removeprefix(TOOL), scores.sources.tool)
    if found.startswith(IMPORT):
        imports = pack.memory_layer.imports
        return imports.systems.get(found.removeprefix(IMPORT), imports.trust)
    return getattr(scores.sources, found)


# ---- confidence: what a source claims, and how much of it counts ----


def statement_confidence(source: Source, pack: Pack, vouched: str | None = None) -> float:
    """Return the raw confidence of a plain statement, by who made it (CAN-1); of an import as the pack says (IMP-2)."""
    if (vouched or "").startswith(IMPORT):
        return pack.memory_layer.imports.confidence
    # The word of an end user starts from no more than an agent's.
    who = "agent" if source == "end_user" else source
    return getattr(pack.memory_layer.promotion_thresholds.statement_confidence, who)


def uncalibrated_confidence(raw: float, pack: Pack) -> float:
    """Cap the confidence of a source without verdicts, so that its word alone promotes nothing (CAN-6)."""
    return min(raw, pack.memory_layer.promotion_thresholds.uncalibrated_cap)


# ---- subjects: whom a text is about when texts are compared ----


def compared_as(fact: Candidate | PromotedMemory, identity: Identity) -> str | None:
    """Return whom a plain text is about for comparisons; texts about two different subjects are not compared.

    None if that is only the run's own user: what is said in a user's runs may be about anything.
    """
    user_id, whom = fact.scope.user_id, fact.entity or fact.subject
    if whom is None:
        return None
    whom = identity.resolve(whom)
    is_own = user_id is not None and whom == f"{identity.users}:{user_id}"
    return None if is_own and fact.subject is not None and identity.resolve(fact.subject) == whom else whom


def fact_holders(subject: str | None, user_id: str | None, pack: Pack) -> list[str]:
    """Return whose keys may seal a fact: its subject's, under any name that its consent may have been given under."""
    about = subject_of(subject, user_id, pack)
    return pack.identity.spellings(about) if about is not None else [holder_of(None, user_id)]


# ---- names: whom the value of a fact names, so that an erasure finds it (ERA-5) ----

# Entities noted for one value; a longer list is a payload, and is found by the name search.
MOST_IN_VALUE = 256
_HASH_DIGITS = 32

# A hash under a key.
Digest = Callable[[bytes], bytes]


def hashed_name(digest: Digest, ceid: str) -> str:
    """Return a name in a value as it is stored: a hash under the tenant's own key."""
    return "#" + digest(b"name\0" + ceid.encode()).hex()[:_HASH_DIGITS]


def names_in_value(candidate: Candidate) -> list[str]:
    """Return the entities that the value of a fact names, each once, without the one that the fact is about."""
    found = (text for text in strings(candidate.value) if text != candidate.entity and is_ceid(text))
    return list(dict.fromkeys(found))[:MOST_IN_VALUE]


# ---- flags: what a pack always sends to a person (`flag_for_review`) ----


def matching_flags(candidate: Candidate, pack: Pack) -> tuple[FlagRule, ...]:
    """Return the flag rules that match a candidate's predicate, and its text, value or evidence."""
    texts = (candidate.text, *strings(candidate.value), *candidate.evidence_refs)
    return tuple(
        rule
        for rule in pack.memory_layer.flag_for_review
        if (
            _matches_predicate(candidate.predicate, rule.predicate)
            or _matches_predicate(candidate.predicate_name, rule.predicate)
        )
        and (rule.pattern is None or any(compiled(rule.pattern).search(text) for text in texts))
    )


def _matches_predicate(predicate: str | None, pattern: str | None) -> bool:
    if pattern is None or pattern == "*":
        return True
    if predicate is None:
        return False
    return predicate.startswith(pattern[:-1]) if pattern.endswith("*") else predicate == pattern


# ---- routing: tier, priority, review deadline and lifetime ----


def tier_for(candidate: Candidate, kind: CaptureKind, pack: Pack) -> Tier:
    """Return the tier of the pack's first matching rule (REV-2); the working tier needs a session.

    `kind` is that of the candidate's capture.
    """
    for rule in pack.memory_layer.memory_policy.tier_routing:
        when = rule.when
        if when.source is not None and when.source != source_of(candidate):
            continue
        if when.kind is not None and when.kind != kind:
            continue
        if when.write_class is not None and when.write_class != candidate.write_class:
            continue
        if when.intent is not None and not intent_under(candidate.scope.intent_id, when.intent):
            continue
        if when.sensitive is not None and when.sensitive != pack.is_sensitive(candidate.classification):
            continue
        if rule.tier == "working" and candidate.scope.session_id is None:
            continue
        return rule.tier
    return "semantic"


def intent_under(intent: str | None, pattern: str) -> bool:
    """Whether the intent equals the pattern or lies under `words.*`."""
    if intent is None:
        return False
    return intent == pattern or (pattern.endswith(".*") and intent.startswith(pattern[:-1]))


def priority_for(candidate: Candidate, pack: Pack) -> float:
    """Return the priority by source, a little more for each piece of evidence, at most 1 (REV-2)."""
    weights = pack.memory_layer.memory_policy.priority
    source = source_of(candidate)
    own: float = getattr(weights, "agent" if source in ("end_user", "import") else source)
    base = pack.memory_layer.imports.priority if source == "import" else own
    evidence = min(weights.per_evidence * len(candidate.evidence_refs), weights.evidence_max)
    return round(min(base + evidence, 1.0), 6)


def due_at(write_class: WriteClass, *, sensitive: bool, now: datetime, pack: Pack) -> datetime:
    """Return when the review is due: after the class's term, or the shorter one for sensitive facts."""
    term = pack.policy_for(write_class).sla
    if sensitive:
        term = min(term, pack.memory_layer.promotion_thresholds.sensitive_sla)
    return now + term


def expires_at(write_class: WriteClass, tier: Tier, promoted_at: datetime, pack: Pack) -> datetime | None:
    """Return when a memory expires: by its tier, or by its class's retention if that is shorter (PRO-4)."""
    term = lifetime(write_class, tier, pack)
    return promoted_at + term if term is not None else None


def lasts_as_long(memory: PromotedMemory, candidate: Candidate, tier: Tier, pack: Pack) -> bool:
    """Whether a memory's lifetime is at least the one that the candidate would get."""
    own, other = lifetime(candidate.write_class, tier, pack), lifetime(memory.write_class, memory.tier, pack)
    return other is None or (own is not None and own <= other)


def lifetime(write_class: WriteClass, tier: Tier, pack: Pack) -> timedelta | None:
    """Return how long a memory of that class lives in a tier; None without an end."""
    terms = (pack.memory_layer.memory_policy.ttl.get(tier), pack.policy_for(write_class).retention)
    return min((term for term in terms if term is not None), default=None)


# ---- drafts: a capture becomes typed facts, each a candidate that has yet to pass the gates ----

STATEMENT = "statement@1"
DIRECT = "direct@1"
ITEM = "item@1"

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
    # Of an edit: the user that the edited candidate is confined to.
    prior_confined_to: str = ""
    reopens: str | None = None
    audits: str | None = None
    stated: bytes | None = None
    consolidation: int = 1
    # What the speaker asks for, and the memories that may be meant (CAN-12).
    action: ProposalAction = "promote"
    targets: tuple[str, ...] = ()
    # Whether the trained reader's score of its worth leaves the decision to a person.
    uncertain: bool = False
    # The other sentences of its message, before they are screened.
    beside: tuple[str, ...] = ()
    # The same with the other names that the pack gives to the entity or the predicate.
    stated_before: tuple[bytes, ...] = ()


def confined_to(candidate: Candidate) -> str:
    """Return the user in whose runs alone a fact about a third party may be seen (CAN-16); empty for any other fact."""
    return candidate.scope.user_id or "" if candidate.third_party else ""


# A draft that a gate refused: which gate, and why.
Refused = tuple[Draft, GateName, Decision]


def draft_facts(
    capture: Capture,
    pack: Pack,
    found: Sequence[Found],
    ids: Iterator[str],
    digest: Digest | None = None,
    consolidation: int = 1,
    follows: str | None = None,
    *,
    stated: bool = True,
) -> list[Draft]:
    """Draft the facts of a capture: the fact proposed with it or its plain statement, then what extractors read.

    Without `stated` only what extractors read.

    A predicate made of a person's own words is content: it becomes a hash (`digest`) under the key of
    `own_words_holder`, the same for the same words, which means nothing once the key is gone. `follows` is the capture
    before this one in its session.
    """
    first = _stated_fact(capture, pack) if stated else None
    own = user_subject(capture.user_id, pack)
    named = [(name, name_own_user(read, capture, own)) for name, read in found]
    every = [first, *named] if first is not None else named
    made: list[Draft] = []
    for ordinal, (name, read) in enumerate(every):
        if read.asks is not None and vouched_for_extractor(capture, name) != USER:
            # Only the run's own end user can ask for anything (CAN-12).
            if read.asks == "retract":
                continue
            read = replace(read, asks=None)
        candidate = _candidate(capture, pack, name, _hash_own_words(read, digest, pack), next(ids))
        identity, *others = _identities(read, pack)
        draft = Draft(candidate, capture, ordinal, stated=identity, consolidation=consolidation)
        if read.said is not None:
            if follows is not None:
                draft = replace(draft, candidate=candidate.model_copy(update={"follows": follows}))
            asked = {"action": read.asks or "promote", "uncertain": read.near_threshold}
            draft = replace(draft, **asked, beside=read.said.context)
        made.append(replace(draft, stated_before=tuple(others)) if others else draft)
    return made


def _identities(read: Extracted, pack: Pack) -> list[bytes]:
    """Return the identity of a fact, then those it has under other names of its entity and its predicate.

    An extractor of a later pack may read the same fact under the new names.
    """
    fact, refs = read.fact, read.evidence_refs
    entities = pack.identity.spellings(fact.entity) if fact.entity is not None else [None]
    predicates = pack.ontology.names_of(fact.predicate) if fact.predicate is not None else [None]
    named = [{"entity": entity, "predicate": name} for entity in entities for name in predicates]
    spelled = (fact_identity(fact.model_copy(update=one), refs) for one in named if len(named) > 1)
    return list(dict.fromkeys((fact_identity(fact, refs), *spelled)))


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


def own_words_holder(capture: Capture, pack: Pack) -> str:
    """Return the holder whose key hashes the own words in a capture; one for all names of its subject."""
    subject = pack.identity.resolve(capture.subject) if capture.subject is not None else None
    return holder_of(subject, capture.user_id)


def _hash_own_words(read: Extracted, digest: Digest | None, pack: Pack) -> Extracted:
    predicate = read.fact.predicate
    # A predicate that the pack names is nobody's own word.
    if not read.own_words or predicate is None or digest is None or pack.ontology.knows(predicate):
        return read
    head = re.split(r"[_.]", predicate, maxsplit=1)[0]
    head = head if head in _HEADS else "said"
    hashed = digest(b"predicate\0" + predicate.encode()).hex()[:16]
    text = read.fact.text or fact_text(read.fact)
    fact = read.fact.model_copy(update={"predicate": f"{head}.{hashed}", "text": text})
    return replace(read, fact=fact, predicate_name=predicate)


def _stated_fact(capture: Capture, pack: Pack) -> Found | None:
    content = capture.content
    if content is None:
        return None
    if content.fact is not None:
        # What a person proposes in place of a memory about them (SUB-3).
        replaces = content.fact.corrects is not None and content.fact.write_class != "correction"
        name = ITEM if is_item(content.fact) else DIRECT
        return name, Extracted(content.fact, user_correction=replaces)
    if capture.kind in pack.memory_layer.statements_from and content.text is not None:
        raw = statement_confidence(capture.source, pack, capture.vouched)
        return STATEMENT, Extracted(TypedFact(write_class="statement", text=content.text, confidence=raw))
    return None


# What a candidate has of its capture as it is.
_OF_CAPTURE = ("tenant_id", "capture_id", "author", "source")


def _candidate(capture: Capture, pack: Pack, extractor: str, read: Extracted, candidate_id: str) -> Candidate:
    fact, content = read.fact, capture.content
    assert content is not None
    vouched = vouched_for_extractor(capture, extractor)
    of_author = statement_confidence(capture.source, pack, vouched)
    return Candidate(
        **{name: getattr(capture, name) for name in _OF_CAPTURE},
        **_validity(capture, fact)._asdict(),
        **{name: getattr(fact, name) for name in ("write_class", "entity", "predicate", "value", "corrects")},
        candidate_id=candidate_id,
        text=fact.text or fact_text(fact),
        evidence_refs=tuple(dict.fromkeys((*content.evidence_refs, *read.evidence_refs)))[:EVIDENCE_LIMIT],
        **utterance_of(read),
        **_claimed(content),
        raw_confidence=(raw := said_confidence(read, of_author, vouched, pack)),
        confidence=uncalibrated_confidence(raw, pack),
        classification=_higher_label(capture.classification, read.classification, pack),
        subject=subject_of(capture.subject, capture.user_id, pack),
        scope=Scope(**{name: getattr(capture, name) for name in Scope.model_fields if name != "required"}),
        trust=trust_of_source(capture.source, vouched, pack),
        extractor=extractor,
        claimed_by=f"{capture.author} {class_of_source(capture.source, vouched)} {extractor}",
        flags=tuple(flags_of(read)) if vouched == USER else (),
    )


def _claimed(content: Content) -> dict[str, Any]:
    """Return who wrote an imported fact and when, as the other system says."""
    claims = content.claims
    return {} if claims is None else {"claimed_author": claims.claimed_author, "claimed_at": claims.claimed_at}


def _validity(capture: Capture, fact: TypedFact) -> Validity:
    """Return when a fact holds in the world: as the caller says, otherwise as its own sentence says (REC-14).

    The text of an item is whatever a program keeps, not a sentence about when the item holds.
    """
    given = capture.valid_from is not None or capture.valid_until is not None
    if given or fact.text is None or is_item(fact):
        return Validity(capture.valid_from, capture.valid_until)
    return read_validity(fact.text, capture.observed_at)


def is_item(fact: TypedFact) -> bool:
    """Whether a fact is an item of a program's store, kept under digests of its names (ADP-3)."""
    return fact.predicate == ITEM_PREDICATE and (fact.entity or "").startswith(f"{ITEM_NAMESPACE}:")


def vouched_for_extractor(capture: Capture, extractor: str) -> str | None:
    """Return what the author's credential vouches for in the facts that an extractor read in the capture.

    A user's message may quote others. The rules for messages read the user's own words only; what any other
    extractor reads there counts as the author's word.
    """
    if capture.vouched != USER or capture.kind != "message" or extractor in OWN_WORDS or only_own_words(capture):
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
        "exceptions": {},
    }
    return old.model_copy(update=start | changed)


def fact_text(fact: TypedFact | StoredFact) -> str:
    """Return a typed fact in words."""
    if fact.write_class == "evidence_link":
        return "evidence link"
    value = fact.value if isinstance(fact.value, str) else str(fact.value)
    return f"{fact.entity} {(fact.predicate or '').replace('_', ' ')}: {value}"
