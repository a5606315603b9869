"""The console with 100,000 memories and 10,000 open proposals: how often each page asks, and how long it takes."""

import random
import sys
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any
from urllib.parse import quote

import httpx2
from jinja2 import Template

from bench.console_pages import OWN_PAGES, PAGES
from bench.furnish import WORDS, furnish
from bench.ledger import server_seconds
from bench.measure import Figure, at_most
from bench.writer import PACK
from muniment import AsyncFabric, Submission
from muniment.database.storage import Transaction
from muniment.http.app import create_app
from muniment.http.settings import ServerSettings
from muniment.model.context import Role
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS

MEMORIES, PROPOSALS, USERS = 100_000, 10_000, 200
ROUNDS, WARM_UP = 15, 3
MOST_QUERIES, BAR, PAGE_BAR = 2, 1.0, 100.0
# A page that is quicker than this, in seconds, may render longer than it queries.
QUICK = 0.02
AT_ONCE = 500
EVERYTHING: tuple[Role, ...] = ("reviewer", "auditor", "privacy_officer", "admin", "correction_writer")


@dataclass
class Measured:
    """What one request cost: the transactions it opened, the time in them, the time to render."""

    transactions: int = 0
    trips: int = 0
    querying: float = 0.0
    rendering: float = 0.0
    whole: float = 0.0
    # Of the processor: ours and the server's, the same on a busy machine.
    worked: float = 0.0
    began: dict[int, float] = field(default_factory=dict)

    def without(self, other: "Measured") -> "Measured":
        """How often beyond what that one asked."""
        return replace(
            self,
            transactions=self.transactions - other.transactions,
            trips=self.trips - other.trips,
        )


