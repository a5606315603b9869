"""Items through the verbs: what is stored, who sees it, how it is recalled, explained and replayed."""

from typing import Any

import pytest

from muniment import Fabric
from muniment.adapters.packs import pack_for_tool
from muniment.errors import InvalidInput, NotFound, RoleMissing
from muniment.pack import PROFILES
from muniment.testing import FakeClock, People
from tests.items.stores import run_of
from tests.pack_activation import put_in_force

TOOL = "tool:langgraph"


def put(fabric: Fabric, run: Any, namespace: tuple[str, ...], key: str, value: Any, **fields: Any) -> Any:
    return fabric.items.put(run, namespace, key, value, origin=TOOL, **fields)


@pytest.mark.rule("ADP-3", "ERA-1")
def test_names_and_values_rest_sealed(personal: Fabric, people: People, rows: Any) -> None:
    put(personal, run_of(people), ("memories", "zanzibar"), "quetzal", {"likes": "marmalade"})
    tables = ("captures", "candidates", "proposals", "memories", "memory_scope", "memory_bodies", "verdicts", "events")
    stored = "".join(str(row) for table in tables for row in rows(table))
    assert "item:" in stored
    for name in ("zanzibar", "quetzal", "marmalade"):
        assert name not in stored
        assert name.encode().hex() not in stored


@pytest.mark.rule("ADP-3", "REC-6")
def test_a_recall_is_narrowed_to_all_under_whole_parts_with_and_without_a_query(
    personal: Fabric, people: People
) -> None:
    run = run_of(people)
    ids = {
        name: put(personal, run, name, "k", {"text": f"sailing {'/'.join(name)}"}).memory_id
        for name in (("a",), ("a", "b"), ("ab",), ("c",))
    }
    some = personal.memories.list(people.auditor)
    entity = {one.memory_id: str(one.entity) for one in some}
    above = entity[ids["a",]].rpartition(".")[0] + ".*"
    for query in (None, "sailing"):
        answer = personal.recall(run, query, entities=[above])
        assert {one.id for one in answer.records} == {ids["a",], ids["a", "b"]}
        assert personal.replay(people.auditor, answer.recall_id).same
        hidden = personal.explain(people.auditor, memory_id=ids["ab",], recall_id=answer.recall_id)
        assert (hidden.returned, hidden.missed) == (False, "narrowed")
    exact = personal.recall(run, "sailing", entities=[entity[ids["c",]], above])
    assert {one.id for one in exact.records} == {ids["a",], ids["a", "b"], ids["c",]}
    assert personal.recall(run, "sailing", entities=["item:*"]).records
    with pytest.raises(InvalidInput, match="hops"):
        personal.recall(run, entities=[above], hops=1)


@pytest.mark.rule("REC-6")
def test_the_index_and_the_statements_give_the_same_for_a_pattern(
    personal: Fabric, people: People, tenant: str
) -> None:
    run = run_of(people)
    for number in range(12):
        put(personal, run, ("a" if number % 2 else "ab", str(number)), "k", {"text": f"boat {number} on the lake"})
    (one,) = personal.items.search(run, ("a", "1")).items
    entity = next(
        str(m.entity) for m in personal.memories.list(people.auditor, limit=50) if m.memory_id == one.memory_id
    )
    above = ".".join(entity.split(".")[:2]) + ".*"
    by_index = personal.recall(run, "a boat", entities=[above], limit=20)
    scopes = personal._fabric.opened.context.scopes
    scopes.forget(tenant)
    limit, scopes.limit = scopes.limit, 0
    by_statements = personal.recall(run, "a boat", entities=[above], limit=20)
    scopes.limit = limit
    assert len(by_index.records) == 6
    assert [(one.id, one.score) for one in by_index.records] == [(one.id, one.score) for one in by_statements.records]


@pytest.mark.rule("REC-8", "REC-9")
def test_every_read_is_recorded_and_replays(personal: Fabric, people: People) -> None:
    run = run_of(people)
    for number in range(4):
        put(personal, run, ("a",), f"k{number}", {"n": number, "text": f"note {number}"})
    found = [
        personal.items.search(run, ("a",), query="note"),
        personal.items.search(run, ("a",), where={"n": {"$gt": 1}}),
        personal.items.search(run, ("a",), offset=1, limit=2),
    ]
    for one in found:
        assert personal.replay(people.auditor, one.recall_id).same
    assert [len(one.items) for one in found] == [4, 2, 2]
    assert found[2].omitted == 2
    before = len(personal.recalls.list(people.auditor))
    personal.items.get(run, ("a",), "k1")
    personal.items.namespaces(run)
    assert len(personal.recalls.list(people.auditor)) == before + 2


