"""Embedders: what turns a text into a vector. The built-in one needs no network."""

from collections.abc import Sequence

from anyio import move_on_after
from anyio.to_thread import run_sync

from muniment.errors import EmbedderUnavailable
from muniment.language.embedding.static import NAME as BUILTIN_EMBEDDER
from muniment.language.embedding.static import Embedder, StaticEmbedder, Vectors, builtin_embedder

# Of any call, a batch's too; a recall goes on without it sooner.
PATIENCE_SECONDS = 60.0

__all__ = ["BUILTIN_EMBEDDER", "Embedder", "StaticEmbedder", "Vectors", "builtin_embedder", "embedded"]


async def embedded(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    """The vectors of texts; what may take long, as any but the built-in may, holds up nobody else."""
    if not texts or isinstance(embedder, StaticEmbedder):
        return embedder.embed(texts)
    with move_on_after(PATIENCE_SECONDS):
        # Left behind when it takes too long: its answer comes to nothing.
        return await run_sync(embedder.embed, texts, abandon_on_cancel=True)
    raise EmbedderUnavailable(f"the embedder {embedder.name} did not answer within {PATIENCE_SECONDS} seconds")
