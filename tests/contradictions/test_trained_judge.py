"""The trained judge of pairs at the gate: what it reads, what it alone may do, and what a person decides (CTR-2)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from muniment import Fabric
from muniment.language.readers import PairScores, Readers
from muniment.model.proposal import Proposal
from muniment.testing import FakeClock, People
from tests.conftest import ReadingOpener
from tests.language.tiny_readers import tiny_readers
from tests.promotion.proven_source import PROOFS, capture, prove
from tests.stories import event_data, promoted, proposed, refused

# The judge finds that texts contradict where one says `weekly` and the other `monthly`: 0.99; with `perhaps` it is
# unsure: 0.77, within the margin of 0.80. It says `same` where both speak of a refund.
CONTRADICTS = {"weekly": 10.0, "monthly": 10.0, "perhaps": -4.1, "[CLS]": -14.7}
SAME = {"refund": 9.0, "[CLS]": -5.0}
TEXT: dict[str, Any] = {"write_class": "statement", "classification": "INTERNAL", "confidence": 0.6}


@pytest.fixture
def readers(tmp_path: Path) -> Readers:
    return tiny_readers(tmp_path / "weights", contradicts=CONTRADICTS, entails=SAME)


def remembered(fabric: Fabric, people: People, text: str, **fields: Any) -> str:
    item = propose(fabric, people, text, **fields)
    done = fabric.queue.approve(people.reviewer, item.proposal_id)
    assert done.memory_id is not None
    return done.memory_id


def propose(fabric: Fabric, people: People, text: str, **fields: Any) -> Proposal:
    return proposed(fabric, people.run(None), **TEXT | {"text": text} | fields)


@pytest.mark.rule("CTR-2", "CTR-3")
def test_what_only_the_judge_finds_opens_a_contradiction_with_its_score_and_waits_for_a_person(
    reading: ReadingOpener, people: People, readers: Readers
) -> None:
    with reading() as fabric:
        old = remembered(fabric, people, "The staff newsletter goes out weekly.")
        new = propose(fabric, people, "We send our staff newsletter monthly.")
        assert new.contradiction_check.contradicted == (old,)
        assert "contradiction" in new.human_reasons
        assert new.candidate.language == readers.version
        (found,) = fabric.contradictions.list(people.reviewer)
        assert found.reason == "judge 0.99 of 0.80"
        assert [one["reason"] for one in event_data(fabric, people, "contradiction")] == ["judge 0.99 of 0.80"]


@pytest.mark.rule("CTR-2")
def test_without_the_judge_the_rules_do_not_find_it(fabric: Fabric, people: People) -> None:
    remembered(fabric, people, "The staff newsletter goes out weekly.")
    assert propose(fabric, people, "We send our staff newsletter monthly.").contradiction_check.contradicted == ()


@pytest.mark.rule("CTR-2", "REV-9")
def test_the_judge_reads_neighbours_below_the_threshold_down_to_the_packs_similarity(
    reading: ReadingOpener, people: People
) -> None:
    far = ("Invoices for the Munich office are printed weekly.", "In Munich they sort out billing monthly.")
    with reading() as fabric:
        old = remembered(fabric, people, far[0])
        assert propose(fabric, people, far[1]).contradiction_check.contradicted == (old,)


@pytest.mark.rule("CTR-2")
def test_nothing_below_the_packs_similarity_is_read(reading: ReadingOpener, people: People) -> None:
    far = ("Invoices for the Munich office are printed weekly.", "In Munich they sort out billing monthly.")
    with reading("memory_layer: {contradiction: {judge: {similarity: 0.6}}}\n") as fabric:
        remembered(fabric, people, far[0])
        assert propose(fabric, people, far[1]).contradiction_check.contradicted == ()


@pytest.mark.rule("CTR-2")
@pytest.mark.parametrize(
    "other",
    [
        "Is our staff newsletter sent monthly?",
        "Thanks, monthly newsletter!",
        "Globex sends its staff newsletter monthly.",
    ],
)
def test_questions_greetings_and_other_subjects_are_not_read(
    reading: ReadingOpener, people: People, other: str
) -> None:
    with reading() as fabric:
        remembered(fabric, people, "Initech sends its staff newsletter weekly.")
        assert propose(fabric, people, other).contradiction_check.contradicted == ()


@pytest.mark.rule("CTR-2")
def test_long_texts_that_share_hardly_a_word_are_not_read(reading: ReadingOpener, people: People) -> None:
    one = "The weekly paintings of my kids at the beach had such kind words from all our friends that we framed them."
    other = "My charity race with friends from work went well, and the monthly training in the hills is going on."
    with reading() as fabric:
        remembered(fabric, people, one)
        assert propose(fabric, people, other).contradiction_check.contradicted == ()


@pytest.mark.rule("CTR-2")
def test_texts_about_two_subjects_are_not_read(reading: ReadingOpener, people: People) -> None:
    with reading() as fabric:
        remembered(fabric, people, "The newsletter is wanted weekly.", subject="customer:c_1")
        new = propose(fabric, people, "The newsletter is wanted monthly.", subject="customer:c_2")
        assert new.contradiction_check.contradicted == ()


@pytest.mark.rule("CAN-15", "CTR-2")
def test_a_score_within_the_margin_asks_a_person_and_opens_nothing(reading: ReadingOpener, people: People) -> None:
    with reading() as fabric:
        remembered(fabric, people, "The staff newsletter goes out weekly.")
        new = propose(fabric, people, "We send our staff newsletter perhaps monthly.")
        assert "near_threshold" in new.human_reasons
        assert new.contradiction_check.contradicted == ()
        assert fabric.contradictions.list(people.reviewer) == []


AUTO_RESOLVE = """
memory_layer:
  classes:
    statement: {auto_resolve: {margin: 0.0, fresher_evidence: false}}
