"""Aliases of namespaces: `cust:a1` and `customer:a1` are one subject where the pack in force says so (PAC-7)."""

from typing import Any

import pytest

from muniment import Fabric, Submission
from muniment.errors import IdempotencyConflict
from muniment.model.backfill import ItemOutcome
from muniment.packs.loosening import loosened
from muniment.testing import FakeClock, People
from tests.pack_activation import acme, activate, put_in_force, register
from tests.packs.pack_texts import CRM_MAP
from tests.stories import CONSENT, promoted, proposed, refused, remembered

ALIASES = "identity: {aliases: {cust: customer, client: customer}}"
OLD, NEW, CLIENT = "cust:a1", "customer:a1", "client:a1"
KEY: dict[str, Any] = {"predicate": "prefers_channel"}


def with_aliases(fabric: Fabric, people: People, version: str = "2.0.0", text: str = ALIASES) -> str:
    return put_in_force(fabric, people.tenant_id, acme(version, text))


def backfilled(fabric: Fabric, people: People, ref: str) -> dict[ItemOutcome, int]:
    fabric.packs.backfill(people.second_reviewer, ref)
    done = fabric.packs.run_backfill(people.tenant_id)
    assert done is not None and done.finished_at is not None
    return done.done


def _result(fabric: Fabric, people: People, *items: dict[str, Any]) -> str:
    payload = {"items": [{**item, "id": item["who"].partition(":")[2]} for item in items]}
    given: dict[str, Any] = {"kind": "tool_result", "origin": "tool:crm", "classification": "INTERNAL"}
    return fabric.capture(people.run(None), payload=payload, **given).capture_id


def keys_of(rows: Any) -> set[str]:
    return {row["holder"] for row in rows("subjects") if row["holder"].endswith("a1")}


@pytest.mark.rule("PAC-7", "CAP-5", "ERA-1")
def test_an_alias_is_resolved_before_anything_is_sealed(fabric: Fabric, people: People, rows: Any) -> None:
    with_aliases(fabric, people)
    said: dict[str, Any] = {"text": "Calls are fine before noon.", "classification": "INTERNAL"}
    fabric.capture(people.run(None), kind="statement", subject=OLD, **said)
    fabric.capture_many(people.run(None), [{"kind": "statement", "subject": CLIENT, **said}])
    item = proposed(fabric, people.run(None), entity=OLD, subject=CLIENT, value="email", **KEY)
    fabric.consolidate(people.tenant_id)
    assert {row["subject"] for row in rows("captures")} == {NEW} and keys_of(rows) == {NEW}
    assert (item.candidate.entity, item.candidate.subject) == (NEW, NEW)
    assert item.candidate.text == "customer:a1 prefers channel: email"
    assert {row["holder"] for row in rows("candidates")} == {NEW}


@pytest.mark.rule("PAC-7")
def test_without_an_alias_in_the_pack_in_force_two_namespaces_are_two_subjects(fabric: Fabric, people: People) -> None:
    register(fabric, people.tenant_id, acme("2.0.0", ALIASES))
    promoted(fabric, people, "email", entity=OLD)
    other = proposed(fabric, people.run("cust_1"), entity=NEW, value="phone", **KEY)
    assert other.contradiction_check.verdict == "no_conflict", "a registered draft decides nothing"


@pytest.mark.rule("PAC-7", "ISO-4")
def test_an_alias_joins_the_same_id_only_and_not_the_users_of_two_scopes(fabric: Fabric, people: People) -> None:
    with_aliases(fabric, people)
    promoted(fabric, people, "email", entity=OLD)
    for entity, user in (("customer:a2", "cust_1"), ("customer:A1", "cust_1"), (NEW, "cust_2")):
        other = proposed(fabric, people.run(user), entity=entity, value="phone", **KEY)
        assert other.contradiction_check.verdict == "no_conflict", entity


