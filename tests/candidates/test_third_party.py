"""What is said of somebody else in a special category: marked, and with that person's consent only (CAN-16)."""

from typing import Any

import pytest

from muniment import Fabric
from muniment.testing import People
from tests.candidates.third_parties import NOTE, OWN, gate, grant
from tests.stories import proposed, refused

# ---- whose words they are, and of whom they speak ----


@pytest.mark.rule("CAN-16", "CON-2")
@pytest.mark.parametrize(
    "text",
    [
        "My sister has diabetes",
        "Tom Miller is Muslim",
        "My boss votes for the Greens and he is on parole",
        "She has HIV",
        "Meine Schwester hat Diabetes",
        "Mein Chef ist schwul",
        "My husband and I are Catholic",
        "The customer was convicted of fraud",
    ],
)
def test_the_speakers_consent_does_not_count_for_what_the_speaker_says_of_somebody_else(
    fabric: Fabric, people: People, text: str
) -> None:
    grant(fabric, people, "user:joanna")
    for subject in (None, "user:joanna", "customer:joanna"):
        no = refused(fabric, people.run("joanna"), **OWN, text=text, subject=subject)
        assert (no.gate, no.reason) == ("consent", "third_party")
    assert fabric.queue.list(people.reviewer) == []


@pytest.mark.rule("CAN-16", "CON-2")
@pytest.mark.parametrize("user", ["anna_miller", "amiller"])
def test_who_shares_only_a_family_name_with_the_speaker_is_somebody_else(
    fabric: Fabric, people: People, user: str
) -> None:
    grant(fabric, people, f"user:{user}")
    no = refused(fabric, people.run(user), **OWN, text="Tom Miller is Muslim")
    assert (no.gate, no.reason) == ("consent", "third_party")


@pytest.mark.rule("CAN-16", "CON-2")
def test_a_record_of_another_name_is_not_about_a_subject_whose_id_is_made_of_a_name(
    fabric: Fabric, people: People
) -> None:
    grant(fabric, people, "user:joanna")
    no = refused(fabric, people.service, **NOTE, text="Ben Carter is Muslim", subject="user:joanna")
    assert (no.gate, no.reason) == ("consent", "third_party")


@pytest.mark.rule("CAN-16", "CON-2")
@pytest.mark.parametrize(
    ("fact", "reason"),
    [
        ({"entity": "user:joanna", "predicate": "brother_diagnosis", "value": "HIV"}, "third_party"),
        ({"entity": "user:joanna", "predicate": "known", "value": {"brother": {"diagnosis": "HIV"}}}, "third_party"),
        ({"entity": "colleague:tom", "predicate": "religion", "value": "muslim"}, "third_party"),
    ],
)
def test_a_fact_on_a_key_that_names_somebody_else_is_about_them(
    fabric: Fabric, people: People, fact: dict[str, Any], reason: str
) -> None:
    grant(fabric, people, "user:joanna")
    said = {"write_class": "preference", "kind": "message", "subject": "user:joanna", **fact}
    no = refused(fabric, people.run("joanna"), **said)
    assert (no.gate, no.reason) == ("consent", reason)


@pytest.mark.rule("CAN-13")
def test_invisible_characters_hide_nothing_from_the_rules(fabric: Fabric, people: People) -> None:
    grant(fabric, people, "user:joanna")
    no = refused(fabric, people.run("joanna"), **OWN, text="Tom Miller is Mus\u200blim")
    assert (no.gate, no.reason) == ("consent", "third_party")


@pytest.mark.rule("CAN-13", "CAN-16", "CON-2")
@pytest.mark.parametrize(
    "text", ["I have diabetes", "My diabetes got worse", "I'm gay", "Ich bin Muslim", "We are Jewish"]
)
def test_what_the_speaker_says_of_themselves_is_sensitive_and_takes_the_speakers_consent(
    fabric: Fabric, people: People, text: str
) -> None:
    run = people.run("joanna")
    assert refused(fabric, run, **OWN, text=text).reason == "consent_missing"
    consent = grant(fabric, people, "user:joanna")
    item = proposed(fabric, run, **OWN, text=text)
    assert (item.candidate.classification, item.candidate.consent_id) == ("PII", consent)
    assert not item.third_party
    assert "third_party" not in item.human_reasons


@pytest.mark.rule("CAN-16", "CON-2")
def test_what_is_said_of_somebody_else_passes_with_the_consent_of_that_person_as_the_captures_subject(
    fabric: Fabric, people: People
) -> None:
    said: dict[str, Any] = {**OWN, "text": "My sister has diabetes", "subject": "user:anna"}
    grant(fabric, people, "user:joanna")
    assert refused(fabric, people.run("joanna"), **said).reason == "consent_missing"
    consent = grant(fabric, people, "user:anna")
    item = proposed(fabric, people.run("joanna"), **said)
    assert (item.candidate.third_party, item.third_party) == (True, True)
    assert (item.candidate.subject, item.candidate.consent_id) == ("user:anna", consent)
    assert {"third_party", "sensitive"} <= set(item.human_reasons)
    assert gate(item, "classification") == "special_category PII, HEALTH, third_party"
    assert [one.proposal_id for one in fabric.queue.list(people.reviewer, reason="third_party")] == [item.proposal_id]
    assert fabric.queue.counts(people.reviewer).by_reason["third_party"] == 1


