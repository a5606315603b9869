"""A pack given at start and activated there: by several processes at once, and where one tenant cannot use it."""

from typing import Any

import anyio
import pytest

from muniment import AsyncFabric, Fabric
from muniment.errors import (
    Conflict,
    InvalidInput,
    PackImmutable,
    SecondPersonRequired,
)
from muniment.pack import Pack
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.pack_activation import acme, in_force, register
from tests.packs.pack_texts import STRICT


@pytest.mark.rule("PAC-6")
def test_several_processes_that_are_started_at_once_put_their_pack_in_force_once(
    server: TestServer, fresh_database: str, clock: FakeClock, people: People, others: People
) -> None:
    def opened(pack: Pack, **more: Any) -> Any:
        return AsyncFabric.open(server.url(fresh_database), pack=pack, clock=clock, master_keys=MASTER_KEYS, **more)

    async def start() -> None:
        async with opened(acme("1.1.0", STRICT), activate=True):
            pass

    async def main() -> None:
        async with opened(acme("1.0.0")) as first:
            for one in (people, others):
                await first.capture(one.run(), kind="statement", text="a", classification="INTERNAL")
        async with anyio.create_task_group() as tasks:
            for _ in range(6):
                tasks.start_soon(start)
        async with opened(acme("1.0.0")) as last:
            for one in (people, others):
                made = [activation.pack for activation in await last.packs.activations(one.admin)]
                assert made == ["acme@1.1.0", "acme@1.0.0"]

    anyio.run(main)


@pytest.mark.rule("PAC-6")
@pytest.mark.parametrize(("how", "error"), [("retired", Conflict), ("other content", PackImmutable)])
def test_a_pack_that_one_tenant_cannot_use_is_put_in_force_in_none_at_start(
    server: TestServer, fresh_database: str, clock: FakeClock, people: People, others: People, how: str, error: type
) -> None:
    def opened(pack: Pack, **more: Any) -> Fabric:
        return Fabric.open(server.url(fresh_database), pack=pack, clock=clock, master_keys=MASTER_KEYS, **more)

    new = acme("1.1.0", STRICT)
    with opened(acme("1.0.0")) as first:
        for one in (people, others):
            first.capture(one.run(), kind="statement", text="a", classification="INTERNAL")
        last = max(people, others, key=lambda one: one.tenant_id)
        ref = register(first, last.tenant_id, new if how == "retired" else acme("1.1.0"))
        if how == "retired":
            first.packs.retire(last.admin, ref, reason="old")
    with pytest.raises(error, match=last.tenant_id), opened(new, activate=True):
        pass
    with opened(acme("1.0.0")) as after:
        assert [in_force(after, one.tenant_id) for one in (people, others)] == ["acme@1.0.0"] * 2


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
