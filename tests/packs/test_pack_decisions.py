"""What is decided under the pack in force, and what a draft or a pin cannot do."""

from contextlib import suppress
from datetime import timedelta
from typing import Any

import anyio
import pytest

from muniment import AsyncFabric, Fabric
from muniment.errors import (
    Conflict,
    NotFound,
    PackChanged,
    PinRefused,
)
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.pack_activation import acme, activate, put_in_force, register
from tests.packs.pack_texts import LAX_MASKS, NOT_SENSITIVE, SHORT, STRICT
from tests.stories import CONSENT, KEY, promoted, proposed, remembered, run_job, values


@pytest.mark.rule("PAC-9")
def test_ten_activations_beside_five_writers_decide_every_row_under_the_pack_in_force_at_its_number(
    server: TestServer, database: str, clock: FakeClock, people: People, fabric: Fabric, rows: Any
) -> None:
    promoted(fabric, people)
    refs = [register(fabric, people.tenant_id, acme(f"1.{n}.0", STRICT)) for n in range(10)]

    switched = anyio.Event()

    async def main() -> None:
        async def write(n: int) -> None:
            opened = AsyncFabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS)
            async with opened as one:
                while not switched.is_set():
                    # Raised where every try met another activation: nothing was written.
                    with suppress(PackChanged):
                        await one.capture(people.run(), kind="statement", text=f"fact {n}", classification="INTERNAL")

        async def switch() -> None:
            async with AsyncFabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS) as one:
                for ref in refs:
                    await one.packs.activate(people.admin, ref, reason="switch")
                    while ref not in {row["pack"] for row in rows("captures", "pack, tenant_id")}:  # noqa: ASYNC110  the database is asked
                        await anyio.sleep(0.01)
            switched.set()

        async with anyio.create_task_group() as tasks:
            for n in range(5):
                tasks.start_soon(write, n)
            tasks.start_soon(switch)

    anyio.run(main)
    history = sorted((row["seq"], row["pack"]) for row in rows("pack_activations"))
    captures = rows("captures")
    assert {row["pack"] for row in captures} >= set(refs), "writers and activations ran at once"
    for row in captures:
        assert row["pack"] == [pack for seq, pack in history if seq <= row["seq"]][-1]


@pytest.mark.rule("PAC-4")
def test_an_agent_that_pins_a_laxer_version_writes_and_sees_no_more_than_the_pack_in_force_allows(
    fabric: Fabric, people: People
) -> None:
    fabric.consent.grant(people.officer, subject="customer:cust_1", **CONSENT)
    visible = promoted(fabric, people, "email")
    hidden = remembered(fabric, people, "secret", predicate="keeps", classification="CONFIDENTIAL")
    for pack in (acme("0.1.0", LAX_MASKS), acme("0.2.0", NOT_SENSITIVE)):
        register(fabric, people.tenant_id, pack)
    narrow = "roles: {agent: {classifications_allowed: [PUBLIC, INTERNAL]}}"
    put_in_force(fabric, people.tenant_id, acme("1.0.0", narrow, may_pin="[acme@0.1.0, muniment.builtin@1.3.0]"))
    # A version that the pack in force does not list is refused, for recall and compile alike.
    for verb in (fabric.recall, fabric.compile):
        with pytest.raises(PinRefused):
            verb(people.run(pack="acme@0.2.0"))
        with pytest.raises(PinRefused):
            verb(people.run(pack="acme@9.9.9"))
    # One that it lists widens nothing.
    answer = fabric.recall(people.run(pack="muniment.builtin@1.3.0"))
    assert [record.id for record in answer.all_records] == [visible]
    assert answer.pack == "muniment.builtin@1.3.0"
    for asked in (visible, hidden):
        seen = fabric.explain(people.auditor, memory_id=asked, run=people.run(pack="muniment.builtin@1.3.0"))
        assert (seen.visibility == "visible") is (asked == visible)
    with pytest.raises(NotFound):
        fabric.get(people.run(pack="muniment.builtin@1.3.0"), hidden)
    # Writes are decided by the pack in force: the card number is masked.
    item = proposed(
        fabric, people.run(pack="acme@0.1.0"), **KEY, value="card 4111 1111 1111 1111", subject="customer:cust_1"
    )
    assert "4111 1111" not in item.candidate.text and item.pack == "acme@1.0.0"


