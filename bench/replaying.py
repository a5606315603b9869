"""Replay: 2,000 recalls run again as of then, at once, and after 10,000 later promotions, retractions and expiries."""

import random
import sys
import time
from datetime import timedelta
from typing import Any

from bench.furnish import WORDS
from bench.measure import Figure, at_least
from muniment import AsyncFabric
from muniment.evaluation.temporary_fabric import evaluation_pack
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS

FIRST, RECALLS, LATER, RETRACTED, USERS = 600, 2000, 9000, 1000, 4


async def run(server: TestServer, quick: bool) -> list[Figure]:
    """In one tenant: talk of some users and of nobody's, of two tiers, one of which expires meanwhile."""
    database, clock, chance = server.clone(), FakeClock(), random.Random(5)
    first, count, later_many, retracted = (100, 120, 1000, 20) if quick else (FIRST, RECALLS, LATER, RETRACTED)
    people = People("replaying")
    async with AsyncFabric.open(
        server.url(database), master_keys=MASTER_KEYS, pack=evaluation_pack(20), clock=clock
    ) as fabric:
        ids = await _promoted(fabric, people, chance, first)
        recalls: list[str] = []
        moments = [clock.now]
        for n in range(count):
            clock.now += timedelta(seconds=30)
            if n % 100 == 99:
                ids += await _promoted(fabric, people, chance, 5)
                await fabric.retract(people.reviewer, ids.pop(chance.randrange(len(ids))), reason="deprecated")
                moments.append(clock.now)
            recalls.append((await fabric.recall(*_asked(people, chance), **_narrowed(chance, moments))).recall_id)
        at_once = await _same(fabric, people, recalls)
        for _ in range(later_many // 1000):
            ids += await _promoted(fabric, people, chance, 1000)
            clock.now += timedelta(days=4)
        for _ in range(retracted):
            await fabric.retract(people.reviewer, ids.pop(chance.randrange(len(ids))), reason="deprecated")
        later = await _same(fabric, people, recalls)
    server.drop(database)
    changes = later_many + retracted
    said = f"{at_once:,} at once, {later:,} after {changes:,} promotions and retractions, and the expiry of all that was episodic"
    share = min(at_once, later) / count
    scope = f"up to {first + later_many:,}, by user"
    return [at_least(f"recalls that replay identically, of {count:,}", share, "of all", 1.0, scope, said)]


async def _promoted(fabric: AsyncFabric, people: People, chance: random.Random, count: int) -> list[str]:
    items: list[dict[str, Any]] = [
        {
            "kind": "statement",
            "text": " ".join(chance.choices(WORDS, k=8)),
            "classification": chance.choice(["PUBLIC", "INTERNAL", "CONFIDENTIAL"]),
            "user_id": chance.choice([None, *(f"user_{n}" for n in range(USERS))]),
            "intent_id": chance.choice([None, "support.orders.change", "sales.*"]),
        }
        for _ in range(count)
    ]
    await fabric.capture_many(people.service, items)
    done = await fabric.consolidate(people.tenant_id)
    approved = await fabric.queue.approve_many(people.reviewer, done.proposals)
    return [one.memory_id for one in approved if one.memory_id is not None]


def _asked(people: People, chance: random.Random) -> tuple[Any, str | None]:
    run = people.run(
        chance.choice([None, *(f"user_{n}" for n in range(USERS))]),
        intent_id=chance.choice([None, "support.orders.change", "sales.offer"]),
        classification_allowed=chance.choice(
            [{"PUBLIC"}, {"PUBLIC", "INTERNAL"}, {"PUBLIC", "INTERNAL", "CONFIDENTIAL"}]
        ),
    )
    return run, " ".join(chance.choices(WORDS, k=4)) if chance.random() < 0.8 else None


def _narrowed(chance: random.Random, moments: list[Any]) -> dict[str, Any]:
    given: dict[str, Any] = {"limit": chance.choice([1, 3, 8, 20])}
    if chance.random() < 0.2:
        given["as_of"] = chance.choice(moments)
    if chance.random() < 0.2:
        given["tiers"] = [chance.choice(["episodic", "semantic"])]
    return given


async def _same(fabric: AsyncFabric, people: People, recalls: list[str]) -> int:
    started = time.perf_counter()
    same = sum([(await fabric.replay(people.auditor, recall_id)).same for recall_id in recalls])
    print(f"{same} of {len(recalls)} the same, {time.perf_counter() - started:.0f} s", file=sys.stderr)
    return same
