"""Turns texts into vectors: `builtin_embedder()` works without network, `choose` finds others by a setting.

`embedded(embedder, texts)` returns one row of unit length for each text.
"""

from collections.abc import Sequence

from anyio import move_on_after
from anyio.to_thread import run_sync

from muniment.errors import EmbedderUnavailable
from muniment.language.embedding.static import NAME as BUILTIN_EMBEDDER
from muniment.language.embedding.static import Embedder, StaticEmbedder, Vectors, builtin_embedder

# The longest that any call may take; a recall continues without the embedder sooner.
PATIENCE_SECONDS = 60.0

__all__ = ["BUILTIN_EMBEDDER", "Embedder", "StaticEmbedder", "Vectors", "builtin_embedder", "embedded"]


async def embedded(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    """Return the vectors of texts; every embedder but the built-in one runs on a thread, as it may take long."""
    if not texts or isinstance(embedder, StaticEmbedder):
        return embedder.embed(texts)
    with move_on_after(PATIENCE_SECONDS):
        # Abandoned when it takes too long; its answer is dropped.
        return await run_sync(embedder.embed, texts, abandon_on_cancel=True)
    raise EmbedderUnavailable(f"the embedder {embedder.name} did not answer within {PATIENCE_SECONDS} seconds")
