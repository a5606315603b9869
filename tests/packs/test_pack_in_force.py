"""Putting a pack in force: who may, when it takes a second person, and what the database itself refuses."""

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
    PinRefused,
    RoleMissing,
    SecondPersonRequired,
)
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.pack_activation import acme, activate, admin, in_force, put_in_force, register
from tests.packs.pack_texts import AUTO, LAX_MASKS, NOT_SENSITIVE, SHORT, STRICT
from tests.stories import KEY, event_data, promoted, proposed, run_job, values


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
        "muniment.builtin@1.3.0",
        "system",
        "first pack",
        None,
        False,
    )
    (event,) = event_data(fabric, people, "pack_activated")
    assert (event["pack"], event["reason"]) == (first.pack, "first pack")


@pytest.mark.rule("PAC-5")
def test_a_draft_that_is_only_registered_decides_nothing(fabric: Fabric, people: People, clock: FakeClock) -> None:
    old = promoted(fabric, people, "email")
    fabric.retract(people.reviewer, old, reason="wrong")
    fabric.packs.register(people.admin, acme("9.0.0", SHORT))
    clock.advance(days=30)
    assert run_job(fabric, "expire", people.tenant_id).counts["collected"] == 0
    assert fabric.trail(people.auditor, old).memory.value == "email"
    assert in_force(fabric, people.tenant_id) == "muniment.builtin@1.3.0"


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
        "muniment.builtin@1.3.0",
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
    assert found == ["muniment.builtin@1.3.0", "acme@1.0.0", "acme@1.1.0"]
    assert fabric.packs.in_force(people.auditor, at=before - timedelta(days=400)).pack == "muniment.builtin@1.3.0"


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
    assert in_force(fabric, people.tenant_id) == "muniment.builtin@1.3.0"
    made = activate(fabric, people.tenant_id, ref)
    assert made.second_person and made.loosens == plan.loosens
    denied = [event["code"] for event in event_data(fabric, people, "security")]
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
    put_in_force(fabric, people.tenant_id, acme("1.0.0", may_pin="[acme@0.9.0, muniment.builtin@1.3.0]"))
    register(fabric, people.tenant_id, acme("0.9.0"))
    assert fabric.recall(people.run(pack="acme@0.9.0")).pack == "acme@0.9.0"
    with pytest.raises(Conflict):
        fabric.packs.retire(people.admin, "acme@1.0.0", reason="by mistake")
    for ref in ("acme@0.9.0", "muniment.builtin@1.3.0"):
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
    assert [event["pack"] for event in event_data(fabric, people, "pack_retired")] == [
        "acme@0.9.0",
        "muniment.builtin@1.3.0",
    ]
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
