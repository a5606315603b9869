"""The index that recalls are ranked from: never older than what was committed, and never another answer (TIR-5)."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from psycopg.errors import CheckViolation, ForeignKeyViolation

from muniment import Fabric
from muniment.erasure.key_rotation import rotate
from muniment.testing import FakeClock, People, TestServer
from tests.connections import Connections
from tests.pack_activation import acme, put_in_force
from tests.recall.scope_indexes import QUERY, counts, scopes, shown
from tests.security.rows import Tick, mark
from tests.stories import CONSENT, promoted, remembered


@pytest.fixture
def other(connections: Connections, clock: FakeClock) -> Iterator[Fabric]:
    """Another process's fabric on the same database: what it changes, the first one is not told."""
    with connections.fabric(clock=clock) as opened:
        yield opened


# --- it is used


@pytest.mark.rule("TIR-5")
def test_a_second_recall_takes_one_round_trip_and_gives_the_same_answer(
    fabric: Fabric, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    promoted(fabric, people)
    first = fabric.recall(people.run(), QUERY)
    made: list[int] = []
    transaction = type(fabric._fabric._context.storage).transaction

    def counted(*args: Any, **options: Any) -> Any:
        opened = transaction(*args, **options)
        enter = opened.__aenter__

        async def entered() -> Any:
            tx = await enter()
            trip = tx._round_trip

            async def noted(commands: Any) -> Any:
                made.append(1)
                return await trip(commands)

            tx._round_trip = noted
            return tx

        opened.__aenter__ = entered
        return _Entered(opened, entered)

    monkeypatch.setattr(type(fabric._fabric._context.storage), "transaction", counted)
    again = fabric.recall(people.run(), QUERY)
    assert len(made) == 1
    assert shown(again) == shown(first)
    assert counts(fabric).built == 2, "the tenant's part and the user's"


class _Entered:
    def __init__(self, opened: Any, entered: Callable[[], Any]) -> None:
        self._opened, self._entered = opened, entered

    async def __aenter__(self) -> Any:
        return await self._entered()

    async def __aexit__(self, *error: Any) -> Any:
        return await self._opened.__aexit__(*error)


@pytest.mark.rule("REC-8")
def test_every_answer_from_the_index_is_recorded(fabric: Fabric, people: People, rows: Any) -> None:
    memory = promoted(fabric, people)
    answers = [fabric.recall(people.run(), QUERY) for _ in range(3)]
    recorded = {row["recall_id"]: row["result_ids"] for row in rows("recalls")}
    assert recorded == {answer.recall_id: [memory] for answer in answers}
    for answer in answers:
        assert fabric.replay(people.auditor, answer.recall_id).same


# --- whatever changes what can be seen is seen by the next recall, whoever changed it


def _retracts(fabric: Fabric, people: People, memory: str) -> None:
    fabric.retract(people.reviewer, memory, reason="wrong")


def _erases(fabric: Fabric, people: People, memory: str) -> None:
    fabric.erase(people.officer, user_id="cust_1")


CHANGES: dict[str, Callable[[Fabric, People, str], None]] = {"a retraction": _retracts, "an erasure": _erases}


@pytest.mark.rule("TIR-5")
@pytest.mark.parametrize("change", CHANGES)
def test_what_another_process_took_away_is_gone_at_the_next_recall(
    fabric: Fabric, other: Fabric, people: People, change: str
) -> None:
    memory = promoted(fabric, people)
    run = people.run()
    assert [one.id for one in fabric.recall(run, QUERY).records] == [memory]
    CHANGES[change](other, people, memory)
    assert fabric.recall(run, QUERY).all_records == ()
    assert counts(fabric).mismatched == 0


@pytest.mark.rule("TIR-5", "CON-5")
def test_a_consent_revoked_by_another_process_hides_its_memories_at_the_next_recall(
    fabric: Fabric, other: Fabric, people: People
) -> None:
    consent = fabric.consent.grant(people.officer, subject="customer:cust_1", **CONSENT)
    memory = promoted(fabric, people, classification="PII", subject="customer:cust_1")
    run = people.run(classification_allowed={"INTERNAL", "PII"})
    assert [one.id for one in fabric.recall(run, QUERY).all_records] == [memory]
    other.consent.revoke(people.officer, consent.consent_id)
    assert fabric.recall(run, QUERY).all_records == ()


@pytest.mark.rule("TIR-5")
def test_what_another_process_promoted_is_there_at_the_next_recall(
    fabric: Fabric, other: Fabric, people: People
) -> None:
    first = promoted(fabric, people)
    run = people.run()
    fabric.recall(run, QUERY)
    second = promoted(other, people, "dark", predicate="prefers_theme")
    assert {one.id for one in fabric.recall(run, QUERY).records} == {first, second}
    assert counts(fabric).built == 2, "it was brought up to date, not read anew"
    assert counts(fabric).refreshed >= 1


@pytest.mark.rule("TIR-5", "CON-5")
def test_a_memory_that_was_promoted_under_an_earlier_consent_is_there_at_the_next_recall(
    fabric: Fabric, other: Fabric, people: People
) -> None:
    fabric.consent.grant(people.officer, subject="customer:cust_1", **CONSENT)
    first = promoted(fabric, people)
    run = people.run(classification_allowed={"INTERNAL", "PII"})
    assert [one.id for one in fabric.recall(run, QUERY).all_records] == [first]
    second = promoted(other, people, "dark", predicate="prefers_theme", classification="PII", subject="customer:cust_1")
    assert {one.id for one in fabric.recall(run, QUERY).all_records} == {first, second}
    assert (counts(fabric).built, counts(fabric).mismatched) == (2, 0)


@pytest.mark.rule("TIR-5")
def test_what_was_promoted_for_the_tenant_and_for_the_user_is_there_at_the_next_recall(
    fabric: Fabric, other: Fabric, people: People
) -> None:
    first, run = promoted(fabric, people), people.run()
    fabric.recall(run, QUERY)
    own = promoted(other, people, "dark", predicate="prefers_theme")
    everybodys = promoted(other, people, "post", predicate="prefers_post", entity="shop:1", user_id=None)
    assert {one.id for one in fabric.recall(run, QUERY).all_records} == {first, own, everybodys}
    assert (counts(fabric).built, counts(fabric).mismatched) == (2, 0)


@pytest.mark.rule("TIR-5", "PAC-9")
def test_a_pack_that_another_process_put_in_force_decides_the_next_recall(
    fabric: Fabric, other: Fabric, people: People
) -> None:
    promoted(fabric, people)
    run = people.run()
    fabric.recall(run, QUERY)
    ref = put_in_force(other, people.tenant_id, acme("2.0.0"))
    assert fabric.recall(run, QUERY).pack == ref


@pytest.mark.rule("TIR-2")
def test_a_memory_whose_time_is_over_is_not_recalled_from_the_index(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    memory = remembered(fabric, people, tier="episodic")
    run = people.run()
    assert [one.id for one in fabric.recall(run, QUERY).records] == [memory]
    clock.now += timedelta(days=4000)
    assert fabric.recall(run, QUERY).all_records == ()
    assert counts(fabric).mismatched == 0


@pytest.mark.rule("TIR-4", "TIR-5")
def test_words_and_vectors_that_were_made_anew_are_read_anew(
    fabric: Fabric, other: Fabric, people: People, server: TestServer, database: str
) -> None:
    memory = promoted(fabric, people)
    with server.connect(database) as owner:
        for table in ("memory_words", "memory_vectors"):
            owner.execute(f"DELETE FROM muniment.{table} WHERE memory_id = %s".encode(), [memory])
    run = people.run()
    assert fabric.recall(run, QUERY).records[0].score["vector"] == 0
    other.reindex(people.tenant_id)
    assert fabric.recall(run, QUERY).records[0].score["vector"] > 0


@pytest.mark.rule("TIR-2")
def test_a_clock_that_was_ahead_hides_nothing_once_it_is_right_again(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    memory, run, now = remembered(fabric, people, tier="episodic"), people.run(), clock.now
    clock.now += timedelta(days=4000)
    assert fabric.recall(run, QUERY).all_records == ()
    clock.now = now
    assert [one.id for one in fabric.recall(run, QUERY).records] == [memory]


@pytest.mark.rule("ERA-4")
def test_a_recall_from_the_index_goes_on_after_the_tenants_key_was_rotated(
    fabric: Fabric, other: Fabric, people: People
) -> None:
    memory, run = promoted(fabric, people), people.run()
    for one in (fabric, other):
        one.recall(run, QUERY)
    fabric._portal.call(rotate, fabric._fabric._context, people.tenant_id)
    other.capture(run, kind="message", text="hello", classification="INTERNAL")
    for one in (fabric, other, fabric, other):
        assert [record.id for record in one.recall(run, QUERY).records] == [memory]


@pytest.mark.rule("ERA-1")
def test_a_query_is_sealed_under_the_users_key_as_soon_as_there_is_one(
    fabric: Fabric, people: People, rows: Any
) -> None:
    promoted(fabric, people, user_id="somebody", entity="customer:somebody")
    run = people.run("newcomer")
    first = fabric.recall(run, QUERY)
    fabric.capture(run, kind="message", text="hello", classification="INTERNAL")
    second = fabric.recall(run, QUERY)
    holders = {row["recall_id"]: row["holder"] for row in rows("recalls")}
    assert (holders[first.recall_id], holders[second.recall_id]) == ("*", "@newcomer")


# --- the database holds it, not the program's good manners


def _insert_tick(writer: Any, tenant: str, *, visible: int | None) -> Tick:
    """Take the next number by hand; as its number of what can be seen, so many more than the last one."""
    seq, at = writer.execute("SELECT seq, at FROM ticks ORDER BY seq DESC LIMIT 1").fetchone()
    now = Tick(seq + 1, at, mark(writer, tenant))
    writer.execute(
        "INSERT INTO ticks (tenant_id, seq, at, prev_seq, prev_at, txid, visible_seq) VALUES (%s, %s, %s, %s, %s, %s, %s)",
        [tenant, now.seq, at, seq, at, now.txid, seq + visible if visible is not None else None],
    )
    return now


@pytest.mark.rule("TIR-5")
@pytest.mark.parametrize("visible", [True, False])
def test_a_retraction_needs_a_number_that_says_something_visible_changes(
    fabric: Fabric, people: People, as_role: Any, visible: bool
) -> None:
    memory = promoted(fabric, people)
    with as_role("writer") as writer, writer.transaction(force_rollback=True):
        now = _insert_tick(writer, people.tenant_id, visible=1 if visible else None)
        insert = (
            "INSERT INTO retractions (tenant_id, memory_id, seq, retracted_at, txid, retracted_by, reason)"
            " VALUES (%s, %s, %s, %s, %s, 'eve', 'wrong')"
        )
        given = [people.tenant_id, memory, now.seq, now.at, now.txid]
        if visible:
            writer.execute(insert, given)
        else:
            with pytest.raises(ForeignKeyViolation):
                writer.execute(insert, given)


def test_a_tick_cannot_name_another_visibility_number_than_its_own(
    fabric: Fabric, people: People, as_role: Any
) -> None:
    promoted(fabric, people)
    with as_role("writer") as writer, writer.transaction(force_rollback=True), pytest.raises(CheckViolation):
        _insert_tick(writer, people.tenant_id, visible=2)


@pytest.mark.rule("TIR-5")
def test_captures_leave_the_index_up_to_date(fabric: Fabric, people: People) -> None:
    promoted(fabric, people)
    run = people.run()
    fabric.recall(run, QUERY)
    before = counts(fabric).refreshed
    fabric.capture(run, kind="message", text="hello again", classification="INTERNAL")
    fabric.recall(run, QUERY)
    assert counts(fabric).refreshed == before


@pytest.mark.rule("TIR-5", "REC-8")
def test_an_index_that_is_wrong_never_answers(fabric: Fabric, people: People, rows: Any) -> None:
    """A memory that the index holds and the database does not show: the statements answer, and the index is dropped."""
    memory = promoted(fabric, people)
    run = people.run()
    fabric.recall(run, QUERY)
    recalls = len(rows("recalls"))
    (part,) = [part for part in scopes(fabric)._parts.values() if part.blocks]
    (block,) = part.blocks
    block.ids[0] = "pm_somebody_elses"
    answer = fabric.recall(run, QUERY)
    assert [one.id for one in answer.records] == [memory]
    assert counts(fabric).mismatched == 1
    assert len(rows("recalls")) == recalls + 1, "what was not answered was not recorded"


@pytest.mark.rule("TIR-5")
def test_a_restored_database_with_the_same_numbers_is_noticed(fabric: Fabric, people: People, rows: Any) -> None:
    memory = promoted(fabric, people)
    run = people.run()
    fabric.recall(run, QUERY)
    for part in scopes(fabric)._parts.values():
        part.number = part.number._replace(mark="00000000-0000-4000-8000-000000000000")
        part.remove([memory])
    assert [one.id for one in fabric.recall(run, QUERY).records] == [memory]
