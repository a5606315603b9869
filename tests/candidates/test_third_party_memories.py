"""A fact about a third party in the queue and in memory: who sees it, what becomes of it, and who may promote it (CAN-16)."""

from collections.abc import Iterator
from typing import Any

import pytest

from muniment import Fabric, Refusal, load_pack
from muniment.errors import Denied, InvalidInput, NotPromotable, SelfApproval
from muniment.model.capture import Receipt
from muniment.model.proposal import Proposal
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.candidates.third_parties import MESSAGES, NOTE, OWN, grant
from tests.conftest import Opener
from tests.pack_activation import acme, put_in_force
from tests.stories import CONSENT, event_data, proposed, refused, run_job, texts

# ---- where it may be seen ----


@pytest.mark.rule("CAN-16")
def test_a_fact_about_a_third_party_without_a_user_is_refused(fabric: Fabric, people: People) -> None:
    grant(fabric, people, "customer:c_77")
    no = refused(fabric, people.author, **NOTE, text="The customer is diabetic", subject="customer:c_77")
    assert (no.gate, no.reason) == ("consent", "third_party_without_user")


@pytest.fixture
def marked(fabric: Fabric, people: People) -> Proposal:
    """A proposal about user:anna, as user joanna tells of her."""
    grant(fabric, people, "user:anna")
    return proposed(fabric, people.run("joanna"), **OWN, text="My sister Anna has diabetes", subject="user:anna")


def approved(fabric: Fabric, people: People, item: Proposal) -> str:
    fabric.queue.override(people.reviewer, item.proposal_id, tier="semantic")
    done = fabric.queue.approve(people.reviewer, item.proposal_id)
    assert done.memory_id is not None, done.status
    return done.memory_id


@pytest.mark.rule("CAN-16")
def test_it_is_seen_in_the_runs_of_its_speaker_alone(
    fabric: Fabric, people: People, others: People, marked: Proposal
) -> None:
    memory_id = approved(fabric, people, marked)
    memory = fabric.get(people.auditor, memory_id)
    assert (memory.third_party, memory.scope.user_id, memory.subject) == (True, "joanna", "user:anna")
    assert texts(fabric, people.run("joanna")) == ["My sister Anna has diabetes"]
    for run in (people.run("anna"), people.run("tom"), people.run(None), others.run("joanna")):
        assert texts(fabric, run) == []
        assert texts(fabric, run, query="diabetes") == []


@pytest.mark.rule("CAN-16", "CON-3")
def test_it_is_hidden_when_the_other_person_revokes(fabric: Fabric, people: People, marked: Proposal) -> None:
    approved(fabric, people, marked)
    assert marked.candidate.consent_id is not None
    fabric.consent.revoke(people.officer, marked.candidate.consent_id)
    assert texts(fabric, people.run("joanna")) == []


@pytest.mark.rule("CAN-16", "PRO-1")
def test_it_is_not_promoted_once_the_other_persons_consent_is_gone(
    fabric: Fabric, people: People, marked: Proposal
) -> None:
    assert marked.candidate.consent_id is not None
    fabric.consent.revoke(people.officer, marked.candidate.consent_id)
    with pytest.raises(NotPromotable):
        fabric.queue.approve(people.reviewer, marked.proposal_id)


@pytest.mark.rule("CAN-16", "REV-5")
def test_an_edit_passes_the_same_gates_and_keeps_the_mark(fabric: Fabric, people: People, marked: Proposal) -> None:
    worse = fabric.queue.edit(people.reviewer, marked.proposal_id, text="Anna has diabetes and Tom is on parole")
    assert isinstance(worse, Refusal)
    assert worse.reason == "third_party"
    edited = fabric.queue.edit(people.reviewer, marked.proposal_id, text="Anna has a condition of the pancreas")
    assert isinstance(edited, Proposal)
    assert (edited.third_party, edited.candidate.scope.user_id) == (True, "joanna")
    again = fabric.queue.edit(people.reviewer, edited.proposal_id, text="Anna is not well")
    assert isinstance(again, Proposal)
    assert "third_party" in again.human_reasons
    done = fabric.queue.approve(people.second_reviewer, again.proposal_id)
    assert done.memory_id is not None
    assert fabric.get(people.auditor, done.memory_id).third_party


@pytest.mark.rule("CAN-16", "REV-5")
def test_an_edit_that_makes_it_about_somebody_else_is_refused(fabric: Fabric, people: People) -> None:
    grant(fabric, people, "user:joanna")
    item = proposed(fabric, people.run("joanna"), **OWN, text="I have diabetes")
    check = fabric.queue.check(people.reviewer, item.proposal_id, text="My sister has diabetes")
    assert check.refusal is not None and check.refusal.reason == "third_party"
    edited = fabric.queue.edit(people.reviewer, item.proposal_id, text="My sister has diabetes")
    assert isinstance(edited, Refusal)
    assert fabric.queue.get(people.reviewer, item.proposal_id).status == "pending"


