"""Backups of one tenant, sealed for a receiver: taken along here, brought in elsewhere (IMP-3).

Rows are copied as they rest. Data keys stay wrapped by the tenant's key, and that one is wrapped for the receiver. The
signature is made with a key that is derived from the tenant's own data key, so that whoever has not opened the tenant
cannot sign for it, and stays the same from backup to backup.
"""

from asyncio import Lock
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, BinaryIO

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from muniment.archives.folder import Archives
from muniment.audit.verify import Verify, verify
from muniment.context import FabricContext
from muniment.database import tenant_copy
from muniment.database.address import Address
from muniment.database.migrate import migrations
from muniment.database.sealing import SubjectKey, Vault
from muniment.database.storage import Transaction, as_owner
from muniment.database.tenant_copy import CopyIn, Table
from muniment.errors import BackupBroken, Conflict, InvalidInput, NotFound, SealBroken
from muniment.loops import give_way
from muniment.model.ids import make_id
from muniment.transfer.backup_files import FileIn, file_pieces
from muniment.transfer.backup_format import (
    FRAME,
    BackupReader,
    BackupWriter,
    Kind,
    Signed,
    document,
    fingerprint,
    signer_text,
)

Progress = Callable[[str, int], None]
_SIGNATURE = "tenant-backup-signature"
_KEYS_AT_ONCE = 1000


@dataclass
class TenantBackup:
    """What a backup holds."""

    backup_id: str
    tenant_id: str
    created_at: datetime
    signed_by: str
    rows: dict[str, int] = field(default_factory=dict[str, int])
    files: int = 0
    size: int = 0

    @property
    def memories(self) -> int:
        """How many memories it holds, retracted and expired ones too."""
        return self.rows.get("memories", 0)


def _signer(own: SubjectKey) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(own.derived(_SIGNATURE))


# ---- taking a tenant along ----


async def signed_by(context: FabricContext, tenant_id: str) -> str:
    """Return the public key that signs the backups of a tenant; raises `NotFound` for a tenant without anything."""
    async with context.transaction(tenant_id, "auditor") as tx:
        own = await context.vault.existing_tenant_data_key(tx)
    if own is None:
        raise NotFound("there is nothing of such a tenant", field="tenant")
    return signer_text(_signer(own).public_key().public_bytes_raw())


async def write_backup(
    context: FabricContext,
    address: Address,
    tenant_id: str,
    by: str,
    receiver: X25519PublicKey,
    stream: BinaryIO,
    on_progress: Progress | None = None,
) -> TenantBackup:
    """Write a backup of a tenant to a stream, a block at a time; an event tells of it before the first byte.

    It is one snapshot: what is written meanwhile is not in it. Raises `NotFound` for a tenant that does not exist.
    """
    await signed_by(context, tenant_id)
    backup_id = make_id("bak", context.now())
    async with context.transaction(tenant_id, "writer") as tx:
        tx.change_nothing_visible()
        what = {"kind": "tenant", "backup_id": backup_id, "receiver": fingerprint(receiver)}
        tx.emit("memory.exported", by, **what)
    async with as_owner(address, tenant_id, context.now(), read_only=True) as tx:
        own = await context.vault.existing_tenant_data_key(tx)
        assert own is not None, "it was there a moment ago"
        signer = _signer(own)
        done = TenantBackup(backup_id, tenant_id, tx.now, signer_text(signer.public_key().public_bytes_raw()))
        writer = BackupWriter(stream, receiver, signer)
        writer.document("begin", await _beginning(tx, context.vault, writer, done))
        for table in await tenant_copy.tables(tx):
            writer.document("table", {"name": table.name, "columns": table.columns})
            done.rows[table.name] = await _write_rows(tx, table, writer)
            if on_progress is not None:
                on_progress(table.name, done.rows[table.name])
        done.files = await _write_files(tx, context.archives, writer)
        writer.document("done", {"rows": done.rows, "files": done.files})
        writer.finish()
    done.size = writer.size
    return done


async def _beginning(tx: Transaction, vault: Vault, writer: BackupWriter, done: TenantBackup) -> dict[str, Any]:
    keys = [
        {"version": version, "key": writer.wrapped(tx.tenant_id, version, key), "created_at": created_at.isoformat()}
        for version, (key, created_at) in (await vault.taken_along(tx)).items()
    ]
    return {
        "backup_id": done.backup_id,
        "tenant_id": tx.tenant_id,
        "created_at": done.created_at.isoformat(),
        "schema": _schema(),
        "keys": keys,
    }