@pytest.mark.rule("PAC-7", "CTR-1", "REV-7")
@pytest.mark.parametrize("before", [True, False])
def test_facts_under_two_names_meet_also_if_one_was_promoted_before_the_alias(
    fabric: Fabric, people: People, before: bool
) -> None:
    if before:
        stands = promoted(fabric, people, "email", entity=OLD)
        with_aliases(fabric, people)
    else:
        with_aliases(fabric, people)
        stands = promoted(fabric, people, "email", entity=OLD)
    again = proposed(fabric, people.run("cust_1"), entity=CLIENT, value="email", **KEY)
    assert (again.status, again.duplicate_check) == ("duplicate", stands)
    other = proposed(fabric, people.run("cust_1"), entity=NEW, value="phone", **KEY)
    assert (other.contradiction_check.verdict, other.contradiction_check.existing) == ("contradicts", stands)


@pytest.mark.rule("PAC-7", "CTR-1")
def test_a_batch_that_is_compared_at_once_meets_memories_under_other_names(fabric: Fabric, people: People) -> None:
    stands = remembered(fabric, people, "email", entity=OLD, user_id=None)
    with_aliases(fabric, people, text=f"{ALIASES}\n{CRM_MAP}\nontology: {{predicates: {{prefers_channel: {{}}}}}}")
    items = [{"who": f"client:a{n}", "predicate": "prefers_channel", "said": "phone"} for n in range(1, 10)]
    _result(fabric, people, *items)
    proposals = [fabric.queue.get(people.reviewer, one) for one in fabric.consolidate(people.tenant_id).proposals]
    assert len(proposals) == 9
    found = {one.candidate.entity: one.contradiction_check.existing for one in proposals}
    assert found == {f"customer:a{n}": stands if n == 1 else None for n in range(1, 10)}


@pytest.mark.rule("PAC-7", "CTR-2")
def test_plain_texts_about_one_subject_under_two_names_are_compared(fabric: Fabric, people: People) -> None:
    fact: dict[str, Any] = {"write_class": "statement", "text": "The office opens at 9 in the morning"}
    first = proposed(fabric, people.run(None), subject=OLD, **fact)
    fabric.queue.approve(people.reviewer, first.proposal_id)
    apart = proposed(fabric, people.run(None), subject=NEW, **fact)
    assert apart.status == "pending", "two subjects so far"
    with_aliases(fabric, people)
    again = proposed(fabric, people.run(None), subject=CLIENT, **fact)
    assert again.status == "duplicate"