@pytest.mark.rule("CAN-16", "REV-14")
@pytest.mark.parametrize("other", ["anna", "mallory", None])
def test_a_reviewer_gives_it_to_the_runs_of_nobody_else(
    fabric: Fabric, people: People, marked: Proposal, other: str | None
) -> None:
    with pytest.raises(InvalidInput, match="about a third party") as refused:
        fabric.queue.edit(people.reviewer, marked.proposal_id, user_id=other)
    assert refused.value.field == "user_id"


@pytest.mark.rule("CAN-16", "REV-14")
def test_no_edits_together_give_it_to_another_user(fabric: Fabric, people: People) -> None:
    grant(fabric, people, "user:anna")
    told: dict[str, Any] = {**OWN, "text": "My sister likes tea", "subject": "user:anna"}
    item = proposed(fabric, people.run("joanna"), **told).proposal_id
    at_once = fabric.queue.edit(people.reviewer, item, text="My sister has diabetes", user_id="mallory")
    assert isinstance(at_once, Refusal)
    assert (at_once.gate, at_once.reason) == ("consent", "third_party_of_another_user")
    moved = fabric.queue.edit(people.reviewer, item, user_id="mallory")
    assert isinstance(moved, Proposal)
    after = fabric.queue.edit(people.reviewer, moved.proposal_id, text="My sister has diabetes")
    assert isinstance(after, Refusal)
    assert after.reason == "third_party_of_another_user"


@pytest.mark.rule("CAN-16", "COR-1")
def test_a_correction_does_not_take_it_out_of_its_users_runs(fabric: Fabric, people: People, marked: Proposal) -> None:
    memory_id = approved(fabric, people, marked)
    plain = fabric.correct(people.author, memory_id=memory_id, text="Anna likes long walks", user_id=None)
    assert not isinstance(plain, Refusal)
    with pytest.raises(NotPromotable, match="third party"):
        fabric.queue.approve(people.reviewer, plain.proposal_id)
    wide = fabric.correct(people.author, memory_id=memory_id, text="Anna has asthma", user_id=None)
    assert isinstance(wide, Refusal)
    assert wide.reason == "third_party_without_user"
    right = fabric.correct(people.author, memory_id=memory_id, text="Anna has asthma")
    assert not isinstance(right, Refusal)
    done = fabric.queue.approve(people.reviewer, right.proposal_id)
    assert done.memory_id is not None
    assert texts(fabric, people.run("joanna")) == ["Anna has asthma"]
    assert texts(fabric, people.run("anna")) == []


@pytest.mark.rule("CAN-16", "CAP-11", "CAN-5")
def test_a_message_that_was_refused_can_be_run_again_once_the_other_person_consents(
    under: Opener, people: People
) -> None:
    with under(MESSAGES) as fabric:
        said: dict[str, Any] = {"kind": "message", "text": "My sister has diabetes", "classification": "INTERNAL"}
        receipt = fabric.capture(people.run("joanna"), **said, subject="user:anna")
        assert isinstance(receipt, Receipt)
        (no,) = fabric.consolidate(people.tenant_id).refusals
        assert (no.gate, no.reason) == ("consent", "consent_missing")
        assert "diabetes" not in str(event_data(fabric, people, "refused"))
        grant(fabric, people, "user:anna")
        fabric.captures.rerun(people.reviewer, receipt.capture_id, reason="consent_changed")
        (proposal_id,) = fabric.consolidate(people.tenant_id).proposals
        assert fabric.queue.get(people.reviewer, proposal_id).third_party


@pytest.mark.rule("CAN-16", "PAC-9")
def test_an_edited_one_that_passes_the_gates_of_another_pack_stays_marked(under: Opener, people: People) -> None:
    with under("") as fabric:
        grant(fabric, people, "user:anna")
        said: dict[str, Any] = {**OWN, "text": "My sister Anna has diabetes", "subject": "user:anna"}
        first = proposed(fabric, people.run("joanna"), **said)
        edited = fabric.queue.edit(people.second_reviewer, first.proposal_id, text="Anna is not well, ref 7777777")
        assert isinstance(edited, Proposal)
        masks = "policy_layer: {guardrails: {redaction_rules: [{name: ref, pattern: '7{7}', mask: '[REF]'}]}}"
        put_in_force(fabric, people.tenant_id, acme("2.0.0", masks))
        instead = fabric.queue.approve(people.reviewer, edited.proposal_id)
        assert (instead.candidate.text, instead.status) == ("Anna is not well, ref [REF]", "pending")
        assert (instead.third_party, instead.candidate.edits) == (True, first.candidate.candidate_id)
        done = fabric.queue.approve(people.reviewer, instead.proposal_id)
        assert done.memory_id is not None
        assert fabric.get(people.auditor, done.memory_id).third_party


