"""Approving many at once: each as on its own, in order, and none stops another."""

from collections import Counter
from typing import Any

import pytest

from muniment import Fabric, Principal
from muniment.errors import InvalidInput, RoleMissing, TooLarge
from muniment.review import verbs as queue
from muniment.testing import People, TestServer
from tests.conftest import Opener
from tests.pack_activation import acme, put_in_force
from tests.recall.batches import PII, SUBJECT, approve_all, shown, statuses_of, waiting
from tests.stories import CONSENT, remembered, submitted

# --- what becomes of each


@pytest.mark.rule("REV-5", "REV-1", "PRO-1")
def test_all_are_promoted_in_the_order_asked_for_by_a_named_person(fabric: Fabric, people: People) -> None:
    ids = waiting(fabric, people, *({"predicate": f"p{n}", "value": n} for n in range(4)))
    asked = [ids[2], ids[0], ids[3], ids[1]]
    outcomes = fabric.queue.approve_many(people.reviewer, asked, note="seen")
    assert [one.proposal_id for one in outcomes] == asked
    assert statuses_of(outcomes) == ["promoted"] * 4
    for one in outcomes:
        proposal = fabric.queue.get(people.reviewer, one.proposal_id)
        assert (proposal.status, proposal.memory_id) == ("promoted", one.memory_id)
        (verdict,) = proposal.verdicts
        assert (verdict.action, verdict.by, verdict.by_kind, verdict.note) == ("approve", "boris", "operator", "seen")
        assert one.memory_id is not None
        trail = fabric.trail(people.auditor, one.memory_id)
        assert (trail.memory.approver, trail.memory.verdict_id) == ("boris", verdict.verdict_id)
    assert shown(fabric, people) == {0, 1, 2, 3}
    promoted = [event for event in fabric.events(people.auditor) if event.type == "memory.promoted"]
    assert {event.data["memory_id"] for event in promoted} == {one.memory_id for one in outcomes}


@pytest.mark.rule("REC-2")
def test_they_are_found_by_words_and_by_meaning_like_any_other(fabric: Fabric, people: People) -> None:
    texts = ["The dog is called Biscuit.", "Parcels leave at noon.", "Invoices are paid by card."]
    ids = waiting(fabric, people, *({"predicate": f"p{n}", "value": n, "text": text} for n, text in enumerate(texts)))
    fabric.queue.approve_many(people.reviewer, ids)
    for query, best in (("puppy", 0), ("parcels", 1), ("credit cards", 2)):
        assert fabric.recall(people.run(), query).records[0].value == best


@pytest.mark.rule("REV-7", "PRO-7")
def test_what_repeats_an_earlier_one_of_them_or_a_memory_is_its_duplicate(fabric: Fabric, people: People) -> None:
    ids = waiting(
        fabric,
        people,
        {"predicate": "drinks", "value": "tea"},
        {"predicate": "drinks", "value": "tea"},
        {"write_class": "statement", "entity": None, "text": "Returns are accepted within 30 days."},
        {"write_class": "statement", "entity": None, "text": "returns are accepted within 30 days"},
        {"predicate": "eats", "value": "rye"},
    )
    original = remembered(fabric, people, "rye", predicate="eats", user_id=None)
    outcomes = fabric.queue.approve_many(people.reviewer, ids)
    assert statuses_of(outcomes) == ["promoted", "duplicate", "promoted", "duplicate", "duplicate"]
    assert [one.memory_id is None for one in outcomes] == [False, True, False, True, True]
    for n, memory_id in ((1, outcomes[0].memory_id), (3, outcomes[2].memory_id), (4, original)):
        (verdict,) = fabric.queue.get(people.reviewer, ids[n]).verdicts
        assert (verdict.action, verdict.memory_id) == ("duplicate", memory_id)


