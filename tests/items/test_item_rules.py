"""The rules of items: entities of names, what is read back, texts, filters and namespaces."""

import hmac
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.errors import InvalidInput
from muniment.items import rules
from muniment.model.fields import TEXT_LIMIT
from muniment.model.ids import CEID_PATTERN, ENTITIES_PATTERN
from muniment.recall.entities import lies_under

PARTS = st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=8).map(tuple)
USERS = st.none() | st.text(min_size=1, max_size=6)


def digest(content: bytes) -> bytes:
    return hmac.digest(b"a key of a tenant", content, "sha256")


def other_digest(content: bytes) -> bytes:
    return hmac.digest(b"that of another", content, "sha256")


@pytest.mark.rule("ADP-3")
@pytest.mark.hypothesis
@given(PARTS, st.text(min_size=1, max_size=12), USERS)
def test_an_entity_is_a_ceid_that_holds_nothing_of_the_names(
    namespace: tuple[str, ...], key: str, user: str | None
) -> None:
    entity = rules.entity_of(digest, user, namespace, key)
    assert re.fullmatch(CEID_PATTERN, entity)
    assert re.fullmatch(ENTITIES_PATTERN, rules.entities_under(digest, user, namespace))
    assert entity == rules.entity_of(digest, user, namespace, key)
    assert entity != rules.entity_of(other_digest, user, namespace, key)
    assert entity.count(".") == len(namespace) + 1


@pytest.mark.rule("ADP-3")
@pytest.mark.hypothesis
@given(PARTS, PARTS, USERS, USERS)
def test_an_entity_lies_under_a_namespace_exactly_if_its_first_parts_are_those(
    namespace: tuple[str, ...], above: tuple[str, ...], user: str | None, other: str | None
) -> None:
    for parts in (above, namespace[: len(above)], namespace[:1], ()):
        entity = rules.entity_of(digest, user, namespace, "k")
        pattern = rules.entities_under(digest, other, parts)
        assert lies_under(entity, [pattern]) == (user == other and namespace[: len(parts)] == parts)


def test_users_and_parts_that_run_together_are_kept_apart() -> None:
    entities = {
        rules.entity_of(digest, user, namespace, key)
        for user, namespace, key in (
            (None, ("ab",), "c"),
            (None, ("a", "b"), "c"),
            (None, ("a",), "bc"),
            ("a", ("b",), "c"),
            ("ab", ("c",), "c"),
            ("", ("ab",), "c"),
        )
    }
    assert len(entities) == 6


def test_what_was_not_put_as_an_item_is_none() -> None:
    assert rules.read_content(rules.content_of(("a",), "k", {"x": 1})) == (("a",), "k", {"x": 1})
    assert rules.read_content(rules.content_of(("a",), "k", None)) == (("a",), "k", None)
    for wrong in ("text", 5, None, {}, {"item_namespace": "a", "item_key": "k", "item_value": 1}, [1]):
        assert rules.read_content(wrong) is None
    assert rules.read_content({"item_namespace": [5], "item_key": "k", "item_value": 1}) is None
    assert rules.read_content(rules.deletion_of(("a",), "k")) is None


def test_the_text_of_an_item_are_the_strings_of_its_value() -> None:
    assert rules.text_of("k", {"a": "one", "b": [{"c": "two"}, 3, None], "d": " "}) == "one\ntwo"
    assert rules.text_of("k", {"n": 3}) == 'k: {"n":3}'
    assert rules.text_of("k", "plain") == "plain"
    long = rules.text_of("k", {"a": "ä" * TEXT_LIMIT})
    assert len(long.encode()) <= TEXT_LIMIT
    assert set(long) == {"ä"}


@pytest.mark.parametrize(
    ("conditions", "holds"),
    [
        ({"color": "red"}, True),
        ({"color": {"$eq": "red"}, "score": {"$gte": 4.5, "$lt": 5}}, True),
        ({"color": {"$ne": "red"}}, False),
        ({"score": {"$gt": 4.5}}, False),
        ({"score": {"$lte": "4.5"}}, True),
        ({"on": True}, True),
        ({"on": 1}, False),
        ({"missing": None}, True),
        ({"missing": {"$gt": 1}}, False),
        ({"color": {"$gt": 1}}, False),
        ({"inner": {"a": 1}}, True),
        ({"inner": {"a": {"$gt": 1}}}, False),
        ({"tags": ["x", "y"]}, True),
        ({"tags": ["x"]}, False),
        ({"color": {"a": 1}}, False),
        ({}, True),
    ],
)
def test_a_filter_compares_as_langgraph_does(conditions: dict[str, Any], holds: bool) -> None:
    value = {"color": "red", "score": 4.5, "on": True, "inner": {"a": 1, "b": 2}, "tags": ["x", "y"]}
    rules.check_filter(conditions)
    assert rules.matches(value, conditions) is holds


@pytest.mark.parametrize("wrong", [{"$eq": 1}, {"a": {"$near": 1}}, {"a": {"$gt": "much"}}, {"a": {"$lt": True}}])
def test_an_unknown_operator_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="where"):
        rules.check_filter(wrong)


def test_a_plain_value_matches_only_no_condition() -> None:
    assert rules.matches("text", {})
    assert not rules.matches("text", {"a": 1})


def test_namespaces_are_matched_by_whole_parts() -> None:
    assert rules.begins_with(("a", "b"), ("a",))
    assert rules.begins_with(("a", "b"), ("*", "b"))
    assert not rules.begins_with(("ab",), ("a",))
    assert not rules.begins_with(("a",), ("a", "*"))
    assert rules.ends_with(("a", "b", "c"), ("*", "c"))
    assert not rules.ends_with(("a", "bc"), ("c",))
    assert rules.whole_parts(("a", "*", "b")) == ("a",)
