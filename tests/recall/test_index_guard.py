"""What a process holds in memory of the index: under a lease, confirmed, and dropped when it ended or is not used."""

import logging
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from time import monotonic, sleep
from typing import Any

import anyio.to_thread
import numpy as np
import pytest

from muniment import Fabric
from muniment.context import FabricContext
from muniment.errors import InvalidInput
from muniment.model.inputs import RecallInput
from muniment.recall import index_guard, scope_index
from muniment.recall import recall as recalling
from muniment.recall.dependencies import dependencies
from muniment.recall.scope_index import IndexOutdated
from muniment.recall.scope_part import Part, VisibilityNumber
from muniment.settings import Settings
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.stories import remembered

SECRET, OTHER = "the violet giraffe sings at noon", "the shop opens at nine in the morning"
USER = "cus_77"
ABOUT: dict[str, Any] = {
    "write_class": "statement",
    "entity": None,
    "predicate": None,
    "value": None,
    "user_id": USER,
}
Opener = Callable[..., Fabric]


@pytest.fixture
def another(server: TestServer, database: str, clock: FakeClock) -> Generator[Opener]:
    """Opens fabrics that are processes of their own, as far as the database can tell; they hear no notices."""
    opened: list[Fabric] = []

    def open_one(listen_after: float = 3600.0, **options: Any) -> Fabric:
        fabric = Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS, **options)
        opened.append(fabric)
        context(fabric).index.listen_after = listen_after
        return fabric

    yield open_one
    for fabric in opened:
        fabric.close()


def context(fabric: Fabric) -> FabricContext:
    return fabric._fabric.opened.context


def call(fabric: Fabric, method: Callable[..., Coroutine[Any, Any, Any]], *args: Any) -> Any:
    """Call a part of the fabric in its own thread."""
    return fabric._portal.call(method, *args)


def said(fabric: Fabric, people: People, text: str, **fields: Any) -> str:
    return remembered(fabric, people, **ABOUT | {"text": text, "subject": f"customer:{USER}"} | fields)


def found(fabric: Fabric, people: People, query: str = "violet giraffe, or the shop") -> set[str]:
    return {record.text for record in fabric.recall(people.run(USER), query).records}


def parts(fabric: Fabric, people: People) -> list[Part]:
    return list(context(fabric).scopes.of_tenant(people.tenant_id).values())


def arrays(fabric: Fabric, people: People) -> list[np.ndarray[Any, Any]]:
    """The memory that content is in."""
    blocks = [block for part in parts(fabric, people) for block in part.blocks]
    return [one for block in blocks for one in (block.vectors, block.words.terms)]


def confirmed(rows: Any) -> list[int]:
    return sorted(row["confirmed_seq"] for row in rows("index_holders"))


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for what another thread does; nothing is measured."""
    until = monotonic() + 20
    while not condition():
        assert monotonic() < until, "it did not happen"
        sleep(0.01)


@pytest.fixture
def listening(server: TestServer, database: str) -> Generator[Callable[[], list[int]]]:
    """The connections to the shared database that listen for notices of what was removed."""
    with server.connect(database) as owner:

        def pids() -> list[int]:
            rows = owner.execute(
                "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query ILIKE 'listen%removed%'"
            )
            return [int(str(row[0])) for row in rows.fetchall()]

        yield pids


@pytest.mark.rule("ERA-3")
def test_the_lease_is_committed_before_anything_is_read_under_it(another: Opener, people: People, rows: Any) -> None:
    one = another()
    said(one, people, SECRET)
    here = context(one)

    async def read_and_fail() -> None:
        async with here.transaction(people.tenant_id, "recall") as tx:
            held = await here.index.read_scope(here.storage, tx, ["", USER], None, 0)
            assert held is not None
            raise InvalidInput("whatever happens after that")

    with pytest.raises(InvalidInput):
        call(one, read_and_fail)
    assert len(rows("index_holders")) == 1, "the read was rolled back, the lease was not"


def test_a_recall_does_not_wait_for_a_task_that_changes_the_lease(another: Opener, people: People) -> None:
    """That task may wait for one of the tenant's connections, and recalls that wait for it would hold them all."""
    one = another()
    said(one, people, SECRET)
    here = context(one)

    async def recall_meanwhile() -> Any:
        async with here.index._lock(people.tenant_id):
            return await recalling.recall(here, people.run(USER), RecallInput(query="violet giraffe"))

    assert [record.text for record in call(one, recall_meanwhile).records] == [SECRET]
    assert parts(one, people) == []


