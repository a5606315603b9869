"""Duplicates and contradictions of plain texts: found among all neighbours, at the queue and again at promotion."""

from typing import Any

import pytest

from muniment import Fabric, Judgement, Refusal
from muniment.language.embedding import builtin_embedder
from muniment.model.proposal import Proposal
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.stories import CONSENT, KEY, proposed

DAYS_30 = "Returns are accepted within 30 days of delivery."
DAYS_14 = "Returns are accepted within 14 days of delivery."


def said(fabric: Fabric, people: People, text: str, user: str | None = "cust_1", **fields: Any) -> Proposal:
    return proposed(fabric, people.run(user), write_class="statement", text=text, **fields)


def believed(fabric: Fabric, people: People, text: str, user: str | None = "cust_1", **fields: Any) -> str:
    done = fabric.queue.approve(people.reviewer, said(fabric, people, text, user, **fields).proposal_id)
    assert done.memory_id is not None, done.status
    return done.memory_id


@pytest.mark.rule("REV-7")
def test_two_facts_that_differ_in_a_number_are_no_duplicates_but_a_contradiction(
    fabric: Fabric, people: People
) -> None:
    first = believed(fabric, people, DAYS_30)
    other = said(fabric, people, DAYS_14)
    assert other.status == "pending"
    check = other.contradiction_check
    assert (check.verdict, check.existing) == ("contradicts", first)
    (found,) = fabric.contradictions.list(people.reviewer)
    assert (found.existing, found.proposal_id, found.incoming, found.reason) == (
        first,
        other.proposal_id,
        None,
        "quantity",
    )


@pytest.mark.rule("REV-7")
@pytest.mark.parametrize("again", [DAYS_30, DAYS_30.lower(), "  Returns are accepted   within 30 days of delivery  "])
def test_the_same_assertion_is_marked_a_duplicate_with_the_id_and_corroborates(
    fabric: Fabric, people: People, again: str
) -> None:
    first = believed(fabric, people, DAYS_30)
    repeated = said(fabric, people, again.strip())
    assert (repeated.status, repeated.duplicate_check) == ("duplicate", first)
    assert repeated.contradiction_check.verdict == "duplicate"


@pytest.mark.rule("CTR-2", "CTR-3")
@pytest.mark.parametrize(
    ("one", "other", "reason"),
    [
        (
            "The customer wants to be called in the morning.",
            "The customer does not want to be called in the morning.",
            "polarity",
        ),
        ("The contract ends on 5 March 2026.", "The contract ends on 7 March 2026.", "date"),
        ("The warehouse in Berlin is open on Saturday.", "The warehouse in Berlin is closed on Saturday.", "antonym"),
    ],
)
def test_texts_that_cannot_both_hold_are_found_with_the_reason(
    fabric: Fabric, people: People, one: str, other: str, reason: str
) -> None:
    first = believed(fabric, people, one)
    check = said(fabric, people, other).contradiction_check
    assert (check.verdict, check.existing) == ("contradicts", first)
    assert fabric.contradictions.list(people.reviewer)[0].reason == reason


@pytest.mark.rule("CTR-2", "ISO-4")
def test_texts_of_users_that_no_run_sees_together_are_not_compared(fabric: Fabric, people: People) -> None:
    believed(fabric, people, DAYS_30, "cust_1")
    assert said(fabric, people, DAYS_14, "cust_2").contradiction_check.verdict == "no_conflict"
    assert said(fabric, people, DAYS_30, "cust_2").status == "pending"
    assert said(fabric, people, DAYS_14, None).contradiction_check.verdict == "contradicts", "for all: cust_1 too"


@pytest.mark.rule("CTR-2")
def test_texts_about_different_subjects_are_not_compared(fabric: Fabric, people: People) -> None:
    believed(fabric, people, DAYS_30, None, subject="shop:berlin")
    assert said(fabric, people, DAYS_14, None, subject="shop:paris").contradiction_check.verdict == "no_conflict"
    assert said(fabric, people, DAYS_14, None, subject="shop:berlin").contradiction_check.verdict == "contradicts"


@pytest.mark.rule("CTR-2")
def test_a_plain_text_meets_a_typed_fact_by_its_words(fabric: Fabric, people: People) -> None:
    item = proposed(
        fabric, people.run(), entity="shop:main", predicate="return_days", value=30, text=DAYS_30, subject="shop:main"
    )
    typed = fabric.queue.approve(people.reviewer, item.proposal_id).memory_id
    check = said(fabric, people, DAYS_14, subject="shop:main").contradiction_check
    assert (check.verdict, check.existing) == ("contradicts", typed)


