"""Stories that the state machine rarely generates: each step by step, with all checks after each."""

from datetime import timedelta

import pytest

from tests.scenarios.conftest import FRESHER, NOW, Story
from tests.scenarios.world import ENTITIES, FIRST, LAX, MAIL, NARROW, STRICT, Place

U1, U2 = Place(user="u1"), Place(user="u2")
THIRTY, FOURTEEN = "Returns are accepted within 30 days.", "Returns are accepted within 14 days."
OUTCOME = {"write_class": "decision_outcome", "confidence": 0.8}


def agreed(story: Story, lasts: int | None = 40, predicates: tuple[str, ...] = ("*",)) -> None:
    story.then(story.grant, tenant=0, subject=ENTITIES[0], predicates=predicates, lasts=lasts)


@pytest.mark.rule("REV-6")
def test_what_was_rejected_is_refused_until_it_is_lifted_or_forgotten(story: Story) -> None:
    story.say("mail", then=None)
    story.then(story.reject, which=0)
    for after, entered in ((None, False), (179, False), (180, True)):
        before = len(story.queue)
        story.then(story.insist, which=0, after=after, elsewhere=None)
        assert (len(story.queue) > before) is entered
    story.then(story.reject, which=0)
    story.then(story.insist, which=1, after=None, elsewhere=U1)
    story.then(story.insist, which=1, after="lifted", elsewhere=None)
    assert story.statuses == ["rejected", "rejected", "pending"]


@pytest.mark.every_interface
@pytest.mark.rule("REV-6")
def test_what_was_rejected_for_one_user_is_not_for_others(story: Story) -> None:
    story.say("mail", then=None, place=U1)
    story.then(story.reject, which=0)
    for place in (U1, U2, Place()):
        story.then(story.insist, which=0, after=None, elsewhere=place)
    assert story.statuses == ["rejected", "pending", "pending"]


@pytest.mark.every_interface
@pytest.mark.rule("REV-6", "CTR-3", "CTR-5")
def test_what_is_blocked_may_come_again_and_what_is_rejected_disputes_nothing(story: Story) -> None:
    story.say("mail")
    story.say("phone", then=None)
    story.settle("block")
    story.say("phone", then=None)
    story.then(story.reject, which=0)
    assert story.outcomes == ["blocked", "rejected"]


@pytest.mark.rule("CON-2", "CON-3", "CON-4")
def test_a_consent_that_runs_out_hides_then_buries_and_a_renewal_keeps(story: Story) -> None:
    agreed(story, lasts=1)
    story.say(MAIL)
    story.then(story.renew, which=0, lasts=40)
    story.then(story.wait, by={"days": 1})
    assert story.shown(classification_allowed={"PII"}) == ["[EMAIL]"]
    story.say("phone", then=None, label="PII")
    story.then(story.lapse, which=0, short=timedelta(minutes=1), swept=False)
    story.then(story.lapse, which=0, short=NOW, swept=False)
    assert story.shown(classification_allowed={"PII"}) == []
    story.ok()

    story.then(story.revoke, which=1, swept=True)
    assert story.ends == ["consent_revoked"] and story.outcomes == ["consent_revoked"]
    agreed(story)
    story.say("phone", label="PII")
    assert story.shown(classification_allowed={"PII"}) == ["phone"]


@pytest.mark.rule("CON-2", "PRO-1")
def test_a_consent_covers_what_it_names_and_is_looked_at_again_at_the_promotion(story: Story) -> None:
    agreed(story, predicates=("channel",))
    story.say("mail", label="PII", predicate="language")
    story.tell(THIRTY, label="PII", about=ENTITIES[0])
    assert story.queue == []
    story.say("mail", label="PII")
    story.say("phone", label="PII", then=None)
    assert story.shown() == ["mail"]
    story.then(story.revoke, which=0, swept=False)
    story.ok()
    assert story.statuses == ["promoted", "pending"] and story.shown() == []


@pytest.mark.rule("REV-7", "REV-8", "CON-2")
def test_duplicates_come_back_through_the_gates_when_a_memory_was_wrong(story: Story) -> None:
    agreed(story)
    story.say("mail")
    story.then(story.repeat, which=0)
    story.say("mail", label="PII")
    story.say("phone", then=None)
    assert story.statuses == ["promoted", "duplicate", "duplicate", "pending"]
    story.then(story.revoke, which=0, swept=False)
    story.then(story.retract, which=0, reason="wrong")
    assert story.statuses[4:] == ["pending"] and story.outcomes == ["retracted"]


