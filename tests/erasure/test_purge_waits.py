"""A purge waits for the processes that may hold vectors and words of the erased person in memory (ERA-3)."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

from muniment import AsyncFabric
from muniment.model.erasure import Erasure
from muniment.testing import FakeClock, People
from muniment.worker.worker import Worker

USER, SUBJECT = "cus_77", "customer:cus_77"
SECRET = "the violet giraffe sings at noon"


class _Installation:
    """Two processes on one database, as far as it can tell: one recalls, one erases and purges."""

    def __init__(self, home: Path) -> None:
        self.home, self.clock, self.people = home, FakeClock(), People("tenant_1")

    async def open(self, stack: AsyncExitStack) -> "_Installation":
        where: dict[str, Any] = {"home": self.home, "clock": self.clock}
        self.works = await stack.enter_async_context(AsyncFabric.open(**where))
        self.holds = await stack.enter_async_context(AsyncFabric.open(**where))
        # It hears no notice: only what it does once a minute is left.
        self.holds.opened.context.index.listen_after = 3600.0
        run = self.people.run(USER)
        about: dict[str, Any] = {"subject": SUBJECT, "user_id": USER, "classification": "INTERNAL"}
        await self.works.capture(run, kind="statement", text=SECRET, **about)
        done = await self.works.consolidate(self.people.tenant_id)
        await self.works.queue.approve_many(self.people.reviewer, done.proposals)
        assert len((await self.holds.recall(run, "violet giraffe")).records) == 1
        return self

    def arrays(self) -> list[np.ndarray[Any, Any]]:
        parts = self.holds.opened.context.scopes.of_tenant(self.people.tenant_id).values()
        blocks = [block for part in parts for block in part.blocks]
        return [one for block in blocks for one in (block.vectors, block.words.terms)]

    async def erase(self) -> None:
        await self.works.erase(self.people.officer, subject=SUBJECT, user_id=USER)

    async def purge(self) -> Erasure:
        """The receipt, after the jobs had their turn."""
        self.clock.advance(hours=1)
        await Worker(self.works.opened).until_idle()
        (receipt,) = await self.works.erasures(self.people.auditor)
        return receipt


async def _until_confirmed(home: Path) -> None:
    async with AsyncExitStack() as stack:
        two = await _Installation(home).open(stack)
        held = two.arrays()
        assert all(one.any() for one in held)
        await two.erase()

        waits = await two.purge()
        assert waits.purged_at is None
        assert waits.purge_waits is not None
        assert "1 processes have not confirmed" in waits.purge_waits
        assert all(one.any() for one in held), "nobody has told it"

        await two.holds.opened.context.index.confirm_all()
        assert not any(one.any() for one in held)
        done = await two.purge()
        assert done.purged_at is not None
        assert done.purge_waits is None


async def _until_the_lease_ended(home: Path) -> None:
    async with AsyncExitStack() as stack:
        two = await _Installation(home).open(stack)
        await two.erase()
        assert (await two.purge()).purged_at is None
        superuser = two.works.opened.superuser
        async with await psycopg.AsyncConnection.connect(superuser, autocommit=True) as owner:
            await owner.execute("UPDATE muniment.index_holders SET leased_until = now()")
        assert (await two.purge()).purged_at is not None


@pytest.mark.rule("ERA-3", "ERA-1")
def test_a_purge_waits_until_a_process_that_holds_vectors_of_the_person_has_overwritten_them(tmp_path: Path) -> None:
    asyncio.run(_until_confirmed(tmp_path / "home"))


@pytest.mark.rule("ERA-3")
def test_a_purge_does_not_wait_for_a_process_whose_lease_has_ended(tmp_path: Path) -> None:
    asyncio.run(_until_the_lease_ended(tmp_path / "home"))