"""


@pytest.mark.rule("CTR-4")
def test_the_judge_alone_never_replaces_a_memory(reading: ReadingOpener, people: People, clock: FakeClock) -> None:
    with reading(AUTO_RESOLVE) as fabric:
        old = remembered(fabric, people, "The staff newsletter goes out weekly.")
        clock.advance(hours=1)
        remembered(fabric, people, "We send our staff newsletter monthly.", confidence=0.7)
        (found,) = fabric.contradictions.list(people.reviewer)
        assert (found.existing, found.open) == (old, True)


@pytest.mark.rule("CTR-4")
def test_a_pack_that_trusts_the_judge_lets_its_rules_settle_what_the_judge_finds(
    reading: ReadingOpener, people: People, clock: FakeClock
) -> None:
    pack = AUTO_RESOLVE + "  contradiction: {judge: {trusted: true}}\n"
    with reading(pack) as fabric:
        remembered(fabric, people, "The staff newsletter goes out weekly.")
        clock.advance(hours=1)
        remembered(fabric, people, "We send our staff newsletter monthly.", confidence=0.7)
        (found,) = fabric.contradictions.list(people.reviewer, closed=True)
        assert found.outcome == "superseded"


@pytest.mark.rule("REV-7")
def test_a_duplicate_needs_the_judge_the_vectors_and_the_words(reading: ReadingOpener, people: People) -> None:
    with reading() as fabric:
        old = remembered(fabric, people, "A refund for damaged goods is paid out by the Berlin office.")
        near = propose(fabric, people, "The Berlin office pays out the refund for goods that got damaged.")
        assert (near.contradiction_check.verdict, near.contradiction_check.existing) == ("duplicate", old)
        far = propose(fabric, people, "Nobody asked about a refund this week.")
        assert far.contradiction_check.verdict == "no_conflict"
        other = propose(fabric, people, "A refund for 3 damaged goods is paid out by the Berlin office.")
        assert other.contradiction_check.verdict == "no_conflict"


@pytest.mark.rule("CTR-2", "PRO-1")
def test_what_arose_while_a_proposal_waited_is_judged_at_the_approval(reading: ReadingOpener, people: People) -> None:
    with reading() as fabric:
        one, other = (
            propose(fabric, people, text)
            for text in ("The staff newsletter goes out weekly.", "We send our staff newsletter monthly.")
        )
        first = fabric.queue.approve(people.reviewer, one.proposal_id).memory_id
        second = fabric.queue.approve(people.reviewer, other.proposal_id).memory_id
        (found,) = fabric.contradictions.list(people.reviewer)
        assert (found.existing, found.incoming) == (first, second)


@pytest.mark.rule("CTR-2", "REV-9")
def test_a_batch_is_judged_as_single_proposals_are(reading: ReadingOpener, people: People) -> None:
    said = [f"We send the staff newsletter of branch {number} monthly." for number in range(12)]
    with reading() as fabric:
        old = remembered(fabric, people, "The staff newsletter goes out weekly.")
        for text in said:
            fabric.capture(people.run(None), kind="statement", text=text, classification="INTERNAL")
        assert len(fabric.consolidate(people.tenant_id).proposals) == len(said)
        queue = fabric.queue.list(people.reviewer)
        assert {one.contradiction_check.contradicted for one in queue} == {(old,)}


# ---- candidates of one batch, which policy may promote together ----

AUTO = """
memory_layer:
  promotion_thresholds: {calibrate_from: 12}
  classes: {statement: {approval: auto, auto_promotion: {threshold: 0.90}}}
