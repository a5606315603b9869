"""The verbs of the consent ledger."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, cast

from pydantic import Field, Strict

from muniment.consent import documents, tombstones
from muniment.consent import rules as policy
from muniment.consent import store as consent
from muniment.context import FabricContext
from muniment.errors import Conflict, InvalidInput, MunimentError
from muniment.loops import give_way
from muniment.model.consent import (
    Consent,
    ConsentDocument,
    ConsentInput,
    ConsentOutcome,
    ConsentReach,
    ConsentTerms,
    Sweep,
)
from muniment.model.context import Principal
from muniment.model.fields import Ceid, EvidenceRefs, Instant, Name, build
from muniment.model.inputs import Listing, PageSize, Passed, VerbInput, check_whole_number
from muniment.pack import Pack
from muniment.verbs.declaration import verb

# Documents that are checked before other tasks of the event loop run.
_SLICE = 50


# Documents that are recorded in one call.
MOST_DOCUMENTS = 10_000


class ConsentFields(ConsentInput):
    """What `consent.grant` takes."""


@verb(
    "consent.grant",
    right="consent",
    http="POST /consents",
    status=201,
    unchecked=ConsentFields,
    keywords=ConsentFields,
    retry=True,
    custom_route=True,
)
async def grant(context: FabricContext, officer: Principal, fields: Mapping[str, Any]) -> Consent:
    """Record a consent; with `supersedes` it renews or changes an earlier one.

    It also takes the fields of a consent document as they are (`**document`): recorded elsewhere, with its own id,
    times and evidence. The same document twice is one record. Raises `Conflict` for an id with other content, and
    `Denied` for a document of another tenant.
    """
    pack = await context.pack_for(officer)
    if documents.is_document(fields):
        (recorded,) = await _record(context, officer, [await _read(context, officer, fields, pack)], pack)
        return recorded
    request = build(ConsentFields, fields)
    consent.check(request, pack, context.now())
    await context.open_tenant(officer.tenant_id)
    async with context.write_once(officer.tenant_id, "privacy", under=pack) as tx:
        return await consent.grant(tx, context.vault, officer, request, pack)


async def _read(context: FabricContext, officer: Principal, fields: Any, pack: Pack) -> ConsentDocument:
    async with context.reported(officer, "consent"):
        return documents.read_document(fields, officer, pack, context.now())


async def _record(
    context: FabricContext, officer: Principal, found: Sequence[ConsentDocument], pack: Pack
) -> list[Consent]:
    await context.open_tenant(officer.tenant_id)
    async with context.write_once(officer.tenant_id, "privacy", under=pack) as tx:
        return await documents.record_all(tx, context.vault, officer, found, pack)


class ConsentDocuments(VerbInput):
    """Many consent documents."""

    documents: Annotated[Any, Passed(Sequence[Mapping[str, Any]], body=tuple[dict[str, Any], ...])]
    each: Annotated[bool, Strict()] = Field(
        False, description="record each by itself, and leave out those with an error; by default all or none"
    )


@verb(
    "consent.grant_many",
    right="consent",
    http="POST /consents/documents",
    status=201,
    positional=("documents",),
    retry=True,
    slow=True,
)
async def grant_many(context: FabricContext, officer: Principal, request: ConsentDocuments) -> list[ConsentOutcome]:
    """Record many consent documents, all or none, or `each` by itself; the outcomes are in their order.

    With an error nothing is recorded, unless `each` is set; every document that has one is named with it. Documents
    that are in the ledger already count as recorded: a call can be repeated.
    """
    given: Any = request.documents
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        raise InvalidInput("expected a list of consent documents", field="documents")
    items = cast("Sequence[Any]", given)
    check_whole_number(len(items), "documents", least=1, most=MOST_DOCUMENTS)
    pack = await context.pack_for(officer)
    outcomes: dict[int, ConsentOutcome] = {}
    found: dict[int, ConsentDocument] = {}
    for place, fields in enumerate(items):
        try:
            found[place] = await _read(context, officer, fields, pack)
        except MunimentError as error:
            outcomes[place] = documents.failed(fields, error)
        if place % _SLICE == 0:
            await give_way()
    if found and (request.each or not outcomes):
        outcomes |= await _record_found(context, officer, found, pack, each=request.each)
    left = ConsentOutcome(message="not recorded: another document has an error")
    return [outcomes.get(place, left) for place in range(len(items))]


async def _record_found(
    context: FabricContext, officer: Principal, found: Mapping[int, ConsentDocument], pack: Pack, *, each: bool
) -> dict[int, ConsentOutcome]:
    """Record checked documents and return the outcome of each by its place."""
    async with context.read_only(officer.tenant_id) as tx:
        before = {
            one.consent_id for one in await consent.some(tx, context.vault, [d.consent_id for d in found.values()])
        }
    outcomes: dict[int, ConsentOutcome] = {}
    batches = [{place: one} for place, one in found.items()] if each else [found]
    for batch in batches:
        try:
            await _record(context, officer, list(batch.values()), pack)
        except Conflict as error:
            outcomes |= {place: documents.failed({"consent_id": one.consent_id}, error) for place, one in batch.items()}
            continue
        for place, one in batch.items():
            outcomes[place] = ConsentOutcome(
                consent_id=one.consent_id, recorded=True, repeated=one.consent_id in before
            )
            before.add(one.consent_id)
    return outcomes


class ConsentId(VerbInput):
    """A consent."""

    consent_id: Name


@verb(
    "consent.document",
    right="read_consent",
    http="GET /consents/{consent_id}/document",
    cli="consent document",
)
async def document(context: FabricContext, reader: Principal, request: ConsentId) -> ConsentDocument:
    """Return one record as a consent document, in the form that `consent.grant` takes. Raises `NotFound`."""
    async with context.transaction(reader.tenant_id, "auditor") as tx:
        return (await consent.one(tx, context.vault, request.consent_id)).document


class Revoke(VerbInput):
    """Which consent to revoke, and on what evidence."""

    consent_id: Name
    evidence_refs: EvidenceRefs = ()


@verb("consent.revoke", right="consent", http="POST /consents/{consent_id}/revoke", cli="consent revoke")
async def revoke(context: FabricContext, officer: Principal, request: Revoke) -> Consent:
    """Revoke a consent: its memories are hidden from the next recall on."""
    async with context.write_once(officer.tenant_id, "privacy") as tx:
        return await consent.revoke(tx, context.vault, officer, request.consent_id, request.evidence_refs)


class Reach(VerbInput):
    """A consent, or a subject."""

    consent_id: Name | None = None
    subject: Ceid | None = None


@verb("consent.reach", right="read_consent", http="GET /consents/reach")
async def reach(context: FabricContext, reader: Principal, request: Reach) -> Sequence[ConsentReach]:
    """Count what a revocation would hide: the live memories on a consent and its renewals, by tier and class.

    Of one consent, or of each that a subject has or had, the latest 100 first. Ids and numbers, no content. Raises
    `NotFound`.
    """
    if (request.consent_id is None) == (request.subject is None):
        raise InvalidInput("give a consent, or a subject", field="consent_id")
    names = await context.spellings(reader, request.subject)
    async with context.read_only(reader.tenant_id) as tx:
        return await consent.reach(tx, consent_id=request.consent_id, subjects=names)


@verb("consent.sweep", right="work", effect="pass", http="POST /work/sweep", cli="consent sweep")
async def sweep(context: FabricContext, tenant_id: str) -> Sweep:
    """Remove the content of memories whose consent was revoked or ran out. They have been hidden since then.

    A tombstone of each stays. Safe to run twice, concurrently, or to be killed: the next pass continues.
    """
    async with context.transaction(tenant_id, "jobs") as tx:
        chains = await tombstones.ended_chains(tx)
    limit = (await context.current_pack(tenant_id)).memory_layer.consent.revocation_note_limit
    swept = Sweep()
    for chain in chains:
        done: int | None = None
        while done is None:
            async with context.transaction(tenant_id, "jobs") as tx:
                if not await tombstones.still_ended(tx, chain):
                    break  # Renewed, or done by another pass, meanwhile.
                if await tombstones.remove_some(tx, chain) == 0:
                    done = await tombstones.record_sweep(tx, chain, limit)
        if done is not None:
            swept = Sweep(consents=swept.consents + 1, memories=swept.memories + done)
    return swept


class ListConsents(Listing):
    """Which consents to list."""

    subject: Ceid | None = None
    limit: PageSize = 200
    latest: bool = Field(False, description="the latest record first")
    ends_by: Instant | None = Field(
        None, description="only consents that are in force, end by then, and have no renewal"
    )
    since: Instant | None = Field(None, description="only records that were written here at that moment or later")
    until: Instant | None = Field(None, description="only records that were written here before that moment")


@verb("consent.list", right="read_consent", http="GET /consents", page_key="consent_id", cli="consent list")
async def list_consents(context: FabricContext, reader: Principal, request: ListConsents) -> list[Consent]:
    """List the records of a subject, or of the tenant, oldest first or latest first, each with its present state.

    `after` is the id of the last of the previous page.
    """
    names = await context.spellings(reader, request.subject)
    async with context.transaction(reader.tenant_id, "auditor") as tx:
        return await consent.listed(
            tx,
            context.vault,
            names,
            request.limit,
            request.after,
            latest=request.latest,
            ends_by=request.ends_by,
            since=request.since,
            until=request.until,
        )


@verb("consent.terms", right="read_consent", http="GET /consents/terms")
async def terms(context: FabricContext, reader: Principal) -> ConsentTerms:
    """Show what a consent can say: the purposes, labels and bases of the pack in force, and other bases in use."""
    pack = await context.pack_for(reader)
    async with context.transaction(reader.tenant_id, "auditor") as tx:
        recorded = await consent.bases(tx)
    purposes = policy.purposes_of(pack)
    return ConsentTerms(
        purposes=tuple(sorted(purposes - {"*"})),
        any_purpose="*" in purposes,
        labels=tuple(sorted(pack.sensitive_labels)),
        bases=tuple(dict.fromkeys([*pack.memory_layer.consent.bases, *recorded])),
    )
