"""The verbs of imports and exports: bring items in from another system, decide on them, take along what is held."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Self, cast

from pydantic import Field, Strict, model_validator

from muniment.access.roles import Right
from muniment.capture import store as captures
from muniment.context import FabricContext
from muniment.erasure.rules import concerned
from muniment.errors import InvalidInput, NotFound
from muniment.loops import give_way
from muniment.model.context import Asker, Principal
from muniment.model.erasure import ErasureInput
from muniment.model.exports import Export
from muniment.model.fields import Ceid, Name, Note, OpenName, Query, build, field_error
from muniment.model.ids import make_id
from muniment.model.imports import (
    ImportItem,
    ImportPreview,
    ImportReceipt,
    ImportState,
    ImportVerdict,
    ImportVerdicts,
    ItemOutcome,
    SystemName,
)
from muniment.model.inputs import OtherRun, Passed, RecallInput, VerbInput, Whole, check_whole_number
from muniment.model.proposal import APPROVED_AT_ONCE
from muniment.pack import Pack
from muniment.recall import recall as recalling
from muniment.review.approve_many import approve_many
from muniment.subject.export import counts, everything, record
from muniment.subject.store import PersonReader
from muniment.transfer import store
from muniment.transfer.preview import preview as preview_items
from muniment.transfer.rules import capture_of_item
from muniment.transfer.store import Checked
from muniment.verbs.declaration import verb

# Items of one call in this process; over HTTP at most a thousand.
MOST_ITEMS = 10_000
# Items that are checked before other tasks of the event loop run.
_SLICE = 50
# Proposals that one call decides on.
_VERDICTS = 1000

Items = Annotated[Any, Passed(Sequence[Mapping[str, Any]], body=tuple[dict[str, Any], ...])]


class ImportItems(VerbInput):
    """Items of another system."""

    system: SystemName = Field(description="the other system, such as `mem0`")
    items: Items = Field(description="what it knows: objects with the fields of an import item")


class PreviewItems(ImportItems):
    """Items to look at before they are imported."""

    check_only: Annotated[bool, Strict()] = Field(
        False, description="only check the items, without the gates: quick, and says which are not valid"
    )


@verb(
    "imports.preview",
    right="import",
    effect="read",
    http="POST /imports/preview",
    positional=("system", "items"),
    slow=True,
)
async def preview(context: FabricContext, importer: Principal, request: PreviewItems) -> ImportPreview:
    """Show what an import would make of each item: refused by which gate and why, waiting and why, promoted, duplicate.

    Nothing is written, by a login that cannot. The items pass the same gates as when they are imported, and those that
    policy would promote are also compared with each other.
    """
    pack = await context.pack_for(importer)
    items, invalid = await _checked(context, request, "preview", pack)
    if request.check_only:
        return ImportPreview(system=request.system, pack=pack.ref, items=tuple(invalid), counts=_counted(invalid))
    return await preview_items(context, importer, request.system, items, invalid)


class RunImport(ImportItems):
    """Items to import."""

    import_id: OpenName | None = Field(None, description="the import that they belong to; by default a new one")


@verb(
    "imports.run",
    right="import",
    http="POST /imports",
    status=201,
    positional=("system", "items"),
    retry=True,
    slow=True,
)
async def run(context: FabricContext, importer: Principal, request: RunImport) -> ImportReceipt:
    """Import items from another system, all that are valid in one transaction: each becomes a capture.

    The capture's author is the caller; source and trust are the import's own class. Author and times of the other
    system are kept as claims. `consolidate`, or the worker, then takes them through the gates like everything else. An
    item that was imported before is left out, so a call can be repeated; one that changed there comes in again, one
    that was erased here does not. Items that are not valid are named with their errors, and the others are imported.
    """
    pack = await context.pack_for(importer)
    import_id = request.import_id or make_id("imp", context.now())
    items, invalid = await _checked(context, request, import_id, pack)
    found = {one.number: one for one in invalid}
    if items:
        await context.open_tenant(importer.tenant_id)
        async with context.write_once(importer.tenant_id, "writer", under=pack) as tx:
            tx.change_nothing_visible()
            done = await store.bring_in(tx, context.vault, importer, items, request.system, pack)
            new = [one.capture_id for one in done if one.fate == "unread"]
            if new:
                where = {"import_id": import_id, "system": request.system}
                tx.emit("memory.imported", importer.id, **where, count=len(new), first=new[0], last=new[-1])
        found |= {one.number: one for one in done}
    listed = tuple(found[number] for number in sorted(found))
    return ImportReceipt(
        import_id=import_id,
        system=request.system,
        imported=sum(one.fate == "unread" for one in listed),
        repeated=sum(one.fate in ("repeated", "erased") for one in listed),
        items=listed,
    )


async def _checked(
    context: FabricContext, request: ImportItems, import_id: str, pack: Pack
) -> tuple[list[Checked], list[ItemOutcome]]:
    """Check the items one by one; returns those that are valid, and the outcomes of the others."""
    given: Any = request.items
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        raise InvalidInput("expected a list of items", field="items")
    items = cast("Sequence[Any]", given)
    check_whole_number(len(items), "items", least=1, most=MOST_ITEMS)
    checked: list[Checked] = []
    invalid: list[ItemOutcome] = []
    seen: dict[str, ImportItem] = {}
    async with context.batch_check:
        for number, fields in enumerate(items):
            try:
                item = _item(fields, seen)
                capture = capture_of_item(item, request.system, import_id, pack)
                captures.Prepared(pack, context.now()).add([capture])
                checked.append(Checked(number, item, capture))
            except InvalidInput as error:
                invalid.append(_invalid(number, fields, error))
            if number % _SLICE == 0:
                await give_way()
    return checked, invalid


def _item(fields: Any, seen: dict[str, ImportItem]) -> ImportItem:
    if not isinstance(fields, Mapping):
        raise InvalidInput("expected an object with the fields of an import item")
    item = build(ImportItem, cast("Mapping[str, Any]", fields))
    if item.id in seen:
        raise InvalidInput("is the id of an item before it in the list", field="id")
    seen[item.id] = item
    return item


def _invalid(number: int, fields: Any, error: InvalidInput) -> ItemOutcome:
    named = cast("Mapping[str, Any]", fields).get("id") if isinstance(fields, Mapping) else None
    return ItemOutcome(
        number=number,
        id=named[:1024] if isinstance(named, str) else None,
        fate="invalid",
        error=error.code,
        field=error.field,
        message=error.message,
    )


def _counted(outcomes: Sequence[ItemOutcome]) -> dict[Any, int]:
    return {"invalid": len(outcomes)} if outcomes else {}


class CaptureIds(VerbInput):
    """Captures of imports."""

    capture_ids: Annotated[tuple[Name, ...], Field(min_length=1, max_length=1000)]


@verb("imports.outcomes", right="import", http="POST /imports/outcomes", effect="read", positional=("capture_ids",))
async def outcomes(context: FabricContext, importer: Principal, request: CaptureIds) -> list[ItemOutcome]:
    """Show what became of imported captures, in the order of the ids: refused, waiting, promoted, duplicate.

    Ids and codes, no content. What is not the capture of an import is left out.
    """
    async with context.read_only(importer.tenant_id) as tx:
        return await store.outcomes(tx, request.capture_ids)


class ImportId(VerbInput):
    """An import."""

    import_id: Name


@verb("imports.get", right="import", http="GET /imports/{import_id}", cli="import show")
async def get_import(context: FabricContext, importer: Principal, request: ImportId) -> ImportState:
    """Show how far an import has come: its captures, and what became of their facts. Raises `NotFound`."""
    async with context.read_only(importer.tenant_id) as tx:
        found = await store.state(tx, request.import_id)
    if not found.captures:
        raise NotFound("no such import", field="import_id")
    return found


class ApproveImport(ImportId):
    """A verdict on what an import brought in."""

    note: Note | None = None
    acknowledge: dict[Name, Note] = Field(
        default_factory=dict, description="proposals that are not ordinary and are approved too, each with the reason"
    )
    limit: Annotated[int, Whole(1, _VERDICTS)] = Field(200, description="the number of proposals at most")
    after: Name | None = Field(None, description="the `after` of the previous page")


@verb("imports.approve", right="review", http="POST /imports/{import_id}/approve", slow=True)
async def approve(context: FabricContext, reviewer: Principal, request: ApproveImport) -> ImportVerdicts:
    """Approve the open proposals of an import, by the caller's named verdict, a page at a time.

    Only ordinary ones are approved (REV-13), and what is durable or sensitive not by whoever imported it (REV-4); the
    others are left out, with the reasons. Raises `NotFound`.
    """
    async with context.read_only(reviewer.tenant_id) as tx:
        which = {"import_id": request.import_id, "after": request.after or "", "count": request.limit}
        ids = [row["proposal_id"] for row in await tx.rows("transfer.open_proposals", **which)]
        if not ids and not (await store.state(tx, request.import_id)).captures:
            raise NotFound("no such import", field="import_id")
    done = (
        await approve_many(context, reviewer, ids, request.note, request.acknowledge, APPROVED_AT_ONCE) if ids else []
    )
    verdicts = tuple(
        ImportVerdict(
            **one.model_dump(include={"proposal_id", "status", "memory_id", "error", "message"}),
            left_out=tuple(reason.code for reason in one.left_out),
        )
        for one in done
    )
    after = ids[-1] if len(ids) == request.limit else None
    return ImportVerdicts(import_id=request.import_id, verdicts=verdicts, after=after)


# ---- exports in the clear ----


class ExportInput(VerbInput):
    """What to export: a subject or an end user, or what a run is told."""

    subject: Ceid | None = Field(None, description="the subject whose data is exported")
    user_id: Name | None = Field(None, description="the end user whose data is exported, or who the subject is")
    run: OtherRun | None = Field(None, description="instead: the run whose answer is exported")
    query: Query | None = Field(None, description="what the run asks; by default the most important comes first")

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        about = self.subject is not None or self.user_id is not None
        if about == (self.run is not None):
            raise field_error("subject", "give a subject or a user_id, or a run whose answer is exported")
        if about and self.query is not None:
            raise field_error("query", "goes with a run")
        return self


def _right(_: Asker, request: Any) -> Right:
    return "export_answer" if request.run is not None else "export_subject"


@verb(
    "export",
    right="export_subject",
    other_right="export_answer",
    right_for=_right,
    http="POST /exports",
    effect="read",
    slow=True,
)
async def export(context: FabricContext, exporter: Principal, request: ExportInput) -> Export:
    """Export in the clear: everything that is held about one subject (an access request), or one answer to a run.

    A subject's export holds what the person themselves would see, and no text that is sealed under anybody else's key.
    An answer is a recall of that run, recorded like any other. Each export is an event. A whole tenant is exported only
    as a sealed backup, by whoever owns the database: `muniment export tenant`.
    """
    if request.run is not None:
        if request.run.tenant_id != exporter.tenant_id:
            raise NotFound("no such run", field="run")
        answer = await recalling.recall(context, request.run, build(RecallInput, {"query": request.query}))
        what = {"kind": "answer", "recall_id": answer.recall_id, "records": len(answer.records)}
        await record(context, exporter.tenant_id, exporter.id, **what)
        return Export(answer=answer)
    pack = await context.pack_for(exporter)
    person = concerned(ErasureInput(subject=request.subject, user_id=request.user_id), pack)
    names = tuple(person.holders)
    async with context.as_person(exporter.tenant_id, names) as tx:
        own = PersonReader(tx, context.vault, pack, person.user_id or "", names)
        whole = await everything(own, exporter.tenant_id, person.subject)
    whom = {"subject": person.subject, "user_id": person.user_id}
    # INVARIANT: nothing is handed out before the event is committed.
    await record(context, exporter.tenant_id, exporter.id, kind="subject", **whom, **counts(whole))
    return Export(subject=whole)
