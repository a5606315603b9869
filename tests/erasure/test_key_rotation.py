"""Keys are rotated while everything keeps running: nothing sealed is lost, and the old key opens nothing."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

from muniment import Fabric
from muniment.database.master import FileMasterKeys, LocalMasterKeys, new_master_key, put_master_keys, read_master_keys
from muniment.erasure import key_rotation as rotation
from muniment.errors import Conflict, KeyUnavailable
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.conftest import Connect
from tests.stories import event_data, remembered, values


def rotate(fabric: Fabric, people: People) -> int:
    return fabric._portal.call(rotation.rotate, fabric._fabric._context, people.tenant_id)


def versions(server: TestServer, database: str, tenant_id: str) -> list[Any]:
    with server.connect(database) as owner:
        rows = owner.execute("SELECT version FROM tenant_keys WHERE tenant_id = %s ORDER BY 1", [tenant_id]).fetchall()
        return [row[0] for row in rows]


@pytest.mark.rule("ERA-4", "ERA-3")
def test_a_tenant_gets_another_key_and_a_process_with_the_old_one_goes_on(
    fabric: Fabric, people: People, server: TestServer, database: str, clock: FakeClock
) -> None:
    remembered(fabric, people)
    with Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS) as other:
        assert values(other, people) == ["email"]
        assert rotate(fabric, people) == 2
        assert versions(server, database, people.tenant_id) == [2]
        assert values(other, people) == ["email"]
        remembered(
            other, people, "phone", entity="customer:new", subject="customer:new"
        )  # a key made under the new one
    assert sorted(values(fabric, people)) == ["email", "phone"]
    assert event_data(fabric, people, "key_rotated") == [{"version": 2}]


@pytest.mark.rule("ERA-4", "ERR-2")
def test_a_rotation_that_was_killed_is_finished_by_the_next(
    fabric: Fabric, people: People, server: TestServer, database: str
) -> None:
    remembered(fabric, people, subject="customer:cust_1")
    context = fabric._fabric._context

    async def begun() -> None:
        async with context.transaction(people.tenant_id, "privacy") as tx:
            await context.vault.create_tenant_key(tx, 2)

    fabric._portal.call(begun)
    assert rotate(fabric, people) == 3
    assert versions(server, database, people.tenant_id) == [3]
    assert values(fabric, people) == ["email"]


@pytest.mark.rule("ERA-4", "ERR-2")
def test_rotations_at_once_lose_no_key(
    fabric: Fabric, people: People, server: TestServer, database: str, clock: FakeClock
) -> None:
    for n in range(6):
        remembered(fabric, people, f"v{n}", entity=f"customer:c_{n}", subject=f"customer:c_{n}")
    outcomes: list[Any] = []

    def turn(one: Fabric) -> None:
        for _ in range(5):
            try:
                outcomes.append(rotate(one, people))
            except Conflict as error:
                outcomes.append(error.code)

    with Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS) as other:
        with ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(turn, one) for one in (fabric, other)]:
                done.result()
        assert any(isinstance(one, int) for one in outcomes)
        for one in (fabric, other):
            assert sorted(values(one, people)) == [f"v{n}" for n in range(6)]
    rotate(fabric, people)
    assert len(versions(server, database, people.tenant_id)) == 1
    assert sorted(values(fabric, people)) == [f"v{n}" for n in range(6)]


@pytest.mark.rule("ERA-4")
def test_one_broken_key_stops_neither_a_rotation_nor_the_others(
    fabric: Fabric, people: People, server: TestServer, database: str
) -> None:
    remembered(fabric, people, subject="customer:a")
    remembered(fabric, people, "phone", entity="customer:b", subject="customer:b")
    with server.connect(database) as owner:
        owner.execute(
            "UPDATE subjects SET wrapped_key = 'garbage of some length, no key' WHERE tenant_id = %s AND holder = 'customer:a'",
            [people.tenant_id],
        )
    assert rotate(fabric, people) == 2
    assert versions(server, database, people.tenant_id) == [2]
    assert fabric.recall(people.run(), entities=["customer:b"]).records[0].value == "phone"


@pytest.mark.rule("ERA-4", "ISO-1")
def test_a_login_can_put_no_key_of_its_own_in_the_tenants_place(
    fabric: Fabric, people: People, as_role: Connect, tenant: str
) -> None:
    remembered(fabric, people)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        as_role("writer").execute("INSERT INTO tenant_keys VALUES (%s, 2, 'garbage', now())", [tenant])
    key = as_role("privacy").execute("SELECT wrapped_key FROM subjects WHERE holder = '@cust_1'").fetchone()
    as_role("writer").execute("SELECT renew_subject(%s, '@cust_1', 'garbage', 1)", [tenant])
    assert as_role("privacy").execute("SELECT wrapped_key FROM subjects WHERE holder = '@cust_1'").fetchone() == key
    assert values(fabric, people) == ["email"]


@pytest.mark.rule("ERA-4")
def test_a_key_file_holds_the_new_key_and_the_old_one_until_it_is_left_out(fabric: Fabric, tmp_path: Path) -> None:
    path, old, new = tmp_path / "master.key", new_master_key(), new_master_key()
    put_master_keys(path, old)
    at_work = FileMasterKeys(path)
    wrapped = fabric._portal.call(at_work.wrap, "t", b"k" * 32)
    put_master_keys(path, new, *read_master_keys(path))
    assert fabric._portal.call(at_work.unwrap, "t", wrapped) == b"k" * 32
    again = fabric._portal.call(at_work.wrap, "t", b"k" * 32)
    put_master_keys(path, new)
    assert fabric._portal.call(at_work.unwrap, "t", again) == b"k" * 32
    with pytest.raises(KeyUnavailable):
        fabric._portal.call(at_work.unwrap, "t", wrapped)
    with pytest.raises(KeyUnavailable):
        LocalMasterKeys(b"short")
    assert path.stat().st_mode & 0o077 == 0
