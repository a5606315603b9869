"""Embedders: what turns a text into a vector. The built-in one needs no network."""

from muniment.embedding.static import NAME as BUILTIN_EMBEDDER
from muniment.embedding.static import Embedder, StaticEmbedder, Vectors, builtin_embedder

__all__ = ["BUILTIN_EMBEDDER", "Embedder", "StaticEmbedder", "Vectors", "builtin_embedder"]
