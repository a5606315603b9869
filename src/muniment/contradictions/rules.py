"""Duplicates and contradictions: what a candidate repeats or contradicts among its neighbours (REV-7, CTR-1, CTR-2).

Two facts on keys are compared by their keys: same entity and predicate, same or another value. Where at least one is
plain text, the texts are compared, by similarity and by a judge of assertions.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast

from pydantic_core import to_json

from muniment.candidates.calibration import is_proven
from muniment.candidates.ontology import resolved
from muniment.candidates.rules import compared_as, lasts_as_long, vouched_for_extractor
from muniment.capture.rules import user_subject
from muniment.contradictions.scopes import agree, covers, overlap
from muniment.language.assertion import (
    Judge,
    Judgement,
    differ_in_one_word,
    may_state,
    relate,
    repeats_words,
    same_subject,
    share_enough_words,
)
from muniment.language.instructions import visible_text
from muniment.language.messages.updates import has_update_words, is_about_speaker
from muniment.language.readers import PairScores
from muniment.model.candidate import Candidate
from muniment.model.capture import Capture
from muniment.model.decision import Decision, passing, refusing
from muniment.model.fields import Tier
from muniment.model.promoted import PromotedMemory
from muniment.model.speakers import USER
from muniment.pack import Pack, Thresholds
from muniment.pack.schema import Identity

# Confidences are written with two or three digits: what is 0.15 apart on paper is so here.
_ROUNDING = 1e-9
OTHER_VALUE, RULE_FAILED, NEAR_THRESHOLD = "other_value", "rule_failed", "near_threshold"
# Why `may_supersede` lets a user's newer fact about themselves replace their older one.
OWN_UPDATE = "own_update"
_DIFFERENT = Judgement("different", ())


@dataclass(frozen=True)
class Neighbour:
    """A live memory on the candidate's key, or near to its text; `scores` is what the trained judge says of both.

    `unread`: the judge would have to read it, but there are too many like it.
    """

    memory: PromotedMemory
    similarity: float = 0.0
    hidden: bool = False
    scores: PairScores | None = None
    unread: bool = False
    # From where on the scores count, if another judge gave them than that of the comparison.
    thresholds: "JudgeThresholds | None" = None


class Contradicted(NamedTuple):
    """A memory that says something else, and in what it differs; `judged`: only the trained judge says so."""

    memory: PromotedMemory
    reason: str
    judged: bool = False


@dataclass(frozen=True)
class Compared:
    """The memories that a candidate contradicts and those that it repeats, the oldest first.

    `uncertain` are those of which the trained judge's score lies within the margin of its threshold, and those that are
    too many for it to read.
    """

    contradicts: tuple[Contradicted, ...] = ()
    says_the_same: tuple[PromotedMemory, ...] = ()
    uncertain: tuple[PromotedMemory, ...] = ()

    @property
    def finds_nothing(self) -> bool:
        """Whether it meets no memory in any of these ways."""
        return not self.contradicts and not self.says_the_same and not self.uncertain


@dataclass(frozen=True)
class JudgeThresholds:
    """The scores from which a judge's answers count, the margin around them, and what kind of judge it is."""

    contradicts: float
    same: float
    margin: float
    kind: str = "judge"


@dataclass(frozen=True)
class Comparison:
    """How texts are compared: an embedder's thresholds, a judge, and the pack's names of subjects."""

    thresholds: Thresholds
    judge: Judge
    identity: Identity = field(default_factory=Identity)
    # None where there is no trained judge.
    judge_thresholds: JudgeThresholds | None = None


def compare(candidate: Candidate, tier: Tier, neighbours: Iterable[Neighbour], pack: Pack, by: Comparison) -> Compared:
    """Compare a candidate with every neighbour that some run could see beside it, not only the nearest (REV-9)."""
    contradicts: list[Contradicted] = []
    same: list[PromotedMemory] = []
    uncertain: list[PromotedMemory] = []
    for neighbour in sorted(neighbours, key=lambda one: (one.memory.born_seq, one.memory.memory_id)):
        memory = neighbour.memory
        if not may_be_seen_together(candidate, tier, memory, memory.tier):
            continue
        found = _relation(candidate, memory, neighbour.similarity, pack, by)
        judged = found.verdict == "different" and neighbour.scores is not None
        if judged and neighbour.scores is not None:
            read_by = by if neighbour.thresholds is None else replace(by, judge_thresholds=neighbour.thresholds)
            found = judged_relation(
                candidate.text, memory.text, neighbour.similarity, neighbour.scores, read_by, trusted=trusts_judge(pack)
            )
        if found.verdict == "same" and not neighbour.hidden:
            same.append(memory)
        elif found.verdict == "contradicts":
            contradicts.append(Contradicted(memory, found.reasons[0] if found.reasons else "judged", judged))
        elif NEAR_THRESHOLD in found.reasons or (found.verdict == "different" and neighbour.unread):
            uncertain.append(memory)
    return Compared(tuple(contradicts), tuple(same), tuple(uncertain))