@pytest.mark.rule("PAC-7", "REC-4")
def test_a_recall_meets_a_subject_under_any_of_its_names_now_and_then(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    memory_id = promoted(fabric, people, "email", entity=OLD)
    clock.advance(minutes=1)
    then = clock.now
    clock.advance(minutes=1)
    assert fabric.recall(people.run("cust_1"), entities=[NEW]).records == ()
    ref = with_aliases(fabric, people)
    for name in (OLD, NEW, CLIENT):
        assert [one.id for one in fabric.recall(people.run("cust_1"), entities=[name]).records] == [memory_id]
        assert [one.memory_id for one in fabric.memories.list(people.auditor, entity=name)] == [memory_id]
    assert backfilled(fabric, people, ref) == {"migrated": 1}
    for name in (OLD, NEW, CLIENT):
        (record,) = fabric.recall(people.run("cust_1"), entities=[name]).records
        assert (record.entity, record.text) == (NEW, "customer:a1 prefers channel: email")
        (was,) = fabric.recall(people.run("cust_1"), entities=[name], as_of=then).records
        assert (was.id, was.entity) == (memory_id, OLD), "the past stays as it was"
    query = fabric.recall(people.run("cust_1"), "what does cust:a1 prefer?")
    assert [one.entity for one in query.records] == [NEW]
    assert fabric.replay(people.auditor, query.recall_id).same


@pytest.mark.rule("PAC-7", "JOB-8")
def test_a_backfill_moves_what_was_stored_under_an_alias_and_merges_what_says_the_same(
    fabric: Fabric, people: People, rows: Any
) -> None:
    moved = promoted(fabric, people, "email", entity=OLD, subject=OLD)
    kept = promoted(fabric, people, "tea", entity=NEW, predicate="drinks")
    same = promoted(fabric, people, "tea", entity=CLIENT, predicate="drinks")
    held = promoted(fabric, people, "de", entity=OLD, predicate="language")
    promoted(fabric, people, "fr", entity=NEW, predicate="language")
    item = proposed(fabric, people.run("cust_1"), write_class="statement", subject=OLD, text="Parcels go to the porch")
    text = fabric.queue.approve(people.reviewer, item.proposal_id).memory_id or ""
    other = promoted(fabric, people, "email", entity="order:a1")
    ref = register(fabric, people.tenant_id, acme("2.0.0", ALIASES))
    plan = fabric.packs.backfill(people.second_reviewer, ref, dry_run=True)
    assert plan.planned == {"alias_resolved": 4}
    activate(fabric, people.tenant_id, ref)
    assert backfilled(fabric, people, ref) == {"migrated": 2, "merged": 1, "held": 1}
    became = {row["memory_id"]: row["superseded_by"] for row in rows("retractions")}
    assert set(became) == {moved, same, text} and became[same] == kept
    new = fabric.get(people.auditor, became[moved])
    old = fabric.get(people.auditor, moved)
    assert (new.entity, new.subject, new.approver) == (NEW, NEW, "clara")
    unchanged = {"scope", "tier", "priority", "classification", "confidence", "value", "expires_at", "observed_at"}
    assert new.model_dump(include=unchanged) == old.model_dump(include=unchanged)
    said = fabric.get(people.auditor, became[text])
    assert (said.subject, said.text) == (NEW, "Parcels go to the porch")
    assert fabric.get(people.auditor, other).retracted_at is None
    # Once moved there is nothing left but what waits for a person.
    again = fabric.packs.backfill(people.second_reviewer, ref, dry_run=True)
    assert again.planned == {"alias_resolved": 1}
    assert fabric.get(people.auditor, held).retracted_at is None


@pytest.mark.rule("PAC-7", "CON-2", "CON-3")
@pytest.mark.parametrize("given_under", [OLD, NEW])
def test_a_consent_from_before_the_alias_counts_and_its_revocation_hides_what_rests_on_it(
    fabric: Fabric, people: People, given_under: str
) -> None:
    consent = fabric.consent.grant(people.officer, subject=given_under, **CONSENT)
    fact: dict[str, Any] = {"entity": NEW, "subject": CLIENT, "value": "email", "classification": "PII", **KEY}
    assert refused(fabric, people.run("cust_1"), **fact).reason == "consent_missing"
    with_aliases(fabric, people)
    item = proposed(fabric, people.run("cust_1"), **fact)
    assert (item.candidate.consent_id, item.candidate.subject) == (consent.consent_id, given_under)
    fabric.queue.override(people.reviewer, item.proposal_id, tier="semantic")
    assert fabric.queue.approve(people.reviewer, item.proposal_id).status == "promoted"
    assert len(fabric.recall(people.run("cust_1"), entities=[OLD]).records) == 1
    renewed = fabric.consent.grant(people.officer, subject=OLD, supersedes=consent.consent_id, **CONSENT)
    assert renewed.subject == given_under, "a chain keeps the name that its memories rest on"
    assert [one.consent_id for one in fabric.consent.list(people.officer, subject=CLIENT)] == [
        consent.consent_id,
        renewed.consent_id,
    ]
    assert fabric.consent.reach(people.officer, subject=CLIENT)[0].memories == 1
    fabric.consent.revoke(people.officer, renewed.consent_id)
    assert fabric.recall(people.run("cust_1")).records == ()


@pytest.mark.rule("PAC-7", "JOB-8", "CON-3")
def test_a_backfill_loses_no_consent(fabric: Fabric, people: People) -> None:
    consent = fabric.consent.grant(people.officer, subject=OLD, **CONSENT)
    fact: dict[str, Any] = {"entity": OLD, "subject": OLD, "classification": "PII", "tier": "semantic"}
    memory_id = remembered(fabric, people, "email", **fact)
    ref = with_aliases(fabric, people)
    assert backfilled(fabric, people, ref) == {"migrated": 1}
    (record,) = fabric.recall(people.run("cust_1"), entities=[NEW]).records
    new = fabric.get(people.auditor, record.id)
    assert (new.entity, new.subject, new.consent_id) == (NEW, OLD, consent.consent_id)
    assert new.memory_id != memory_id
    assert fabric.packs.backfill(people.second_reviewer, ref, dry_run=True).planned == {}
    fabric.consent.revoke(people.officer, consent.consent_id)
    assert fabric.recall(people.run("cust_1")).records == ()


@pytest.mark.rule("PAC-7", "CON-5")
def test_a_consent_is_recorded_under_the_name_that_an_alias_means(fabric: Fabric, people: People) -> None:
    with_aliases(fabric, people)
    assert fabric.consent.grant(people.officer, subject=OLD, **CONSENT).subject == NEW
    other = People("another_tenant")
    fact: dict[str, Any] = {"entity": NEW, "subject": OLD, "value": "email", "classification": "PII", **KEY}
    with_aliases(fabric, other)
    assert refused(fabric, other.run("cust_1"), **fact).reason == "consent_missing"


@pytest.mark.rule("PAC-7", "PAC-9")
def test_an_open_proposal_gets_its_new_names_before_any_verdict(fabric: Fabric, people: People) -> None:
    item = proposed(fabric, people.run("cust_1"), entity=OLD, subject=OLD, value="email", **KEY)
    with_aliases(fabric, people)
    shown = fabric.queue.approve(people.reviewer, item.proposal_id)
    assert (shown.status, shown.candidate.entity, shown.candidate.subject) == ("pending", NEW, NEW)
    assert fabric.queue.get(people.reviewer, item.proposal_id).status == "withdrawn"
    done = fabric.queue.approve(people.reviewer, shown.proposal_id)
    assert fabric.get(people.auditor, done.memory_id or "").entity == NEW


@pytest.mark.rule("PAC-7", "REV-6")
def test_what_was_rejected_under_one_name_is_not_proposed_again_under_another(fabric: Fabric, people: People) -> None:
    fact: dict[str, Any] = {"value": "by carrier pigeon", **KEY}
    item = proposed(fabric, people.run("cust_1"), entity=OLD, **fact)
    fabric.queue.reject(people.reviewer, item.proposal_id, reason="wrong")
    with_aliases(fabric, people)
    for entity in (OLD, NEW, CLIENT):
        again = refused(fabric, people.run("cust_1"), entity=entity, **fact)
        assert (again.gate, again.rejection) == ("rejection", item.proposal_id)


@pytest.mark.rule("PAC-7", "CAP-4")
def test_an_idempotency_key_holds_across_the_activation_of_an_alias(fabric: Fabric, people: People) -> None:
    said: dict[str, Any] = {"kind": "statement", "text": "Ring twice.", "classification": "INTERNAL", "subject": OLD}
    first = fabric.capture(people.run(None), idempotency_key="k1", **said)
    with_aliases(fabric, people)
    again = fabric.capture(people.run(None), idempotency_key="k1", **said)
    assert (again.capture_id, again.repeated) == (first.capture_id, True)
    with pytest.raises(IdempotencyConflict):
        fabric.capture(people.run(None), idempotency_key="k1", **said | {"text": "Ring once."})
    second = fabric.capture(people.run(None), idempotency_key="k2", **said)
    by_name = fabric.capture(people.run(None), idempotency_key="k2", **said | {"subject": NEW})
    assert (by_name.capture_id, by_name.repeated) == (second.capture_id, True), "one subject under two names"


@pytest.mark.rule("PAC-7", "CAP-11")
def test_a_capture_of_before_the_alias_is_read_under_the_new_name_and_proposed_once(
    fabric: Fabric, people: People
) -> None:
    put_in_force(fabric, people.tenant_id, acme("1.0.0", CRM_MAP))
    item = {"who": OLD, "predicate": "contact_channel", "said": "email"}
    first = _result(fabric, people, item)
    fabric.consolidate(people.tenant_id)
    waiting = _result(fabric, people, item | {"said": "phone"})
    later = CRM_MAP.replace("$.predicate", "prefers_channel").replace(
        "entity: $.who", "entity: $.id, namespace: customer"
    )
    renamed = "ontology: {predicates: {prefers_channel: {renamed_from: [contact_channel]}}}"
    with_aliases(fabric, people, text=f"{ALIASES}\n{renamed}\n{later}")
    fabric.captures.rerun(people.reviewer, first, "pack_changed")
    done = fabric.consolidate(people.tenant_id)
    (entered,) = [fabric.queue.get(people.reviewer, one).candidate for one in done.proposals]
    assert (entered.capture_id, entered.entity, entered.value) == (waiting, NEW, "phone")
    assert entered.predicate == "prefers_channel"


@pytest.mark.rule("PAC-7", "ERA-5")
@pytest.mark.parametrize("erased", [OLD, NEW, CLIENT])
def test_an_erasure_takes_all_names_with_what_was_stored_before_and_after_the_alias(
    fabric: Fabric, people: People, erased: str
) -> None:
    before = promoted(fabric, people, "email", entity=OLD, subject=OLD)
    ref = with_aliases(fabric, people)
    after = promoted(fabric, people, "tea", entity=CLIENT, subject=CLIENT, predicate="drinks")
    backfilled(fabric, people, ref)
    fabric.erase(people.officer, subject=erased)
    assert fabric.recall(people.run("cust_1")).records == ()
    for memory_id in (before, after):
        assert fabric.get(people.auditor, memory_id).tombstoned_at is not None


@pytest.mark.rule("PAC-7", "CAP-12", "ERA-5")
@pytest.mark.parametrize("aliases", ["{customer: user}", "{user: customer}"])
def test_the_namespace_of_users_may_have_an_alias_or_be_one(fabric: Fabric, people: People, aliases: str) -> None:
    with_aliases(fabric, people, text=f"identity: {{aliases: {aliases}}}")
    users = "user" if aliases.endswith(" user}") else "customer"
    fabric.consent.grant(people.officer, subject="customer:joanna", **CONSENT)
    said: dict[str, Any] = {"kind": "statement", "text": "She is allergic to peanuts", "classification": "PII"}
    fabric.capture(people.run("joanna"), **said)
    (proposal_id,) = fabric.consolidate(people.tenant_id).proposals
    assert fabric.queue.get(people.reviewer, proposal_id).candidate.subject == f"{users}:joanna"
    receipt = fabric.erase(people.officer, subject="customer:joanna")
    assert (receipt.user_id, receipt.rows["captures"]) == ("joanna", 1)


@pytest.mark.rule("PAC-7", "COR-1")
def test_a_correction_of_a_key_by_an_alias_replaces_what_stands_under_another_name(
    fabric: Fabric, people: People
) -> None:
    stands = promoted(fabric, people, "email", entity=OLD)
    with_aliases(fabric, people)
    made = fabric.correct(
        people.author, entity=CLIENT, predicate="prefers_channel", value="phone", classification="INTERNAL",
        user_id="cust_1",
    )  # fmt: skip
    assert isinstance(made, Submission)
    fabric.queue.approve(people.reviewer, made.proposal_id)
    assert fabric.get(people.auditor, stands).retraction_reason == "corrected"
    assert [(one.entity, one.value) for one in fabric.recall(people.run("cust_1")).records] == [(NEW, "phone")]


@pytest.mark.rule("PAC-7", "PAC-5")
def test_an_alias_that_is_added_or_taken_away_takes_a_second_admin(fabric: Fabric, people: People) -> None:
    plain, joined = acme("1.0.0"), acme("2.0.0", ALIASES)
    assert loosened(plain, joined) == (
        "identity.aliases.client: none to customer",
        "identity.aliases.cust: none to customer",
    )
    assert loosened(joined, plain) == (
        "identity.aliases.client: customer to none",
        "identity.aliases.cust: customer to none",
    )
