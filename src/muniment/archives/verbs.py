"""Compaction: old captures go to archive files; files are tidied, blanked after an erasure, dropped, and checked.

Whatever is killed where: a file is finished before the database speaks of it, and goes only after the database stopped
to. What nothing speaks of is tidied away by the next run, unless it holds what is nowhere else.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from anyio.to_thread import run_sync

from muniment.archives import store as ledger
from muniment.archives.folder import Archives, Draft, File, Written
from muniment.archives.format import Heading
from muniment.audit import provenance_store as trail
from muniment.context import FabricContext
from muniment.database.locks import block_erasures
from muniment.database.storage import LATEST, Row, Transaction
from muniment.errors import ArchiveBroken, PurgeIncomplete
from muniment.model.archive import Archive, ArchiveCheck, ArchiveFault, ArchiveProblem
from muniment.model.context import Principal
from muniment.model.ids import make_id
from muniment.model.inputs import Listing
from muniment.standby_reads import reading
from muniment.verbs.declaration import verb

# Of one file: it is read as a whole, and while it is recorded the tenant's other writers wait.
CAPTURES, SIZE = 2_500, 64 * 1024 * 1024
PAGE = 200
DROPPED_AT_ONCE = 100
PROBLEMS_TOLD = 100

Progress = Callable[[int, int], None]


async def compact_some(context: FabricContext, tenant_id: str, horizons: Mapping[str, timedelta]) -> int:
    """One archive of what is older than the horizon of its kind; how many captures went, 0 when there are none.

    INVARIANT: no erasure passes between reading a capture and letting it go, so that none reaches only the row.
    """
    async with context.transaction(tenant_id, "jobs") as tx:
        await ledger.take_turn(tx)
        await block_erasures(tx)
        packed = await _packed(context, tenant_id, {kind: tx.now - age for kind, age in sorted(horizons.items())})
        if packed is None:
            return 0
        await ledger.record(tx, *packed)
        return len(packed[2])


async def _packed(
    context: FabricContext, tenant_id: str, before: Mapping[str, datetime]
) -> tuple[Heading, Written, list[Row]] | None:
    """A finished file, and what the database keeps of each capture in it; read as the auditor, for jobs reads none."""
    async with context.transaction(tenant_id, "auditor") as tx:
        group = await tx.row("archive.next", kinds=list(before), befores=list(before.values()))
        if group is None:
            return None
        heading = Heading(tenant_id, make_id("arc", tx.now), group["kind"], group["ontology_version"])
        draft = await run_sync(context.archives.begin, heading, 1)
        try:
            captures = await _fill(tx, draft, heading, before[heading.kind])
            return (heading, await run_sync(draft.finish), captures) if captures else None
        finally:
            draft.discard()


async def _fill(tx: Transaction, draft: Draft, heading: Heading, before: datetime) -> list[Row]:
    """Page by page, until the file is full or there are no more; gives what the database keeps of each."""
    taken: list[Row] = []
    group: dict[str, Any] = {"kind": heading.kind, "ontology_version": heading.ontology_version, "before": before}
    seq, capture_id = 0, ""
    while room := min(PAGE, CAPTURES - len(taken)):
        rows = await tx.rows("archive.page", **group, seq=seq, capture_id=capture_id, count=room)
        count = await run_sync(partial(draft.add, rows, most=SIZE))
        taken += [{name: said for name, said in row.items() if name != "content"} for row in rows[:count]]
        if count < room:
            break
        seq, capture_id = rows[-1]["seq"], rows[-1]["capture_id"]
    return taken


async def drop_outlived(context: FabricContext, tenant_id: str, retention: timedelta) -> int:
    """Drop the archives whose last capture is older than that; how many."""
    async with context.transaction(tenant_id, "jobs") as tx:
        await ledger.take_turn(tx)
        gone = await tx.rows("archive.outlived", before=tx.now - retention, count=DROPPED_AT_ONCE)
        for row in gone:
            nothing = Written(row["digest"], 0, row["captures"])
            await ledger.record_change(tx, ledger.DROPPED, row["archive_id"], row["revision"] + 1, nothing)
    if gone:
        await tidy(context, tenant_id)
    return len(gone)


async def tidy(context: FabricContext, tenant_id: str) -> int:
    """Remove the files that a killed run and earlier revisions left; return how many.

    A file of an archive that the database does not know is removed only if everything in it is known: it may belong to
    another database, or be newer than a database that was restored. For the same reason a later revision of an archive
    whose own file is missing stays.
    """
    archives = context.archives
    async with context.transaction(tenant_id, "jobs") as tx:
        await ledger.take_turn(tx)
        there = await run_sync(archives.files, tenant_id)
        left_over, unknown, _ = await _sorted_out(tx, there)
        for file in unknown:
            try:
                names = await run_sync(archives.names, file, tenant_id)
            except ArchiveBroken:
                continue
            async with context.transaction(tenant_id, "auditor") as auditor_tx:
                known = await auditor_tx.rows("archive.known", capture_ids=names)
            if len(known) == len(names):
                left_over.append(file)
        await run_sync(archives.remove, left_over)
        return len(left_over)


async def _sorted_out(tx: Transaction, there: list[File]) -> tuple[list[File], list[File], list[File]]:
    """Sort out the files that are in no use: left over, unknown, later.

    Left over are files that are not finished, and revisions that others have replaced. Unknown are files of archives
    that the database does not have. Later are revisions that it does not know, of archives whose own file is missing:
    the database was restored from before them.
    """
    if not there:
        return [], [], []
    rows = await tx.rows("archive.revisions", archive_ids=sorted({file.archive_id for file in there}))
    now = {row["archive_id"]: None if row["dropped"] else row["revision"] for row in rows}
    finished = [file for file in there if file.finished]
    whole = {(file.archive_id, file.revision) for file in finished}
    later = [
        file
        for file in finished
        if (revision := now.get(file.archive_id)) is not None
        and file.revision > revision
        and (file.archive_id, revision) not in whole
    ]
    left_over = [
        file
        for file in there
        if not file.finished or (file.archive_id in now and now[file.archive_id] != file.revision and file not in later)
    ]
    return left_over, [file for file in finished if file.archive_id not in now], later


async def blank(context: FabricContext, tenant_id: str) -> int:
    """Write anew each archive that an erasure reached and was not purged of, without the content it reached (ERA-3).

    Gives how many captures were blanked. Nothing of the files of before is left. Raises `PurgeIncomplete` where they
    cannot be had.
    """
    async with context.transaction(tenant_id, "jobs") as tx:
        reached = [row["archive_id"] for row in await tx.rows("archive.reached")]
    if not context.archives.kept:
        if reached:
            raise PurgeIncomplete("archives hold what was erased, and no folder is set: MUNIMENT_ARCHIVES")
        return 0
    await tidy(context, tenant_id)
    blanked = 0
    for archive_id in reached:
        blanked += await _blank_one(context, tenant_id, archive_id)
    if blanked:
        await tidy(context, tenant_id)
    return blanked


async def _blank_one(context: FabricContext, tenant_id: str, archive_id: str) -> int:
    async with context.transaction(tenant_id, "jobs") as tx:
        await ledger.take_turn(tx)
        row = await tx.row("archive.one", archive_id=archive_id)
        if row is None:
            return 0
        erased = {one["capture_id"] for one in await tx.rows("archive.to_blank", archive_id=archive_id)}
        heading = Heading(tenant_id, archive_id, row["kind"], row["ontology_version"])
        try:
            written, blanked = await run_sync(_rewrite, context.archives, heading, row, erased)
        except ArchiveBroken as error:
            raise PurgeIncomplete(f"an archive holds what was erased, and cannot be written anew: {error}") from error
        if written is not None:
            await ledger.record_change(tx, ledger.BLANKED, archive_id, row["revision"] + 1, written)
        return blanked


def _rewrite(archives: Archives, heading: Heading, row: Row, erased: set[str]) -> tuple[Written | None, int]:
    """The next revision of a file, those captures blanked; none where they were before."""
    whole = list(archives.read(heading.tenant_id, heading.archive_id, row["revision"], row["digest"]))
    reached = [one for one in whole if one["capture_id"] in erased and one["content"]]
    if not reached:
        return None, 0
    for one in reached:
        one["content"] = b""
    draft = archives.begin(heading, row["revision"] + 1)
    try:
        draft.add(whole)
        return draft.finish(), len(reached)
    except BaseException:
        draft.discard()
        raise


@verb("archives", right="audit", http="GET /archives", page_key="archive_id", standby=True)
async def list_archives(context: FabricContext, auditor: Principal, request: Listing) -> list[Archive]:
    """List the archives of old captures, including dropped ones, the latest first.

    `after` is the id of the last of the previous page. Raises `NotFound`.
    """
    async with reading(context, auditor.tenant_id) as tx:
        return await ledger.listed(tx, request.limit, request.after)


@verb("verify_archives", right="audit", effect="read", http="POST /archives/verify", slow=True)
async def verify_archives(
    context: FabricContext, auditor: Principal, *, on_progress: Progress | None = None
) -> ArchiveCheck:
    """Verify that every archive file exists and holds exactly what was archived; returns the problems."""
    tenant_id = auditor.tenant_id
    problems: list[ArchiveProblem] = []
    async with context.transaction(tenant_id, "auditor") as tx:
        rows = await tx.rows("archive.list", seq=LATEST, after="", count=2**31 - 1)
    first = await _not_in_use(context, tenant_id)
    for done, row in enumerate(rows):
        # A transaction each: a tenant of years has many, and reading takes its time.
        if not row["dropped"]:
            problems += await _checked(context, tenant_id, row)
        if on_progress is not None:
            on_progress(done + 1, len(rows))
    # Looked at twice: what is being written or removed right now is in order.
    second = await _not_in_use(context, tenant_id)
    problems += [problem for file, problem in second.items() if first.get(file) == problem]
    return ArchiveCheck(
        ok=not problems,
        archives=len(rows),
        captures=sum(row["captures"] for row in rows if not row["dropped"]),
        dropped=sum(row["dropped"] for row in rows),
        problems=tuple(problems[:PROBLEMS_TOLD]),
        more=len(problems) > PROBLEMS_TOLD,
    )


async def _checked(context: FabricContext, tenant_id: str, row: Row) -> list[ArchiveProblem]:
    async with context.transaction(tenant_id, "auditor") as tx:
        now = await tx.row("archive.one", archive_id=row["archive_id"])
        if now is None:
            return []  # Dropped just now.
        index = {one["capture_id"] for one in await tx.rows("archive.index", archive_id=row["archive_id"])}
        events = await trail.events_at(tx, {now["file_seq"]}, set())
    recorded = {"archive_id": row["archive_id"], "revision": now["revision"], "digest": now["digest"].hex()}

    def problem(kind: ArchiveFault, why: str, capture_id: str | None = None) -> ArchiveProblem:
        return ArchiveProblem(
            kind=kind, archive_id=row["archive_id"], revision=now["revision"], capture_id=capture_id, why=why
        )

    found: list[ArchiveProblem] = []
    if not any(recorded.items() <= item.items() for event in events for item in event.items):
        found.append(problem("unrecorded", "the log speaks of no file with this digest"))
    if len(index) != now["captures"]:
        found.append(problem("not_in_index", f"the index has {len(index)} of {now['captures']} captures"))
    if not await run_sync(context.archives.has, tenant_id, now["archive_id"], now["revision"]):
        return [*found, problem("missing", "the file is not there")]
    try:
        names, heading = await run_sync(_names, context.archives, tenant_id, now)
    except ArchiveBroken as error:
        return [*found, problem("changed", error.message)]
    if (heading.kind, heading.ontology_version) != (now["kind"], now["ontology_version"]):
        found.append(problem("changed", "the file says it is of another kind or ontology version"))
    found += [problem("not_in_index", "the index does not name this capture", one) for one in sorted(names - index)]
    found += [problem("not_in_file", "the file lacks this capture", one) for one in sorted(index - names)]
    return found


def _names(archives: Archives, tenant_id: str, row: Row) -> tuple[set[str], Heading]:
    whole = archives.read(tenant_id, row["archive_id"], row["revision"], row["digest"])
    return {one["capture_id"] for one in whole}, whole.heading


async def _not_in_use(context: FabricContext, tenant_id: str) -> dict[File, ArchiveProblem]:
    """The files that no archive uses, each with the problem to report."""
    if not context.archives.kept:
        return {}
    there = await run_sync(context.archives.files, tenant_id)
    async with context.transaction(tenant_id, "auditor") as tx:
        left_over, unknown, later = await _sorted_out(tx, there)
    why = dict.fromkeys(left_over, ("left_over", "belongs to no archive any more; the next run removes it"))
    why |= dict.fromkeys(unknown, ("unknown", "is of an archive that the database does not know"))
    why |= dict.fromkeys(
        later, ("unknown", "is a later revision than the one that the database knows, whose file is missing")
    )
    return {
        file: ArchiveProblem.model_validate(
            {"kind": kind, "archive_id": file.archive_id, "revision": file.revision, "why": said}
        )
        for file, (kind, said) in why.items()
    }