@pytest.mark.rule("PAC-4")
def test_a_pin_narrows_what_the_pack_in_force_allows(fabric: Fabric, people: People, clock: FakeClock) -> None:
    old = promoted(fabric, people, "email")
    clock.advance(days=10)
    new = remembered(fabric, people, "tea", predicate="drinks")
    fresh = "memory_layer: {recall_policy: {freshness: {semantic: 5d}, max_recalls: 1, confidence: 0.9}}"
    register(fabric, people.tenant_id, acme("0.1.0", fresh))
    put_in_force(fabric, people.tenant_id, acme("1.0.0", "", may_pin="[acme@0.1.0]"))
    assert {record.id for record in fabric.recall(people.run()).records} == {old, new}
    pinned = fabric.recall(people.run(pack="acme@0.1.0"))
    assert [record.id for record in pinned.low_confidence] == [new] and not pinned.records
    # The same the other way round: what the pack in force narrows, a wider pin does not widen.
    put_in_force(fabric, people.tenant_id, acme("1.1.0", fresh, may_pin="[acme@1.0.0]"))
    wide = fabric.recall(people.run(pack="acme@1.0.0"))
    assert [record.id for record in wide.low_confidence] == [new] and not wide.records
    assert fabric.replay(people.auditor, wide.recall_id).same
    assert fabric.replay(people.auditor, pinned.recall_id).same


