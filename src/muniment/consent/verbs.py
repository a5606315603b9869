"""The consent ledger's verbs."""

from collections.abc import Sequence
from typing import Unpack

from muniment.consent import store as consent
from muniment.consent import tombstones
from muniment.context import FabricContext, retry_on_pack_change
from muniment.errors import InvalidInput
from muniment.model.consent import Consent, ConsentInput, ConsentReach, Sweep
from muniment.model.context import Asker
from muniment.model.fields import Artifact, Ceid, EvidenceRefs, Name, build
from muniment.verbs import arguments as checks
from muniment.verbs.inputs import ConsentFields


class _Evidence(Artifact):
    evidence_refs: EvidenceRefs = ()


class _Reach(Artifact):
    consent_id: Name | None = None
    subject: Ceid | None = None


class AsyncConsents:
    """The consent ledger of a tenant."""

    def __init__(self, context: FabricContext) -> None:
        self._context = context

    @retry_on_pack_change
    async def grant(self, asker: Asker, **fields: Unpack[ConsentFields]) -> Consent:
        """Record a consent; with `supersedes` it renews or changes an earlier one."""
        given = build(ConsentInput, fields)
        officer = await self._context.authorise(asker, "consent")
        pack = await self._context.pack_for(asker)
        consent.check(given, pack, self._context.now())
        await self._context.open_tenant(officer.tenant_id)
        async with self._context.write_once(officer.tenant_id, "privacy", under=pack) as tx:
            return await consent.grant(tx, self._context.vault, officer, given)

    async def revoke(self, asker: Asker, consent_id: str, *, evidence_refs: Sequence[str] = ()) -> Consent:
        """Revoke a consent: its memories are hidden from the very next recall on."""
        checks.name(consent_id, "consent_id")
        given = build(_Evidence, {"evidence_refs": evidence_refs})
        officer = await self._context.authorise(asker, "consent")
        async with self._context.write_once(officer.tenant_id, "privacy") as tx:
            return await consent.revoke(tx, self._context.vault, officer, consent_id, given.evidence_refs)

    # Sequence, not list: `list` is a verb of this class.
    async def reach(
        self, asker: Asker, *, consent_id: str | None = None, subject: str | None = None
    ) -> Sequence[ConsentReach]:
        """What a revocation would hide: how many live memories rest on a consent and its renewals, and on which tiers.

        Of one consent, or of each that a subject has or had, the latest 100 first. Ids and numbers, no content. Raises
        `NotFound`.
        """
        given = build(_Reach, {"consent_id": consent_id, "subject": subject})
        if (given.consent_id is None) == (given.subject is None):
            raise InvalidInput("give a consent, or a subject", field="consent_id")
        await self._context.authorise(asker, "read_consent")
        async with self._context.read_only(asker.tenant_id) as tx:
            return await consent.reach(tx, **dict(given))

    async def sweep(self, tenant_id: str) -> Sweep:
        """Take away the content of memories whose consent was revoked or ran out: they have been hidden since then.

        A tombstone of each stays. Safe to run twice, at once, or to be killed: the next pass goes on.
        """
        checks.tenant(tenant_id, "tenant_id")
        async with self._context.transaction(tenant_id, "jobs") as tx:
            chains = await tombstones.ended_chains(tx)
        limit = (await self._context.current_pack(tenant_id)).memory_layer.consent.revocation_note_limit
        swept = Sweep()
        for chain in chains:
            done: int | None = None
            while done is None:
                async with self._context.transaction(tenant_id, "jobs") as tx:
                    if not await tombstones.still_ended(tx, chain):
                        break  # Renewed, or done by another pass, meanwhile.
                    if await tombstones.remove_some(tx, chain) == 0:
                        done = await tombstones.record_sweep(tx, chain, limit)
            if done is not None:
                swept = Sweep(consents=swept.consents + 1, memories=swept.memories + done)
        return swept

    async def list(
        self, asker: Asker, *, subject: str | None = None, limit: int = 200, after: str | None = None
    ) -> list[Consent]:
        """The records of a subject, or of the tenant, oldest first, each with its state now.

        `after` is the id of the last of the page before.
        """
        count, last = checks.page(limit, after)
        if subject is not None:
            checks.ceid(subject, "subject")
        await self._context.authorise(asker, "read_consent")
        async with self._context.transaction(asker.tenant_id, "auditor") as tx:
            return await consent.listed(tx, self._context.vault, subject, count, last)
