"""What a cluster costs: the same calls on one server and on a cluster, side by side in one run.

The cluster is one that runs already (`MUNIMENT_TEST_CLUSTER`, as for the tests). On a cluster a statement is planned at
the coordinator and again on the node. Its nodes share the machine here, without a network between: CPU time of the
servers cannot be told apart from that of others, so these are wall times.
"""

import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import anyio.to_thread
from tests.cluster.server import NODES, ClusterServer

from bench.measure import Figure, without_bar
from muniment import AsyncFabric, Submission
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS

TENANTS, EACH, ROUNDS, CALLS = 8, 50, 8, 25
Call = Callable[[AsyncFabric, People, int], Awaitable[object]]


async def run(server: TestServer, quick: bool) -> list[Figure]:
    """The same calls in turns; nothing where no cluster is named."""
    if not NODES:
        print("MUNIMENT_TEST_CLUSTER names no cluster: left out", file=sys.stderr)
        return []
    with ClusterServer() as cluster:
        places: dict[str, tuple[TestServer, str]] = {"one server": (server, server.clone())}
        # In a thread: it runs event loops of its own.
        places["cluster"] = (cluster, await anyio.to_thread.run_sync(cluster.clone))
        try:
            return await _compare({name: at.url(database) for name, (at, database) in places.items()}, quick)
        finally:
            for at, database in places.values():
                at.drop(database)


async def _compare(urls: dict[str, str], quick: bool) -> list[Figure]:
    tenants, each, rounds, calls = (2, 5, 2, 4) if quick else (TENANTS, EACH, ROUNDS, CALLS)
    people = [People(f"tenant_{n}") for n in range(tenants)]
    figures: list[Figure] = []
    async with AsyncExitStack() as opened:
        ways = {
            name: await opened.enter_async_context(AsyncFabric.open(url, master_keys=MASTER_KEYS))
            for name, url in urls.items()
        }
        for fabric in ways.values():
            for one in people:
                for n in range(each):
                    await _remember(fabric, one, n)
        for name, call in (
            ("recall", _recall),
            ("one capture", _capture),
            ("one fact proposed, approved and promoted", _remember),
        ):
            taken: dict[str, list[float]] = {way: [] for way in ways}
            for round_ in range(rounds + 1):
                for way, fabric in sorted(ways.items(), reverse=bool(round_ % 2)):
                    began = time.perf_counter()
                    for n in range(calls):
                        await call(fabric, people[n % tenants], 1000 + round_ * calls + n)
                    if round_:  # the first warms up
                        taken[way].append((time.perf_counter() - began) / calls * 1000)
            one, many = (statistics.median(taken[way]) for way in ("one server", "cluster"))
            detail = f"{many:.2f} ms against {one:.2f} ms, medians of {rounds} rounds of {calls}"
            print(f"{name}: {detail}", file=sys.stderr)
            figures.append(
                without_bar(f"{name} on a cluster", many / one, "times the time on one server", f"{each}", detail)
            )
    return figures


def _said(n: int) -> dict[str, Any]:
    return {"kind": "statement", "text": f"Parcel {n} goes to the side door {n % 7}.", "classification": "INTERNAL"}


async def _recall(fabric: AsyncFabric, people: People, n: int) -> object:
    return await fabric.recall(people.run(None), f"where does parcel {n % 50} go")


async def _capture(fabric: AsyncFabric, people: People, n: int) -> object:
    return await fabric.capture(people.run(None), **_said(n))


async def _remember(fabric: AsyncFabric, people: People, n: int) -> object:
    fact: dict[str, Any] = {"entity": f"parcel:p{n}", "predicate": "goes_to", "value": f"side door {n}"}
    known: dict[str, Any] = {"classification": "INTERNAL", "write_class": "preference", "confidence": 0.7}
    outcome = await fabric.propose(people.run(None), **fact, **known)
    assert isinstance(outcome, Submission), outcome
    return await fabric.queue.approve(people.reviewer, outcome.proposal_id)
