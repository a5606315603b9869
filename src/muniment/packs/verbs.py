"""The verbs of packs: register, compare, backtest, put in force, retire, backfill."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, Strict, StringConstraints, ValidationInfo
from pydantic_core import to_json

from muniment.capture.read_log import record_reads
from muniment.context import FabricContext
from muniment.database.storage import Transaction
from muniment.errors import Conflict, InvalidInput
from muniment.language.redaction import holds_personal_data, redactor_of
from muniment.loops import in_thread
from muniment.model.activation import Activation, ActivationPlan, PackDifference, Retirement
from muniment.model.backfill import Backfill
from muniment.model.backtest import Backtest
from muniment.model.context import Principal
from muniment.model.fields import Instant, Name, Note
from muniment.model.inputs import Listing, PageSize, Passed, VerbInput, Whole
from muniment.model.profile import Profile
from muniment.pack import PROFILES, Pack, load_pack, profile_pack
from muniment.pack.combined import NOTICE, archive_horizon, capture_horizons, replay_horizon
from muniment.packs import backfill as backfilling
from muniment.packs import backfill_store as backfills
from muniment.packs import backtest as backtesting
from muniment.packs import store as packs
from muniment.packs.difference import differences
from muniment.packs.exceptions import ExceptionKind, free_version, is_same_change, proposed_versions, with_exception
from muniment.packs.loosening import loosened, needs_second_person
from muniment.packs.profiles import profiles
from muniment.packs.types import PackShown, RegisteredPack
from muniment.verbs.declaration import verb

# What stands before the @ cannot begin a pack's text.
_REF = re.compile(r"[a-z][a-z0-9_.-]{0,63}@[0-9][0-9A-Za-z.-]{0,127}")
_REASON_LIMIT = 500


def _pack_source(value: Any, info: ValidationInfo) -> Any:
    if not isinstance(value, str | Path | Pack):
        raise InvalidInput("expected a path, the pack's text, a profile's name or a loaded pack", field=info.field_name)
    return profile_pack(value) if isinstance(value, str) and value in PROFILES else value


_PackText = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=1024 * 1024)]
# A registered pack's name, a profile's, a file's path, a pack's text, or a loaded pack; over HTTP a name or a text.
PackSource = Annotated[Any, BeforeValidator(_pack_source), Passed(str | Path | Pack, body=_PackText, send="pack_text")]
Reason = Annotated[Note, StringConstraints(max_length=_REASON_LIMIT)]


class Register(VerbInput):
    """The pack to register."""

    pack: PackSource


@verb("packs.register", right="packs", http="POST /packs", status=201, positional=("pack",), shown_as=PackShown)
async def register(context: FabricContext, admin: Principal, request: Register) -> RegisteredPack:
    """Register a pack, given as a path, a text, a profile's name or a loaded pack; the same again changes nothing.

    Raises `PackInvalid`, or `PackImmutable` for other content under a registered version.
    """
    loaded = request.pack if isinstance(request.pack, Pack) else await in_thread(load_pack, request.pack)
    redactor_of(loaded)  # A rule that needs what is not installed fails here, not at the first candidate.
    await context.open_tenant(admin.tenant_id)
    async with context.write_once(admin.tenant_id, "writer") as tx:
        registered = await packs.register(tx, loaded, admin.id)
    context.packs.remember(admin.tenant_id, registered.pack)
    return registered


class ProposeException(VerbInput):
    """A value that is the company's own."""

    kind: ExceptionKind
    value: Name = Field(description="the company's own address, number or account, which is no personal data")


