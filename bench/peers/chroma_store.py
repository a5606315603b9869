"""Chroma on disk, a collection for each conversation; runs in its own environment."""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false
# The peer is installed in its own environment only.

import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import chromadb
import numpy as np
from chromadb.api.types import Documents, EmbeddingFunction, Embeddings
from chromadb.config import Settings

from bench.peers.contest import Contestant, Said, folder_bytes, main
from bench.peers.embedder import embed


class Same(EmbeddingFunction[Documents]):
    """The embedder that all contestants use."""

    def __init__(self) -> None:
        pass

    def __call__(self, input: Documents) -> Embeddings:  # noqa: A002  its caller names it
        return [np.asarray(vector, dtype=np.float32) for vector in embed(input)]

    @staticmethod
    def name() -> str:
        """What Chroma writes beside the collection."""
        return "muniment"

    def get_config(self) -> dict[str, Any]:
        """Nothing to be told apart by."""
        return {}

    @staticmethod
    def build_from_config(config: dict[str, Any]) -> "Same":
        """The same again."""
        del config
        return Same()


class Chroma(Contestant):
    """The client that writes to a folder."""

    package = "chromadb"
    has_batches = True

    def __init__(self, folder: Path, conversations: Sequence[str]) -> None:
        self._folder = folder
        client = chromadb.PersistentClient(str(folder), Settings(anonymized_telemetry=False))
        self._collections = {
            name: client.create_collection(name, embedding_function=Same(), configuration={"hnsw": {"space": "cosine"}})
            for one in conversations
            for name in (one, f"{one}-batch")
        }

    async def add(self, conversation: str, turn: Said) -> None:
        self._collections[conversation].add(ids=[turn.id], documents=[turn.text], metadatas=[{"date": turn.date}])

    async def add_many(self, conversation: str, turns: Sequence[Said]) -> None:
        self._collections[conversation].add(
            ids=[turn.id for turn in turns],
            documents=[turn.text for turn in turns],
            metadatas=[{"date": turn.date} for turn in turns],
        )

    async def search(self, conversation: str, text: str, limit: int) -> list[str]:
        return self._collections[conversation].query(query_texts=[text], n_results=limit)["ids"][0]

    async def disk_bytes(self) -> int:
        return folder_bytes(self._folder)


@asynccontextmanager
async def opened(job: dict[str, Any]) -> AsyncGenerator[Contestant]:
    """Chroma on an empty folder, with the collections there already."""
    with tempfile.TemporaryDirectory(prefix="mb", ignore_cleanup_errors=True) as folder:
        yield Chroma(Path(folder), [talk["id"] for talk in job["conversations"]])


if __name__ == "__main__":
    main(opened)
