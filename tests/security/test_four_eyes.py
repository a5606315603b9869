"""As the writer's login, in SQL: no durable or sensitive memory without a second person's verdict."""

from typing import Any

import psycopg
import pytest

from muniment import Fabric
from muniment.errors import SelfApproval
from muniment.model.capture import holder_of
from muniment.model.proposal import Proposal
from muniment.testing import People
from tests.conftest import Connect
from tests.pack_activation import acme, register
from tests.security.rows import tick
from tests.stories import CONSENT, promoted, proposed

_MEMORY = """INSERT INTO memories (tenant_id, memory_id, candidate_id, proposal_id, verdict_id, capture_id, born_seq, promoted_at,
  born_txid, expires_at, class, entity, predicate, classification, sensitive, tier, tier_derived, priority, confidence, trust,
  holder, subject, user_id, session_id, workflow_id, intent_id, consent_id, consent_root, pack, ontology_version, kind, source,
  author, editors, approver, approver_kind, captured_at, observed_at, valid_from, valid_until, third_party, proposal_action)
VALUES (%(tenant_id)s, 'pm_forged', %(candidate_id)s, %(proposal_id)s, %(verdict_id)s, %(capture_id)s, %(seq)s, %(at)s,
  %(txid)s, 'infinity', %(class)s, %(entity)s, %(predicate)s, %(classification)s, %(sensitive)s, %(tier)s, %(tier_derived)s,
  0.5, 0.5, 0.5, %(holder)s, %(subject)s, %(user_id)s, '', '', '', %(consent_id)s, %(consent_id)s, %(pack)s, '1', 'statement', 'agent', %(author)s,
  %(editors)s, %(approver)s, %(approver_kind)s, %(at)s, %(at)s, %(valid_from)s, %(valid_until)s, %(third_party)s, 'promote')"""


class Forger:
    """Tries, within one transaction that has its own tick, to insert a memory for a waiting proposal."""

    def __init__(self, writer: "psycopg.Connection[tuple[object, ...]]", tenant: str, proposal: Any) -> None:
        self.writer = writer
        self.tenant = tenant
        candidate = proposal.candidate
        self.memory: dict[str, Any] = {
            "tenant_id": tenant,
            "candidate_id": candidate.candidate_id,
            "proposal_id": proposal.proposal_id,
            "verdict_id": "rv_forged",
            "capture_id": candidate.capture_id,
            "class": candidate.write_class,
            "entity": candidate.entity,
            "predicate": candidate.predicate,
            "classification": candidate.classification,
            "sensitive": proposal.sensitive,
            "tier": proposal.tier_derived,
            "tier_derived": proposal.tier_derived,
            "subject": candidate.subject,
            "user_id": candidate.scope.user_id or "",
            "holder": holder_of(candidate.subject, candidate.scope.user_id),
            "consent_id": candidate.consent_id,
            "pack": proposal.pack,
            "author": candidate.author,
            "editors": [],
            "approver": "somebody",
            "approver_kind": "operator",
            "valid_from": candidate.valid_from,
            "valid_until": candidate.valid_until,
            "third_party": False,
        }

    def try_it(
        self, *, verdict_by: str | None, by_kind: str = "operator", action: str = "approve", **memory: Any
    ) -> None:
        """Raises what the database raises; commits nothing."""
        with self.writer.transaction(force_rollback=True):
            now = tick(self.writer, self.tenant)
            if verdict_by is not None:
                self.writer.execute(
                    "INSERT INTO verdicts (tenant_id, verdict_id, proposal_id, seq, action, by, by_kind, at, pack, holder, txid)"
                    " VALUES (%s, 'rv_forged', %s, %s, %s, %s, %s, %s, %s, '*', %s)",
                    [
                        self.tenant,
                        self.memory["proposal_id"],
                        now.seq,
                        action,
                        verdict_by,
                        by_kind,
                        now.at,
                        self.memory["pack"],
                        now.txid,
                    ],
                )
            own = {"seq": now.seq, "at": now.at, "txid": now.txid}
            self.writer.execute(_MEMORY, {**self.memory, **own, **memory})