@pytest.mark.rule("CAN-16", "CON-2")
def test_one_consent_does_not_cover_two_persons(fabric: Fabric, people: People) -> None:
    grant(fabric, people, "user:anna")
    said: dict[str, Any] = {**OWN, "subject": "user:anna"}
    one = "My sister Anna has diabetes. She takes insulin, and Anna is pregnant."
    assert proposed(fabric, people.run("joanna"), **said, text=one).third_party
    two = "My sister has diabetes and my boss is on parole."
    assert refused(fabric, people.run("joanna"), **said, text=two).reason == "third_party"


@pytest.mark.rule("CAN-16", "CON-5")
def test_the_consent_of_a_person_of_another_tenant_means_nothing(
    fabric: Fabric, people: People, others: People
) -> None:
    grant(fabric, others, "user:anna")
    no = refused(fabric, people.run("joanna"), **OWN, text="My sister has diabetes", subject="user:anna")
    assert no.reason == "consent_missing"


@pytest.mark.rule("CAN-16", "CON-2")
def test_a_note_about_its_subject_is_about_a_third_party_and_takes_the_subjects_consent(
    fabric: Fabric, people: People
) -> None:
    subject = "customer:c_77"
    for asker in (people.author, people.run(None)):
        for text in ("The customer is diabetic", "Customer is pregnant", "He is Muslim", "Tom Miller has HIV"):
            note: dict[str, Any] = {**NOTE, "text": text, "subject": subject, "user_id": "u_7"}
            assert refused(fabric, asker, **note).reason == "consent_missing"
    grant(fabric, people, subject)
    for asker in (people.author, people.run(None)):
        item = proposed(fabric, asker, **NOTE, text="The customer is diabetic", subject=subject, user_id="u_7")
        assert (item.third_party, item.candidate.scope.user_id) == (True, "u_7")


@pytest.mark.rule("CAN-16")
@pytest.mark.parametrize(
    "text", ["The customer's wife is diabetic", "His brother has HIV", "Die Frau des Kunden hat Krebs"]
)
def test_a_note_about_a_relative_of_its_subject_is_refused(fabric: Fabric, people: People, text: str) -> None:
    grant(fabric, people, "customer:c_77")
    no = refused(fabric, people.author, **NOTE, text=text, subject="customer:c_77", user_id="u_7")
    assert (no.gate, no.reason) == ("consent", "third_party")


@pytest.mark.rule("CAN-16")
def test_a_note_on_the_runs_own_user_names_nobody_else(fabric: Fabric, people: People) -> None:
    grant(fabric, people, "user:joanna")
    run = people.run("joanna")
    for text in ("She is allergic to nuts", "The user is pregnant", "Joanna Smith is diabetic"):
        assert proposed(fabric, run, **NOTE, text=text).third_party
    for text in ("Tom Miller is Muslim", "My sister has diabetes", "Her husband is on parole"):
        assert refused(fabric, run, **NOTE, text=text).reason == "third_party"


@pytest.mark.rule("CAN-16")
def test_the_words_of_its_subject_that_an_agent_notes_down_are_not_about_a_third_party(
    fabric: Fabric, people: People
) -> None:
    grant(fabric, people, "customer:c_77")
    item = proposed(fabric, people.run(None), **NOTE, text="I need insulin", subject="customer:c_77")
    assert (item.third_party, item.candidate.classification) == (False, "PII")


@pytest.mark.rule("CAN-16")
def test_a_record_that_nobody_states_is_not_about_a_third_party(fabric: Fabric, people: People) -> None:
    grant(fabric, people, "customer:c_77")
    fact: dict[str, Any] = {
        "entity": "customer:c_77", "subject": "customer:c_77", "predicate": "diagnosis", "value": "diabetes",
    }  # fmt: skip
    for asker, origin in ((people.run(None), "tool:crm.lookup"), (people.service, None)):
        item = proposed(fabric, asker, **fact, origin=origin)
        assert (item.third_party, item.candidate.classification) == (False, "PII")
    for fields in ({"text": "His wife has cancer"}, {"value": "The mother of the patient is diabetic"}):
        no = refused(fabric, people.service, **{**fact, **fields})
        assert no.reason == "third_party"