@contextmanager
def measured(into: Measured) -> Generator[None]:
    """Count and time meanwhile."""
    complete, make, render = Transaction.complete, Transaction.__init__, Template.render

    def begun(self: Transaction, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        into.began[id(self)] = time.perf_counter()

    async def completed(self: Transaction) -> None:
        await complete(self)
        into.transactions += 1
        into.trips += self.round_trips
        into.querying += time.perf_counter() - into.began.pop(id(self))

    def rendered(self: Template, *args: Any, **kwargs: Any) -> str:
        start = time.perf_counter()
        try:
            return render(self, *args, **kwargs)
        finally:
            into.rendering += time.perf_counter() - start

    Transaction.__init__, Transaction.complete, Template.render = begun, completed, rendered
    start = time.perf_counter()
    try:
        yield
    finally:
        into.whole = time.perf_counter() - start
        Transaction.__init__, Transaction.complete, Template.render = make, complete, render


async def run(server: TestServer, quick: bool) -> list[Figure]:
    """Every page, some times over."""
    memories, proposals, rounds = (500, AT_ONCE, 1) if quick else (MEMORIES, PROPOSALS, ROUNDS)
    database = server.clone()
    await furnish(server, database, tenants=1, per_tenant=memories, users=USERS, terms=True)
    people = People("tenant_0")
    async with AsyncFabric.open(server.url(database), master_keys=MASTER_KEYS) as fabric:
        ids = await fill(fabric, people, proposals)
        with server.connect(database) as owner:
            owner.execute("VACUUM ANALYZE")
        app = create_app(fabric, ServerSettings(rate=0))
        async with signed_in(fabric, people, app, OPERATOR) as browser, signed_in(fabric, people, app, USER) as own:
            # The credential is asked anew with every request, whatever the page.
            credential = await cost_of(server, browser, "packs/new", rounds)
            pages = [(browser, *one) for one in PAGES.items()] + [(own, *one) for one in OWN_PAGES.items()]
            costs = {
                name: (await cost_of(server, who, path.format(**ids), rounds)).without(credential)
                for who, name, path in pages
            }
    server.drop(database)
    return figures(costs, memories, proposals)


OPERATOR: dict[str, Any] = {"principal_id": "eve", "kind": "operator", "roles": frozenset(EVERYTHING)}
USER: dict[str, Any] = {
    "principal_id": "user_7", "user_id": "user_7", "kind": "end_user", "roles": frozenset({"subject"}),
}  # fmt: skip


@asynccontextmanager
async def signed_in(
    fabric: AsyncFabric, people: People, app: Any, who: dict[str, Any]
) -> AsyncGenerator[httpx2.AsyncClient]:
    """A browser of somebody who is signed in."""
    key = await fabric.keys.create(people.admin, expires_in="never", **who)
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://bench", timeout=60) as browser:
        answer = await browser.post("/console/signin", data={"key": key.token})
        assert answer.status_code == 303, answer.text
        yield browser


async def propose(fabric: AsyncFabric, people: People, predicate: str, value: str) -> str:
    """The id of a proposal about customer:x."""
    done = await fabric.propose(
        people.run("user_7"),
        write_class="preference",
        entity="customer:x",
        predicate=predicate,
        value=value,
        classification="INTERNAL",
        confidence=0.7,
    )
    assert isinstance(done, Submission), done
    return done.proposal_id


async def fill(fabric: AsyncFabric, people: People, proposals: int) -> dict[str, str]:
    """Proposals and what hangs on some of them; the ids that pages take."""
    start = time.perf_counter()
    chance = random.Random(5)
    for _ in range(proposals // AT_ONCE):
        said = [
            {
                "kind": "statement",
                "text": " ".join(chance.choices(WORDS, k=12)),
                "classification": "INTERNAL",
                "user_id": f"user_{n % USERS}",
            }
            for n in range(AT_ONCE)
        ]
        await fabric.capture_many(people.service, said)
        while (await fabric.consolidate(people.tenant_id)).waiting:
            pass
    ids = [await propose(fabric, people, f"q{n}", "bread") for n in range(20)]
    print(f"{proposals:,} proposals in {time.perf_counter() - start:.0f} s", file=sys.stderr)
    made = await fabric.queue.approve(people.reviewer, await propose(fabric, people, "drinks", "coffee"))
    await propose(fabric, people, "drinks", "tea")
    assert made.memory_id is not None
    answer = await fabric.recall(people.run("user_7"), "what is drunk", entities=["customer:x"])
    await fabric.consent.grant(
        people.officer,
        subject="customer:x",
        purpose="support",
        predicates_allowed=["*"],
        data_classifications_allowed=["PII"],
        basis="opt_in",
    )
    await fabric.seal(people.tenant_id)
    # As a worker has done in a tenant that is in use.
    while not (await fabric.scan_pii(people.tenant_id)).done:
        pass
    (open_one, *_) = await fabric.contradictions.list(people.reviewer)
    return {
        "proposal_id": ids[0],
        "contradiction_id": open_one.contradiction_id,
        "capture_id": (await fabric.captures.list(people.reviewer, limit=1))[0].capture_id,
        "memory_id": made.memory_id,
        # One of the furnished ones, of the user who is signed in.
        "own_memory_id": f"pm_{71:012x}{0:04x}",
        "recall_id": answer.recall_id,
        "pack": quote((await fabric.packs.register(people.admin, PACK)).ref),
        "since": quote((datetime.now(UTC) - timedelta(hours=12)).isoformat()),
    }


async def cost_of(server: TestServer, browser: httpx2.AsyncClient, path: str, rounds: int) -> Measured:
    """The medians of a page, and the mean of what it takes of the processor."""
    found: list[Measured] = []
    began = 0.0
    for number in range(WARM_UP + rounds):
        if number == WARM_UP:
            began = time.process_time() + server_seconds(server.home)
        one = Measured()
        with measured(one):
            answer = await browser.get(f"/console/{path}", headers={"Accept": "text/html"})
        assert answer.status_code == 200, f"{path}: {answer.status_code}"
        found.append(one)
    kept = found[WARM_UP:]
    return Measured(
        transactions=max(one.transactions for one in kept),
        trips=max(one.trips for one in kept),
        querying=median(one.querying for one in kept),
        rendering=median(one.rendering for one in kept),
        whole=median(one.whole for one in kept),
        worked=(time.process_time() + server_seconds(server.home) - began) / rounds,
    )


def figures(costs: dict[str, Measured], memories: int, proposals: int) -> list[Figure]:
    """The worst of each kind; all of them on the way."""
    for name, one in costs.items():
        told = f"{name:22} {one.transactions} queries, {one.trips:2} round trips, {one.querying * 1000:6.1f} ms"
        print(
            f"{told}, rendered in {one.rendering * 1000:5.1f} ms, {one.whole * 1000:6.1f} ms in all,"
            f" {one.worked * 1000:5.1f} ms of the processor",
            file=sys.stderr,
        )
    often = max(costs, key=lambda name: costs[name].transactions)
    felt = [name for name, one in costs.items() if one.whole >= QUICK] or list(costs)
    slow = max(felt, key=lambda name: costs[name].rendering / costs[name].querying)
    share = costs[slow].rendering / costs[slow].querying
    queue = costs["queue"].whole * 1000
    last = max(costs, key=lambda name: costs[name].whole)
    most = max(costs, key=lambda name: costs[name].worked)
    scope = f"{memories:,}"
    return [
        at_most(
            "queries of a page of the console, at most",
            costs[often].transactions,
            f"({often})",
            MOST_QUERIES,
            scope,
            f"{len(costs)} pages, {proposals:,} open proposals; each a transaction of a few statements",
        ),
        at_most(
            "rendering a page against querying for it, at worst",
            share,
            "times",
            BAR,
            scope,
            f"{slow}: {costs[slow].rendering * 1000:.1f} ms against {costs[slow].querying * 1000:.1f} ms; of {len(felt)} pages that"
            f" take {QUICK * 1000:.0f} ms or more",
        ),
        at_most(f"the queue with {proposals:,} open proposals", queue, "ms", PAGE_BAR, scope, "50 rows and the counts"),
        at_most(
            "the slowest page of the console",
            costs[last].whole * 1000,
            "ms",
            PAGE_BAR,
            scope,
            f"{last}; the whole request, of {len(costs)} pages, {proposals:,} open proposals",
        ),
        at_most(
            "the page of the console with the most processor time",
            costs[most].worked * 1000,
            "ms",
            PAGE_BAR,
            scope,
            f"{most}; the program's and PostgreSQL's together",
        ),
    ]
