"""The pack registry: once per tenant and version, immutable then; and the tenants that packs are registered in."""

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime

import psycopg
from psycopg.types.json import Jsonb
from pydantic_core import to_json

from muniment.errors import NotFound, PackImmutable
from muniment.governance import pages
from muniment.pack import Pack, builtin_pack, load_pack
from muniment.storage.sealing import Vault
from muniment.storage.session import Row, Transaction

_CACHED = 1024


@dataclass(frozen=True)
class RegisteredPack:
    """A pack as it stands in the registry."""

    ref: str
    digest: str
    registered_at: datetime
    registered_by: str
    pack: Pack


class Packs:
    """Packs by tenant and reference; as they are immutable, what was read once is kept."""

    def __init__(self, default: Pack | None) -> None:
        self.default = default or builtin_pack()
        self._known: OrderedDict[tuple[str, str], Pack] = OrderedDict()

    def known(self, tenant_id: str, ref: str | None) -> Pack | None:
        """The pack, if this process has seen it registered in the tenant."""
        return self._known.get((tenant_id, ref or self.default.ref))

    def remember(self, tenant_id: str, pack: Pack) -> None:
        """Keep a registered pack."""
        self._known[(tenant_id, pack.ref)] = pack
        if len(self._known) > _CACHED:
            self._known.popitem(last=False)

    async def read(self, tx: Transaction, ref: str) -> Pack | None:
        """The pack from the registry."""
        row = await tx.row("tenant.pack", pack=ref)
        if row is None:
            return None
        pack = _registered(row).pack
        self.remember(tx.tenant_id, pack)
        return pack

    async def read_at(self, tx: Transaction, seq: int) -> Pack | None:
        """The pack that had been registered last when the tenant was at that number."""
        row = await tx.row("tenant.pack_at", seq=seq)
        return _registered(row).pack if row is not None else None


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
    pack = load_pack(to_json(pack.document()))
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
    return RegisteredPack(row["pack"], row["digest"], row["registered_at"], row["registered_by"], pack)
