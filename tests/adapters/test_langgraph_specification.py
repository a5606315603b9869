"""LangGraph's own tests of its stores as a specification (checkpoint and checkpoint-postgres, MIT licence).

What they ask of a store is asked here of ours. `FORBIDDEN` lists each of theirs that a rule of ours forbids, with the
rule and the test here that shows what happens instead; `ELSEWHERE` those that are about a part of their stores alone.
"""

import asyncio
import time
from typing import Any

import pytest
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)

from muniment import Fabric
from muniment.adapters.langgraph import MunimentStore
from muniment.testing import People
from tests.items.stores import person_of, personal, plain, run_of

__all__ = ["personal", "plain"]

FORBIDDEN = {
    "test_store_ttl": ("PRO-3", "test_reading_does_not_extend_a_term"),
    "test_omit_expired_refresh_ttl_only_refreshes_live_rows": ("PRO-3", "test_reading_does_not_extend_a_term"),
    "test_omit_expired_disabled_preserves_expired_rows": ("TIR-2", "test_what_has_ended_is_never_returned"),
    "test_scores": ("REC-2", "test_a_score_is_that_of_the_recall_with_all_its_parts"),
    "test_vector_store_initialization": ("CAN-15", "test_a_score_is_that_of_the_recall_with_all_its_parts"),
}
ELSEWHERE = {
    "test_escape_like_literal": "their SQL",
    "test_namespace_match_pattern": "their SQL",
    "test_nonnull_migrations": "their migrations",
    "test_async_batch_store": "their batching base class",
    "test_async_batch_store_resilience": "their batching base class",
    "test_async_batch_store_handles_cancellation": "their batching base class",
    "test_async_batch_store_deduplication": "their batching base class",
    "test_get_text_at_path": "their function, which ours calls",
}


@pytest.fixture
def store(personal: Fabric, people: People) -> MunimentStore:
    return MunimentStore(personal, run_of(people), person=person_of(people))


def put_all(store: MunimentStore, *namespaces: tuple[str, ...], **value: Any) -> None:
    for namespace in namespaces:
        store.put(namespace, "k", value or {"v": 1})


def test_every_forbidden_test_has_one_here_that_shows_the_rule() -> None:
    assert all(callable(globals()[ours]) for _, ours in FORBIDDEN.values())
    assert not FORBIDDEN.keys() & ELSEWHERE.keys()


# ---- batches ----


@pytest.mark.rule("ADP-1")
def test_batch_order(store: MunimentStore) -> None:
    store.put(("test", "foo"), "key1", {"data": "value1"})
    store.put(("test", "bar"), "key2", {"data": "value2"})
    results = store.batch(
        [
            GetOp(namespace=("test", "foo"), key="key1"),
            PutOp(namespace=("test", "bar"), key="key2", value={"data": "value2"}),
            SearchOp(namespace_prefix=("test",), filter={"data": "value1"}, limit=10, offset=0),
            ListNamespacesOp(match_conditions=None, max_depth=None, limit=10, offset=0),
            GetOp(namespace=("test",), key="key3"),
        ]
    )
    assert isinstance(results[0], Item)
    assert (results[0].value, results[0].key) == ({"data": "value1"}, "key1")
    assert results[1] is None
    assert len(results[2]) == 1
    assert results[3] == [("test", "bar"), ("test", "foo")]
    assert results[4] is None


def test_batch_get_and_put_ops(store: MunimentStore) -> None:
    ops = [
        PutOp(namespace=("test",), key="key1", value={"data": "value1"}),
        PutOp(namespace=("test",), key="key2", value={"data": "an earlier one"}),
        PutOp(namespace=("test",), key="key2", value={"data": "value2"}),
        PutOp(namespace=("test",), key="key3", value=None),
    ]
    assert store.batch(ops) == [None] * 4
    found = store.batch([GetOp(namespace=("test",), key=f"key{number}") for number in (1, 2, 3)])
    assert [one.value if one else None for one in found] == [{"data": "value1"}, {"data": "value2"}, None]


def test_batch_search_ops(store: MunimentStore) -> None:
    store.put(("test", "foo"), "key1", {"data": "value1", "tag": "a"})
    store.put(("test", "bar"), "key2", {"data": "value2", "tag": "a"})
    store.put(("test", "baz"), "key3", {"data": "value3", "tag": "b"})
    tagged, two, in_foo = store.batch(
        [
            SearchOp(namespace_prefix=("test",), filter={"tag": "a"}, limit=10, offset=0),
            SearchOp(namespace_prefix=("test",), filter=None, limit=2, offset=0),
            SearchOp(namespace_prefix=("test", "foo"), filter=None, limit=10, offset=0),
        ]
    )
    assert [one.value["tag"] for one in tagged] == ["a", "a"]
    assert len(two) == 2
    assert [one.namespace for one in in_foo] == [("test", "foo")]


