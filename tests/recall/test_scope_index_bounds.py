"""The bounds of the index in the process: how much it holds, its kernels, and what is left to the statements."""

from functools import partial
from typing import Any

import pytest

from muniment import Fabric
from muniment.database import half_precision
from muniment.recall import recall as recalling
from muniment.recall import scope_index
from muniment.recall.search import Request
from muniment.testing import FakeClock, People, TestServer
from tests.recall.scope_indexes import QUERY, by_statements, counts, scopes, shown
from tests.stories import promoted

# --- it is bounded, and another tenant's is another one


def test_what_was_used_longest_ago_gives_way(fabric: Fabric, people: People) -> None:
    for user in ("anna", "ben", "cem"):
        promoted(fabric, people, user_id=user, entity=f"customer:{user}")
    held = scopes(fabric)
    for user in ("anna", "ben"):
        fabric.recall(people.run(user), QUERY)
    size = sum(part.size for part in held._parts.values())
    held.limit = 4 * size
    fabric.recall(people.run("anna"), QUERY)
    fabric.recall(people.run("cem"), QUERY)
    kept = {user for _, user, _ in held._parts}
    assert "ben" not in kept
    assert {"", "anna", "cem"} >= kept >= {"cem"}


@pytest.mark.rule("ISO-3")
def test_what_is_held_of_a_tenant_is_found_without_looking_through_the_others(
    fabric: Fabric, people: People, others: People
) -> None:
    held = scopes(fabric)
    for someone in (people, others):
        promoted(fabric, someone)
        fabric.recall(someone.run(), QUERY)
        fabric.recall(someone.run("ben"), QUERY)
    for one in (people, others):
        assert held.of_tenant(one.tenant_id).keys() == {key for key in held._parts if key[0] == one.tenant_id}
    assert {key[1] for key in held.of_tenant(people.tenant_id)} == {"", "ben", "cust_1"}
    held.forget(people.tenant_id)
    assert held.of_tenant(people.tenant_id) == {}
    assert people.tenant_id not in held._by_tenant
    assert len(held.of_tenant(others.tenant_id)) == 3


@pytest.mark.rule("ISO-1")
def test_two_tenants_with_equal_users_have_scopes_of_their_own(fabric: Fabric, people: People, others: People) -> None:
    mine, theirs = promoted(fabric, people), promoted(fabric, others, "phone")
    for _ in range(2):
        assert [one.id for one in fabric.recall(people.run(), QUERY).records] == [mine]
        assert [one.id for one in fabric.recall(others.run(), QUERY).records] == [theirs]


# --- the kernel only leaves out what cannot be among the first


@pytest.mark.rule("REC-2")
def test_the_answer_does_not_depend_on_the_kernel(
    fabric: Fabric, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"The {thing} number {n} is kept in hall {n % 7}." for n in range(60) for thing in ("kettle", "lantern")]
    item = {"kind": "statement", "classification": "INTERNAL"}
    fabric.capture_many(people.run(), [{**item, "text": text} for text in texts])
    fabric.queue.approve_many(people.reviewer, fabric.consolidate(people.tenant_id).proposals)
    answers: list[dict[str, Any]] = []
    for kernel in (half_precision.fast_dots(), half_precision.exact_dots, _as_wrong_as_allowed):
        monkeypatch.setattr("muniment.recall.index_search.fast_dots", lambda kernel=kernel: kernel)
        answers.append(shown(fabric.recall(people.run(), "where is lantern 12 kept", limit=5)))
    answers.append(shown(by_statements(fabric, people.run(), "where is lantern 12 kept", limit=5)))
    assert all(one == answers[0] for one in answers)


@pytest.mark.rule("REC-2")
def test_a_decision_with_more_memories_than_the_limit_is_ranked_as_by_the_statements(
    fabric: Fabric, people: People
) -> None:
    run = people.run(decision_key="d1")
    item = {"kind": "statement", "classification": "INTERNAL"}
    texts = [f"The {thing} is kept in hall {n}." for n, thing in enumerate(("lantern", *["kettle"] * 20))]
    fabric.capture_many(run, [{**item, "text": text} for text in texts])
    fabric.capture_many(people.run(), [{**item, "text": f"A lantern hangs in room {n}."} for n in range(3)])
    fabric.queue.approve_many(people.reviewer, fabric.consolidate(people.tenant_id).proposals)
    for narrowed in ({"limit": 1}, {"limit": 2}):
        answer = fabric.recall(run, "where is the lantern", **narrowed)
        assert shown(answer) == shown(by_statements(fabric, run, "where is the lantern", **narrowed))
    assert counts(fabric).used == 2


def _as_wrong_as_allowed(vectors: Any, query: Any) -> Any:
    found = half_precision.exact_dots(vectors, query)
    found[::2] += half_precision.ERROR * 0.99
    found[1::2] -= half_precision.ERROR * 0.99
    return found


def test_the_compiled_kernel_is_used_here() -> None:
    assert half_precision.fast_dots() is not half_precision.exact_dots


def test_a_scope_that_is_too_large_is_answered_by_the_statements(
    fabric: Fabric, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = promoted(fabric, people), promoted(fabric, people, "dark", predicate="prefers_theme")
    monkeypatch.setattr(scope_index, "MOST_SEEN", 1)
    assert {one.id for one in fabric.recall(people.run(), QUERY).records} == {first, second}
    assert not any(part.blocks for part in scopes(fabric)._parts.values())


def test_parts_that_show_too_much_together_are_left_to_the_statements_and_are_no_mismatch(
    fabric: Fabric, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = {promoted(fabric, people), promoted(fabric, people, "dark", predicate="prefers_theme")}
    fabric.recall(people.run(), QUERY)
    used = counts(fabric).used
    monkeypatch.setattr(recalling, "Request", partial(Request, most_seen=1))
    for _ in range(2):
        assert {one.id for one in fabric.recall(people.run(), QUERY).records} == both
    assert (counts(fabric).used, counts(fabric).mismatched) == (used, 0)


def test_nothing_is_held_after_the_fabric_is_closed(server: TestServer, database: str, people: People) -> None:
    from muniment.testing.database import MASTER_KEYS

    with Fabric.open(server.url(database), clock=FakeClock(), master_keys=MASTER_KEYS) as fabric:
        promoted(fabric, people)
        fabric.recall(people.run(), QUERY)
        held = scopes(fabric)
        blocks = [block for part in held._parts.values() for block in part.blocks]
        assert any(block.vectors.any() for block in blocks)
    assert not held._parts
    assert not any(block.vectors.any() or block.words.terms.any() for block in blocks)