@pytest.mark.rule("REV-9")
def test_all_neighbours_are_examined_and_not_the_nearest_only(
    server: TestServer, database: str, clock: FakeClock, people: People
) -> None:
    """Seventy are nearer than the one that matters: more than one search brings."""
    far = "Returns within two weeks are accepted by the shop."
    near = [f"Returns are accepted within 14 days of delivery {number}." for number in range(70)]
    vectors = builtin_embedder().embed([DAYS_14, far, *near])
    similar = vectors[1:] @ vectors[0]
    assert 0.60 < similar[0] < min(similar[1:])

    def only_the_far_one(a: str, b: str) -> Judgement:
        return Judgement("contradicts", ("far",)) if far in (a, b) else Judgement("different", ())

    with Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS, judge=only_the_far_one) as fabric:
        facts = [
            {"kind": "statement", "text": text, "classification": "INTERNAL", "user_id": "cust_1"} for text in near
        ]
        fabric.capture_many(people.service, facts)
        waiting = fabric.consolidate(people.tenant_id).proposals
        done = fabric.queue.approve_many(people.reviewer, waiting)
        assert [one.status for one in done] == ["promoted"] * len(near)
        first = believed(fabric, people, far)
        assert said(fabric, people, DAYS_14).contradiction_check.contradicted == (first,)


@pytest.mark.rule("REV-9", "CAP-7")
def test_a_batch_finds_what_each_of_its_candidates_would_find_alone(fabric: Fabric, people: People) -> None:
    first = believed(fabric, people, DAYS_30)
    other = believed(fabric, people, "The office in Berlin closes at six.", "cust_2")
    lines = [DAYS_14, DAYS_30, *(f"Parcel {n} left the depot on day {n}." for n in range(10))]
    circumstances: dict[str, Any] = {"kind": "statement", "classification": "INTERNAL"}
    fabric.capture_many(people.service, [{"text": text, "user_id": "cust_1", **circumstances} for text in lines])
    fabric.capture(people.run("cust_2"), text="The office in Berlin closes at seven.", **circumstances)
    done = fabric.consolidate(people.tenant_id)
    assert len(done.proposals) == 13
    entered = [fabric.queue.get(people.reviewer, proposal_id) for proposal_id in done.proposals]
    items = {item.candidate.text: item for item in entered}
    assert items[DAYS_14].contradiction_check.existing == first
    assert (items[DAYS_30].status, items[DAYS_30].duplicate_check) == ("duplicate", first)
    assert items["The office in Berlin closes at seven."].contradiction_check.existing == other
    assert items["Parcel 3 left the depot on day 3."].contradiction_check.verdict == "no_conflict"


@pytest.mark.rule("CTR-2")
def test_another_judge_can_be_plugged_in(server: TestServer, database: str, clock: FakeClock, people: People) -> None:
    asked: list[tuple[str, str]] = []

    def contrary(a: str, b: str) -> Judgement:
        asked.append((a, b))
        return Judgement("contradicts", ("because",))

    with Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS, judge=contrary) as fabric:
        first = believed(fabric, people, DAYS_30)
        check = said(fabric, people, "Returns are accepted within 30 days of delivery, too.").contradiction_check
        assert (check.verdict, check.existing) == ("contradicts", first)
        assert fabric.contradictions.list(people.reviewer)[0].reason == "because"
    assert asked


@pytest.mark.rule("ERR-5")
def test_a_judge_that_raises_denies_and_stops_nothing_else(
    server: TestServer, database: str, clock: FakeClock, people: People
) -> None:
    def broken(a: str, b: str) -> Judgement:
        raise RuntimeError("the model is away")

    circumstances: dict[str, Any] = {"kind": "statement", "classification": "INTERNAL"}
    with Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS, judge=broken) as fabric:
        first = believed(fabric, people, DAYS_30)
        for text in (DAYS_14, "The office opens at nine."):
            fabric.capture(people.run(), text=text, **circumstances)
        done = fabric.consolidate(people.tenant_id)
        against, other = (fabric.queue.get(people.reviewer, proposal_id) for proposal_id in done.proposals)
        assert (against.contradiction_check.existing, other.contradiction_check.verdict) == (first, "no_conflict")
        assert fabric.contradictions.list(people.reviewer)[0].reason == "rule_failed"
        fabric.queue.reject(people.reviewer, other.proposal_id, reason="no")
        reworded = fabric.propose(
            people.run(), write_class="statement", text="At nine opens the office.", classification="INTERNAL"
        )
        assert isinstance(reworded, Refusal)
        assert (reworded.gate, reworded.reason) == ("rejection", "rule_failed")


