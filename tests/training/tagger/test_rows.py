"""Templates are filled and texts changed without a mark losing its place."""

from random import Random

import pytest
from training.tagger.fill import Value, expanded, filled
from training.tagger.forms import form, mail, transcript
from training.tagger.generate import generated, templates
from training.tagger.labels import CATEGORIES, LABELS
from training.tagger.rows import Mark, Marked, joined
from training.tagger.styles import styled, tidied, with_typos, without
from training.tagger.values import Values

from tests.training.tagger.made_up_pools import small_pools

_KINDS = ("persons", "contacts", "finance", "accounts", "special", "lookalikes", "plain")


class _Recorded:
    """The values of the templates, with a list of what was put into the text."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.given: list[tuple[str, str]] = []
        self._values = Values(small_pools(), self.random)

    def __call__(self, slot: str) -> Value:
        value = self._values(slot)
        if isinstance(value, Marked):
            self.given += [(value.text[mark.start : mark.end], mark.label) for mark in value.spans]
        elif value[1]:
            self.given.append((value[0], value[1]))
        return value


def _marked_texts(marked: Marked) -> list[tuple[str, str]]:
    return [(marked.text[mark.start : mark.end], mark.label) for mark in marked.spans]


def _one_line(text: str) -> str:
    return text.translate(dict.fromkeys(map(ord, '\n"\\'), " "))


def _fixed(slot: str) -> Value:
    return {"name": ("Ann Lee", "PERSON"), "n": ("7", None)}[slot]


def test_a_slot_is_marked_with_its_label_and_a_slot_without_one_is_not() -> None:
    made = filled("ask {name} in {n} days", _fixed, Random(1))
    assert made == Marked("ask Ann Lee in 7 days", (Mark(4, 11, "PERSON"),))


def test_words_of_a_category_are_marked_with_whom_they_tell_of() -> None:
    made = filled("{name} <HEALTH:other|has [asthma]>, I am <BELIEF|Jewish>", _fixed, Random(1))
    assert made.text == "Ann Lee has asthma, I am Jewish"
    assert made.special == (Mark(8, 18, "HEALTH", "other"), Mark(25, 31, "BELIEF", "self"))


def test_a_label_in_angle_brackets_marks_plain_words_and_other_brackets_stay() -> None:
    made = filled("<ORGANIZATION|Western Union> <{name}>", _fixed, Random(1))
    assert made.text == "Western Union <Ann Lee>"
    assert _marked_texts(made) == [("Western Union", "ORGANIZATION"), ("Ann Lee", "PERSON")]


def test_choices_may_be_nested() -> None:
    made = {expanded("[a|b[1|2]]c", Random(seed)) for seed in range(40)}
    assert made == {"ac", "b1c", "b2c"}


@pytest.mark.parametrize("kind", _KINDS)
def test_every_span_of_every_template_is_what_was_put_there(kind: str) -> None:
    for seed, template in enumerate(templates(kind)):
        for turn in range(3):
            values = _Recorded(seed * 10 + turn)
            made = tidied(filled(template, values, values.random))
            written = [one for one in _marked_texts(made) if one in values.given]
            assert sorted(written) == sorted(values.given), template
            assert not set("{}[]\0") & set(made.text), made.text
            assert "|" not in made.text or " | " in template, made.text
            for mark in made.special:
                assert mark.label in CATEGORIES
                assert made.text[mark.start : mark.end].strip(), template
            assert bool(made.special) == (kind == "special"), template


def test_forms_mails_and_transcripts_mark_what_was_put_there() -> None:
    for seed in range(300):
        values = _Recorded(seed)
        made = form(values, values.random)
        # A line break or a quotation mark in a value is a space where a value must stand in one line.
        given = [_one_line(text) for text, _ in values.given]
        assert [_one_line(text) for text, _ in _marked_texts(made)] == given[: len(made.spans)]
        body = Marked("call 12", (Mark(5, 7, "PHONE"),))
        for whole in (mail(body, values, values.random), transcript([body, body], values, values.random)):
            assert ("12", "PHONE") in _marked_texts(whole)
            assert all(text and text == text.strip() for text, _ in _marked_texts(whole))


def test_a_style_changes_letters_but_never_what_a_span_covers() -> None:
    plain = Marked(
        "Please, call  İlqar Yildiz on 555 12 34 . Thanks, Bo!", (Mark(14, 26, "PERSON"), Mark(30, 39, "PHONE"))
    )
    seen: set[str] = set()
    for seed in range(300):
        made = styled(plain, Random(seed))
        seen.add(made.text)
        (name, _), (phone, _) = _marked_texts(made)
        assert (len(name), phone) == (12, "555 12 34")
        assert name.replace("İ", "i").lower() == "ilqar yildiz"
    assert len(seen) > 50


def test_dropped_and_mistaken_letters_move_the_spans_behind_them() -> None:
    plain = Marked("teel. Ann x.", (Mark(6, 9, "PERSON"),), (Mark(0, 12, "HEALTH", "self"),))
    made = without(plain, lambda char: char in "e.")
    assert (made.text, _marked_texts(made)) == ("tl Ann x", [("Ann", "PERSON")])
    assert made.special == (Mark(0, 8, "HEALTH", "self"),)
    assert {_marked_texts(with_typos(plain, Random(seed), 3))[0] for seed in range(20)} == {("Ann", "PERSON")}


def test_spaces_that_empty_choices_leave_are_dropped_outside_of_spans() -> None:
    made = tidied(Marked("no  4111  1111 . ok ...", (Mark(4, 14, "CREDIT_CARD"),)))
    assert (made.text, _marked_texts(made)) == ("no 4111  1111. ok ...", [("4111  1111", "CREDIT_CARD")])


def test_joined_texts_keep_their_marks() -> None:
    part = Marked("Ann", (Mark(0, 3, "PERSON"),), (Mark(0, 2, "CHILD", "other"),))
    assert joined((part, Marked(""), part), "--") == Marked(
        "Ann----Ann",
        (Mark(0, 3, "PERSON"), Mark(7, 10, "PERSON")),
        (Mark(0, 2, "CHILD", "other"), Mark(7, 9, "CHILD", "other")),
    )


def test_rows_are_seeded_different_from_each_other_and_in_order() -> None:
    rows = [row.record() for row in generated(small_pools(), 3, 600)]
    assert rows == [row.record() for row in generated(small_pools(), 3, 600)]
    assert rows != [row.record() for row in generated(small_pools(), 4, 600)]
    assert len({row["text"] for row in rows}) == 600
    for row in rows:
        ends = [0, *(end for _, end, _ in row["spans"])]
        assert all(end <= start < stop for end, (start, stop, _) in zip(ends, row["spans"], strict=False)), row
        assert all(row["text"][start:stop].strip() for start, stop, _ in row["special"]), row
        assert {label for _, _, label in row["spans"]} <= set(LABELS)
        assert len(row["about"]) == len(row["special"])
    assert {label for row in rows for _, _, label in (*row["spans"], *row["special"])} == {*LABELS, *CATEGORIES}
