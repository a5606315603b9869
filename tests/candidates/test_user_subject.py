"""What is captured with a user and no subject is about that user (CAP-12)."""

from typing import Any

import pytest

from muniment import Fabric, Proposal
from muniment.capture.rules import subject_of, user_of, user_subject
from muniment.errors import NotFound
from muniment.pack import Pack, builtin_pack
from muniment.testing import People, TestServer
from tests.conftest import Opener
from tests.stories import CONSENT, promoted, refused, texts

SAID: dict[str, Any] = {"kind": "statement", "text": "She is allergic to peanuts", "classification": "PII"}


def consolidated(fabric: Fabric, people: People, user_id: str | None) -> list[tuple[str, str]]:
    fabric.capture(people.run(user_id), **SAID)
    return [(one.gate, one.reason) for one in fabric.consolidate(people.tenant_id).refusals]


@pytest.mark.rule("CAP-12", "CON-2")
def test_the_consent_of_a_user_counts_for_what_was_captured_with_that_user_alone(
    fabric: Fabric, people: People
) -> None:
    assert consolidated(fabric, people, "joanna") == [("consent", "consent_missing")]
    consent = fabric.consent.grant(people.officer, subject="user:joanna", **CONSENT)
    assert consolidated(fabric, people, "joanna") == []
    (item,) = fabric.queue.list(people.reviewer)
    assert (item.candidate.subject, item.candidate.consent_id) == ("user:joanna", consent.consent_id)
    fabric.queue.override(people.reviewer, item.proposal_id, tier="semantic")
    fabric.queue.approve(people.reviewer, item.proposal_id)
    assert texts(fabric, people.run("joanna")) == [SAID["text"]]
    fabric.consent.revoke(people.officer, consent.consent_id)
    assert texts(fabric, people.run("joanna")) == []


@pytest.mark.rule("CAP-12", "CON-2", "ISO-4")
def test_one_users_consent_says_nothing_about_another_user_nor_about_nobody(fabric: Fabric, people: People) -> None:
    fabric.consent.grant(people.officer, subject="user:joanna", **CONSENT)
    assert consolidated(fabric, people, "joanna2") == [("consent", "consent_missing")]
    assert consolidated(fabric, people, "Joanna") == [("consent", "consent_missing")]
    assert consolidated(fabric, people, None) == [("consent", "anonymous_subject")]
    # A fact on another user's key is not covered either.
    no = refused(fabric, people.run("joanna"), entity="user:bob", predicate="likes", value="tea", classification="PII")
    assert (no.gate, no.reason) == ("consent", "subject_is_not_the_entity")


@pytest.mark.rule("CAP-12", "CON-2")
def test_a_user_id_that_no_ceid_can_hold_stays_without_a_subject(fabric: Fabric, people: People) -> None:
    for user_id in ("auth0|123", "tenant/joanna", "joanna smith"):
        assert consolidated(fabric, people, user_id) == [("consent", "anonymous_subject")]


@pytest.mark.rule("CAP-12")
def test_the_pack_says_in_which_namespace_users_are(under: Opener, people: People) -> None:
    with under("identity: {user_namespace: customer}") as fabric:
        fabric.consent.grant(people.officer, subject="customer:joanna", **CONSENT)
        assert consolidated(fabric, people, "joanna") == []
        (item,) = fabric.queue.list(people.reviewer)
        assert item.candidate.subject == "customer:joanna"


@pytest.mark.rule("CAP-12", "PAC-7")
def test_what_users_say_is_about_them_in_the_namespace_that_the_pack_has_for_users(
    under: Opener, people: People
) -> None:
    with under("identity: {namespaces: [customer], user_namespace: customer}") as fabric:
        fabric.capture(people.run("joanna"), kind="message", text="Please call me Jo.", classification="INTERNAL")
        fabric.consolidate(people.tenant_id)
        (item,) = fabric.queue.list(people.reviewer)
        assert (item.candidate.entity, item.candidate.predicate) == ("customer:joanna", "name_to_use")


