"""The smaller groups of verbs: consent, packs."""

import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Unpack

from pydantic import Strict
from pydantic_core import to_json

from muniment.errors import InvalidInput
from muniment.fabric import backfill as backfilling
from muniment.fabric import backtest as backtesting
from muniment.fabric import checks
from muniment.fabric.desk import Desk
from muniment.fabric.inputs import ConsentFields
from muniment.governance import backfills, consent, packs, tombstones
from muniment.loops import in_thread
from muniment.model.backfill import Backfill
from muniment.model.backtest import Backtest
from muniment.model.consent import Consent, ConsentInput, ConsentReach, Sweep
from muniment.model.context import Asker
from muniment.model.fields import Artifact, Ceid, EvidenceRefs, Instant, Name, build
from muniment.model.pack_difference import PackDifference
from muniment.pack import Pack, load_pack
from muniment.policy.pack_difference import differences
from muniment.policy.redaction import redactor_of


class _Evidence(Artifact):
    evidence_refs: EvidenceRefs = ()


class _Reach(Artifact):
    consent_id: Name | None = None
    subject: Ceid | None = None


# What stands before the @ cannot begin a pack's text.
_REF = re.compile(r"[a-z][a-z0-9_.-]{0,63}@[0-9][0-9A-Za-z.-]{0,127}")


