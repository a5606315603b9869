"""The gates of the candidate stage, in their order; the first that refuses decides (CAN-4).

Each is a pure function from a candidate and its circumstances to the candidate as it goes on and a decision with
reasons. A gate that raises refuses (ERR-5). The first gates need the candidate and the pack only; the last ones also
what the database knows, which is read only for candidates that passed the first, in their redacted form.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from muniment.candidates.ontology import misfit, renamed, resolved
from muniment.candidates.readings import GuardReading, texts_of
from muniment.candidates.rules import matching_flags, strings, uncalibrated_confidence
from muniment.candidates.special import SpecialReading, read_special, refusal_of
from muniment.capture.rules import class_of_source, user_of
from muniment.consent import rules as consents_policy
from muniment.contradictions.rules import Comparison, may_be_about_one, normal
from muniment.language.assertion import relate
from muniment.language.instructions import suspicion
from muniment.language.readers import PairScores
from muniment.language.redaction import redactor_of
from muniment.language.redaction.tags import TaggedTexts
from muniment.model.candidate import Candidate, GateName, Passed
from muniment.model.consent import Consent
from muniment.model.decision import Decision, Reason, passing, refusing
from muniment.model.fields import CaptureKind
from muniment.pack import Pack

_LETTERS = re.compile(r"(?<![^\W_])[^\W\d_]{2,}(?![^\W_])")
# Letters alone: ids of many digits and letters hold no words, and are not worth the time.
_LONG_WORD = re.compile(r"[^\W\d_]{20}")
_WORD_BREAKS = re.compile(r"[_.:\-/\s]+")
_REFERENCE = re.compile(r"[A-Za-z0-9_.-]+(:[A-Za-z0-9_.#/-]+)+")


class Rejected(NamedTuple):
    """A rejected candidate that a new one may repeat, how similar their texts are, and what the trained judge says."""

    proposal_id: str
    candidate: Candidate
    similarity: float
    scores: PairScores | None = None


class Circumstances(NamedTuple):
    """What the gates know beside the candidate itself."""

    pack: Pack
    now: datetime
    kind: CaptureKind
    decision_key: str | None
    origin: str | None = None
    consents: tuple[Consent, ...] = ()
    rejections: tuple[Rejected, ...] = ()
    by: Comparison | None = None
    vouched: str | None = None
    # What the trained readers found; None where the rules read alone.
    tags: TaggedTexts | None = None
    guard: GuardReading | None = None
    # In whose run it was captured.
    user_id: str | None = None


class Passage(NamedTuple):
    """The result of passing gates: the candidate with the gates it passed, and the gate that refused it, if any."""

    candidate: Candidate
    refused_by: tuple[GateName, Decision] | None = None


GateResult = tuple[Candidate, Decision]
Gate = Callable[[Candidate, Circumstances], GateResult]


def allow_list(candidate: Candidate, known: Circumstances) -> GateResult:
    """Give the fact the names in use now; refuse what identity, ontology or the allow-list do not allow (PAC-7).

    An evidence link of a decision passes any allow-list of classes and predicates (CAN-10), in a declared namespace.
    """
    said, candidate = candidate, resolved(candidate, known.pack)
    if (why := misfit(candidate, known.pack)) is not None:
        return candidate, refusing(*why)
    if candidate.write_class == "evidence_link" and known.kind == "decision" and known.decision_key is not None:
        return candidate, passing("decision_evidence", known.decision_key)
    if candidate.write_class not in known.pack.memory_layer.write_classes_allowed:
        return candidate, refusing("class_not_allowed", candidate.write_class)
    policy = known.pack.policy_for(candidate.write_class)
    # A predicate of a person's own words is named in words too; its hash names nothing.
    names = {candidate.predicate, candidate.predicate_name} - {None}
    if names and "*" not in policy.predicates and names.isdisjoint(policy.predicates):
        return candidate, refusing("predicate_not_allowed", candidate.predicate or "")
    return candidate, passing("class_allowed", ", ".join([candidate.write_class, *renamed(said, candidate)]))


def evidence(candidate: Candidate, known: Circumstances) -> GateResult:
    """Refuse a candidate with less evidence than its class requires."""
    if candidate.write_class == "evidence_link" and not all(map(_REFERENCE.fullmatch, candidate.evidence_refs)):
        return candidate, refusing("not_a_reference", candidate.write_class)
    wanted = known.pack.policy_for(candidate.write_class).evidence_required
    count = len(candidate.evidence_refs)
    if count < wanted:
        return candidate, refusing("evidence_missing", f"{count} of {wanted}")
    return candidate, passing("evidence", f"{count}, {wanted} required")


def redaction(candidate: Candidate, known: Circumstances) -> GateResult:
    """Mask what the pack's rules find in every field with text, and count it; this may raise the label.

    Values that the pack excepts stay, raise nothing, and are counted apart (RED-5).
    """
    redactor = redactor_of(known.pack)
    redacted = redactor.candidate(candidate, known.tags)
    scores = redactor.tag_scores(known.tags, texts_of(candidate)) if known.tags is not None else {}
    candidate = _near_threshold(candidate, near=known.tags is not None and known.tags.near(scores))
    counts, label = dict(sorted(redacted.counts.items())), candidate.classification
    excepted = dict(sorted(redacted.excepted.items()))
    if excepted != candidate.exceptions:
        candidate = candidate.model_copy(update={"exceptions": excepted})
    # What an earlier pass masked still counts for the label.
    if redacted.label is not None and known.pack.rank(redacted.label) > known.pack.rank(label):
        label = redacted.label
    stays = [f"{kind} {count}" for kind, count in excepted.items()]
    if not counts and label == candidate.classification:
        return candidate, passing("excepted", ", ".join(stays)) if stays else passing("nothing_found")
    masked = redacted.content.model_copy(
        update={"redactions": counts, "exceptions": excepted, "classification": label, "flags": candidate.flags}
    )
    found = [f"{kind} {count}" for kind, count in counts.items()]
    apart = [f"excepted {one}" for one in stays]
    return masked, passing("masked", ", ".join([*found, *apart, *_scores(known, scores)]))


def _near_threshold(candidate: Candidate, *, near: bool) -> Candidate:
    """Set the flag for a reader's score within the margin of its threshold, or drop that of an earlier pass."""
    others = tuple(flag for flag in candidate.flags if flag != "near_threshold")
    flags = (*others, "near_threshold") if near else others
    return candidate if flags == candidate.flags else candidate.model_copy(update={"flags": flags})


