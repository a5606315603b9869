"""What policy may promote is promoted in the transaction that proposes it; what must be checked alone is left to the job."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from anyio import to_thread

from muniment import Fabric
from muniment.database.transaction import Transaction
from muniment.pack import load_pack
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.faults.concurrency import Calls, hold_clock
from tests.promotion.proven_source import PROOFS, capture, prove
from tests.stories import proposed, run_job

PACK = """
pack_meta: {id: acme.auto, version: "1.0.0", ontology_version: "1.0.0"}
memory_layer:
  promotion_thresholds: {calibrate_from: 12}
  classes: {statement: {approval: auto, auto_promotion: {threshold: 0.90}}}
"""
SAID = ("Herons nest by the mill.", "The printer wants A4 sheets.", "Bread comes from Olten.")
FOURTEEN, THIRTY = (f"Returns are accepted within {days} days of delivery." for days in (14, 30))


@pytest.fixture
def auto(server: TestServer, database: str, clock: FakeClock, people: People) -> Iterator[Fabric]:
    with Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS, pack=load_pack(PACK)) as opened:
        prove(opened, people)
        yield opened


@pytest.mark.rule("REV-3", "PRO-1", "AUD-1")
@pytest.mark.parametrize("texts", [SAID[:1], SAID, tuple(f"{one} {n}" for one in SAID for n in range(1000, 1006))])
def test_what_policy_may_promote_is_promoted_in_the_transaction_that_proposes_it(
    auto: Fabric, people: People, texts: tuple[str, ...]
) -> None:
    capture(auto, people, *texts)
    before = auto.events(people.auditor, limit=1000)[-1].seq
    done = auto.consolidate(people.tenant_id)
    together = len(done.promoted)
    assert together and len(done.proposals) == len(texts)
    events = [one for one in auto.events(people.auditor, limit=1000) if one.seq > before]
    (seq,) = {one.seq for one in events if one.type == "memory.proposed"}
    assert seq in {one.seq for one in events if one.type == "memory.promoted"}
    for proposal_id in done.proposals:
        proposal = auto.queue.get(people.reviewer, proposal_id)
        if proposal.memory_id in done.promoted:
            assert [(one.action, one.by) for one in proposal.verdicts] == [("approve", "auto")]
    shown = auto.recall(people.run("cust_1"), limit=50)
    assert {record.id for record in shown.all_records} >= set(done.promoted)
    assert auto.verify(people.auditor).ok


@pytest.mark.rule("PRO-1", "REV-3")
def test_a_memory_promoted_at_once_is_like_one_that_the_job_promoted(auto: Fabric, people: People, rows: Any) -> None:
    texts = ("Anna paints boats in summer.", "Berta paints boats in summer.")
    capture(auto, people, *texts)
    done = auto.consolidate(people.tenant_id)
    at_once, by_the_job = (one for one in rows("memories") if one["user_id"] == "cust_1")
    assert len(done.promoted) == 2
    assert at_once["born_seq"] < by_the_job["born_seq"], "it is near to the first, and was checked alone"
    own = {"memory_id", "candidate_id", "proposal_id", "verdict_id", "capture_id", "born_seq", "born_txid"}
    own |= {"facts", "filters"}  # Hashes that hold ids.
    assert {name: at_once[name] for name in at_once if name not in own} == {
        name: by_the_job[name] for name in by_the_job if name not in own
    }


@pytest.mark.rule("REV-7")
def test_of_two_captures_that_say_the_same_one_is_promoted_and_the_other_is_its_duplicate(
    auto: Fabric, people: People
) -> None:
    capture(auto, people, SAID[0], SAID[1], SAID[0])
    done = auto.consolidate(people.tenant_id)
    states = [auto.queue.get(people.reviewer, one).status for one in done.proposals]
    assert states == ["promoted", "promoted", "duplicate"]
    assert len(done.promoted) == 2


@pytest.mark.rule("CTR-2", "PRO-7")
def test_of_two_captures_that_contradict_each_other_policy_promotes_the_first_and_holds_the_second(
    auto: Fabric, people: People
) -> None:
    capture(auto, people, FOURTEEN, SAID[0], THIRTY)
    done = auto.consolidate(people.tenant_id)
    states = [auto.queue.get(people.reviewer, one).status for one in done.proposals]
    assert states == ["promoted", "promoted", "held"]
    assert len(auto.contradictions.list(people.reviewer)) == 1


@pytest.mark.rule("JOB-10")
def test_what_finds_no_room_is_held_and_what_was_promoted_at_once_counts(
    server: TestServer, database: str, clock: FakeClock, people: People
) -> None:
    full = load_pack(PACK + f"  budgets: [{{write_class: statement, records: {len(PROOFS) + 2}}}]\n")
    with Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS, pack=full) as auto:
        prove(auto, people)
        capture(auto, people, *SAID)
        done = auto.consolidate(people.tenant_id)
        held = [auto.queue.get(people.reviewer, one) for one in done.proposals]
        assert [one.status for one in held] == ["promoted", "promoted", "held"]
        assert len(done.promoted) == 2


@pytest.mark.rule("PRO-7", "CTR-2")
def test_a_consolidation_waits_for_a_promotion_in_its_scope_and_then_sees_it(
    auto: Fabric, people: People, server: TestServer, database: str
) -> None:
    other = proposed(auto, people.run("cust_1"), write_class="statement", text=FOURTEEN).proposal_id
    capture(auto, people, THIRTY)
    with hold_clock(server, database, people.tenant_id) as gate:
        approval = Calls([lambda: auto.queue.approve(people.reviewer, other)])
        gate.until_waiting(1)
        consolidation = Calls([lambda: auto.consolidate(people.tenant_id)])
        gate.until_waiting(2)
    (approved,), (done,) = approval.wait(), consolidation.wait()
    assert approved.status == "promoted"
    (proposal_id,) = done.proposals
    assert done.promoted == ()
    proposal = auto.queue.get(people.reviewer, proposal_id)
    assert proposal.contradiction_check.contradicted == (approved.memory_id,)
    assert "contradiction" in proposal.human_reasons


@pytest.mark.rule("JOB-1")
def test_the_job_does_not_read_again_what_was_promoted_at_once(auto: Fabric, people: People, rows: Any) -> None:
    def settled() -> str:
        return next(one["capture_id"] for one in rows("cursors") if one["name"] == "promote")

    capture(auto, people, SAID[0])
    auto.consolidate(people.tenant_id)
    capture(auto, people, SAID[1])
    last = auto.consolidate(people.tenant_id).proposals[-1]
    assert settled() == last
    capture(auto, people, SAID[2], FOURTEEN, THIRTY)
    done = auto.consolidate(people.tenant_id)
    assert settled() == done.proposals[1], "it still had to check the last one"
    run_job(auto, "consolidate", people.tenant_id)
    assert settled() == done.proposals[2]


def test_one_capture_takes_two_round_trips_and_six_until_it_is_promoted(
    auto: Fabric, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture(auto, people, SAID[0])
    auto.consolidate(people.tenant_id)
    counted: list[int] = []
    complete = Transaction.complete

    async def counting(self: Transaction) -> None:
        await complete(self)
        counted.append(self.round_trips)

    monkeypatch.setattr(Transaction, "complete", counting)
    capture(auto, people, SAID[1])
    assert counted == [2]
    counted.clear()
    assert len(auto.consolidate(people.tenant_id).promoted) == 1
    assert counted == [1, 4, 1], "read; locked, compared, the clock, written; nothing else is left to policy"


# Each statement of the read has a snapshot of its own: whatever happens between two of them must be noticed.
STATEMENTS_OF_THE_READ = 6


def between_two_statements_of_the_read(
    monkeypatch: pytest.MonkeyPatch, place: int, happens: Callable[[], object]
) -> None:
    """Let something happen once after so many statements of the read of a batch of captures."""
    commit_with, done = Transaction.commit_with, list[bool]()

    async def split(self: Transaction, *statements: Any) -> Any:
        if done or "candidate.next_captures" not in [name for name, _ in statements]:
            return await commit_with(self, *statements)
        assert len(statements) == STATEMENTS_OF_THE_READ
        done.append(True)
        first = await self.gather(*statements[:place])
        await to_thread.run_sync(happens)
        return [*first, *await commit_with(self, *statements[place:])]

    monkeypatch.setattr(Transaction, "commit_with", split)


@pytest.mark.rule("ERA-2", "CAN-3")
@pytest.mark.parametrize("place", range(1, STATEMENTS_OF_THE_READ))
def test_what_is_erased_while_captures_are_read_is_never_promoted(
    auto: Fabric, fabric: Fabric, people: People, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    capture(auto, people, SAID[1], user_id="zed")
    between_two_statements_of_the_read(monkeypatch, place, lambda: fabric.erase(people.officer, user_id="zed"))
    done = auto.consolidate(people.tenant_id)
    assert (done.promoted, done.proposals) == ((), ())
    assert auto.recall(people.run("zed"), SAID[1]).all_records == ()


@pytest.mark.rule("CAN-3")
@pytest.mark.parametrize("place", range(1, STATEMENTS_OF_THE_READ))
def test_captures_that_another_process_consolidates_while_they_are_read_are_consolidated_once(
    auto: Fabric, fabric: Fabric, people: People, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    capture(auto, people, *SAID)
    between_two_statements_of_the_read(monkeypatch, place, lambda: fabric.consolidate(people.tenant_id))
    auto.consolidate(people.tenant_id)
    found = auto.queue.list(people.reviewer, limit=100)
    shown = auto.recall(people.run("cust_1"), limit=50).all_records
    assert len({one.text for one in shown} | {one.candidate.text for one in found}) == len(SAID)
    assert len(shown) + len(found) == len(SAID)