class _Window(Artifact):
    since: Instant | None = None
    until: Instant | None = None
    texts: Annotated[bool, Strict()] = False


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
        async with self._desk.deed(officer.tenant_id, "privacy") as tx:
            return await consent.grant(tx, self._desk.vault, officer, given)

    async def revoke(self, asker: Asker, consent_id: str, *, evidence_refs: Sequence[str] = ()) -> Consent:
        """Revoke a consent: its memories are hidden from the very next recall on."""
        checks.name(consent_id, "consent_id")
        given = build(_Evidence, {"evidence_refs": evidence_refs})
        officer = await self._desk.authorise(asker, "consent")
        async with self._desk.deed(officer.tenant_id, "privacy") as tx:
            return await consent.revoke(tx, self._desk.vault, officer, consent_id, given.evidence_refs)

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
        await self._desk.authorise(asker, "read_consent")
        async with self._desk.shadow(asker.tenant_id) as tx:
            return await consent.reach(tx, **dict(given))

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

    async def list(
        self, asker: Asker, *, subject: str | None = None, limit: int = 200, after: str | None = None
    ) -> list[Consent]:
        """The records of a subject, or of the tenant, oldest first, each with its state now.

        `after` is the id of the last of the page before.
        """
        count, last = checks.page(limit, after)
        if subject is not None:
            checks.ceid(subject, "subject")
        await self._desk.authorise(asker, "read_consent")
        async with self._desk.transaction(asker.tenant_id, "auditor") as tx:
            return await consent.listed(tx, self._desk.vault, subject, count, last)


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
        loaded = pack if isinstance(pack, Pack) else await in_thread(load_pack, pack)
        redactor_of(loaded)  # A rule that needs what is not installed is told here, not at the first candidate.
        principal = await self._desk.authorise(asker, "packs")
        await self._desk.open_tenant(principal.tenant_id)
        async with self._desk.deed(principal.tenant_id, "writer") as tx:
            registered = await packs.register(tx, loaded, principal.id)
        self._desk.packs.remember(principal.tenant_id, registered.pack)
        return registered

    async def get(self, asker: Asker, ref: str) -> packs.RegisteredPack:
        """One registered pack; raises `NotFound`."""
        checks.name(ref, "ref")
        await self._desk.authorise(asker, "read_packs")
        async with self._desk.transaction(asker.tenant_id, "auditor") as tx:
            return await packs.one(tx, ref)

    async def list(self, asker: Asker, *, limit: int = 200, after: str | None = None) -> list[packs.RegisteredPack]:
        """All, in the order of their registration; `after` is the reference of the last of the page before."""
        count, last = checks.page(limit, after)
        await self._desk.authorise(asker, "read_packs")
        async with self._desk.transaction(asker.tenant_id, "auditor") as tx:
            return await packs.listed(tx, count, last)

    async def compare(self, asker: Asker, one: str | Path | Pack, other: str | Path | Pack) -> PackDifference:
        """In what the other pack differs from the one, rule by rule.

        Each is a registered one (`acme@1.2.0`), a file's path, a pack's text, or loaded. Raises `NotFound` and
        `PackInvalid`.
        """
        await self._desk.authorise(asker, "read_packs")
        return differences(await self._named(asker, one, "one"), await self._named(asker, other, "other"))

    async def backtest(
        self,
        asker: Asker,
        pack: str | Path | Pack,
        *,
        against: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 1000,
        recalls: int = 200,
        texts: bool = False,
        on_progress: backtesting.Progress | None = None,
    ) -> Backtest:
        """Run the latest captures and recalls of a window through a pack, beside the one that rules or `against`.

        Nothing is written and nobody outside is asked. Examples are ids; with `texts` a reviewer is also shown the
        beginning of what can be read in the queue, masked by both packs.
        """
        given = build(_Window, {"since": since, "until": until, "texts": texts})
        captures = checks.whole_number(limit, "limit", least=1, most=10_000)
        some = checks.whole_number(recalls, "recalls", least=0, most=2_000)
        beside = checks.name(against, "against") if against is not None else self._desk.packs.default.ref
        await self._desk.authorise(asker, "backtest")
        if given.texts:
            await self._desk.authorise(asker, "review")
        ruling = await self._registered(asker, beside, "against")
        tried = await self._named(asker, pack, "pack")
        redactor_of(tried)
        return await backtesting.backtest(
            self._desk,
            asker.tenant_id,
            tried,
            ruling,
            since=given.since,
            until=given.until,
            limit=captures,
            recalls=some,
            texts=given.texts,
            on_progress=on_progress,
        )

    async def backfill(self, asker: Asker, ref: str, *, dry_run: bool = False) -> Backfill:
        """Order that live memories follow the ontology of a registered pack: renamed, retyped, dropped predicates.

        Whoever orders it approves every record that comes of it; `run_backfill`, or the worker, carries it out. With
        `dry_run` nothing is ordered. Raises `NotFound`, and `Conflict` while another is under way.
        """
        checks.name(ref, "ref")
        only_planned = checks.flag(dry_run, "dry_run")
        principal = await self._desk.authorise(asker, "review")
        async with self._desk.reported(principal, "review", ref):
            if only_planned:
                return await backfilling.planned(self._desk, principal, ref)
            return await backfilling.order(self._desk, principal, ref)

    # Sequence, not list: `list` is a verb of this class.
    async def backfills(self, asker: Asker, *, limit: int = 50, after: str | None = None) -> Sequence[Backfill]:
        """The orders, the latest first: how far each is, and the memories that wait for a person.

        `after` is the id of the last of the page before.
        """
        count, last = checks.page(limit, after)
        await self._desk.authorise(asker, "read_packs")
        async with self._desk.transaction(asker.tenant_id, "auditor") as tx:
            return await backfills.listed(tx, count, after=last)

    async def run_backfill(self, tenant_id: str, *, on_progress: backfilling.Progress | None = None) -> Backfill | None:
        """Carry out the tenant's order to its end; what came of it, or None where nothing was ordered.

        Safe to run twice, at once, or to be killed: the next pass goes on.
        """
        checks.tenant(tenant_id, "tenant_id")
        return await backfilling.run(self._desk, tenant_id, on_progress)

    async def _named(self, asker: Asker, given: str | Path | Pack, field: str) -> Pack:
        """The registered pack of that name, or one that was handed in; raises `NotFound`."""
        if isinstance(given, str) and _REF.fullmatch(given):
            return await self._registered(asker, given, field)
        return await in_thread(_handed_in, given, field)

    async def _registered(self, asker: Asker, ref: str, field: str) -> Pack:
        if ref == self._desk.packs.default.ref:
            return await self._desk.registered_pack(asker.tenant_id, None)
        async with self._desk.transaction(asker.tenant_id, "auditor") as tx:
            return (await packs.one(tx, ref, field)).pack


def _handed_in(given: str | Path | Pack, field: str) -> Pack:
    if isinstance(given, Pack):
        # Checked once more as a document: a copy with changes was never checked as a whole.
        return load_pack(to_json(given.document()))
    if not isinstance(given, str | Path):
        raise InvalidInput("expected a registered pack, a path, a pack's text, or a loaded pack", field=field)
    return load_pack(given)
