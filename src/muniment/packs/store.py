"""The pack registry: immutable versions, the one in force in each tenant, and the history of activations."""

from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime

import psycopg
from psycopg.types.json import Jsonb
from pydantic_core import to_json

from muniment.database import cursors
from muniment.database.rows import fields_of
from muniment.database.sealing import Vault
from muniment.database.storage import Row, Transaction
from muniment.errors import Conflict, NotFound, PackChanged, PackImmutable, SecondPersonRequired
from muniment.loops import in_thread
from muniment.model.activation import Activation, Retirement
from muniment.model.context import Principal
from muniment.model.names import same_person
from muniment.pack import Pack, builtin_pack, load_pack
from muniment.pack.combined import NOTICE
from muniment.packs.loosening import loosened, needs_second_person
from muniment.packs.types import RegisteredPack

# Who the program itself acts as.
PROGRAM = "muniment"
_CACHED = 1024
_DOCUMENTS = 64


class Packs:
    """A cache of packs by tenant and reference, and of the one in force when this process last looked.

    Documents are immutable, so they are cached for good. The pack in force can change at any time: a transaction that
    decides under a pack is opened `under` it, which checks that it still is in force.
    """

    def __init__(self, default: Pack | None) -> None:
        self.given = default is not None
        self.default = default or builtin_pack()
        self._known: OrderedDict[tuple[str, str], Pack] = OrderedDict()
        self._in_force: OrderedDict[str, Pack] = OrderedDict()
        # Documents by their digests: tenants whose documents are equal share one pack.
        self._documents: OrderedDict[str, tuple[object, Pack]] = OrderedDict()

    def known(self, tenant_id: str, ref: str) -> Pack | None:
        """The pack, if this process has seen it registered in the tenant."""
        return self._known.get((tenant_id, ref))

    def remember(self, tenant_id: str, pack: Pack) -> None:
        """Cache a registered pack."""
        self._known[(tenant_id, pack.ref)] = pack
        if len(self._known) > _CACHED:
            self._known.popitem(last=False)

    def in_force(self, tenant_id: str) -> Pack | None:
        """The pack that was in force in the tenant when this process last looked."""
        return self._in_force.get(tenant_id)

    def remember_in_force(self, tenant_id: str, pack: Pack) -> None:
        """Cache which pack is in force."""
        self.remember(tenant_id, pack)
        self._in_force[tenant_id] = pack
        if len(self._in_force) > _CACHED:
            self._in_force.popitem(last=False)

    def forget_in_force(self, tenant_id: str) -> None:
        """Read the pack in force again before the next decision in that tenant."""
        self._in_force.pop(tenant_id, None)

    async def read(self, tx: Transaction, ref: str) -> Pack | None:
        """The pack from the registry, or None."""
        if (known := self.known(tx.tenant_id, ref)) is not None:
            return known
        row = await tx.row("tenant.pack", pack=ref)
        if row is None:
            return None
        pack = self._read_once(row)
        self.remember(tx.tenant_id, pack)
        return pack

    def _read_once(self, row: Row) -> Pack:
        """The pack of a row of the registry: the one that was read before, if the documents are equal."""
        document, pack = self._documents.get(row["digest"], (None, None))
        if pack is None or document != row["document"]:
            pack = _registered(row).pack
            self._documents[row["digest"]] = row["document"], pack
        self._documents.move_to_end(row["digest"])
        if len(self._documents) > _DOCUMENTS:
            self._documents.popitem(last=False)
        return pack

    async def read_in_force(self, tx: Transaction) -> Pack | None:
        """The pack in force; None in a tenant that has none yet."""
        row = await tx.row("pack.in_force")
        return await self.read(tx, row["pack"]) if row is not None else None

    async def in_force_at(self, tx: Transaction, seq: int) -> Pack | None:
        """The pack in force at a sequence number; before the first activation, the first one's."""
        row = await tx.row("pack.in_force_at", seq=seq)
        return await self.read(tx, row["pack"]) if row is not None else None

    async def within_notice(self, tx: Transaction) -> list[Pack]:
        """Every pack in force within the notice period of a shorter horizon; the default if there is none."""
        rows = await tx.rows("pack.in_force_since", since=tx.now - NOTICE)
        found = [await self.read(tx, row["pack"]) for row in rows]
        return [pack for pack in found if pack is not None] or [self.default]


