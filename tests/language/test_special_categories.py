"""What texts say of persons in special categories, and of whom, by the rules alone (CAN-13, CAN-16)."""

import json
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.language.special import MentionKind, categories_of_value, category_of_name, describe, find_special


def found(text: str) -> list[tuple[str, list[MentionKind]]]:
    return [(one.category, [person.kind for person in one.persons]) for one in find_special(text)]


def kinds(text: str) -> set[MentionKind]:
    return {person.kind for one in find_special(text) for person in one.persons}


@pytest.mark.rule("CAN-13")
@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("I was diagnosed with lupus two years ago.", "HEALTH"),
        ("I've been living with multiple sclerosis since college.", "HEALTH"),
        ("I need insulin every day.", "HEALTH"),
        ("I am allergic to shellfish", "HEALTH"),
        ("Ich habe seit meiner Kindheit Asthma.", "HEALTH"),
        ("Bei mir wurde Brustkrebs festgestellt.", "HEALTH"),
        ("I converted to Judaism before the wedding.", "BELIEF"),
        ("We're Hindus, so please no beef.", "BELIEF"),
        ("Ich bin aus der Kirche ausgetreten.", "BELIEF"),
        ("I usually vote for the Greens.", "POLITICS"),
        ("Ich bin Mitglied der SPD.", "POLITICS"),
        ("I came out as bisexual in 2019.", "SEXUALITY"),
        ("Ich bin schwul.", "SEXUALITY"),
        ("I joined the union last spring", "UNION"),
        ("Ich bin Gewerkschaftsmitglied.", "UNION"),
        ("My fingerprints are stored at the embassy.", "BIOMETRICS"),
        ("I served two years in prison.", "CRIMINAL"),
        ("Ich bin vorbestraft.", "CRIMINAL"),
        ("My son Tim is 6 and likes trains", "CHILD"),
        ("Unsere Tochter Mia geht in die Kita.", "CHILD"),
        ("Diagnosis: type 2", "HEALTH"),
        ("Konfession: evangelisch", "BELIEF"),
    ],
)
def test_each_category_is_found_in_plain_words(text: str, category: str) -> None:
    assert category in [one.category for one in find_special(text)]


@pytest.mark.rule("CAN-13")
@pytest.mark.parametrize(
    "text",
    [
        "Our pharmacy sells insulin and metformin.",
        "The Catholic church on Main Street is closed.",
        "Members of the union get ten percent off.",
        "Diabetes is a risk factor for heart disease.",
        "Employees who are pregnant may work from home.",
        "The fingerprint reader at gate 4 is broken.",
        "Christmas is a Christian holiday.",
        "If the customer is pregnant, offer a seat.",
        "Ask whether the patient has an allergy.",
        "Patients with diabetes need insulin.",
        "A customer who has asthma may cancel.",
        "My sister works at a cancer clinic.",
        "I read a book about autism.",
        "We are in Union Station.",
        "Ireland is Catholic.",
        "This church is Protestant.",
        "My order was charged with a fee.",
        "My name is Christian.",
        "My daughter Emma is a lawyer in Boston.",
        "Our diabetes programme starts in May.",
        "Kunden mit Allergien sollten fragen.",
        "Wer schwanger ist, darf nicht fliegen.",
        "Unsere Klinik behandelt Krebs.",
        "Die Partei tagt in Bonn.",
    ],
)
def test_what_is_said_of_nobody_in_particular_is_not_found(text: str) -> None:
    assert found(text) == []


@pytest.mark.rule("CAN-16")
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("I'd rather not say, but I have hepatitis.", "self"),
        ("My cholesterol is too high.", "self"),
        ("The user is allergic to peanuts.", "user"),
        ("The customer is diabetic", "role"),
        ("Patient is pregnant", "role"),
        ("He told me he is an atheist.", "pronoun"),
        ("Tom Miller is Muslim", "name"),
        ("Dr. Okonkwo is Catholic.", "name"),
        ("Tom from the sales team is gay", "name"),
        ("You should know that Sarah is HIV positive.", "name"),
        ("Anna lives in Bonn and has asthma", "name"),
        ("[PERSON] is Jewish.", "name"),
        ("Steve\u2019s HIV status is nobody\u2019s business.", "name"),
        ("customer:c_77 is diabetic", "entity"),
        ("My sister has diabetes", "own_relative"),
        ("my ex takes lithium", "own_relative"),
        ("Grandpa has Parkinson's", "own_relative"),
        ("My sister, who lives in Rome, has diabetes", "own_relative"),
        ("I live with my aunt, who has Parkinson's.", "own_relative"),
        ("A friend of mine has HIV", "own_relative"),
        ("My ex-wife's depression came back.", "own_relative"),
        ("My sister [PERSON] had an abortion.", "own_relative"),
        ("Her mother has dementia and lives with us.", "relative"),
        ("Tom's wife is pregnant again.", "relative"),
        ("The wife of the customer is diabetic", "relative"),
        ("Meine Schwester hat Diabetes", "own_relative"),
        ("Ich glaube, dass meine Mutter Krebs hat", "own_relative"),
        ("Ich wohne bei meiner Tante, die Alzheimer hat.", "own_relative"),
        ("Mein Bruder sitzt im Gef\u00e4ngnis.", "own_relative"),
        ("Seine Tochter hat Epilepsie.", "relative"),
        ("Tom M\u00fcller ist schwul", "name"),
        ("Julia Kern wurde wegen Betrugs verurteilt.", "name"),
        ("Der Kunde ist Diabetiker", "role"),
    ],
)
def test_the_person_who_is_spoken_of_is_the_subject_or_the_possessor(text: str, kind: MentionKind) -> None:
    assert kinds(text) == {kind}