@pytest.mark.rule("ERA-3")
def test_a_process_that_holds_vectors_is_known_to_the_database_until_it_closes(
    another: Opener, people: People, rows: Any
) -> None:
    one = another()
    said(one, people, SECRET)
    assert rows("index_holders") == []
    assert found(one, people) == {SECRET}
    assert len(rows("index_holders")) == 1
    assert found(one, people) == {SECRET}
    assert len(rows("index_holders")) == 1
    held = arrays(one, people)
    assert any(one.any() for one in held)
    one.close()
    assert rows("index_holders") == []
    assert not any(one.any() for one in held)


@pytest.mark.rule("ERA-1", "TIR-5")
def test_what_was_erased_is_overwritten_when_the_process_confirms_though_nobody_recalls(
    another: Opener, fabric: Fabric, people: People, rows: Any
) -> None:
    holder = another()
    said(fabric, people, SECRET)
    said(fabric, people, OTHER, subject="shop:s_1", user_id=None)
    # Sealed under the user's own key.
    fabric.capture(people.run(USER), kind="statement", text="hello", classification="INTERNAL", user_id=USER)
    assert found(holder, people) == {SECRET, OTHER}
    (before,) = confirmed(rows)
    own = next(part for part in parts(holder, people) if part.user_id == USER)
    vectors, terms = own.blocks[0].vectors, own.blocks[0].words.terms
    assert own.holder_key[0] is not None

    receipt = fabric.erase(people.officer, subject=f"customer:{USER}", user_id=USER)
    assert vectors.any()
    call(holder, context(holder).index.confirm_all)

    assert not vectors.any()
    assert not terms.any()
    assert own.holder_key == (None, None), "the wrapped key is gone too"
    assert before < receipt.seq
    assert confirmed(rows) == [receipt.seq]
    assert found(holder, people) == {OTHER}


@pytest.mark.rule("ERA-1")
def test_a_notice_has_every_process_overwrite_what_was_erased_at_once(
    another: Opener, fabric: Fabric, people: People, rows: Any, listening: Callable[[], list[int]]
) -> None:
    holder = another(listen_after=0.0)
    said(fabric, people, SECRET)
    found(holder, people)
    wait_until(lambda: bool(listening()))
    held = arrays(holder, people)
    assert held
    receipt = fabric.erase(people.officer, subject=f"customer:{USER}", user_id=USER)
    wait_until(lambda: not any(one.any() for one in held))
    wait_until(lambda: confirmed(rows) == [receipt.seq])


@pytest.mark.rule("ERA-3")
def test_a_process_that_lost_the_connection_it_listens_on_drops_everything(
    another: Opener, server: TestServer, people: People, rows: Any, listening: Callable[[], list[int]]
) -> None:
    """The database may have been restored since, or have crashed before the process's row was on its disk."""
    holder = another(listen_after=0.0)
    said(holder, people, SECRET)
    found(holder, people)
    wait_until(lambda: bool(listening()))
    held = arrays(holder, people)
    assert held
    with server.connect("postgres") as connection:
        for pid in listening():
            connection.execute("SELECT pg_terminate_backend(%s::int)", [pid])
    wait_until(lambda: not any(one.any() for one in held))
    assert found(holder, people) == {SECRET}
    assert len(rows("index_holders")) == 1


@pytest.mark.rule("ERA-3", "TIR-5")
def test_a_process_whose_lease_ran_out_drops_everything_before_it_uses_it_again(
    another: Opener, people: People, rows: Any
) -> None:
    holder = another()
    said(holder, people, SECRET)
    found(holder, people)
    held = arrays(holder, people)
    context(holder).scopes.leases[people.tenant_id].until = monotonic()
    scopes = context(holder).scopes
    assert scopes.find(people.tenant_id, ["", USER], parts(holder, people)[0].embedder) is None
    assert not any(one.any() for one in held)
    assert found(holder, people) == {SECRET}
    assert len(rows("index_holders")) == 1