async def open_tenant(tx: Transaction, vault: Vault) -> None:
    """Create a tenant's clock, its key, its own data key and its audit key, unless it has them."""
    await tx.do("tenant.add")
    await tx.do("tenant.add_clock")
    await vault.create_tenant_key(tx)
    await vault.tenant_data_key(tx)
    await vault.create_row_key(tx)


async def register(tx: Transaction, pack: Pack, by: str) -> RegisteredPack:
    """Register a pack; the same again changes nothing, other content under the same version is `PackImmutable`."""
    # Validated again as a document: a modified copy was never validated as a whole.
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
            raise PackImmutable("was registered by somebody else at this moment", field="pack") from error
        labels = [(label.name, rank, label.sensitive) for rank, label in enumerate(pack.classifications)]
        await tx.insert_many("tenant.add_labels", labels, pack=pack.ref)
        if pack.memory_layer.subject.confirms:
            await tx.do("tenant.add_confirmation", pack=pack.ref, trust_floor=pack.memory_layer.trust.floor)
        tx.emit("memory.pack_registered", by, pack=pack.ref, digest=pack.digest)
        made = {"ref": pack.ref, "digest": pack.digest, "registered_at": tick.at, "registered_by": by}
        return RegisteredPack.model_validate(made | {"pack": pack, "retired": False, "in_force": False})
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
    """Put a registered version in force, by an admin or, for `by` None, by the program at its start.

    The tenant's first pack needs no second person. Raises `NotFound`; `Conflict` for a version that is retired or in
    force already; `SecondPersonRequired`; and `PackChanged` if somebody else activated one meanwhile, if another than
    the `expected` one is in force, or, for the tenant's `first` pack, if any is.
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
    columns = made.model_dump() | {"loosens": list(made.loosens), "at": made.activated_at, "by": made.activated_by}
    try:
        await tx.do("pack.activate", **columns, previous_seq=now["seq"] if now is not None else None)
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
    why = f"it loosens {'; '.join(found)}" if found else "the pack requires four eyes"
    return f"an admin other than {chosen.registered_by}, who registered {chosen.ref}, has to activate it: {why}"


async def retire(tx: Transaction, ref: str, by: Principal, reason: str) -> Retirement:
    """Retire a version; raises `NotFound`, and `Conflict` for the one in force or one that is retired."""
    tick = await tx.tick()
    now = await tx.row("pack.take_in_force")
    chosen = await one(tx, ref)
    if chosen.retired:
        raise Conflict(f"{ref} is retired already", field="ref")
    if now is not None and now["pack"] == ref:
        raise Conflict(f"{ref} is in force: activate another version first", field="ref")
    await tx.do("pack.retire", pack=ref, at=tick.at, by=by.id)
    tx.event_rows.add("packs.retired", pack=ref, retired_at=tick.at, retired_by=by.id)
    tx.emit("memory.pack_retired", by.id, pack=ref, reason=reason)
    return Retirement(pack=ref, retired_at=tick.at, retired_by=by.id, reason=reason)


async def activation_at(tx: Transaction, at: datetime) -> Activation:
    """The activation in force at a time; raises `NotFound` in a tenant that has none."""
    row = await tx.row("pack.activation_at", time=at)
    if row is None:
        raise NotFound("no pack is in force in this tenant yet: the first write puts one in force")
    return Activation(**row)


async def activations(tx: Transaction, count: int, before: int | None) -> Sequence[Activation]:
    """A page of the history, the latest first, before a sequence number."""
    return [Activation(**row) for row in await tx.rows("pack.activations", count=count, before=before)]


async def listed(tx: Transaction, count: int, after: str | None) -> list[RegisteredPack]:
    """A page of the packs in the order of registration; raises `NotFound` for an `after` that is not registered."""
    start = await cursors.page_start(tx, "tenant.pack_place", after)
    return [_registered(row) for row in await tx.rows("tenant.list_packs", count=count, **start)]


async def find(tx: Transaction, ref: str) -> RegisteredPack | None:
    """One registered pack, if there is one of that version."""
    row = await tx.row("tenant.pack", pack=ref)
    return _registered(row) if row is not None else None


async def one(tx: Transaction, ref: str, field: str = "ref") -> RegisteredPack:
    """One registered pack; raises `NotFound`."""
    found = await find(tx, ref)
    if found is None:
        raise NotFound(f"no such pack is registered in this tenant: {ref}", field=field)
    return found


def _registered(row: Row) -> RegisteredPack:
    document = Pack.model_validate(row["document"])
    return RegisteredPack(**fields_of(RegisteredPack, row, ref=row["pack"], pack=document, retired=not row["usable"]))