@pytest.mark.rule("CTR-3", "CTR-4", "PRO-7")
@pytest.mark.parametrize(("unresolved", "status"), [("mark_both", "promoted"), ("hold", "held"), ("block", "blocked")])
def test_what_contradicts_an_earlier_one_of_them_is_treated_as_the_pack_says(
    under: Opener, people: People, unresolved: str, status: str
) -> None:
    with under(f"memory_layer: {{contradiction: {{unresolved: {unresolved}}}}}") as fabric:
        ids = waiting(
            fabric,
            people,
            {"predicate": "drinks", "value": "tea", "text": "Green tea, please."},
            {"predicate": "drinks", "value": "milk", "text": "Nothing of the kind was said."},
            {"write_class": "statement", "entity": None, "text": "Returns are accepted within 30 days."},
            {"write_class": "statement", "entity": None, "text": "Returns are accepted within 14 days."},
            {"predicate": "other", "value": "kept", "text": "A lantern shines in Oslo."},
        )
        assert fabric.contradictions.list(people.reviewer) == []
        outcomes = approve_all(fabric, people.reviewer, ids)
        assert statuses_of(outcomes) == ["promoted", status, "promoted", status, "promoted"]
        found = {(one.existing, one.proposal_id) for one in fabric.contradictions.list(people.reviewer, closed=True)}
        assert found == {(outcomes[0].memory_id, ids[1]), (outcomes[2].memory_id, ids[3])}
        answer = fabric.recall(people.run())
        assert len(answer.conflicts) == (2 if unresolved == "mark_both" else 0)
        assert "kept" in {record.value for record in answer.records}


@pytest.mark.rule("REV-4", "AUD-3", "COR-1")
def test_nobody_approves_their_own_and_the_others_pass(fabric: Fabric, people: People) -> None:
    both = people.person("boris", "correction_writer", "reviewer")
    ids = waiting(
        fabric,
        people,
        {"predicate": "a", "value": 1, "by": both},
        {"predicate": "b", "value": 2},
        {"predicate": "c", "value": 3, "by": people.author},
    )
    outcomes = approve_all(fabric, both, ids)
    assert statuses_of(outcomes) == ["self_approval", "promoted", "promoted"]
    assert (outcomes[0].status, outcomes[0].memory_id) == ("pending", None)
    (event,) = [event for event in fabric.events(people.auditor) if event.type == "memory.security"]
    assert (event.actor, event.data["target"], event.data["code"]) == ("boris", ids[0], "self_approval")
    assert statuses_of(approve_all(fabric, people.second_reviewer, ids[:1])) == ["promoted"]


@pytest.mark.rule("REV-4")
def test_who_edited_one_does_not_approve_it(fabric: Fabric, people: People) -> None:
    ids = waiting(fabric, people, *({"predicate": name, "value": 1} for name in ("a", "b")))
    for proposal_id in ids:
        fabric.queue.override(people.second_reviewer, proposal_id, tier="durable")
    # An edit starts from its own tier.
    edited = submitted(fabric.queue.edit(people.reviewer, ids[0], value=2))
    fabric.queue.override(people.second_reviewer, edited, tier="durable")
    outcomes = approve_all(fabric, people.reviewer, [edited, ids[0], ids[1]])
    assert statuses_of(outcomes) == ["self_approval", "already_decided", "promoted"]


@pytest.mark.rule("REV-1", "REV-5")
def test_what_is_decided_already_is_reported_and_stays(fabric: Fabric, people: People) -> None:
    ids = waiting(fabric, people, *({"predicate": f"p{n}", "value": n} for n in range(4)))
    done = fabric.queue.approve(people.second_reviewer, ids[0])
    fabric.queue.reject(people.second_reviewer, ids[1], reason="hearsay")
    outcomes = fabric.queue.approve_many(people.reviewer, ids)
    assert statuses_of(outcomes) == ["already_decided", "already_decided", "promoted", "promoted"]
    assert [one.status for one in outcomes] == ["promoted", "rejected", "promoted", "promoted"]
    assert outcomes[0].memory_id == done.memory_id
    assert "clara decided this proposal" in str(outcomes[0].message)
    assert statuses_of(fabric.queue.approve_many(people.reviewer, ids)) == ["already_decided"] * 4
    assert shown(fabric, people) == {0, 2, 3}