@verb("packs.propose_exception", right="review", http="POST /packs/exceptions", status=201, shown_as=PackShown)
async def propose_exception(context: FabricContext, reviewer: Principal, request: ProposeException) -> RegisteredPack:
    """Register the pack in force with one more redaction exception, as a draft for an admin to test and activate.

    It decides nothing until then (PAC-5), and stays in the registry with the caller's name; the same again changes
    nothing. Raises `InvalidInput` for a value that is none of that kind, `Conflict` for one that is an exception
    already, and while 50 changes of the pack in force wait for an admin.
    """
    await context.open_tenant(reviewer.tenant_id)
    async with context.write_once(reviewer.tenant_id, "writer") as tx:
        now = await context.packs.read_in_force(tx) or context.packs.default
        there: list[RegisteredPack] = []
        for proposed in proposed_versions(now.meta.version):
            if (one := await packs.find(tx, f"{now.meta.id}@{proposed}")) is None:
                break
            there.append(one)
        version = free_version(now, {one.ref for one in there})
        draft, _ = await in_thread(with_exception, now, request.kind, request.value, version)
        same = next((one for one in there if not one.retired and is_same_change(draft, one.pack)), None)
        registered = same or await packs.register(tx, draft, reviewer.id)
    context.packs.remember(reviewer.tenant_id, registered.pack)
    return registered


@verb("profiles", right="read_packs", http="GET /profiles")
async def list_profiles(context: FabricContext, reader: Principal) -> list[Profile]:
    """List the built-in profiles, packs by name: what each promotes at once, and what waits for whom."""
    return profiles()


class PackRef(VerbInput):
    """A registered version, such as `acme@1.2.0`."""

    ref: Name = Field(description="a registered version, such as acme@1.2.0")


class Retire(PackRef):
    """Which version to retire, and why."""

    reason: Reason = Field(description="why; it is kept in the event log")


class Activate(Retire):
    """Which version to put in force, and why."""

    expected: Name | None = Field(None, description="only if this version is in force now")


@verb("packs.activate", right="packs", http="POST /packs/{ref}/activate")
async def activate(context: FabricContext, admin: Principal, request: Activate) -> Activation:
    """Put a registered version in force: from now on everything in the tenant is decided under it.

    Another admin than the one who registered it has to do so where a pack asks for it (`activation: four_eyes`) and
    wherever it loosens a rule; see `plan_activation`. With `expected`, only if that version is in force now.
    Raises `NotFound`, `SecondPersonRequired`, `PackChanged`, and `Conflict` for a version that is in force or retired.
    """
    await context.open_tenant(admin.tenant_id)
    await _check_reason(context, admin, request.reason)
    async with context.reported(admin, "packs", request.ref), context.write_once(admin.tenant_id, "writer") as tx:
        redactor_of((await packs.one(tx, request.ref)).pack)  # A rule that needs what is not installed fails here.
        made = await packs.activate(tx, context.packs, request.ref, admin, request.reason, expected=request.expected)
    context.packs.forget_in_force(admin.tenant_id)
    return made


@verb("packs.plan_activation", right="read_packs", http="GET /packs/{ref}/activation")
async def plan_activation(context: FabricContext, reader: Principal, request: PackRef) -> ActivationPlan:
    """Show what activating a registered version would change, and who may do it. This changes nothing.

    The rules in which it differs from the version in force; how many open proposals would pass the gates again; and
    where a horizon is shortened, how much would be collected when that takes effect, seven days later. Raises
    `NotFound`, and `Conflict` for a version that is in force or retired.
    """
    ref = request.ref
    async with context.read_only(reader.tenant_id) as tx:
        chosen = await packs.one(tx, ref)
        if chosen.retired or chosen.in_force:
            raise Conflict(f"{ref} is {'retired' if chosen.retired else 'in force already'}", field="ref")
        now = await context.packs.read_in_force(tx)
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


@verb("packs.retire", right="packs", http="POST /packs/{ref}/retire", cli="pack retire")
async def retire(context: FabricContext, admin: Principal, request: Retire) -> Retirement:
    """Retire a version for good: it can no longer be activated or pinned. The past is still read under it.

    Raises `NotFound`, and `Conflict` for the version in force and for one that is retired.
    """
    await context.open_tenant(admin.tenant_id)
    await _check_reason(context, admin, request.reason)
    async with context.write_once(admin.tenant_id, "writer") as tx:
        return await packs.retire(tx, request.ref, admin, request.reason)