def _schema() -> int:
    return int(migrations()[-1].version)


async def _write_rows(tx: Transaction, table: Table, writer: BackupWriter) -> int:
    """Write the rows of a table in frames; returns how many."""
    count = 0
    async for block in _blocks(tenant_copy.copy_out(tx, table)):
        writer.frame("rows", block.content)
        count += block.pieces
        await give_way()
    # One piece is a row; the first and the last are the format's own.
    return max(0, count - 1)


@dataclass(frozen=True)
class _Block:
    content: bytes
    pieces: int


async def _blocks(pieces: AsyncIterator[bytes]) -> AsyncIterator[_Block]:
    """Join pieces to blocks that a frame holds."""
    held = bytearray()
    count = 0
    async for piece in pieces:
        held += piece
        count += 1
        while len(held) >= FRAME:
            yield _Block(bytes(held[:FRAME]), count)
            del held[:FRAME]
            count = 0
    if held or count:
        yield _Block(bytes(held), count)


async def _write_files(tx: Transaction, archives: Archives, writer: BackupWriter) -> int:
    """Write the archive files that the rows tell of."""
    files = 0
    for row in await tx.rows("copying.archive_files"):
        if not row["dropped"]:
            writer.document("file", {"archive_id": row["archive_id"], "revision": row["revision"]})
            for piece in file_pieces(archives, tx.tenant_id, row["archive_id"], row["revision"], row["digest"], FRAME):
                writer.frame("rows", piece)
                await give_way()
            files += 1
    return files


# ---- bringing a tenant in ----


async def restore(
    context: FabricContext,
    address: Address,
    tenant_id: str,
    by: str,
    stream: BinaryIO,
    signed: Signed,
    secret: X25519PrivateKey,
    on_progress: Progress | None = None,
) -> TenantBackup:
    """Bring in a tenant from a backup whose signature was checked, in one transaction, by the owner of the tables.

    On a cluster it is a transaction of the node that will hold the tenant, which has to be reached from here.

    Before the commit every key is opened, the chain and the digests of all rows are verified, and an event tells of the
    restore. Raises `Conflict` where there is such a tenant, and `BackupBroken`; nothing is kept then.
    """
    reader = BackupReader(stream, signed, secret)
    frames = reader.frames()
    begun = _read_beginning(frames, tenant_id)
    done = TenantBackup(begun["backup_id"], tenant_id, begun["created_at"], signed.heading.signer)
    # A vault of its own: if nothing is committed, no key of this tenant is remembered.
    vault = context.vault.apart()
    files: list[FileIn] = []
    try:
        async with as_owner(address, tenant_id, context.now(), row_keys=vault, on_node=True) as tx:
            await _begin(tx, vault, reader, begun, by, signed.digest)
            await _read_tables(tx, context.archives, frames, done, files, on_progress)
            await tenant_copy.check_references(tx)
            counted = {"memories": done.memories, "captures": done.rows.get("captures", 0)}
            tx.emit("memory.restored", by, backup_id=done.backup_id, **counted)
            await tx.write_events()
            await _check(tx, vault, done, files, signed)
            for one in files:
                one.put_in_place()
    except BaseException:
        for one in files:
            one.discard()
        raise
    return done


def _read_beginning(frames: Iterator[tuple[Kind, bytes]], tenant_id: str) -> dict[str, Any]:
    kind, content = next(frames, ("done", b"{}"))
    begun = document(content)
    try:
        if kind != "begin":
            raise BackupBroken("it does not begin as it should")
        if begun["tenant_id"] != tenant_id:
            raise InvalidInput("is not the tenant of this backup", field="tenant")
        if begun["schema"] != _schema():
            theirs = f"it is of schema {begun['schema']}, and this program's is {_schema()}"
            raise BackupBroken(f"{theirs}: bring both installations to one version, and export again")
        return begun | {"created_at": datetime.fromisoformat(begun["created_at"])}
    except (KeyError, TypeError, ValueError):
        raise BackupBroken("its beginning has other fields than it should") from None


