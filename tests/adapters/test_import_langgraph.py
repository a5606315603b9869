"""Imports from a table that LangGraph's own PostgresStore has filled."""

from datetime import UTC, datetime

import pytest

pytest.importorskip("langgraph.store.postgres", reason="langgraph-checkpoint-postgres is not installed")

from muniment import Fabric
from muniment.testing import FakeClock, People, TestServer
from muniment.transfer.sources import langgraph, stores
from muniment.transfer.sources.found import Found
from muniment.transfer.sources.langgraph import Namespace
from tests.stories import texts


@pytest.fixture
def clock() -> FakeClock:
    """As late as the other system's own clock."""
    made = FakeClock()
    made.advance(seconds=(datetime.now(UTC) - made()).total_seconds() + 3600)
    return made


@pytest.mark.rule("IMP-1")
@pytest.mark.rule("ISO-4")
def test_values_of_the_store_become_items_of_their_own_users(
    server: TestServer, fabric: Fabric, people: People
) -> None:
    from langgraph.store.postgres import PostgresStore  # pyright: ignore[reportMissingImports]

    database = server.clone()
    place = server.conninfo.replace("dbname=postgres", f"dbname={database}")
    with PostgresStore.from_conn_string(place) as store:
        store.setup()
        store.put(("memories", "user_1"), "a", {"text": "Joanna prefers tea."})
        store.put(("memories", "user_10"), "a", {"content": {"content": "Otto drinks coffee."}})
        store.put(("memories", "user_1"), "b", {"text": "Joanna owns a boat."}, ttl=None)
        store.put(("memories", "user_1"), "a", {"text": "Joanna prefers green tea."})
        store.put(("secrets", "user_1"), "a", {"text": "not read"})
        store.put(("memories", "user_2"), "n", {"count": 5})
    found = list(langgraph.items(stores.langgraph_values(place), Namespace.parse("memories.{user}")))
    assert sum(one is None for one in found) == 1
    items = [one.item for one in found if isinstance(one, Found) and isinstance(one.item, dict) and "text" in one.item]
    by_user = {(one["user_id"], one["text"]) for one in items}
    assert {
        ("user_1", "Joanna prefers green tea."),
        ("user_1", "Joanna owns a boat."),
        ("user_10", "Otto drinks coffee."),
    } <= by_user
    done = fabric.imports.run(people.admin, "langgraph", items)
    fabric.consolidate(people.tenant_id)
    fabric.imports.approve(people.reviewer, done.import_id)
    assert sorted(texts(fabric, people.run("user_1"))) == ["Joanna owns a boat.", "Joanna prefers green tea."]
    assert texts(fabric, people.run("user_10")) == ["Otto drinks coffee."]
    server.drop(database)