@pytest.mark.rule("REV-7", "CTR-3")
def test_a_duplicate_found_at_the_approval_disputes_nothing(story: Story) -> None:
    story.say("mail", place=U2)
    story.say("phone", then=None)
    story.say("phone", then=None)
    story.ok()
    assert story.statuses == ["promoted", "promoted", "duplicate"] and story.outcomes == [None, "duplicate"]


@pytest.mark.rule("CTR-5", "CTR-6", "REC-1", "REC-4")
@pytest.mark.parametrize("incoming", [None, "clara"])
def test_both_sides_stand_each_where_its_region_is_named(story: Story, incoming: str | None) -> None:
    story.say("mail")
    story.say("phone", then=incoming)
    story.then(story.coexist, which=0, who="boris", here="de")
    assert [story.shown(qualifiers=said) for said in ({}, {"region": "de"}, {"region": "us"})] == [
        [],
        ["mail"],
        ["phone"],
    ]
    story.say("post", place=Place(region="us"))
    story.then(story.coexist, which=0, who="boris", here="de")
    assert story.outcomes == ["coexist", None]
    story.say("fax", place=Place(region="de"), then=None)
    story.ok(victim=0)
    story.then(story.correct_memory, which=1, value="mail", sentence=THIRTY, then="clara")
    assert story.shown(qualifiers={"region": "de"}) == ["fax"]
    story.correct("phone")
    assert story.shown() == ["phone"]


@pytest.mark.rule("CTR-4")
@pytest.mark.parametrize(
    ("old", "new", "replaces"),
    [
        ({}, {"age": FRESHER}, True),
        ({}, {"age": NOW}, False),
        ({}, {"age": FRESHER, "confidence": 0.6}, False),
        ({"label": "PII"}, {"age": FRESHER}, False),
        ({"label": "PII"}, {"age": FRESHER, "label": "PII"}, True),
        ({"place": U1}, {"age": FRESHER}, True),
        ({}, {"age": FRESHER, "place": U1}, False),
    ],
)
def test_a_class_settles_itself_when_surer_fresher_as_wide_and_no_lower(
    story: Story, old: dict[str, object], new: dict[str, object], replaces: bool
) -> None:
    agreed(story)
    story.say("mail", confidence=0.6, **old)
    story.say("phone", then=None, **{**OUTCOME, **new})
    story.ok()
    assert story.ends == ["superseded" if replaces else None, None]


@pytest.mark.rule("CTR-4", "COR-1", "COR-2", "PRO-5")
def test_a_correction_wins_on_its_key_and_yields_to_corrections_alone(story: Story) -> None:
    agreed(story)
    story.say("mail", confidence=0.8)

    story.correct("phone", then="olga")
    story.ok(who="olga")
    story.ok(who="boris")
    assert story.shown() == ["phone"]
    story.say("post", age=FRESHER, **OUTCOME)
    story.settle("supersede")
    story.settle("supersede", keep="existing")
    story.say("post", then=None)
    story.ok(victim=1)
    story.settle("supersede")
    story.then(story.correct_memory, which=1, value="mail", sentence=THIRTY, then="boris")
    story.correct("phone", label="PII")
    assert story.shown(classification_allowed={"PII"}) == ["phone"]
    story.say("mail", predicate="tag")
    story.correct("phone", predicate="tag")
    assert [record.value for record in story.fabric.recall(story.people[0].run(None)).records][:1] == ["phone"]


@pytest.mark.rule("REV-4", "RED-3", "CAN-4")
def test_who_wrote_or_edited_it_does_not_approve_it_and_an_edit_does_not_lower_it(story: Story) -> None:
    agreed(story)
    story.tell(THIRTY, by_operator=True, then="olga")
    story.then(story.edit, which=0, who="boris", value="mail", sentence=FOURTEEN, raised=False)
    story.ok(who="boris")
    story.ok(who="olga")
    story.ok(who="clara")
    story.say(MAIL, then=None)
    story.then(story.edit, which=0, who="boris", value="phone", sentence=THIRTY, raised=False)
    story.ok(who="boris")
    assert story.statuses == ["edited", "promoted", "edited", "pending"]
    story.ok(who="clara")
    assert [memory.fact.label for memory in story.oracle[0].memories.values()] == ["INTERNAL", "PII"]


