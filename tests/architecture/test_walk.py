"""The walk of a piece of data through the code is as short as the architecture page says, and has no way back."""

import asyncio
import re
from pathlib import Path

from muniment import AsyncFabric
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.architecture.walk import Walk, walk

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "architecture.md"


def test_the_page_describes_the_walk_correctly(server: TestServer, database: str, people: People) -> None:
    async def run() -> Walk:
        async with AsyncFabric.open(server.url(database), clock=FakeClock(), master_keys=MASTER_KEYS) as fabric:
            return await walk(fabric, people)

    found = asyncio.run(run())
    page = PAGE.read_text("utf-8")
    after = {name: int(number) for name, number in re.findall(r"^\| (\w+) \| \d+ \| (\d+) \|", page, re.MULTILINE)}
    assert after == {"files": len(found.files), "hops": found.hops, "returns": found.returns}
    assert found.returns == 0, "a later stage leads back to an earlier one"
