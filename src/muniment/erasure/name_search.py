"""Searching opened texts for a name, page by page, each page recorded; and taking one memory away (ERA-5)."""

from dataclasses import dataclass, field
from typing import get_args

from anyio.lowlevel import checkpoint
from pydantic_core import from_json

from muniment.archives import store as archived
from muniment.context import FabricContext
from muniment.database.storage import Row, Transaction
from muniment.erasure import store as erasure
from muniment.errors import ArchiveBroken, InvalidInput, NotFound, SealBroken
from muniment.language import name_search as texts
from muniment.model.context import Principal
from muniment.model.ids import make_id
from muniment.model.name_search import NameHit, NameSearch, NameSearchInput, Place
from muniment.model.promoted import Retraction

# Texts that one page looks at, at most; and those read at once.
MOST_LOOKED_AT = 2_000
_READ_AT_ONCE = 200
_SLICE = 50
PLACES: tuple[Place, ...] = get_args(Place)
_SEALED: dict[Place, str] = {
    "memory": "memory_bodies.content",
    "candidate": "candidates.content",
    "capture": "captures.content",
    "archived": "captures.content",
    "note": "verdicts.remark",
    "recall": "recalls.query",
    "consent": "consents.evidence",
}
_STATEMENTS: dict[Place, str] = {
    "memory": "search.memory",
    "candidate": "search.candidate",
    "capture": "search.capture",
    "note": "search.note",
    "recall": "search.recall",
    "consent": "search.consent",
}


@dataclass
class _Page:
    """A page in the making: where it is, and what it has found."""

    name: str
    limit: int
    place: Place
    row_id: str
    searched: int = 0
    unreadable: int = 0
    finished: bool = False
    hits: list[NameHit] = field(default_factory=list[NameHit])

    @property
    def full(self) -> bool:
        return self.finished or len(self.hits) >= self.limit or self.searched >= MOST_LOOKED_AT


async def search(context: FabricContext, officer: Principal, given: NameSearchInput) -> NameSearch:
    """One page; raises `NotFound` for another tenant's erasure or search, `InvalidInput` for one of another name."""
    await context.open_tenant(officer.tenant_id)
    name = texts.folded(given.name)
    if len(name) < 2:
        raise InvalidInput("expected two letters or digits at least", field="name")
    mark = await _mark(context, officer.tenant_id, name)
    async with context.transaction(officer.tenant_id, "auditor") as tx:
        before = await _before(tx, given, mark)
        erasure_id = given.erasure_id or (before["erasure_id"] if before is not None else None)
        if erasure_id is not None:
            await erasure.one_receipt(tx, erasure_id)
        page = _Page(name, given.limit, PLACES[0], "")
        if before is not None:
            page.place, page.row_id = before["place"], before["row_id"]
        while not page.full:
            await _go_on(context, tx, page)
        counts = await tx.row("search.total")
    search_id = given.after or make_id("nsr", context.now())
    number = 1 if before is None else before["page"] + 1
    await _record(context, officer, page, search_id, number, mark, erasure_id)
    return NameSearch(
        search_id=search_id,
        page=number,
        hits=tuple(page.hits),
        searched=page.searched + (int(before["searched"]) if before is not None else 0),
        total=sum(counts.values()) if counts is not None else 0,
        unreadable=page.unreadable,
        finished=page.finished,
        after=None if page.finished else search_id,
        erasure_id=erasure_id,
    )


async def _mark(context: FabricContext, tenant_id: str, name: str) -> bytes:
    key = await context.own_key(tenant_id)
    assert key is not None, "the tenant was opened"
    return key.digest(b"name search\0" + name.encode())


async def _before(tx: Transaction, given: NameSearchInput, mark: bytes) -> Row | None:
    """The page that this one goes on from."""
    if given.after is None:
        return None
    row = await tx.row("search.page", search_id=given.after)
    if row is None:
        raise NotFound("no such search to go on with", field="after")
    if row["mark"] != mark or given.erasure_id not in (None, row["erasure_id"]):
        raise InvalidInput("is a search for another name, or another erasure", field="after")
    if row["finished"]:
        raise InvalidInput("is finished: every text was looked at", field="after")
    return row


