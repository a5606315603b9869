"""Compile within a token budget: what is shortened, what is left out, and that it always holds."""

from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.language.embedding.tokenizers import CharacterTokenizer, Tokenizer, builtin_tokenizer
from muniment.model.compiled import Compiled, Format
from muniment.model.recall import ConflictSet, Record
from tests.recall.compiling_corpus import FRAGMENTS
from tests.recall.compiling_records import compiled, conflict, record, shown

FORMATS: tuple[Format, ...] = get_args(Format)
LONG = " ".join(f"word{number}" for number in range(400))


def accounted(output: Compiled) -> list[str]:
    return sorted([*output.memory_ids, *(one for left in output.budget.left_out for one in left.memory_ids)])


@pytest.mark.rule("REC-11")
@pytest.mark.parametrize("form", FORMATS)
def test_a_budget_too_small_for_the_frame_gives_an_empty_text_and_leaves_everything_out(form: Format) -> None:
    for budget in (0, 1, compiled(record(), format=form).budget.frame):
        output = compiled(
            record("a"), low_confidence=(record("b"),), conflicts=(conflict(record("x"), record("y")),),
            format=form, token_budget=budget,
        )  # fmt: skip
        assert (output.text, output.messages, output.blocks, output.manifest.entries) == ("", (), (), ())
        assert output.budget.used == 0
        left = [(one.block_id, one.kind, one.memory_ids) for one in output.budget.left_out]
        assert left == [
            ("conflict:ctr_1", "conflict", ("x", "y")), ("mem:a", "plain", ("a",)), ("mem:b", "low_confidence", ("b",))
        ]  # fmt: skip


@pytest.mark.parametrize("form", FORMATS)
def test_without_a_memory_there_is_no_text(form: Format) -> None:
    output = compiled(format=form)
    assert (output.text, output.messages, output.budget.used, output.budget.left_out) == ("", (), 0, ())


@pytest.mark.rule("REC-11")
@pytest.mark.parametrize("form", FORMATS)
def test_what_was_left_out_would_have_fitted_with_the_tokens_that_the_report_names(form: Format) -> None:
    fits = compiled(record("a"), format=form)
    budget = fits.budget.frame + fits.budget.blocks["mem:a"]
    output = compiled(record("a"), low_confidence=(record("b"),), format=form, token_budget=budget)
    (left,) = output.budget.left_out
    assert output.text == fits.text
    more = compiled(record("a"), low_confidence=(record("b"),), format=form, token_budget=budget + left.tokens)
    assert shown(more) == [("plain", ["a"], False), ("low_confidence", ["b"], False)]
    assert more.budget.blocks["mem:b"] == left.tokens


@pytest.mark.rule("REC-11")
def test_what_comes_after_a_block_that_does_not_fit_may_still_fit() -> None:
    small = record("small")
    budget = compiled(small).budget.used + 5
    sides = conflict(record("x", LONG), record("y", LONG))
    output = compiled(small, low_confidence=(record("l", LONG),), conflicts=(sides,), token_budget=budget)
    assert shown(output) == [("plain", ["small"], False)]
    assert output.manifest.citations == {"m1": "small"}
    assert [left.memory_ids for left in output.budget.left_out] == [("x", "y"), ("l",)]