def may_be_seen_together(one: Candidate, tier: Tier, other: Candidate | PromotedMemory, other_tier: Tier) -> bool:
    """Whether some run could see both facts at one time in the world, so that they are compared (REC-14)."""
    if "evidence_link" in (one.write_class, other.write_class) or not times_overlap(one, other):
        return False
    return overlap(other.scope, other_tier, one.scope, tier)


def times_overlap(one: Candidate, other: Candidate | PromotedMemory) -> bool:
    """Whether both facts hold at some time in the world; one without times always does."""
    return _begins_before_end(one, other) and _begins_before_end(other, one)


def _begins_before_end(one: Candidate | PromotedMemory, other: Candidate | PromotedMemory) -> bool:
    return one.valid_from is None or other.valid_until is None or one.valid_from < other.valid_until


def says_no_other_times(candidate: Candidate, memory: PromotedMemory) -> bool:
    """Whether nothing that a candidate says about its times is lost if it counts as a repetition of a memory."""
    if candidate.valid_until != memory.valid_until:
        return False
    began = memory.valid_from is None or memory.valid_from <= memory.observed_at
    return candidate.valid_from == memory.valid_from or (candidate.valid_from is None and began)


class PairsToRead(NamedTuple):
    """The neighbours that the trained judge reads, and those at or above the threshold that are too many for it."""

    read: list[Neighbour]
    unread: list[Neighbour]


# Neighbours at or above the threshold that the judge reads. Where there are more, it reads the pack's number of them.
MOST_NEAR = 64


def pairs_to_read(
    candidate: Candidate, tier: Tier, neighbours: Iterable[Neighbour], pack: Pack, by: Comparison
) -> PairsToRead:
    """Return the neighbours that the trained judge reads: all at or above the threshold, then the nearest below it.

    Those below are read down to the pack's similarity, until its number of pairs have been read. What cannot have the
    same subject is left out first; below the threshold also what shares too few words to be about one thing. Whoever
    floods a scope with similar texts thus takes no more of the judge's time; a person decides on what it does not read.
    """
    policy, least = pack.memory_layer.contradiction.judge, by.thresholds.similarity
    if not may_state(visible_text(candidate.text)):
        return PairsToRead([], [])
    found: list[Neighbour] = []
    near = 0
    for one in sorted(neighbours, key=lambda one: (-one.similarity, one.memory.memory_id)):
        is_near = one.similarity >= least
        if one.similarity < min(policy.similarity, least) or (not is_near and len(found) >= policy.pairs):
            break
        if may_conflict(candidate, tier, one.memory, one.memory.tier, one.similarity, by):
            found.append(one)
            near += is_near
    if near > max(MOST_NEAR, policy.pairs):
        return PairsToRead(found[: policy.pairs], found[policy.pairs :])
    return PairsToRead(found, [])


def may_conflict(
    one: Candidate, tier: Tier, other: Candidate | PromotedMemory, other_tier: Tier, similarity: float, by: Comparison
) -> bool:
    """Whether the judge has to read two texts: some run could see both, and they may have one subject.

    Below the threshold they must also share enough words to be about one thing.
    """
    if not may_be_seen_together(one, tier, other, other_tier) or not may_be_about_one(one, other, by):
        return False
    if one.on_key and other.entity is not None and other.predicate is not None:
        return False
    ours, theirs = visible_text(one.text), visible_text(other.text)
    if not same_subject(ours, theirs):
        return False
    return similarity >= by.thresholds.similarity or share_enough_words(ours, theirs, similarity)


def trusts_judge(pack: Pack) -> bool:
    """Whether the judge alone may settle what it finds."""
    return pack.memory_layer.contradiction.judge.trusted


