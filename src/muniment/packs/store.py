"""The pack registry: immutable versions, the one that is in force in each tenant, and the history of that."""

from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime

import psycopg
from psycopg.types.json import Jsonb
from pydantic_core import to_json

from muniment.database import pages
from muniment.database.sealing import Vault
from muniment.database.storage import Row, Transaction
from muniment.errors import Conflict, NotFound, PackChanged, PackImmutable, SecondPersonRequired
from muniment.loops import in_thread
from muniment.model.activation import Activation, Retirement
from muniment.model.context import Principal
from muniment.model.names import same_person
from muniment.pack import Pack, builtin_pack, load_pack
from muniment.packs.loosening import loosened, needs_second_person
from muniment.packs.types import RegisteredPack
from muniment.recall.pinning import NOTICE

# Who the program itself acts as.
PROGRAM = "muniment"
_CACHED = 1024


class Packs:
    """Packs by tenant and reference, and which of them is in force as far as this process knows.

    Documents are immutable, so what was read once is kept. Which one is in force can change at any time: whoever
    decides under it opens the transaction `under` it, which finds out.
    """

    def __init__(self, default: Pack | None) -> None:
        self.given = default is not None
        self.default = default or builtin_pack()
        self._known: OrderedDict[tuple[str, str], Pack] = OrderedDict()
        self._in_force: OrderedDict[str, Pack] = OrderedDict()

    def known(self, tenant_id: str, ref: str) -> Pack | None:
        """The pack, if this process has seen it registered in the tenant."""
        return self._known.get((tenant_id, ref))

    def remember(self, tenant_id: str, pack: Pack) -> None:
        """Keep a registered pack."""
        self._known[(tenant_id, pack.ref)] = pack
        if len(self._known) > _CACHED:
            self._known.popitem(last=False)

    def in_force(self, tenant_id: str) -> Pack | None:
        """The pack that was in force in the tenant when this process last looked."""
        return self._in_force.get(tenant_id)

    def remember_in_force(self, tenant_id: str, pack: Pack) -> None:
        """Keep which pack is in force."""
        self.remember(tenant_id, pack)
        self._in_force[tenant_id] = pack
        if len(self._in_force) > _CACHED:
            self._in_force.popitem(last=False)

    def forget_in_force(self, tenant_id: str) -> None:
        """Look again before the next decision in that tenant."""
        self._in_force.pop(tenant_id, None)

    async def read(self, tx: Transaction, ref: str) -> Pack | None:
        """The pack from the registry."""
        if (known := self.known(tx.tenant_id, ref)) is not None:
            return known
        row = await tx.row("tenant.pack", pack=ref)
        if row is None:
            return None
        pack = _registered(row).pack
        self.remember(tx.tenant_id, pack)
        return pack

    async def read_in_force(self, tx: Transaction) -> Pack | None:
        """The pack in force; None in a tenant that has none yet."""
        row = await tx.row("pack.in_force")
        return await self.read(tx, row["pack"]) if row is not None else None

    async def in_force_at(self, tx: Transaction, seq: int) -> Pack | None:
        """The pack that was in force at a sequence number; before the first activation, the first one's."""
        row = await tx.row("pack.in_force_at", seq=seq)
        return await self.read(tx, row["pack"]) if row is not None else None

    async def within_notice(self, tx: Transaction) -> list[Pack]:
        """Every pack that was in force within the notice that a shorter horizon has to wait; the default for none."""
        rows = await tx.rows("pack.in_force_since", since=tx.now - NOTICE)
        found = [await self.read(tx, row["pack"]) for row in rows]
        return [pack for pack in found if pack is not None] or [self.default]


async def open_tenant(tx: Transaction, vault: Vault) -> None:
    """Give a tenant its clock, its key, a data key of its own and its audit key, unless it has them."""
    await tx.do("tenant.add")
    await tx.do("tenant.add_clock")
    await vault.create_tenant_key(tx)
    await vault.comparing(tx)
    await vault.create_row_key(tx)


async def register(tx: Transaction, pack: Pack, by: str) -> RegisteredPack:
    """Register a pack; the same again changes nothing, another under the same version is `PackImmutable`."""
    # Checked once more as a document: a copy with changes was never checked as a whole.
    pack = await in_thread(load_pack, to_json(pack.document()))
    row = await tx.row("tenant.pack", pack=pack.ref)
    if row is None:
        tick = await tx.tick()
        try:
            await tx.do(
                "tenant.add_pack",
                pack=pack.ref,
                pack_id=pack.meta.id,
                version=pack.meta.version,
                ontology_version=pack.meta.ontology_version,
                digest=pack.digest,
                document=Jsonb(pack.document()),
                seq=tick.seq,
                at=tick.at,
                by=by,
            )
        except psycopg.errors.UniqueViolation as error:
            raise PackImmutable("was registered by somebody else just now", field="pack") from error
        labels = [(label.name, rank, label.sensitive) for rank, label in enumerate(pack.classifications)]
        await tx.insert_many("tenant.add_labels", labels, pack=pack.ref)
        tx.emit("memory.pack_registered", by, pack=pack.ref, digest=pack.digest)
        return RegisteredPack(pack.ref, pack.digest, tick.at, by, pack)
    if row["digest"] != pack.digest:
        raise PackImmutable(f"{pack.ref} is registered with other content; give it a new version", field="pack")
    return _registered(row)