@pytest.mark.rule("CTR-6")
@pytest.mark.parametrize("form", FORMATS)
def test_a_conflict_set_is_whole_or_not_there_at_all(form: Format) -> None:
    sides = conflict(record("x", LONG), record("y", "pays by invoice"))
    needed = compiled(conflicts=(sides,), format=form).budget
    enough = needed.frame + needed.blocks["conflict:ctr_1"]
    for budget in (enough, enough - 1, enough // 2):
        output = compiled(conflicts=(sides,), format=form, token_budget=budget)
        assert shown(output) == ([("conflict", ["x", "y"], False)] if budget == enough else [])


@pytest.mark.rule("REC-11")
@pytest.mark.parametrize("form", FORMATS)
def test_a_plain_record_is_shortened_between_two_words_and_says_so(form: Format) -> None:
    whole, mark = compiled(record("a", LONG), format=form), {"markdown": ", cut short"}.get(form, "truncated")
    output = compiled(record("a", LONG), format=form, token_budget=whole.budget.used // 2)
    (block,) = output.blocks
    assert block.truncated
    assert output.manifest.entries[0].truncated
    assert mark in block.content
    assert mark not in whole.text
    begins, ends = block.content.index("word0"), block.content.index(" …")
    kept = block.content[begins:ends]
    assert LONG.startswith(f"{kept} ")
    assert output.budget.used > whole.budget.used // 2 - 10
    assert output.budget.left_out == ()


@pytest.mark.rule("REC-11")
def test_a_text_is_shortened_only_if_a_sensible_part_of_it_is_left() -> None:
    bare = compiled(record("a", "…")).budget.used
    kept: list[int] = []
    for budget in range(bare, bare + 60):
        output = compiled(record("a", LONG), token_budget=budget)
        if output.blocks:
            text = output.blocks[0].content.partition("\n> ")[2]
            kept.append(CharacterTokenizer().count(text.removesuffix(" …")))
    assert 0 < len(kept) < 60
    assert min(kept) >= 24


def test_a_shortened_number_is_not_another_number() -> None:
    text = "the limit of this account and of all its cards taken together is since the first of May and until further notice 1 000 000 000 EUR"
    ends = set[str]()
    for budget in range(80, 140):
        for block in compiled(record("a", text), token_budget=budget).blocks:
            if block.truncated:
                ends.add(block.content.removesuffix(" …").rsplit(" ", 1)[-1])
    assert "notice" in ends
    assert not {"1", "000"} & ends


def test_a_text_without_spaces_is_shortened_within_its_one_word() -> None:
    output = compiled(record("a", "顧" * 2000), token_budget=150)
    assert output.blocks[0].truncated
    assert output.blocks[0].content.endswith("顧顧 …")
    assert output.budget.used > 140


@pytest.mark.rule("REC-11")
@pytest.mark.parametrize("form", FORMATS)
def test_a_text_that_grows_when_escaped_is_shortened_to_what_fits(form: Format) -> None:
    output = compiled(record("a", "<x " * 2000), format=form, token_budget=400)
    assert output.blocks[0].truncated
    assert 200 < output.budget.used <= 400


class Superadditive:
    """A tokenizer whose whole has more tokens than its parts."""

    name = "superadditive"

    def count(self, text: str) -> int:
        return len(text) // 4 + len(text) ** 2 // 8000

    def cut(self, text: str, tokens: int) -> str:
        while self.count(text) > tokens:
            text = text[: len(text) * 9 // 10]
        return text


@pytest.mark.rule("REC-11")
@pytest.mark.parametrize("form", FORMATS)
def test_the_budget_holds_though_the_parts_count_less_than_the_whole(form: Format) -> None:
    records = [record(f"r{number}") for number in range(8)]
    output = compiled(*records, format=form, tokens=Superadditive(), token_budget=700)
    assert 0 < output.budget.used <= 700
    assert Superadditive().count(output.text) <= 700
    assert accounted(output) == sorted(one.id for one in records)
    assert output.budget.frame + sum(output.budget.blocks.values()) < output.budget.used


hostile = st.lists(st.sampled_from(FRAGMENTS) | st.characters(), max_size=60).map("".join)
texts = hostile | st.integers(1, 120).map(lambda words: " ".join(["word"] * words)) | hostile.map(lambda text: text * 6)


@st.composite
def recalls(draw: st.DrawFn) -> dict[str, Any]:
    many = draw(st.lists(texts, max_size=6))
    made = [record(f"r{number}", text) for number, text in enumerate(many)]
    parts = sorted(draw(st.tuples(*[st.integers(0, len(made))] * 2)))
    sides = made[parts[1] :]
    return {
        "plain": made[: parts[0]],
        "low_confidence": tuple(made[parts[0] : parts[1]]),
        "conflicts": (conflict(*sides),) if sides else (),
    }


@pytest.mark.rule("REC-11", "CTR-6")
@settings(max_examples=60)
@given(recalls(), st.integers(0, 700), st.sampled_from(FORMATS), st.booleans())
def test_the_budget_holds_for_the_whole_text_and_every_memory_is_accounted_for_once(
    recalled: dict[str, Any], budget: int, form: Format, builtin: bool
) -> None:
    tokens: Tokenizer = builtin_tokenizer() if builtin else CharacterTokenizer()
    plain: list[Record] = recalled.pop("plain")
    sets: tuple[ConflictSet, ...] = recalled["conflicts"]
    output = compiled(*plain, **recalled, tokens=tokens, format=form, token_budget=budget)
    assert tokens.count(output.text) <= output.budget.used <= budget
    assert sum(tokens.count(message.content) for message in output.messages) <= output.budget.used
    assert (output.text == "") == (output.blocks == ()) == (output.budget.used == 0)
    everything = [*plain, *recalled["low_confidence"], *(one for each in sets for one in each.records)]
    assert accounted(output) == sorted(one.id for one in everything)
    for entry, block in zip(output.manifest.entries, output.blocks, strict=True):
        assert block.content in (output.text if form != "messages" else output.messages[1].content)
        assert entry.tokens == output.budget.blocks[block.id]
        if entry.kind != "plain":
            assert not entry.truncated
        if entry.kind == "conflict":
            assert len(entry.citations) == len(sets[0].records)
