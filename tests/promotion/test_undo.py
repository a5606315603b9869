"""Undo of a promotion by policy: it ends, what it had superseded comes back, and it is remembered (PRO-8)."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from pydantic_core import to_json

from muniment import Fabric
from muniment.errors import Conflict, InvalidInput, NotFound, RoleMissing
from muniment.pack import load_pack
from muniment.testing import FakeClock, People, TestServer
from tests.conftest import Connect
from tests.pack_activation import put_in_force
from tests.packs.profile_packs import made_of
from tests.packs.test_profiles import Opener, opened, say
from tests.stories import event_data, promoted, proposed, run_job

__all__ = ["opened"]


@pytest.fixture
def fabric_of(opened: Opener) -> Iterator[Fabric]:
    with opened(made_of("personal")) as fabric:
        yield fabric


def values(fabric: Fabric, people: People) -> list[Any]:
    return sorted(one.value for one in fabric.recall(people.run()).records)


@pytest.mark.rule("PRO-8", "PRO-6")
def test_an_undone_promotion_is_retracted_by_its_name_and_reason(fabric_of: Fabric, people: People) -> None:
    (memory_id,) = say(fabric_of, people, payload={"likes": "tea"})
    done = fabric_of.undo(people.reviewer, memory_id, note="not said")
    assert (done.retraction.reason, done.retraction.retracted_by) == ("undone", "boris")
    assert (done.restored, done.not_restored) == ({}, ())
    assert values(fabric_of, people) == []
    memory = fabric_of.get(people.auditor, memory_id)
    assert memory.retraction_reason == "undone"
    verdict = fabric_of.queue.get(people.reviewer, memory.proposal_id).verdicts[-1]
    assert (verdict.action, verdict.by, verdict.memory_id, verdict.note) == ("undo", "boris", memory_id, "not said")
    assert fabric_of.verify(people.auditor).ok


@pytest.mark.rule("PRO-8", "PRO-1", "PRO-5")
def test_what_it_had_superseded_is_a_new_record_from_the_same_candidate_in_that_transaction(
    fabric_of: Fabric, people: People, clock: FakeClock
) -> None:
    (old,) = say(fabric_of, people, payload={"likes": "tea"})
    clock.advance(hours=2)
    (new,) = say(fabric_of, people, payload={"likes": "coffee"})
    clock.advance(hours=2)
    done = fabric_of.undo(people.reviewer, new)
    again = done.restored[old]
    first, second = fabric_of.get(people.auditor, old), fabric_of.get(people.auditor, again)
    assert values(fabric_of, people) == ["tea"]
    assert second.candidate_id == first.candidate_id and second.memory_id != first.memory_id
    assert (second.approver, second.born_seq, second.value) == ("auto", done.retraction.seq, "tea")
    assert second.expires_at == first.expires_at, "an undo makes nothing live longer"
    assert fabric_of.queue.get(people.reviewer, second.proposal_id).restores == old
    assert first.retracted_at is not None, "a retraction is never undone itself (PRO-3)"
    assert fabric_of.verify(people.auditor).ok


@pytest.mark.rule("PRO-8", "REV-6")
def test_the_undone_fact_is_refused_like_a_rejected_one_until_that_is_lifted(
    fabric_of: Fabric, people: People, clock: FakeClock
) -> None:
    (memory_id,) = say(fabric_of, people, payload={"likes": "tea"})
    proposal_id = fabric_of.get(people.auditor, memory_id).proposal_id
    fabric_of.undo(people.reviewer, memory_id)
    assert say(fabric_of, people, payload={"likes": "tea"}) == []
    (refusal,) = fabric_of.refusals.list(people.reviewer)
    assert (refusal.gate, refusal.rejection) == ("rejection", proposal_id)
    fabric_of.queue.lift(people.reviewer, proposal_id)
    assert len(say(fabric_of, people, payload={"likes": "tea"})) == 1
    with pytest.raises(Conflict, match="lifted before"):
        fabric_of.queue.lift(people.reviewer, proposal_id)


@pytest.mark.rule("PRO-8")
def test_after_the_packs_term_only_an_ordinary_retraction_is_possible(
    fabric_of: Fabric, people: People, clock: FakeClock
) -> None:
    (memory_id,) = say(fabric_of, people, payload={"likes": "tea"})
    (other,) = say(fabric_of, people, "The cellar has three windows.")
    clock.advance(days=1)
    fabric_of.undo(people.reviewer, other)
    clock.advance(seconds=1)
    with pytest.raises(Conflict, match="could be undone for 1d"):
        fabric_of.undo(people.reviewer, memory_id)
    assert fabric_of.retract(people.reviewer, memory_id, reason="wrong").reason == "wrong"


@pytest.mark.rule("PRO-8")
def test_what_a_person_approved_cannot_be_undone_and_nothing_twice(fabric_of: Fabric, people: People) -> None:
    by_a_person = promoted(fabric_of, people)
    with pytest.raises(Conflict, match="approved by boris"):
        fabric_of.undo(people.second_reviewer, by_a_person)
    (memory_id,) = say(fabric_of, people, payload={"likes": "tea"})
    fabric_of.undo(people.reviewer, memory_id)
    with pytest.raises(Conflict, match="retracted before"):
        fabric_of.undo(people.reviewer, memory_id)
    with pytest.raises(NotFound):
        fabric_of.undo(people.reviewer, "pm_none")


@pytest.mark.rule("PRO-8", "REV-4")
@pytest.mark.parametrize("role", ["auditor", "admin", "officer", "author"])
def test_nobody_but_a_reviewer_undoes(fabric_of: Fabric, people: People, role: str) -> None:
    (memory_id,) = say(fabric_of, people, payload={"likes": "tea"})
    with pytest.raises(RoleMissing):
        fabric_of.undo(getattr(people, role), memory_id)
    with pytest.raises(RoleMissing):
        fabric_of.undo(people.run(), memory_id)


@pytest.mark.rule("PRO-8")
def test_undone_is_no_reason_for_a_retraction(fabric_of: Fabric, people: People) -> None:
    (memory_id,) = say(fabric_of, people, payload={"likes": "tea"})
    with pytest.raises(InvalidInput, match="reason"):
        fabric_of.retract(people.reviewer, memory_id, reason="undone")  # type: ignore[arg-type]


@pytest.mark.rule("PRO-8", "PRO-1", "CTR-3")
def test_what_would_contradict_another_memory_by_now_waits_for_a_person(
    fabric_of: Fabric, people: People, clock: FakeClock
) -> None:
    (old,) = say(fabric_of, people, "I drink coffee.")
    clock.advance(hours=1)
    (new,) = say(fabric_of, people, "I no longer drink coffee.")
    clock.advance(hours=1)
    item = proposed(
        fabric_of, people.run(), write_class="statement", text="I never drink coffee.", subject="user:cust_1"
    )
    fabric_of.queue.approve(people.reviewer, item.proposal_id)
    done = fabric_of.undo(people.reviewer, new)
    (left,) = done.not_restored
    assert (done.restored, left.memory_id, left.reason) == ({}, old, "contradiction")
    waits = fabric_of.queue.get(people.reviewer, left.proposal_id or "")
    assert (waits.status, waits.human_reasons, waits.restores) == ("pending", ("returned",), old)
    assert fabric_of.consolidate(people.tenant_id).promoted == (), "policy leaves it to a person"


@pytest.mark.rule("PRO-8", "PRO-4")
def test_what_has_expired_meanwhile_does_not_come_back(opened: Opener, people: People, clock: FakeClock) -> None:
    short = {"memory_policy": {"ttl": {"semantic": "3h"}}}
    with opened(made_of("personal", **short)) as fabric:
        (old,) = say(fabric, people, payload={"likes": "tea"})
        clock.advance(hours=2)
        (new,) = say(fabric, people, payload={"likes": "coffee"})
        clock.advance(hours=2)
        (left,) = fabric.undo(people.reviewer, new).not_restored
        assert (left.memory_id, left.reason, left.proposal_id) == (old, "expired", None)


@pytest.mark.rule("PRO-8", "PAC-9")
def test_what_another_pack_would_not_promote_waits_for_a_person(
    opened: Opener, people: People, clock: FakeClock
) -> None:
    with opened(made_of("personal")) as fabric:
        (old,) = say(fabric, people, payload={"likes": "tea"})
        clock.advance(hours=1)
        (new,) = say(fabric, people, payload={"likes": "coffee"})
        stricter = made_of("personal", classes={"preference": {"approval": "human"}}).document()
        stricter["pack_meta"]["version"] = "1.1.0"
        put_in_force(fabric, people.tenant_id, load_pack(to_json(stricter)))
        (left,) = fabric.undo(people.reviewer, new).not_restored
        assert (left.memory_id, left.reason) == (old, "changed_by_pack")
        assert values(fabric, people) == []


@pytest.mark.rule("PRO-8", "ERA-2")
def test_what_was_erased_does_not_come_back(fabric_of: Fabric, people: People, clock: FakeClock) -> None:
    say(fabric_of, people, payload={"likes": "tea"})
    clock.advance(hours=1)
    (new,) = say(fabric_of, people, payload={"likes": "coffee"})
    fabric_of.erase(people.officer, user_id="cust_1", subject="user:cust_1")
    with pytest.raises(Conflict):
        fabric_of.undo(people.reviewer, new)
    assert fabric_of.recall(people.run()).all_records == ()


@pytest.mark.rule("PRO-8", "CAN-6", "JOB-6")
def test_an_undo_counts_against_its_source_and_its_class(opened: Opener, people: People) -> None:
    settings = {
        "promotion_thresholds": {"calibrate_from": 1},
        "audit": {"sample_share": 1.0, "min_samples": 1},
    }
    with opened(made_of("personal", **settings)) as fabric:
        (memory_id,) = say(fabric, people, payload={"likes": "tea"})
        run_job(fabric, "sample", people.tenant_id)
        fabric.undo(people.reviewer, memory_id)
        run_job(fabric, "calibrate", people.tenant_id)
        (note,) = [one for one in event_data(fabric, people, "note") if one["about"] == "calibrated"]
        assert (note["verdicts"], note["approved"]) == (1, 0)
        assert run_job(fabric, "sample", people.tenant_id).nonzero == {"suspended": 1}


@pytest.mark.rule("PRO-8")
def test_the_database_restores_only_what_was_retracted_and_policy_undoes_nothing(
    fabric_of: Fabric, people: People, as_role: Connect, rows: Any, server: TestServer, database: str
) -> None:
    (memory_id,) = say(fabric_of, people, payload={"likes": "tea"})
    proposal = rows("proposals")[0]
    writer = as_role("writer")
    columns = [name for name in proposal if name not in ("proposal_id", "restores")]
    listed = ", ".join(columns)
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        writer.execute(
            f"INSERT INTO proposals ({listed}, proposal_id, restores) SELECT {listed}, 'mwp_x', %s FROM proposals"
            " WHERE tenant_id = %s AND proposal_id = %s", [memory_id, people.tenant_id, proposal["proposal_id"]],
        )  # fmt: skip
    writer.rollback()
    with pytest.raises(psycopg.errors.UniqueViolation):
        writer.execute(
            f"INSERT INTO proposals ({listed}, proposal_id) SELECT {listed}, 'mwp_x' FROM proposals"
            " WHERE tenant_id = %s AND proposal_id = %s", [people.tenant_id, proposal["proposal_id"]],
        )  # fmt: skip
    writer.rollback()
    verdict = rows("verdicts")[0]
    kept = ", ".join(name for name in verdict if name not in ("verdict_id", "action", "by", "by_kind", "memory_id"))
    # Even where row security does not count, only people undo, and an end user decides nothing else.
    with server.connect(database) as owner:
        for action, by, kind in (
            ("undo", "auto", "system"),
            ("edit", "cust_1", "end_user"),
            ("override", "x", "end_user"),
        ):
            with pytest.raises(psycopg.errors.CheckViolation):
                owner.execute(
                    f"INSERT INTO verdicts ({kept}, verdict_id, action, by, by_kind, memory_id)"
                    f" SELECT {kept}, 'rv_x', %s, %s, %s, 'pm_1' FROM verdicts WHERE verdict_id = %s",
                    [action, by, kind, verdict["verdict_id"]],
                )
            owner.rollback()