@pytest.mark.rule("PRO-5", "CTR-5")
def test_nothing_is_superseded_by_what_is_narrower_or_lower(story: Story) -> None:
    agreed(story)
    story.say("mail", label="PII")
    story.say("phone", then=None)
    story.ok(victim=0)
    story.settle("supersede")
    story.ok()
    story.settle("supersede")
    story.settle("supersede", keep="existing")
    assert story.ends == [None, "superseded"]
    story.say("phone", then=None, label="PII", place=U1)
    story.ok(victim=0)
    story.settle("supersede")
    story.ok()
    story.settle("supersede")
    assert story.outcomes[-1] is None
    story.settle("retract")
    assert story.ends == ["wrong", "superseded", None]


@pytest.mark.rule("CTR-4", "CTR-5", "REV-1")
@pytest.mark.parametrize("story", ["mark_both", "hold", "block"], indirect=True)
def test_the_pack_says_what_an_approval_without_a_resolution_is(story: Story) -> None:
    story.say("mail")
    story.say("tag one", predicate="tag")
    story.say("tag two", predicate="tag")
    story.say("phone", then=None)
    story.edit(which=0, who="boris", value="post", sentence=THIRTY, raised=False)
    story.ok()
    story.say("phone", place=U1)
    if any(proposal.waits for proposal in story.queue):
        story.settle("retract")
        story.ok()
    expected = {"mark_both": "promoted", "hold": "promoted", "block": "blocked"}[story.oracle[0].unresolved]
    assert story.statuses[4] == expected and story.outcomes[0] == "edited"


@pytest.mark.rule("CTR-2", "CTR-6", "REV-7", "REC-3")
def test_sentences_repeat_and_contradict_each_other_where_they_are_of_one(story: Story) -> None:
    story.tell(THIRTY, about=ENTITIES[0])
    story.tell(FOURTEEN, about=ENTITIES[1], then=None)
    assert story.outcomes == []
    story.then(story.reject, which=0)
    story.tell("returns are accepted within 30 days")
    story.tell("The office is closed on Sunday.")
    story.tell(FOURTEEN, about=ENTITIES[0])
    story.say("mail", confidence=0.4)
    assert story.statuses == ["promoted", "rejected", "duplicate", "promoted", "promoted", "promoted"]
    assert story.outcomes == [None]
    story.tell(THIRTY, by_operator=True, place=U1)
    story.tell("The office is open on Sunday.", by_operator=True)
    assert story.ends == [None, "superseded", None, None, None, None]
    story.then(story.correct_memory, which=0, value="mail", sentence="The office is closed on Sunday.", then="boris")


@pytest.mark.rule("CTR-1", "PRO-4", "CON-3")
def test_what_has_expired_or_lost_its_consent_contradicts_nothing(story: Story) -> None:
    agreed(story, lasts=1)
    story.say("mail", write_class="decision_outcome")
    story.say("phone", label="PII", predicate="language")
    story.say("post", then=None)
    story.then(story.wait, by={"days": 31})
    story.say("phone")
    story.say("post", predicate="language")
    story.ok()
    assert story.outcomes == [None, None] and story.shown() == ["phone", "post", "post"]


@pytest.mark.rule("COR-1", "PRO-5")
def test_a_correction_takes_the_place_of_its_target_whatever_it_says(story: Story) -> None:
    story.say("mail", predicate="tag", place=U1)
    story.then(story.correct_memory, which=1, value="phone", sentence=THIRTY, then="clara")
    story.tell(THIRTY, place=U2)
    story.then(story.correct_memory, which=1, value="mail", sentence="The office is closed on Sunday.", then="clara")
    assert story.shown(user="u1") == ["phone"] and story.shown(user="u2") == ["The office is closed on Sunday."]


@pytest.mark.rule("CTR-6", "REV-9")
def test_all_that_a_fact_contradicts_is_opened_and_what_meets_through_others_is_one_conflict(story: Story) -> None:
    story.say("mail", place=U1)
    story.say("post", place=U2)
    story.say("phone", then=None)
    assert story.outcomes == [None, None]
    story.ok(tier="durable")
    story.say("post", place=U1, then=None)
    story.ok()
    assert story.outcomes == [None] * 4
    story.settle("supersede", keep="incoming", which=3)
    story.settle("retract", keep="existing")
    assert None in story.outcomes


@pytest.mark.rule("CTR-3", "CTR-4", "PRO-1")
def test_what_arose_while_a_correction_waited_is_in_dispute_before_it_goes(story: Story) -> None:
    story.correct("phone", then=None)
    story.say("mail")
    story.ok(who="boris")
    assert story.outcomes == ["corrected"] and story.ends == ["corrected", None]


