"""The grammar makes texts from rules, the same ones for the same seed."""

import re
from random import Random

import pytest
from training.guard.generated import LANGUAGES, grammar, kinds
from training.guard.grammar import FOLDER, Grammar, parse

REFERENCE = re.compile(r"\$([a-z_]+)")
FILES = sorted(path.stem for path in FOLDER.glob("*.txt"))


def test_a_reference_and_a_choice_are_replaced() -> None:
    rules = parse("greeting:\n  [hello|hello] $name!\nname:\n  Ada\n; a comment\n")

    assert Grammar(rules).make("greeting", Random(1)) == "Hello Ada!"


def test_brackets_without_a_bar_and_line_breaks_are_kept() -> None:
    rules = parse("note:\n  [SYSTEM]\\nfirst line. second line.\n")

    assert Grammar(rules).make("note", Random(1)) == "[SYSTEM]\nFirst line. Second line."


def test_an_option_that_belongs_to_no_rule_is_refused() -> None:
    with pytest.raises(ValueError, match="without a rule"):
        parse("  an option\n")


@pytest.mark.parametrize("name", FILES)
def test_every_reference_of_a_file_has_a_rule(name: str) -> None:
    made = grammar(name)
    options = [
        option for rule in parse((FOLDER / f"{name}.txt").read_text(encoding="utf-8")).values() for option in rule
    ]

    references = {found for option in options for found in REFERENCE.findall(option)} - {"digit"}

    assert [one for one in sorted(references) if not made.has(one)] == []


@pytest.mark.parametrize("name", FILES)
def test_no_text_keeps_a_sign_of_the_grammar(name: str) -> None:
    made, random = grammar(name), Random(2)
    kinds_of_file = [rule for ending in ("_attack", "_plain", "_worth", "_idle") for rule in kinds(name, ending)]

    texts = [made.make(rule, random) for rule in kinds_of_file for _ in range(20)]

    assert [text for text in texts if re.search(r"\$[a-z]|\[[^\]]*\|", text)] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_attacks_and_harmless_texts_of_many_kinds(language: str) -> None:
    assert len(kinds(f"attack.{language}", "_attack")) >= 10
    assert len(kinds(f"harmless.{language}", "_plain")) >= 5