def test_batch_list_namespaces_ops(store: MunimentStore) -> None:
    there = [("test", "documents", "public"), ("test", "documents", "private"), ("prod", "documents", "public")]
    put_all(store, *there)
    every, shallow, public = store.batch(
        [
            ListNamespacesOp(match_conditions=None, max_depth=None, limit=10, offset=0),
            ListNamespacesOp(match_conditions=None, max_depth=2, limit=10, offset=0),
            ListNamespacesOp((MatchCondition("suffix", ("public",)),), max_depth=None, limit=10, offset=0),
        ]
    )
    assert every == sorted(there)
    assert shallow == [("prod", "documents"), ("test", "documents")]
    assert public == [("prod", "documents", "public"), ("test", "documents", "public")]


# ---- put, get, delete ----


@pytest.mark.rule("ADP-1")
def test_basic_store_ops(store: MunimentStore) -> None:
    namespace, value = ("test", "documents"), {"title": "Test Document", "content": "Hello, World!"}
    store.put(namespace, "doc1", value)
    item = store.get(namespace, "doc1")
    assert item is not None
    assert (item.namespace, item.key, item.value) == (namespace, "doc1", value)
    changed = {"title": "Updated Document", "content": "Hello, Updated!"}
    store.put(namespace, "doc1", changed)
    updated = store.get(namespace, "doc1")
    assert updated is not None
    assert updated.value == changed
    assert updated.updated_at > item.updated_at
    assert store.get(("test", "other_documents"), "doc1") is None
    store.delete(namespace, "doc1")
    assert store.get(namespace, "doc1") is None


def test_the_same_through_the_asynchronous_methods(store: MunimentStore) -> None:
    async def story() -> None:
        await store.aput(("test",), "doc1", {"title": "one"})
        assert (await store.aget(("test",), "doc1")).value == {"title": "one"}
        assert [one.key for one in await store.asearch(("test",))] == ["doc1"]
        assert await store.alist_namespaces() == [("test",)]
        await store.adelete(("test",), "doc1")
        assert await store.aget(("test",), "doc1") is None

    asyncio.run(story())


def test_cannot_put_empty_namespace(store: MunimentStore) -> None:
    value = {"foo": "bar"}
    for wrong in ((), ("the", "thing.about"), ("some", ""), ("langgraph", "foo"), ("a\x00b",), (7,)):
        with pytest.raises(InvalidNamespaceError):
            store.put(wrong, "foo", value)
        with pytest.raises(InvalidNamespaceError):
            asyncio.run(store.aput(wrong, "foo", value))
    for op in (GetOp(("foo.bar",), "k"), SearchOp(("foo.bar",)), PutOp(("foo.bar",), "k", value)):
        with pytest.raises(InvalidNamespaceError):
            store.batch([op])


# ---- namespaces ----


@pytest.mark.rule("ADP-3")
def test_search_namespace_segment_boundary(store: MunimentStore) -> None:
    # CVE-2026-71433: namespaces were compared as text, so that the beginning of a part leaked its siblings.
    put_all(store, ("foo",), ("foo", "child"), ("foo", "child", "deep"), ("foobar",), ("foobar", "baz"), ("foo2",))

    def found(*prefix: str) -> set[tuple[str, ...]]:
        return {item.namespace for item in store.search(prefix, limit=100)}

    assert found("foo") == {("foo",), ("foo", "child"), ("foo", "child", "deep")}
    assert found("foobar") == {("foobar",), ("foobar", "baz")}
    assert found("foo", "child") == {("foo", "child"), ("foo", "child", "deep")}
    assert found("foo2") == {("foo2",)}
    assert found("fo") == set()
    assert found() == found("foo") | found("foobar") | found("foo2")


@pytest.mark.rule("ADP-3")
def test_search_namespace_like_metacharacters(store: MunimentStore) -> None:
    put_all(store, ("user_1",), ("user_1", "child"), ("userX1",), ("user_10",), ("a%b",), ("axxb",), ("*",))

    def found(*prefix: str) -> set[tuple[str, ...]]:
        return {item.namespace for item in store.search(prefix, limit=100)}

    assert found("user_1") == {("user_1",), ("user_1", "child")}
    assert found("a%b") == {("a%b",)}
    assert found("*") == {("*",)}


