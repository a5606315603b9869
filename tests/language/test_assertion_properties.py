"""The judge for every text: symmetric, steady, and never `same` where a number, a name, a negation or a date differs."""

from datetime import date, timedelta
from itertools import combinations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from muniment.language.assertion import Judgement, judge, relate
from muniment.language.instructions import visible_text
from muniment.pack import Thresholds
from tests.soak import examples

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
# Small words that a title writes with a capital are no names.
SMALL = frozenset(
    [
        "the",
        "and",
        "for",
        "not",
        "nor",
        "nothing",
        "none",
        "neither",
        "never",
        "this",
        "that",
        "than",
        "are",
        "was",
        "been",
        "with",
        "from",
    ]
)
NAMES = st.from_regex(r"[A-Z][a-z]{2,9}", fullmatch=True).filter(lambda name: name.lower() not in SMALL)
FILLER = st.sampled_from(("in May", "on Monday", "in Germany", ""))
CODES = st.from_regex(r"[A-Z]{2,4}-[0-9]{2,6}|[a-z]{3,6}_[0-9]{1,4}|v[0-9]\.[0-9]{1,2}\.[0-9]", fullmatch=True)
DATES = st.dates(min_value=date(1990, 1, 1), max_value=date(2090, 1, 1))
FRAMED = st.tuples(st.sampled_from(FRAMES), st.sampled_from(SUBJECTS))

# Phrases that say when or where, in both their places: behind the rest of the sentence and before it.
PHRASES = (
    "on Monday", "on weekdays", "in May", "in Germany", "at 9 am", "before noon", "after the audit", "since June 2024",
    "every week", "within 14 days", "during the holidays",
)  # fmt: skip
CLAUSES = ("the customer wants deliveries", "our supplier ships {value} parcels", "Anna Berg calls the office")
DONE = (("approved", "approves"), ("signed", "signs"), ("paid", "pays"), ("wrote", "writes"), ("chose", "chooses"))
PARTICIPLE = {"wrote": "written", "chose": "chosen"}
THINGS = ("the refund", "the contract", "invoice 4711", "the yearly report")
OPPOSED = (
    ("accepts", "rejects"), ("likes", "dislikes"), ("includes", "excludes"), ("opens", "closes"), ("buys", "sells"),
    ("increases", "decreases"), ("allows", "forbids"),
)  # fmt: skip


AGENTS = ("Anna Berg", "Carl", "Globex", "The supplier", "Dora van Holm")


def said(framed: tuple[str, str], value: object) -> str:
    frame, subject = framed
    return frame.format(subject=subject, value=value)


@settings(deadline=None, max_examples=examples(133))
@given(TEXTS, TEXTS)
def test_the_verdict_does_not_hang_on_which_text_comes_first(one: str, other: str) -> None:
    assert judge(one, other) == judge(other, one)
    assert judge(one, other) == judge(one, other)


@settings(deadline=None, max_examples=examples(133))
@given(TEXTS)
def test_every_text_says_the_same_as_itself(text: str) -> None:
    assert judge(text, text).verdict == "same"


@pytest.mark.rule("REV-7")
@settings(deadline=None, max_examples=examples(100))
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
@pytest.mark.parametrize("values", [NAMES, CODES], ids=["name", "code"])
@settings(deadline=None, max_examples=examples(100))
@given(FRAMED, st.data())
def test_two_facts_that_differ_only_in_a_name_or_a_code_are_never_duplicates(
    values: st.SearchStrategy[str], framed: tuple[str, str], data: st.DataObject
) -> None:
    one, other = data.draw(values), data.draw(values)
    assume(one.casefold() != other.casefold())
    assert judge(said(framed, one), said(framed, other)).verdict != "same"


@pytest.mark.rule("REV-7")
@settings(deadline=None, max_examples=examples(100))
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


@pytest.mark.rule("REV-7")
@settings(deadline=None, max_examples=examples(100))
@given(st.sampled_from(CLAUSES), st.lists(st.sampled_from(PHRASES), min_size=1, max_size=2, unique=True))
def test_a_phrase_of_time_or_place_may_open_a_sentence_or_end_it(clause: str, phrases: list[str]) -> None:
    clause = clause.format(value=12)
    opened = f"{phrases[0]}, {clause} {' '.join(phrases[1:])}"
    assert judge(f"{clause} {' '.join(phrases)}", opened).verdict == "same"