@pytest.mark.rule("ISO-4")
def test_another_tenants_id_is_answered_like_one_that_does_not_exist(
    fabric: Fabric, people: People, others: People
) -> None:
    ids = waiting(fabric, people, {"predicate": "a", "value": 1})
    theirs = waiting(fabric, others, {"predicate": "a", "value": 1})
    outcomes = fabric.queue.approve_many(people.reviewer, [theirs[0], "mwp_0000", *ids, "mwp_%"])
    assert statuses_of(outcomes) == ["not_found", "not_found", "promoted", "not_found"]
    answers = {(one.status, one.memory_id, one.error, one.message) for one in outcomes if one.error is not None}
    assert answers == {(None, None, "not_found", "no such proposal")}
    assert fabric.queue.get(others.reviewer, theirs[0]).status == "pending"
    assert shown(fabric, others) == set()


@pytest.mark.rule("COR-2", "CTR-4", "PRO-5")
@pytest.mark.parametrize("last", [True, False])
def test_a_correction_among_them_takes_the_place_of_what_it_corrects(
    fabric: Fabric, people: People, last: bool
) -> None:
    old = remembered(fabric, people, "email")
    correction = submitted(fabric.correct(people.author, memory_id=old, value="phone"))
    rest = waiting(fabric, people, {"predicate": "prefers_channel", "value": "fax"}, {"predicate": "a", "value": 1})
    outcomes = approve_all(fabric, people.reviewer, [*rest, correction] if last else [correction, *rest])
    assert statuses_of(outcomes) == ["promoted"] * 3
    place = 2 if last else 0
    memory = fabric.get(people.auditor, old)
    assert (memory.retraction_reason, memory.superseded_by) == ("corrected", outcomes[place].memory_id)
    answer = fabric.recall(people.run())
    plain = {record.value for record in answer.records}
    in_conflict = {record.value for one in answer.conflicts for record in one.records}
    # After the fax it replaces that too; before it, the fax is disputed.
    assert (plain, in_conflict) == (({"phone", 1}, set[Any]()) if last else ({1}, {"phone", "fax"}))


@pytest.mark.rule("PRO-1", "CON-2")
def test_what_lost_its_consent_since_is_not_promotable_and_stops_no_other(fabric: Fabric, people: People) -> None:
    consent = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    ids = waiting(
        fabric,
        people,
        {"predicate": "a", "value": 1},
        {"predicate": "b", "value": 2, **PII},
        {"predicate": "c", "value": 3},
    )
    fabric.consent.revoke(people.officer, consent.consent_id)
    outcomes = approve_all(fabric, people.reviewer, ids)
    assert statuses_of(outcomes) == ["promoted", "not_promotable", "promoted"]
    assert outcomes[1].status == "pending"


@pytest.mark.rule("CON-2", "PRO-2")
def test_what_is_sensitive_rests_on_its_consent_as_alone(fabric: Fabric, people: People) -> None:
    consent = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    ids = waiting(fabric, people, *({"predicate": f"p{n}", "value": n, **PII} for n in range(2)))
    outcomes = approve_all(fabric, people.reviewer, ids)
    for one in outcomes:
        assert one.memory_id is not None
        assert fabric.get(people.auditor, one.memory_id).consent_id == consent.consent_id
    fabric.consent.revoke(people.officer, consent.consent_id)
    assert shown(fabric, people) == set()


@pytest.mark.rule("ERA-1")
def test_one_that_was_tampered_with_stops_no_other(
    fabric: Fabric, people: People, server: TestServer, database: str
) -> None:
    ids = waiting(fabric, people, *({"predicate": f"p{n}", "value": n} for n in range(3)))
    broken = fabric.queue.get(people.reviewer, ids[1]).candidate.candidate_id
    with server.connect(database) as owner:
        owner.execute("UPDATE candidates SET content = content || '\\x00' WHERE candidate_id = %s", [broken])
    assert statuses_of(fabric.queue.approve_many(people.reviewer, ids)) == ["promoted", "seal_broken", "promoted"]
    assert shown(fabric, people) == {0, 2}


def test_one_that_is_named_twice_is_approved_once(fabric: Fabric, people: People) -> None:
    ids = waiting(fabric, people, {"predicate": "a", "value": 1}, {"predicate": "b", "value": 2})
    outcomes = fabric.queue.approve_many(people.reviewer, [ids[0], ids[1], ids[0]])
    assert [one.proposal_id for one in outcomes] == ids
    assert statuses_of(outcomes) == ["promoted", "promoted"]


