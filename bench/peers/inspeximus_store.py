"""inspeximus with the same embedder, a store file for each conversation; runs in its own environment."""

# pyright: reportMissingImports=false
# The peer is installed in its own environment only.

import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from inspeximus import Inspeximus

from bench.peers.contest import Contestant, Said, folder_bytes, main
from bench.peers.embedder import embed


class Store(Contestant):
    """Every turn is remembered as it stands."""

    package = "inspeximus"

    def __init__(self, folder: Path, conversations: Sequence[str]) -> None:
        self._folder = folder
        self._turns: dict[str, str] = {}  # by the ids of its memories
        self._stores = {
            name: Inspeximus(str(folder / f"{name}.db"), embed=lambda text: embed([text])[0], persist_vectors=True)
            for name in conversations
        }

    async def add(self, conversation: str, turn: Said) -> None:
        self._turns[self._stores[conversation].remember(turn.text, meta={"date": turn.date})] = turn.id

    async def search(self, conversation: str, text: str, limit: int) -> list[str]:
        return [self._turns[one["id"]] for one in self._stores[conversation].recall(text, k=limit)]

    async def disk_bytes(self) -> int:
        return folder_bytes(self._folder)


@asynccontextmanager
async def opened(job: dict[str, Any]) -> AsyncGenerator[Contestant]:
    """Stores in an empty folder."""
    with tempfile.TemporaryDirectory(prefix="mb", ignore_cleanup_errors=True) as folder:
        yield Store(Path(folder), [talk["id"] for talk in job["conversations"]])


if __name__ == "__main__":
    main(opened)
