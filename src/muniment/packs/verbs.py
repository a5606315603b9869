"""Packs: registered, compared, tried against history, put in force and retired."""

import logging
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated

from pydantic import Field, Strict, StringConstraints
from pydantic_core import to_json

from muniment.context import FabricContext
from muniment.database.storage import Transaction
from muniment.errors import Conflict, InvalidInput, PackChanged, PackImmutable, SecondPersonRequired
from muniment.language.redaction import holds_personal_data, redactor_of
from muniment.loops import in_thread
from muniment.model.activation import Activation, ActivationPlan, Retirement
from muniment.model.backfill import Backfill
from muniment.model.backtest import Backtest
from muniment.model.context import Asker
from muniment.model.fields import Artifact, Instant, Name, Note, build
from muniment.model.pack_difference import PackDifference
from muniment.pack import Pack, load_pack
from muniment.packs import backfill as backfilling
from muniment.packs import backfill_store as backfills
from muniment.packs import backtest as backtesting
from muniment.packs import store as packs
from muniment.packs.difference import differences
from muniment.packs.loosening import loosened, needs_second_person
from muniment.promotion.reindex import tenants
from muniment.recall.rules import NOTICE, archive_horizon, capture_horizons, replay_horizon
from muniment.verbs import arguments as checks

# What stands before the @ cannot begin a pack's text.
_REF = re.compile(r"[a-z][a-z0-9_.-]{0,63}@[0-9][0-9A-Za-z.-]{0,127}")
_REASON_LIMIT = 500

log = logging.getLogger("muniment.packs")


class _Window(Artifact):
    since: Instant | None = None
    until: Instant | None = None
    texts: Annotated[bool, Strict()] = False


class _Change(Artifact):
    ref: Name
    reason: Annotated[Note, StringConstraints(max_length=_REASON_LIMIT)]
    expected: Name | None = None


class _When(Artifact):
    at: Instant | None = None
    after: Annotated[int, Field(strict=True, ge=0, le=2**62)] | None = None