def _scores(known: Circumstances, scores: Mapping[str, float]) -> list[str]:
    """Return each label that the tagger found with its score and threshold."""
    if known.tags is None:
        return []
    return [f"{label} {score:.2f} of {known.tags.threshold_of(label):.2f}" for label, score in sorted(scores.items())]


def classification(candidate: Candidate, known: Circumstances) -> GateResult:
    """Raise the label to the least that the ontology gives the predicate; the class must allow the result."""
    pack = known.pack
    if not pack.has_label(candidate.classification):
        return candidate, refusing("unknown_classification", candidate.classification)
    declared = pack.ontology.predicates.get(candidate.predicate or "")
    least = declared.label if declared is not None else None
    if least is not None and pack.rank(least) > pack.rank(candidate.classification):
        candidate = candidate.model_copy(update={"classification": least})
    candidate, special = _special_categories(candidate, known)
    candidate, flagged = _flagged(candidate, pack)
    allowed = pack.policy_for(candidate.write_class).classifications_allowed
    if allowed is not None and candidate.classification not in allowed:
        return candidate, refusing("classification_not_allowed", candidate.classification)
    reason = "flagged" if flagged else "special_category" if special else "classification"
    return candidate, passing(reason, ", ".join([candidate.classification, *special]))


def _special_categories(candidate: Candidate, known: Circumstances) -> tuple[Candidate, list[str]]:
    """Raise the label to the lowest sensitive one where a special category is found, and mark third parties.

    The mark only rises, as the label does: a fact that was one about a third party stays so, however it is reworded
    (CAN-13, CAN-16).
    """
    pack = known.pack
    found = read_special(candidate, pack, known.kind, known.vouched, known.tags)
    changed: dict[str, Any] = {}
    least = next(iter(pack.sensitive_labels), None) if found.categories else None
    if least is not None and pack.rank(least) > pack.rank(candidate.classification):
        changed["classification"] = least
    if not candidate.third_party and found.is_third_party(class_of_source(candidate.source, known.vouched)):
        changed["third_party"] = True
    candidate = candidate.model_copy(update=changed) if changed else candidate
    return candidate, [*_special_details(found, known), *(["third_party"] if candidate.third_party else [])]


