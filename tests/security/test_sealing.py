"""Sealing: what rests is unreadable, bound to its place, and opens only with its own keys."""

import base64
import stat
import tracemalloc
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from muniment import AsyncFabric, Fabric
from muniment.database import master
from muniment.database.master import LocalMasterKeys, find_master_keys, new_master_key
from muniment.database.sealing import TenantKeys
from muniment.errors import InvalidInput, KeyUnavailable, NotFound, SealBroken
from muniment.packs import store as packs
from muniment.testing import FakeClock, People, TestServer
from tests.connections import Connections
from tests.stories import promoted, texts


def keys_of(tenant: str = "t", key: bytes = b"k" * 32) -> TenantKeys:
    return TenantKeys(tenant, {1: key})


@pytest.mark.rule("CAP-5", "ERA-1")
@pytest.mark.parametrize("moved", ["tenant", "holder", "place", "row", "key", "bit", "format", "cut"])
def test_a_ciphertext_opens_only_where_it_was_sealed(moved: str) -> None:
    tenant = keys_of()
    wrapped = tenant.new_subject("customer:a")
    key = tenant.subject("customer:a", wrapped, 1)
    sealed = key.seal("captures.content", "cap_1", b"the secret")
    assert key.open("captures.content", "cap_1", sealed) == b"the secret"
    assert b"the secret" not in sealed
    place, row = "captures.content", "cap_1"
    with pytest.raises(SealBroken):
        match moved:
            case "tenant":
                keys_of("u").subject("customer:a", wrapped, 1)
            case "holder":
                tenant.subject("customer:b", wrapped, 1)
            case "place":
                key.open("candidates.content", row, sealed)
            case "row":
                key.open(place, "cap_2", sealed)
            case "key":
                tenant.subject("customer:a", tenant.new_subject("customer:a"), 1).open(place, row, sealed)
            case "bit":
                key.open(place, row, sealed[:-1] + bytes([sealed[-1] ^ 1]))
            case "format":
                key.open(place, row, b"\x02" + sealed[1:])
            case _:
                key.open(place, row, sealed[:9])


@pytest.mark.rule("ERA-1")
def test_separators_in_names_cannot_make_two_places_one() -> None:
    key = keys_of().subject("customer:a", keys_of().new_subject("customer:a"), 1)
    sealed = key.seal("a.b", "c", b"x")
    with pytest.raises(SealBroken):
        key.open("a.b\x00c"[:3], "b\x00c", sealed)


@pytest.mark.rule("ERA-1")
def test_bodies_swapped_in_the_database_do_not_open(
    fabric: Fabric, people: People, server: TestServer, database: str
) -> None:
    one, other = promoted(fabric, people, "email", predicate="p1"), promoted(fabric, people, "phone", predicate="p2")
    with server.connect(database) as owner:
        content = owner.execute("SELECT content FROM memory_bodies WHERE memory_id = %s", [other]).fetchone()
        assert content is not None
        owner.execute("UPDATE memory_bodies SET content = %s WHERE memory_id = %s", [content[0], one])
    answer = fabric.recall(people.run())
    assert [record.id for record in answer.records] == [other]
    assert answer.degraded == ("seal_broken",)
    assert fabric.retract(people.reviewer, one, reason="wrong").reason == "wrong"
    assert fabric.recall(people.run()).degraded == ()


@pytest.mark.rule("ERA-1")
def test_another_master_key_opens_nothing(
    fabric: Fabric, people: People, server: TestServer, database: str, clock: FakeClock
) -> None:
    promoted(fabric, people)
    wrong = LocalMasterKeys(b"another master key of 32 bytes!!")
    with Fabric.open(server.url(database), clock=clock, master_keys=wrong) as stranger, pytest.raises(KeyUnavailable):
        stranger.recall(people.run())


@pytest.mark.rule("ERA-1")
def test_a_wrapped_tenant_key_moved_to_another_tenant_does_not_open(
    fabric: Fabric, people: People, others: People, server: TestServer, database: str, clock: FakeClock
) -> None:
    promoted(fabric, people)
    promoted(fabric, others)
    with server.connect(database) as owner:
        own = owner.execute("SELECT wrapped FROM tenant_keys WHERE tenant_id = %s", [people.tenant_id]).fetchone()
        assert own is not None
        owner.execute("UPDATE tenant_keys SET wrapped = %s WHERE tenant_id = %s", [own[0], others.tenant_id])
    keys = LocalMasterKeys(b"a master key for tests, 32 bytes")
    with Fabric.open(server.url(database), clock=clock, master_keys=keys) as again, pytest.raises(KeyUnavailable):
        texts(again, others.run())


