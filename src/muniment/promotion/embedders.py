"""Embedders by tenant: which one recall and comparisons use, while another catches up (JOB-11)."""

from collections import OrderedDict
from dataclasses import dataclass

from muniment.database.storage import Row, Transaction
from muniment.language.embedding import BUILTIN_EMBEDDER, Embedder, builtin_embedder

_CACHED = 4096


@dataclass(frozen=True)
class InUse:
    """The embedder whose vectors are complete in a tenant, and the fabric's own where that is still catching up."""

    in_use: Embedder
    coming: Embedder | None = None
    complete: bool = True


class Embedders:
    """Which embedder is used in which tenant; what has settled is kept."""

    def __init__(self, own: Embedder) -> None:
        self.own = own
        self._settled: OrderedDict[str, InUse] = OrderedDict()

    def known(self, tenant_id: str) -> InUse | None:
        """What has settled in a tenant, if this process has seen it."""
        return self._settled.get(tenant_id)

    def remember(self, tenant_id: str, used: InUse) -> None:
        """Keep what is committed, if it has settled."""
        if used.coming is None and used.complete:
            self._settled[tenant_id] = used
            if len(self._settled) > _CACHED:
                self._settled.popitem(last=False)

    async def look(self, tx: Transaction) -> InUse:
        """Which is used there now; writes nothing."""
        return self.known(tx.tenant_id) or self._chosen(tx.tenant_id, await tx.rows("indexing.embedders"))

    async def enter(self, tx: Transaction) -> InUse:
        """The same for who will write vectors: the fabric's own embedder is noted where it was not."""
        if (known := self.known(tx.tenant_id)) is not None:
            return known
        rows = await tx.rows("indexing.embedders")
        if all(row["embedder"] != self.own.name for row in rows):
            tx.defer("indexing.add_embedder", embedder=self.own.name, dimensions=self.own.dimensions)
        return self._chosen(tx.tenant_id, rows)

    def _chosen(self, tenant_id: str, rows: list[Row]) -> InUse:
        complete = {row["embedder"] for row in rows if row["completed_at"] is not None}
        if not rows:
            return InUse(self.own)
        if self.own.name in complete:
            used = InUse(self.own)
            self.remember(tenant_id, used)
            return used
        if BUILTIN_EMBEDDER in complete:
            return InUse(builtin_embedder(), self.own)
        # Vectors of an embedder that this process does not have are of no use to it.
        return InUse(self.own, complete=False)
