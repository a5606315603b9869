"""The smaller groups of verbs: consent, packs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

from muniment.errors import InvalidInput
from muniment.fabric import checks
from muniment.fabric.checks import page_size
from muniment.fabric.desk import Desk
from muniment.fabric.inputs import ConsentFields
from muniment.governance import consent, packs, tombstones
from muniment.model.consent import Consent, ConsentInput, Sweep
from muniment.model.context import Asker
from muniment.model.fields import Artifact, EvidenceRefs, build
from muniment.pack import Pack, load_pack
from muniment.policy.redaction import redactor_of


class _Evidence(Artifact):
    evidence_refs: EvidenceRefs = ()


class AsyncConsents:
    """The consent ledger of a tenant."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def grant(self, asker: Asker, **fields: Unpack[ConsentFields]) -> Consent:
        """Record a consent; with `supersedes` it renews or changes an earlier one."""
        given = build(ConsentInput, fields)
        officer = await self._desk.authorise(asker, "consent")
        consent.check(given, await self._desk.pack_for(asker), self._desk.now())
        await self._desk.open_tenant(officer.tenant_id)
        async with self._desk.transaction(officer.tenant_id, "privacy") as tx:
            return await consent.grant(tx, self._desk.vault, officer, given)

    async def revoke(self, asker: Asker, consent_id: str, *, evidence_refs: Sequence[str] = ()) -> Consent:
        """Revoke a consent: its memories are hidden from the very next recall on."""
        checks.name(consent_id, "consent_id")
        given = build(_Evidence, {"evidence_refs": evidence_refs})
        officer = await self._desk.authorise(asker, "consent")
        async with self._desk.transaction(officer.tenant_id, "privacy") as tx:
            return await consent.revoke(tx, self._desk.vault, officer, consent_id, given.evidence_refs)

    async def sweep(self, tenant_id: str) -> Sweep:
        """Take away the content of memories whose consent was revoked or ran out: they have been hidden since then.

        A tombstone of each stays. Safe to run twice, at once, or to be killed: the next pass goes on.
        """
        checks.tenant(tenant_id, "tenant_id")
        async with self._desk.transaction(tenant_id, "jobs") as tx:
            chains = await tombstones.ended_chains(tx)
        limit = (await self._desk.registered_pack(tenant_id, None)).memory_layer.consent.revocation_note_limit
        swept = Sweep()
        for chain in chains:
            done: int | None = None
            while done is None:
                async with self._desk.transaction(tenant_id, "jobs") as tx:
                    if not await tombstones.still_ended(tx, chain):
                        break  # Renewed, or done by another pass, meanwhile.
                    if await tombstones.take_away(tx, chain) == 0:
                        done = await tombstones.finish(tx, chain, limit)
            if done is not None:
                swept = Sweep(consents=swept.consents + 1, memories=swept.memories + done)
        return swept

    async def list(self, asker: Asker, *, subject: str | None = None, limit: int = 200) -> list[Consent]:
        """The records of a subject, or of the tenant, oldest first, each with its state now."""
        count = page_size(limit)
        if subject is not None:
            checks.ceid(subject, "subject")
        await self._desk.authorise(asker, "read_consent")
        async with self._desk.transaction(asker.tenant_id, "auditor") as tx:
            return await consent.listed(tx, self._desk.vault, subject, count)


class AsyncPacks:
    """The packs registered in a tenant."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def register(self, asker: Asker, pack: str | Path | Pack) -> packs.RegisteredPack:
        """Register a pack, given as a file's path, its text, or loaded; the same again changes nothing.

        Raises `PackInvalid`, or `PackImmutable` for other content under a registered version.
        """
        if not isinstance(pack, str | Path | Pack):
            raise InvalidInput("expected a path, the pack's text, or a loaded pack", field="pack")
        loaded = pack if isinstance(pack, Pack) else load_pack(pack)
        redactor_of(loaded)  # A rule that needs what is not installed is told here, not at the first candidate.
        principal = await self._desk.authorise(asker, "packs")
        await self._desk.open_tenant(principal.tenant_id)
        async with self._desk.transaction(principal.tenant_id, "writer") as tx:
            registered = await packs.register(tx, loaded, principal.id)
        self._desk.packs.remember(principal.tenant_id, registered.pack)
        return registered

    async def get(self, asker: Asker, ref: str) -> packs.RegisteredPack:
        """One registered pack; raises `NotFound`."""
        checks.name(ref, "ref")
        await self._desk.authorise(asker, "read_packs")
        async with self._desk.transaction(asker.tenant_id, "auditor") as tx:
            return await packs.one(tx, ref)

    async def list(self, asker: Asker) -> list[packs.RegisteredPack]:
        """All, in the order of their registration."""
        await self._desk.authorise(asker, "read_packs")
        async with self._desk.transaction(asker.tenant_id, "auditor") as tx:
            return await packs.listed(tx)
