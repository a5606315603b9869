"""Words: what a text is found by, however it is written."""

import gc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from threading import Barrier
from weakref import ref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.language import words
from muniment.language.assertion import overlap, stemming, vocabulary
from muniment.language.embedding.static import builtin_embedder
from muniment.language.known_words import known_words
from muniment.language.words import MOST_QUERY_WORDS, index_of, query_words, words_of

OBSERVED = datetime(2026, 5, 4, 9, 31, tzinfo=UTC)
DAY = {"4", "may", "2026"}


def terms(text: str) -> list[str]:
    return [word.term for word in words_of(text)]


# --- one word in all its spellings


@pytest.mark.rule("REC-2")
@pytest.mark.parametrize(
    "spellings",
    [
        ["refund", "refunds", "Refunded", "REFUNDING", "refund.", "(refund)", "refund's", "refunds'", "refund\u2019s"],
        ["customer", "customers", "customer's", "customer\u2019s", "Customer\u02bcs"],
        ["delivery", "deliveries"],
        ["don't", "dont", "don\u2019t"],
        ["O'Brien", "o\u2019brien", "OBRIEN"],
        # letters that fold or are one letter drawn as several
        ["Stra\u00dfe", "STRASSE", "strasse"],
        ["caf\u00e9", "cafe\u0301", "CAF\u00c9"],
        ["\ufb01nance", "finance", "\uff26\uff29\uff2e\uff21\uff2e\uff23\uff25"],
        ["\u03a3\u03af\u03c3\u03c5\u03c6\u03bf\u03c2", "\u03c3\u03af\u03c3\u03c5\u03c6\u03bf\u03c3"],
        # what a reader does not see: zero width, soft hyphen, joiner, direction marks
        ["refund", "re\u200bfund", "re\u00adfund", "r\u2060efund", "\u202erefund", "re\u200dfund", "\ufeffrefund"],
        # letters that only look Latin
        ["copy", "c\u043epy", "\u0441opy"],
    ],
    ids=lambda spellings: str(spellings[0]),
)
def test_all_spellings_of_a_word_are_found_by_one_term(spellings: list[str]) -> None:
    first, *others = [terms(spelling) for spelling in spellings]
    assert len(first) == 1
    assert others == [first] * len(others)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the of and to is", []),
        ("What is it that you would have?", []),
        ("It's what I'd do", ["id"]),
        ("", []),
        (" \n\t ", []),
        ("?!... \u2014 \U0001f600 \u200b", []),
        ("customer:cust_1 prefers_channel", ["custom", "cust", "1", "prefer", "channel"]),
        ("e-mail", ["e", "mail"]),
        ("2026-05-04T09:31", ["2026", "05", "04t09", "31"]),
        ("\u041d\u0435 \u043c\u043e\u0436\u0435\u0442", ["\u043d\u0435", "\u043c\u043e\u0436\u0435\u0442"]),
    ],
)
def test_a_text_is_its_words_in_their_order_but_for_those_that_say_nothing(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


def test_a_word_keeps_how_it_was_written_for_the_embedder() -> None:
    assert [word.written for word in words_of("Anna's Refunds")] == ["Annas", "Refunds"]


# --- scripts without spaces


@pytest.mark.rule("REC-2")
@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("\u9000\u8d27\u653f\u7b56\u662f\u4e09\u5341\u5929", "\u653f\u7b56"),
        ("\u5ba2\u6237\u559c\u6b22\u7535\u5b50\u90ae\u4ef6", "\u7535\u5b50\u90ae\u4ef6"),
        ("\u3053\u306e\u5546\u54c1\u306f\u8fd4\u54c1\u3067\u304d\u307e\u3059", "\u8fd4\u54c1"),
        ("\u30ad\u30e3\u30f3\u30bb\u30eb\u6599\u91d1", "\u30ad\u30e3\u30f3\u30bb\u30eb"),
    ],
)
def test_a_word_inside_a_text_without_spaces_is_found(text: str, query: str) -> None:
    assert set(terms(query)) <= set(terms(text))
    assert not set(terms("\u5929\u6c14")) & set(terms(text))


@pytest.mark.rule("REC-2")
@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("iPhone\u624b\u673a", "iPhone"),
        ("iPhone\u624b\u673a", "\u624b\u673a"),
        ("\u652f\u6301USB3\u63a5\u53e3", "usb3"),
        (
            "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e",
            "\u0928\u092e\u0938\u094d\u0924\u0947",
        ),
        ("\uc548\ub155\ud558\uc138\uc694 \uc138\uacc4", "\uc138\uacc4"),
        ("\u0645\u0631\u062d\u0628\u0627 \u0628\u0643", "\u0645\u0631\u062d\u0628\u0627"),
    ],
)
def test_a_word_beside_another_script_or_with_marks_is_one_word(text: str, query: str) -> None:
    assert len(terms(query)) == 1
    assert set(terms(query)) <= set(terms(text))