@pytest.mark.rule("CTR-6", "REC-4")
def test_an_open_conflict_of_texts_is_recalled_as_one_set(fabric: Fabric, people: People) -> None:
    first = believed(fabric, people, DAYS_30)
    second = believed(fabric, people, DAYS_14)
    answer = fabric.recall(people.run())
    assert answer.records == ()
    (conflict,) = answer.conflicts
    assert {record.id for record in conflict.records} == {first, second}


@pytest.mark.rule("PRO-1")
def test_a_text_that_became_a_duplicate_or_a_contradiction_while_it_waited_is_found_at_its_approval(
    fabric: Fabric, people: People
) -> None:
    waiting, again, against = (
        said(fabric, people, text, user) for text, user in ((DAYS_30, None), (DAYS_30, "cust_1"), (DAYS_14, "cust_1"))
    )
    first = fabric.queue.approve(people.reviewer, waiting.proposal_id).memory_id
    assert fabric.queue.approve(people.reviewer, again.proposal_id).duplicate_check == first
    fabric.queue.approve(people.reviewer, against.proposal_id)
    (found,) = fabric.contradictions.list(people.reviewer)
    assert (found.existing, found.proposal_id) == (first, against.proposal_id)


@pytest.mark.rule("CTR-2", "REV-6")
@pytest.mark.parametrize("hidden", ["\u200b", "\u00ad", "\u2060"])
def test_what_cannot_be_seen_makes_no_other_text(fabric: Fabric, people: People, hidden: str) -> None:
    first = believed(fabric, people, "Refunds are allowed.")
    negated = said(fabric, people, f"Refunds are n{hidden}ot allowed.")
    assert negated.contradiction_check.existing == first
    assert said(fabric, people, f"Ref{hidden}unds are allowed.").duplicate_check == first
    fabric.queue.reject(people.reviewer, negated.proposal_id, reason="no")
    for again in (
        f"Refunds are not allo{hidden}wed.",
        "Refunds are n\u03bft allowed.",
        "Refunds are \U0001d5fbot allowed.",
    ):
        outcome = fabric.propose(people.run(), write_class="statement", text=again, classification="INTERNAL")
        assert isinstance(outcome, Refusal), again
        assert outcome.gate == "rejection"


@pytest.mark.rule("REV-7")
def test_nothing_that_lasts_is_lost_to_what_soon_expires_or_is_seen_by_fewer(fabric: Fabric, people: People) -> None:
    subject = "customer:cust_1"
    fabric.consent.grant(people.officer, subject=subject, **CONSENT)
    run = people.run(session_id="s1")
    item = proposed(
        fabric, run, write_class="statement", text=DAYS_30, subject=subject, classification="PII", user_id="cust_1"
    )
    assert item.tier_target == "working"
    fabric.queue.approve(people.reviewer, item.proposal_id)
    lasting = proposed(
        fabric, people.run(), write_class="statement", text=DAYS_30, subject=subject, classification="INTERNAL"
    )
    assert lasting.status == "pending"
    assert fabric.queue.approve(people.reviewer, lasting.proposal_id).status == "promoted"


@pytest.mark.rule("CTR-3", "CON-2")
def test_what_is_hidden_and_can_come_back_is_contradicted_and_not_repeated(fabric: Fabric, people: People) -> None:
    subject = "customer:cust_1"
    wide = fabric.consent.grant(people.officer, subject=subject, **CONSENT)
    secret: dict[str, Any] = {**KEY, "subject": subject, "classification": "PII"}
    item = proposed(fabric, people.run(), **secret, value="email")
    first = fabric.queue.approve(people.reviewer, item.proposal_id).memory_id
    narrow = fabric.consent.grant(
        people.officer, subject=subject, **{**CONSENT, "predicates_allowed": ["likes"]}, supersedes=wide.consent_id
    )
    assert fabric.recall(people.run()).records == ()
    assert proposed(fabric, people.run(), **KEY, value="email", subject=subject).status == "pending"
    against = proposed(fabric, people.run(), **KEY, value="phone", subject=subject)
    assert against.contradiction_check.existing == first
    fabric.queue.approve(people.reviewer, against.proposal_id)
    fabric.consent.grant(people.officer, subject=subject, **CONSENT, supersedes=narrow.consent_id)
    answer = fabric.recall(people.run())
    assert (answer.records, len(answer.conflicts)) == ((), 1)
