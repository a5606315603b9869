"""Embedders by tenant: which one recall and comparisons use, while the next one is being indexed (JOB-11)."""

from collections import OrderedDict
from dataclasses import dataclass

from muniment.database.storage import Row, Transaction
from muniment.language.embedding import BUILTIN_EMBEDDER, Embedder, builtin_embedder

_CACHED = 4096


@dataclass(frozen=True)
class EmbedderChoice:
    """The embedder that a tenant uses, and the fabric's own as the next one where its vectors are not complete yet.

    `complete` is False where the tenant has vectors, but none of an embedder that this process has.
    """

    in_use: Embedder
    next_embedder: Embedder | None = None
    complete: bool = True


class Embedders:
    """The embedder of each tenant; a choice that is final is cached."""

    def __init__(self, own: Embedder) -> None:
        self.own = own
        self._final: OrderedDict[str, EmbedderChoice] = OrderedDict()

    def known(self, tenant_id: str) -> EmbedderChoice | None:
        """Return the final choice of a tenant, if this process has seen it."""
        return self._final.get(tenant_id)

    def remember(self, tenant_id: str, used: EmbedderChoice) -> None:
        """Cache a committed choice, if it is final."""
        if used.next_embedder is None and used.complete:
            self._final[tenant_id] = used
            if len(self._final) > _CACHED:
                self._final.popitem(last=False)

    async def read(self, tx: Transaction) -> EmbedderChoice:
        """Read which embedder the tenant uses; writes nothing."""
        return self.known(tx.tenant_id) or self._choose(tx.tenant_id, await tx.rows("indexing.embedders"))

    async def register(self, tx: Transaction) -> EmbedderChoice:
        """Read the choice before writing vectors; the fabric's own embedder is recorded where it was not."""
        if (known := self.known(tx.tenant_id)) is not None:
            return known
        rows = await tx.rows("indexing.embedders")
        if all(row["embedder"] != self.own.name for row in rows):
            tx.defer("indexing.add_embedder", embedder=self.own.name, dimensions=self.own.dimensions)
        return self._choose(tx.tenant_id, rows)

    def _choose(self, tenant_id: str, rows: list[Row]) -> EmbedderChoice:
        complete = {row["embedder"] for row in rows if row["completed_at"] is not None}
        if not rows:
            return EmbedderChoice(self.own)
        if self.own.name in complete:
            used = EmbedderChoice(self.own)
            self.remember(tenant_id, used)
            return used
        if BUILTIN_EMBEDDER in complete:
            return EmbedderChoice(builtin_embedder(), self.own)
        return EmbedderChoice(self.own, complete=False)
