"""mem0 without a language model, on its local Qdrant; runs in its own environment."""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false
# The peer is installed in its own environment only.

import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mem0 import Memory
from mem0.embeddings.base import EmbeddingBase
from mem0.utils.factory import EmbedderFactory

from bench.peers.contest import Contestant, Said, folder_bytes, main
from bench.peers.embedder import DIMENSIONS, embed

# mem0 takes the providers it knows and no other: ours stands in for one of them.
PROVIDER = "langchain"


class Same(EmbeddingBase):
    """The embedder that all contestants use."""

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        """The vector of one text."""
        del memory_action
        return embed([text])[0]


class Mem0(Contestant):
    """Every turn is a memory as it stands: `infer=False`."""

    package = "mem0ai"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        EmbedderFactory.provider_to_class[PROVIDER] = f"{Same.__module__}.{Same.__qualname__}"
        self._memory = Memory.from_config(
            {
                "vector_store": {
                    "provider": "qdrant",
                    "config": {"path": str(folder / "qdrant"), "embedding_model_dims": DIMENSIONS},
                },
                "embedder": {"provider": PROVIDER, "config": {}},
                # Asked for when it starts, never called.
                "llm": {"provider": "openai", "config": {"api_key": "none"}},
                "history_db_path": str(folder / "history.db"),
            }
        )

    async def add(self, conversation: str, turn: Said) -> None:
        self._memory.add(turn.text, user_id=conversation, metadata={"turn": turn.id, "date": turn.date}, infer=False)

    async def search(self, conversation: str, text: str, limit: int) -> list[str]:
        found = self._memory.search(text, top_k=limit, filters={"user_id": conversation})
        return [one["metadata"]["turn"] for one in found["results"]]

    async def disk_bytes(self) -> int:
        return folder_bytes(self._folder)

    def close(self) -> None:
        """Let go of the folder."""
        self._memory.vector_store.client.close()


@asynccontextmanager
async def opened(job: dict[str, Any]) -> AsyncGenerator[Contestant]:
    """mem0 on an empty folder."""
    del job
    with tempfile.TemporaryDirectory(prefix="mb", ignore_cleanup_errors=True) as folder:
        store = Mem0(Path(folder))
        yield store
        store.close()


if __name__ == "__main__":
    main(opened)
