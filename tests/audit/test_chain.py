"""The audit chain against the real database: tampered with by who can write there, and raced for."""

import asyncio
import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import psycopg
import pytest

from muniment import AsyncFabric, Fabric
from muniment.audit.rules import batch_hash, leaves_of, root_of
from muniment.errors import InvalidInput, NotFound, RoleMissing
from muniment.model.chain import Head
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.conftest import Connect
from tests.faults.forging import begin_unchecked
from tests.stories import promoted

MESSAGE: dict[str, Any] = {"kind": "message", "text": "hello", "classification": "INTERNAL"}


def written(fabric: Fabric, people: People, count: int = 2) -> None:
    for _ in range(count):
        fabric.capture(people.run(), **MESSAGE)


def sealed_history(fabric: Fabric, people: People) -> None:
    """Batches of the numbers 1 to 3 (the first is the pack's, with two events), 4 to 5 and 6 to 7; number 8 is not sealed."""
    for _ in range(3):
        written(fabric, people)
        assert fabric.seal(people.tenant_id) in (2, 4)
    written(fabric, people, 1)


@pytest.fixture
def tamper(server: TestServer, database: str, tenant: str) -> Callable[..., None]:
    """As somebody who can write anything in the database, and has no key."""

    def run(*statements: str) -> None:
        with server.connect(database) as owner:
            begin_unchecked(owner)
            for statement in statements:
                changed = owner.execute(statement.replace(":tenant", f"'{tenant}'"))
                assert changed.rowcount != 0, statement

    return run


@pytest.mark.rule("AUD-2", "JOB-9")
def test_everything_that_happened_is_sealed_once_and_verifies(fabric: Fabric, people: People, rows: Any) -> None:
    assert fabric.seal(people.tenant_id) == 0, "a tenant that never wrote anything"
    assert fabric.verify(people.auditor).ok
    with pytest.raises(NotFound):
        fabric.chain_head(people.auditor)
    promoted(fabric, people)
    count = len(fabric.events(people.auditor, limit=1000))
    assert fabric.seal(people.tenant_id) == count
    assert fabric.seal(people.tenant_id) == 0
    written(fabric, people)
    seen: list[tuple[int, int]] = []
    found = fabric.verify(people.auditor, on_progress=lambda done, of: seen.append((done, of)))
    assert (found.ok, found.events, found.batches, found.unsealed) == (True, count + 2, 1, 2)
    assert (found.breaks, found.more) == ((), False)
    assert seen == [(count, count + 2)]
    assert found.head == fabric.chain_head(people.auditor)
    assert found.head is not None
    (batch,) = rows("chain_batches")
    assert (batch["first_seq"], batch["last_seq"], found.head.last_seq) == (1, found.head.last_seq, batch["last_seq"])


@pytest.mark.rule("AUD-2")
def test_only_an_auditor_verifies_and_a_head_is_one_line_that_must_be_whole(fabric: Fabric, people: People) -> None:
    written(fabric, people)
    fabric.seal(people.tenant_id)
    for call in (fabric.verify, fabric.chain_head):
        with pytest.raises(RoleMissing):
            call(people.reviewer)
    head = fabric.chain_head(people.auditor)
    line = head.model_dump_json()
    assert "\n" not in line
    assert fabric.verify(people.auditor, head=json.loads(line)).ok
    for wrong in ({**json.loads(line), "hash": "abc"}, {"batch": 1}, "head", [1]):
        with pytest.raises(InvalidInput) as caught:
            fabric.verify(people.auditor, head=wrong)  # type: ignore[arg-type]
        assert str(caught.value).startswith("head")