def _special_details(found: SpecialReading, known: Circumstances) -> Iterator[str]:
    """Yield each category with the tagger's score and threshold; what only rules find has none."""
    for category, score in sorted(found.categories.items()):
        if score is None or known.tags is None:
            yield category
        else:
            yield f"{category} {score:.2f} of {known.tags.threshold_of(category):.2f}"


def _flagged(candidate: Candidate, pack: Pack) -> tuple[Candidate, bool]:
    """Apply the pack's `flag_for_review` rules: their labels and the flag; a flag of another pack is dropped."""
    others = tuple(flag for flag in candidate.flags if flag != "compliance_flag")
    rules = matching_flags(candidate, pack)
    if not rules and others == candidate.flags:
        return candidate, False
    labels = [candidate.classification, *(rule.label for rule in rules if rule.label is not None)]
    raised: dict[str, Any] = {"flags": (*others, "compliance_flag") if rules else others}
    raised["classification"] = max(labels, key=pack.rank)
    return candidate.model_copy(update=raised), bool(rules)


def consent(candidate: Candidate, known: Circumstances) -> GateResult:
    """Refuse a sensitive fact without a live consent of its subject, except evidence links (CON-2, CON-6).

    A consent under another name of the subject counts too. The fact is then kept under that name: consent and subject
    stay together, and revoking the one reaches the other. What is said of a third party needs the consent of that
    person, who has to be the subject, and a user whom it was captured from: only runs of that user see it (CAN-16).
    """
    third_party = candidate.third_party
    if not third_party and not known.pack.is_sensitive(candidate.classification):
        return candidate, passing("not_required", candidate.classification)
    if candidate.write_class == "evidence_link":
        return candidate, passing("not_required", "evidence_link")
    if candidate.subject is None:
        return candidate, refusing("anonymous_subject", candidate.classification)
    if _another_of_its_kind(candidate.entity, candidate.subject):
        return candidate, refusing("subject_is_not_the_entity", candidate.classification)
    why = refusal_of(candidate, known.pack, known.kind, known.vouched, known.tags) if third_party else None
    if why is not None:
        return candidate, refusing(why, candidate.classification)
    own = [one for one in known.consents if one.subject == candidate.subject]
    matched = _covering(own, candidate, known) or _covering(known.consents, candidate, known)
    if matched is None:
        refusal = refusing("consent_missing", candidate.classification)
        return candidate, _asking_subject(refusal, candidate, known) if not third_party else refusal
    if third_party and candidate.scope.user_id is None:
        return candidate, refusing("third_party_without_user", candidate.classification)
    if third_party and candidate.scope.user_id != known.user_id:
        return candidate, refusing("third_party_of_another_user", candidate.classification)
    rests = {"consent_id": matched.consent_id, "subject": matched.subject}
    return candidate.model_copy(update=rests), passing("consent", matched.consent_id)


# The second reason of a refusal: its subject is to be asked for consent.
ASKS = "ask_subject"


