"""Redaction of JSON values: every depth, keys and numbers too, and what is one thing only side by side."""

from typing import Any

import pytest

from muniment.language.redaction import Redacted, redactor_of
from muniment.pack import builtin_pack
from tests.language.redaction_packs import pack_with

CARD = "4111 1111 1111 1111"


@pytest.mark.rule("RED-1", "CAN-9")
def test_json_is_redacted_at_every_depth_keys_and_numbers_too() -> None:
    value = {
        "note": ["mail ada@example.com", {"deep": (CARD,)}],
        "bob@example.com": True,
        "number": 4111111111111111,
        "as_float": 4111111111111111.0,
        "count": 12,
        "share": 0.25,
        "nothing": None,
    }
    done = redactor_of(builtin_pack()).json(value)
    assert done.content == {
        "note": ["mail [EMAIL]", {"deep": ("************1111",)}],
        "[EMAIL]": True,
        "number": "************1111",
        "as_float": "************1111",
        "count": 12,
        "share": 0.25,
        "nothing": None,
    }
    assert done.counts == {"email": 2, "card": 3}
    assert value["number"] == 4111111111111111


@pytest.mark.rule("RED-1")
def test_a_key_speaks_for_its_value() -> None:
    value = {
        "phone": "467 3395",
        "dateOfBirth": "1985-03-12",
        "ssn": 531217351,
        "order": "467 3395",
        "tel": ["467 3395"],
    }
    done = redactor_of(builtin_pack()).json(value)
    assert done.content == {
        "phone": "[PHONE]",
        "dateOfBirth": "[DATE_OF_BIRTH]",
        "ssn": "[NATIONAL_ID]",
        "order": "467 3395",
        "tel": ["[PHONE]"],
    }


def test_two_keys_with_the_same_mask_keep_both_values() -> None:
    done = redactor_of(builtin_pack()).json({"ada@example.com": 1, "bob@example.com": 2, "cy@example.com": 3})
    assert sorted(done.content.values()) == [1, 2, 3]
    assert not any("@" in key for key in done.content)
    assert redactor_of(builtin_pack()).json(done.content) == Redacted(done.content, {}, None)


@pytest.mark.rule("RED-1", "RED-3")
@pytest.mark.parametrize("shown", [{"mask": "[N]"}, {"mask": "9"}, {"keep_last": 1}])
@pytest.mark.parametrize("pattern", ["[0-9]", "[0-9]+", r"\w+", ".", r"\s|[0-9]"])
def test_keys_with_the_same_mask_stay_apart_even_where_their_count_is_masked(
    pattern: str, shown: dict[str, Any]
) -> None:
    redactor = redactor_of(pack_with({"name": "part", "pattern": pattern, **shown}))
    done = redactor.json({f"{number:03}": {"at": str(number)} for number in range(100, 140)})
    assert len(done.content) == 40
    assert redactor.json(done.content) == Redacted(done.content, {}, None)


def test_a_key_that_looks_like_the_second_of_its_name_is_not_lost() -> None:
    redactor = redactor_of(builtin_pack())
    done = redactor.json({"[EMAIL] (2)": 1, "ada@example.com": 2, "bob@example.com": 3, "[EMAIL]": 4, "[EMAIL] (3)": 5})
    assert sorted(done.content.values()) == [1, 2, 3, 4, 5]
    assert redactor.json(done.content) == Redacted(done.content, {}, None)


@pytest.mark.rule("RED-1", "RED-3")
@pytest.mark.parametrize(
    ("value", "expected", "counts"),
    [
        (["ada.king@", "example.com"], ["[EMAIL]", "[EMAIL]"], {"email": 1}),
        (["to ada", "@", "example.com now"], ["to [EMAIL]", "[EMAIL]", "[EMAIL] now"], {"email": 1}),
        (["ada@example", ".com"], ["[EMAIL]", "[EMAIL]"], {"email": 1}),
        ([4111, 1111, 1111, 1111], ["****"] * 4, {"card": 1}),
        (("a", "4111", "1111", "1111", "1111", "b"), ("a", *["****"] * 4, "b"), {"card": 1}),
        ({"n": [[4111, 1111, 1111, 1111]]}, {"n": [["****"] * 4]}, {"card": 1}),
        (["+4420", "79460958"], ["[PHONE]", "[PHONE]"], {"phone": 1}),
        # rows of any numbers, and sentences
        ([450, 600, 1200], [450, 600, 1200], {}),
        ([4111, 1111, 1111, 1111, 5200], [4111, 1111, 1111, 1111, 5200], {}),
        ([4111, 1111, None, 1111, 1111], [4111, 1111, None, 1111, 1111], {}),
        (["see you @", "noon.", "bye"], ["see you @", "noon.", "bye"], {}),
    ],
)
def test_items_side_by_side_that_are_one_thing_are_masked(value: Any, expected: Any, counts: dict[str, int]) -> None:
    redactor = redactor_of(builtin_pack())
    done = redactor.json(value)
    assert (done.content, done.counts) == (expected, counts)
    assert redactor.json(done.content) == Redacted(done.content, {}, None)