async def _go_on(context: FabricContext, tx: Transaction, page: _Page) -> None:
    """Look at some more texts of the place where the page is; past its end, go to the next place."""
    count = min(_READ_AT_ONCE, MOST_LOOKED_AT - page.searched)
    if page.place == "archived":
        rows = await _archived(context, tx, page.row_id, count)
    else:
        rows = await tx.rows(_STATEMENTS[page.place], after=page.row_id, count=count)
    for number, row in enumerate(rows, 1):
        page.searched += 1
        page.row_id = row["row_id"]
        if row["content"] and (hit := await _looked_at(context, tx, page, row)) is not None:
            page.hits.append(hit)
            if len(page.hits) >= page.limit:
                return
        if number % _SLICE == 0:
            await checkpoint()
    if len(rows) < count:
        following = PLACES.index(page.place) + 1
        page.finished = following == len(PLACES)
        if not page.finished:
            page.place, page.row_id = PLACES[following], ""


async def _archived(context: FabricContext, tx: Transaction, after: str, count: int) -> list[Row]:
    """Captures in archive files, as the database's own rows are; without content what was erased or dropped."""
    ids = [row["capture_id"] for row in await tx.rows("search.archived", after=after, count=count)]
    if not ids:
        return []
    if not context.archives.kept:
        raise ArchiveBroken("archives hold captures, and no folder is set: MUNIMENT_ARCHIVES")
    found = {row["capture_id"]: row for row in await archived.rows(tx, context.archives, ids)}
    holders = {row["holder"] for row in found.values()}
    keys = {row["holder"]: row for row in await tx.rows("tenant.subject_keys", holders=sorted(holders))}
    empty: Row = {"content": b"", "holder": "", "wrapped_key": None, "key_version": 0}
    rows: list[Row] = []
    for one in ids:
        row = found.get(one, empty)
        key = keys.get(row["holder"], empty)
        sealed = {name: key[name] for name in ("wrapped_key", "key_version")}
        rows.append({"row_id": one, "capture_id": one, "memory_id": None, **sealed}
                    | {name: row[name] for name in ("content", "holder")})  # fmt: skip
    return rows


async def _looked_at(context: FabricContext, tx: Transaction, page: _Page, row: Row) -> NameHit | None:
    try:
        key = await context.vault.open_key(tx, row["holder"], row["wrapped_key"], row["key_version"])
        opened = key.open(_SEALED[page.place], row["row_id"], row["content"])
    except SealBroken:
        page.unreadable += 1
        return None
    content = opened.decode() if page.place == "recall" else from_json(opened)
    only = "query" if page.place == "recall" else "evidence_refs"
    for name, text in texts.fields(content, only):
        if (excerpt := texts.excerpt(page.name, text)) is not None:
            where = {"capture_id": row["capture_id"], "memory_id": row["memory_id"]}
            return NameHit(place=page.place, id=row["row_id"], field=name, excerpt=excerpt, **where)
    return None


async def _record(
    context: FabricContext,
    officer: Principal,
    page: _Page,
    search_id: str,
    number: int,
    mark: bytes,
    erasure_id: str | None,
) -> None:
    """That the page was looked at, by whom, and what was found; of the name a keyed hash alone."""
    async with context.transaction(officer.tenant_id, "privacy") as tx:
        tick = await tx.tick()
        await tx.do(
            "search.record",
            search_id=search_id,
            page=number,
            prev=number - 1 or None,
            seq=tick.seq,
            at=tick.at,
            by=officer.id,
            mark=mark,
            erasure_id=erasure_id,
            place=page.place,
            row_id=page.row_id,
            searched=page.searched,
            hits=len(page.hits),
            finished=page.finished,
        )
        tx.emit(
            "memory.note",
            officer.id,
            about="name_search",
            search_id=search_id,
            page=number,
            mark=mark.hex(),
            erasure_id=erasure_id,
            searched=page.searched,
            hits=len(page.hits),
            finished=page.finished,
        )


async def take_away(context: FabricContext, officer: Principal, memory_id: str) -> Retraction:
    """Retract one memory as erased, and take its text away; raises `NotFound`, `Conflict` where that was done."""
    async with context.write_once(officer.tenant_id, "privacy") as tx:
        retraction, session_id = await erasure.take_away(tx, officer, memory_id)
    if session_id is not None:
        await context.sessions.forget(officer.tenant_id, session_id, [memory_id])
    return retraction
