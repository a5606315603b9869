"""When a sentence says that it holds in the world, read by rules (REC-14)."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.language.validity import OPEN, read_validity

# A Monday.
SAID = datetime(2026, 5, 4, 9, tzinfo=UTC)


def read(text: str, said: datetime = SAID) -> tuple[str | None, str | None]:
    """The two times, a day that ends as that day."""

    def shown(at: datetime | None) -> str | None:
        return None if at is None else f"{at:%Y-%m-%d}" + ("" if not at.hour else " over")

    found = read_validity(text, said)
    return shown(found.valid_from), shown(found.valid_until)


@pytest.mark.rule("REC-14")
@pytest.mark.parametrize(
    ("text", "begin", "end"),
    [
        ("I've lived in Berlin since 2019.", "2019-01-01", None),
        ("Since March 2024 invoices go to Hamburg.", "2024-03-01", None),
        ("I have been vegetarian since 3 March.", "2026-03-03", None),
        ("Customer prefers email since June.", "2025-06-01", None),
        ("She is on the team since last year.", "2025-01-01", None),
        ("The printer is broken since yesterday.", "2026-05-03", None),
        ("The printer is broken since Friday.", "2026-05-01", None),
        ("I'm on leave until June.", None, "2026-06-01"),
        ("I'm on leave till june", None, "2026-06-01"),
        ("I am here until February.", None, "2027-02-01"),
        ("The shop is closed until 5 June.", None, "2026-06-05 over"),
        ("The shop is closed until June 5th, 2027.", None, "2027-06-05 over"),
        ("The shop stays closed through June.", None, "2026-06-30 over"),
        ("I'm in Paris until the end of June.", None, "2026-06-30 over"),
        ("I'm based in Oslo until 2027.", None, "2027-01-01"),
        ("I'm here until Friday", None, "2026-05-08 over"),
        ("We have until tomorrow to decide.", None, "2026-05-05 over"),
        ("The discount holds until next month.", None, "2026-06-01"),
        ("The offer stands until 2026-06-10.", None, "2026-06-10 over"),
        ("Our office is in Madrid from May to July.", "2026-05-01", "2026-07-31 over"),
        ("Our office is in Madrid from 3 May to 10 June.", "2026-05-03", "2026-06-10 over"),
        ("Our office is in Madrid from June 3 to June 10, 2027.", "2027-06-03", "2027-06-10 over"),
        ("The campaign runs from December to February.", "2026-12-01", "2027-02-28 over"),
        ("I live in her flat between June and August.", "2026-06-01", "2026-08-31 over"),
        ("The rate holds from 2026-05-10 to 2026-06-10.", "2026-05-10", "2026-06-10 over"),
        ("From 1 June on, refunds need a manager.", "2026-06-01", None),
        ("As of next month I work for Siemens.", "2026-06-01", None),
        ("Since 2019 he works for us, until June.", "2019-01-01", "2026-06-01"),
    ],
)
def test_a_sentence_says_from_when_and_until_when_it_holds(text: str, begin: str | None, end: str | None) -> None:
    assert read(text) == (begin, end)


@pytest.mark.rule("REC-14")
@pytest.mark.parametrize(
    "text",
    [
        "I worked at Acme until 2019.",
        "I stayed there until June.",
        "We were in Rome from May to July.",
        "I didn't know it until June.",
    ],
)
def test_what_tells_of_the_past_stays_true(text: str) -> None:
    assert read_validity(text, SAID) == OPEN


@pytest.mark.rule("REC-14")
def test_a_plan_is_known_before_it_begins_and_ends_when_it_is_over() -> None:
    assert read("We'll be in Rome from 3 June to 10 June.") == (None, "2026-06-10 over")
    assert read("I'm going to be away from May to July.") == (None, "2026-07-31 over")


@pytest.mark.rule("REC-14")
@pytest.mark.parametrize(
    "text",
    [
        "Is it closed until June?",
        "If it is closed until June, tell me.",
        "It might be closed until June.",
        "I work from Monday to Friday.",
        "Every year the pool is open from May to September.",
        "The pool is usually closed until June.",
        "I'm free from 9 to 5.",
        "I'm allergic to nuts. I'm here until June.",
        "Since 2019 was hard, I moved.",
        "I love it until it ends.",
        "It is closed until February 30.",
        "He is staying until June or until July.",
        "The letter is from May.",
        "It is valid until 2020.",
        "",
    ],
)
def test_what_is_not_sure_stays_open(text: str) -> None:
    assert read_validity(text, SAID) == OPEN


@pytest.mark.rule("REC-14")
def test_a_date_without_a_year_is_the_nearest_seen_from_when_it_was_said() -> None:
    said = datetime(2026, 12, 20, tzinfo=UTC)
    assert read("I'm on leave until January.", said) == (None, "2027-01-01")
    assert read("I'm on leave since November.", said) == ("2026-11-01", None)
    assert read("I am in Rome from December to March.", said) == ("2026-12-01", "2027-03-31 over")
    assert read("I am in Rome from December to March.", datetime(2027, 1, 20, tzinfo=UTC)) == (
        "2026-12-01",
        "2027-03-31 over",
    )


@given(st.text(max_size=80), st.datetimes(timezones=st.just(UTC)), st.booleans())
def test_no_text_breaks_it_and_what_it_reads_is_a_span(text: str, said: datetime, around: bool) -> None:
    found = read_validity(f"I am here since {text} until {text}" if around else text, said)
    if found.valid_from is not None and found.valid_until is not None:
        assert found.valid_from < found.valid_until
    if found.valid_until is not None:
        assert found.valid_until > said
