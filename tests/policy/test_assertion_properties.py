"""The judge for every text: symmetric, steady, and never `same` where a number, a name, a negation or a date differs."""

from datetime import date, timedelta

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from muniment.pack import Thresholds
from muniment.policy.assertion import Judgement, judge
from muniment.policy.assertion.relation import relate

SUBJECTS = ("The customer", "The contract", "Our supplier", "Anna Berg", "The yearly invoice", "Support")
FRAMES = (
    "{subject} needs {value} for the project.",
    "{subject} is linked to {value}",
    "{value} was agreed with {subject} last week.",
    "For {subject}, {value} is the limit in Germany.",
    "{subject} has not received {value} yet.",
    "Does {subject} still ask for {value}?",
)
VERBS = ("prefers", "accepts", "ships", "returns", "pays")
VOCABULARY = """
the a customer client prefers likes not no never email phone red blue 30 14 days weeks two men man in Germany France
before after is are was open closed Anna Bob from to and or ? . , :
"""
WORDS = st.sampled_from(VOCABULARY.split())
SENTENCES = st.lists(WORDS, max_size=14).map(" ".join)
TEXTS = st.one_of(SENTENCES, st.text(max_size=60))
NAMES = st.from_regex(r"[A-Z][a-z]{2,9}", fullmatch=True)
CODES = st.from_regex(r"[A-Z]{2,4}-[0-9]{2,6}|[a-z]{3,6}_[0-9]{1,4}|v[0-9]\.[0-9]{1,2}\.[0-9]", fullmatch=True)
DATES = st.dates(min_value=date(1990, 1, 1), max_value=date(2090, 1, 1))
FRAMED = st.tuples(st.sampled_from(FRAMES), st.sampled_from(SUBJECTS))


def said(framed: tuple[str, str], value: object) -> str:
    frame, subject = framed
    return frame.format(subject=subject, value=value)


@settings(deadline=None, max_examples=400)
@given(TEXTS, TEXTS)
def test_the_verdict_does_not_hang_on_which_text_comes_first(one: str, other: str) -> None:
    assert judge(one, other) == judge(other, one)
    assert judge(one, other) == judge(one, other)


@settings(deadline=None, max_examples=400)
@given(TEXTS)
def test_every_text_says_the_same_as_itself(text: str) -> None:
    assert judge(text, text).verdict == "same"


@pytest.mark.rule("REV-7")
@settings(deadline=None, max_examples=300)
@given(
    FRAMED, st.integers(0, 10**7), st.integers(0, 10**7), st.sampled_from(("days", "euros", "kg", "licences", "%", ""))
)
def test_two_facts_that_differ_only_in_a_number_are_never_duplicates(
    framed: tuple[str, str], one: int, other: int, unit: str
) -> None:
    assume(one != other)
    assert judge(said(framed, f"{one} {unit}"), said(framed, f"{other} {unit}")).verdict != "same"
    assert judge(said(framed, f"{one:,} {unit}"), said(framed, f"{other} {unit}")).verdict != "same"


@pytest.mark.rule("REV-7")
@settings(deadline=None, max_examples=300)
@given(FRAMED, NAMES, NAMES)
def test_two_facts_that_differ_only_in_a_name_are_never_duplicates(
    framed: tuple[str, str], one: str, other: str
) -> None:
    assume(one.casefold() != other.casefold())
    assert judge(said(framed, one), said(framed, other)).verdict != "same"


@pytest.mark.rule("REV-7")
@settings(deadline=None, max_examples=300)
@given(FRAMED, CODES, CODES)
def test_two_facts_that_differ_only_in_a_code_are_never_duplicates(
    framed: tuple[str, str], one: str, other: str
) -> None:
    assume(one.casefold() != other.casefold())
    assert judge(said(framed, one), said(framed, other)).verdict != "same"


@pytest.mark.rule("REV-7")
@settings(deadline=None, max_examples=300)
@given(FRAMED, DATES, st.integers(1, 4000), st.sampled_from(("%Y-%m-%d", "%d %B %Y", "%B %d, %Y", "%d.%m.%Y")))
def test_two_facts_that_differ_only_in_a_date_are_never_duplicates(
    framed: tuple[str, str], one: date, days: int, form: str
) -> None:
    other = one + timedelta(days=days)
    assert judge(said(framed, one.isoformat()), said(framed, other.strftime(form))).verdict != "same"


@pytest.mark.rule("REV-7")
@settings(deadline=None)
@given(FRAMED, DATES, st.sampled_from(("%d %B %Y", "%B %d, %Y", "%d.%m.%Y")))
def test_a_date_is_the_same_in_every_form(framed: tuple[str, str], one: date, form: str) -> None:
    assert judge(said(framed, one.isoformat()), said(framed, one.strftime(form))).verdict == "same"


@pytest.mark.rule("REV-7")
@given(st.sampled_from(SUBJECTS), st.sampled_from(VERBS), st.sampled_from(("email", "parcels", "cash", "the order")))
def test_two_facts_that_differ_only_in_a_negation_are_never_duplicates(subject: str, verb: str, thing: str) -> None:
    base = verb.removesuffix("s")
    for negated in (
        f"{subject} does not {base} {thing}",
        f"{subject} never {verb} {thing}",
        f"{subject} no longer {verb} {thing}",
    ):
        found = judge(f"{subject} {verb} {thing}", negated)
        assert found == Judgement("contradicts", ("polarity",))


@pytest.mark.rule("CTR-2", "REV-7")
@settings(deadline=None)
@given(TEXTS, TEXTS, st.floats(-1, 1), st.floats(0, 1), st.floats(0, 1))
def test_a_verdict_counts_only_from_its_threshold_on(
    one: str, other: str, similarity: float, near: float, nearer: float
) -> None:
    found = relate(one, other, similarity, Thresholds(similarity=near, duplicate_similarity=nearer))
    if found.verdict == "contradicts":
        assert similarity >= near
    if found.verdict == "same" and found.reasons != ("same_words",):
        assert similarity >= nearer
    if found.verdict != "different":
        assert judge(one, other) == found


@pytest.mark.rule("CTR-2")
def test_a_plugged_in_judge_is_asked_instead_of_the_built_in_one() -> None:
    thresholds = Thresholds(similarity=0.5, duplicate_similarity=0.7)

    def model(a: str, b: str) -> Judgement:
        return Judgement("contradicts", ("model",))

    assert relate("Tea is hot.", "Birds sing.", 0.6, thresholds, model) == Judgement("contradicts", ("model",))
    assert relate("Tea is hot.", "Birds sing.", 0.4, thresholds, model).verdict == "different"
    assert relate("Tea is hot.", "TEA is hot", 0.0, thresholds, model).verdict == "same"