class InForce(VerbInput):
    """At which time."""

    at: Instant | None = Field(None, description="the time; by default now")


@verb("packs.in_force", right="read_packs", http="GET /packs/in-force", cli="pack in-force")
async def in_force(context: FabricContext, reader: Principal, request: InForce) -> Activation:
    """Show which version is in force, or was at a time, and who activated it.

    A time before the first activation has the first one's. Raises `NotFound` in a tenant without any.
    """
    async with context.transaction(reader.tenant_id, "auditor") as tx:
        return await packs.activation_at(tx, request.at or tx.now)


class ListActivations(VerbInput):
    """Which activations to list."""

    limit: PageSize = Field(50, description="the number of entries at most")
    after: Annotated[int, Field(strict=True, ge=0, le=2**62)] | None = Field(
        None, description="the `seq` of the last entry of the previous page"
    )


@verb("packs.activations", right="read_packs", http="GET /packs/activations", page_key="seq", cli="pack history")
async def activations(context: FabricContext, reader: Principal, request: ListActivations) -> Sequence[Activation]:
    """List every version that was in force, the latest first; `after` is the `seq` of the last of the previous page."""
    async with context.transaction(reader.tenant_id, "auditor") as tx:
        return await packs.activations(tx, request.limit, request.after)


async def _check_reason(context: FabricContext, admin: Principal, reason: str) -> None:
    """A reason stands in the log, out of an erasure's reach: no personal data there."""
    if holds_personal_data(await context.pack_for(admin), [reason]):
        raise InvalidInput("holds personal data, which has no place in the log", field="reason")


@verb("packs.get", right="read_packs", http="GET /packs/{ref}", shown_as=PackShown)
async def get_pack(context: FabricContext, reader: Principal, request: PackRef) -> RegisteredPack:
    """Read a registered pack; raises `NotFound`."""
    async with context.transaction(reader.tenant_id, "auditor") as tx:
        return await packs.one(tx, request.ref)


class ListPacks(Listing):
    """Which packs to list."""

    limit: PageSize = 200


@verb("packs.list", right="read_packs", http="GET /packs", page_key="ref", shown_as=PackShown, cli="pack list")
async def list_packs(context: FabricContext, reader: Principal, request: ListPacks) -> list[RegisteredPack]:
    """List the packs registered in the tenant, in the order of their registration.

    `after` is the last reference of the previous page.
    """
    async with context.transaction(reader.tenant_id, "auditor") as tx:
        return await packs.listed(tx, request.limit, request.after)


class Compare(VerbInput):
    """Two packs."""

    one: PackSource
    other: PackSource


@verb("packs.compare", right="read_packs", effect="read", http="POST /packs/compare", positional=("one", "other"))
async def compare(context: FabricContext, reader: Principal, request: Compare) -> PackDifference:
    """Show how one pack differs from another, rule by rule.

    Each is a registered one (`acme@1.2.0`), a file's path, a pack's text, or loaded. Raises `NotFound` and
    `PackInvalid`.
    """
    one = await _named(context, reader, request.one, "one")
    return differences(one, await _named(context, reader, request.other, "other"))


class RunBacktest(VerbInput):
    """The pack to try, beside which other, and on which part of the past."""

    pack: PackSource
    against: Name | None = Field(None, description="a registered pack; by default the one in force")
    since: Instant | None = None
    until: Instant | None = None
    limit: Annotated[int, Whole(1, 10_000)] = Field(1000, description="the number of captures at most")
    recalls: Annotated[int, Whole(0, 2_000)] = Field(200, description="the number of recalls at most")
    texts: Annotated[bool, Strict()] = Field(False, description="show a reviewer the beginning of texts, masked")