@pytest.mark.rule("REC-1", "ISO-4")
def test_items_of_one_user_are_not_another_users_and_not_the_tenants(personal: Fabric, people: People) -> None:
    for user in ("ann", "bob", None):
        put(personal, run_of(people, user), ("prefs",), "food", {"of": str(user)})
    for user in ("ann", "bob", None):
        run = run_of(people, user)
        item = personal.items.get(run, ("prefs",), "food")
        assert item is not None
        assert (item.value, item.conflicts) == ({"of": str(user)}, ())
        assert [one.value for one in personal.items.search(run).items] == [{"of": str(user)}]


@pytest.mark.rule("ADP-2")
def test_what_waits_is_told_to_its_author_alone(plain: Fabric, people: People) -> None:
    run = run_of(people)
    put(plain, run, ("prefs", "a"), "food", {"likes": "pizza"})
    assert [one.asks for one in plain.items.status(run)] == ["put"]
    assert len(plain.items.status(run, ("prefs",))) == 1
    assert len(plain.items.status(run, ("prefs", "a"), "food")) == 1
    assert plain.items.status(run, ("pref",)) == []
    assert plain.items.status(run_of(people, agent_id="other")) == []
    assert plain.items.status(run_of(people, "bob")) == []


@pytest.mark.rule("ADP-4")
def test_a_request_to_delete_is_decided_by_a_person_and_can_be_rejected(personal: Fabric, people: People) -> None:
    run = run_of(people)
    put(personal, run, ("prefs",), "food", {"likes": "pizza"})
    asked = personal.items.delete(run, ("prefs",), "food", origin=TOOL)
    assert asked.status == "pending"
    personal.consolidate(people.tenant_id)
    assert personal.items.get(run, ("prefs",), "food") is not None
    personal.queue.reject(people.reviewer, asked.proposal_id, reason="still needed")
    assert personal.items.get(run, ("prefs",), "food") is not None
    assert personal.items.status(run) == []
    assert personal.items.delete(run, ("prefs",), "food", origin=TOOL).proposal_id != asked.proposal_id
    with pytest.raises(NotFound):
        personal.items.delete(run, ("prefs",), "nothing")
    with pytest.raises(RoleMissing):
        personal.retract(run.principal, "pm_none", reason="wrong")


def test_a_put_is_repeated_under_its_idempotency_key(personal: Fabric, people: People) -> None:
    run = run_of(people)
    first = put(personal, run, ("a",), "k", {"n": "1"}, idempotency_key="once")
    again = put(personal, run, ("a",), "k", {"n": "1"}, idempotency_key="once")
    assert first.proposal_id == again.proposal_id
    assert len(personal.memories.list(people.auditor)) == 1


def test_the_text_of_an_item_is_not_read_for_times(personal: Fabric, people: People) -> None:
    run = run_of(people)
    put(personal, run, ("cv",), "k", {"text": "I worked in Rome until 2019"})
    item = personal.items.get(run, ("cv",), "k")
    assert item is not None
    assert item.valid_until is None


def test_an_item_of_the_same_time_is_not_fresher_and_waits(fabric: Fabric, people: People, clock: FakeClock) -> None:
    put_in_force(fabric, people.tenant_id, pack_for_tool("personal", "langgraph"))
    run = run_of(people)
    assert put(fabric, run, ("a",), "k", {"n": "1"}).status == "kept"
    assert put(fabric, run, ("a",), "k", {"n": "2"}).status == "pending"
    clock.advance(seconds=1)
    assert put(fabric, run, ("a",), "k", {"n": "3"}).status == "kept"
    assert [one.value for one in fabric.items.search(run, ("a",)).items] == [{"n": "3"}]


@pytest.mark.rule("CAN-6", "PAC-8")
@pytest.mark.parametrize("profile", PROFILES)
def test_a_pack_for_a_tool_proves_its_items_and_nothing_else(
    plain: Fabric, people: People, tenant: str, profile: str
) -> None:
    put_in_force(plain, tenant, pack_for_tool(profile, "langgraph"))
    run = run_of(people)
    kept = put(plain, run, ("a",), "k", {"likes": "pizza"}).status == "kept"
    assert kept == (profile != "strict")
    plain.propose(
        run,
        write_class="preference",
        entity="user:ann",
        predicate="likes",
        value="pizza",
        confidence=0.99,
        classification="INTERNAL",
        origin=TOOL,
    )
    plain.consolidate(tenant)
    assert [one.predicate for one in plain.memories.list(people.auditor)] == ["item"] * kept


def test_a_pack_for_an_unknown_profile_is_refused() -> None:
    with pytest.raises(InvalidInput, match="profile"):
        pack_for_tool("lenient", "langgraph")
    assert pack_for_tool("personal", "My Tool").meta.id == "muniment.personal.my_tool"
