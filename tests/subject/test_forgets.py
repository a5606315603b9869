"""SUB-3: what a person has forgotten is gone at once and stays so; forgetting everything is an erasure that is released."""

import psycopg
import pytest

from muniment import Fabric, Principal, Refusal
from muniment.errors import Conflict, Denied, NotFound, RoleMissing
from muniment.testing import FakeClock, People
from tests.conftest import Connect, Opener
from tests.stories import submitted
from tests.subject.conftest import PACK, Say, subject

TEA = "Joanna prefers tea to coffee."


def _remembered(home: Fabric, people: People, say: Say, text: str = TEA, user_id: str = "joanna") -> str:
    done = home.queue.approve(people.reviewer, say(user_id, text))
    assert done.memory_id is not None
    return done.memory_id


@pytest.mark.rule("SUB-3")
def test_a_forgotten_fact_is_gone_at_once_and_refused_until_the_person_allows_it(
    home: Fabric, people: People, joanna: Principal, say: Say
) -> None:
    memory_id = _remembered(home, people, say)
    gone = home.me.forget(joanna, memory_id)
    assert (gone.retracted_by, gone.reason) == ("joanna", "forgotten")
    assert home.recall(people.run("joanna")).records == ()
    run = people.run("joanna")
    again = home.propose(run, write_class="statement", text=TEA, classification="INTERNAL")
    assert isinstance(again, Refusal) and again.reason == "rejected_before"
    assert [one.state for one in home.me.list(joanna)] == ["forgotten"]
    with pytest.raises(Conflict):
        home.me.forget(joanna, memory_id)
    home.me.allow_again(joanna, memory_id)
    assert say("joanna", TEA)
    with pytest.raises(Conflict):
        home.me.allow_again(joanna, memory_id)
    assert home.verify(people.auditor).ok


@pytest.mark.rule("SUB-3")
def test_it_stays_forgotten_longer_than_a_rejection(
    under: Opener, people: People, joanna: Principal, clock: FakeClock
) -> None:
    with under(PACK + "  rejections: {remember: 1d}\n") as home:
        run = people.run("joanna")
        made = home.propose(run, write_class="statement", text=TEA, classification="INTERNAL")
        done = home.queue.approve(people.reviewer, submitted(made))
        assert done.memory_id is not None
        home.me.forget(joanna, done.memory_id)
        clock.advance(days=2)
        again = home.propose(run, write_class="statement", text=TEA, classification="INTERNAL")
        assert isinstance(again, Refusal) and again.reason == "rejected_before"


@pytest.mark.rule("SUB-3", "REV-8")
def test_no_duplicate_of_a_forgotten_fact_comes_back(home: Fabric, people: People, joanna: Principal, say: Say) -> None:
    memory_id = _remembered(home, people, say)
    repeated = say("joanna", TEA)
    assert home.queue.get(people.reviewer, repeated).status == "duplicate"
    home.me.forget(joanna, memory_id)
    assert home.queue.list(people.reviewer) == [] and home.me.pending(joanna) == []


@pytest.mark.rule("SUB-3")
def test_nobody_has_a_fact_of_another_user_forgotten(
    home: Fabric, people: People, others: People, tom: Principal, say: Say
) -> None:
    memory_id = _remembered(home, people, say)
    for stranger in (tom, subject(others, "joanna")):
        with pytest.raises(NotFound):
            home.me.forget(stranger, memory_id)
    with pytest.raises(Denied):
        home.me.forget(people.run("joanna"), memory_id)
    assert len(home.recall(people.run("joanna")).records) == 1


@pytest.mark.rule("SUB-3")
def test_what_others_runs_see_too_is_not_forgotten_by_one_person_alone(
    home: Fabric, people: People, joanna: Principal
) -> None:
    run = people.run(None)
    made = home.propose(
        run, write_class="statement", text="She prefers calls.", subject="user:joanna", classification="INTERNAL"
    )
    done = home.queue.approve(people.reviewer, submitted(made))
    assert done.memory_id is not None
    with pytest.raises(Denied):
        home.me.forget(joanna, done.memory_id)