@pytest.mark.rule("CTR-4", "CTR-5")
@pytest.mark.parametrize("story", ["hold", "block"], indirect=True)
def test_standing_beside_one_memory_settles_nothing_with_another(story: Story) -> None:
    story.say("mail", place=U1)
    story.say("post", place=U2)
    story.say("phone", then=None)
    story.then(story.coexist, which=0, who="boris", here="de")
    story.settle("supersede")
    assert story.outcomes == [None, None]
    story.settle("retract")
    story.then(story.coexist, which=0, who="boris", here="de")
    assert story.outcomes == ["retracted", "coexist"]


@pytest.mark.rule("CON-2", "CON-4")
def test_a_consent_renewed_at_the_moment_it_was_swept_begins_anew(story: Story) -> None:
    agreed(story, lasts=1)
    story.say("mail", label="PII")
    story.then(story.lapse, which=0, short=NOW, swept=True)
    story.then(story.renew, which=0, lasts=40)
    story.say("mail", label="PII")
    assert story.ends == ["consent_revoked", None] and story.shown() == ["mail"]


@pytest.mark.rule("REV-7")
def test_what_others_may_not_see_or_what_goes_sooner_stands_for_nothing(story: Story) -> None:
    agreed(story)
    story.say("mail", label="PII")
    story.say("mail")
    story.say("mail", label="PII")
    story.say("post", predicate="tag", write_class="decision_outcome")
    story.say("post", predicate="tag")
    story.say("post", predicate="tag", write_class="decision_outcome")
    assert story.statuses == ["promoted", "promoted", "duplicate"] * 2


@pytest.mark.rule("CON-3", "CTR-1", "REV-7")
def test_what_is_hidden_and_may_come_back_is_contradicted_and_not_repeated(story: Story) -> None:
    agreed(story)
    story.say("mail", label="PII")
    story.then(story.renew, which=0, lasts=1)
    story.then(story.wait, by={"days": 1})
    agreed(story)
    story.say("mail", label="PII")
    story.say("phone", label="PII", then=None)
    assert story.statuses == ["promoted", "promoted", "pending"] and story.outcomes == [None, None]
    assert story.shown() == ["mail"]


@pytest.mark.rule("COR-1", "CTR-5")
def test_a_correction_of_one_side_leaves_the_other_as_it_is(story: Story) -> None:
    story.say("mail")
    story.say("phone")
    story.then(story.coexist, which=0, who="boris", here="de")
    story.then(story.correct_memory, which=2, value="post", sentence=THIRTY, then="clara")
    assert [story.shown(qualifiers={"region": region}) for region in ("de", "us")] == [["post"], ["phone"]]


@pytest.mark.every_interface
@pytest.mark.rule("PAC-4", "PAC-5", "PAC-9")
def test_a_narrower_pack_hides_what_a_pinned_one_does_not_bring_back(story: Story) -> None:
    agreed(story)
    story.say(MAIL)
    story.say("post", predicate="language")
    story.then(story.activate, tenant=0, version=NARROW, registered=True)
    assert story.shown() == ["post"]
    for version in (FIRST, STRICT, LAX):
        story.then(story.pin, tenant=0, version=version, user=None)
    story.then(story.register, tenant=0, version=STRICT)
    story.then(story.pin, tenant=0, version=STRICT, user=None)
    story.then(story.retire, tenant=0, version=FIRST)
    story.then(story.pin, tenant=0, version=FIRST, user=None)
    story.then(story.retire, tenant=0, version=NARROW)
    story.then(story.activate, tenant=0, version=LAX, registered=True)
    assert story.shown() == ["[EMAIL]", "post"]


@pytest.mark.every_interface
@pytest.mark.rule("PAC-9")
def test_what_waits_is_judged_by_the_pack_in_force_when_it_is_decided(story: Story) -> None:
    story.say("mail", then=None, confidence=0.6)
    story.say("post", then=None, predicate="language", confidence=0.8)
    story.then(story.activate, tenant=0, version=STRICT, registered=True)
    story.ok()
    story.ok()
    assert story.statuses == ["withdrawn", "promoted"]
    story.say("phone", then=None, confidence=0.6)
    assert story.statuses == ["withdrawn", "promoted"]
    story.then(story.activate, tenant=0, version=FIRST, registered=True)
    story.say("phone", confidence=0.6)
    assert story.shown() == ["phone", "post"]
