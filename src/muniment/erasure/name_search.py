"""The search of opened texts for a name, in pages that are recorded; and the erasure of one memory (ERA-5)."""

from dataclasses import dataclass, field
from typing import Any, get_args

from pydantic_core import from_json

from muniment.archives import store as archived
from muniment.capture.read_log import record_reads
from muniment.context import FabricContext
from muniment.database.storage import Row, Transaction
from muniment.erasure import store as erasure
from muniment.errors import ArchiveBroken, InvalidInput, NotFound, SealBroken
from muniment.language import name_search as texts
from muniment.loops import give_way
from muniment.model.context import Principal
from muniment.model.erasure import NameHit, NameSearch, NameSearchInput, Place
from muniment.model.ids import make_id
from muniment.model.promoted import Retraction

# Texts that one page searches at most, those read by one statement, and those searched between two checkpoints.
MOST_SEARCHED = 2_000
_READ_AT_ONCE = 200
_SLICE = 50
PLACES: tuple[Place, ...] = get_args(Place)
# The statement that reads the texts of each place, and the column that they are sealed for.
_SOURCES: dict[Place, tuple[str, str]] = {
    "name": ("search.name", "subjects.display_name"),
    "memory": ("search.memory", "memory_bodies.content"),
    "candidate": ("search.candidate", "candidates.content"),
    "capture": ("search.capture", "captures.content"),
    "archived": ("search.archived", "captures.content"),
    "note": ("search.note", "verdicts.remark"),
    "recall": ("search.recall", "recalls.query"),
    "consent": ("search.consent", "consents.evidence"),
}
# Places that hold one text and no JSON, with the name of their field.
_PLAIN: dict[Place, str] = {"name": "display_name", "recall": "query"}
_CAPTURES: frozenset[Place] = frozenset({"capture", "archived"})
# Places of texts that belong to a fact, or on which one rests.
_OF_FACTS: frozenset[Place] = frozenset({"candidate", "capture", "note"})


@dataclass
class _Page:
    """A page while it is searched: how far it is, and what was found."""

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
        return self.finished or len(self.hits) >= self.limit or self.searched >= MOST_SEARCHED