@pytest.mark.rule("CAN-16")
def test_several_persons_may_be_spoken_of_at_once() -> None:
    assert kinds("My husband and I are Catholic") == {"own_relative", "self"}
    assert kinds("Tom, my sister and I are Catholic") == {"name", "own_relative", "self"}
    assert kinds("I met Tom and I have diabetes") == {"self"}


@pytest.mark.rule("CAN-16")
def test_for_a_span_that_a_reader_found_the_nearest_person_counts_if_the_grammar_names_none() -> None:
    def described(text: str, span: str) -> tuple[list[MentionKind], bool]:
        start = text.index(span)
        persons, is_clear = describe(text, start, start + len(span))
        return [person.kind for person in persons], is_clear

    assert described("My brother has xylosis", "xylosis") == (["own_relative"], True)
    assert described("I drove my mother to her xylotherapy", "xylotherapy") == (["pronoun"], True)
    assert described("I married a xylotic", "xylotic") == (["self"], False)
    assert described("Xylosis runs in my brother's house", "Xylosis") == (["own_relative"], False)
    assert described("The xylosis ward is full", "xylosis") == ([], False)


@pytest.mark.rule("CAN-13")
@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("allergic_to", "HEALTH"),
        ("medicalHistory", "HEALTH"),
        ("religion", "BELIEF"),
        ("union_membership", "UNION"),
        ("criminal.record", "CRIMINAL"),
        ("blutgruppe", "HEALTH"),
        ("prefers_channel", None),
        ("health_check", None),
        ("browser_fingerprint", None),
        ("party_size", None),
    ],
)
def test_a_predicate_is_known_by_its_name(name: str, category: str | None) -> None:
    assert category_of_name(name) == category


@given(st.text(max_size=200), st.sampled_from(["My sister has diabetes", "Tom's HIV", "ist katholisch", "'s gay"]))
def test_any_text_is_read(text: str, said: str) -> None:
    for one in (text, text + said, said + text):
        for span in find_special(one):
            assert 0 <= span.start < span.end <= len(one)
            describe(one, span.start, span.end)


def test_a_long_text_takes_time_by_its_length_alone() -> None:
    def seconds(text: str) -> float:
        began = process_time()
        find_special(text)
        return process_time() - began

    find_special("My sister has diabetes")
    for piece in ("My sister has ", "has a a a a a ", "is is is gay ", "'s's's", ", who ", "Tom and "):
        short, long = seconds(piece * 200), seconds(piece * 2000)
        assert long < 40 * max(short, 0.004), json.dumps(piece)


@pytest.mark.rule("CAN-13")
@pytest.mark.parametrize(
    "text",
    [
        "Has diabetes",
        "Allergic to penicillin",
        "Is diabetic.",
        "Diagnosed with cancer in 2020",
        "Takes insulin for diabetes",
        "Likes tea. Has epilepsy.",
        "- Is Muslim",
        "HIV positive",
        "Hat Diabetes",
        "Ist schwanger",
        "Converted to Judaism last year",
        "Epileptic; carries rescue medication",
        "Came out as bisexual in 2020.",
        "Joined the union ver.di in May",
        "Asthmatic since childhood",
        "Prays five times a day as a Muslim.",
        "Has been convicted of fraud.",
        "Zuckerkrank seit der Kindheit",
        "Ist Mitglied der SPD",
    ],
)
def test_a_note_that_leaves_out_whom_it_is_about_is_about_the_user(text: str) -> None:
    found = find_special(text)
    assert found and {mention.kind for one in found for mention in one.persons} == {"user"}


@pytest.mark.rule("CAN-13")
@pytest.mark.parametrize(
    "text",
    [
        "Has two cats",
        "Is on vacation",
        "Lives in Berlin",
        "Was born in May",
        "Is the diabetes brochure ready?",
        "Needs an invoice",
        "Pregnant pause in the second act of the play",
        "Disabled the old API key",
        "Muslim cookbook recommended for the recipe collection",
        "Gay Street is closed for construction",
        "Allergic reactions are documented in the safety sheet",
        "Believes the deadline can be moved",
        "Nimmt den Bus um acht",
        " \u2003 \r - .",
    ],
)
def test_an_ordinary_note_is_no_special_category(text: str) -> None:
    assert find_special(text) == ()


@pytest.mark.rule("CAN-16")
def test_a_note_about_somebody_else_stays_theirs() -> None:
    (found,) = find_special("Has a brother with HIV")
    assert found.persons[0].kind == "own_relative"
    about = {mention.words for one in find_special("Diagnosed with cancer; Tom has HIV") for mention in one.persons}
    assert about == {"User", "Tom"}


@pytest.mark.rule("CAN-13")
@pytest.mark.parametrize(
    ("value", "categories"),
    [
        ("diabetes", {"HEALTH"}),
        ("Type 2 diabetes.", {"HEALTH"}),
        ("c-a-n-c-e-r", {"HEALTH"}),
        ("asth\u200bma", {"HEALTH"}),
        ("Epilepsie", {"HEALTH"}),
        ("criminal record", {"CRIMINAL"}),
        ("diabetes newsletter", set()),
        ("Depression era furniture", set()),
        ("email", set()),
        (" \u2003.", set()),
        ("diabetes" * 100, set()),
    ],
)
def test_a_value_that_is_a_diagnosis_says_it_of_the_person_in_whose_record_it_stands(
    value: str, categories: set[str]
) -> None:
    assert categories_of_value(value) == categories
