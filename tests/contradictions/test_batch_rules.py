"""Which pairs of one batch the trained judge reads, and how many neighbours of one candidate: always a bounded number."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from muniment.contradictions.batch_rules import BLOCK, BatchMember, near_within, pairs_within
from muniment.contradictions.rules import MOST_NEAR, Comparison, Neighbour, compare, pairs_to_read
from muniment.language.assertion import judge
from muniment.model.candidate import Candidate, Scope
from muniment.model.promoted import PromotedMemory
from muniment.pack import Thresholds, builtin_pack
from tests.language.candidates import draft

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PACK = builtin_pack()
PAIRS = PACK.memory_layer.contradiction.judge.pairs
BY = Comparison(Thresholds(similarity=0.6, duplicate_similarity=0.7), judge)


def statement(text: str, **fields: Any) -> Candidate:
    return draft(write_class="statement", entity=None, predicate=None, value=None, text=text, **fields)


def members(*texts: str, **fields: Any) -> list[BatchMember]:
    return [BatchMember(statement(text, **fields), "semantic") for text in texts]


def blocks(similar: np.ndarray) -> list[tuple[int, np.ndarray]]:
    return [(first, similar[first : first + BLOCK, : first + BLOCK]) for first in range(0, len(similar), BLOCK)]


def alike(count: int, similarity: float = 0.4) -> np.ndarray:
    return np.full((count, count), similarity, dtype=np.float32)


def pairs(batch: list[BatchMember], similar: np.ndarray) -> list[tuple[int, int]]:
    found = pairs_within(batch, blocks(similar), 0.15, PACK, BY)
    assert all(one.similarity == similar[one.later, one.earlier] for one in found)
    return [(one.later, one.earlier) for one in found]


@pytest.mark.rule("CTR-2", "ISO-6")
def test_however_many_similar_texts_a_batch_holds_each_is_read_beside_the_packs_number_of_them() -> None:
    count = 3 * BLOCK
    found = pairs(members(*(f"the lamp costs {number}" for number in range(count))), alike(count))
    assert len(found) == sum(min(number, PAIRS) for number in range(count))
    assert all(earlier < later for later, earlier in found)


@pytest.mark.rule("CTR-2")
def test_the_nearest_are_read_and_the_memories_that_were_read_count_too() -> None:
    batch = members(*(f"the lamp costs {number}" for number in range(PAIRS + 4)))
    similar = alike(len(batch))
    similar[-1, :-1] = np.linspace(0.2, 0.5, len(batch) - 1)
    last = len(batch) - 1
    assert [earlier for later, earlier in pairs(batch, similar) if later == last] == list(
        range(last - 1, last - 1 - PAIRS, -1)
    )
    # Five memories were nearer than all of them, one as near as the second, two farther than all.
    batch[-1] = replace(batch[-1], read=(0.9,) * 5 + (float(similar[-1, -3]),) + (0.1,) * 2)
    assert [earlier for later, earlier in pairs(batch, similar) if later == last] == [last - 1, last - 2]


@pytest.mark.rule("CTR-2")
def test_questions_greetings_and_what_is_checked_alone_are_left_out_first() -> None:
    texts = ("the lamp costs 3", "is it 3?", "thanks!", "the lamp costs 4", "the lamp costs 5")
    batch = members(*texts)
    assert pairs(batch, alike(5)) == [(3, 0), (4, 0), (4, 3)]
    batch[3] = replace(batch[3], alone=True)
    assert pairs(batch, alike(5)) == [(4, 0)]
    # A flood of questions hides nothing.
    hidden = members("the lamp costs 3", *["is it 3?"] * 200, "the lamp costs 4")
    similar = alike(len(hidden))
    similar[-1, 0] = 0.2
    assert pairs(hidden, similar) == [(201, 0)]


@pytest.mark.rule("CTR-2")
def test_texts_that_no_run_sees_together_are_not_read() -> None:
    one, other = (members("the lamp costs 3", scope=Scope(user_id=user))[0] for user in ("u1", "u2"))
    assert pairs([one, other, one], alike(3)) == [(2, 0)]
    assert pairs(members("the lamp costs 3", "the lamp costs 4"), alike(2, 0.1)) == []


@pytest.mark.rule("REV-9")
def test_what_is_near_an_earlier_one_or_on_its_key_meets_it() -> None:
    count = 2 * BLOCK
    similar = alike(count)
    similar[BLOCK + 5, 3] = 0.6
    similar[3, BLOCK + 5] = 0.6
    batch = members(*(f"the lamp costs {number}" for number in range(count)))
    key = {"entity": "lamp:1", "predicate": "price"}
    batch[7] = batch[9] = BatchMember(draft(**key), "semantic")
    met = near_within(batch, blocks(similar), 0.6)
    assert [index for index, found in enumerate(met) if found] == [9, BLOCK + 5]


# ---- neighbours of one candidate ----


def memory(number: int) -> PromotedMemory:
    ids = {f"{name}_id": f"{name}_{number:04}" for name in ("memory", "candidate", "proposal", "verdict", "capture")}
    said = {"write_class": "statement", "text": f"the lamp costs {number}", "scope": {}, "kind": "statement"}
    weighed = {"priority": 0.5, "confidence": 0.7, "trust": 0.6, "classification": "INTERNAL", "sensitive": False}
    known = {"tenant_id": "t", "tier": "semantic", "source": "agent", "author": "bot", "approver": "ada"}
    given: dict[str, Any] = {
        **ids,
        **said,
        **weighed,
        **known,
        "pack": PACK.ref,
        "ontology_version": "1",
        "born_seq": 1,
    }
    return PromotedMemory(**given, **dict.fromkeys(("captured_at", "observed_at", "promoted_at"), NOW))


def neighbours(count: int, similarity: float) -> list[Neighbour]:
    return [Neighbour(memory(number), similarity) for number in range(count)]


@pytest.mark.rule("CTR-2", "REV-9", "ISO-6")
@pytest.mark.parametrize(
    ("near", "below", "read", "unread"),
    [
        (0, 40, PAIRS, 0),
        (3, 40, PAIRS, 0),
        (MOST_NEAR, 40, MOST_NEAR, 0),
        (MOST_NEAR + 1, 40, PAIRS, MOST_NEAR + 1 - PAIRS),
        (2000, 0, PAIRS, 2000 - PAIRS),
    ],
)
def test_all_above_the_threshold_are_read_unless_they_are_a_flood(
    near: int, below: int, read: int, unread: int
) -> None:
    candidate = statement("the lamp costs 9999")
    around = [*neighbours(near, 0.65), *neighbours(below, 0.3)]
    found = pairs_to_read(candidate, "semantic", around, PACK, BY)
    assert (len(found.read), len(found.unread)) == (read, unread)
    assert all(one.similarity == 0.65 for one in found.unread)


@pytest.mark.rule("CTR-2", "CAN-15")
def test_a_person_decides_beside_what_the_judge_did_not_read() -> None:
    candidate = statement("a red lamp stands in the hall")
    (other,) = neighbours(1, 0.65)
    assert compare(candidate, "semantic", [other], PACK, BY).finds_nothing
    assert compare(candidate, "semantic", [replace(other, unread=True)], PACK, BY).uncertain == (other.memory,)