def judged_relation(
    a: str, b: str, similarity: float, scores: PairScores, by: Comparison, *, trusted: bool = False
) -> Judgement:
    """Return the trained judge's answer where the rules have none; in doubt the reason is `near_threshold`.

    Texts say the same where the judge, their vectors and their words agree, or where the judge alone is `trusted`; a
    person decides about texts that are alike but for one word.
    """
    least = by.judge_thresholds
    if least is None:
        return _DIFFERENT
    # Where the judge alone may settle a contradiction, a person decides within the margin above the threshold too.
    if scores.contradicts >= least.contradicts + (least.margin if trusted else 0.0):
        return Judgement("contradicts", (f"{least.kind} {scores.contradicts:.2f} of {least.contradicts:.2f}",))
    if scores.contradicts >= least.contradicts - least.margin:
        return Judgement("different", (NEAR_THRESHOLD,))
    agree = similarity >= by.thresholds.duplicate_similarity and repeats_words(a, b)
    if not (agree or trusted) or scores.same < least.same - least.margin:
        return _DIFFERENT
    if scores.same < least.same + least.margin or differ_in_one_word(a, b):
        return Judgement("different", (NEAR_THRESHOLD,))
    return Judgement("same", (f"{least.kind} {scores.same:.2f} of {least.same:.2f}",))


def repeated(candidate: Candidate, tier: Tier, compared: Compared, pack: Pack) -> list[PromotedMemory]:
    """Return the memories of which it is a duplicate (REV-7): no higher label, no shorter lifetime, no other times.

    Otherwise a fact would be lost to a memory that some readers may not see, that expires sooner, or that holds at
    another time. A correction repeats only a correction.
    """
    return [
        memory
        for memory in compared.says_the_same
        if pack.at_least(candidate.classification, memory.classification)
        and lasts_as_long(memory, candidate, tier, pack)
        and says_no_other_times(candidate, memory)
        and (candidate.write_class != "correction" or memory.write_class == "correction")
    ]


def opposition(
    one: Candidate, tier: Tier, other: Candidate, other_tier: Tier, similarity: float, pack: Pack, by: Comparison
) -> str | None:
    """Return in what two candidates contradict one another, None if they do not or no run could see both (REV-12)."""
    if not may_be_seen_together(one, tier, other, other_tier):
        return None
    found = _relation(one, other, similarity, pack, by)
    if found.verdict != "contradicts":
        return None
    return found.reasons[0] if found.reasons else "judged"


def _relation(
    candidate: Candidate, other: Candidate | PromotedMemory, similarity: float, pack: Pack, by: Comparison
) -> Judgement:
    if candidate.on_key and other.entity is not None and other.predicate is not None:
        return _by_key(candidate, resolved(other, pack), pack)
    if not may_be_about_one(candidate, other, by):
        return _DIFFERENT
    try:
        return relate(candidate.text, other.text, similarity, by.thresholds, by.judge)
    except Exception:
        # A rule that raises denies: a person has to decide before both are promoted.
        return Judgement("contradicts", (RULE_FAILED,))


def _by_key(candidate: Candidate, other: Candidate | PromotedMemory, pack: Pack) -> Judgement:
    if (other.entity, other.predicate) != (candidate.entity, candidate.predicate):
        return _DIFFERENT
    if normal(other.value) == normal(candidate.value):
        return Judgement("same", ("same_value",))
    assert other.predicate is not None
    return Judgement("contradicts", (OTHER_VALUE,)) if pack.is_single_valued(other.predicate) else _DIFFERENT


def may_be_about_one(one: Candidate, other: Candidate | PromotedMemory, by: Comparison) -> bool:
    """Whether two texts may be about the same subject, so that they are compared."""
    return agree(compared_as(one, by.identity), compared_as(other, by.identity))


def normal(value: Any) -> bytes:
    """Normalise a value for comparison: text as it is seen, without case or extra space; 1 and 1.0 are the same."""
    return to_json(_normal(value))


def _normal(value: Any) -> Any:
    match value:
        case bool():
            return value
        case str():
            return " ".join(visible_text(value).split()).casefold()
        case float() if value.is_integer():
            return int(value)
        case dict():
            named = cast("dict[str, Any]", value)
            return {key: _normal(named[key]) for key in sorted(named)}
        case list() | tuple():
            return [_normal(item) for item in cast("list[Any]", value)]
        case _:
            return value