class AsyncPacks:
    """The packs registered in a tenant."""

    def __init__(self, context: FabricContext) -> None:
        self._context = context

    async def register(self, asker: Asker, pack: str | Path | Pack) -> packs.RegisteredPack:
        """Register a pack, given as a file's path, its text, or loaded; the same again changes nothing.

        Raises `PackInvalid`, or `PackImmutable` for other content under a registered version.
        """
        if not isinstance(pack, str | Path | Pack):
            raise InvalidInput("expected a path, the pack's text, or a loaded pack", field="pack")
        principal = await self._context.authorise(asker, "packs")
        loaded = pack if isinstance(pack, Pack) else await in_thread(load_pack, pack)
        redactor_of(loaded)  # A rule that needs what is not installed is told here, not at the first candidate.
        await self._context.open_tenant(principal.tenant_id)
        async with self._context.write_once(principal.tenant_id, "writer") as tx:
            registered = await packs.register(tx, loaded, principal.id)
        self._context.packs.remember(principal.tenant_id, registered.pack)
        return registered

    async def activate(self, asker: Asker, ref: str, *, reason: str, expected: str | None = None) -> Activation:
        """Put a registered version in force: from this moment on everything in the tenant is decided under it.

        Another admin than the one who registered it has to do so where a pack asks for it (`activation: four_eyes`) and
        wherever it loosens a rule; `plan_activation` tells. With `expected`, only if that version is in force now.
        Raises `NotFound`, `SecondPersonRequired`, `PackChanged`, and `Conflict` for a version that is in force or
        retired.
        """
        given = build(_Change, {"ref": ref, "reason": reason, "expected": expected})
        admin = await self._context.authorise(asker, "packs")
        await self._context.open_tenant(admin.tenant_id)
        await self._check_reason(asker, given.reason)
        async with (
            self._context.reported(admin, "packs", given.ref),
            self._context.write_once(admin.tenant_id, "writer") as tx,
        ):
            redactor_of((await packs.one(tx, given.ref)).pack)  # A rule that needs what is not installed is told here.
            made = await packs.activate(
                tx, self._context.packs, given.ref, admin, given.reason, expected=given.expected
            )
        self._context.packs.forget_in_force(admin.tenant_id)
        return made

    async def plan_activation(self, asker: Asker, ref: str) -> ActivationPlan:
        """What activating a registered version would change, and who may do it. Nothing is changed by asking.

        It differs from the version in force in these rules; so many open proposals pass the gates again; and where a
        horizon is shortened, so much would be collected when that takes effect, seven days later. Raises `NotFound`,
        and `Conflict` for a version that is in force or retired.
        """
        checks.name(ref, "ref")
        await self._context.authorise(asker, "read_packs")
        async with self._context.read_only(asker.tenant_id) as tx:
            chosen = await packs.one(tx, ref)
            if chosen.retired or chosen.in_force:
                raise Conflict(f"{ref} is {'retired' if chosen.retired else 'in force already'}", field="ref")
            now = await self._context.packs.read_in_force(tx)
            waiting = await tx.row("pack.waiting_under_others", pack=ref)
            assert waiting is not None, "a count has one row"
            plan = ActivationPlan(
                pack=ref,
                in_force=now.ref if now is not None else None,
                difference=differences(now, chosen.pack) if now is not None else None,
                loosens=loosened(now, chosen.pack) if now is not None else (),
                second_person=now is not None and needs_second_person(now, chosen.pack),
                registered_by=chosen.registered_by,
                proposals=waiting["proposals"],
            )
            return plan.model_copy(update=await _shortened(tx, now, chosen.pack) if now is not None else {})

    async def retire(self, asker: Asker, ref: str, *, reason: str) -> Retirement:
        """End the use of a version for good: it can be neither activated nor pinned; the past is still read under it.

        Raises `NotFound`, and `Conflict` for the version in force and for one that is retired.
        """
        given = build(_Change, {"ref": ref, "reason": reason})
        admin = await self._context.authorise(asker, "packs")
        await self._context.open_tenant(admin.tenant_id)
        await self._check_reason(asker, given.reason)
        async with self._context.write_once(admin.tenant_id, "writer") as tx:
            return await packs.retire(tx, given.ref, admin, given.reason)

    async def in_force(self, asker: Asker, *, at: datetime | None = None) -> Activation:
        """Which version is in force, or was at a time: who put it there, when and why.

        A time before the first activation has the first one's. Raises `NotFound` in a tenant without any.
        """
        given = build(_When, {"at": at})
        await self._context.authorise(asker, "read_packs")
        async with self._context.transaction(asker.tenant_id, "auditor") as tx:
            return await packs.activation_at(tx, given.at or tx.now)

    # Sequence, not list: `list` is a verb of this class.
    async def activations(self, asker: Asker, *, limit: int = 50, after: int | None = None) -> Sequence[Activation]:
        """Every activation, the latest first; `after` is the `seq` of the last of the page before."""
        count = checks.page_size(limit)
        given = build(_When, {"after": after})
        await self._context.authorise(asker, "read_packs")
        async with self._context.transaction(asker.tenant_id, "auditor") as tx:
            return await packs.activations(tx, count, given.after)

    async def _check_reason(self, asker: Asker, reason: str) -> None:
        """A reason stands in the log, out of an erasure's reach: no personal data there."""
        if holds_personal_data(await self._context.pack_for(asker), [reason]):
            raise InvalidInput("holds personal data, which has no place in the log", field="reason")

    async def get(self, asker: Asker, ref: str) -> packs.RegisteredPack:
        """One registered pack; raises `NotFound`."""
        checks.name(ref, "ref")
        await self._context.authorise(asker, "read_packs")
        async with self._context.transaction(asker.tenant_id, "auditor") as tx:
            return await packs.one(tx, ref)

    async def list(self, asker: Asker, *, limit: int = 200, after: str | None = None) -> list[packs.RegisteredPack]:
        """All, in the order of their registration; `after` is the reference of the last of the page before."""
        count, last = checks.page(limit, after)
        await self._context.authorise(asker, "read_packs")
        async with self._context.transaction(asker.tenant_id, "auditor") as tx:
            return await packs.listed(tx, count, last)

    async def compare(self, asker: Asker, one: str | Path | Pack, other: str | Path | Pack) -> PackDifference:
        """In what the other pack differs from the one, rule by rule.

        Each is a registered one (`acme@1.2.0`), a file's path, a pack's text, or loaded. Raises `NotFound` and
        `PackInvalid`.
        """
        await self._context.authorise(asker, "read_packs")
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
        """Run the latest captures and recalls of a window through a pack, beside the one in force or `against`.

        Nothing is written and nobody outside is asked. Examples are ids; with `texts` a reviewer is also shown the
        beginning of what can be read in the queue, masked by both packs.
        """
        given = build(_Window, {"since": since, "until": until, "texts": texts})
        captures = checks.whole_number(limit, "limit", least=1, most=10_000)
        some = checks.whole_number(recalls, "recalls", least=0, most=2_000)
        beside = checks.name(against, "against") if against is not None else None
        await self._context.authorise(asker, "backtest")
        if given.texts:
            await self._context.authorise(asker, "review")
        ruling = await self._registered(asker, beside, "against") if beside else await self._context.pack_for(asker)
        tried = await self._named(asker, pack, "pack")
        redactor_of(tried)
        return await backtesting.backtest(
            self._context,
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
        principal = await self._context.authorise(asker, "review")
        async with self._context.reported(principal, "review", ref):
            if only_planned:
                return await backfilling.planned(self._context, principal, ref)
            return await backfilling.order(self._context, principal, ref)

    # Sequence, not list: `list` is a verb of this class.
    async def backfills(self, asker: Asker, *, limit: int = 50, after: str | None = None) -> Sequence[Backfill]:
        """The orders, the latest first: how far each is, and the memories that wait for a person.

        `after` is the id of the last of the page before.
        """
        count, last = checks.page(limit, after)
        await self._context.authorise(asker, "read_packs")
        async with self._context.transaction(asker.tenant_id, "auditor") as tx:
            return await backfills.listed(tx, count, after=last)

    async def run_backfill(self, tenant_id: str, *, on_progress: backfilling.Progress | None = None) -> Backfill | None:
        """Carry out the tenant's order to its end; what came of it, or None where nothing was ordered.

        Safe to run twice, at once, or to be killed: the next pass goes on.
        """
        checks.tenant(tenant_id, "tenant_id")
        return await backfilling.run(self._context, tenant_id, on_progress)

    async def _named(self, asker: Asker, given: str | Path | Pack, field: str) -> Pack:
        """The registered pack of that name, or one that was handed in; raises `NotFound`."""
        if isinstance(given, str) and _REF.fullmatch(given):
            return await self._registered(asker, given, field)
        return await in_thread(_handed_in, given, field)

    async def _registered(self, asker: Asker, ref: str, field: str) -> Pack:
        async with self._context.transaction(asker.tenant_id, "auditor") as tx:
            if ref == self._context.packs.default.ref and await self._context.packs.read_in_force(tx) is None:
                return self._context.packs.default
            return (await packs.one(tx, ref, field)).pack


def _handed_in(given: str | Path | Pack, field: str) -> Pack:
    if isinstance(given, Pack):
        # Checked once more as a document: a copy with changes was never checked as a whole.
        return load_pack(to_json(given.document()))
    if not isinstance(given, str | Path):
        raise InvalidInput("expected a registered pack, a path, a pack's text, or a loaded pack", field=field)
    return load_pack(given)


async def _shortened(tx: Transaction, before: Pack, after: Pack) -> dict[str, object]:
    """What shorter horizons would collect when they take effect, counted as if nothing ended until then."""
    then, changed = tx.now + NOTICE, False
    memories = captures = 0
    if (horizon := replay_horizon([after])) < replay_horizon([before]):
        changed = True
        (row,) = await tx.rows("pack.would_collect", before=then - horizon)
        (kept,) = await tx.rows("pack.would_collect", before=then - replay_horizon([before]))
        memories = row["memories"] - kept["memories"]
    was = capture_horizons([before])
    for kind, age in capture_horizons([after]).items():
        if kind in was and was[kind] <= age:
            continue
        changed = True
        (row,) = await tx.rows("pack.would_archive", kind=kind, before=then - age)
        kept = (
            await tx.rows("pack.would_archive", kind=kind, before=then - was[kind])
            if kind in was
            else [{"captures": 0}]
        )
        captures += row["captures"] - kept[0]["captures"]
    if (drop := archive_horizon([after])) is not None:
        kept_for = archive_horizon([before])
        changed = changed or kept_for is None or drop < kept_for
    if not changed:
        return {}
    return {"horizons_from": then, "collects_memories": memories, "archives_captures": captures}


async def activate_at_start(context: FabricContext) -> list[Activation]:
    """Put the pack that the process was started with in force in every tenant that is under another (PAC-6).

    By the program, as an event of its own. Raises `SecondPersonRequired` with the tenants where PAC-5 asks for a
    person, `PackImmutable` where that version is registered with other content, `Conflict` where it is retired. Then
    nothing is changed in any tenant.
    """
    own, refused, wanted = context.packs.default, list[str](), list[tuple[str, str]]()
    for tenant_id in await tenants(context):
        now = await _under(context, tenant_id, own)
        if now.ref == own.ref:
            continue
        if needs_second_person(now, own):
            refused.append(f"{tenant_id} (under {now.ref})")
        else:
            wanted.append((tenant_id, now.ref))
    if refused:
        shown = ", ".join(refused[:10]) + (f" and {len(refused) - 10} more" if len(refused) > 10 else "")
        raise SecondPersonRequired(
            f"{own.ref} needs an admin who did not register it (muniment pack register, then activate) in {shown}",
            field="activate",
        )
    found = [await _activated_at_start(context, tenant_id, own, expected) for tenant_id, expected in wanted]
    return [one for one in found if one is not None]


async def _under(context: FabricContext, tenant_id: str, own: Pack) -> Pack:
    """The pack in force in the tenant, where the process's own can follow it."""
    async with context.transaction(tenant_id, "auditor") as tx:
        row = await tx.row("tenant.pack", pack=own.ref)
        now = await context.packs.read_in_force(tx)
    if row is not None and row["digest"] != own.digest:
        raise PackImmutable(f"{own.ref} is registered in {tenant_id} with other content", field="pack")
    if row is not None and not row["usable"]:
        raise Conflict(f"{own.ref} is retired in {tenant_id}", field="pack")
    return now or await context.current_pack(tenant_id)


async def _activated_at_start(context: FabricContext, tenant_id: str, own: Pack, expected: str) -> Activation | None:
    """None where somebody else put a pack in force at this moment, such as another process that is started too."""
    for attempt in (1, 2):
        try:
            async with context.transaction(tenant_id, "writer") as tx:
                await packs.register(tx, own, packs.PROGRAM)
                return await packs.activate(tx, context.packs, own.ref, None, "given at start", expected=expected)
        except PackChanged:
            log.warning("tenant %s: another pack was put in force at this moment; %s was not", tenant_id, own.ref)
            return None
        except PackImmutable:
            # Registered by another process at this moment; the second look finds it.
            if attempt == 2:
                raise
        finally:
            context.packs.forget_in_force(tenant_id)
    return None
