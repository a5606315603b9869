"""Embedders: what turns a text into a vector. The built-in one needs no network."""

from collections.abc import Sequence

from anyio.to_thread import run_sync

from muniment.embedding.static import NAME as BUILTIN_EMBEDDER
from muniment.embedding.static import Embedder, StaticEmbedder, Vectors, builtin_embedder

__all__ = ["BUILTIN_EMBEDDER", "Embedder", "StaticEmbedder", "Vectors", "builtin_embedder", "embedded"]


async def embedded(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    """The vectors of texts; what may take long, as any but the built-in may, holds up nobody else."""
    if not texts or isinstance(embedder, StaticEmbedder):
        return embedder.embed(texts)
    return await run_sync(embedder.embed, texts)
