"""The verbs of the consent ledger."""

from collections.abc import Sequence

from muniment.consent import rules as policy
from muniment.consent import store as consent
from muniment.consent import tombstones
from muniment.context import FabricContext
from muniment.errors import InvalidInput
from muniment.model.consent import Consent, ConsentInput, ConsentReach, ConsentTerms, Sweep
from muniment.model.context import Principal
from muniment.model.fields import Ceid, EvidenceRefs, Name
from muniment.model.inputs import Listing, PageSize, VerbInput
from muniment.verbs.declaration import verb


class ConsentFields(ConsentInput):
    """What `consent.grant` takes."""


@verb("consent.grant", right="consent", http="POST /consents", status=201, keywords=ConsentFields, retry=True)
async def grant(context: FabricContext, officer: Principal, request: ConsentFields) -> Consent:
    """Record a consent; with `supersedes` it renews or changes an earlier one."""
    pack = await context.pack_for(officer)
    consent.check(request, pack, context.now())
    await context.open_tenant(officer.tenant_id)
    async with context.write_once(officer.tenant_id, "privacy", under=pack) as tx:
        return await consent.grant(tx, context.vault, officer, request, pack)


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


@verb("consent.list", right="read_consent", http="GET /consents", page_key="consent_id", cli="consent list")
async def list_consents(context: FabricContext, reader: Principal, request: ListConsents) -> list[Consent]:
    """List the records of a subject, or of the tenant, oldest first, each with its present state.

    `after` is the id of the last of the previous page.
    """
    names = await context.spellings(reader, request.subject)
    async with context.transaction(reader.tenant_id, "auditor") as tx:
        return await consent.listed(tx, context.vault, names, request.limit, request.after)


@verb("consent.terms", right="read_consent", http="GET /consents/terms")
async def terms(context: FabricContext, reader: Principal) -> ConsentTerms:
    """Show what a consent can say: the purposes and labels of the pack in force, and the bases recorded so far."""
    pack = await context.pack_for(reader)
    async with context.transaction(reader.tenant_id, "auditor") as tx:
        bases = await consent.bases(tx)
    purposes = policy.purposes_of(pack)
    return ConsentTerms(
        purposes=tuple(sorted(purposes - {"*"})),
        any_purpose="*" in purposes,
        labels=tuple(sorted(pack.sensitive_labels)),
        bases=tuple(bases),
    )