@pytest.mark.rule("ADP-3")
def test_list_namespaces_segment_boundary(store: MunimentStore) -> None:
    put_all(store, ("foo",), ("foo", "child"), ("foobar",), ("foobar", "baz"))
    put_all(store, ("uid", "users", "alice"), ("uid", "users", "malice"), ("uid", "a", "b", "alice"))
    alices = {("uid", "users", "alice"), ("uid", "a", "b", "alice")}
    assert set(store.list_namespaces(prefix=("foo",), limit=100)) == {("foo",), ("foo", "child")}
    assert set(store.list_namespaces(suffix=("alice",), limit=100)) == alices
    assert set(store.list_namespaces(prefix=("uid", "*", "alice"), limit=100)) == {("uid", "users", "alice")}
    assert set(store.list_namespaces(prefix=("uid",), limit=100)) == {*alices, ("uid", "users", "malice")}


def test_namespace_labels_with_trailing_newline(store: MunimentStore) -> None:
    put_all(store, ("users", "alice"), ("users", "alice\n"))
    assert store.list_namespaces(suffix=("alice",)) == [("users", "alice")]
    assert store.list_namespaces(prefix=("users", "alice")) == [("users", "alice")]


def test_list_namespaces_basic_with_wildcards_and_depth(store: MunimentStore) -> None:
    assert store.list_namespaces() == []
    put_all(store, ("a", "b", "c"), ("a", "b", "d", "e"), ("a", "b", "d", "i"), ("a", "b", "f"), ("a", "c", "f"))
    put_all(store, ("b", "a", "f"), ("users", "123"))
    assert store.list_namespaces(prefix=("a", "b")) == [
        ("a", "b", "c"),
        ("a", "b", "d", "e"),
        ("a", "b", "d", "i"),
        ("a", "b", "f"),
    ]
    assert store.list_namespaces(suffix=("f",)) == [("a", "b", "f"), ("a", "c", "f"), ("b", "a", "f")]
    assert store.list_namespaces(prefix=("a",), suffix=("f",)) == [("a", "b", "f"), ("a", "c", "f")]
    assert store.list_namespaces(prefix=("a", "b"), max_depth=3) == [("a", "b", "c"), ("a", "b", "d"), ("a", "b", "f")]
    assert store.list_namespaces(prefix=("a", "b"), limit=2) == [("a", "b", "c"), ("a", "b", "d", "e")]
    assert store.list_namespaces(prefix=("a", "b"), offset=2) == [("a", "b", "d", "i"), ("a", "b", "f")]
    assert store.list_namespaces(prefix=("a", "*", "f")) == [("a", "b", "f"), ("a", "c", "f")]
    assert store.list_namespaces(suffix=("*", "f")) == [("a", "b", "f"), ("a", "c", "f"), ("b", "a", "f")]
    assert store.list_namespaces(prefix=("nonexistent",)) == []
    assert store.list_namespaces(prefix=("users", "123")) == [("users", "123")]


# ---- search ----


def test_search(store: MunimentStore) -> None:
    store.put(("test", "docs"), "doc1", {"title": "First Doc", "author": "Alice", "tags": ["important"]})
    store.put(("test", "docs"), "doc2", {"title": "Second Doc", "author": "Bob", "tags": ["draft"]})
    store.put(("test", "images"), "img1", {"title": "Image 1", "author": "Alice", "tags": ["final"]})
    assert len(store.search(("test",))) == 3
    assert {one.key for one in store.search(("test", "docs"))} == {"doc1", "doc2"}
    assert {one.key for one in store.search(("test",), filter={"author": "Alice"})} == {"doc1", "img1"}
    assert [one.key for one in store.search(("test",), filter={"tags": ["draft"]})] == ["doc2"]
    assert len(store.search(("test",), limit=2)) == 2
    assert len(store.search(("test",), offset=2)) == 1


def test_vector_search_with_filters(store: MunimentStore) -> None:
    store.put(("test",), "doc1", {"text": "red apple", "color": "red", "score": 4.5})
    store.put(("test",), "doc2", {"text": "red car", "color": "red", "score": 3.0})
    store.put(("test",), "doc3", {"text": "green apple", "color": "green", "score": 4.0})
    store.put(("test",), "doc4", {"text": "blue car", "color": "blue", "score": 3.5})

    def found(query: str, **conditions: Any) -> list[str]:
        return [one.key for one in store.search(("test",), query=query, filter=conditions)]

    assert found("apple", color="red") == ["doc1", "doc2"]
    assert found("car", color="red") == ["doc2", "doc1"]
    assert found("blue", score={"$gt": 3.2})[0] == "doc4"
    assert len(found("blue", score={"$gt": 3.2})) == 3
    assert found("apple", score={"$gte": 4.0}, color="green") == ["doc3"]
    assert set(found("apple", color={"$ne": "red"}, score={"$lt": 4.0})) == {"doc4"}
    assert set(found("apple", score={"$lte": 3.0})) == {"doc2"}