@pytest.mark.rule("CAN-13", "CAN-16", "CAN-9")
def test_a_typed_fact_is_read_by_its_key_its_value_and_its_text(fabric: Fabric, people: People) -> None:
    run = people.run("joanna")
    grant(fabric, people, "user:joanna")
    own: dict[str, Any] = {"entity": "user:joanna", "kind": "message"}
    mine = proposed(fabric, run, **own, predicate="religion", value="catholic")
    assert (mine.third_party, mine.candidate.classification) == (False, "PII")
    within = proposed(fabric, run, **own, predicate="profile", value={"blood_type": "0"})
    assert within.candidate.classification == "PII"
    theirs = refused(fabric, run, **own, predicate="told_us", value="Tom Miller is Muslim")
    assert theirs.reason == "third_party"
    noted = proposed(fabric, run, entity="user:joanna", predicate="allergic_to", value="nuts")
    assert noted.third_party
    of_tom: dict[str, Any] = {"entity": "person:tom", "subject": "user:joanna"}
    for fields in (
        {"predicate": "religion", "value": "muslim"},
        {"predicate": "told", "value": "x", "text": "He is gay"},
    ):
        assert refused(fabric, run, **of_tom, **fields).reason == "third_party"


@pytest.mark.rule("CAN-16", "CAN-2")
def test_what_an_extractor_reads_in_the_users_message_about_the_user_is_not_about_a_third_party(
    fabric: Fabric, people: People
) -> None:
    grant(fabric, people, "customer:c_77")
    said: dict[str, Any] = {"kind": "message", "text": "I'm allergic to peanuts.", "classification": "INTERNAL"}
    fabric.capture(people.run("u_7"), **said, subject="customer:c_77")
    (proposal_id,) = fabric.consolidate(people.tenant_id).proposals
    item = fabric.queue.get(people.reviewer, proposal_id)
    assert (item.candidate.text, item.third_party) == ("I'm allergic to peanuts.", False)
    assert item.candidate.classification == "PII"


@pytest.mark.rule("CAN-16")
def test_what_is_no_special_category_is_not_marked(fabric: Fabric, people: People) -> None:
    for text in (
        "My sister has a cat",
        "Tom Miller is late",
        "My boss lives in Rome",
        "Our clinic has cancer treatments",
    ):
        item = proposed(fabric, people.run("joanna"), **OWN, text=text)
        assert (item.third_party, item.candidate.classification) == (False, "INTERNAL")


@pytest.mark.rule("CAN-13", "CAN-16", "CON-2")
@pytest.mark.parametrize(
    "text",
    [
        "I'm diabetic and so is Tom",
        "I'm HIV positive, as is my husband",
        "I have an autistic son",
        'Lisa said "I have cancer"',
        "Everyone in my flat has HIV",
        "tom has hiv",
        "brother = cancer",
    ],
)
def test_the_speakers_consent_does_not_count_for_whoever_is_named_beside_them(
    fabric: Fabric, people: People, text: str
) -> None:
    grant(fabric, people, "user:joanna")
    no = refused(fabric, people.run("joanna"), **OWN, text=text)
    assert (no.gate, no.reason) == ("consent", "third_party")


@pytest.mark.rule("CAN-13", "CAN-16")
def test_the_name_of_who_speaks_is_read_like_the_text(fabric: Fabric, people: People) -> None:
    grant(fabric, people, "user:joanna")
    run = people.run("joanna")
    for name, reason in (
        ("Ana", None),
        ("My sister Ana who has HIV", "third_party"),
        ("Ana (HIV positive)", "third_party"),
    ):
        said = {"role": "user", "name": name, "content": "My cat is called Felix and she is 3."}
        fabric.capture(run, kind="message", payload=said, classification="INTERNAL")
        done = fabric.consolidate(people.tenant_id)
        found = fabric.refusals.list(people.reviewer)
        assert bool(done.proposals) == (reason is None), name
        assert reason is None or found[0].reason == reason


@pytest.mark.rule("CAN-16")
@pytest.mark.parametrize("name", ["Eve", "\U0001f469\u200d\U0001f4bb Eve", "Eve " + "x" * 90, "\u200b\u2060"])
def test_whoever_speaks_under_another_name_speaks_of_themselves(fabric: Fabric, people: People, name: str) -> None:
    grant(fabric, people, "user:joanna")
    said = {"role": "user", "name": name, "content": "I have diabetes."}
    fabric.capture(people.run("joanna"), kind="message", payload=said, classification="INTERNAL")
    assert not fabric.consolidate(people.tenant_id).proposals
    assert fabric.refusals.list(people.reviewer)[0].reason == "third_party"


# ---- values that say it by themselves ----


@pytest.mark.rule("CAN-13", "CON-2")
@pytest.mark.parametrize("value", ["type 2 diabetes", ["rye", "Epilepsie"], {"note": "asthma"}])
@pytest.mark.parametrize("predicate", ["note", "suffers_from"])
def test_a_diagnosis_as_the_value_of_any_field_of_a_person_takes_consent(
    fabric: Fabric, people: People, predicate: str, value: Any
) -> None:
    fact = {"entity": "customer:cust_1", "subject": "customer:cust_1", "predicate": predicate, "value": value}
    assert refused(fabric, people.service, **fact).gate == "consent"
    grant(fabric, people, "customer:cust_1")
    assert proposed(fabric, people.service, **fact).candidate.classification == "PII"
    about_a_thing = {"entity": "topic:t_1", "predicate": predicate, "value": value}
    assert proposed(fabric, people.service, **about_a_thing).candidate.classification == "INTERNAL"