@pytest.mark.rule("REV-7")
@settings(deadline=None, max_examples=examples(100))
@given(st.sampled_from(CLAUSES), st.sampled_from(PHRASES), st.sampled_from(PHRASES), st.booleans())
def test_two_facts_that_differ_only_in_a_scope_phrase_are_never_duplicates(
    clause: str, one: str, other: str, moved: bool
) -> None:
    assume(one != other)
    clause = clause.format(value=12)
    against = f"{other} {clause}" if moved else f"{clause} {other}"
    assert judge(f"{clause} {one}", against).verdict != "same"
    assert judge(clause, against).verdict != "same"
    assert judge(f"{clause} {one}", f"{one} {against}").verdict != "same"


@pytest.mark.rule("REV-7")
@settings(deadline=None, max_examples=examples(100))
@given(st.sampled_from(PHRASES), st.integers(2, 10**6), st.integers(2, 10**6))
def test_a_moved_phrase_hides_no_other_number(phrase: str, one: int, other: int) -> None:
    assume(one != other)
    clause = "our supplier ships {} parcels"
    assert judge(f"{clause.format(one)} {phrase}", f"{phrase} {clause.format(other)}").verdict != "same"


@pytest.mark.rule("REV-7")
@settings(deadline=None, max_examples=examples(100))
@given(st.sampled_from(AGENTS), NAMES, st.sampled_from(DONE), st.sampled_from(THINGS))
def test_who_did_something_is_the_same_in_either_voice_and_another_is_not(
    one: str, other: str, done: tuple[str, str], thing: str
) -> None:
    assume(one.casefold() != other.casefold())
    past, present = done
    participle = PARTICIPLE.get(past, past)
    active = f"{one} {past} {thing}."
    assert judge(active, f"{thing} was {participle} by {one}.").verdict == "same"
    assert judge(active, f"{thing} was {participle} by {other}.").verdict != "same"
    assert judge(active, f"{thing} is {participle} by {one}.").verdict != "same"
    assert judge(active, f"{thing} was not {participle} by {one}.").verdict != "same"
    assert judge(active, f"{one} {present} {thing}.").verdict != "same"
    assert judge(f"{one} {past} {other}.", f"{one} was {participle} by {other}.").verdict != "same"


@pytest.mark.rule("REV-7")
@settings(deadline=None, max_examples=examples(100))
@given(NAMES, NAMES, st.sampled_from(("owes", "called", "pays", "reports to", "works for", "is older than")), FILLER)
def test_two_facts_that_differ_only_in_who_is_who_are_never_duplicates(
    one: str, other: str, verb: str, rest: str
) -> None:
    assume(one.casefold() != other.casefold())
    assert judge(f"{one} {verb} {other} {rest}", f"{other} {verb} {one} {rest}").verdict != "same"
    assert judge(f"{rest} {one} {verb} {other}", f"{other} {verb} {one} {rest}").verdict != "same"
    assert judge(f"Who knows that {one} {verb} {other}?", f"Who knows that {other} {verb} {one}?").verdict != "same"


@pytest.mark.rule("REV-7")
@given(st.sampled_from(SUBJECTS), st.sampled_from(OPPOSED), st.sampled_from(PHRASES), st.booleans())
def test_two_facts_that_differ_only_in_an_opposite_are_never_duplicates(
    subject: str, verbs: tuple[str, str], phrase: str, moved: bool
) -> None:
    one, other = (f"{subject} {verb} the offer" for verb in verbs)
    assert judge(f"{one} {phrase}", f"{phrase} {other}" if moved else f"{other} {phrase}").verdict != "same"


@pytest.mark.rule("REV-7")
@given(st.sampled_from(SUBJECTS), st.sampled_from(("ship", "return", "accept", "sign")), st.sampled_from(THINGS))
def test_two_facts_that_differ_only_in_tense_are_never_duplicates(subject: str, verb: str, thing: str) -> None:
    past = {"ship": "shipped"}.get(verb, verb + "ed")
    result = [
        f"{subject} {form} {thing}"
        for form in (
            f"{verb}s",
            past,
            f"will {verb}",
            f"has {past}",
            f"used to {verb}",
            f"was {verb}ing",
            f"had to {verb}",
        )
    ]
    for one, other in combinations(result, 2):
        assert judge(one, other).verdict != "same"


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
        assert judge(visible_text(one), visible_text(other)) == found


@pytest.mark.rule("CTR-2")
def test_a_plugged_in_judge_is_asked_instead_of_the_built_in_one() -> None:
    thresholds = Thresholds(similarity=0.5, duplicate_similarity=0.7)

    def model(a: str, b: str) -> Judgement:
        return Judgement("contradicts", ("model",))

    assert relate("Tea is hot.", "Birds sing.", 0.6, thresholds, model) == Judgement("contradicts", ("model",))
    assert relate("Tea is hot.", "Birds sing.", 0.4, thresholds, model).verdict == "different"
    assert relate("Tea is hot.", "TEA is hot", 0.0, thresholds, model).verdict == "same"