async def activate(
    tx: Transaction,
    packs: Packs,
    ref: str,
    by: Principal | None,
    reason: str,
    *,
    expected: str | None = None,
    first: bool = False,
) -> Activation:
    """Put a registered version in force, by an admin or (`by` None) by the program when it was started.

    Where no other is in force it is the tenant's first pack, which needs no second person. Raises `NotFound`,
    `Conflict` for a version that is retired or in force already, `SecondPersonRequired`, and `PackChanged` where
    somebody else activated one meanwhile, where another than the `expected` one is in force, and, of a pack that is to
    be the tenant's `first`, where any is.
    """
    # INVARIANT: the clock comes before the pack's row, as it does for whoever decides under it: nobody waits twice.
    tick = await tx.tick()
    now = await tx.row("pack.take_in_force")
    if first and now is not None:
        raise PackChanged("somebody else put a pack in force at this moment", field="ref")
    if expected is not None and (now is None or now["pack"] != expected):
        raise PackChanged(f"another pack is in force by now: {now['pack'] if now is not None else 'none'}", field="ref")
    chosen = await one(tx, ref)
    if chosen.retired:
        raise Conflict(f"{ref} is retired", field="ref")
    if now is not None and now["pack"] == ref:
        raise Conflict(f"{ref} is in force already", field="ref")
    before = await packs.read(tx, now["pack"]) if now is not None else None
    strict = before is not None and needs_second_person(before, chosen.pack)
    if strict and (by is None or same_person(by.id, chosen.registered_by)):
        raise SecondPersonRequired(second_person_message(before, chosen), field="ref")
    made = Activation(
        pack=ref,
        seq=tick.seq,
        activated_at=tick.at,
        activated_by=by.id if by is not None else PROGRAM,
        by_kind="operator" if by is not None else "system",
        registered_by=chosen.registered_by,
        second_person=strict,
        loosens=loosened(before, chosen.pack) if before is not None else (),
        reason=reason,
        previous_pack=before.ref if before is not None else None,
    )
    try:
        await tx.do(
            "pack.activate",
            seq=made.seq,
            pack=ref,
            at=made.activated_at,
            by=made.activated_by,
            by_kind=made.by_kind,
            registered_by=made.registered_by,
            second_person=strict,
            loosens=list(made.loosens),
            reason=reason,
            previous_seq=now["seq"] if now is not None else None,
            previous_pack=made.previous_pack,
        )
    except psycopg.errors.UniqueViolation as error:
        raise PackChanged("somebody else put a pack in force at this moment", field="ref") from error
    await tx.do("pack.put_in_force", seq=made.seq, pack=ref)
    tx.emit(
        "memory.pack_activated",
        made.activated_by,
        pack=ref,
        previous=made.previous_pack,
        reason=reason,
        loosens=list(made.loosens),
        second_person=strict,
    )
    return made


def second_person_message(before: Pack | None, chosen: RegisteredPack) -> str:
    """Why somebody else has to activate it."""
    found = loosened(before, chosen.pack) if before is not None else ()
    why = f"it loosens {'; '.join(found)}" if found else "the pack asks for four eyes"
    return f"an admin other than {chosen.registered_by}, who registered {chosen.ref}, has to activate it: {why}"


async def retire(tx: Transaction, ref: str, by: Principal, reason: str) -> Retirement:
    """End the use of a version; raises `NotFound`, and `Conflict` for the one in force or one that is retired."""
    tick = await tx.tick()
    now = await tx.row("pack.take_in_force")
    chosen = await one(tx, ref)
    if chosen.retired:
        raise Conflict(f"{ref} is retired already", field="ref")
    if now is not None and now["pack"] == ref:
        raise Conflict(f"{ref} is in force: activate another version first", field="ref")
    await tx.do("pack.retire", pack=ref, at=tick.at, by=by.id)
    tx.told.row("packs.retired", pack=ref, retired_at=tick.at, retired_by=by.id)
    tx.emit("memory.pack_retired", by.id, pack=ref, reason=reason)
    return Retirement(pack=ref, retired_at=tick.at, retired_by=by.id, reason=reason)


async def activation_at(tx: Transaction, at: datetime) -> Activation:
    """The activation that was in force at a time; raises `NotFound` in a tenant that has none."""
    row = await tx.row("pack.activation_at", time=at)
    if row is None:
        raise NotFound("no pack is in force in this tenant yet: the first write puts one in force")
    return Activation(**row)


async def activations(tx: Transaction, count: int, before: int | None) -> Sequence[Activation]:
    """The history, the latest first, from before a sequence number."""
    return [Activation(**row) for row in await tx.rows("pack.activations", count=count, before=before)]


async def listed(tx: Transaction, count: int, after: str | None) -> list[RegisteredPack]:
    """The packs of the tenant in the order of their registration; raises `NotFound` for an `after` that it has not."""
    place = await pages.place(tx, "tenant.pack_place", after)
    return [_registered(row) for row in await tx.rows("tenant.list_packs", count=count, **place)]


async def one(tx: Transaction, ref: str, field: str = "ref") -> RegisteredPack:
    """One pack; raises `NotFound`."""
    row = await tx.row("tenant.pack", pack=ref)
    if row is None:
        raise NotFound("no such pack is registered in this tenant", field=field)
    return _registered(row)


def _registered(row: Row) -> RegisteredPack:
    pack = Pack.model_validate(row["document"])
    return RegisteredPack(
        row["pack"],
        row["digest"],
        row["registered_at"],
        row["registered_by"],
        pack,
        retired=not row["usable"],
        in_force=row["in_force"],
    )
