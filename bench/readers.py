"""The trained readers: the judge on eight neighbours, talk in batches through the gate, their memory, LangGraph's put.

usage: python -m bench.readers FOLDER   reads texts, one a line of standard input, with all three readers of the folder, and
writes by how many bytes the process grew
"""

import asyncio
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

from bench import locomo
from bench.beside import item_of, prove
from bench.furnish import WORDS
from bench.measure import Figure, at_least, at_most, postmaster
from bench.meter import Cost, Meter, median, memory_bytes, peak_memory_bytes
from bench.peers import run as run_peer
from bench.peers.database import fresh_database
from bench.writer import PACK
from muniment import AsyncFabric
from muniment.language.embedding import builtin_embedder
from muniment.language.readers import Readers, Weights, find_readers
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS

JUDGE_BAR, GATE_BAR, MEMORY_BAR, PUT_BAR = 60.0, 12.0, 250.0, 0.2
NEIGHBOURS = 8


@dataclass(frozen=True)
class Size:
    """How much is measured: talks and turns of each, turns in a batch, candidates that the judge reads for."""

    talks: int
    turns: int
    batch: int
    judged: int


FULL, QUICK = Size(4, 1_000, 500, 50), Size(1, 40, 20, 3)


async def run(server: TestServer, quick: bool) -> list[Figure]:
    """All figures; none where no weights are installed."""
    readers = find_readers()
    if readers is None:
        print("no weights of trained readers are installed: left out", file=sys.stderr)
        return []
    put = None if quick else _put_of_langgraph(server)
    return await measure(server, readers, put, quick=quick)


async def measure(server: TestServer, readers: Readers, put: Cost | None, *, quick: bool) -> list[Figure]:
    """The figures of some readers; `put` is what one put of LangGraph's store costs, None if that was not measured."""
    size = QUICK if quick else FULL
    talks, said = _talks(size)
    texts = [turn.text for talk in talks for turn in talk.turns]
    grown = _memory(readers.weights.folder, texts[: size.batch])
    judged = await _judge(readers, texts, size)
    gate, whole, share = await _through_the_gate(server, readers, talks, size)
    scope = f"{said}, {len(talks[0].turns):,} turns a talk"
    found = [
        at_most("one candidate against eight neighbours, read by the judge", judged.wall_ms, "ms", JUDGE_BAR,
                f"{NEIGHBOURS} neighbours", f"{judged}, median of {size.judged}; {said}"),
        at_most(f"a turn of talk through the gate with the readers, batches of {size.batch}", gate.wall_ms, "ms", GATE_BAR, scope,
                f"{gate}, with promotion; {share:.0%} of the turns were promoted by policy"),
        at_most("memory of a process for all three readers", grown / 2**20, "MB", MEMORY_BAR, said,
                f"the most it took, above what it had before; {len(texts[: size.batch]):,} texts read"),
    ]  # fmt: skip
    if put is None:
        print("LangGraph's put was not measured: no bar against it", file=sys.stderr)
        return found
    ratio = put.cpu_ms / whole.cpu_ms
    what, unit = (
        "capture to promoted memory with the readers, batches, against LangGraph's put",
        "times as many for its CPU",
    )
    return [*found, at_least(what, ratio, unit, PUT_BAR, scope, f"{whole} against {put}")]


def _talks(size: Size) -> tuple[list[locomo.Conversation], str]:
    """LoCoMo's talks where they are, else talk of the same length that is made up; and which of the two it is."""
    found = locomo.load()
    if found is None:
        made = [_made_up(f"talk-{number}", size.turns) for number in range(size.talks)]
        return made, "made-up talk"
    return [replace(one, turns=one.turns[: size.turns]) for one in found[: size.talks]], "LoCoMo"


def _made_up(name: str, turns: int) -> locomo.Conversation:
    chance, begun = random.Random(name), datetime(2023, 5, 8, tzinfo=UTC)
    said = [
        locomo.Turn(
            f"D1:{number}",
            f"{chance.choice(('Ann', 'Ben'))}: I saw the {' '.join(chance.choices(WORDS, k=20))} yesterday!",
            begun + timedelta(hours=number),
        )
        for number in range(turns)
    ]
    return locomo.Conversation(name, tuple(said), ())


async def _judge(readers: Readers, texts: Sequence[str], size: Size) -> Cost:
    """One text against eight others, as the judge reads a candidate's neighbours; none is read twice."""
    chance, meter, costs = random.Random(1), Meter(), list[Cost]()
    await readers.read_pairs([("This loads", "the judge")])
    for _ in range(size.judged):
        one, *others = chance.sample(texts, 1 + NEIGHBOURS)
        with meter.block() as spent:
            await readers.read_pairs([(one, other) for other in others])
        costs.append(spent.each(1))
    return median(costs)


async def _through_the_gate(
    server: TestServer, readers: Readers, talks: Sequence[locomo.Conversation], size: Size
) -> tuple[Cost, Cost, float]:
    """Every turn captured and promoted in batches.

    Returns what a turn costs from gate to promotion, what a memory costs with its capture, and the share promoted.
    """
    database, meter = server.clone(), Meter(postmaster(server))
    gates: list[Cost] = []
    wholes: list[Cost] = []
    promoted = 0
    # Nothing is known of a text from an earlier figure.
    fresh = Readers(readers.weights)
    opened = AsyncFabric.open(server.url(database), master_keys=MASTER_KEYS, pack=PACK, readers=fresh)
    async with opened as fabric:
        for talk in talks:
            await prove(fabric, talk.id)
            for first in range(0, len(talk.turns), size.batch):
                some = talk.turns[first : first + size.batch]
                with meter.block() as whole:
                    await fabric.capture_many(People(talk.id).service, [item_of(turn) for turn in some])
                    with meter.block() as gate:
                        done = await fabric.consolidate(talk.id)
                promoted += len(done.promoted)
                gates.append(gate.each(len(some)))
                wholes.append(whole.each(max(len(done.promoted), 1)))
    server.drop(database)
    return median(gates), median(wholes), promoted / sum(len(talk.turns) for talk in talks)


def _put_of_langgraph(server: TestServer) -> Cost | None:
    """What one put of its store costs; None where it, or LoCoMo, is not there."""
    conversations = locomo.load()
    if conversations is None:
        return None
    with fresh_database(server) as address:
        job = locomo.as_job(conversations, postgres=address, postmaster=postmaster(server))
        return run_peer("langgraph", job).add


def _memory(folder: Path, texts: Sequence[str]) -> int:
    """By how many bytes a process grows that loads the readers of a folder and reads texts with all three."""
    command = [sys.executable, "-m", "bench.readers", str(folder)]
    given = "\n".join(text.replace("\n", " ") for text in texts)
    return int(subprocess.run(command, input=given, capture_output=True, text=True, check=True).stdout)


async def grow(folder: str) -> int:
    """Read the texts of standard input with the readers of a folder; return by how many bytes the process grew."""
    texts = sys.stdin.read().splitlines()
    builtin_embedder().embed(texts)  # Which every process that judges text has anyway.
    before = memory_bytes()
    readers = Readers(Weights.read(Path(folder)))
    await readers.read_tags(texts)
    await readers.read_guard(texts)
    await readers.read_pairs(list(pairwise(texts)))
    return peak_memory_bytes() - before


if __name__ == "__main__":
    print(asyncio.run(grow(*sys.argv[1:])))
