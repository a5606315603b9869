"""SUB-4 and CON-9: people consent for themselves, and answer whether something may be kept."""

from typing import Any

import psycopg
import pytest

from muniment import Fabric, Principal
from muniment.errors import Conflict, NotFound, RoleMissing
from muniment.testing import FakeClock, People
from tests.conftest import Connect, Opener
from tests.subject.conftest import PACK, Say, subject

NUTS = "I am allergic to nuts."
PII: dict[str, Any] = {"data_classifications_allowed": ["PII"]}


@pytest.mark.rule("SUB-4")
def test_a_person_grants_and_revokes_their_own_consent_with_evidence_of_how(
    home: Fabric, people: People, joanna: Principal, say: Say
) -> None:
    given = home.me.consent(joanna, **PII, evidence_refs=["screen:v3"])
    assert (given.subject, given.auditor_id, given.basis) == ("user:joanna", "joanna", "subject_opt_in")
    assert set(given.evidence_refs) == {"screen:v3", "me:signed_in"}
    home.me.confirm(joanna, say("joanna", NUTS, "PII", kind="message"))
    assert len(home.recall(people.run("joanna")).records) == 1
    assert home.me.revoke(joanna, given.consent_id).state == "revoked"
    assert home.recall(people.run("joanna")).records == ()
    assert [one.state for one in home.me.list(joanna)] == ["hidden"]


@pytest.mark.rule("SUB-4")
def test_nobody_touches_the_consent_of_another(
    home: Fabric, people: People, others: People, joanna: Principal, tom: Principal
) -> None:
    given = home.me.consent(joanna, **PII)
    for stranger in (tom, subject(others, "joanna")):
        assert home.me.consents(stranger) == []
        with pytest.raises(NotFound):
            home.me.revoke(stranger, given.consent_id)
        with pytest.raises(NotFound):
            home.me.consent(stranger, **PII, supersedes=given.consent_id)
    with pytest.raises(RoleMissing):
        home.me.revoke(people.run("joanna").principal, given.consent_id)
    assert [one.state for one in home.me.consents(joanna)] == ["active"]


# ---- consent requests ----


@pytest.mark.rule("CON-9")
def test_a_fact_refused_for_lack_of_consent_leaves_a_question_without_content(
    home: Fabric, people: People, joanna: Principal, tom: Principal, say: Say, as_role: Connect
) -> None:
    say("joanna", NUTS, "PII", kind="message")
    (asked,) = home.me.requests(joanna)
    assert (asked.question, asked.label, asked.said_by_you, asked.answer) == (NUTS, "PII", True, None)
    assert home.me.requests(tom) == [] and home.queue.list(people.reviewer) == []
    row = as_role("auditor").execute("SELECT r::text FROM consent_requests r").fetchone()
    assert row is not None and "nuts" not in str(row[0])
    say("joanna", NUTS, "PII", kind="message")
    assert len(home.me.requests(joanna)) == 1


@pytest.mark.rule("CON-9")
def test_a_grant_records_a_consent_and_runs_the_capture_again(
    home: Fabric, people: People, joanna: Principal, say: Say
) -> None:
    say("joanna", NUTS, "PII", kind="message")
    (asked,) = home.me.requests(joanna)
    assert home.me.answer(joanna, asked.request_id, "grant").answer == "granted"
    (given,) = home.me.consents(joanna)
    assert f"consent_request:{asked.request_id}" in given.evidence_refs
    home.consolidate(people.tenant_id)
    (pending,) = home.me.pending(joanna)
    assert pending.text == NUTS and pending.may_confirm
    with pytest.raises(Conflict):
        home.me.answer(joanna, asked.request_id, "refuse")
    assert home.verify(people.auditor).ok


@pytest.mark.rule("CON-9")
def test_a_refusal_is_remembered_like_a_rejection(home: Fabric, joanna: Principal, say: Say, clock: FakeClock) -> None:
    say("joanna", NUTS, "PII", kind="message")
    (asked,) = home.me.requests(joanna)
    home.me.answer(joanna, asked.request_id, "refuse")
    say("joanna", NUTS, "PII", kind="message")
    assert home.me.requests(joanna) == [] and home.me.consents(joanna) == []
    say("joanna", "I am a Catholic.", "PII", kind="message")
    assert len(home.me.requests(joanna)) == 1
    clock.advance(days=181)
    say("joanna", NUTS, "PII", kind="message")
    assert [one.question for one in home.me.requests(joanna)] == [NUTS]


@pytest.mark.rule("CON-9")
def test_a_request_ends_after_thirty_days(home: Fabric, joanna: Principal, say: Say, clock: FakeClock) -> None:
    say("joanna", NUTS, "PII", kind="message")
    (asked,) = home.me.requests(joanna)
    clock.advance(days=30)
    assert home.me.requests(joanna) == []
    with pytest.raises(Conflict):
        home.me.answer(joanna, asked.request_id, "grant")


@pytest.mark.rule("CON-9")
@pytest.mark.parametrize(
    "pack",
    [
        PACK.replace("{ask: subject}", "{ask: nobody}"),
        PACK + "  promotion_thresholds: {confidence_floor: 0.7}\n",
    ],
    ids=["nobody asks", "another gate"],
)
def test_nobody_is_asked_where_the_pack_does_not_say_so_or_another_gate_refuses_too(
    under: Opener, people: People, joanna: Principal, pack: str
) -> None:
    with under(pack) as home:
        run = people.run("joanna")
        home.propose(run, write_class="statement", text=NUTS, classification="PII", kind="message", confidence=0.6)
        assert home.me.requests(joanna) == []
        assert [one.reason for one in home.refusals.list(people.reviewer)] == ["consent_missing"]


@pytest.mark.rule("CON-9")
def test_nobody_but_the_subject_answers(
    home: Fabric, people: People, others: People, tom: Principal, joanna: Principal, say: Say, as_role: Connect
) -> None:
    say("joanna", NUTS, "PII", kind="message")
    (asked,) = home.me.requests(joanna)
    for stranger in (tom, subject(others, "joanna")):
        with pytest.raises(NotFound):
            home.me.answer(stranger, asked.request_id, "grant")
    writer = as_role("writer")
    with pytest.raises(psycopg.errors.InsufficientPrivilege), writer.transaction():
        writer.execute("UPDATE consent_requests SET answer = 'granted'")
    code = home.codes.create(people.admin, "joanna", "grant", asked.request_id).code
    assert home.me.answer(people.run("joanna"), asked.request_id, "grant", code=code).answer == "granted"
    (given,) = home.me.consents(joanna)
    assert "me:one_time_code" in given.evidence_refs


@pytest.mark.rule("CON-9")
def test_an_erasure_withdraws_what_was_asked(home: Fabric, people: People, joanna: Principal, say: Say) -> None:
    say("joanna", NUTS, "PII", kind="message")
    home.erase(people.officer, user_id="joanna")
    (asked,) = home.me.requests(joanna, closed=True)
    assert asked.answer == "withdrawn" and asked.question in (None, "", "None")
    assert home.verify(people.auditor).ok
