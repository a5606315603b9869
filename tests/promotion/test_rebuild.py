"""What memories are found by can be made again: the durable tier from its log, words and vectors of any."""

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from muniment import AsyncFabric, Fabric
from muniment.language.embedding import BUILTIN_EMBEDDER, Vectors, builtin_embedder
from muniment.language.embedding.function import FunctionEmbedder
from muniment.promotion import reindex
from muniment.promotion.reindex import Rebuilt
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.faults.forging import begin_unchecked
from tests.stories import CONSENT, remembered

# Of each table the columns that a durable memory is found by.
PROJECTION = ("memory_scope", "memory_words", "memory_terms", "memory_vectors", "memory_links")


def rebuild(server: TestServer, database: str, tenant: str, clock: FakeClock) -> Rebuilt:
    async def work() -> Rebuilt:
        async with AsyncFabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS) as fabric:
            assert fabric._opened is not None
            return await reindex.rebuilt(fabric._opened.context, fabric._opened.address, tenant)

    return asyncio.run(work())


def durable_lives(fabric: Fabric, people: People) -> dict[str, str]:
    """Durable memories of every fate: standing, linked, superseded, retracted, tombstoned; and one that is not durable."""
    subject = "customer:cust_9"
    consent = fabric.consent.grant(people.officer, subject=subject, **CONSENT)
    lives = {
        "standing": remembered(fabric, people, "email", tier="durable"),
        "linked": remembered(fabric, people, "company:acme", predicate="employer", tier="durable"),
        "retracted": remembered(fabric, people, "blue", predicate="colour", tier="durable"),
        "tombstoned": remembered(
            fabric, people, "oolong", entity=subject, predicate="tea", subject=subject, classification="PII", tier="durable"
        ),
        "semantic": remembered(fabric, people, "green", predicate="cup"),
    }  # fmt: skip
    fabric.retract(people.reviewer, lives["retracted"], reason="wrong")
    fabric.consent.revoke(people.officer, consent.consent_id)
    fabric.consent.sweep(people.tenant_id)
    return lives


def projection(rows: Any) -> dict[str, list[dict[str, Any]]]:
    # As text: an expiry at infinity is no time that Python knows.
    return {table: sorted(rows(f"{table} t", "memory_id, t::text AS whole"), key=str) for table in PROJECTION}


@pytest.mark.rule("TIR-4")
def test_the_durable_projection_made_again_equals_what_it_replaces_tombstones_included(
    fabric: Fabric, people: People, server: TestServer, database: str, clock: FakeClock, rows: Any
) -> None:
    durable_lives(fabric, people)
    before = projection(rows)
    assert rebuild(server, database, people.tenant_id, clock) == Rebuilt(4)
    assert projection(rows) == before
    assert len(rows("tombstones")) == 1


@pytest.mark.rule("TIR-4")
def test_what_was_lost_or_changed_in_the_durable_projection_is_repaired_and_named(
    fabric: Fabric, people: People, server: TestServer, database: str, clock: FakeClock, rows: Any
) -> None:
    lives = durable_lives(fabric, people)
    before = projection(rows)
    with server.connect(database) as owner:
        begin_unchecked(owner)
        owner.execute("DELETE FROM memory_scope WHERE memory_id = %s", [lives["standing"]])
        owner.execute("UPDATE memory_scope SET dead_seq = NULL WHERE memory_id = %s", [lives["retracted"]])
        owner.execute("DELETE FROM memory_links WHERE memory_id = %s", [lives["linked"]])
        owner.execute("DELETE FROM memory_words WHERE memory_id = %s", [lives["semantic"]])
    done = rebuild(server, database, people.tenant_id, clock)
    assert done == Rebuilt(4, tuple(sorted(lives[name] for name in ("standing", "retracted", "linked"))))
    lost = {"memory_words": lives["semantic"]}
    assert projection(rows) == {
        table: [row for row in found if row["memory_id"] != lost.get(table)] for table, found in before.items()
    }, "what is not durable is not touched"