def _asking_subject(refusal: Decision, candidate: Candidate, known: Circumstances) -> Decision:
    """Add that the subject is to be asked, where the pack asks and no other gate would refuse the fact (CON-9)."""
    pack, subject = known.pack, candidate.subject
    if pack.memory_layer.consent.ask != "subject" or user_of(subject, pack) is None:
        return refusal
    if any(not gate(candidate, known)[1].passed for name, gate in LAST_GATES if name != "consent"):
        return refusal
    return Decision(outcome="refuse", reasons=(*refusal.reasons, Reason(code=ASKS, detail=subject or "")))


def _covering(consents: Sequence[Consent], candidate: Candidate, known: Circumstances) -> Consent | None:
    return consents_policy.covering(
        consents,
        write_class=candidate.write_class,
        predicate=candidate.predicate,
        label=candidate.classification,
        pack=known.pack,
        now=known.now,
    )


def _another_of_its_kind(entity: str | None, subject: str) -> bool:
    # One customer's consent says nothing about another customer; about an order of theirs it may.
    if entity is None or entity == subject:
        return False
    return entity.partition(":")[0] == subject.partition(":")[0]


def trust(candidate: Candidate, known: Circumstances) -> GateResult:
    """Lower trust if the content addresses the model; below the floor only a person can promote it (CAN-7)."""
    rules = known.pack.memory_layer.trust
    found = sorted({reason for text in _texts(candidate, known) for reason in _addressing(text)})
    if found:
        lowered = max(0.0, round(candidate.trust - rules.instruction_penalty, 6))
        candidate = candidate.model_copy(update={"trust": lowered})
    elif (guard := known.guard) is not None and guard.score >= guard.threshold - guard.margin:
        lowered = max(0.0, round(candidate.trust - rules.instruction_penalty * guard.score, 6))
        candidate = candidate.model_copy(update={"trust": lowered})
        if guard.score < guard.threshold + guard.margin:
            candidate = _near_threshold(candidate, near=True)
        found = [f"guard {guard.score:.2f} of {guard.threshold:.2f}"]
    reason = "trusted" if candidate.trust >= rules.floor else "low_trust"
    return candidate, passing(reason, ", ".join([f"{candidate.trust:.2f}", *_claimed_only(known), *found]))


def _claimed_only(known: Circumstances) -> Iterator[str]:
    """Yield what the capture claims to be and its author's credential does not vouch for (ISO-8)."""
    if known.vouched is None:
        if known.origin is not None and known.origin.startswith("tool:"):
            yield "unvouched_tool"
        elif known.kind == "message":
            yield "unvouched_message"


def _addressing(text: str) -> tuple[str, ...]:
    found = suspicion(text)
    return found.reasons if found.addresses_the_model else ()


def _texts(candidate: Candidate, known: Circumstances) -> Iterator[str]:
    """Yield every text of a candidate."""
    yield candidate.text
    for name in (candidate.speaker, candidate.claimed_author):
        if name is not None:
            yield name
    if candidate.value is not None:
        yield from strings(candidate.value)
    yield from candidate.evidence_refs
    scope = candidate.scope
    for name, value in scope.qualifiers.items():
        yield f"{name} {value}"
    # Names are short words; one that reads like a sentence is checked as one. Prompts and tools show them.
    names = (candidate.predicate, candidate.predicate_name, scope.session_id, scope.workflow_id, scope.intent_id)
    about = dict.fromkeys((candidate.entity, candidate.subject, scope.user_id, known.decision_key))
    for name in (*names, known.origin, *about):
        if name is not None and _may_be_a_sentence(words := _WORD_BREAKS.sub(" ", name)):
            yield words


def _may_be_a_sentence(words: str) -> bool:
    """Say whether a name has three words at least, or one so long that words may be written together in it."""
    return len(_LETTERS.findall(words)) > 2 or _LONG_WORD.search(words) is not None