"""
FAR = ("Invoices for the Munich office are printed weekly.", "In Munich they sort out billing monthly.")
UNSURE = (FAR[0], "In Munich they sort out billing perhaps monthly.")
OTHERS = ("Herons nest by the mill.", "The printer wants A4 sheets.", "Bread comes from Olten.")


class Outcome(NamedTuple):
    """What became of texts: those recalled, the waiting ones, and the contradictions between them with their reasons."""

    recalled: list[str]
    waiting: list[str]
    contradictions: list[tuple[str, str, str]]


def stated(fabric: Fabric, people: People, user_id: str, *batches: Sequence[str]) -> Outcome:
    """State texts for a user in batches, and return what becomes of them."""
    texts: dict[str, str] = {}
    waiting: list[str] = []
    for batch in batches:
        capture(fabric, people, *batch, user_id=user_id)
        for proposal_id in fabric.consolidate(people.tenant_id).proposals:
            one = fabric.queue.get(people.reviewer, proposal_id)
            texts |= {proposal_id: one.candidate.text, one.memory_id or "": one.candidate.text}
            waiting += [one.candidate.text] if one.status in ("pending", "held") else []
    recalled = [one.text for one in fabric.recall(people.run(user_id), limit=100).all_records]
    found = [one for one in fabric.contradictions.list(people.reviewer) if one.proposal_id in texts]
    sides = [(texts[one.existing], texts[one.proposal_id], one.reason) for one in found]
    return Outcome(sorted(recalled), sorted(waiting), sides)


@pytest.mark.rule("CTR-2", "PRO-7", "REV-9")
@pytest.mark.parametrize("said", [FAR, (*OTHERS, *FAR), (FAR[0], *OTHERS, FAR[1]), UNSURE, OTHERS])
def test_in_one_batch_statements_are_judged_beside_each_other_as_if_they_had_come_one_by_one(
    reading: ReadingOpener, people: People, said: tuple[str, ...]
) -> None:
    with reading(AUTO) as fabric:
        prove(fabric, people)
        found = stated(fabric, people, "together", said)
        assert found == stated(fabric, people, "apart", *([text] for text in said))
    conflict = said[-1] in (FAR[1], UNSURE[1])
    assert found.waiting == ([said[-1]] if conflict else [])
    assert found.recalled == sorted(text for text in said if text not in found.waiting)
    judged = [(*FAR, "judge 0.99 of 0.80")] if FAR[1] in said else []
    assert found.contradictions == judged


@pytest.mark.rule("CTR-2", "PRO-7", "REV-13")
def test_many_approved_at_once_are_judged_beside_each_other(reading: ReadingOpener, people: People) -> None:
    with reading() as fabric:
        items = [propose(fabric, people, text) for text in (*OTHERS, *FAR)]
        done = fabric.queue.approve_many(people.reviewer, [one.proposal_id for one in items])
        assert [one.status for one in done[:4]] == ["promoted"] * 4
        assert done[4].status != "promoted"
        assert sorted(one.text for one in fabric.recall(people.run(None)).records) == sorted((*OTHERS, FAR[0]))


@pytest.mark.rule("CTR-2", "ISO-6")
def test_a_flood_in_one_batch_takes_no_more_pairs_a_candidate_than_the_pack_says(
    reading: ReadingOpener, people: People, readers: Readers, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    read_pairs = readers.read_pairs

    async def counted(pairs: Sequence[tuple[str, str]]) -> list[PairScores]:
        read.append(len(pairs))
        assert not any(text.endswith("?") for pair in pairs for text in pair)
        return await read_pairs(pairs)

    with reading(AUTO + "  contradiction: {judge: {pairs: 2, similarity: 0.0}}\n") as fabric:
        prove(fabric, people)
        monkeypatch.setattr(readers, "read_pairs", counted)
        # None of them is near to another, so policy promotes all of them together.
        found = stated(fabric, people, "flooded", [*PROOFS, *OTHERS, *(f"Is {text[:-1]}?" for text in PROOFS)])
        assert found.waiting == []
        assert 0 < max(read) <= 2 * len((*PROOFS, *OTHERS))
        read.clear()
        stated(fabric, people, "asked", [f"Where is the {text[:-1]}?" for text in (*PROOFS, *OTHERS)])
        assert sum(read) == 0, "questions are left out first"


def test_promoted_facts_on_keys_are_left_to_their_keys(reading: ReadingOpener, people: People) -> None:
    with reading() as fabric:
        key = {"entity": "customer:c_1", "predicate": "newsletter", "user_id": "cust_1"}
        promoted(fabric, people, value="weekly", **key)
        new = proposed(fabric, people.run(), **key | {"predicate": "magazine"}, value="monthly")
        assert new.contradiction_check.contradicted == ()


@pytest.mark.rule("REV-6", "SUB-3")
def test_what_was_rejected_is_refused_in_other_words_where_the_judge_is_sure(
    reading: ReadingOpener, people: People
) -> None:
    first, reworded = "Refund questions go to the desk in Bonn.", "The Bonn desk takes questions about a refund."
    other = "The Bonn desk takes questions about a parcel."
    with reading() as judging:
        item = propose(judging, people, first)
        judging.queue.reject(people.reviewer, item.proposal_id, reason="hearsay")
        assert refused(judging, people.run(None), **TEXT, text=reworded).reason == "rejected_before"
        assert propose(judging, people, other).status == "pending"


@pytest.mark.rule("CTR-2", "REV-7")
def test_texts_that_differ_in_one_word_are_no_duplicates_by_the_judges_word_alone(
    reading: ReadingOpener, people: People
) -> None:
    with reading() as fabric:
        remembered(fabric, people, "A refund for damaged goods is paid out by the Berlin office.")
        new = propose(fabric, people, "A refund for returned goods is paid out by the Berlin office.")
        assert (new.status, new.duplicate_check) == ("pending", None)
        assert "near_threshold" in new.human_reasons
