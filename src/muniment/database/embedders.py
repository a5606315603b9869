"""Embedders by tenant: which one recall and comparisons use, while the next one is being indexed (JOB-11)."""

from collections import OrderedDict
from dataclasses import dataclass
from time import monotonic

from muniment.database.storage import Row, Transaction
from muniment.database.vector_index import index_name
from muniment.language.embedding import BUILTIN_EMBEDDER, Embedder, builtin_embedder

_CACHED = 4096
# A cached choice is read again after so long: the tenant may have a vector index since.
_CACHED_SECONDS = 600.0


@dataclass(frozen=True)
class EmbedderChoice:
    """The embedder that a tenant uses, and the fabric's own as the next one where its vectors are not complete yet.

    `complete` is False where the tenant has vectors, but none of an embedder that this process has. `by_index` is True
    where the vectors of a large tenant are searched by an index.
    """

    in_use: Embedder
    next_embedder: Embedder | None = None
    complete: bool = True
    by_index: bool = False


class Embedders:
    """The embedder of each tenant; a choice that is final is cached."""

    def __init__(self, own: Embedder) -> None:
        self.own = own
        # With the time at which each was read.
        self._final: OrderedDict[str, tuple[EmbedderChoice, float]] = OrderedDict()

    def known(self, tenant_id: str) -> EmbedderChoice | None:
        """Return the final choice of a tenant, if this process has read it lately."""
        choice, read_at = self._final.get(tenant_id, (None, 0.0))
        return choice if monotonic() - read_at < _CACHED_SECONDS else None

    def remember(self, tenant_id: str, used: EmbedderChoice) -> None:
        """Cache a committed choice, if it is final."""
        if used.next_embedder is None and used.complete:
            self._final[tenant_id] = used, monotonic()
            if len(self._final) > _CACHED:
                self._final.popitem(last=False)

    async def read(self, tx: Transaction) -> EmbedderChoice:
        """Read which embedder the tenant uses; writes nothing."""
        return self.known(tx.tenant_id) or self._choose(tx.tenant_id, await self._rows(tx))

    async def register(self, tx: Transaction) -> EmbedderChoice:
        """Read the choice before writing vectors; the fabric's own embedder is recorded where it was not."""
        if (known := self.known(tx.tenant_id)) is not None:
            return known
        rows = await self._rows(tx)
        if all(row["embedder"] != self.own.name for row in rows):
            tx.defer("indexing.add_embedder", embedder=self.own.name, dimensions=self.own.dimensions)
        return self._choose(tx.tenant_id, rows)

    async def _rows(self, tx: Transaction) -> list[Row]:
        return await tx.rows("indexing.embedders", index=index_name(tx.tenant_id))

    def _choose(self, tenant_id: str, rows: list[Row]) -> EmbedderChoice:
        complete = {row["embedder"] for row in rows if row["completed_at"] is not None}
        if not rows:
            return EmbedderChoice(self.own)
        if self.own.name in complete:
            by_index = self.own.name == BUILTIN_EMBEDDER and bool(rows[0]["by_index"])
            used = EmbedderChoice(self.own, by_index=by_index)
            self.remember(tenant_id, used)
            return used
        if BUILTIN_EMBEDDER in complete:
            return EmbedderChoice(builtin_embedder(), self.own, by_index=bool(rows[0]["by_index"]))
        return EmbedderChoice(self.own, complete=False)
