"""Memories through the real write path: captured in batches, through all gates, promoted by policy.

What is there is read from the database at the start, so that a run that was killed goes on where it was: a batch of
captures is written whole or not at all, and the text of each follows from its tenant and number.
"""

import asyncio
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import psycopg

from bench.furnish import WORDS
from bench.scale.home import Home
from muniment import AsyncFabric
from muniment.testing import People

# Users of each tenant, and one memory in so many that is the tenant's own.
USERS, SHARED = 10, 10
WORDS_EACH = 12
# Captures written at a time in one tenant, and tenants written in at a time: one of them waits for the disk.
BATCH, TENANTS_AT_ONCE = 500, 3
# Seconds between two lines of progress.
TOLD_EVERY = 15.0

Progress = Callable[[str], None]


def tenant_name(number: int) -> str:
    """The tenant with that number."""
    return f"scale_{number:05d}"


def user_of(number: int) -> str | None:
    """Whose the memory with that number is; None for the tenant's own."""
    return None if number % SHARED == 0 else f"user_{number // SHARED % USERS}"


def item(tenant_id: str, number: int) -> dict[str, Any]:
    """A statement to capture, the same whenever it is asked for."""
    chance = random.Random(f"{tenant_id} {number}")
    text = " ".join(chance.choices(WORDS, k=WORDS_EACH))
    return {"kind": "statement", "text": text, "classification": "INTERNAL", "user_id": user_of(number)}


def captured(owner: "psycopg.Connection[Any]") -> dict[str, tuple[int, int]]:
    """For each tenant of this benchmark: how many statements were captured, and how many became memories."""
    found: dict[str, tuple[int, int]] = {}
    counts = "SELECT tenant_id, count(*) FROM {} WHERE author = %s AND tenant_id LIKE 'scale%%' GROUP BY tenant_id"
    writer = People("any").service.id
    memories = dict(owner.execute(counts.format("memories"), [writer]).fetchall())
    for tenant_id, count in owner.execute(counts.format("captures"), [writer]).fetchall():
        found[tenant_id] = (count, memories.get(tenant_id, 0))
    return found


async def fill(fabric: AsyncFabric, tenant_id: str, first: int, last: int) -> None:
    """Capture the statements from `first` up to `last`, and consolidate what waits; also with none to capture."""
    people, done = People(tenant_id), first
    while True:
        some = range(done, min(done + BATCH, last))
        if some:
            await fabric.capture_many(people.service, [item(tenant_id, number) for number in some])
        while (await fabric.consolidate(tenant_id)).waiting:
            pass
        done += len(some)
        if done >= last:
            return


@dataclass(frozen=True)
class Part:
    """The tenants that one of several processes writes in."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> "Part":
        """From `1/2`, the second of two; raises `ValueError`."""
        number, of = (int(one) for one in text.split("/"))
        if not 0 <= number < of:
            raise ValueError(text)
        return cls(number, of)

    def tenants(self, tenants: int) -> range:
        """The numbers of its tenants."""
        return range(self.number, tenants, self.of)


async def generate(home: Home, fabric: AsyncFabric, tenants: int, memories: int, told: Progress, part: Part) -> None:
    """Bring every tenant of the part to its share of so many memories; raises `NoRoom` before the disk is full."""
    with home.connect() as owner:
        there = await asyncio.to_thread(captured, owner)
    share, numbers = memories // tenants, part.tenants(tenants)
    work = _Work(numbers, share, there)
    before = sum(there.get(tenant_name(number), (0, 0))[0] for number in numbers)
    lines = asyncio.create_task(_progress(work, before, share * len(numbers), time.monotonic(), told))
    try:
        async with asyncio.TaskGroup() as group:
            todo = iter(work)
            for _ in range(TENANTS_AT_ONCE):
                group.create_task(_take(home, fabric, todo, work))
    finally:
        lines.cancel()


class _Work:
    """The tenants that have less than their share, and how much was captured."""

    def __init__(self, tenants: range, share: int, there: dict[str, tuple[int, int]]) -> None:
        self._tenants, self._share, self._there = tenants, share, there
        self.captured = 0

    def __iter__(self) -> Iterator[tuple[str, int, int]]:
        for number in self._tenants:
            tenant_id = tenant_name(number)
            said, kept = self._there.get(tenant_id, (0, 0))
            # Captured and not consolidated, where a run was killed between the two.
            if said < self._share or kept < said:
                yield tenant_id, said, max(said, self._share)


async def _take(home: Home, fabric: AsyncFabric, todo: Iterator[tuple[str, int, int]], work: _Work) -> None:
    for tenant_id, first, last in todo:
        home.require_room()
        await fill(fabric, tenant_id, first, last)
        work.captured += last - first


async def _progress(work: _Work, before: int, memories: int, began: float, told: Progress) -> None:
    while True:
        await asyncio.sleep(TOLD_EVERY)
        rate = work.captured / (time.monotonic() - began)
        left = (memories - before - work.captured) / rate if rate else float("inf")
        told(
            f"{before + work.captured:,} of {memories:,} captured, {rate:,.0f} a second, {left / 60:,.0f} minutes left"
        )
