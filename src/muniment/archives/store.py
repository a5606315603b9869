"""Archived captures: where they are, and what is still to be read of them."""

from collections.abc import Sequence
from itertools import groupby

from anyio.to_thread import run_sync

from muniment.archives.folder import Archives, Written
from muniment.archives.format import Heading
from muniment.database import cursors
from muniment.database.storage import Row, Transaction
from muniment.errors import ArchiveBroken, Conflict
from muniment.model.archive import Archive

CURSOR = "archive"
DROPPED, BLANKED = "archive_dropped", "archive_blanked"


async def take_turn(tx: Transaction) -> None:
    """One at a time writes, changes or removes a tenant's archives. It comes before the tenant's clock."""
    await cursors.lock(tx, CURSOR)


async def hold_off(tx: Transaction) -> None:
    """Let no capture leave for an archive beside this transaction. It comes before the tenant's clock."""
    await tx.row("archive.hold_off")


async def rows(tx: Transaction, archives: Archives, capture_ids: list[str]) -> list[Row]:
    """Those of the captures that are in archives, as they were; sealed, or without content where they were erased.

    What was dropped after its retention is left out. Raises `ArchiveBroken`.
    """
    places = await tx.rows("archive.places", capture_ids=capture_ids)
    try:
        return await _read(archives, tx.tenant_id, places)
    except ArchiveBroken:
        # Written anew, or dropped, since it was asked where it is.
        again = await tx.rows("archive.places", capture_ids=capture_ids)
        if again == places:
            raise
        return await _read(archives, tx.tenant_id, again)


async def archive_of(tx: Transaction, capture_id: str) -> str | None:
    """The archive that a capture went to."""
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
    """The latest first; raises `NotFound` for an `after` that is no archive of the tenant."""
    place = await cursors.page_start(tx, "archive.place", after, latest_first=True)
    return [_archive(row) for row in await tx.rows("archive.list", count=count, **place)]


def _archive(row: Row) -> Archive:
    dropped_at = row["written_at"] if row["dropped"] else None
    return Archive.model_validate(
        {name: row[name] for name in Archive.model_fields if name in row}
        | {"digest": row["digest"].hex(), "dropped_at": dropped_at}
    )


async def record(tx: Transaction, heading: Heading, written: Written, captures: Sequence[Row]) -> None:
    """Let those captures go, which a finished file holds; raises `Conflict` where one is needed again since."""
    tick = await tx.tick()
    shared = {"archive_id": heading.archive_id, "at": tick.at}
    tx.defer(
        "archive.record",
        **shared,
        seq=tick.seq,
        kind=heading.kind,
        ontology_version=heading.ontology_version,
        captures=written.captures,
        last_at=max(row["captured_at"] for row in captures),
    )
    await record_file(tx, heading.archive_id, 1, written)
    names = ("capture_id", "seq", "captured_at", "holder", "subject", "user_id", "entity", "vouched")
    tx.defer_many(
        "archive.record_captures", [[row[name] for name in names] for row in captures], archive_id=heading.archive_id
    )
    this = {"archive_id": heading.archive_id}
    unsettled, _ = await tx.gather(("archive.unsettled", this), ("archive.collect", this))
    if unsettled:
        raise Conflict("a capture is needed again since it was chosen for the archive; try again")
    tx.emit(
        "memory.note",
        "auto",
        about="archived",
        kind=heading.kind,
        ontology_version=heading.ontology_version,
        **_said(heading.archive_id, 1, written),
    )


async def record_file(
    tx: Transaction, archive_id: str, revision: int, written: Written, *, dropped: bool = False
) -> None:
    """Write down the file of an archive as it is from this number on."""
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
    """Another revision of a file, or its end (`archive_dropped`)."""
    await record_file(tx, archive_id, revision, written, dropped=about == DROPPED)
    tx.emit("memory.note", "auto", about=about, **_said(archive_id, revision, written))


def _said(archive_id: str, revision: int, written: Written) -> dict[str, object]:
    """What the event of a file says of it; the audit chain seals it, so that the file can be held against it."""
    return {
        "archive_id": archive_id,
        "revision": revision,
        "captures": written.captures,
        "digest": written.digest.hex(),
    }
