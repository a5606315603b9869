"""Editing JSON as text: one difference, and everything else as it stands."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.assistants.json_text import MISSING, JsonText

COMMENTED = """{
\t// my servers
\t"mcpServers": {
\t\t"files": {"command": "files", "args": []}, /* the first */
\t},
\t"theme": "dark", // at night
}
"""


def test_an_entry_is_added_beside_comments_and_trailing_commas() -> None:
    made = JsonText(COMMENTED).set(("mcpServers", "muniment"), {"command": "muniment"})
    for line in COMMENTED.splitlines():
        assert line in made.text
    assert made.value["mcpServers"] == {"files": {"command": "files", "args": []}, "muniment": {"command": "muniment"}}
    assert made.remove(("mcpServers", "muniment")).text == COMMENTED
    assert '\n\t\t"muniment": {\n\t\t\t"command": "muniment"\n\t\t}' in made.text


def test_what_was_added_and_removed_again_leaves_the_text_as_it_was() -> None:
    plain = '{\n  "a": 1,\n  "b": {\n    "c": [\n      2\n    ]\n  }\n}\n'
    document = JsonText(plain)
    assert document.set(("b", "new"), {"x": [1]}).remove(("b", "new")).text == plain
    assert document.append(("b", "c"), {"y": 1}).remove_items(("b", "c"), lambda one: one == {"y": 1}).text == plain
    assert document.set(("z", "new"), 1).remove(("z",)).text == plain


def test_line_endings_indentation_and_a_byte_order_mark_stay() -> None:
    made = JsonText('\ufeff{\r\n    "a": 1\r\n}\r\n').set(("b",), {"c": 2})
    assert made.text == '\ufeff{\r\n    "a": 1,\r\n    "b": {\r\n        "c": 2\r\n    }\r\n}\r\n'


def test_an_empty_file_is_an_empty_object() -> None:
    assert JsonText("").set(("a",), 1).text == '{\n  "a": 1\n}\n'
    assert JsonText(" \n").value == {}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"a": 1', "line 1"),
        ('{"a": 1}\n}', "line 2: there is something after"),
        ('{"a" 1}', "a colon was expected"),
        ('{\n"a": 1\n"b": 2}', "line 3: a comma"),
        ("[1]", "is not a JSON object"),
        ('{"a": nope}', "a value was expected"),
        ('{"a": "open}', "a string does not end"),
        ('{"a": "\\x"}', "a wrong escape"),
        ('{"a": ' + "[" * 200 + "]" * 200 + "}", "nested too deeply"),
    ],
)
def test_what_is_not_json_is_refused_with_its_line(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        JsonText(text)


def test_a_value_in_the_way_is_not_replaced() -> None:
    with pytest.raises(ValueError, match="no object at mcpServers"):
        JsonText('{"mcpServers": []}').set(("mcpServers", "muniment"), {})
    with pytest.raises(ValueError, match="no list at hooks"):
        JsonText('{"hooks": {}}').append(("hooks",), 1)


KEYS = st.text(st.characters(codec="utf-8"), max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(KEYS, VALUES, max_size=4), KEYS, VALUES, st.sampled_from([None, 1, 2, "\t"]))
def test_any_document_says_the_same_with_one_difference(
    value: dict[str, Any], key: str, new: object, indent: object
) -> None:
    document = JsonText(json.dumps(value, indent=indent, ensure_ascii=False))
    made = document.set((key,), new)
    assert json.loads(made.text) == {**value, key: new}
    gone = made.remove((key,))
    assert json.loads(gone.text) == {name: one for name, one in value.items() if name != key}
    assert gone.get((key,)) is MISSING


@given(st.lists(VALUES, max_size=4), VALUES, st.sampled_from([None, 2]))
def test_any_list_gets_one_more_and_loses_it_again(items: list[Any], new: object, indent: int | None) -> None:
    document = JsonText(json.dumps({"a": {"list": items}}, indent=indent))
    made = document.append(("a", "list"), {"ours": new})
    assert json.loads(made.text) == {"a": {"list": [*items, {"ours": new}]}}
    back = made.remove_items(("a", "list"), lambda one: one == {"ours": new})
    assert json.loads(back.text)["a"]["list"] == [one for one in items if one != {"ours": new}]
