"""Names of principals: what is refused, and which names count as one person's."""

import json
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment import Principal
from muniment.errors import InvalidInput
from muniment.model.context import RunContext
from muniment.model.names import check_name, is_among, name_keys, name_problem, same_person
from tests.model import name_table

CYRILLIC_BORIS = "b\u043eris"  # with a Cyrillic o

SAME = [
    ("boris", "Boris"),
    ("boris", "BORIS"),
    ("boris", "bor\u0131s"),
    ("bill", "bi11"),
    ("bill", "BIll"),
    ("Ilia", "llia"),
    ("mike", "rnike"),
    ("Mike", "RNIKE"),
    ("bob", "b0b"),
    ("coco", "\u0441\u043e\u0441\u043e"),  # Cyrillic throughout
    ("BOB", "\u0412\u041e\u0412"),  # Cyrillic capitals, whose small forms look otherwise
    ("nina", "\u039d\u0399\u039d\u0391"),  # Greek capitals
    ("boris", "\uff42\uff4f\uff52\uff49\uff53"),  # full width
    ("boris", "\U0001d41b\U0001d428\U0001d42b\U0001d422\U0001d42c"),  # mathematical bold
    ("Stra\u00dfe", "STRASSE"),
    ("anna b", "Anna  B"),
    ("alice", "\u237alice"),  # a symbol that is drawn like an a
    (CYRILLIC_BORIS, "boris"),
    ("bo\u200bris", "boris"),
    ("boris\ufe0f", "boris"),
    ("\u202eboris", "boris"),
    ("\u0418\u0412\u0410\u041d", "\u0438\u0432\u0430\u043d"),
    ("\u03c3\u03af\u03c3\u03c5\u03c6\u03bf\u03c2", "\u03a3\u038a\u03a3\u03a5\u03a6\u039f\u03a3"),
]
OTHERS = [
    ("boris", "clara"),
    ("nina", "vina"),
    ("bob", "bobb"),
    ("reviewer1", "reviewer2"),
    ("anna b", "annab"),
    ("zoe", "zo\u00eb"),
    ("user_1", "user-1"),
    ("\u0438\u0432\u0430\u043d", "ivan"),
    ("a", ""),
]


@pytest.mark.rule("REV-15")
@pytest.mark.parametrize(("one", "other"), SAME)
def test_names_that_look_alike_are_one_persons(one: str, other: str) -> None:
    assert same_person(one, other) and same_person(other, one)
    assert is_among(one, ["somebody", other])


@pytest.mark.rule("REV-15")
@pytest.mark.parametrize(("one", "other"), OTHERS)
def test_names_that_differ_to_the_eye_are_two_peoples(one: str, other: str) -> None:
    assert not same_person(one, other) and name_keys(one).folded != name_keys(other).folded


@pytest.mark.rule("REV-15")
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        (CYRILLIC_BORIS, "mixes the scripts Cyrillic and Latin"),
        ("\u03b1nna", "mixes the scripts Greek and Latin"),
        ("\u7530\u4e2d tanaka", "mixes the scripts Han and Latin"),
        ("bo\u200bris", "invisible character U+200B"),
        ("bo\u200dris", "invisible character U+200D"),
        ("bo\u00adris", "invisible character U+00AD"),
        ("boris\ufe0f", "invisible character U+FE0F"),
        ("boris\U000e0100", "invisible character U+E0100"),
        ("\u202eboris", "invisible character U+202E"),
        ("anna\u00a0b", "invisible character U+00A0"),
        ("anna\u3164b", "invisible character U+3164"),
        ("anna\u2800b", "invisible character U+2800"),
        ("bori\ue000s", "invisible character U+E000"),
        ("e\u0301va", "composed form"),
    ],
)
def test_a_name_with_invisible_or_mixed_script_characters_is_refused(name: str, problem: str) -> None:
    assert problem in str(name_problem(name))
    with pytest.raises(InvalidInput) as error:
        Principal(tenant_id="t", id=name, kind="operator", roles={"reviewer"})
    assert error.value.field == "id" and problem in str(error.value)
    with pytest.raises(InvalidInput):
        RunContext(tenant_id="t", run_id="r", agent_id=name)


@pytest.mark.rule("REV-15")
@pytest.mark.parametrize(
    "name",
    [
        "boris",
        "o'neil, Mary-Jane",
        "boris@example.com",
        "auth0|5f7c",
        "Zo\u00eb",
        "\u0418\u0432\u0430\u043d 2",
        "\u7530\u4e2d\u3055\u3093",
        "\u7530\u4e2d\u30ab\u30ca",
        "\uae40\u91d1",
        "\u0639\u0644\u064a",
        "\u05d3\u05d5\u05d3",
    ],
)
def test_names_of_one_script_are_taken(name: str) -> None:
    assert check_name(name) == name and name_problem(name) is None


@pytest.mark.rule("REV-15")
def test_nobody_can_be_called_what_looks_like_the_name_of_policys_own_verdicts() -> None:
    for name in ("auto", "AUTO", "aut0", "\uff41uto", "\u0430\u0443\u0442\u043e"):
        if same_person(name, "auto"):
            with pytest.raises(InvalidInput):
                Principal(tenant_id="t", id=name, kind="operator")


@pytest.mark.rule("REV-15")
@given(st.text(max_size=20))
def test_every_text_has_keys_and_case_never_makes_another_person(text: str) -> None:
    assert same_person(text, text)
    assert same_person(text, text.upper()) or text.upper().lower() != text.lower()
    assert name_keys(name_keys(text).drawn).drawn == name_keys(text).drawn or not text.isascii()


@pytest.mark.rule("REV-15")
def test_the_table_is_what_unicodes_data_says() -> None:
    checked_in: dict[str, Any] = json.loads(name_table.TABLE.read_text("ascii"))
    built = name_table.build()
    assert checked_in["scripts"] == built["scripts"] and checked_in["unicode"] == built["unicode"]
    # A later Python knows more letters with a capital form; those that this table has are the same.
    assert {one: built["keys"].get(one) for one in checked_in["keys"]} == checked_in["keys"]


@pytest.mark.rule("REV-15")
def test_the_short_way_for_ascii_agrees_with_the_table() -> None:
    for one, other in product(map(chr, range(0x20, 0x7F)), ("", "\u044f")):
        assert name_keys(f"a{one}b{other}").folded.removesuffix("\u044f") == name_keys(f"a{one}b").folded
