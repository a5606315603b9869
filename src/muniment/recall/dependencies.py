"""What a recall needs beside its request: keys, the embedder in use with the query's vector, the session store."""

from dataclasses import dataclass

from anyio import fail_after

from muniment.context import FabricContext
from muniment.database.sealing import Vault
from muniment.database.vectors import Vector
from muniment.errors import EmbedderUnavailable
from muniment.language.embedding import Embedder, StaticEmbedder, embedded
from muniment.language.instructions import visible_text
from muniment.sessions.store import SessionStore

# Longest wait for an embedder; after that the recall ranks by words and priority.
PATIENCE_SECONDS = 5.0


@dataclass(frozen=True)
class RecallDependencies:
    """What a recall needs: keys, the embedder in use (None: none that this process has), the session store.

    `query_vector` is the query's vector by an embedder other than the built-in, which is called before the transaction.
    """

    vault: Vault
    embedder: Embedder | None
    sessions: SessionStore
    query_vector: Vector | None = None


async def dependencies(context: FabricContext, tenant_id: str, query: str | None) -> RecallDependencies:
    """Return what a recall in that tenant needs; an embedder that may be slow is called here, outside a transaction."""
    used = context.embedders.known(tenant_id)
    if used is None and query is not None:
        async with context.transaction(tenant_id, "recall") as tx:
            used = await context.embedders.read(tx)
    if used is None or not used.complete or query is None:
        return RecallDependencies(context.vault, None, context.sessions)
    return RecallDependencies(context.vault, used.in_use, context.sessions, await embed_query(used.in_use, query))


async def embed_query(embedder: Embedder | None, query: str | None) -> Vector | None:
    """Embed a query by an embedder other than the built-in; None without known words, or if it does not answer."""
    if embedder is None or query is None or isinstance(embedder, StaticEmbedder):
        return None
    try:
        with fail_after(PATIENCE_SECONDS):
            (vector,) = await embedded(embedder, [visible_text(query)])
    except (EmbedderUnavailable, TimeoutError):
        return None
    return vector if vector.any() else None