@pytest.fixture
def durable(fabric: Fabric, people: People, as_role: Connect) -> Forger:
    """A durable proposal of an operator's."""
    proposal = proposed(fabric, people.author, entity="customer:c", predicate="p", value="v", write_class="correction")
    assert proposal.tier_derived == "durable"
    return Forger(as_role("writer"), people.tenant_id, proposal)


@pytest.fixture
def sensitive(fabric: Fabric, people: People, as_role: Connect) -> Forger:
    """A sensitive proposal of an agent's, not durable."""
    subject = "customer:c"
    fabric.consent.grant(people.officer, subject=subject, **CONSENT)
    proposal = proposed(
        fabric, people.run(), entity=subject, predicate="p", value="v", subject=subject, classification="PII"
    )
    assert proposal.tier_derived == "semantic" and proposal.sensitive
    return Forger(as_role("writer"), people.tenant_id, proposal)


@pytest.mark.rule("REV-4")
def test_an_honest_promotion_passes_the_same_statement(durable: Forger, sensitive: Forger) -> None:
    durable.try_it(verdict_by="boris", approver="boris")
    sensitive.try_it(verdict_by="boris", approver="boris")


@pytest.mark.rule("REV-4", "PRO-1")
def test_a_memory_without_a_verdict_is_refused(durable: Forger, sensitive: Forger) -> None:
    for forger in (durable, sensitive):
        with pytest.raises(psycopg.errors.ForeignKeyViolation):
            forger.try_it(verdict_by=None)
        with pytest.raises(psycopg.errors.ForeignKeyViolation):
            forger.try_it(verdict_by="boris", approver="clara")
        for action in ("reject", "hold", "duplicate", "lift"):
            with pytest.raises(psycopg.errors.ForeignKeyViolation):
                forger.try_it(verdict_by="boris", approver="boris", action=action)


@pytest.mark.rule("REV-4")
def test_the_author_cannot_be_the_approver(durable: Forger, sensitive: Forger) -> None:
    for forger in (durable, sensitive):
        author = forger.memory["author"]
        with pytest.raises(psycopg.errors.CheckViolation):
            forger.try_it(verdict_by=author, approver=author)
        with pytest.raises(psycopg.errors.ForeignKeyViolation):
            forger.try_it(verdict_by=author, approver=author, author="somebody_else")


@pytest.mark.rule("REV-3", "REV-4")
def test_policy_alone_cannot_promote_what_is_durable_or_sensitive(durable: Forger, sensitive: Forger) -> None:
    for forger in (durable, sensitive):
        with pytest.raises(psycopg.errors.CheckViolation):
            forger.try_it(verdict_by="auto", by_kind="system", approver="auto", approver_kind="system")


@pytest.mark.rule("REV-4")
def test_no_verdict_can_be_an_agents(durable: Forger) -> None:
    with pytest.raises(psycopg.errors.CheckViolation):
        durable.try_it(verdict_by="bot", by_kind="agent", approver="bot", approver_kind="agent")


@pytest.mark.rule("REV-2", "REV-4")
def test_calling_it_less_than_it_is_does_not_help(durable: Forger, sensitive: Forger) -> None:
    auto: dict[str, Any] = {
        "verdict_by": "auto",
        "by_kind": "system",
        "approver": "auto",
        "approver_kind": "system",
    }
    with pytest.raises(psycopg.errors.CheckViolation):
        durable.try_it(**auto, tier="semantic")
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        durable.try_it(**auto, tier="semantic", tier_derived="semantic")
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        sensitive.try_it(**auto, sensitive=False)
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        sensitive.try_it(**auto, sensitive=False, classification="PUBLIC", consent_id=None)


@pytest.mark.rule("PRO-2", "ERA-1")
@pytest.mark.parametrize("column", ["capture_id", "holder", "user_id", "entity", "predicate"])
def test_a_memory_cannot_say_otherwise_than_its_candidate(durable: Forger, column: str) -> None:
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        durable.try_it(verdict_by="boris", approver="boris", **{column: "other"})


@pytest.mark.rule("PRO-2")
@pytest.mark.parametrize("column", ["valid_from", "valid_until"])
def test_a_memory_cannot_hold_for_another_time_than_its_candidate(durable: Forger, column: str) -> None:
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        durable.try_it(verdict_by="boris", approver="boris", **{column: "2026-01-05T09:00:00Z"})