def may_supersede(candidate: Candidate, tier: Tier, capture: Capture, found: Contradicted, pack: Pack) -> Decision:
    """Decide whether promoting the candidate replaces a memory that it contradicts, without a person's word (CTR-4).

    A correction does; where the pack says so, a user's newer fact about themselves; and any other class by its own rule
    in the pack. Where only the trained judge says that they contradict one another, nothing is replaced, unless the
    pack trusts the judge.
    """
    old, observed_at = found.memory, capture.observed_at
    if found.judged and not trusts_judge(pack):
        return refusing("judge_alone", "only the judge finds the contradiction")
    if not covers(candidate.scope, tier, old.scope, old.tier):
        return refusing("narrower_scope", "some run that sees the old one would not see the new one")
    if candidate.write_class == "correction":
        return passing("correction")
    if old.write_class == "correction":
        return refusing("correction_stands", "a correction is superseded only by a later correction")
    if pack.memory_layer.contradiction.own_updates and updates_own(candidate, capture, found, pack):
        return passing(OWN_UPDATE, found.reason)
    rule = pack.policy_for(candidate.write_class).auto_resolve
    if rule is None:
        return refusing("no_rule", candidate.write_class)
    if not pack.at_least(candidate.classification, old.classification):
        return refusing("lower_label", old.classification)
    ahead = candidate.confidence - old.confidence
    if ahead + _ROUNDING < rule.margin:
        return refusing("margin", f"{ahead:.2f} of {rule.margin:.2f}")
    if rule.fresher_evidence and observed_at <= old.observed_at:
        return refusing("not_fresher", f"{observed_at:%Y-%m-%d %H:%M:%S}")
    return passing("auto_resolve", f"{ahead:.2f} of {rule.margin:.2f}")


def is_own_update(decision: Decision) -> bool:
    """Whether `may_supersede` passed because a user's newer fact about themselves replaces their older one."""
    return decision.passed and decision.reasons[0].code == OWN_UPDATE


def is_users_own(candidate: Candidate, capture: Capture, pack: Pack) -> bool:
    """Whether a fact is kept as the run's own user's, as it was read from their words (ISO-8)."""
    own = user_subject(candidate.scope.user_id, pack)
    return (
        own is not None
        and vouched_for_extractor(capture, candidate.extractor) == USER
        and is_proven(candidate, USER, pack)
        and _is_about(candidate, own, pack)
        and not candidate.third_party
        and candidate.editor is None
    )


def updates_own(candidate: Candidate, capture: Capture, found: Contradicted, pack: Pack) -> bool:
    """Whether a user says something newer about themselves than they said in a memory, so that rules find it.

    Rules find it on one key, or by plain update words; the trained judge alone does not. Both must be the user's own
    words, said under the same name, without an edit, and about themselves: on a key of theirs or in the first person.
    What is durable, of a higher label or a correction stays for a person.
    """
    old, user_id = found.memory, candidate.scope.user_id
    if found.judged or found.reason in (RULE_FAILED, NEAR_THRESHOLD) or not is_users_own(candidate, capture, pack):
        return False
    own = user_subject(user_id, pack)
    theirs = old.vouched == USER and old.scope.user_id == user_id and old.editor is None and not old.third_party
    theirs = theirs and (old.speaker or user_id) == (candidate.speaker or user_id)
    if own is None or not theirs or not _is_about(old, own, pack) or old.tier == "durable":
        return False
    if not _says_it_of_themselves(candidate) or not _says_it_of_themselves(old):
        return False
    if candidate.trust < pack.memory_layer.trust.floor or not pack.at_least(
        candidate.classification, old.classification
    ):
        return False
    said = (capture.observed_at, capture.captured_at, capture.capture_id)
    if said <= (old.observed_at, old.captured_at, old.capture_id):
        return False
    # The words of a request ("actually, ...") are not part of the text (CAN-12).
    asked = {"user_asked", "user_correction"} <= set(candidate.flags)
    return asked or found.reason == OTHER_VALUE or has_update_words(visible_text(candidate.text))


def _is_about(fact: Candidate | PromotedMemory, own: str, pack: Pack) -> bool:
    """Whether a fact is kept as one about that user and nobody else."""
    names = (fact.subject, fact.entity)
    return fact.subject is not None and all(one is None or pack.identity.resolve(one) == own for one in names)


def _says_it_of_themselves(fact: Candidate | PromotedMemory) -> bool:
    """Whether a fact of a user is about themselves: on a key of theirs, or in the first person."""
    on_key = fact.entity is not None and fact.predicate is not None
    return on_key or is_about_speaker(visible_text(fact.text))