@pytest.mark.rule("TIR-4", "ISO-1")
def test_a_rebuild_touches_one_tenant_alone(
    fabric: Fabric, people: People, others: People, server: TestServer, database: str, clock: FakeClock
) -> None:
    durable_lives(fabric, people)
    theirs = remembered(fabric, others, "email", tier="durable")
    with server.connect(database) as owner:
        owner.execute("DELETE FROM memory_words WHERE memory_id = %s", [theirs])
    assert rebuild(server, database, people.tenant_id, clock) == Rebuilt(4)
    with server.connect(database) as owner:
        assert owner.execute("SELECT count(*) FROM memory_words WHERE memory_id = %s", [theirs]).fetchone() == (0,)
    assert rebuild(server, database, others.tenant_id, clock) == Rebuilt(1, (theirs,))


def other_embedder(calls: list[int]) -> FunctionEmbedder:
    """Another model: the built-in's vectors turned around, of another length."""

    def embed(texts: Sequence[str]) -> Vectors:
        calls.append(len(texts))
        known = builtin_embedder().embed(list(texts))
        return np.concatenate([known[:, ::-1], known[:, :8]], axis=1)

    return FunctionEmbedder(embed, name="turned@1", dimensions=264)


@pytest.mark.rule("JOB-11", "REC-8")
def test_recall_uses_the_old_vectors_until_the_new_are_complete_and_says_which(
    fabric: Fabric, people: People, server: TestServer, database: str, clock: FakeClock, rows: Any
) -> None:
    first = remembered(fabric, people, "tea in the morning", predicate="breakfast")
    calls: list[int] = []
    with Fabric.open(
        server.url(database), clock=clock, master_keys=MASTER_KEYS, embedder=other_embedder(calls)
    ) as changed:
        asked = changed.recall(people.run(), "what is for breakfast")
        assert (asked.embedder, asked.degraded) == (BUILTIN_EMBEDDER, ())
        second = remembered(changed, people, "a window seat", predicate="seat")
        made = {(row["memory_id"], row["embedder"]) for row in rows("memory_vectors", "memory_id, embedder")}
        assert made == {(first, BUILTIN_EMBEDDER), (second, BUILTIN_EMBEDDER), (second, "turned@1")}
        done = changed.reindex(people.tenant_id)
        assert (done.memories, done.embedder) == (1, "turned@1")
        assert changed.reindex(people.tenant_id).memories == 0
        again = changed.recall(people.run(), "what is for breakfast")
        assert again.embedder == "turned@1"
        assert next(record.id for record in again.records) == first
        assert changed.replay(people.auditor, asked.recall_id).same
    old = fabric.recall(people.run(), "what is for breakfast")
    assert old.embedder == BUILTIN_EMBEDDER, "a process that still has the old one goes on with it"


@pytest.mark.rule("JOB-11", "ERR-4")
def test_vectors_of_an_embedder_that_this_process_has_not_are_not_used_and_recall_says_so(
    people: People, server: TestServer, database: str, clock: FakeClock
) -> None:
    with Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS, embedder=other_embedder([])) as first:
        memory = remembered(first, people, "tea in the morning", predicate="breakfast")
    with Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS) as later:
        answer = later.recall(people.run(), "tea")
        assert ([record.id for record in answer.records], answer.embedder) == ([memory], None)
        assert answer.degraded == ("embedder",)
        assert later.reindex(people.tenant_id).embedder == BUILTIN_EMBEDDER
        assert later.recall(people.run(), "tea").degraded == ()


@pytest.mark.rule("JOB-11")
def test_reindexing_gives_words_and_links_to_memories_from_before_there_were_any(
    fabric: Fabric, people: People, server: TestServer, database: str, rows: Any
) -> None:
    remembered(fabric, people, "company:acme", predicate="employer")
    before = projection(rows)
    with server.connect(database) as owner:
        for table in ("memory_words", "memory_links"):
            owner.execute(f"DELETE FROM {table} WHERE tenant_id = %s", [people.tenant_id])
    assert fabric.reindex(people.tenant_id).memories == 1
    assert projection(rows) == before
    assert fabric.reindex("tenant_that_never_was").memories == 0
