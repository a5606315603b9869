"""The gate: one candidate against the bare statements it takes, batches against one by one, neighbours among many."""

import os
import random
import re
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg.rows import dict_row
from psycopg.sql import quote

from bench.furnish import WORDS, furnish
from bench.measure import Figure, at_least, at_most, in_turns, median_ms
from muniment import AsyncFabric
from muniment.candidates import gates
from muniment.context import FabricContext
from muniment.contradictions.store import TextComparer, neighbours
from muniment.database.address import Address
from muniment.database.connection import Command
from muniment.database.statements import Statement
from muniment.database.storage import Transaction
from muniment.model.candidate import Candidate, Scope
from muniment.model.ids import make_id
from muniment.pack import Pack, builtin_pack
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS

ONE_BAR, TRIPS_BAR, BATCH_BAR, MANY_BAR, FOUND_BAR = 2.5, 4, 5.0, 3.0, 0.95


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    memories: int
    many: int
    batch: int
    rounds: int


FULL, QUICK = Size(1_000, 100_000, 500, 400), Size(200, 500, 50, 20)
_ID = re.compile(r"^(cap|mc|mwp|evt)_[0-9a-f]{28}$")


async def run(server: TestServer, quick: bool) -> list[Figure]:
    """A tenant of 1,000 memories that every run sees, and one of 100,000."""
    size = QUICK if quick else FULL
    database = server.clone()
    await furnish(server, database, tenants=1, per_tenant=size.memories, users=0, vectors=True)
    async with AsyncFabric.open(server.url(database), master_keys=MASTER_KEYS) as fabric:
        figures = await _one(server, database, fabric, size)
        figures += await _batches(fabric, size)
        few = await _search(fabric, size)
    server.drop(database)
    database = server.clone()
    await furnish(server, database, tenants=1, per_tenant=size.many, users=0, vectors=True)
    async with AsyncFabric.open(server.url(database), master_keys=MASTER_KEYS) as fabric:
        many = await _search(fabric, size)
        found = await _found(fabric)
    server.drop(database)
    ratio = many / few
    detail = f"{many:.2f} ms against {few:.2f} ms, medians of {size.rounds // 2}"
    what, scope = f"neighbours among {size.many:,} memories against {size.memories:,}", f"{size.many:,}"
    return [
        *figures,
        at_most(what, ratio, "times", MANY_BAR, scope, detail),
        at_least("neighbours that the vector index finds", found, "of all", FOUND_BAR, scope, ""),
    ]


def _texts(seed: int) -> Callable[[], str]:
    chance = random.Random(seed)
    return lambda: f"{' '.join(chance.choices(WORDS, k=11))}."