@pytest.mark.rule("AUD-2")
@pytest.mark.parametrize(
    ("what", "statements", "expected"),
    [
        (
            "a flipped byte",
            ["UPDATE events SET body = set_byte(body, 3, get_byte(body, 3) # 1) WHERE tenant_id = :tenant AND seq = 4"],
            [("changed", 2, 4, 0)],
        ),
        (
            "another actor",
            ["UPDATE events SET actor = 'eve' WHERE tenant_id = :tenant AND seq = 2"],
            [("changed", 1, 2, 0)],
        ),
        (
            "another time, of the number too",
            [
                "UPDATE ticks SET at = at + interval '1 microsecond' WHERE tenant_id = :tenant AND seq = 5",
                "UPDATE events SET at = at + interval '1 microsecond' WHERE tenant_id = :tenant AND seq = 5",
            ],
            [("changed", 2, 5, 0), ("changed", None, 6, None)],
        ),
        (
            "the end of time",
            ["UPDATE events SET at = 'infinity' WHERE tenant_id = :tenant AND seq = 5"],
            [("changed", 2, 5, 0)],
        ),
        (
            "a removed row",
            ["DELETE FROM events WHERE tenant_id = :tenant AND seq = 6"],
            [("removed", 3, 6, 0)],
        ),
        (
            "a removed number",
            [
                "DELETE FROM events WHERE tenant_id = :tenant AND seq = 6",
                "DELETE FROM ticks WHERE tenant_id = :tenant AND seq = 6",
            ],
            [("removed", 3, 6, 0), ("removed", None, 6, None)],
        ),
        (
            "the last number, with the clock left",
            [
                "DELETE FROM events WHERE tenant_id = :tenant AND seq = 8",
                "DELETE FROM ticks WHERE tenant_id = :tenant AND seq = 8",
            ],
            [("removed", None, 8, None)],
        ),
        (
            "a swapped pair",
            [
                "UPDATE events SET seq = -seq WHERE tenant_id = :tenant AND seq IN (4, 6)",
                "UPDATE events SET seq = CASE seq WHEN -4 THEN 6 ELSE 4 END WHERE tenant_id = :tenant AND seq < 0",
            ],
            [("reordered", 2, 4, 0), ("reordered", 3, 6, 0)],
        ),
        (
            "an inserted row",
            [
                "INSERT INTO events SELECT tenant_id, seq, 1::smallint, 'evt_forged', type, at, actor, body, txid"
                " FROM events WHERE tenant_id = :tenant AND seq = 4"
            ],
            [("inserted", 2, 4, 1)],
        ),
        (
            "a number past the clock",
            ["INSERT INTO ticks SELECT tenant_id, 9, at, 8, at, txid FROM ticks WHERE tenant_id = :tenant AND seq = 8"],
            [("inserted", None, 9, None)],
        ),
        (
            "an event without a number, not sealed",
            ["UPDATE events SET at = at + interval '1 day' WHERE tenant_id = :tenant AND seq = 8"],
            [("changed", None, 8, 0)],
        ),
        (
            "a removed batch",
            ["DELETE FROM chain_batches WHERE tenant_id = :tenant AND number = 2"],
            [("batch_missing", 2, None, None)],
        ),
        (
            "a batch with another past",
            [
                "UPDATE chain_batches SET prev_hash = sha256('x') WHERE tenant_id = :tenant AND number = 2",
            ],
            [("chain_broken", 2, 4, None), ("batch_forged", 2, 4, None)],
        ),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_what_was_tampered_with_is_found_at_its_place(
    fabric: Fabric,
    people: People,
    tamper: Callable[..., None],
    what: str,
    statements: list[str],
    expected: list[tuple[str, int | None, int, int | None]],
) -> None:
    sealed_history(fabric, people)
    assert fabric.verify(people.auditor).ok
    tamper(*statements)
    found = fabric.verify(people.auditor)
    assert not found.ok
    # Rows whose event is not there are named too (AUD-4).
    of_events = [one for one in found.breaks if one.table is None]
    assert [(one.kind, one.batch, one.seq, one.n) for one in of_events] == expected, what
    for one in of_events:
        assert (one.event_id is not None) == (one.kind != "removed" and one.n is not None)


def _reforged(owner: Any, tenant: str, number: int) -> None:
    """Make the batch fit the events that stand there now: everything but its seal."""
    name = tenant.encode()
    found = owner.execute(
        "SELECT prev_hash, after_seq, after_n, last_seq, last_n FROM chain_batches WHERE tenant_id = %s AND number = %s",
        [tenant, number],
    ).fetchone()
    prev, after, last = found[0], (found[1], found[2]) if found[1] is not None else None, (found[3], found[4])
    events = owner.execute(
        "SELECT seq, n, event_id, type, (extract(epoch FROM at) * 1000000)::bigint, actor, body, rows FROM events"
        " WHERE tenant_id = %s AND (seq, n) > (%s, %s) AND (seq, n) <= (%s, %s) ORDER BY seq, n",
        [tenant, *(after or (0, -1)), *last],
    ).fetchall()
    leaves = leaves_of(name, events)
    hash_ = batch_hash(name, number, prev, after, last, len(events), root_of(leaves))
    owner.execute(
        "UPDATE chain_batches SET leaves = %s, events = %s, root = %s, hash = %s WHERE tenant_id = %s AND number = %s",
        [leaves, len(events), root_of(leaves), hash_, tenant, number],
    )
    owner.execute(
        "UPDATE chain_batches SET prev_hash = %s WHERE tenant_id = %s AND number = %s", [hash_, tenant, number + 1]
    )


@pytest.mark.rule("AUD-2")
def test_a_batch_made_anew_without_the_key_is_found(
    fabric: Fabric, people: People, server: TestServer, database: str, tenant: str
) -> None:
    sealed_history(fabric, people)
    with server.connect(database) as owner:
        begin_unchecked(owner)
        owner.execute("UPDATE events SET actor = 'eve' WHERE tenant_id = %s AND seq = 4", [tenant])
        for number in (2, 3):
            _reforged(owner, tenant, number)
    found = fabric.verify(people.auditor)
    assert [(one.kind, one.batch, one.why) for one in found.breaks] == [
        ("batch_forged", 2, "its seal was not made with this tenant's key"),
        ("batch_forged", 3, "its seal was not made with this tenant's key"),
    ]
    assert found.head is None
    with server.connect(database) as owner:
        begin_unchecked(owner)
        # A seal over the hash that needs no key is none.
        owner.execute("UPDATE chain_batches SET seal = sha256(hash) WHERE tenant_id = %s", [tenant])
    assert [one.batch for one in fabric.verify(people.auditor).breaks] == [1, 2, 3]


@pytest.mark.rule("AUD-2")
def test_without_its_key_no_seal_holds(
    server: TestServer, database: str, clock: FakeClock, fabric: Fabric, people: People, tamper: Callable[..., None]
) -> None:
    sealed_history(fabric, people)
    tamper("UPDATE subjects SET wrapped_key = sha256('x') WHERE tenant_id = :tenant AND holder = '*'")
    with Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS) as another:
        found = another.verify(people.auditor)
    assert [(one.kind, one.batch) for one in found.breaks] == [("batch_forged", number) for number in (1, 2, 3)]


@pytest.mark.rule("AUD-2")
@pytest.mark.parametrize("resealed", [False, True])
def test_a_history_cut_short_is_found_with_an_exported_head(
    fabric: Fabric, people: People, tamper: Callable[..., None], resealed: bool
) -> None:
    sealed_history(fabric, people)
    head = fabric.chain_head(people.auditor)
    assert fabric.verify(people.auditor, head=head).ok
    tamper(
        "DELETE FROM chain_batches WHERE tenant_id = :tenant AND number = 3",
        "DELETE FROM events WHERE tenant_id = :tenant AND seq > 5",
        "DELETE FROM ticks WHERE tenant_id = :tenant AND seq > 5",
        "DELETE FROM captures WHERE tenant_id = :tenant AND seq > 5",
        "UPDATE tenant_clock SET seq = 5 WHERE tenant_id = :tenant",
    )
    if resealed:
        written(fabric, people)
        assert fabric.seal(people.tenant_id) == 2
    assert fabric.verify(people.auditor).ok, "nothing in the database itself says that there was more"
    found = fabric.verify(people.auditor, head=head)
    why = "the chain has another batch with this number" if resealed else "the chain no longer has this batch"
    assert [(one.kind, one.batch, one.seq, one.why) for one in found.breaks] == [("head_mismatch", 3, 7, why)]


@pytest.mark.rule("AUD-2", "ISO-1")
def test_a_head_that_is_forged_or_of_another_tenant_proves_nothing(
    fabric: Fabric, people: People, others: People
) -> None:
    for one in (people, others):
        written(fabric, one)
        fabric.seal(one.tenant_id)
    head, theirs = fabric.chain_head(people.auditor), fabric.chain_head(others.auditor)
    check_batch = sha256(b"x").hexdigest()
    for given in (
        theirs,
        theirs.model_copy(update={"tenant_id": people.tenant_id}),
        head.model_copy(update={"hash": check_batch}),
        head.model_copy(update={"seal": check_batch}),
        head.model_copy(update={"last_seq": 1}),
        head.model_copy(update={"batch": 2}),
    ):
        found = fabric.verify(people.auditor, head=given)
        assert [one.kind for one in found.breaks] == ["head_mismatch"], given


@pytest.mark.rule("AUD-2")
def test_of_many_breaks_the_first_hundred_are_reported(
    fabric: Fabric, people: People, tamper: Callable[..., None]
) -> None:
    written(fabric, people)
    tamper(
        "INSERT INTO events SELECT tenant_id, seq, k, 'evt_' || k, type, at, actor, body, txid"
        " FROM events, generate_series(1, 1200) k WHERE tenant_id = :tenant AND seq = 2"
    )
    assert fabric.seal(people.tenant_id) == 1204
    assert fabric.verify(people.auditor).batches == 2, "a batch may end within a transaction"
    tamper("UPDATE events SET body = 'x' WHERE tenant_id = :tenant AND n BETWEEN 1001 AND 1150")
    found = fabric.verify(people.auditor)
    assert (len(found.breaks), found.more, found.ok) == (100, True, False)
    assert [(one.kind, one.n) for one in found.breaks[:30:29]] == [("changed", 1001), ("changed", 1030)]
    assert {one.batch for one in found.breaks} == {1, 2}


@pytest.mark.rule("JOB-9", "AUD-2")
def test_many_who_seal_at_once_make_one_chain(
    server: TestServer, database: str, clock: FakeClock, people: People
) -> None:
    async def race() -> None:
        open_transaction = [
            AsyncFabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS) for _ in range(3)
        ]
        fabrics = [await one for one in open_transaction]

        written = asyncio.Event()

        async def write() -> int:
            own = 0
            for n in range(12):
                await fabrics[0].capture(people.run(), **MESSAGE)
                if n == 5:  # Something is sealed before the rest is written.
                    own = await fabrics[0].seal(people.tenant_id)
            written.set()
            return own

        async def seal(one: AsyncFabric) -> int:
            sealed = 0
            while not written.is_set():
                sealed += await one.seal(people.tenant_id)
            return sealed

        try:
            await fabrics[0].capture(people.run(), **MESSAGE)
            sealed = await asyncio.gather(write(), *(seal(one) for one in fabrics))
            rest = await fabrics[0].seal(people.tenant_id)
            found = await fabrics[1].verify(people.auditor)
            assert (found.ok, found.events, found.unsealed) == (True, 15, 0)
            assert sum(sealed) + rest == 15, "each event is sealed by one of them"
            assert found.batches > 1
        finally:
            for one in fabrics:
                await one.close()

    asyncio.run(race())