@pytest.mark.rule("SUB-3")
def test_the_database_takes_a_forgotten_memory_only_under_its_own_users_name(
    home: Fabric, people: People, say: Say, as_role: Connect
) -> None:
    memory_id = _remembered(home, people, say)
    writer = as_role("writer")
    with pytest.raises(psycopg.errors.ForeignKeyViolation, match="retractions_own"), writer.transaction():
        writer.execute("UPDATE tenant_clock SET seq = seq + 1, prev_at = at")
        writer.execute(
            "INSERT INTO ticks (tenant_id, seq, at, prev_seq, prev_at, txid, visible_seq)"
            " SELECT tenant_id, seq, at, seq - 1, prev_at, transaction_mark(), seq FROM tenant_clock"
        )
        writer.execute(
            "INSERT INTO retractions (tenant_id, memory_id, seq, retracted_at, txid, retracted_by, reason)"
            " SELECT tenant_id, %s, seq, at, transaction_mark(), 'tom', 'forgotten' FROM tenant_clock",
            [memory_id],
        )


def test_a_reviewer_does_not_retract_as_forgotten(home: Fabric, people: People, say: Say) -> None:
    memory_id = _remembered(home, people, say)
    with pytest.raises(Exception, match="reason"):
        home.retract(people.reviewer, memory_id, reason="forgotten")  # pyright: ignore[reportArgumentType]  it is refused


# ---- everything ----


@pytest.mark.rule("SUB-3")
def test_forgetting_everything_waits_for_a_privacy_officer(
    home: Fabric, people: People, joanna: Principal, tom: Principal, say: Say
) -> None:
    _remembered(home, people, say)
    _remembered(home, people, say, "Tom plays the cello.", "tom")
    asked = home.me.forget_everything(joanna)
    with pytest.raises(Conflict):
        home.me.forget_everything(joanna)
    assert len(home.recall(people.run("joanna")).records) == 1
    assert [one.request_id for one in home.erasure_requests.list(people.officer)] == [asked.request_id]
    for who in (joanna, people.reviewer, people.admin):
        with pytest.raises(RoleMissing):
            home.erasure_requests.release(who, asked.request_id)
    done = home.erasure_requests.release(people.officer, asked.request_id)
    assert done.answer == "released" and done.erasure_id is not None
    assert [one.erasure_id for one in home.erasures(people.officer)] == [done.erasure_id]
    assert home.recall(people.run("joanna")).records == ()
    assert [one.text for one in home.me.list(joanna)] == [""] and home.me.captures(joanna)[0].text == ""
    assert len(home.recall(people.run("tom")).records) == 1
    with pytest.raises(Conflict):
        home.erasure_requests.refuse(people.officer, asked.request_id)
    assert home.verify(people.auditor).ok


@pytest.mark.rule("SUB-3")
def test_a_refused_request_erases_nothing_and_can_be_made_again(
    home: Fabric, people: People, joanna: Principal, say: Say
) -> None:
    _remembered(home, people, say)
    asked = home.me.forget_everything(joanna)
    assert home.erasure_requests.refuse(people.officer, asked.request_id).answer == "refused"
    assert len(home.recall(people.run("joanna")).records) == 1
    home.me.forget_everything(joanna)


@pytest.mark.rule("SUB-3")
def test_a_request_that_was_recorded_before_the_process_ended_is_released_by_the_next(
    under: Opener, people: People, joanna: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ends(*_: object) -> None:
        raise RuntimeError("killed")

    with under(PACK.replace("{confirms: true}", "{confirms: true, erasure: at_once}")) as home:
        made = home.propose(people.run("joanna"), write_class="statement", text=TEA, classification="INTERNAL")
        home.me.confirm(joanna, submitted(made))
        with monkeypatch.context() as killed, pytest.raises(RuntimeError):
            killed.setattr("muniment.erasure.verbs._release", ends)
            home.me.forget_everything(joanna)
        assert [one.answer for one in home.erasure_requests.list(people.officer)] == [None]
        assert home.me.forget_everything(joanna).answer == "released"
        assert home.recall(people.run("joanna")).records == () and home.erasure_requests.list(people.officer) == []


@pytest.mark.rule("SUB-3")
def test_a_pack_can_release_it_at_once(under: Opener, people: People, joanna: Principal) -> None:
    with under(PACK.replace("{confirms: true}", "{confirms: true, erasure: at_once}")) as home:
        run = people.run("joanna")
        made = home.propose(run, write_class="statement", text=TEA, classification="INTERNAL")
        home.me.confirm(joanna, submitted(made))
        home.propose(run, write_class="statement", text="Joanna lives by the sea.", classification="INTERNAL")
        done = home.me.forget_everything(joanna)
        assert done.answer == "released"
        assert home.recall(people.run("joanna")).records == () and home.me.pending(joanna) == []
        assert home.verify(people.auditor).ok