@pytest.mark.rule("REV-5", "PAC-9")
@pytest.mark.parametrize(("unresolved", "status"), [("block", "blocked"), ("hold", "held"), ("mark_both", "promoted")])
def test_those_made_under_several_packs_are_all_decided_by_the_one_in_force(
    fabric: Fabric, people: People, unresolved: str, status: str
) -> None:
    def under(number: int, way: str) -> None:
        put_in_force(
            fabric, people.tenant_id, acme(f"{number}.0.0", f"memory_layer: {{contradiction: {{unresolved: {way}}}}}")
        )

    remembered(fabric, people, "tea", predicate="drinks")
    ids = waiting(fabric, people, {"predicate": "drinks", "value": "beer"})
    for number, way in enumerate(("block", "hold"), start=1):
        under(number, way)
        ids += waiting(fabric, people, {"predicate": "drinks", "value": way}, {"predicate": way, "value": 1})
    under(3, unresolved)
    assert len({fabric.queue.get(people.reviewer, one).pack for one in ids}) == 3
    outcomes = statuses_of(approve_all(fabric, people.reviewer, ids))
    assert outcomes == [status, status, "promoted", status, "promoted"]


@pytest.mark.rule("REV-7", "PAC-9")
def test_the_order_holds_across_packs(fabric: Fabric, people: People) -> None:
    tea = {"predicate": "drinks", "value": "tea", "text": "Green tea, please."}
    first = waiting(fabric, people, {"predicate": "a", "value": 1, "text": "Parcels leave at noon."})
    third = waiting(fabric, people, tea)
    put_in_force(fabric, people.tenant_id, acme("1.0.0", "memory_layer: {recall_policy: {max_recalls: 6}}"))
    second = waiting(fabric, people, tea)
    outcomes = fabric.queue.approve_many(people.reviewer, [*first, *second, *third])
    assert statuses_of(outcomes) == ["promoted", "duplicate", "promoted"], "the first that was proposed"


def test_more_than_go_into_one_transaction_are_approved_in_several(
    fabric: Fabric, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "APPROVED_AT_ONCE", 2)
    values = ["tea", "milk", "tea", "rye", "oats"]
    ids = waiting(fabric, people, *({"predicate": f"p{n % 3}", "value": value} for n, value in enumerate(values)))
    outcomes = approve_all(fabric, people.reviewer, [*ids, "mwp_0000"])
    assert statuses_of(outcomes) == ["promoted"] * 5 + ["not_found"]
    assert len(fabric.contradictions.list(people.reviewer)) == 2


# --- who may, and with what


@pytest.mark.rule("REV-4", "ISO-5", "AUD-3")
def test_only_a_reviewer_may(fabric: Fabric, people: People) -> None:
    ids = waiting(fabric, people, {"predicate": "a", "value": 1})
    robot = Principal(tenant_id=people.tenant_id, id="robot", kind="system", roles={"reviewer"})
    askers: list[Any] = [people.run(), people.author, people.auditor, people.admin, people.officer, robot]
    for asker in askers:
        with pytest.raises(RoleMissing):
            fabric.queue.approve_many(asker, ids)
    assert fabric.queue.get(people.reviewer, ids[0]).status == "pending"
    assert Counter(event.type for event in fabric.events(people.auditor))["memory.security"] == len(askers)


@pytest.mark.rule("ERR-1")
@pytest.mark.parametrize(
    ("ids", "error", "field"),
    [
        ([], InvalidInput, "proposal_ids"),
        ("mwp_1", InvalidInput, "proposal_ids"),
        ([1], InvalidInput, "proposal_ids.0"),
        (["mwp_1", ""], InvalidInput, "proposal_ids.1"),
        (["mwp_1"] * 10_001, TooLarge, "proposal_ids"),
        (None, InvalidInput, "proposal_ids"),
    ],
    ids=["none", "a string", "a number", "an empty one", "too many", "nothing"],
)
def test_wrong_ids_are_refused_by_their_place(
    fabric: Fabric, people: People, ids: Any, error: type[InvalidInput], field: str
) -> None:
    with pytest.raises(error) as caught:
        fabric.queue.approve_many(people.reviewer, ids)
    assert caught.value.field == field