async def _begin(
    tx: Transaction, vault: Vault, reader: BackupReader, begun: dict[str, Any], by: str, digest: bytes
) -> None:
    """Record the restore, which is refused where the tenant is there, and bring in the tenant's keys."""
    await tenant_copy.begin_restore(tx, begun["backup_id"], by, digest)
    try:
        keys = [(one["version"], one["key"], datetime.fromisoformat(one["created_at"])) for one in begun["keys"]]
    except (KeyError, TypeError, ValueError):
        raise BackupBroken("its keys are not as they should be") from None
    for version, wrapped, created_at in keys:
        await vault.take_in(tx, version, reader.key(tx.tenant_id, version, wrapped), created_at)


async def _read_tables(
    tx: Transaction,
    archives: Archives,
    frames: Iterator[tuple[Kind, bytes]],
    done: TenantBackup,
    files: list[FileIn],
    on_progress: Progress | None,
) -> None:
    """Copy in tables and files until the end; the end must name as many rows of each as there were."""
    ours = {table.name: table for table in await tenant_copy.tables(tx)}
    places = await tenant_copy.places(tx)
    taking: CopyIn | FileIn | None = None
    name = ""
    for kind, content in frames:
        if kind == "rows":
            if taking is None:
                raise BackupBroken("rows belong to no table")
            await taking.add(content)
            continue
        if isinstance(taking, CopyIn):
            done.rows[name] = await taking.finish()
            if on_progress is not None:
                on_progress(name, done.rows[name])
        elif taking is not None:
            taking.finish()
        if kind == "done":
            _check_end(document(content), done, len(files), ours)
            break
        begun = document(content)
        if kind == "table":
            name = str(begun.get("name"))
            if name in done.rows or begun != {
                "name": name,
                "columns": list(ours[name].columns) if name in ours else None,
            }:
                raise BackupBroken("it has a table that this schema has not, or has otherwise")
            taking = CopyIn(tx.connection, ours[name], places.get(name, name))
            await taking.begin()
        elif kind == "file":
            taking = FileIn(archives, tx.tenant_id, begun)
            files.append(taking)
        else:
            raise BackupBroken("it begins twice")
    else:
        raise BackupBroken("it ends too early: a part is missing")
    if next(frames, None) is not None:
        raise BackupBroken("something stands behind its end")


def _check_end(end: dict[str, Any], done: TenantBackup, files: int, ours: dict[str, Table]) -> None:
    if end != {"rows": done.rows, "files": files} or set(done.rows) != set(ours):
        raise BackupBroken("it does not hold what its end says")
    done.files = files


# ---- what must hold before the commit ----


async def _check(tx: Transaction, vault: Vault, done: TenantBackup, files: list[FileIn], signed: Signed) -> None:
    """Check keys, signer, chain, rows and files; raises `BackupBroken`."""
    try:
        own = await vault.existing_tenant_data_key(tx)
        await _check_keys(tx, vault)
    except SealBroken:
        raise BackupBroken("a data key does not open under the tenant's key") from None
    if own is None or signer_text(_signer(own).public_key().public_bytes_raw()) != signed.heading.signer:
        raise BackupBroken("it was not signed with the key of this tenant")
    whole = Verify(head=None, cursor=None, count=None)
    result = await verify(_reusing(tx), vault, whole, None, open_keys=_reusing(tx))
    if not result.ok:
        first = result.breaks[0]
        raise BackupBroken(f"its chain does not verify: {first.kind}, {first.why}")
    wanted = {
        (row["archive_id"], row["revision"]): row["digest"]
        for row in await tx.rows("copying.archive_files")
        if not row["dropped"]
    }
    if {(one.archive_id, one.revision): one.digest for one in files} != wanted:
        raise BackupBroken("its archive files are not those that its rows tell of")
    if (clock := await tx.row("tenant.clock")) is None or clock["at"] is None:
        raise BackupBroken("it has no clock")


async def _check_keys(tx: Transaction, vault: Vault) -> None:
    tenant = await vault.reread(tx)
    after = ""
    while rows := await tx.rows("copying.data_keys", after=after, count=_KEYS_AT_ONCE):
        for row in rows:
            tenant.subject(row["holder"], row["wrapped_key"], row["key_version"])
        after = rows[-1]["holder"]
        await give_way()


def _reusing(tx: Transaction) -> Any:
    """Open one transaction again and again, one user at a time: what is verified is not committed yet."""
    turn = Lock()

    @asynccontextmanager
    async def reopened() -> AsyncGenerator[Transaction]:
        async with turn:
            yield tx

    return reopened


__all__ = ["Conflict", "TenantBackup", "restore", "signed_by", "write_backup"]
