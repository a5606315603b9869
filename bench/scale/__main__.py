"""make bench-scale: generate memories in many tenants, and measure at each mark what calls cost among them.

usage: python -m bench.scale [--memories N] [--tenants N] [--folder FOLDER] [--report FILE] [--only generate|measure] [--writers N]

It can be killed at any time: started again with the same folder, it goes on where it was.
"""

import argparse
import asyncio
import os
import resource
import sys
import time
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from bench.scale import calls, fairness, processes, quiet
from bench.scale.generate import Part, captured, generate
from bench.scale.home import A_MEMORY, KEPT_FREE, Home, NoRoom
from bench.scale.report import Line, keep, write

REPORT = Path(__file__).parents[1] / "SCALE.md"
MARKS = (100_000, 1_000_000, 3_000_000, 10_000_000)
MEASURES = ("recall", "capture", "queue", "verify", "erasure", "memory", "fairness", "sweep")


def main() -> int:
    """Generate up to each mark and measure there; 1 where the disk had no room, or a measurement failed."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description="Generate, and measure at each mark.")
    parser.add_argument("--memories", type=int, default=MARKS[-1], help="how many memories in all (10,000,000)")
    parser.add_argument("--tenants", type=int, default=10_000, help="in how many tenants (10,000)")
    parser.add_argument("--folder", type=Path, default=Path(".muniment-scale"), help="where the database is kept")
    parser.add_argument("--report", type=Path, default=REPORT, help="the file that the figures go to (bench/SCALE.md)")
    parser.add_argument(
        "--only", choices=("generate", "measure"), help="one of the two alone; measure: at what is there"
    )
    parser.add_argument("--writers", type=int, default=1, help="processes that generate at once (1)")
    parser.add_argument("--part", type=Part.parse, metavar="K/N", help=argparse.SUPPRESS)
    parser.add_argument("--parts", nargs="*", choices=MEASURES, default=MEASURES, help="what to measure")
    parser.add_argument("--keep-free", type=int, default=KEPT_FREE, metavar="BYTES", help="of the disk (15 GB)")
    parser.add_argument("--settle", type=float, default=fairness.SETTLING, metavar="SECONDS",
                        help="how long the first run of all jobs is waited for (3600)")  # fmt: skip
    parser.add_argument("--starter", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.tenants < 1 or given.memories < given.tenants:
        parser.error("expected at least one memory for each tenant")
    if given.writers < 1:
        parser.error("expected at least one writer")
    # The rules alone, also in the processes that are started.
    os.environ["MUNIMENT_READERS"] = "off"
    try:
        with Home(given.folder, kept_free=given.keep_free) as home:
            return asyncio.run(_run(home, given))
    except NoRoom as error:
        told(f"the disk has no room: {error}")
        return 1
    except KeyboardInterrupt:
        told("interrupted: the same command goes on where it was")
        return 130


def told(line: str) -> None:
    """A line of progress."""
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)


async def _run(home: Home, given: argparse.Namespace) -> int:
    tenants, failed = given.tenants, 0
    if given.part is not None:
        return await _write_part(home, given)
    if given.only == "measure":
        there = await asyncio.to_thread(_there, home)
        return await _measure(home, given, there // tenants * tenants)
    marks = [] if given.only == "generate" else [one for one in MARKS if tenants <= one < given.memories]
    for mark in [*marks, given.memories]:
        there = await asyncio.to_thread(_there, home)
        if there < mark:
            home.require_room((mark - there) * A_MEMORY)
        written = await _write(home, given, mark)
        # A mark that was measured before is not measured again, unless it is the last one.
        if given.only is None and (written or mark == given.memories):
            failed += await _measure(home, given, mark)
    return 1 if failed else 0


def _there(home: Home) -> int:
    with home.connect() as owner:
        return sum(memories for _, memories in captured(owner).values())


async def _write(home: Home, given: argparse.Namespace, mark: int) -> int:
    """Generate up to the mark, and keep what it took; returns how many memories were written."""
    meter, log, before = home.meter(), _log_bytes(home), await asyncio.to_thread(_there, home)
    async with home.fabric() as fabric:
        children = _children_seconds()
        with meter.block() as spent:
            async with _other_writers(given, mark):
                await generate(home, fabric, given.tenants, mark, told, Part(0, given.writers))
        spent.cpu += _children_seconds() - children
    written = await asyncio.to_thread(_there, home) - before
    told(f"{mark:,} memories in {given.tenants:,} tenants are there; this run wrote {written:,}")
    if not written:
        return 0
    each = spent.each(written)
    line = Line(
        "capture to promoted memory, in batches",
        f"{each.cpu_ms:.2f} ms CPU, {each.wall_ms:.2f} ms wall",
        f"{written:,} in this run, writers: {given.writers}; {(_log_bytes(home) - log) / written / 1024:.1f} KB of log each",
    )
    told(f"{line.what}: {line.figure}; {line.detail}")
    keep(home.folder, mark, [line])
    return written


async def _write_part(home: Home, given: argparse.Namespace) -> int:
    """Write in the tenants of one part, as one of several processes; 1 if the one that started them ended before."""
    async with home.fabric() as fabric:
        writing = asyncio.create_task(generate(home, fabric, given.tenants, given.memories, told, given.part))
        while not (await asyncio.wait([writing], timeout=1.0))[0]:
            if os.getppid() != given.starter:
                writing.cancel()
                await asyncio.wait([writing])
                return 1
        await writing
    return 0


@asynccontextmanager
async def _other_writers(given: argparse.Namespace, mark: int) -> AsyncGenerator[None]:
    """Processes that write in the other tenants meanwhile."""
    command = [sys.executable, "-m", "bench.scale", "--memories", str(mark),
               "--tenants", str(given.tenants), "--folder", str(given.folder), "--keep-free", str(given.keep_free)]  # fmt: skip
    others = [
        await asyncio.create_subprocess_exec(
            *command, "--part", f"{number}/{given.writers}", "--starter", str(os.getpid())
        )
        for number in range(1, given.writers)
    ]
    try:
        yield
        if any([await one.wait() for one in others]):
            raise RuntimeError("one of the writing processes failed")
    finally:
        for one in others:
            with suppress(ProcessLookupError):
                one.terminate()
            await one.wait()


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


async def _measure(home: Home, given: argparse.Namespace, memories: int) -> int:
    tenants, share = given.tenants, memories // given.tenants
    parts: dict[str, Callable[[], Awaitable[list[Line]]]] = {
        "recall": lambda: calls.recalls(home, tenants, share),
        "capture": lambda: calls.captures(home, tenants),
        "queue": lambda: calls.queue(home, min(calls.PROPOSALS, memories)),
        "verify": lambda: calls.verifying(home, tenants),
        "erasure": lambda: calls.erasing(home, share),
        "memory": lambda: processes.run(home, tenants),
        "fairness": lambda: fairness.run(home, tenants, settling=given.settle),
        "sweep": lambda: quiet.run(home, tenants),
    }
    lines, failed = keep(home.folder, memories, [await asyncio.to_thread(_disk, home, memories)]), 0
    for name in given.parts:
        told(f"measuring: {name}")
        try:
            lines = keep(home.folder, memories, await parts[name]())
        except Exception as error:
            # The others are measured all the same.
            traceback.print_exc()
            lines = [*lines, Line(name, "not measured", type(error).__name__)]
            failed += 1
        # After each, so that a run that is killed leaves what it has measured.
        write(given.report, memories, tenants, lines)
    for line in lines:
        print(f"{line.what}: {line.figure}  ({line.detail})")
    told(f"the figures are in {given.report}")
    return failed


def _disk(home: Home, memories: int) -> Line:
    with home.connect() as owner:
        owner.execute("VACUUM ANALYZE")
        size = int(_value(owner, "SELECT pg_database_size(current_database())"))
    return Line(
        "disk", f"{size / 1e9:.2f} GB", f"{size / memories / 1024:.1f} KB a memory with its whole trail, vacuumed"
    )


def _log_bytes(home: Home) -> int:
    with home.connect() as owner:
        return int(_value(owner, "SELECT pg_current_wal_lsn() - '0/0'"))


def _value(owner: Any, query: str) -> Any:
    return owner.execute(query).fetchone()[0]


if __name__ == "__main__":
    sys.exit(main())