def confidence(candidate: Candidate, known: Circumstances) -> GateResult:
    """Refuse a candidate below the pack's confidence floor."""
    floor = known.pack.memory_layer.promotion_thresholds.confidence_floor
    if candidate.confidence < floor:
        return candidate, refusing("confidence_below_floor", f"{candidate.confidence:.2f} of {floor:.2f}")
    if candidate.calibration is None and candidate.confidence > uncalibrated_confidence(
        candidate.confidence, known.pack
    ):
        return candidate, passing("proven_source", f"{candidate.confidence:.2f}")
    return candidate, passing("confidence", f"{candidate.confidence:.2f}")


def rejection(candidate: Candidate, known: Circumstances) -> GateResult:
    """Refuse what a person rejected, in the same or in other words, for the pack's time (REV-6)."""
    for one in known.rejections:
        assert known.by is not None, "rejections come with a comparison"
        if repeats_rejected(candidate, one, known.by):
            return candidate, refusing("rejected_before", one.proposal_id)
    return candidate, passing("not_rejected_before")


# INVARIANT: the order of CAN-4; the last gates go on where the first stopped.
FIRST_GATES: tuple[tuple[GateName, Gate], ...] = (
    ("allow_list", allow_list),
    ("evidence", evidence),
    ("redaction", redaction),
    ("classification", classification),
)
LAST_GATES: tuple[tuple[GateName, Gate], ...] = (
    ("consent", consent),
    ("trust", trust),
    ("confidence", confidence),
    ("rejection", rejection),
)
GATES = FIRST_GATES + LAST_GATES


def pass_gates(candidate: Candidate, known: Circumstances, gates: Sequence[tuple[GateName, Gate]] = GATES) -> Passage:
    """Run the gates in order and stop at the first refusal."""
    passed = list(candidate.gates)
    refused_by: tuple[GateName, Decision] | None = None
    for name, gate in gates:
        try:
            candidate, decision = gate(candidate, known)
        except Exception as error:
            decision = refusing("rule_failed", type(error).__name__)
        if not decision.passed:
            refused_by = (name, decision)
            break
        passed.append(_passed(name, decision.reasons[0].code, decision.reasons[0].detail))
    return Passage(candidate.model_copy(update={"gates": tuple(passed)}), refused_by)


@lru_cache(maxsize=4096)
def _passed(gate: GateName, reason: str, detail: str) -> Passed:
    return Passed(gate=gate, reason=reason, detail=detail)


# ---- remembered rejections (REV-6) ----


def fingerprint(candidate: Candidate) -> bytes:
    """Return what a candidate asserts: entity, predicate and value; its normalised words; or its references."""
    content = candidate.value if candidate.on_key else candidate.text
    if candidate.write_class == "evidence_link":
        content = sorted(candidate.evidence_refs)
    return b"\0".join(((candidate.entity or "").encode(), (candidate.predicate or "").encode(), normal(content)))


def repeats_rejected(candidate: Candidate, before: Rejected, by: Comparison) -> bool:
    """Whether a candidate repeats what was rejected for the same user or for all, in the same or in other words.

    Other words say the same by the rules, or where the trained judge is sure. A rejection for one user does not count
    for another: the refusal would tell a proposer what was proposed for them.
    """
    rejected = before.candidate
    if rejected.scope.user_id not in (None, candidate.scope.user_id):
        return False
    if fingerprint(candidate) == fingerprint(rejected):
        return candidate.on_key or may_be_about_one(candidate, rejected, by)
    if candidate.on_key and rejected.on_key:
        if (candidate.entity, candidate.predicate) != (rejected.entity, rejected.predicate):
            return False
    elif not may_be_about_one(candidate, rejected, by) or "evidence_link" in (
        candidate.write_class,
        rejected.write_class,
    ):
        return False
    if relate(candidate.text, rejected.text, before.similarity, by.thresholds, by.judge).verdict == "same":
        return True
    least, scores = by.judge_thresholds, before.scores
    if least is None or scores is None or scores.contradicts >= least.contradicts - least.margin:
        return False
    return scores.same >= least.same + least.margin
