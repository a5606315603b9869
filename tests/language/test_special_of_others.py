"""Of whom else a text says something in a special category: beside its speaker, in notes, in nouns, in quotations."""

import pytest

from muniment.language.special import find_special, with_sharers
from muniment.language.special.tokens import Mention


def of_others(text: str) -> bool:
    """Whether the rules find something that is said of somebody other than the speaker."""
    return any(person.kind != "self" for one in find_special(text) for person in one.persons)


def of_speaker(text: str) -> bool:
    found = find_special(text)
    return bool(found) and all(person.kind == "self" for one in found for person in one.persons)


@pytest.mark.rule("CAN-16")
@pytest.mark.parametrize(
    "text",
    [
        "I'm diabetic and so is Tom.",
        "I'm HIV positive, as is my husband.",
        "I have psoriasis, my mum has it too.",
        "I have diabetes, Tom too.",
        "I have diabetes like my dad.",
        "Like my father, I'm an alcoholic.",
        "I don't have HIV, unlike Tom.",
        "We both have HIV, Tom and I.",
        "I'm not gay but Tom is.",
        "I never had HIV - Tom did.",
        "I voted CDU, Tom AfD.",
        "I'm catholic; my wife jewish.",
        "I gave Tom HIV.",
        "I got HIV from Tom.",
        "I share my diabetes with my sister Ana.",
    ],
)
def test_the_same_may_be_said_of_somebody_beside_the_speaker(text: str) -> None:
    assert of_others(text)


@pytest.mark.rule("CAN-13", "CAN-16")
@pytest.mark.parametrize(
    "text",
    [
        "I have an autistic son.",
        "I have a gay brother.",
        "I have two autistic nephews.",
        "I have a Jewish girlfriend called Rachel.",
        "I live with my depressed husband.",
        "I'm dating an HIV positive guy.",
        "I'm married to a schizophrenic.",
        "My cancer-stricken brother lives in Berlin.",
        "Mein schwuler Bruder wohnt in Bonn.",
    ],
)
def test_a_noun_may_say_it_of_somebody_else(text: str) -> None:
    assert of_others(text)


@pytest.mark.rule("CAN-13", "CAN-16")
@pytest.mark.parametrize(
    "text",
    [
        "Everyone in my flat has HIV.",
        "Half of my class has ADHD.",
        "The guy next door has HIV.",
        "The one I love has HIV.",
        "Note that the person I live with has HIV.",
        "Tom, Anna and Peter are the ones with HIV in my family.",
        "I know three people with HIV, among them Tom.",
        "tom has hiv.",
        "ben has adhd",
        "my brother tom has hiv",
        "@tom_m has HIV since 2019.",
        "X has HIV since 2019.",
        "My mom goes to dialysis three times a week.",
        "I drive Rosa to rehab every Friday.",
        "My brother has H.I.V.",
        "My brother has c-a-n-c-e-r since 2019.",
        "My brother has H\u0301I\u0301V\u0301.",
    ],
)
def test_people_are_known_by_more_than_a_name_with_a_capital_letter(text: str) -> None:
    assert of_others(text)


@pytest.mark.rule("CAN-13", "CAN-16")
@pytest.mark.parametrize(
    "text",
    [
        "Remember: brother = cancer.",
        "Just so you know, brother, cancer, 2019.",
        "Note: Tom - HIV positive since 2019.",
        "My brother (cancer) lives in Berlin.",
        "My brother, cancer survivor, lives in Berlin.",
        "HIV: Tom, Anna and Peter.",
        "Remember Tom's diagnosis: HIV.",
        "Note that diagnosis for my brother is cancer.",
    ],
)
def test_notes_leave_the_verb_out(text: str) -> None:
    assert of_others(text)


@pytest.mark.rule("CAN-16")
@pytest.mark.parametrize(
    "text",
    [
        'Lisa said "I have cancer".',
        "Lisa said 'I have cancer'.",
        '"I have cancer," said Lisa.',
        "Lisa wrote me: I have HIV.",
        "I was told by Tom: 'I am gay'.",
        'The letter said "I have cancer".',
    ],
)
def test_the_first_person_of_a_quotation_is_whoever_is_quoted(text: str) -> None:
    assert of_others(text)


@pytest.mark.rule("CAN-16")
@pytest.mark.parametrize(
    "text",
    [
        "I have epilepsy and my cousin drives me to work.",
        "I told Rosa that I am gay.",
        "My doctor says I have high blood pressure.",
        'I said "I have asthma" to the doctor.',
        "I have lupus, which my mother hates.",
        "I go to dialysis three times a week.",
        "I was diagnosed with MS in 2019.",
        "As a gay man I felt at home in Berlin.",
        "I'm a trans woman living in Oslo.",
        "I am also an autistic teacher.",
        "My therapist treats my anxiety disorder.",
        "I made this painting to show my path as a trans woman.",
        "Note: I have diabetes.",
        "I met Tom and I have diabetes",
        "My cholesterol is too high.",
    ],
)
def test_what_the_speaker_says_of_themselves_stays_theirs(text: str) -> None:
    assert of_speaker(text)


@pytest.mark.rule("CAN-13")
@pytest.mark.parametrize(
    "text",
    [
        "I'm tired and so is Tom.",
        "I work with autistic children.",
        "My blind date was fun.",
        "tom likes tea",
        "coffee is great",
        "Everyone in my team likes pizza.",
        "The guy next door plays drums.",
        "I gave Tom a book.",
        "I love my Christian Louboutin shoes.",
        "I read that people with diabetes should exercise.",
        "My address: 5 Main Road.",
    ],
)
def test_what_says_nothing_of_a_person_in_a_special_category_is_left_alone(text: str) -> None:
    assert find_special(text) == ()


@pytest.mark.rule("CAN-16")
def test_a_long_sentence_hides_nobody() -> None:
    known = "whom I have known since we were both at school near the mill by the river "
    for times in (5, 40):
        assert of_others(f"My friend Tom, {known * times}, has HIV.")
    assert of_others("I have HIV, " * 100 + "my brother has HIV")


@pytest.mark.rule("CAN-16")
def test_what_a_reader_found_is_shared_like_what_the_rules_find() -> None:
    text = "I have xylosis, like Tom"
    start = text.index("xylosis")
    own = (Mention("self", "I"),)
    assert [one.kind for one in with_sharers(text, start, start + 7, own)] == ["self", "name"]
    assert with_sharers("I have xylosis", 7, 14, own) == own