@pytest.mark.rule("PRO-2", "PAC-9")
def test_a_memory_cannot_name_another_pack_than_its_verdict(durable: Forger, fabric: Fabric, people: People) -> None:
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        durable.try_it(verdict_by="boris", approver="boris", pack="other")
    registered = register(fabric, people.tenant_id, acme("1.0.0"))
    with pytest.raises(psycopg.errors.ForeignKeyViolation, match="memories_as_decided"):
        durable.try_it(verdict_by="boris", approver="boris", pack=registered)


@pytest.mark.rule("CON-2", "MET-4")
def test_a_sensitive_memory_without_its_subjects_consent_is_refused(sensitive: Forger) -> None:
    with pytest.raises(psycopg.errors.CheckViolation):
        sensitive.try_it(verdict_by="boris", approver="boris", consent_id=None)
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        sensitive.try_it(verdict_by="boris", approver="boris", consent_id="cns_none")
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        sensitive.try_it(verdict_by="boris", approver="boris", subject="customer:other")


@pytest.mark.rule("REV-4")
def test_a_candidate_cannot_name_another_author_than_its_capture(
    fabric: Fabric, people: People, as_role: Connect
) -> None:
    proposal = proposed(fabric, people.author, entity="customer:c", predicate="p", value="v", write_class="correction")
    columns = (
        "tenant_id, capture_id, live_capture_id, capture_seq, source, class, classification, holder,"
        " raw_confidence, confidence, trust, extractor, content, seq, gates"
    )
    forge = (
        f"INSERT INTO candidates ({columns}, candidate_id, author, ordinal)"
        f" SELECT {columns}, 'mc_forged', %s, 7 FROM candidates WHERE candidate_id = %s"
    )
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        as_role("writer").execute(forge, ["somebody_else", proposal.candidate.candidate_id])
    unbound = forge.replace("SELECT tenant_id, capture_id, live_capture_id", "SELECT tenant_id, capture_id, NULL")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        as_role("writer").execute(unbound, ["somebody_else", proposal.candidate.candidate_id])


@pytest.mark.rule("REV-4", "REV-5")
def test_an_edit_cannot_leave_out_an_editor_before_it(fabric: Fabric, people: People, as_role: Connect) -> None:
    proposal = proposed(fabric, people.run(), entity="customer:c", predicate="p", value="v")
    edited = fabric.queue.edit(people.reviewer, proposal.proposal_id, value="w")
    columns = (
        "tenant_id, capture_id, live_capture_id, capture_seq, author, source, class, classification, holder,"
        " raw_confidence, confidence, trust, extractor, content, seq, gates"
    )
    forge = (
        f"INSERT INTO candidates ({columns}, candidate_id, ordinal, edits, editor, prior_editors, editors)"
        f" SELECT {columns}, 'mc_forged', 9, candidate_id, 'clara', %s, %s FROM candidates WHERE editor = 'boris'"
    )
    assert edited is not None
    writer = as_role("writer")
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        writer.execute(forge, [[], ["clara"]])
    with pytest.raises(psycopg.errors.CheckViolation):
        writer.execute(forge, [["boris"], ["clara"]])
    with writer.transaction(force_rollback=True):
        writer.execute(forge, [["boris"], ["boris", "clara"]])


@pytest.mark.rule("REV-4", "REV-8")
def test_an_editor_cannot_approve_what_comes_back_as_a_former_duplicate(fabric: Fabric, people: People) -> None:
    subject = "customer:c"
    fabric.consent.grant(people.officer, subject=subject, **CONSENT)
    fact: dict[str, Any] = {"entity": subject, "predicate": "drink", "subject": subject, "classification": "PII"}
    original = promoted(fabric, people, "tea", **fact)
    other = proposed(fabric, people.run(), value="coffee", **fact)
    edited = fabric.queue.edit(people.reviewer, other.proposal_id, value="tea")
    assert isinstance(edited, Proposal) and edited.status == "duplicate"
    fabric.retract(people.second_reviewer, original, reason="wrong")
    (back,) = fabric.queue.list(people.reviewer)
    assert back.reopens == edited.proposal_id
    with pytest.raises(SelfApproval):
        fabric.queue.approve(people.reviewer, back.proposal_id)
    assert fabric.queue.approve(people.second_reviewer, back.proposal_id).status == "promoted"
