"""Ranking: a score is the sum of its parts, the order follows from what is seen and from nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.pack.memory_layer import RecallPolicy, RecallWeights
from muniment.recall.rules import (
    MOST_COMMON,
    MOST_SEEN,
    PARTS,
    Postings,
    Ranking,
    Seen,
    rank,
    rarities,
    rarity,
    words_shared,
)

AT = datetime(2026, 5, 4, 9, 31, tzinfo=UTC)
DAY = 24 * 60 * 60.0
PLAIN = RecallPolicy()


@dataclass(frozen=True)
class Memory:
    """A row of what is seen, with how near it is to the query in each way."""

    memory_id: str
    priority: float = 0.5
    confidence: float = 0.8
    born_seq: int = 1
    age_days: float = 0.0
    intent: int = 1
    wanted: bool = True
    key: tuple[str, str] | None = None
    correction: bool = False
    vector: float = 0.0
    words: float = 0.0
    entity: float = 0.0


def seen(memories: Sequence[Memory]) -> Seen:
    corrected = {one.key for one in memories if one.correction and one.key}
    keyed: dict[tuple[str, str], list[tuple[str, bool]]] = {}
    for one in memories:
        if one.key in corrected and one.key is not None:
            keyed.setdefault(one.key, []).append((one.memory_id, one.correction))
    return Seen(
        ids=[one.memory_id for one in memories],
        priority=np.array([one.priority for one in memories]),
        confidence=np.array([one.confidence for one in memories]),
        born_seq=np.array([one.born_seq for one in memories], dtype=np.int64),
        promoted_at=np.array([AT.timestamp() - one.age_days * DAY for one in memories]),
        intent=np.array([one.intent for one in memories], dtype=np.int16),
        about=np.zeros(len(memories), dtype=np.int16),
        wanted=np.array([one.wanted for one in memories], dtype=np.bool_),
        working=frozenset(),
        keyed=keyed,
    )


def ranked(memories: Sequence[Memory], policy: RecallPolicy = PLAIN) -> Ranking:
    return rank(
        seen(memories),
        vector=np.array([one.vector for one in memories]),
        words=np.array([one.words for one in memories]),
        entity=np.array([one.entity for one in memories]),
        policy=policy,
        at=AT,
    )


def order(memories: Sequence[Memory], policy: RecallPolicy = PLAIN) -> list[str]:
    return [memories[place].memory_id for place in ranked(memories, policy).order]


def weighing(**weights: float) -> RecallPolicy:
    """A policy that looks at these parts alone."""
    return RecallPolicy(weights=RecallWeights(**(dict.fromkeys(PARTS, 0.0) | weights)))


# --- the parts of a score


@pytest.mark.rule("REC-2", "REC-5")
@pytest.mark.parametrize(
    ("memory", "part", "share"),
    [
        ({"vector": 0.75}, "vector", 0.75),
        ({"vector": -0.5}, "vector", 0.0),
        ({"vector": 1.0001}, "vector", 1.0),
        ({"words": 0.5}, "words", 0.5),
        ({"priority": 0.9}, "priority", 0.9),
        ({"confidence": 0.3}, "confidence", 0.3),
        ({"age_days": 0.0}, "recency", 1.0),
        ({"age_days": 90.0}, "recency", 0.5),
        ({"age_days": 180.0}, "recency", 0.25),
        ({"age_days": -30.0}, "recency", 1.0),
        ({"intent": 1}, "intent", 0.0),
        ({"intent": 2}, "intent", 1.0),
        ({"intent": 3}, "intent", 0.5),
        ({"intent": 7}, "intent", 0.5),
        ({"intent": 0}, "intent", 0.0),
        ({"entity": 0.25}, "entity", 0.25),
    ],
)
def test_each_part_is_a_share_that_the_pack_weighs(memory: dict[str, Any], part: str, share: float) -> None:
    for weight in (0.0, 0.5, 3.0):
        score = ranked([Memory("pm_1", **memory)], weighing(**{part: weight})).scores([0])[0]
        assert score.pop("total") == score.pop(part) == pytest.approx(share * weight, abs=1e-6)
        assert score == dict.fromkeys([name for name in PARTS if name != part], 0.0)


def test_the_half_life_of_recency_is_the_packs() -> None:
    policy = weighing(recency=1.0).model_copy(update={"recency_half_life": timedelta(days=1)})
    assert ranked([Memory("pm_1", age_days=2.0)], policy).scores([0])[0]["recency"] == 0.25


@pytest.mark.rule("REC-2")
def test_a_pack_with_other_weights_gives_another_order() -> None:
    memories = [
        Memory("near", vector=0.9, words=0.1),
        Memory("worded", vector=0.1, words=0.8),
        Memory("important", priority=1.0),
        Memory("sure", confidence=1.0, priority=0.0),
    ]
    assert order(memories, weighing(vector=1.0, words=0.5))[0] == "near"
    assert order(memories, weighing(vector=0.5, words=1.0))[0] == "worded"
    assert order(memories, weighing(priority=1.0))[0] == "important"
    assert order(memories, weighing(confidence=1.0))[0] == "sure"


# --- ties


@pytest.mark.rule("REC-2")
def test_of_equals_the_newest_comes_first_and_of_one_transaction_the_lower_id() -> None:
    memories = [Memory("c", born_seq=2), Memory("a", born_seq=1), Memory("b", born_seq=2), Memory("d", born_seq=3)]
    assert order(memories) == ["d", "b", "c", "a"]


@pytest.mark.rule("REC-2", "REC-9")
def test_the_last_bits_of_a_number_decide_nothing() -> None:
    drifted = 0.1 + 0.2
    memories = [Memory("a", vector=0.3, born_seq=1), Memory("b", vector=drifted, born_seq=1)]
    assert drifted > 0.3
    assert order(memories) == ["a", "b"]


@pytest.mark.rule("REC-2", "COR-2")
def test_a_correction_stands_just_before_the_best_on_its_key_and_before_nothing_better() -> None:
    key = ("customer:c1", "likes")
    memories = [
        Memory("best", vector=0.8, key=key),
        Memory("worst", vector=0.1, key=key),
        Memory("better", vector=0.9),
        Memory("between", vector=0.5),
        Memory("correction", vector=0.0, key=key, correction=True),
    ]
    assert order(memories) == ["better", "correction", "best", "between", "worst"]
    assert ranked(memories).scores([4])[0]["vector"] == 0.0, "its place is given; its score is its own"


@pytest.mark.rule("COR-2")
def test_a_correction_that_is_the_best_itself_stays_and_two_stand_together() -> None:
    key = ("customer:c1", "likes")
    memories = [
        Memory("fact", vector=0.2, key=key),
        Memory("second", vector=0.1, key=key, correction=True),
        Memory("first", vector=0.9, key=key, correction=True),
        Memory("other", vector=0.5),
    ]
    assert order(memories) == ["first", "second", "other", "fact"]


@pytest.mark.rule("REC-6")
def test_what_was_not_asked_for_is_not_in_the_order_and_lifts_no_correction() -> None:
    key = ("customer:c1", "likes")
    memories = [
        Memory("unwanted", vector=1.0, key=key, wanted=False),
        Memory("correction", vector=0.1, key=key, correction=True),
        Memory("other", vector=0.5),
    ]
    assert order(memories) == ["other", "correction"]


def test_of_nothing_nothing_is_ranked() -> None:
    nothing = ranked([])
    assert nothing.order == []
    assert nothing.total_of(seen([]), "pm_1") == 0.0


# --- for everything that could be seen

SHARES = st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.floats(0, 1))
KEYS = st.sampled_from([None, ("customer:c1", "likes"), ("customer:c1", "speaks"), ("customer:c2", "likes")])
DRAWN = st.builds(
    Memory,
    memory_id=st.just(""),
    priority=SHARES,
    confidence=SHARES,
    born_seq=st.integers(1, 4),
    age_days=st.sampled_from([0.0, 1.0, 400.0]),
    intent=st.integers(0, 4),
    wanted=st.booleans(),
    key=KEYS,
    correction=st.booleans(),
    vector=st.one_of(SHARES, st.floats(-1, 1)),
    words=SHARES,
    entity=st.sampled_from([0.0, 0.25, 0.5, 1.0]),
)
MEMORIES = st.lists(DRAWN, max_size=12).map(
    lambda drawn: [replace(one, memory_id=f"pm_{place}") for place, one in enumerate(drawn)]
)
WEIGHTS = st.builds(RecallWeights, **{name: st.sampled_from([0.0, 0.05, 1.0, 7.5]) for name in PARTS})
POLICIES = WEIGHTS.map(lambda weights: RecallPolicy(weights=weights))


@pytest.mark.rule("REC-5")
@given(memories=MEMORIES, policy=POLICIES)
def test_the_parts_add_up_to_the_total_and_none_exceeds_its_weight(
    memories: list[Memory], policy: RecallPolicy
) -> None:
    found = ranked(memories, policy)
    for place in range(len(memories)):
        score = found.scores([place])[0]
        total = score.pop("total")
        assert list(score) == list(PARTS)
        assert sum(score.values()) == pytest.approx(total, abs=1e-6)
        assert all(0.0 <= part <= getattr(policy.weights, name) + 1e-9 for name, part in score.items())


@pytest.mark.rule("REC-2", "REC-9")
@given(memories=MEMORIES, policy=POLICIES, data=st.data())
def test_the_answer_does_not_depend_on_the_order_of_the_rows(
    memories: list[Memory], policy: RecallPolicy, data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(memories))
    assert order(shuffled, policy) == order(memories, policy)
    scores = [
        {one.memory_id: found.scores([place])[0] for place, one in enumerate(rows)}
        for rows, found in ((memories, ranked(memories, policy)), (shuffled, ranked(shuffled, policy)))
    ]
    assert scores[0] == scores[1]


@pytest.mark.rule("REC-2", "COR-2")
@given(memories=MEMORIES, policy=POLICIES)
def test_the_order_is_score_then_newest_then_id_with_corrections_before_their_key(
    memories: list[Memory], policy: RecallPolicy
) -> None:
    found = ranked(memories, policy)
    listed = [memories[place] for place in found.order]
    assert sorted(one.memory_id for one in listed) == sorted(one.memory_id for one in memories if one.wanted)
    rank_of = {one.memory_id: (-found.total[place], -one.born_seq) for place, one in enumerate(memories)}
    facts = [one for one in listed if not (one.correction and one.key)]
    assert facts == sorted(facts, key=lambda one: (*rank_of[one.memory_id], one.memory_id))
    for correction in (one for one in listed if one.correction and one.key):
        place = listed.index(correction)
        on_key = [one for one in listed if one.key == correction.key]
        best = min(rank_of[one.memory_id] for one in on_key)
        assert all(listed.index(one) > place for one in on_key if not one.correction)
        assert all(rank_of[one.memory_id] < best for one in listed[:place] if not (one.correction and one.key))
        assert all(rank_of[one.memory_id] >= best for one in listed[place:] if not (one.correction and one.key))


# --- words


# Term, memory, how often, of how many words.
Posting = tuple[int, str, int, int]


def postings(*found: tuple[int, int, int, int]) -> Postings:
    """Term, memory, how often, of how many words; both by their positions."""
    terms, places, times, words = np.array(found, dtype=np.intp).reshape(-1, 4).T
    return Postings(terms, places, times.astype(np.int16), words.astype(np.int16))


def shared(found: Sequence[Posting], ids: Sequence[str], terms: Sequence[int]) -> dict[str, float]:
    at = postings(*((terms.index(term), ids.index(one), times, words) for term, one, times, words in found))
    weights = rarities(len(terms), at, len(ids))
    return dict(zip(ids, words_shared(at, len(ids), weights).tolist(), strict=True))


@pytest.mark.rule("REC-2")
@given(seen=st.integers(0, 50_000), one=st.integers(0, 3000), other=st.integers(0, 3000))
def test_the_rarer_a_word_the_more_it_tells(seen: int, one: int, other: int) -> None:
    fewer, more = min(one, other, seen), min(max(one, other), seen)
    assert rarity(seen, fewer) >= rarity(seen, more) > 0
    if fewer < more <= MOST_COMMON and seen <= MOST_SEEN:
        assert rarity(seen, fewer) > rarity(seen, more)


def test_beyond_the_bounds_a_word_is_as_common_as_can_be() -> None:
    assert rarity(MOST_SEEN * 10, MOST_COMMON * 10) == rarity(MOST_SEEN, MOST_COMMON)


@pytest.mark.rule("REC-2")
def test_of_two_memories_with_a_word_each_the_one_with_the_rarer_word_comes_first() -> None:
    ids = [f"pm_{n}" for n in range(10)]
    found = [(1, "pm_0", 1, 8), *((2, f"pm_{n}", 1, 8) for n in range(1, 9))]
    shares = shared(found, ids, [1, 2])
    assert shares["pm_0"] > shares["pm_1"] == shares["pm_8"] > shares["pm_9"] == 0.0


@pytest.mark.rule("REC-2")
def test_more_of_the_words_count_more_and_a_longer_text_less() -> None:
    found = [
        *((1, "both", 1, 8), (2, "both", 1, 8), (1, "one", 1, 8), (1, "twice", 2, 8), (1, "long", 1, 200)),
        (2, "other", 1, 8),
    ]
    shares = shared(found, ["both", "one", "twice", "long", "other"], [1, 2])
    assert shares["both"] > shares["twice"] > shares["one"] > shares["long"] > 0.0


TERMS = [1, 2, 3]
IDS = [f"pm_{n}" for n in range(6)]
POSTED = st.lists(
    st.tuples(st.sampled_from(TERMS), st.sampled_from(IDS), st.integers(1, 255), st.sampled_from([255, 1000, 32767])),
    max_size=18,
    unique_by=lambda one: one[:2],
)


@pytest.mark.rule("REC-2")
@given(found=POSTED)
def test_the_share_of_the_words_lies_between_none_and_all(found: list[Posting]) -> None:
    shares = shared(found, IDS, TERMS)
    with_words = {memory_id for _, memory_id, _, _ in found}
    for memory_id, share in shares.items():
        assert 0.0 <= share <= 1.0
        assert (share > 0.0) == (memory_id in with_words)


@given(found=POSTED)
def test_a_text_that_says_nothing_but_the_query_reaches_no_more_than_all(
    found: list[Posting],
) -> None:
    short = [(term, memory_id, times, times) for term, memory_id, times, _ in found]
    assert all(0.0 <= share <= 1.0 for share in shared(short, IDS, TERMS).values())


@pytest.mark.rule("REC-2")
@given(found=POSTED, data=st.data())
def test_words_count_the_same_in_whatever_order_they_are_read(found: list[Posting], data: st.DataObject) -> None:
    again = data.draw(st.permutations(found))
    one, other = shared(found, IDS, TERMS), shared(again, IDS, TERMS)
    assert one == pytest.approx(other, abs=1e-12)


def test_a_query_without_words_shares_none() -> None:
    assert shared([], IDS, []) == dict.fromkeys(IDS, 0.0)
    assert shared([], IDS, TERMS) == dict.fromkeys(IDS, 0.0)