@pytest.mark.rule("CAP-12")
def test_a_subject_that_is_named_stays_and_a_user_becomes_one() -> None:
    pack = builtin_pack()
    assert subject_of("order:7", "joanna", pack) == "order:7"
    assert (subject_of(None, "joanna", pack), subject_of(None, None, pack)) == ("user:joanna", None)
    assert (user_subject("x" * 129, pack), user_subject("a b", pack)) == (None, None)
    assert (user_of("user:joanna", pack), user_of("customer:joanna", pack), user_of(None, pack)) == (
        "joanna",
        None,
        None,
    )
    other = Pack.model_validate(
        {"pack_meta": {"id": "a.b", "version": "1.0.0"}, "identity": {"user_namespace": "person"}}
    )
    assert (user_subject("joanna", other), user_of("person:joanna", other)) == ("person:joanna", "joanna")


@pytest.mark.rule("CAP-12", "ERA-2")
@pytest.mark.parametrize("whom", [{"user_id": "joanna"}, {"subject": "user:joanna"}])
def test_erasing_a_user_by_id_or_as_a_subject_reaches_captures_and_what_came_of_them(
    fabric: Fabric, people: People, server: TestServer, database: str, whom: dict[str, str]
) -> None:
    fabric.consent.grant(people.officer, subject="user:joanna", **CONSENT, evidence_refs=["screen:v3"])
    assert consolidated(fabric, people, "joanna") == []
    refused_one = fabric.capture(people.run("joanna"), **SAID | {"classification": "RESTRICTED"}).capture_id
    fabric.consolidate(people.tenant_id)
    waits = fabric.capture(people.run("joanna"), **SAID).capture_id
    kept = promoted(fabric, people, user_id="bob")
    receipt = fabric.erase(people.officer, **whom)  # type: ignore[arg-type]
    assert receipt.subject == "user:joanna"
    with server.connect(database) as owner:
        left = owner.execute(
            "SELECT (SELECT count(*) FROM captures WHERE tenant_id = %(t)s AND user_id = 'joanna' AND content <> ''),"
            " (SELECT count(*) FROM candidates WHERE tenant_id = %(t)s AND user_id = 'joanna' AND content <> ''),"
            " (SELECT count(*) FROM subjects WHERE tenant_id = %(t)s AND wrapped_key IS NOT NULL"
            "  AND holder IN ('@joanna', 'user:joanna')),"
            " (SELECT count(*) FROM consents WHERE tenant_id = %(t)s AND evidence <> '')",
            {"t": people.tenant_id},
        ).fetchone()
    assert left == (0, 0, 0, 0)
    for capture_id in (refused_one, waits):
        found = fabric.captures.get(people.auditor, capture_id)
        assert (found.state, found.capture and found.capture.content) == ("erased", None)
    assert all(one.state != "active" for one in fabric.consent.list(people.officer, subject="user:joanna"))
    assert fabric.get(people.auditor, kept).value == "email"
    with pytest.raises(NotFound):
        fabric.captures.get(people.auditor, "cap_none")


@pytest.mark.rule("CAP-12", "CTR-2", "REV-7")
def test_what_a_user_says_without_a_subject_is_still_compared_with_what_is_about_somebody_in_their_scope(
    fabric: Fabric, people: People
) -> None:
    said: dict[str, Any] = {"kind": "statement", "classification": "INTERNAL"}

    def stated(text: str, **fields: Any) -> Proposal:
        fabric.capture(people.run("u_1"), text=text, **said, **fields)
        return fabric.queue.get(people.reviewer, fabric.consolidate(people.tenant_id).proposals[0])

    first = stated("Returns are accepted within 30 days.", subject="customer:c_1")
    memory_id = fabric.queue.approve(people.reviewer, first.proposal_id).memory_id
    other = stated("Returns are accepted within 14 days.")
    assert other.contradiction_check.contradicted == (memory_id,)
    assert stated("Returns are accepted within 30 days").duplicate_check == memory_id
    assert stated("Returns are accepted within 14 days.", subject="customer:c_2").contradiction_check.contradicted == ()