async def _one(server: TestServer, database: str, fabric: AsyncFabric, size: Size) -> list[Figure]:
    people, text = People("tenant_0"), _texts(3)
    run = people.run(None)
    sent: list[tuple[Statement, list[Any]]] = []
    trips: list[int] = []
    round_trip, complete = Transaction._round_trip, Transaction.complete

    async def recorded(self: Transaction, commands: Iterable[Command]) -> Any:
        commands = list(commands)
        sent.extend((one, list(arguments)) for one, arguments in commands if one.name != "commit")
        return await round_trip(self, commands)

    async def counted(self: Transaction) -> None:
        await complete(self)
        trips.append(self.round_trips)

    async def ours(_: int) -> object:
        return await fabric.propose(run, write_class="statement", text=text(), classification="INTERNAL")

    await ours(0)
    Transaction._round_trip, Transaction.complete = recorded, counted  # type: ignore[method-assign]
    await ours(0)
    Transaction._round_trip, Transaction.complete = round_trip, complete  # type: ignore[method-assign]
    login = Address.parse(server.url(database), None).for_task("writer")
    bare = await psycopg.AsyncConnection.connect(login, autocommit=True, row_factory=dict_row)
    times = await in_turns(size.rounds, size.rounds // 7, ours=ours, bare=_replayed(bare, people.tenant_id, sent))
    await bare.close()
    ratio = median_ms(times["ours"]) / median_ms(times["bare"])
    shares = _shares([text() for _ in range(300)])
    detail = (
        f"{median_ms(times['ours']):.2f} ms against {median_ms(times['bare']):.2f} ms for its {len(sent)} statements;"
        f" of it {', '.join(f'{name} {share * 1000:.3f} ms' for name, share in shares.items())}"
    )
    print(detail, file=sys.stderr)
    most = max(trips)
    what, scope = "one candidate through all gates and checks", f"{size.memories:,}"
    return [
        at_most(f"{what}, against its bare SQL", ratio, "times its median", ONE_BAR, scope, detail),
        at_most(what, most, "round trips", TRIPS_BAR, scope, "reads; clock; writes and commit"),
    ]


def _replayed(
    bare: "psycopg.AsyncConnection[dict[str, Any]]", tenant_id: str, sent: list[tuple[Statement, list[Any]]]
) -> Callable[[int], Awaitable[object]]:
    """The same statements with the same content under ids and numbers of their own: nothing checked, opened or built."""
    tick = next(arguments for one, arguments in sent if one.name == "tenant.record_tick")
    names = next(one.parameters for one, _ in sent if one.name == "tenant.record_tick")
    recorded = dict(zip(names, tick, strict=True))

    async def replay(_: int) -> object:
        known: dict[Any, Any] = {}

        def own(value: Any) -> Any:
            if isinstance(value, str) and _ID.match(value):
                if value not in known:
                    known[value] = make_id(value.partition("_")[0], recorded["at"])  # type: ignore[arg-type]
                return known[value]
            return known.get(value, value) if isinstance(value, int | str) or value is recorded["at"] else value

        cursor = psycopg.AsyncRawCursor(bare)
        await cursor.execute(f"BEGIN; SET LOCAL muniment.tenant = {quote(tenant_id)}")
        for one, arguments in sent:
            given = [own(value) for value in arguments]
            if "fact" in one.each:  # a digest of the fact and its capture: no two candidates have the same
                given[len(one.parameters) + one.each.index("fact")] = os.urandom(16)
            if one.name == "tenant.record_tick":
                given[list(names).index("prev_at")] = known["prev_at"]
            await cursor.execute(one.sql, given, prepare=one.planned_once)  # type: ignore[arg-type]
            if one.name in ("tenant.transaction_id", "pack.hold_in_force"):
                known[recorded["txid"]] = (await cursor.fetchall())[0]["txid"]
            elif one.name == "tenant.tick":
                now = (await cursor.fetchall())[0]
                known |= {recorded["seq"]: now["seq"], recorded["at"]: now["at"], "prev_at": now["prev_at"]}
            elif cursor.description is not None:
                await cursor.fetchall()
        await cursor.execute("COMMIT")
        return None

    return replay


def _shares(texts: list[str]) -> dict[str, float]:
    """Seconds that each gate takes of one candidate, in the median."""
    pack = builtin_pack()
    taken: dict[str, list[float]] = {name: [] for name, _ in gates.GATES}
    for text in texts:
        candidate = _candidate(text)
        known = gates.Circumstances(pack, datetime.now(UTC), "statement", None)
        for name, gate in gates.GATES:
            start = time.perf_counter()
            candidate, _ = gate(candidate, known)
            taken[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in taken.items()}


async def _batches(fabric: AsyncFabric, size: Size) -> list[Figure]:
    people, text = People("tenant_0"), _texts(5)
    run = people.run(None)

    def item() -> dict[str, Any]:
        return {"kind": "statement", "text": text(), "classification": "INTERNAL"}

    async def batch(_: int) -> object:
        await fabric.capture_many(run, [item() for _ in range(size.batch)])
        return await fabric.consolidate(people.tenant_id)

    async def one_by_one(_: int) -> object:
        for _ in range(size.batch // 5):
            await fabric.propose(run, write_class="statement", text=text(), classification="INTERNAL")
        return None

    times = await in_turns(5, 1, batch=batch, one_by_one=one_by_one)
    each, alone = median_ms(times["batch"]) / size.batch, median_ms(times["one_by_one"]) / (size.batch // 5)
    ratio = alone / each
    detail = f"{1000 / each:,.0f} a second against {1000 / alone:,.0f}"
    what = f"candidates in batches of {size.batch} against one by one"
    return [at_least(what, ratio, "times as many", BATCH_BAR, f"{size.memories:,} and what is proposed", detail)]


async def _search(fabric: AsyncFabric, size: Size) -> float:
    """The neighbours of one candidate that everybody would see, in milliseconds."""
    context, pack, text = fabric._context, builtin_pack(), _texts(9)
    comparer = await _senses(context, pack)

    async def search(_: int) -> object:
        async with context.transaction("tenant_0", "writer") as tx:
            return await neighbours(tx, context.vault, await comparer.embed([_candidate(text())]), comparer, pack)

    return median_ms((await in_turns(size.rounds // 2, size.rounds // 10, search=search))["search"])


async def _found(fabric: AsyncFabric) -> float:
    """The share of the neighbours at or above the threshold that the vector index finds."""
    context, pack, text = fabric._context, builtin_pack(), _texts(13)
    comparer = await _senses(context, pack)
    found = there = 0
    for _ in range(40):
        probes = await comparer.embed([_candidate(text())])
        async with context.transaction("tenant_0", "writer") as tx:
            (by_index,) = await neighbours(tx, context.vault, probes, comparer, pack)
            await tx.rows("tenant.clock")  # which begins it
            await tx._connection.execute("SET LOCAL enable_indexscan = off")
            (exact,) = await neighbours(tx, context.vault, probes, comparer, pack)
        found += len({one.memory.memory_id for one in by_index} & {one.memory.memory_id for one in exact})
        there += len(exact)
    print(f"{found} of {there} neighbours found", file=sys.stderr)
    return found / max(there, 1)


async def _senses(context: FabricContext, pack: Pack) -> TextComparer:
    async with context.transaction("tenant_0", "writer") as tx:
        return await context.comparer(tx, pack)


def _candidate(text: str) -> Candidate:
    return Candidate(
        candidate_id="mc", tenant_id="tenant_0", capture_id="cap", author="bot", source="agent",
        write_class="statement", text=text, raw_confidence=0.6, confidence=0.6, classification="INTERNAL",
        scope=Scope(), trust=0.6, extractor="statement@1",
    )  # fmt: skip