def test_one_sign_alone_is_a_word() -> None:
    assert terms("\u9000") == ["\u9000"]


# --- the day it is about


@pytest.mark.rule("REC-2")
@pytest.mark.parametrize("query", ["in May", "on May 4", "4 May 2026", "2026", "what happened in May 2026?"])
def test_a_memory_is_found_by_the_day_it_was_seen(query: str) -> None:
    found = index_of("Parcels leave at noon.", OBSERVED).terms
    assert set(terms(query)) - {"happen"} <= found.keys()
    assert set(terms("in June 2025")) & found.keys() == set()


def test_the_day_does_not_make_a_text_longer() -> None:
    index = index_of("Parcels leave at noon.", OBSERVED)
    assert index.terms == {"parcel": 1, "leav": 1, "noon": 1, "4": 1, "may": 1, "2026": 1}
    assert index.words == 3


def test_a_day_that_the_text_tells_too_counts_twice() -> None:
    assert index_of("Open from 4 May", OBSERVED).terms == {"open": 1, "4": 2, "may": 2, "2026": 1}


def test_a_text_without_words_is_found_by_its_day_alone() -> None:
    index = index_of("\U0001f600", OBSERVED)
    assert set(index.terms) == DAY
    assert index.words == 1, "a length of nothing would make every word in it weigh more than any"


# --- bounds


def test_a_query_has_each_term_once_and_a_bounded_number_of_them() -> None:
    assert [word.term for word in query_words("refunds, refund! a refunded parcel")] == ["refund", "parcel"]
    many = query_words(" ".join(f"w{n}" for n in range(1000)))
    assert [word.written for word in many] == [f"w{n}" for n in range(MOST_QUERY_WORDS)]


def test_long_words_and_long_texts_stay_within_what_a_row_can_hold() -> None:
    (endless,) = words_of("x" * 100_000)
    assert len(endless.term) == 64
    assert terms("x" * 200) == terms("x" * 100)
    index = index_of("parcel " * 40_000, OBSERVED)
    assert index.terms["parcel"] == 255
    assert index.words == 2**15 - 1


# --- for every text

ODD = ["refunds", "the", "May", "caf\u00e9", "don't", "30", "\u9000\u8d27", "c\u043epy", "re\u200bfund", "x_y"]
TEXTS = st.one_of(st.text(max_size=80), st.lists(st.sampled_from(ODD)).map(" ".join))


@given(text=TEXTS)
def test_any_text_has_words_and_the_same_ones_each_time(text: str) -> None:
    found = words_of(text)
    assert found == words_of(text)
    assert all(word.term and word.written for word in found)
    once = [word.term for word in query_words(text)]
    assert once == list(dict.fromkeys(word.term for word in found))[:MOST_QUERY_WORDS]


@given(text=TEXTS, observed_at=st.datetimes(timezones=st.just(UTC)))
def test_an_index_counts_every_word_and_fits_its_table(text: str, observed_at: datetime) -> None:
    index = index_of(text, observed_at)
    assert set(terms(text)) <= index.terms.keys()
    assert len(index.terms.keys() - set(terms(text))) <= 3
    assert 1 <= max(index.terms.values()) <= index.words < 2**15
    assert min(index.terms.values()) >= 1


@given(one=st.text("abcdefghi '", max_size=40), other=st.text("abcdefghi '", max_size=40))
def test_words_do_not_depend_on_what_stands_beside_them(one: str, other: str) -> None:
    assert terms(f"{one}. {other}") == terms(one) + terms(other)


def test_threads_find_the_same_words() -> None:
    texts = [f"refunds number{n} deliveries running quickly customers{n}" for n in range(2000)]
    alone = [terms(text) for text in texts]
    ready = Barrier(4)

    def work(_: int) -> list[list[str]]:
        ready.wait(20)
        return [terms(text) for text in texts]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [alone] * 4


# --- what stays in memory


class Name(str):
    """A word of which is seen whether anything still holds it."""


@pytest.mark.rule("ERA-2")
@pytest.mark.parametrize(
    "read",
    [
        words._term,
        stemming.stem,
        overlap._key,
        lambda word: vocabulary.word_relation(word, "house"),
        lambda word: builtin_embedder().aim([word], [1.0]),
    ],
)
def test_no_cache_of_words_keeps_a_name_where_no_erasure_would_reach_it(read: Callable[[str], object]) -> None:
    name = Name("przybylska")
    held = ref(name)
    read(name)
    del name
    gc.collect()
    assert held() is None
    assert {"house", "live"} <= known_words()
