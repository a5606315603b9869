"""SUB-1: end users see what is held about them, and nothing of anybody else."""

import psycopg
import pytest

from muniment import Fabric, Principal
from muniment.errors import NotFound, RoleMissing
from muniment.model.fields import Source
from muniment.testing import People
from tests.conftest import Connect
from tests.stories import submitted
from tests.subject.conftest import Say, subject


@pytest.mark.rule("SUB-1")
def test_an_end_user_sees_the_memories_about_them_and_why_they_are_held(
    home: Fabric, people: People, joanna: Principal, say: Say
) -> None:
    proposal_id = say("joanna", "Joanna takes her coffee without milk.")
    home.queue.approve(people.reviewer, proposal_id)
    (memory,) = home.me.list(joanna)
    assert (memory.text, memory.reach, memory.state) == ("Joanna takes her coffee without milk.", "yours", "live")
    home.recall(people.run("joanna"))
    details = home.me.get(joanna, memory.memory_id)
    assert details.capture is not None and details.capture.text == "Joanna takes her coffee without milk."
    assert [(one.action, one.by) for one in details.decisions] == [("approve", people.reviewer.id)]
    assert details.recalled.times == 1


@pytest.mark.rule("SUB-1")
def test_an_end_user_sees_nothing_of_another_user(
    home: Fabric, people: People, joanna: Principal, tom: Principal, say: Say
) -> None:
    waits = say("tom", "Tom is learning Greek.")
    home.queue.approve(people.reviewer, waits)
    say("tom", "Tom plays the cello on Sundays.")
    home.recall(people.run("tom"), "music")
    (memory,) = home.me.list(tom)
    assert home.me.list(joanna) == [] and home.me.pending(joanna) == []
    assert home.me.captures(joanna) == [] and home.me.recalls(joanna) == []
    with pytest.raises(NotFound):
        home.me.get(joanna, memory.memory_id)
    with pytest.raises(NotFound):
        home.me.list(joanna, after=memory.memory_id)
    assert [one.query for one in home.me.recalls(tom)] == ["music"]
    assert len(home.me.captures(tom)) == 2 and len(home.me.pending(tom)) == 1


@pytest.mark.rule("SUB-1")
def test_the_same_user_of_another_tenant_sees_nothing(home: Fabric, people: People, others: People, say: Say) -> None:
    home.queue.approve(people.reviewer, say("joanna", "Joanna lives by the sea."))
    (memory,) = home.me.list(subject(people, "joanna"))
    stranger = subject(others, "joanna")
    assert home.me.list(stranger) == []
    with pytest.raises(NotFound):
        home.me.get(stranger, memory.memory_id)


@pytest.mark.rule("SUB-1")
@pytest.mark.parametrize("other", ["joann", "joanna2", "JOANNA", "joanna%", "@joanna"])
def test_a_user_id_is_compared_byte_for_byte(home: Fabric, people: People, say: Say, other: str) -> None:
    home.queue.approve(people.reviewer, say("joanna", "Joanna lives by the sea."))
    assert home.me.list(subject(people, other)) == []


@pytest.mark.rule("SUB-1")
def test_a_tenant_wide_memory_is_seen_by_whom_it_is_about_and_by_no_other_user(
    home: Fabric, people: People, joanna: Principal, tom: Principal
) -> None:
    run = people.run(None)
    made = home.propose(
        run, write_class="statement", text="She prefers calls.", subject="user:joanna", classification="INTERNAL"
    )
    home.queue.approve(people.reviewer, submitted(made))
    (memory,) = home.me.list(joanna)
    assert (memory.text, memory.reach) == ("She prefers calls.", "everybody")
    assert home.me.list(tom) == []


@pytest.mark.rule("IMP-4")
def test_what_is_sealed_under_another_persons_key_is_shown_without_its_text(
    home: Fabric, people: People, joanna: Principal, tom: Principal
) -> None:
    run = people.run("joanna")
    made = home.propose(
        run, write_class="statement", text="Tom likes jazz.", subject="user:tom", classification="INTERNAL"
    )
    home.queue.approve(people.reviewer, submitted(made))
    (memory,) = home.me.list(joanna)
    assert (memory.text, memory.withheld) == ("", True)
    (hers,) = home.me.list(tom)
    assert (hers.text, hers.withheld, hers.reach) == ("Tom likes jazz.", False, "another_user")


@pytest.mark.rule("SUB-1")
@pytest.mark.parametrize("kind", ["agent", "operator", "system"])
def test_nobody_but_an_end_user_is_a_subject(home: Fabric, people: People, kind: Source) -> None:
    who = Principal(tenant_id=people.tenant_id, id="joanna", kind=kind, roles={"subject", "agent"})
    with pytest.raises(RoleMissing):
        home.me.list(who)


@pytest.mark.rule("SUB-1")
def test_the_login_of_subjects_sees_rows_of_the_named_person_alone(
    home: Fabric, people: People, say: Say, as_role: Connect
) -> None:
    for user_id in ("joanna", "tom"):
        home.queue.approve(people.reviewer, say(user_id, f"{user_id} likes quiet places."))
        home.recall(people.run(user_id), "places")
    connection = as_role("subject")
    places = ("captures", "candidates", "memories", "subjects", "recalls")
    # Of what belongs to these it reads ids, numbers and sealed bytes: what is not joined to a row of the person says nothing.
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("SELECT user_id FROM memory_scope")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("SELECT retracted_by FROM retractions")
    counted = {table: connection.execute(f"SELECT count(*) FROM {table}").fetchone() for table in places}
    assert set(counted.values()) == {(0,)}
    with connection.transaction():
        connection.execute("SELECT set_config('muniment.person', %s, true)", ["user:joanna\x1f@joanna"])
        for table in places:
            row = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
            assert row is not None and row[0] in (1, 2), table
        holders = connection.execute("SELECT holder FROM subjects").fetchall()
        assert {row[0] for row in holders} <= {"user:joanna", "@joanna"}
        users = connection.execute("SELECT DISTINCT user_id FROM memories").fetchall()
        assert users == [("joanna",)]
        decided = "SELECT count(*) FROM memories JOIN memory_bodies USING (memory_id) JOIN verdicts USING (verdict_id)"
        assert connection.execute(decided).fetchone() == (1,)
