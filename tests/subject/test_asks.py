"""What a person asks for in a message: to forget or to correct something is never confirmed as a fact (CAN-12, SUB-2)."""

from collections.abc import Iterator
from typing import Any

import pytest

from muniment import Fabric, Principal
from muniment.errors import Conflict, Denied, NotFound
from muniment.model.subject import MyProposal
from muniment.testing import FakeClock, People
from tests.packs.test_profiles import Opener, opened

__all__ = ["opened"]

LIVES = "I live in Berlin."
FORGET = "Please forget that I live in Berlin."


@pytest.fixture
def personal(opened: Opener) -> Iterator[Fabric]:
    with opened("personal") as fabric:
        yield fabric


def _say(fabric: Fabric, people: People, text: str) -> tuple[str, ...]:
    run = people.run("joanna", speaks_for={"channels": ["app_chat"]})
    fabric.capture(run, kind="message", text=text, classification="INTERNAL", origin="channel:app_chat")
    return tuple(fabric.consolidate(people.tenant_id).promoted)


def _asked(fabric: Fabric, people: People, joanna: Principal, text: str = FORGET) -> MyProposal:
    (memory_id,) = _say(fabric, people, LIVES)
    _say(fabric, people, text)
    (waits,) = fabric.me.pending(joanna)
    assert waits.targets == (memory_id,)
    return waits


@pytest.mark.rule("CAN-12", "SUB-2")
def test_a_request_to_forget_cannot_be_confirmed_as_a_fact(personal: Fabric, people: People, joanna: Principal) -> None:
    waits = _asked(personal, people, joanna)
    assert waits.action == "retract" and not waits.may_confirm
    assert "asks_to_forget" in {one.code for one in waits.why_not}
    with pytest.raises(Denied, match="forget the memory"):
        personal.me.confirm(joanna, waits.proposal_id)
    assert [one.text for one in personal.me.list(joanna, live=True)] == [LIVES]


@pytest.mark.rule("CAN-12", "SUB-3")
def test_the_request_ends_when_the_person_has_the_memory_forgotten(
    personal: Fabric, people: People, joanna: Principal
) -> None:
    waits = _asked(personal, people, joanna)
    personal.me.forget(joanna, waits.targets[0])
    assert personal.me.pending(joanna) == [] and personal.me.list(joanna, live=True) == []
    closed = personal.queue.get(people.reviewer, waits.proposal_id)
    assert (closed.status, closed.verdicts[-1].by) == ("withdrawn", "joanna")
    assert personal.verify(people.auditor).ok


@pytest.mark.rule("CAN-12", "REV-8")
@pytest.mark.parametrize("by", ["person", "reviewer"])
def test_to_refuse_a_request_to_forget_says_nothing_against_the_fact(
    personal: Fabric, people: People, joanna: Principal, by: str
) -> None:
    waits = _asked(personal, people, joanna)
    if by == "person":
        personal.me.decline(joanna, waits.proposal_id)
    else:
        personal.queue.reject(people.reviewer, waits.proposal_id, reason="wrong")
    personal.retract(people.reviewer, waits.targets[0], reason="deprecated")
    assert _say(personal, people, LIVES), "the fact can be told again"


@pytest.mark.rule("CAN-12", "SUB-2")
def test_the_database_takes_no_confirmed_memory_from_a_request_to_forget(
    personal: Fabric, people: People, joanna: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = _asked(personal, people, joanna)
    monkeypatch.setattr("muniment.subject.acts._check", lambda _: None)
    # The rules are switched off: the table itself refuses it.
    personal.retract(people.reviewer, waits.targets[0], reason="deprecated")
    with pytest.raises(Exception, match="memories_confirmed"):
        personal.me.confirm(joanna, waits.proposal_id)
    assert personal.me.list(joanna, live=True) == []


# ---- undo (PRO-8) ----


@pytest.mark.rule("PRO-8")
def test_a_person_undoes_what_policy_promoted_about_them_and_the_older_fact_comes_back(
    personal: Fabric, people: People, joanna: Principal, clock: FakeClock
) -> None:
    (berlin,) = _say(personal, people, LIVES)
    clock.advance(seconds=1)
    (munich,) = _say(personal, people, "I now live in Munich.")
    assert [one.text for one in personal.me.list(joanna, live=True)] == ["I now live in Munich."]
    undone = personal.me.undo(joanna, munich)
    assert (undone.retraction.retracted_by, undone.retraction.reason) == ("joanna", "undone")
    assert list(undone.restored) == [berlin]
    assert [one.text for one in personal.me.list(joanna, live=True)] == [LIVES]
    with pytest.raises(Conflict):
        personal.me.undo(joanna, munich)
    assert personal.verify(people.auditor).ok


@pytest.mark.rule("PRO-8", "ISO-1")
def test_nobody_undoes_a_fact_of_another_user_or_tenant_and_no_agent_does(
    personal: Fabric, people: People, others: People, joanna: Principal, tom: Principal
) -> None:
    (memory_id,) = _say(personal, people, LIVES)
    foreign = Principal(tenant_id=others.tenant_id, id="joanna", kind="end_user", roles={"subject"})
    for who in (tom, foreign):
        with pytest.raises(NotFound):
            personal.me.undo(who, memory_id)
    agent: Any = people.run("joanna")
    with pytest.raises(Denied):
        personal.me.undo(agent, memory_id)
    assert len(personal.me.list(joanna, live=True)) == 1


@pytest.mark.rule("PRO-8")
def test_the_term_of_an_undo_holds_for_the_person_too(
    personal: Fabric, people: People, joanna: Principal, clock: FakeClock
) -> None:
    (memory_id,) = _say(personal, people, LIVES)
    clock.advance(days=2)
    with pytest.raises(Conflict, match="could be undone"):
        personal.me.undo(joanna, memory_id)
    assert personal.me.forget(joanna, memory_id).reason == "forgotten"