@pytest.mark.rule("AUD-2", "JOB-9")
def test_the_database_refuses_a_batch_that_does_not_continue_the_last(
    fabric: Fabric, people: People, as_role: Connect
) -> None:
    sealed_history(fabric, people)
    jobs = as_role("jobs")
    again = (
        "INSERT INTO chain_batches SELECT tenant_id, {number}, {prev}, {hash}, {after}, last_n, {first}, 8, last_n,"
        " events, leaves, root, hash, seal, sealed_at FROM chain_batches WHERE number = 3"
    )
    fitting = {"number": "4", "prev": "3", "hash": "hash", "after": "last_seq", "first": "8"}
    for wrong, error in (
        ({"number": "3", "prev": "2"}, psycopg.errors.UniqueViolation),
        ({"number": "5", "prev": "4"}, psycopg.errors.ForeignKeyViolation),
        ({"hash": "sha256('x')"}, psycopg.errors.ForeignKeyViolation),
        ({"after": "last_seq - 1"}, psycopg.errors.ForeignKeyViolation),
        ({"prev": "2"}, psycopg.errors.CheckViolation),
        ({"first": "6"}, psycopg.errors.CheckViolation),
        ({"prev": "NULL"}, psycopg.errors.CheckViolation),
    ):
        with pytest.raises(error), jobs.transaction():
            jobs.execute(again.format(**{**fitting, **wrong}))
    with jobs.transaction(force_rollback=True):
        jobs.execute(again.format(**fitting))
    for task in ("writer", "auditor", "privacy", "recall"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            as_role(task).execute(again.format(**fitting))


@pytest.mark.rule("AUD-2", "ERA-3")
def test_an_erasure_leaves_the_chain_as_it_was(fabric: Fabric, people: People) -> None:
    promoted(fabric, people, user_id="cust_1")
    fabric.seal(people.tenant_id)
    head = fabric.chain_head(people.auditor)
    fabric.erase(people.officer, user_id="cust_1")
    fabric.seal(people.tenant_id)
    found = fabric.verify(people.auditor, head=head)
    assert (found.ok, found.batches, found.unsealed) == (True, 2, 0)


@pytest.mark.rule("AUD-2")
def test_a_head_keeps_its_form() -> None:
    head = Head(tenant_id="t", batch=1, last_seq=2, hash="a" * 64, seal="b" * 64)
    assert head.model_dump_json() == (
        f'{{"tenant_id":"t","batch":1,"last_seq":2,"hash":"{"a" * 64}","seal":"{"b" * 64}"}}'
    )
