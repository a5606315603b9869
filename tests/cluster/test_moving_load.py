"""A tenant is used while it gets a shard of its own and while it moves: calls wait, and nothing is lost (SCL-1)."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from muniment import AsyncFabric
from muniment.database.cluster import moving
from muniment.errors import MunimentError
from muniment.testing import People
from muniment.testing.database import MASTER_KEYS
from tests.cluster.databases import ClusterDatabase
from tests.cluster.test_moved import moved, superuser


@dataclass
class Told:
    """What the callers of a tenant were told, and how long each of their calls took."""

    captures: list[str] = field(default_factory=list)
    recalls: int = 0
    slowest: dict[str, float] = field(default_factory=lambda: {"capture": 0.0, "recall": 0.0})
    failures: list[str] = field(default_factory=list)

    async def tried(self, name: str, call: Awaitable[Any]) -> Any:
        began = time.monotonic()
        try:
            return await call
        except MunimentError as error:
            self.failures.append(f"{name}: {error.code}")
        finally:
            self.slowest[name] = max(self.slowest[name], time.monotonic() - began)

    async def capture(self, fabric: AsyncFabric, people: People, done: asyncio.Event) -> None:
        while not done.is_set():
            said = {"kind": "statement", "text": f"Parcel {len(self.captures)} is late.", "classification": "INTERNAL"}
            if (receipt := await self.tried("capture", fabric.capture(people.run(None), **said))) is not None:
                self.captures.append(receipt.capture_id)

    async def recall(self, fabric: AsyncFabric, people: People, done: asyncio.Event) -> None:
        while not done.is_set():
            self.recalls += await self.tried("recall", fabric.recall(people.run(), "parcel")) is not None


async def during(fabric: AsyncFabric, people: People, move: Callable[[], Awaitable[object]]) -> Told:
    """Use the tenant while it moves."""
    told, done = Told(), asyncio.Event()
    at_work = [asyncio.create_task(one(fabric, people, done)) for one in (told.capture, told.recall)]
    try:
        began, there, read = time.monotonic(), len(told.captures), told.recalls
        await move()
        took = time.monotonic() - began
        there, read = len(told.captures) - there, told.recalls - read
    finally:
        done.set()
        await asyncio.gather(*at_work)
    print(f"{took:.1f} s: {there} captures, {read} recalls; the slowest {told.slowest}; {told.failures}")
    assert there and read, "they go on meanwhile"
    return told


@pytest.mark.rule("SCL-1", "CAP-10")
def test_captures_and_recalls_go_on_while_a_tenant_gets_its_own_shard_and_moves(distributed: ClusterDatabase) -> None:
    people = People("tenant_1")

    async def story() -> None:
        async with AsyncFabric.open(distributed.owner, master_keys=MASTER_KEYS) as fabric:
            await fabric.capture(people.run(None), kind="statement", text="It begins.", classification="INTERNAL")
            for move in (
                lambda: moving.isolate(superuser(distributed), people.tenant_id),
                lambda: moved(distributed, people),
            ):
                told = await during(fabric, people, move)
                # A call that waits for longer than ten seconds is refused: on a busy machine some are.
                assert {one for one in told.failures if not one.endswith(": conflict")} == set()
                for capture_id in told.captures:
                    assert (await fabric.captures.get(people.auditor, capture_id)).capture_id == capture_id
            await fabric.seal(people.tenant_id)
            assert (await fabric.verify(people.auditor)).ok

    asyncio.run(asyncio.wait_for(story(), 240))
