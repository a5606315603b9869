"""One pack is in force in a tenant: who puts it there, what goes by it, and what a draft or a pin cannot do."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import anyio
import psycopg
import pytest

from muniment import AsyncFabric, Fabric, Refusal
from muniment.errors import (
    Conflict,
    InvalidInput,
    NotFound,
    PackChanged,
    PackImmutable,
    PinRefused,
    RoleMissing,
    SecondPersonRequired,
)
from muniment.pack import Pack
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.pack_activation import acme, activate, admin, in_force, put_in_force, register
from tests.stories import CONSENT, KEY, promoted, proposed, remembered, run_job, told, values

STRICT = "memory_layer: {promotion_thresholds: {confidence_floor: 0.75}}"
LAX_MASKS = "policy_layer: {guardrails: {redaction_rules: [{name: cards, detector: card, enabled: false}]}}"
NOT_SENSITIVE = "classifications: [{name: PUBLIC}, {name: INTERNAL}, {name: PII}]"
SHORT = "memory_layer: {retention: {replay_horizon: 1d}}"
AUTO = (
    "memory_layer: {promotion_thresholds: {uncalibrated_cap: 0.8}, "
    "classes: {preference: {risk: low, approval: auto, auto_promotion: {threshold: 0.95}}}}"
)


@pytest.fixture
def another_process(server: TestServer, database: str, clock: FakeClock) -> Iterator[Fabric]:
    """A fabric that shares the database and nothing else."""
    with Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS) as opened:
        yield opened


@pytest.mark.rule("PAC-5")
def test_a_tenants_first_pack_is_put_in_force_with_its_first_write(fabric: Fabric, people: People) -> None:
    with pytest.raises(NotFound):
        fabric.packs.in_force(people.admin)
    promoted(fabric, people)
    first = fabric.packs.in_force(people.admin)
    assert (first.pack, first.by_kind, first.reason, first.previous_pack, first.second_person) == (
        "muniment.builtin@1.2.0",
        "system",
        "first pack",
        None,
        False,
    )
    (event,) = told(fabric, people, "pack_activated")
    assert (event["pack"], event["reason"]) == (first.pack, "first pack")


@pytest.mark.rule("PAC-5")
def test_a_draft_that_is_only_registered_decides_nothing(fabric: Fabric, people: People, clock: FakeClock) -> None:
    old = promoted(fabric, people, "email")
    fabric.retract(people.reviewer, old, reason="wrong")
    fabric.packs.register(people.admin, acme("9.0.0", SHORT))
    clock.advance(days=30)
    assert run_job(fabric, "expire", people.tenant_id).counts["collected"] == 0
    assert fabric.trail(people.auditor, old).memory.value == "email"
    assert in_force(fabric, people.tenant_id) == "muniment.builtin@1.2.0"


@pytest.mark.rule("PAC-5")
def test_an_activation_decides_calls_and_jobs_of_every_process_from_then_on(
    fabric: Fabric, another_process: Fabric, people: People
) -> None:
    for one in (fabric, another_process):
        proposed(one, people.run(), **KEY, value="email", confidence=0.7)
    put_in_force(fabric, people.tenant_id, acme("1.0.0", STRICT))
    for one in (fabric, another_process):
        refusal = one.propose(
            people.run(), **KEY, value="fax", confidence=0.7, classification="INTERNAL", write_class="preference"
        )
        assert isinstance(refusal, Refusal)
        assert (refusal.gate, refusal.reason) == ("confidence", "confidence_below_floor")
    assert [one.pack for one in another_process.packs.activations(people.admin)] == [
        "acme@1.0.0",
        "muniment.builtin@1.2.0",
    ]


@pytest.mark.rule("PAC-5")
def test_what_was_in_force_at_a_moment_can_be_asked(fabric: Fabric, people: People, clock: FakeClock) -> None:
    promoted(fabric, people)
    before = clock()
    clock.advance(hours=1)
    put_in_force(fabric, people.tenant_id, acme("1.0.0"))
    clock.advance(hours=1)
    put_in_force(fabric, people.tenant_id, acme("1.1.0", STRICT))
    found = [
        fabric.packs.in_force(people.auditor, at=before + timedelta(minutes=minutes)).pack for minutes in (0, 61, 121)
    ]
    assert found == ["muniment.builtin@1.2.0", "acme@1.0.0", "acme@1.1.0"]
    assert fabric.packs.in_force(people.auditor, at=before - timedelta(days=400)).pack == "muniment.builtin@1.2.0"


@pytest.mark.rule("PAC-5")
@pytest.mark.parametrize("text", [NOT_SENSITIVE, SHORT, LAX_MASKS, AUTO, "memory_layer: {trust: {floor: 0.1}}"])
def test_a_pack_that_loosens_a_rule_takes_a_second_admin(fabric: Fabric, people: People, text: str) -> None:
    promoted(fabric, people)
    ref = register(fabric, people.tenant_id, acme("1.0.0", text))
    plan = fabric.packs.plan_activation(people.admin, ref)
    assert plan.second_person and plan.loosens and plan.registered_by == "ada"
    for name in ("ada", "Ada", "ADA"):
        with pytest.raises(SecondPersonRequired):
            fabric.packs.activate(admin(people.tenant_id, name), ref, reason="alone")
    assert in_force(fabric, people.tenant_id) == "muniment.builtin@1.2.0"
    made = activate(fabric, people.tenant_id, ref)
    assert made.second_person and made.loosens == plan.loosens
    denied = [event["code"] for event in told(fabric, people, "security")]
    assert denied == ["second_person_required"] * 3


@pytest.mark.rule("PAC-5")
def test_one_admin_activates_a_pack_that_loosens_nothing_unless_a_pack_asks_for_four_eyes(
    fabric: Fabric, people: People
) -> None:
    promoted(fabric, people)
    stricter = register(fabric, people.tenant_id, acme("1.0.0", STRICT))
    assert not fabric.packs.activate(people.admin, stricter, reason="stricter").second_person
    asks = register(fabric, people.tenant_id, acme("1.1.0", STRICT, activation="four_eyes"))
    with pytest.raises(SecondPersonRequired):
        fabric.packs.activate(people.admin, asks, reason="alone")
    activate(fabric, people.tenant_id, asks)
    # The pack in force asks too, whatever the new one says.
    after = register(fabric, people.tenant_id, acme("1.2.0", STRICT))
    with pytest.raises(SecondPersonRequired):
        fabric.packs.activate(people.admin, after, reason="alone")


@pytest.mark.rule("PAC-5")
def test_the_database_itself_refuses_an_activation_that_takes_a_second_person(fabric: Fabric, people: People) -> None:
    promoted(fabric, people)
    ref = register(fabric, people.tenant_id, acme("1.0.0", NOT_SENSITIVE))
    context = fabric._fabric.opened.context

    async def forge(by: str) -> None:
        async with context.transaction(people.tenant_id, "writer") as tx:
            tick = await tx.tick()
            now = await tx.row("pack.in_force")
            assert now is not None
            await tx.do(
                "pack.activate",
                seq=tick.seq,
                pack=ref,
                at=tick.at,
                by=by,
                by_kind="operator",
                registered_by="ada",
                second_person=True,
                loosens=[],
                reason="alone",
                previous_seq=now["seq"],
                previous_pack=now["pack"],
            )

    for name in ("ada", "ADA", "\u0430da"):  # the last one begins with a Cyrillic letter
        with pytest.raises(psycopg.errors.CheckViolation, match="second_person"):
            fabric._portal.call(forge, name)


@pytest.mark.rule("PAC-5")
def test_no_login_moves_the_pack_in_force_to_an_earlier_activation_or_takes_it_away(
    fabric: Fabric, people: People, as_role: Any
) -> None:
    promoted(fabric, people)
    put_in_force(fabric, people.tenant_id, acme("1.0.0", STRICT))
    first = fabric.packs.activations(people.admin)[-1]
    for task in ("writer", "recall", "auditor", "privacy", "jobs"):
        login = as_role(task)
        moving = (
            "UPDATE packs_in_force SET seq = %s, pack = %s, txid ="
            " (SELECT txid FROM pack_activations WHERE seq = %s AND tenant_id = %s)"
        )
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            login.execute(moving, [first.seq, first.pack, first.seq, people.tenant_id])
        for statement in (
            "DELETE FROM packs_in_force",
            "DELETE FROM pack_activations",
            "UPDATE packs SET document = '{}'",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                login.execute(statement)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        as_role("writer").execute("UPDATE pack_activations SET pack = 'x'")


@pytest.mark.rule("PAC-5")
def test_a_retired_version_can_be_neither_activated_nor_pinned_and_the_one_in_force_not_retired(
    fabric: Fabric, people: People, as_role: Any
) -> None:
    memory_id = promoted(fabric, people)
    then = fabric.recall(people.run())
    put_in_force(fabric, people.tenant_id, acme("1.0.0", may_pin="[acme@0.9.0, muniment.builtin@1.2.0]"))
    register(fabric, people.tenant_id, acme("0.9.0"))
    assert fabric.recall(people.run(pack="acme@0.9.0")).pack == "acme@0.9.0"
    with pytest.raises(Conflict):
        fabric.packs.retire(people.admin, "acme@1.0.0", reason="by mistake")
    for ref in ("acme@0.9.0", "muniment.builtin@1.2.0"):
        fabric.packs.retire(people.admin, ref, reason="old")
        with pytest.raises(Conflict):
            fabric.packs.retire(people.admin, ref, reason="twice")
        with pytest.raises(Conflict):
            activate(fabric, people.tenant_id, ref)
        with pytest.raises(PinRefused):
            fabric.recall(people.run(pack=ref))
    # The past is still read under it.
    assert fabric.replay(people.auditor, then.recall_id).same
    assert fabric.explain(people.auditor, memory_id=memory_id, recall_id=then.recall_id).visibility == "visible"
    assert [event["pack"] for event in told(fabric, people, "pack_retired")] == ["acme@0.9.0", "muniment.builtin@1.2.0"]
    # No login takes a retirement back, nor retires the one in force.
    taken_back = as_role("writer").execute(
        "UPDATE packs SET retired_at = NULL, retired_by = NULL WHERE pack = 'acme@0.9.0'"
    )
    assert taken_back.rowcount == 0
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        as_role("writer").execute("UPDATE packs SET retired_at = now(), retired_by = 'x' WHERE pack = 'acme@1.0.0'")


@pytest.mark.rule("PAC-5")
def test_activation_is_an_admins_and_needs_a_reason_without_personal_data(fabric: Fabric, people: People) -> None:
    promoted(fabric, people)
    ref = register(fabric, people.tenant_id, acme("1.0.0", STRICT))
    for asker in (people.reviewer, people.auditor, people.officer, people.run(), people.service):
        with pytest.raises(RoleMissing):
            fabric.packs.activate(asker, ref, reason="mine")
        with pytest.raises(RoleMissing):
            fabric.packs.retire(asker, ref, reason="mine")
    for reason in ("", "x" * 501, "asked by jane.doe@example.com"):
        with pytest.raises(InvalidInput):
            fabric.packs.activate(people.admin, ref, reason=reason)
    with pytest.raises(NotFound):
        fabric.packs.activate(people.admin, "acme@7.7.7", reason="not there")
    fabric.packs.activate(people.admin, ref, reason="it is time")
    with pytest.raises(Conflict):
        fabric.packs.activate(people.admin, ref, reason="twice")


def test_another_tenants_pack_cannot_be_activated(fabric: Fabric, people: People, others: People) -> None:
    promoted(fabric, people)
    promoted(fabric, others)
    ref = register(fabric, others.tenant_id, acme("1.0.0", STRICT))
    with pytest.raises(NotFound):
        fabric.packs.activate(people.admin, ref, reason="not mine")
    with pytest.raises(NotFound):
        fabric.packs.plan_activation(people.admin, ref)


def test_an_activation_is_refused_where_another_pack_is_in_force_than_was_shown(fabric: Fabric, people: People) -> None:
    promoted(fabric, people)
    one, two = (register(fabric, people.tenant_id, acme(version, STRICT)) for version in ("1.0.0", "1.1.0"))
    shown = fabric.packs.plan_activation(people.admin, two).in_force
    fabric.packs.activate(people.admin, one, reason="first")
    with pytest.raises(PackChanged):
        fabric.packs.activate(people.admin, two, reason="second", expected=shown)
    assert in_force(fabric, people.tenant_id) == one


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
    put_in_force(fabric, people.tenant_id, acme("1.0.0", narrow, may_pin="[acme@0.1.0, muniment.builtin@1.2.0]"))
    # A version that the pack in force does not list is refused, for recall and compile alike.
    for verb in (fabric.recall, fabric.compile):
        with pytest.raises(PinRefused):
            verb(people.run(pack="acme@0.2.0"))
        with pytest.raises(PinRefused):
            verb(people.run(pack="acme@9.9.9"))
    # One that it lists widens nothing.
    answer = fabric.recall(people.run(pack="muniment.builtin@1.2.0"))
    assert [record.id for record in answer.all_records] == [visible]
    assert answer.pack == "muniment.builtin@1.2.0"
    for asked in (visible, hidden):
        seen = fabric.explain(people.auditor, memory_id=asked, run=people.run(pack="muniment.builtin@1.2.0"))
        assert (seen.visibility == "visible") is (asked == visible)
    with pytest.raises(NotFound):
        fabric.get(people.run(pack="muniment.builtin@1.2.0"), hidden)
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
    assert (done.proposal_id, done.status, done.pack) == (item.proposal_id, "promoted", "muniment.builtin@1.2.0")
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


@pytest.mark.rule("PAC-6")
def test_a_pack_given_at_start_is_put_in_force_only_where_none_is(
    server: TestServer,
    database: str,
    clock: FakeClock,
    people: People,
    others: People,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def opened(pack: Pack | None, **more: Any) -> Fabric:
        return Fabric.open(server.url(database), pack=pack, clock=clock, master_keys=MASTER_KEYS, **more)

    with opened(acme("1.0.0", STRICT)) as first:
        first.capture(people.run(), kind="statement", text="a", classification="INTERNAL")
        assert in_force(first, people.tenant_id) == "acme@1.0.0"
    with opened(acme("2.0.0")) as second:
        second.capture(people.run(), kind="statement", text="b", classification="INTERNAL")
        assert in_force(second, people.tenant_id) == "acme@1.0.0"
        assert "acme@2.0.0 was given at start, but acme@1.0.0 is in force" in caplog.text
        second.capture(others.run(), kind="statement", text="c", classification="INTERNAL")
        assert in_force(second, others.tenant_id) == "acme@2.0.0"
    with opened(acme("1.0.0")) as edited, pytest.raises(PackImmutable):
        edited.capture(people.run(), kind="statement", text="d", classification="INTERNAL")


@pytest.mark.rule("PAC-6")
def test_a_pack_is_put_in_force_at_start_when_told_to_but_not_where_that_takes_two_people(
    server: TestServer, fresh_database: str, clock: FakeClock, people: People
) -> None:
    def opened(pack: Pack, **more: Any) -> Fabric:
        return Fabric.open(server.url(fresh_database), pack=pack, clock=clock, master_keys=MASTER_KEYS, **more)

    with opened(acme("1.0.0")) as first:
        first.capture(people.run(), kind="statement", text="a", classification="INTERNAL")
    with opened(acme("1.1.0", STRICT), activate=True) as second:
        found = second.packs.in_force(people.admin)
        assert (found.pack, found.by_kind, found.reason) == ("acme@1.1.0", "system", "given at start")
    with pytest.raises(SecondPersonRequired, match=people.tenant_id), opened(acme("1.2.0"), activate=True):
        pass
    with opened(acme("1.2.0")) as third:
        assert in_force(third, people.tenant_id) == "acme@1.1.0"
    with pytest.raises(InvalidInput):
        Fabric.open(server.url(fresh_database), activate=True, master_keys=MASTER_KEYS)


@pytest.mark.rule("PAC-5")
def test_a_tenant_from_before_activations_gets_the_pack_that_its_calls_went_by(
    server: TestServer, database: str, clock: FakeClock, people: People
) -> None:
    with Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS) as before:
        promoted(before, people)
    with server.connect(database) as owner:
        for table in ("packs_in_force", "pack_activations"):
            owner.execute(f"DELETE FROM {table} WHERE tenant_id = %s", [people.tenant_id])

    async def main() -> None:
        async def look() -> None:
            opened = AsyncFabric.open(server.url(database), pack=acme("1.0.0"), clock=clock, master_keys=MASTER_KEYS)
            async with opened as one:
                await one.recall(people.run())

        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(look)

    anyio.run(main)
    with Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS) as after:
        (only,) = after.packs.activations(people.admin)
        assert (only.pack, only.reason) == ("acme@1.0.0", "upgrade")
        assert values(after, people) == ["email"]


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