@pytest.mark.rule("CAN-16", "JOB-8")
def test_a_backfill_keeps_the_mark_and_the_user(under: Opener, people: People) -> None:
    with under("") as fabric:
        grant(fabric, people, "user:joanna")
        noted = proposed(fabric, people.run("joanna"), entity="user:joanna", predicate="allergic_to", value="nuts")
        assert noted.third_party
        approved(fabric, people, noted)
        text = "ontology: {predicates: {must_not_eat: {renamed_from: [allergic_to]}}}"
        ref = put_in_force(fabric, people.tenant_id, acme("2.0.0", text, ontology_version='"2.0.0"'))
        fabric.packs.backfill(people.second_reviewer, ref)
        assert fabric.packs.run_backfill(people.tenant_id) is not None
        (record,) = fabric.recall(people.run("joanna")).records
        memory = fabric.get(people.auditor, record.id)
        assert (memory.predicate, memory.third_party, memory.source) == ("must_not_eat", True, "system")
        assert memory.scope.user_id == "joanna"


# ---- who may promote it ----


@pytest.mark.rule("CAN-16", "REV-4")
def test_neither_an_agent_nor_its_author_nor_who_said_it_approves_it(fabric: Fabric, people: People) -> None:
    grant(fabric, people, "user:anna")
    said: dict[str, Any] = {"text": "My sister Anna has diabetes", "subject": "user:anna"}
    by_bot = proposed(fabric, people.run("joanna"), **OWN, **said)
    with pytest.raises(Denied):
        fabric.queue.approve(people.run("joanna").principal, by_bot.proposal_id)
    joanna = people.person("joanna", "reviewer")
    with pytest.raises(SelfApproval):
        fabric.queue.approve(joanna, by_bot.proposal_id)
    olga = people.person("olga", "reviewer")
    by_olga = proposed(fabric, people.author, **NOTE, text="Anna is pregnant", subject="user:anna", user_id="joanna")
    with pytest.raises(SelfApproval):
        fabric.queue.approve(olga, by_olga.proposal_id)


@pytest.mark.rule("CAN-16", "REV-13")
def test_it_is_left_out_where_many_are_approved_at_once(fabric: Fabric, people: People, marked: Proposal) -> None:
    (outcome,) = fabric.queue.approve_many(people.reviewer, [marked.proposal_id])
    assert outcome.error == "left_out"
    assert "third_party" in [reason.code for reason in outcome.left_out]


# Nothing is sensitive under this pack, and policy promotes statements: only the mark keeps a fact from it.
AUTO = """
pack_meta: {id: acme.third, version: "1.0.0", ontology_version: "1.0.0"}
classifications: [{name: PUBLIC}, {name: INTERNAL}]
memory_layer:
  promotion_thresholds: {calibrate_from: 12}
  classes: {statement: {approval: auto, auto_promotion: {threshold: 0.90}}}
"""
PROOFS = (
    "Parcels leave at noon.", "The shop has a red door.", "Invoices are blue.", "Music plays in hall four.",
    "Lunch costs nine euros.", "Trains stop at Bern.", "Cats sleep a lot.", "The pump needs oil.",
    "Grapes ripen in autumn.", "Keys hang behind the desk.", "Snow closes the pass.", "Paint dries in an hour.",
)  # fmt: skip


@pytest.fixture
def auto(server: TestServer, database: str, clock: FakeClock, people: People) -> Iterator[Fabric]:
    """A fabric whose agent is proven: policy promotes its statements."""
    with Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS, pack=load_pack(AUTO)) as opened:
        capture(opened, people, *PROOFS)
        waiting = opened.consolidate(people.tenant_id).proposals
        assert all(one.status == "promoted" for one in opened.queue.approve_many(people.reviewer, waiting))
        assert run_job(opened, "calibrate", people.tenant_id).nonzero
        yield opened


def capture(fabric: Fabric, people: People, *said: str, user_id: str = "another") -> None:
    common = {"kind": "statement", "classification": "INTERNAL"}
    fabric.capture_many(people.run(user_id), [{**common, "text": text} for text in said])


@pytest.mark.rule("CAN-16", "REV-3")
def test_policy_never_promotes_it_not_even_from_a_proven_source_under_a_pack_without_sensitive_labels(
    auto: Fabric, people: People
) -> None:
    consent = {**CONSENT, "data_classifications_allowed": ["INTERNAL"]}
    auto.consent.grant(people.officer, subject="user:joanna", **consent)
    capture(auto, people, "She is allergic to peanuts", "She likes peanuts", user_id="joanna")
    done = auto.consolidate(people.tenant_id)
    assert (len(done.proposals), len(done.promoted)) == (2, 1)
    (waiting,) = auto.queue.list(people.reviewer)
    assert (waiting.candidate.text, waiting.human_reasons) == ("She is allergic to peanuts", ("third_party",))
    assert not waiting.auto_promote_eligible
    assert auto.consolidate(people.tenant_id).promoted == ()
    auto.queue.approve(people.reviewer, waiting.proposal_id)
    run = people.run("joanna", classification_allowed={"PUBLIC", "INTERNAL"})
    assert sorted(texts(auto, run)) == ["She is allergic to peanuts", "She likes peanuts"]


@pytest.mark.rule("CAN-16")
def test_a_pack_without_sensitive_labels_does_not_spare_the_consent(auto: Fabric, people: People) -> None:
    capture(auto, people, "She is allergic to peanuts", user_id="joanna")
    (no,) = auto.consolidate(people.tenant_id).refusals
    assert (no.gate, no.reason) == ("consent", "consent_missing")
