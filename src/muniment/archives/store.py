"""Archived captures in the database: which archive they are in, and the files of the archives."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from anyio.to_thread import run_sync

from muniment.archives.folder import Archives, Written
from muniment.archives.format import Heading
from muniment.database import cursors
from muniment.database.rows import fields_of
from muniment.database.storage import Row, Transaction
from muniment.errors import ArchiveBroken, Conflict
from muniment.model.archive import Archive

CURSOR = "archive"
DROPPED, BLANKED = "archive_dropped", "archive_blanked"


async def take_turn(tx: Transaction) -> None:
    """Lock the tenant's archives: one process at a time writes, changes or removes them. Call it before the tick."""
    await cursors.lock(tx, CURSOR)


async def block_archiving(tx: Transaction) -> None:
    """Keep captures from moving to an archive during this transaction. Call it before the tenant's tick."""
    await tx.row("archive.hold_off")


async def rows(tx: Transaction, archives: Archives, capture_ids: list[str]) -> list[Row]:
    """The archived captures among these, as rows of the database; sealed, or without content if they were erased.

    Captures in archives that were dropped are left out. Raises `ArchiveBroken`.
    """
    places = await tx.rows("archive.places", capture_ids=capture_ids)
    try:
        return await _read(archives, tx.tenant_id, places)
    except ArchiveBroken:
        # Rewritten, or dropped, since its place was read.
        again = await tx.rows("archive.places", capture_ids=capture_ids)
        if again == places:
            raise
        return await _read(archives, tx.tenant_id, again)


async def archive_of(tx: Transaction, capture_id: str) -> str | None:
    """The archive that a capture moved to, or None."""
    row = await tx.row("archive.places", capture_ids=[capture_id])
    return row["archive_id"] if row is not None else None


async def _read(archives: Archives, tenant_id: str, places: Sequence[Row]) -> list[Row]:
    found: list[Row] = []
    for archive_id, group in groupby([one for one in places if not one["dropped"]], lambda one: one["archive_id"]):
        wanted = {one["capture_id"]: one for one in group}
        file = next(iter(wanted.values()))
        picked = await run_sync(
            archives.pick, tenant_id, archive_id, file["revision"], file["digest"], frozenset(wanted)
        )
        if picked.keys() != wanted.keys():
            raise ArchiveBroken(f"the file of archive {archive_id} lacks captures")
        found += [row | {"content": b""} if wanted[name]["erased"] else row for name, row in picked.items()]
    return found


async def listed(tx: Transaction, count: int, after: str | None = None) -> list[Archive]:
    """A page of the archives, the latest first; raises `NotFound` for an `after` that is no archive of the tenant."""
    start = await cursors.page_start(tx, "archive.place", after, latest_first=True)
    return [_archive(row) for row in await tx.rows("archive.list", count=count, **start)]


def _archive(row: Row) -> Archive:
    dropped_at = row["written_at"] if row["dropped"] else None
    return Archive(**fields_of(Archive, row, digest=row["digest"].hex(), dropped_at=dropped_at))


async def record(tx: Transaction, heading: Heading, written: Written, captures: Sequence[Row]) -> None:
    """Record a finished file, and delete its captures from the database; raises `Conflict` if one is needed again."""
    tick = await tx.tick()
    archive: dict[str, Any] = {"archive_id": heading.archive_id}
    group = {"kind": heading.kind, "ontology_version": heading.ontology_version}
    last_at = max(row["captured_at"] for row in captures)
    counts = {"captures": written.captures, "last_at": last_at}
    tx.defer("archive.record", **archive, **group, **counts, seq=tick.seq, at=tick.at)
    await record_file(tx, heading.archive_id, 1, written)
    names = ("capture_id", "seq", "captured_at", "holder", "subject", "user_id", "entity", "vouched")
    tx.defer_many("archive.record_captures", [[row[name] for name in names] for row in captures], **archive)
    unsettled, _ = await tx.gather(("archive.unsettled", archive), ("archive.collect", archive))
    if unsettled:
        raise Conflict("a capture is needed again since it was chosen for the archive; try again")
    tx.emit("memory.note", "auto", about="archived", **group, **_in_event(heading.archive_id, 1, written))


async def record_file(
    tx: Transaction, archive_id: str, revision: int, written: Written, *, dropped: bool = False
) -> None:
    """Record the file of an archive from this sequence number on."""
    tick = await tx.tick()
    tx.defer(
        "archive.record_file",
        archive_id=archive_id,
        revision=revision,
        digest=written.digest,
        bytes=written.size,
        dropped=dropped,
        at=tick.at,
        seq=tick.seq,
    )


async def record_change(tx: Transaction, about: str, archive_id: str, revision: int, written: Written) -> None:
    """Record another revision of a file, or its end (`archive_dropped`)."""
    await record_file(tx, archive_id, revision, written, dropped=about == DROPPED)
    tx.emit("memory.note", "auto", about=about, **_in_event(archive_id, revision, written))


def _in_event(archive_id: str, revision: int, written: Written) -> dict[str, object]:
    """What the event of a file says; the audit chain seals it, so that the file can be checked against it."""
    return {
        "archive_id": archive_id,
        "revision": revision,
        "captures": written.captures,
        "digest": written.digest.hex(),
    }
