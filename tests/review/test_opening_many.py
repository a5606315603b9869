"""Opening many proposals at once holds no other call up."""

from itertools import pairwise
from time import thread_time

import pytest
from anyio import create_task_group, sleep

from muniment import Fabric
from muniment.review.store import load_many
from muniment.testing import People
from tests.stories import KEY, proposed


@pytest.mark.rule("ISO-6")
def test_while_many_proposals_are_opened_other_calls_go_on(fabric: Fabric, people: People) -> None:
    ids = [
        proposed(fabric, people.run(), **KEY | {"predicate": f"eats_{n}"}, value="rye").proposal_id for n in range(8)
    ]
    opened = fabric._fabric._opened
    assert opened is not None
    context = opened.context

    async def longest_turn() -> tuple[float, float]:
        """How much time of the processor it took, and the most of it without a turn of another task."""
        turns: list[float] = []
        took = 0.0

        async def others() -> None:
            while True:
                turns.append(thread_time())
                await sleep(0.0005)

        async with (
            context.transaction(people.tenant_id, "auditor") as tx,
            create_task_group() as group,
        ):
            group.start_soon(others)
            await sleep(0.001)
            began = thread_time()
            assert len(await load_many(tx, context.vault, ids * 100)) == len(ids) * 100
            turns.append(thread_time())
            took = turns[-1] - began
            group.cancel_scope.cancel()
        return took, max(after - before for before, after in pairwise(turns))

    # A busy machine makes single turns long. Where nothing gives way, the longest turn is nearly all of the work each time.
    shares = [longest / took for took, longest in (fabric._portal.call(longest_turn) for _ in range(6))]
    assert min(shares) < 0.5
