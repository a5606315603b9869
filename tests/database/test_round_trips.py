"""What a call costs: how often the database is asked."""

import re
from typing import Any

import psycopg
import pytest
from psycopg.rows import scalar_row

from muniment import AsyncFabric, Fabric
from muniment.database.statements import statement
from muniment.database.storage import NamedStatement, Transaction
from muniment.model.events import Deliveries
from muniment.pack import builtin_pack
from muniment.review.dangers import known_to
from muniment.review.verbs import QueueFilters
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.stories import CONSENT, promoted, proposed


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The round trips of each transaction that ends from here on."""
    counted: list[int] = []
    complete = Transaction.complete

    async def counting(self: Transaction) -> None:
        await complete(self)
        counted.append(self.round_trips)

    monkeypatch.setattr(Transaction, "complete", counting)
    return counted


@pytest.mark.parametrize(
    "fact",
    [
        {"write_class": "statement", "text": "Parcels leave at noon."},
        {"write_class": "preference", "entity": "customer:cust_1", "predicate": "likes", "value": "tea"},
        {
            "write_class": "preference",
            "entity": "customer:cust_1",
            "predicate": "mail",
            "value": "ann.lee@example.com",
            "subject": "customer:cust_1",
        },
    ],
)
def test_one_candidate_through_all_gates_and_checks_takes_three_round_trips(
    fabric: Fabric, people: People, trips: list[int], fact: dict[str, Any]
) -> None:
    fabric.consent.grant(people.officer, subject="customer:cust_1", **CONSENT)
    proposed(
        fabric,
        people.run(),
        write_class="statement",
        text="The first one opens the tenant.",
        subject=fact.get("subject"),
    )
    trips.clear()
    fabric.propose(people.run(), classification="INTERNAL", **fact)
    assert trips == [3]


@pytest.mark.rule("REC-8")
def test_a_warm_recall_takes_one_round_trip_with_its_commit(fabric: Fabric, people: People, trips: list[int]) -> None:
    memory_id = promoted(fabric, people)
    run = people.run("cust_1")
    fabric.recall(run, "which channel is preferred")
    for query in ("which channel is preferred", "how to reach the customer"):
        trips.clear()
        (found,) = fabric.recall(run, query).records
        assert found.id == memory_id
        assert trips == [1], "the check, the bodies, the record of the recall and the commit"


def test_who_has_no_webhooks_is_asked_once_whether_anything_is_due(
    fabric: Fabric, people: People, trips: list[int]
) -> None:
    fabric.capture(people.run(), kind="message", text="hello", classification="INTERNAL")
    trips.clear()
    assert fabric.webhooks.deliver(people.tenant_id) == Deliveries()
    assert trips == [2], "one transaction: what is due and when, its end"


QUEUE_FILTERS: dict[str, Any] = dict.fromkeys(QueueFilters.model_fields) | known_to(builtin_pack()) | {"dangers": None}
FROM_A_PLACE_ON: tuple[NamedStatement, ...] = (
    ("candidate.next_captures", {"count": 10}),
    ("candidate.backlog", {}),
    ("metrics.waiting", {}),
    ("review.auto_promotable", {"count": 10}),
    ("review.settled", {}),
    ("review.list", QUEUE_FILTERS | {"closed": False, "after": "mwp_1", "count": 10}),
    ("review.list", QUEUE_FILTERS | {"closed": True, "after": "mwp_1", "count": 10}),
)


def test_what_lies_before_a_cursor_or_a_page_is_not_read(
    server: TestServer, fresh_database: str, people: People
) -> None:
    async def planned(fabric: AsyncFabric, name: str, given: dict[str, Any]) -> str:
        async with fabric._context.transaction(people.tenant_id, "auditor") as tx:
            await tx.rows("tenant.clock")  # which begins it
            await tx._connection.execute("SET LOCAL enable_seqscan = off")
            await tx._connection.execute("SET LOCAL enable_bitmapscan = off")
            stated, parameters = tx._bound(name, given)
            asked = psycopg.AsyncRawCursor(tx._connection, row_factory=scalar_row)
            await asked.execute(f"EXPLAIN {stated.sql}".encode(), parameters)
            return "\n".join(await asked.fetchall())

    # A database of its own, of which nothing is known: which index is taken hangs on what is.
    with Fabric.open(server.url(fresh_database), master_keys=MASTER_KEYS) as fabric:
        fabric.capture(people.run(), kind="message", text="hello", classification="INTERNAL")
        for name, given in FROM_A_PLACE_ON:
            plan = fabric._portal.call(planned, fabric._fabric, name, given)
            assert re.search(r"Index Cond: .*ROW\((seq|due_at), ", plan), name
            no_default = not re.search(r" Filter: \(ROW\(.*COALESCE", plan)
            assert no_default, f"{name}: the default of a cursor stands in its subquery"


@pytest.mark.parametrize(
    ("name", "index_condition"),
    [
        ("neighbours.near_exactly", r"memory_scope f.*\n.*Index Cond: .*user_id = ANY"),
        ("review.beside", r"on proposals q.*\n.*Index Cond: .*candidate_id = ANY"),
    ],
)
def test_a_plan_made_for_any_parameters_reads_the_rows_of_the_batch_alone(
    server: TestServer, fresh_database: str, name: str, index_condition: str
) -> None:
    """These are planned once, perhaps in an empty tenant, and asked for each batch for as long as a process runs."""
    with server.connect(fresh_database, "muniment_writer") as connection:
        connection.execute("SET enable_seqscan = off")
        connection.execute("SET enable_bitmapscan = off")
        asked = psycopg.RawCursor(connection, row_factory=scalar_row)
        plan = "\n".join(asked.execute(f"EXPLAIN (GENERIC_PLAN) {statement(name).sql}".encode()).fetchall())
    assert re.search(index_condition, plan), plan


def test_an_idempotent_write_takes_no_extra_round_trip(fabric: Fabric, people: People, trips: list[int]) -> None:
    first, second = (
        proposed(fabric, people.run(), entity="customer:cust_1", predicate=name, value="x").proposal_id
        for name in ("likes", "owns")
    )
    requests = fabric._fabric.requests

    async def approved_once() -> None:
        with requests.begin(people.reviewer, "k1", b"approve the second"):
            await fabric._fabric.queue.approve(people.reviewer, second)

    trips.clear()
    fabric.queue.approve(people.reviewer, first)
    plainly = list(trips)
    trips.clear()
    fabric._portal.call(approved_once)
    assert trips == plainly
