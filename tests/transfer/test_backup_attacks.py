"""Backups that were changed, cut off, forged or stolen: nothing of them is kept, and nothing in them can be opened."""

import io
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from pydantic_core import from_json, to_json

from muniment import Fabric
from muniment.errors import BackupBroken, Conflict, InvalidInput, MunimentError, NotFound
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from muniment.transfer.backup_format import (
    FRAME,
    BackupReader,
    BackupWriter,
    Kind,
    check_signature,
    new_receiver,
    receiver_key,
    signer_text,
)
from tests.stories import promoted
from tests.transfer.moves import RECEIVER, backup, opened, restore

Frames = list[tuple[Kind, bytes]]


@pytest.fixture
def elsewhere(server: TestServer, clock: FakeClock) -> Iterator[Fabric]:
    """Another installation, in which there is no tenant."""
    database = server.clone()
    with Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS) as fabric:
        yield fabric
    server.drop(database)


@pytest.fixture
def written(fabric: Fabric, people: People) -> tuple[bytes, str]:
    """The backup of a tenant with a few memories, and the key that it is signed with."""
    for number in range(3):
        promoted(fabric, people, f"value {number}", predicate=f"fact_{number}")
    fabric.seal(people.tenant_id)
    content, done = backup(fabric, people.tenant_id)
    return content, done.signed_by


def nothing_is_there(fabric: Fabric, people: People) -> bool:
    assert fabric.recall(people.run()).records == ()
    parts = opened(fabric)
    with psycopg.connect(parts.address.for_owner()) as owner:
        owner.execute("SELECT set_config('muniment.tenant', %s, false)", [people.tenant_id])
        return all(
            owner.execute(f"SELECT count(*) FROM muniment.{table}").fetchone() == (0,)  # type: ignore[arg-type]
            for table in ("tenant_restores", "captures", "memories", "ticks", "tenant_keys", "subjects")
        )


def signer_of(fabric: Fabric, tenant: str) -> Ed25519PrivateKey:
    """The key that only who has opened the tenant can derive."""

    async def found() -> Any:
        context = opened(fabric).context
        async with context.transaction(tenant, "auditor") as tx:
            return await context.vault.existing_tenant_data_key(tx)

    own = fabric._portal.call(found)
    return Ed25519PrivateKey.from_private_bytes(own.derived("tenant-backup-signature"))


def rewritten(content: bytes, signed_by: str, signer: Ed25519PrivateKey, change: Callable[[Frames], Frames]) -> bytes:
    """The backup with other frames, sealed and signed as it should be: what an insider with the tenant's keys can do."""
    signed = check_signature(io.BytesIO(content), signed_by)
    reader = BackupReader(io.BytesIO(content), signed, RECEIVER)
    frames = list(reader.frames())
    stream = io.BytesIO()
    writer = BackupWriter(stream, RECEIVER.public_key(), signer)
    begun = from_json(frames[0][1])
    for key in begun["keys"]:
        opened_key = reader.key(begun["tenant_id"], key["version"], key["key"])
        key["key"] = writer.wrapped(begun["tenant_id"], key["version"], opened_key)
    frames[0] = ("begin", to_json(begun))
    for kind, inner in change(frames):
        writer.frame(kind, inner)
    writer.finish()
    return stream.getvalue()