@pytest.mark.rule("REC-7")
def test_as_of_goes_by_the_pack_in_force_then_limited_by_what_the_one_of_today_shows(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    public = promoted(fabric, people, "email")
    secret = remembered(fabric, people, "secret", predicate="keeps", classification="CONFIDENTIAL")
    wide = clock()
    clock.advance(hours=1)
    narrow = "roles: {agent: {classifications_allowed: [PUBLIC, INTERNAL]}}"
    put_in_force(fabric, people.tenant_id, acme("1.0.0", narrow))
    closed = clock()
    clock.advance(hours=1)
    # A right withdrawn is withdrawn for the past too.
    assert {one.id for one in fabric.recall(people.run(), as_of=wide).records} == {public}
    put_in_force(fabric, people.tenant_id, acme("1.1.0"))
    assert {one.id for one in fabric.recall(people.run(), as_of=wide).records} == {public, secret}
    # What the pack of then withheld, the one of today does not give back.
    assert {one.id for one in fabric.recall(people.run(), as_of=closed).records} == {public}
    assert {one.id for one in fabric.recall(people.run()).records} == {public, secret}


@pytest.mark.rule("PAC-9")
def test_a_waiting_proposal_passes_the_gates_of_the_pack_in_force_before_it_is_approved(
    fabric: Fabric, people: People
) -> None:
    item = proposed(fabric, people.run(), **KEY, value="email", confidence=0.7)
    put_in_force(fabric, people.tenant_id, acme("1.0.0", STRICT))
    done = fabric.queue.approve(people.reviewer, item.proposal_id)
    assert (done.proposal_id, done.status, done.memory_id) == (item.proposal_id, "withdrawn", None)
    last = done.verdicts[-1]
    assert (last.action, last.by, last.pack, last.reason) == (
        "withdraw",
        "auto",
        "acme@1.0.0",
        "confidence.confidence_below_floor",
    )
    assert values(fabric, people) == []


@pytest.mark.rule("PAC-9")
@pytest.mark.parametrize("verb", ["approve", "reject", "override", "assign", "edit"])
def test_no_verdict_falls_on_a_proposal_that_the_pack_in_force_refuses(
    fabric: Fabric, people: People, verb: str
) -> None:
    item = proposed(fabric, people.run(), **KEY, value="email", confidence=0.7)
    put_in_force(fabric, people.tenant_id, acme("1.0.0", STRICT))
    how: dict[str, Any] = {"reject": {"reason": "no"}, "override": {"priority": 0.9}, "edit": {"value": "fax"}}.get(
        verb, {}
    )
    done = getattr(fabric.queue, verb)(people.reviewer, item.proposal_id, **how)
    assert done.status == "withdrawn"
    assert [one.action for one in done.verdicts] == ["withdraw"]


@pytest.mark.rule("PAC-9")
def test_a_proposal_that_the_pack_in_force_leaves_as_it_is_is_decided_under_that_pack(
    fabric: Fabric, people: People
) -> None:
    item = proposed(fabric, people.run(), **KEY, value="email")
    put_in_force(fabric, people.tenant_id, acme("1.0.0", "memory_layer: {recall_policy: {max_recalls: 4}}"))
    done = fabric.queue.approve(people.reviewer, item.proposal_id)
    assert (done.proposal_id, done.status, done.pack) == (item.proposal_id, "promoted", "muniment.builtin@1.3.0")
    assert done.memory_id is not None
    assert fabric.get(people.reviewer, done.memory_id).pack == "acme@1.0.0"
    assert done.verdicts[-1].pack == "acme@1.0.0"


@pytest.mark.rule("PAC-9")
def test_a_fact_that_the_pack_in_force_masks_comes_back_as_a_proposal_of_its_own(
    fabric: Fabric, people: People
) -> None:
    item = proposed(fabric, people.run(), **KEY, value="call extension Q77")
    rule = "policy_layer: {guardrails: {redaction_rules: [{name: ext, pattern: 'Q[0-9]+', mask: '[EXT]', classification: null}]}}"
    put_in_force(fabric, people.tenant_id, acme("1.0.0", rule))
    again = fabric.queue.approve(people.reviewer, item.proposal_id)
    assert again.proposal_id != item.proposal_id and again.reopens == item.proposal_id
    assert (again.status, again.pack, again.candidate.value) == ("pending", "acme@1.0.0", "call extension [EXT]")
    assert fabric.queue.get(people.reviewer, item.proposal_id).status == "withdrawn"
    assert fabric.queue.approve(people.reviewer, again.proposal_id).status == "promoted"
    assert values(fabric, people) == ["call extension [EXT]"]


@pytest.mark.rule("PAC-9", "RED-5")
def test_a_value_that_the_pack_in_force_excepts_no_longer_comes_back_masked_and_needs_consent(
    fabric: Fabric, people: People
) -> None:
    own = "policy_layer: {guardrails: {redaction_exceptions: {email: [help@acme.example]}}}"
    put_in_force(fabric, people.tenant_id, acme("1.0.0", own))
    items = [proposed(fabric, people.run(), write_class="statement", text=f"{n} at help@acme.example.") for n in (1, 2)]
    fabric.queue.approve(people.reviewer, items[0].proposal_id)
    put_in_force(fabric, people.tenant_id, acme("1.1.0"))
    done = fabric.queue.approve(people.reviewer, items[1].proposal_id)
    assert done.status == "withdrawn" and "consent" in (done.verdicts[-1].reason or "")
    assert [one.text for one in fabric.recall(people.run()).records] == ["1 at help@acme.example."]
    assert fabric.metrics(people.auditor).pii.violations == 0, "it was promoted under the pack that excepts it"


@pytest.mark.rule("PAC-9")
def test_many_approved_at_once_pass_the_gates_of_the_pack_in_force(fabric: Fabric, people: People) -> None:
    items = [
        proposed(fabric, people.run(), entity="customer:cust_1", predicate=f"p{n}", value="x", confidence=0.7 + n / 20)
        for n in range(4)
    ]
    put_in_force(fabric, people.tenant_id, acme("1.0.0", STRICT))
    outcomes = fabric.queue.approve_many(people.reviewer, [one.proposal_id for one in items])
    assert [one.status for one in outcomes] == ["withdrawn", "promoted", "promoted", "promoted"]


@pytest.mark.rule("PAC-9")
def test_nothing_is_promoted_by_policy_that_the_pack_in_force_leaves_to_a_person(
    fabric: Fabric, people: People
) -> None:
    auto = (
        "memory_layer: {promotion_thresholds: {calibrate_from: 4}, "
        "classes: {preference: {risk: low, approval: auto, auto_promotion: {threshold: 0.81}}}}"
    )
    put_in_force(fabric, people.tenant_id, acme("1.0.0", auto))
    for n in range(8):
        promoted(fabric, people, predicate=f"p{n}", confidence=0.9)
    run_job(fabric, "calibrate", people.tenant_id)
    item = proposed(fabric, people.run(), **KEY, value="tea", confidence=0.9)
    assert item.auto_promote_eligible
    put_in_force(fabric, people.tenant_id, acme("1.1.0"))
    assert fabric.consolidate(people.tenant_id).promoted == ()
    assert fabric.queue.get(people.reviewer, item.proposal_id).status == "withdrawn"
    (again,) = fabric.queue.list(people.reviewer)
    assert (again.reopens, again.auto_promote_eligible) == (item.proposal_id, False)


@pytest.mark.rule("PAC-9")
def test_a_shorter_horizon_takes_effect_seven_days_after_its_activation(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    old = promoted(fabric, people, "email")
    fabric.retract(people.reviewer, old, reason="wrong")
    clock.advance(days=30)
    ref = register(fabric, people.tenant_id, acme("1.0.0", SHORT))
    plan = fabric.packs.plan_activation(people.admin, ref)
    assert (plan.collects_memories, plan.horizons_from) == (1, clock() + timedelta(days=7))
    activate(fabric, people.tenant_id, ref)
    collected = lambda: run_job(fabric, "expire", people.tenant_id).counts["collected"]  # noqa: E731
    assert collected() == 0
    assert fabric.recall(people.run(), as_of=clock() - timedelta(days=20)).seq
    clock.advance(days=6, hours=23)
    assert collected() == 0
    clock.advance(hours=2)
    assert collected() == 1


@pytest.mark.rule("PAC-9")
def test_a_backfill_follows_the_pack_in_force_and_no_draft(fabric: Fabric, people: People) -> None:
    promoted(fabric, people)
    renamed = "ontology: {predicates: {channel: {renamed_from: [prefers_channel]}}}"
    ref = register(fabric, people.tenant_id, acme("1.0.0", renamed, ontology_version="2.0.0"))
    assert fabric.packs.backfill(people.reviewer, ref, dry_run=True).planned == {"renamed": 1}
    with pytest.raises(Conflict):
        fabric.packs.backfill(people.reviewer, ref)
    activate(fabric, people.tenant_id, ref)
    fabric.packs.backfill(people.reviewer, ref)
    done = fabric.packs.run_backfill(people.tenant_id)
    assert done is not None and done.done == {"migrated": 1}
