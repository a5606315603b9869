"""LangGraph's PostgresStore with semantic search, as its documentation sets it up; runs in its own environment."""

# pyright: reportMissingImports=false
# The peer is installed in its own environment only.

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, LiteralString

import psycopg
from langgraph.store.base import PutOp
from langgraph.store.postgres import AsyncPostgresStore, PostgresStore

from bench.peers.contest import Contestant, Said, main
from bench.peers.embedder import DIMENSIONS, embed


class _Postgres(Contestant):
    """What is the same for both faces of the store."""

    package = "langgraph-checkpoint-postgres"
    has_batches = True

    def __init__(self, postgres: str) -> None:
        self._postgres = postgres
        self._empty = self._size()

    async def settle(self) -> None:
        # What autovacuum does within a minute or so: without it the planner knows nothing of the rows.
        with psycopg.connect(self._postgres, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")

    async def disk_bytes(self) -> int:
        return self._size() - self._empty

    async def log_bytes(self) -> int:
        return self._number("SELECT pg_current_wal_lsn() - '0/0'")

    def _size(self) -> int:
        return self._number("SELECT pg_database_size(current_database())")

    def _number(self, query: LiteralString) -> int:
        with psycopg.connect(self._postgres, autocommit=True) as connection:
            found = connection.execute(query).fetchone()
        assert found is not None
        return int(found[0])


class Blocking(_Postgres):
    """The blocking store."""

    def __init__(self, postgres: str, store: PostgresStore) -> None:
        super().__init__(postgres)
        self._store = store

    async def add(self, conversation: str, turn: Said) -> None:
        self._store.put((conversation,), turn.id, {"text": turn.text, "date": turn.date})

    async def add_many(self, conversation: str, turns: Sequence[Said]) -> None:
        self._store.batch(_puts(conversation, turns))

    async def search(self, conversation: str, text: str, limit: int) -> list[str]:
        return [item.key for item in self._store.search((conversation,), query=text, limit=limit)]


class Async(_Postgres):
    """The async store."""

    def __init__(self, postgres: str, store: AsyncPostgresStore) -> None:
        super().__init__(postgres)
        self._store = store

    async def add(self, conversation: str, turn: Said) -> None:
        await self._store.aput((conversation,), turn.id, {"text": turn.text, "date": turn.date})

    async def add_many(self, conversation: str, turns: Sequence[Said]) -> None:
        await self._store.abatch(_puts(conversation, turns))

    async def search(self, conversation: str, text: str, limit: int) -> list[str]:
        return [item.key for item in await self._store.asearch((conversation,), query=text, limit=limit)]


def _puts(conversation: str, turns: Sequence[Said]) -> list[PutOp]:
    return [PutOp((conversation,), turn.id, {"text": turn.text, "date": turn.date}) for turn in turns]


async def _embed(texts: Sequence[str]) -> list[list[float]]:
    return embed(texts)


@asynccontextmanager
async def opened(job: dict[str, Any]) -> AsyncGenerator[Contestant]:
    """The blocking store, which is the faster one, unless the job asks for the async; one connection, its own index."""
    postgres = job["postgres"]
    if not job.get("async"):
        index = {"dims": DIMENSIONS, "embed": embed, "fields": ["text"]}
        with PostgresStore.from_conn_string(postgres, index=index) as store:
            contestant = Blocking(postgres, store)
            store.setup()
            yield contestant
    else:
        index = {"dims": DIMENSIONS, "embed": _embed, "fields": ["text"]}
        async with AsyncPostgresStore.from_conn_string(postgres, index=index) as store:
            contestant = Async(postgres, store)
            await store.setup()
            yield contestant


if __name__ == "__main__":
    main(opened)