@pytest.mark.rule("ERA-1")
def test_the_master_key_file_is_made_once_with_mode_600_and_refused_when_others_can_read_it(tmp_path: Path) -> None:
    first = find_master_keys(tmp_path).login_secret()
    file = tmp_path / "master.key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert find_master_keys(tmp_path).login_secret() == first
    assert [path.name for path in tmp_path.iterdir()] == ["master.key"]
    file.chmod(0o640)
    with pytest.raises(KeyUnavailable, match="chmod 600"):
        find_master_keys(tmp_path)


@pytest.mark.rule("ERA-1")
def test_the_master_key_comes_from_the_environment_a_file_or_nowhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(KeyUnavailable, match="MUNIMENT_MASTER_KEY"):
        find_master_keys(None)
    file = tmp_path / "key"
    file.write_text(new_master_key())
    file.chmod(0o600)
    monkeypatch.setenv("MUNIMENT_MASTER_KEY_FILE", str(file))
    assert find_master_keys(None).login_secret() == base64.b64decode(file.read_text())
    monkeypatch.setenv("MUNIMENT_MASTER_KEY", base64.b64encode(b"e" * 32).decode())
    assert find_master_keys(None).login_secret() == b"e" * 32
    for wrong in ("not base64!", base64.b64encode(b"short").decode()):
        monkeypatch.setenv("MUNIMENT_MASTER_KEY", wrong)
        with pytest.raises(KeyUnavailable) as caught:
            find_master_keys(None)
        assert wrong not in str(caught.value)


@pytest.mark.rule("ERA-1")
def test_a_key_service_can_be_plugged_in(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("vault", "tests.security.test_sealing:PluggedIn", master.PLUGIN_GROUP)
    monkeypatch.setattr(master, "entry_points", lambda group, name: [point] if name == "vault" else [])
    monkeypatch.setenv("MUNIMENT_KEY_PROVIDER", "vault")
    assert isinstance(find_master_keys(None), PluggedIn)
    monkeypatch.setenv("MUNIMENT_KEY_PROVIDER", "nobody")
    with pytest.raises(InvalidInput, match="nobody"):
        find_master_keys(None)


class PluggedIn(LocalMasterKeys):
    """A key service of one's own."""

    def __init__(self) -> None:
        super().__init__(b"p" * 32)


@pytest.mark.rule("ERA-1")
def test_many_subjects_do_not_fill_memory(fabric: Fabric, people: People) -> None:
    def capture(first: int, count: int) -> None:
        items: list[dict[str, Any]] = [
            {"kind": "message", "text": "x", "classification": "INTERNAL", "subject": f"customer:s{n}"}
            for n in range(first, first + count)
        ]
        for start in range(0, count, 1000):
            fabric.capture_many(people.run(), items[start : start + 1000])

    capture(0, 1000)
    tracemalloc.start()
    try:
        capture(1000, 1000)
        before, _ = tracemalloc.get_traced_memory()
        capture(2000, 4000)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 400_000, "4,000 more subjects, kept at 100 bytes each, would be this much"


@pytest.mark.rule("ERA-1")
def test_a_key_that_was_made_in_a_transaction_that_failed_is_kept_by_nobody(
    connections: Connections, people: People, clock: FakeClock
) -> None:
    async def failed(fabric: AsyncFabric) -> bytes:
        context = fabric.opened.context
        with pytest.raises(NotFound):
            async with context.transaction(people.tenant_id, "writer") as tx:
                await packs.open_tenant(tx, context.vault)
                await context.vault.tenant_data_key(tx)
                raise NotFound("it fails after all")
        assert context.vault.cached_tenant_data_key(people.tenant_id) is None
        await context.open_tenant(people.tenant_id)
        async with context.transaction(people.tenant_id, "writer") as tx:
            return (await context.vault.tenant_data_key(tx)).digest(b"x")

    async def read(fabric: AsyncFabric) -> bytes:
        async with fabric.opened.context.transaction(people.tenant_id, "writer") as tx:
            return (await fabric.opened.context.vault.tenant_data_key(tx)).digest(b"x")

    with connections.fabric(clock=clock) as one, connections.fabric(clock=clock) as other:
        ours = one._wait(failed, one._fabric)
        assert ours == other._wait(read, other._fabric)