@pytest.mark.rule("ERA-3")
def test_a_process_whose_row_is_gone_or_ran_out_in_the_database_drops_everything(
    another: Opener, server: TestServer, database: str, people: People, rows: Any
) -> None:
    for change in ("DELETE FROM index_holders", "UPDATE index_holders SET leased_until = now() - interval '1 s'"):
        holder = another()
        if not found(holder, people):
            said(holder, people, SECRET)
        assert found(holder, people) == {SECRET}
        held = arrays(holder, people)
        with server.connect(database) as owner:
            owner.execute(f"{change} WHERE tenant_id = %s", [people.tenant_id])
        call(holder, context(holder).index.confirm_all)
        assert not any(one.any() for one in held)
        assert rows("index_holders") == []
        holder.close()


@pytest.mark.rule("ERA-3")
def test_what_is_held_under_a_lease_that_ran_out_is_dropped_while_confirmations_hang(
    another: Opener, people: People, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_guard, "CONFIRM_SECONDS", 0.05)
    monkeypatch.setattr(index_guard, "DROP_SECONDS", 0.05)
    holder = another()
    said(holder, people, SECRET)
    index = context(holder).index
    found(holder, people)
    held = arrays(holder, people)
    lock = index._lock(people.tenant_id)
    call(holder, lock.acquire)
    wait_until(lambda: bool(lock._waiters))
    assert any(one.any() for one in held)
    context(holder).scopes.leases[people.tenant_id].until = monotonic()
    wait_until(lambda: not any(one.any() for one in held))
    assert lock._waiters, "the confirmation still hangs"
    holder._portal.call(lock.release)
    wait_until(lambda: rows("index_holders") == [])
    task = index._task
    assert task is not None
    wait_until(task.done)


@pytest.mark.rule("ERA-3")
def test_the_task_and_its_timer_stop_when_the_process_closes(another: Opener, people: People) -> None:
    holder = another()
    said(holder, people, SECRET)
    found(holder, people)
    task = context(holder).index._task
    assert task is not None and not task.done()
    holder.close()
    assert task.done()