@pytest.mark.rule("IMP-3")
def test_a_file_with_any_changed_byte_is_refused_before_anything_is_opened(
    elsewhere: Fabric, people: People, written: tuple[bytes, str]
) -> None:
    content, signed_by = written
    for place in (0, 30, 60, 200, len(content) // 3, len(content) // 2, len(content) - 70, len(content) - 1):
        changed = bytearray(content)
        changed[place] ^= 1
        with pytest.raises((BackupBroken, InvalidInput)):
            restore(elsewhere, people.tenant_id, bytes(changed), signed_by)
    assert nothing_is_there(elsewhere, people)


@pytest.mark.rule("IMP-3")
@pytest.mark.parametrize("left", [0, 10, 25, 100, 0.3, 0.9, -1, -64, -68])
def test_a_file_that_ends_too_early_or_goes_on_is_refused(
    elsewhere: Fabric, people: People, written: tuple[bytes, str], left: float
) -> None:
    content, signed_by = written
    cut = content[: int(len(content) * left) if 0 < left < 1 else int(left)]
    for wrong in (cut, content + b"x"):
        with pytest.raises(BackupBroken):
            restore(elsewhere, people.tenant_id, wrong, signed_by)
    assert nothing_is_there(elsewhere, people)


@pytest.mark.rule("IMP-3")
def test_only_the_receiver_opens_it_and_only_the_senders_signature_counts(
    elsewhere: Fabric, people: People, written: tuple[bytes, str]
) -> None:
    content, signed_by = written
    with pytest.raises(BackupBroken, match="another key"):
        restore(elsewhere, people.tenant_id, content, signed_by, X25519PrivateKey.generate())
    # Whoever knows the receiver's public key can seal a file for it, and sign it with a key of their own.
    forger = Ed25519PrivateKey.generate()
    forged = rewritten(content, signed_by, forger, lambda frames: frames)
    with pytest.raises(BackupBroken, match="not by the key that was expected"):
        restore(elsewhere, people.tenant_id, forged, signed_by)
    with pytest.raises(BackupBroken, match="not signed with the key of this tenant"):
        restore(elsewhere, people.tenant_id, forged, signer_text(forger.public_key().public_bytes_raw()))
    assert nothing_is_there(elsewhere, people)


@pytest.mark.rule("IMP-3")
def test_a_row_that_even_an_insider_changed_does_not_verify(
    fabric: Fabric, elsewhere: Fabric, people: People, written: tuple[bytes, str]
) -> None:
    content, signed_by = written
    signer = signer_of(fabric, people.tenant_id)

    def replaced(what: bytes, by: bytes) -> Callable[[Frames], Frames]:
        def change(frames: Frames) -> Frames:
            found: Frames = [(kind, inner.replace(what, by) if kind == "rows" else inner) for kind, inner in frames]
            assert found != frames, what
            return found

        return change

    def without_the_events(frames: Frames) -> Frames:
        """The table of events is left empty, and the end says so."""
        named = to_json({"name": "events"})[:-1]
        place = next(at for at, (kind, inner) in enumerate(frames) if kind == "table" and inner.startswith(named))
        empty = next(inner for kind, inner in frames if kind == "rows" and len(inner) == 21)
        end = from_json(frames[-1][1])
        end["rows"]["events"] = 0
        return [*frames[: place + 1], ("rows", empty), *frames[place + 2 : -1], ("done", to_json(end))]

    changes = (
        replaced(b"semantic", b"working\0"),
        replaced(b"customer:cust_1", b"customer:cust_2"),
        replaced(b"INTERNAL", b"EXTERNAL"),
        replaced(b"boris", b"clara"),
        without_the_events,
    )
    for number, change in enumerate(changes):
        with pytest.raises(BackupBroken):
            restore(elsewhere, people.tenant_id, rewritten(content, signed_by, signer, change), signed_by)
            pytest.fail(f"change {number} was not noticed")
    assert nothing_is_there(elsewhere, people)


@pytest.mark.rule("IMP-3")
@pytest.mark.rule("ISO-1")
def test_rows_of_another_tenant_and_tables_of_no_tenant_are_refused_by_the_database(
    fabric: Fabric, elsewhere: Fabric, people: People, others: People, written: tuple[bytes, str]
) -> None:
    content, signed_by = written
    signer = signer_of(fabric, people.tenant_id)
    here, there = people.tenant_id.encode(), others.tenant_id.encode()
    assert len(here) == len(there)

    def of_another(frames: Frames) -> Frames:
        return [(kind, inner.replace(here, there) if kind == "rows" else inner) for kind, inner in frames]

    def of_the_server(frames: Frames) -> Frames:
        table = to_json({"name": "schema_migrations", "columns": ["version"]})
        return [frames[0], ("table", table), *frames[1:]]

    for change in (of_another, of_the_server):
        with pytest.raises(BackupBroken):
            restore(elsewhere, people.tenant_id, rewritten(content, signed_by, signer, change), signed_by)
    with pytest.raises(InvalidInput, match="not the tenant"):
        restore(elsewhere, others.tenant_id, content, signed_by)
    assert nothing_is_there(elsewhere, people) and nothing_is_there(elsewhere, others)


@pytest.mark.rule("ISO-6")
def test_a_frame_that_would_unpack_to_more_than_a_frame_holds_is_refused(
    fabric: Fabric, elsewhere: Fabric, people: People, written: tuple[bytes, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    content, signed_by = written
    signer = signer_of(fabric, people.tenant_id)
    real = zlib.compress
    bomb = real(bytes(2000 * FRAME), 9)
    assert len(bomb) > FRAME  # Cut to what a frame may have: it still unpacks to hundreds of times as much.

    def with_a_bomb(frames: Frames) -> Frames:
        monkeypatch.setattr(
            zlib, "compress", lambda inner, level: bomb[:FRAME] if inner == b"bomb" else real(inner, level)
        )
        return [frames[0], ("rows", b"bomb")]

    forged = rewritten(content, signed_by, signer, with_a_bomb)
    with pytest.raises(BackupBroken, match="longer than a frame"):
        restore(elsewhere, people.tenant_id, forged, signed_by)
    long = content[:23] + b"\xff\xff\xff\xff" + content[27:]
    with pytest.raises(BackupBroken):
        restore(elsewhere, people.tenant_id, long, signed_by)


@pytest.mark.rule("IMP-3")
def test_a_tenant_that_is_there_is_never_written_over(
    fabric: Fabric, elsewhere: Fabric, people: People, written: tuple[bytes, str]
) -> None:
    content, signed_by = written
    with pytest.raises(Conflict):
        restore(fabric, people.tenant_id, content, signed_by)
    restore(elsewhere, people.tenant_id, content, signed_by)
    with pytest.raises(Conflict):
        restore(elsewhere, people.tenant_id, content, signed_by)
    assert elsewhere.verify(people.auditor).ok
    (event,) = [one for one in elsewhere.events(people.auditor, limit=1000) if one.type == "memory.restored"]
    assert event.actor == "ada" and event.data["memories"] == 3
    (told,) = [one for one in fabric.events(people.auditor, limit=1000) if one.type == "memory.exported"]
    assert told.data["kind"] == "tenant" and told.data["backup_id"] == event.data["backup_id"]


@pytest.mark.rule("IMP-3")
@pytest.mark.parametrize("login", ["owner", "writer", "privacy", "jobs"])
def test_the_database_lets_nobody_write_the_past_of_a_tenant_that_is_there(
    server: TestServer, database: str, fabric: Fabric, people: People, login: str
) -> None:
    promoted(fabric, people, "email")
    with server.connect(database, f"muniment_{login}") as connection:
        connection.execute("SELECT set_config('muniment.tenant', %s, false)", [people.tenant_id])
        mark = [people.tenant_id, people.tenant_id]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(
                "INSERT INTO tenant_restores SELECT %s, 'bak_1', now(), 'eve', sha256('x'), transaction_mark()",
                mark[:1],
            )
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(
                "INSERT INTO ticks (tenant_id, seq, at, prev_seq, prev_at, txid)"
                " SELECT tenant_id, seq + 1, at, seq, at, '7'::xid8 FROM ticks WHERE tenant_id = %s AND tenant_id = %s"
                " ORDER BY seq DESC LIMIT 1",
                mark,
            )


@pytest.mark.rule("ERR-2")
def test_a_restore_that_is_interrupted_at_any_table_leaves_nothing_and_can_be_repeated(
    elsewhere: Fabric, people: People, written: tuple[bytes, str]
) -> None:
    content, signed_by = written
    for stop in ("ticks", "captures", "memories", "memory_scope"):

        def interrupt(table: str, _rows: int, stop: str = stop) -> None:
            if table == stop:
                raise MunimentError("the process ends here")

        with pytest.raises(MunimentError, match="ends here"):
            restore(elsewhere, people.tenant_id, content, signed_by, on_progress=interrupt)
        assert nothing_is_there(elsewhere, people)
    assert restore(elsewhere, people.tenant_id, content, signed_by).memories == 3


def test_a_backup_holds_no_text_and_no_name_in_the_open(
    fabric: Fabric, people: People, written: tuple[bytes, str]
) -> None:
    content, _ = written
    assert people.tenant_id.encode() not in content and b"cust_1" not in content and b"value 1" not in content


def test_keys_are_read_only_in_their_own_form(fabric: Fabric) -> None:
    secret, public = new_receiver()
    assert receiver_key(public).public_bytes_raw()
    for wrong in ("", secret, public[:-3], public + "A", "muniment-public-***", public.replace("public", "signer")):
        with pytest.raises(InvalidInput, match="muniment-public-"):
            receiver_key(wrong)
    with pytest.raises(NotFound):
        backup(fabric, "no_such_tenant")