def test_vector_search_pagination(store: MunimentStore) -> None:
    for number in range(5):
        store.put(("test",), f"doc{number}", {"text": f"test document number {number}"})
    first = [one.key for one in store.search(("test",), query="test", limit=2)]
    second = [one.key for one in store.search(("test",), query="test", limit=2, offset=2)]
    every = [one.key for one in store.search(("test",), query="test", limit=10)]
    assert (first, second, len(every)) == (every[:2], every[2:4], 5)


def test_vector_search_edge_cases(store: MunimentStore) -> None:
    store.put(("test",), "doc1", {"text": "test document"})
    for query in ("", None, "test " * 100, "test!@#$%^&*()"):
        assert len(store.search(("test",), query=query)) == 1


def test_vector_update_with_embedding(store: MunimentStore) -> None:
    store.put(("test",), "doc1", {"text": "zany zebra Xerxes"})
    store.put(("test",), "doc2", {"text": "something about dogs"})
    store.put(("test",), "doc3", {"text": "text about birds"})
    before = store.search(("test",), query="Zany Xerxes")[0]
    assert before.key == "doc1"
    store.put(("test",), "doc1", {"text": "new text about dogs"})
    after = {one.key: one.score for one in store.search(("test",), query="Zany Xerxes")}
    assert after["doc1"] < before.score
    store.put(("test",), "doc4", {"text": "new text about dogs"}, index=False)
    assert "doc4" not in [one.key for one in store.search(("test",), query="new text about dogs", limit=3)]
    assert store.get(("test",), "doc4") is not None


def test_embed_with_path(personal: Fabric, people: People) -> None:
    store = MunimentStore(personal, run_of(people), fields=["title", "notes[*].text"])
    store.put(("test",), "doc1", {"title": "gardening", "notes": [{"text": "tulips"}], "secret": "astronomy"})
    store.put(("test",), "doc2", {"title": "astronomy", "notes": [], "secret": "tulips"})
    store.put(("test",), "doc3", {"title": "astronomy", "body": "sailing"}, index=["body"])
    assert store.search(("test",), query="tulips")[0].key == "doc1"
    assert store.search(("test",), query="astronomy")[0].key == "doc2"
    assert store.search(("test",), query="sailing")[0].key == "doc3"


def test_non_ascii(store: MunimentStore) -> None:
    texts = {"1": "这是中文", "2": "これは日本語です", "3": "이건 한국어야", "4": "Это русский", "5": "यह रूसी है"}
    for key, text in texts.items():
        store.put(("user_123", "memories"), key, {"text": text})
    for key, text in texts.items():
        assert store.search(("user_123", "memories"), query=text)[0].key == key


# ---- what rules forbid, and what happens instead ----


@pytest.mark.rule("PRO-3", "REC-14")
def test_reading_does_not_extend_a_term(store: MunimentStore) -> None:
    store.put(("foo",), "item1", {"foo": "bar"}, ttl=1.2 / 60)
    ends = store.get(("foo",), "item1", refresh_ttl=True).metadata["valid_until"]
    store.search(("foo",), query="foo", refresh_ttl=True)
    assert store.get(("foo",), "item1", refresh_ttl=True).metadata["valid_until"] == ends
    time.sleep(1.3)
    assert store.get(("foo",), "item1") is None
    # Putting it again is a new proposal, with a term of its own.
    store.put(("foo",), "item1", {"foo": "bar"}, ttl=1)
    assert store.get(("foo",), "item1").metadata["valid_until"] > ends


@pytest.mark.rule("TIR-2", "REC-14")
def test_what_has_ended_is_never_returned(personal: Fabric, people: People) -> None:
    store = MunimentStore(personal, run_of(people), ttl={"default_ttl": 0.5 / 60, "omit_expired": False})
    store.put(("omit", "expired"), "e", {"data": "gone"})
    store.put(("omit", "control"), "c", {"data": "keep"}, ttl=None)
    time.sleep(0.6)
    assert store.get(("omit", "expired"), "e") is None
    assert store.search(("omit", "expired")) == []
    assert store.list_namespaces(prefix=("omit",)) == [("omit", "control")]
    assert [one.key for one in store.search(("omit",))] == ["c"]


@pytest.mark.rule("REC-2")
def test_a_score_is_that_of_the_recall_with_all_its_parts(store: MunimentStore) -> None:
    store.put(("test",), "doc", {"key0": "aaa"})
    (found,) = store.search((), query="aaa")
    (recalled,) = store.items.fabric.recall(store.items.run, "aaa").records
    assert found.score > 0.5
    assert recalled.id == found.metadata["memory_id"]
    assert store.search(())[0].score is None