@pytest.mark.rule("ERA-1")
def test_what_nobody_used_for_long_is_dropped_though_nobody_recalls(
    another: Opener, people: People, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = another()
    said(holder, people, SECRET)
    found(holder, people)
    held = arrays(holder, people)
    call(holder, context(holder).index.renew_leases)
    assert any(one.any() for one in held)
    monkeypatch.setattr(scope_index, "IDLE_SECONDS", 0.0)
    call(holder, context(holder).index.renew_leases)
    assert not any(one.any() for one in held)
    assert len(rows("index_holders")) == 1, "a recall may be reading a part at this moment"
    call(holder, context(holder).index.renew_leases)
    assert rows("index_holders") == []
    monkeypatch.undo()
    assert found(holder, people) == {SECRET}
    assert len(rows("index_holders")) == 1


@pytest.mark.rule("ERA-3", "TIR-5")
def test_what_was_read_before_an_erasure_is_not_held_after_the_process_has_confirmed_it(
    another: Opener, fabric: Fabric, people: People
) -> None:
    """A recall of another user began before the erasure, and reads on after it."""
    holder = another()
    said(fabric, people, SECRET)
    said(fabric, people, OTHER, user_id=None, subject="shop:s_1")
    holder.recall(people.run("somebody"), "the shop")
    here = context(holder)
    name = parts(holder, people)[0].embedder

    async def overlapping() -> None:
        async with here.transaction(people.tenant_id, "recall") as tx:
            await tx.rows("scopes.number")  # From here on this is what it sees.
            erased.append(await loops_run(fabric.erase, people.officer, subject=f"customer:{USER}", user_id=USER))
            await here.index.confirm(people.tenant_id)
            assert await here.scopes.read(tx.gather, people.tenant_id, ["", USER], name, 256) is None

    erased: list[Any] = []
    call(holder, overlapping)
    assert len(erased) == 1
    assert all(part.user_id != USER for part in parts(holder, people))
    assert found(holder, people) == {OTHER}


async def loops_run(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Run a call that blocks beside the event loop."""
    return await anyio.to_thread.run_sync(partial(function, *args, **options))


@pytest.mark.rule("ERA-3")
def test_parts_of_a_database_that_was_restored_since_are_dropped(another: Opener, people: People) -> None:
    holder = another()
    said(holder, people, SECRET)
    found(holder, people)
    (own,) = [part for part in parts(holder, people) if part.user_id == USER]
    vectors = own.blocks[0].vectors
    own.number = VisibilityNumber(own.number.seq, "00000000-0000-0000-0000-000000000000")
    call(holder, context(holder).index.confirm_all)
    assert not vectors.any()
    assert found(holder, people) == {SECRET}
    lease = context(holder).scopes.leases[people.tenant_id]
    lease.number = VisibilityNumber(lease.number.seq, "00000000-0000-0000-0000-000000000000")
    held = arrays(holder, people)
    call(holder, context(holder).index.confirm_all)
    assert not any(one.any() for one in held)


@pytest.mark.rule("REC-1", "TIR-5")
def test_a_recall_whose_scope_was_dropped_meanwhile_is_not_answered_from_it(another: Opener, people: People) -> None:
    holder = another()
    said(holder, people, SECRET)
    found(holder, people)
    here, run = context(holder), people.run(USER)
    name = parts(holder, people)[0].embedder

    async def dropped_meanwhile() -> bool:
        packs = await here.recall_packs(run)
        needed = await dependencies(here, run.tenant_id, "giraffe")
        async with here.transaction(run.tenant_id, "recall") as tx:
            asked = await recalling._prepare(here, tx, run, packs, RecallInput(query="giraffe"))
            scope = here.scopes.find(run.tenant_id, ["", USER], name)
            assert scope is not None
            here.scopes.forget(run.tenant_id)
            try:
                await recalling.find_and_record(tx, needed, run, *asked[:3], scope=scope)
            except IndexOutdated:
                return False
            return True

    assert not call(holder, dropped_meanwhile)


def test_recalls_from_the_index_are_counted(another: Opener, people: People) -> None:
    holder = another()
    said(holder, people, SECRET)
    for _ in range(3):
        found(holder, people)
    counts = context(holder).scopes.counts
    assert (counts.used, counts.built, counts.refreshed, counts.mismatched) == (3, 2, 0, 0)
    assert context(holder).scopes.size > 0


def test_an_index_that_is_wrong_is_reported_and_dropped(
    another: Opener, people: People, caplog: pytest.LogCaptureFixture
) -> None:
    holder = another()
    said(holder, people, SECRET)
    said(holder, people, OTHER, user_id=None, subject="shop:s_1")
    found(holder, people)
    # A memory that the database does not have.
    (own,) = [part for part in parts(holder, people) if part.user_id == USER]
    own.blocks[0].ids[0] = "mem_wrong"
    with caplog.at_level(logging.WARNING, "muniment.recall"):
        assert found(holder, people) == {SECRET, OTHER}
    assert context(holder).scopes.counts.mismatched == 1
    assert "was not as the database is" in caplog.text
    assert SECRET not in caplog.text


def test_the_size_of_the_index_is_set_and_divided_among_processes(
    another: Opener, people: People, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Settings.gather("postgresql://x").index_bytes == 512 * 1024 * 1024
    monkeypatch.setenv("MUNIMENT_INDEX_MB", "64")
    assert context(another()).scopes.limit == 64 * 1024 * 1024
    assert context(another(processes=4)).scopes.limit == 16 * 1024 * 1024
    without = another(index_mb=0)
    said(without, people, SECRET)
    assert found(without, people) == {SECRET}
    assert context(without).scopes.counts == scope_index.Counts()
    assert rows("index_holders") == []
    for wrong in ("many", "-1"):
        monkeypatch.setenv("MUNIMENT_INDEX_MB", wrong)
        with pytest.raises(InvalidInput, match="number of megabytes"):
            Settings.gather("postgresql://x")