async def search(context: FabricContext, officer: Principal, request: NameSearchInput) -> NameSearch:
    """Search one page; raises `NotFound` for an unknown erasure or search, `InvalidInput` for one of another name."""
    await context.open_tenant(officer.tenant_id)
    name = texts.folded(request.name)
    if len(name) < 2:
        raise InvalidInput("expected at least two letters or digits", field="name")
    mark = await _mark(context, officer.tenant_id, name)
    async with context.transaction(officer.tenant_id, "auditor") as tx:
        before = await _page_before(tx, request, mark)
        erasure_id = request.erasure_id or (before["erasure_id"] if before is not None else None)
        if erasure_id is not None:
            await erasure.one_receipt(tx, erasure_id)
        page = _Page(name, request.limit, PLACES[0], "")
        if before is not None:
            page.place, page.row_id = before["place"], before["row_id"]
        while not page.full:
            await _search_more(context, tx, page)
        hits = await _with_facts(tx, page.hits)
        counts = await tx.row("search.total")
    search_id = request.after or make_id("nsr", context.now())
    number = 1 if before is None else before["page"] + 1
    captures = {one.id: one.place == "archived" for one in hits if one.place in _CAPTURES}
    await record_reads(context, officer, captures)
    await _record(context, officer, page, search_id, number, mark, erasure_id)
    return NameSearch(
        search_id=search_id,
        page=number,
        hits=hits,
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
    # Another mark than that of releases which did not search names: a search that one of them began begins anew.
    return key.digest(b"name search 2\0" + name.encode())


async def _page_before(tx: Transaction, request: NameSearchInput, mark: bytes) -> Row | None:
    """The recorded page that this one continues."""
    if request.after is None:
        return None
    row = await tx.row("search.page", search_id=request.after)
    if row is None:
        raise NotFound("no such search to go on with", field="after")
    if row["mark"] != mark or request.erasure_id not in (None, row["erasure_id"]):
        raise InvalidInput("is a search for another name, for another erasure or of an older release", field="after")
    if row["finished"]:
        raise InvalidInput("is finished: every text was searched", field="after")
    return row


async def _search_more(context: FabricContext, tx: Transaction, page: _Page) -> None:
    """Search some more texts of the page's place; at its end, move to the next place."""
    count = min(_READ_AT_ONCE, MOST_SEARCHED - page.searched)
    rows = await tx.rows(_SOURCES[page.place][0], after=page.row_id, count=count)
    if page.place == "archived" and rows:
        rows = await _archived(context, tx, [row["capture_id"] for row in rows])
    for number, row in enumerate(rows, 1):
        page.searched += 1
        page.row_id = row["row_id"]
        if row["content"] and (hit := await _hit(context, tx, page, row)) is not None:
            page.hits.append(hit)
            if len(page.hits) >= page.limit:
                return
        if number % _SLICE == 0:
            await give_way()
    if len(rows) < count:
        following = PLACES.index(page.place) + 1
        page.finished = following == len(PLACES)
        if not page.finished:
            page.place, page.row_id = PLACES[following], ""


async def _archived(context: FabricContext, tx: Transaction, ids: list[str]) -> list[Row]:
    """Captures in archive files, in the form of the database's rows; without content if erased or dropped."""
    if not context.archives.kept:
        raise ArchiveBroken("there are archives, but no folder for them: set MUNIMENT_ARCHIVES")
    found = {row["capture_id"]: row for row in await archived.rows(tx, context.archives, ids)}
    holders = {row["holder"] for row in found.values()}
    keys = {row["holder"]: row for row in await tx.rows("tenant.subject_keys", holders=sorted(holders))}
    empty: Row = {"content": b"", "holder": "", "wrapped_key": None, "key_version": 0}
    rows: list[Row] = []
    for one in ids:
        row = found.get(one, empty)
        key = keys.get(row["holder"], empty)
        sealed = {name: key[name] for name in ("wrapped_key", "key_version")}
        own = {"row_id": one, "capture_id": one, "memory_id": None}
        rows.append({**own, **sealed, "content": row["content"], "holder": row["holder"]})
    return rows


async def _hit(context: FabricContext, tx: Transaction, page: _Page, row: Row) -> NameHit | None:
    try:
        key = await context.vault.open_key(tx, row["holder"], row["wrapped_key"], row["key_version"])
        opened = key.open(_SOURCES[page.place][1], row["row_id"], row["content"])
    except SealBroken:
        page.unreadable += 1
        return None
    content = opened.decode() if page.place in _PLAIN else from_json(opened)
    only = _PLAIN.get(page.place, "evidence_refs")
    for name, text in texts.fields(content, only):
        if (excerpt := texts.excerpt(page.name, text)) is not None:
            where = {"capture_id": row["capture_id"], "memory_id": row["memory_id"]}
            where["subject"] = row["row_id"] if page.place == "name" else None
            return NameHit(place=page.place, id=row["row_id"], field=name, excerpt=excerpt, **where)
    return None


async def _with_facts(tx: Transaction, hits: list[NameHit]) -> tuple[NameHit, ...]:
    """Return the hits with the proposals by which their facts can be erased."""
    ids = [one.id for one in hits if one.place in _OF_FACTS]
    rows = await tx.rows("search.facts", ids=ids) if ids else []
    facts = {row["id"]: row["proposal_id"] for row in rows}
    return tuple(one.model_copy(update={"proposal_id": facts.get(one.id)}) for one in hits)


async def _record(
    context: FabricContext,
    officer: Principal,
    page: _Page,
    search_id: str,
    number: int,
    mark: bytes,
    erasure_id: str | None,
) -> None:
    """Record who searched the page and what was found; of the name only a keyed hash."""
    shown: dict[str, Any] = {
        "search_id": search_id,
        "page": number,
        "erasure_id": erasure_id,
        "searched": page.searched,
        "hits": len(page.hits),
        "finished": page.finished,
    }
    async with context.transaction(officer.tenant_id, "privacy") as tx:
        tick = await tx.tick()
        end = {"place": page.place, "row_id": page.row_id, "prev": number - 1 or None}
        await tx.do("search.record", **shown, **end, seq=tick.seq, at=tick.at, by=officer.id, mark=mark)
        tx.emit("memory.note", officer.id, about="name_search", mark=mark.hex(), **shown)


async def take_away(context: FabricContext, officer: Principal, memory_id: str) -> Retraction:
    """Retract one memory as erased and delete its text; raises `NotFound`, or `Conflict` if that was done before."""
    async with context.write_once(officer.tenant_id, "privacy") as tx:
        retraction, session_id = await erasure.erase_memory(tx, officer, memory_id)
    if session_id is not None:
        await context.sessions.forget(officer.tenant_id, session_id, [memory_id])
    return retraction