@verb("packs.backtest", right="backtest", effect="read", http="POST /packs/backtest", positional=("pack",), slow=True)
async def backtest(
    context: FabricContext, reader: Principal, request: RunBacktest, *, on_progress: backtesting.Progress | None = None
) -> Backtest:
    """Run the latest captures and recalls of a window through a pack, beside the one in force or `against`.

    Nothing is decided and no other service is called. Examples are ids; with `texts` a reviewer is also shown the
    beginning of facts from captures that a proposal came from, masked by both packs; these readings are recorded.
    """
    if request.texts:
        await context.authorise(reader, "review")
    against = request.against
    ruling = await _registered(context, reader, against, "against") if against else await context.pack_for(reader)
    tried = await _named(context, reader, request.pack, "pack")
    redactor_of(tried)
    found = await backtesting.backtest(
        context,
        reader.tenant_id,
        tried,
        ruling,
        since=request.since,
        until=request.until,
        limit=request.limit,
        recalls=request.recalls,
        texts=request.texts,
        on_progress=on_progress,
    )
    examples = (one for difference in found.differences for one in difference.examples)
    await record_reads(context, reader, {one.id: False for one in examples if one.text is not None})
    return found


class OrderBackfill(PackRef):
    """Which ontology memories are to follow."""

    dry_run: Annotated[bool, Strict()] = Field(False, description="plan it, and order nothing")


@verb("packs.backfill", right="review", http="POST /packs/backfills", status=201, positional=("ref",), slow=True)
async def backfill(context: FabricContext, reviewer: Principal, request: OrderBackfill) -> Backfill:
    """Order that live memories follow the ontology of a registered pack: renamed, retyped, dropped predicates.

    Whoever orders it approves every record that comes of it; `run_backfill`, or the worker, carries it out. With
    `dry_run` nothing is ordered. Raises `NotFound`, and `Conflict` while another is under way.
    """
    async with context.reported(reviewer, "review", request.ref):
        if request.dry_run:
            return await backfilling.planned(context, reviewer, request.ref)
        return await backfilling.order(context, reviewer, request.ref)


@verb("packs.backfills", right="read_packs", http="GET /packs/backfills", page_key="backfill_id", cli="pack backfills")
async def list_backfills(context: FabricContext, reader: Principal, request: Listing) -> Sequence[Backfill]:
    """List the backfills of the tenant, the latest first, and the memories that need a person.

    `after` is the id of the last of the previous page.
    """
    async with context.transaction(reader.tenant_id, "auditor") as tx:
        return await backfills.listed(tx, request.limit, after=request.after)


@verb("packs.run_backfill", right="work", effect="pass", http="POST /work/backfill")
async def run_backfill(
    context: FabricContext, tenant_id: str, *, on_progress: backfilling.Progress | None = None
) -> Backfill | None:
    """Carry out the tenant's backfill to its end; returns its result, or None if none was ordered.

    Safe to run twice, concurrently, or to be killed: the next pass continues.
    """
    return await backfilling.run(context, tenant_id, on_progress)


async def _named(context: FabricContext, reader: Principal, given: str | Path | Pack, field: str) -> Pack:
    """The registered pack of that name, or one that was passed; raises `NotFound`."""
    if isinstance(given, str) and _REF.fullmatch(given):
        return await _registered(context, reader, given, field)
    return await in_thread(_loaded, given)


async def _registered(context: FabricContext, reader: Principal, ref: str, field: str) -> Pack:
    async with context.transaction(reader.tenant_id, "auditor") as tx:
        if ref == context.packs.default.ref and await context.packs.read_in_force(tx) is None:
            return context.packs.default
        return (await packs.one(tx, ref, field)).pack


def _loaded(given: str | Path | Pack) -> Pack:
    if isinstance(given, Pack):
        # Checked once more as a document: a copy with changes was never checked as a whole.
        return load_pack(to_json(given.document()))
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
