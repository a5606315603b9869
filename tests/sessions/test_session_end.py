"""Facts of a session reach the working tier by policy, at once, and end with the session (TIR-6)."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from muniment import Fabric
from muniment.errors import InvalidInput
from muniment.model.speakers import SpeaksFor
from muniment.testing import FakeClock, People
from tests.conftest import Connect
from tests.packs.profile_packs import made_of
from tests.packs.test_profiles import Opener, look_up, opened, waiting
from tests.stories import event_data

__all__ = ["opened"]

NOTE = "The parcel is at the depot."


@pytest.fixture
def assisted(opened: Opener) -> Iterator[Fabric]:
    with opened(made_of("assisted")) as fabric:
        yield fabric


def seen(
    fabric: Fabric, people: People, session: str | None = "s1", query: str | None = None, **fields: Any
) -> list[str]:
    """What a run of the session recalls, by the statements or, with a query, from the index in the process."""
    user = fields.pop("user_id", "cust_1")
    return [one.text for one in fabric.recall(people.run(user, session_id=session), query, **fields).all_records]


@pytest.mark.rule("TIR-6", "REV-3")
@pytest.mark.parametrize("profile", ["assisted", "personal"])
def test_a_vouched_for_tools_result_is_in_the_working_tier_at_once_for_its_session_alone(
    opened: Opener, people: People, profile: str
) -> None:
    with opened(made_of(profile)) as fabric:
        (memory_id,) = look_up(fabric, people, note=NOTE)
        memory = fabric.get(people.auditor, memory_id)
        assert (memory.tier, memory.approver, memory.confidence) == ("working", "auto", 0.8)
        assert seen(fabric, people) == [NOTE]
        assert seen(fabric, people, "s2") == []
        assert seen(fabric, people, user_id="cust_2") == []


@pytest.mark.rule("TIR-6", "PAC-8")
def test_in_strict_it_waits_for_a_person(opened: Opener, people: People) -> None:
    with opened(made_of("strict")) as fabric:
        assert look_up(fabric, people, note=NOTE) == []
        assert len(waiting(fabric, people)) == 1


@pytest.mark.rule("TIR-6", "ISO-8")
def test_what_only_claims_to_be_a_tools_result_waits(assisted: Fabric, people: People) -> None:
    claimed = people.run(session_id="s1", speaks_for=SpeaksFor(tools=frozenset({"other"})))
    assert look_up(assisted, people, run=claimed, note=NOTE) == []
    assert waiting(assisted, people) == {NOTE: {"low_confidence"}}


@pytest.mark.rule("TIR-6")
def test_without_a_session_there_is_no_working_tier(assisted: Fabric, people: People) -> None:
    assert look_up(assisted, people, run=people.run(), note=NOTE) == []
    (item,) = assisted.queue.list(people.reviewer)
    assert item.tier_derived == "semantic"


@pytest.mark.rule("TIR-6")
def test_what_was_done_in_a_session_is_a_fact_of_the_session(assisted: Fabric, people: People) -> None:
    run = people.run(session_id="s1")
    done = {"effect": "refund", "outcome": "granted"}
    assisted.capture(run, kind="effect", classification="INTERNAL", subject="customer:cust_1", payload=done)
    (memory_id,) = assisted.consolidate(people.tenant_id).promoted
    assert assisted.get(people.auditor, memory_id).tier == "working"


@pytest.mark.rule("TIR-6", "CTR-3")
def test_a_session_fact_that_contradicts_waits(assisted: Fabric, people: People) -> None:
    assert len(look_up(assisted, people, channel="email")) == 1
    assert look_up(assisted, people, channel="post") == []
    (reasons,) = waiting(assisted, people).values()
    assert reasons == {"contradiction"}


@pytest.mark.rule("TIR-6", "REV-3")
@pytest.mark.parametrize("kind", ["effect", "message", "decision"])
def test_an_agents_own_word_is_no_fact_of_a_session_whatever_it_is_called(
    assisted: Fabric, people: People, kind: str
) -> None:
    run = people.run(session_id="s1")
    said = {"write_class": "preference", "entity": "customer:cust_1", "predicate": "refund", "value": "granted"}
    assisted.propose(run, kind=kind, classification="INTERNAL", confidence=1.0, text="A refund is granted.", **said)
    assisted.capture(run, kind=kind, classification="INTERNAL", text="The customer's refund is granted.")
    assert assisted.consolidate(people.tenant_id).promoted == () and seen(assisted, people) == []


@pytest.mark.rule("TIR-6", "ISO-5")
def test_nothing_of_a_session_without_a_user_is_promoted_at_once(assisted: Fabric, people: People) -> None:
    run = people.run(None, session_id="s1")
    done = {"effect": "refund", "outcome": "granted"}
    assisted.capture(run, kind="effect", classification="INTERNAL", subject="customer:cust_1", payload=done)
    assert assisted.consolidate(people.tenant_id).promoted == ()


@pytest.mark.rule("TIR-6", "TIR-5", "AUD-1")
@pytest.mark.parametrize("query", [None, "Where is the parcel?"])
def test_the_end_of_a_session_ends_its_working_memories_at_the_next_recall(
    assisted: Fabric, people: People, rows: Any, query: str | None
) -> None:
    look_up(assisted, people, note=NOTE)
    look_up(assisted, people, run=people.run(session_id="s2"), note=NOTE)
    assert seen(assisted, people, query=query) == [NOTE]
    ended = assisted.sessions.end(people.run(session_id="s1"), "s1")
    assert (ended.session_id, ended.user_id, ended.ended_by) == ("s1", "cust_1", "bot")
    assert seen(assisted, people, query=query) == []
    assert seen(assisted, people, "s2", query=query) == [NOTE]
    assert len(rows("session_ends")) == 1 and rows("retractions") == []
    assert event_data(assisted, people, "session_ended") == [{"session_id": "s1"}]
    assert assisted.verify(people.auditor).ok


@pytest.mark.rule("TIR-6")
@pytest.mark.parametrize("query", [None, "Where is the parcel?"])
def test_what_is_promoted_after_the_end_is_not_seen_either(assisted: Fabric, people: People, query: str | None) -> None:
    look_up(assisted, people, note="The parcel is in the van.")
    assert len(seen(assisted, people, query=query)) == 1
    assisted.sessions.end(people.run(session_id="s1"), "s1")
    look_up(assisted, people, note=NOTE)
    assert seen(assisted, people, query=query) == []


@pytest.mark.rule("TIR-6", "REC-6", "REC-10")
def test_before_the_end_it_was_seen_and_explain_says_what_ended_it(
    assisted: Fabric, people: People, clock: FakeClock
) -> None:
    (memory_id,) = look_up(assisted, people, note=NOTE)
    before = clock()
    clock.advance(minutes=5)
    assisted.sessions.end(people.run(session_id="s1"), "s1")
    assert seen(assisted, people, as_of=before) == [NOTE]
    told = assisted.explain(people.auditor, memory_id=memory_id, run=people.run(session_id="s1"))
    assert (told.visibility, told.hidden_by) == ("expired", ("session_end",))
    (verdict,) = [one for one in told.filters if one.name == "session_end"]
    assert verdict.memory["ended_at"] == clock()


@pytest.mark.rule("TIR-6", "ISO-5")
def test_a_run_ends_only_the_session_of_its_own_user(assisted: Fabric, people: People) -> None:
    look_up(assisted, people, note=NOTE)
    assisted.sessions.end(people.run("cust_2", session_id="s1"), "s1")
    assisted.sessions.end(people.run(None), "s1")
    assert seen(assisted, people) == [NOTE]
    with pytest.raises(InvalidInput, match="another session"):
        assisted.sessions.end(people.run(session_id="s2"), "s1")
    with pytest.raises(InvalidInput, match="takes a RunContext"):
        assisted.sessions.end(people.reviewer, "s1")  # type: ignore[arg-type]


@pytest.mark.rule("TIR-6")
def test_ending_a_session_again_changes_nothing(assisted: Fabric, people: People, clock: FakeClock) -> None:
    first = assisted.sessions.end(people.run(session_id="s1"), "s1")
    clock.advance(minutes=1)
    assert assisted.sessions.end(people.run(session_id="s1", agent_id="other"), "s1") == first


@pytest.mark.rule("TIR-6", "CTR-2")
def test_an_ended_sessions_fact_contradicts_nothing_any_more(assisted: Fabric, people: People) -> None:
    look_up(assisted, people, channel="email")
    assisted.sessions.end(people.run(session_id="s1"), "s1")
    assert len(look_up(assisted, people, run=people.run(session_id="s2"), channel="post")) == 1


@pytest.mark.rule("TIR-2", "TIR-6")
def test_without_the_verb_the_tiers_term_ends_them(assisted: Fabric, people: People, clock: FakeClock) -> None:
    look_up(assisted, people, note=NOTE)
    clock.advance(hours=1)
    assert seen(assisted, people) == []


@pytest.mark.rule("TIR-6", "CAP-1")
def test_no_login_changes_or_removes_the_end_of_a_session(assisted: Fabric, people: People, as_role: Connect) -> None:
    assisted.sessions.end(people.run(session_id="s1"), "s1")
    for task in ("writer", "recall", "auditor", "jobs", "privacy"):
        for statement in ("DELETE FROM session_ends", "UPDATE session_ends SET session_id = 's2'"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                as_role(task).execute(statement)
            as_role(task).rollback()
