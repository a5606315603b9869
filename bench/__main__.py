"""make bench: every figure with a bar, in one run on one machine, written to bench/RESULTS.md.

usage: python -m bench [--quick] [part ...]   some parts alone; quick ones only show that every part runs
"""

import argparse
import asyncio
import os
import platform
import sys
import tempfile
import traceback
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from bench import (
    beside,
    capture,
    chain,
    cli_start,
    cluster,
    cold,
    console,
    first_start,
    gate,
    growth,
    http,
    large,
    memory,
    moving,
    neighbours,
    picture,
    pooler,
    readers,
    recall,
    replaying,
    scopes,
    verifying,
)
from bench.measure import Figure
from muniment.testing import TestServer

REPORT = Path(__file__).parent / "RESULTS.md"
PICTURE = Path(__file__).parent / "beside.svg"

T = TypeVar("T")
Found = Figure | picture.Row | picture.Growth | picture.ScopeGrowth
Part = Callable[[TestServer, bool], Coroutine[Any, Any, Sequence[Found]]]
# In this order. The first while this process has taken little memory: that is a figure too.
PARTS: dict[str, Part] = {
    "beside": beside.run,
    "first_start": first_start.run,
    "cli_start": cli_start.run,
    "memory": memory.run,
    "capture": capture.run,
    "gate": gate.run,
    "readers": readers.run,
    "recall": recall.run,
    "cold": cold.run,
    "http": http.run,
    "pooler": pooler.run,
    "cluster": cluster.run,
    "console": console.run,
    "neighbours": neighbours.run,
    "chain": chain.run,
    "verifying": verifying.run,
    "replaying": replaying.run,
    "moving": moving.run,
    "large": large.run,
    "scopes": scopes.run,
    "growth": growth.run,
}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Measure, and hold the figures against their bars."
    )
    parser.add_argument("parts", nargs="*", help=f"parts to run alone: {', '.join(PARTS)}", metavar="part")
    parser.add_argument("--quick", action="store_true", help="a small version of each part, whose figures mean nothing")
    given = parser.parse_args()
    if unknown := set(given.parts) - PARTS.keys():
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    found: list[Found] = []
    failed: dict[str, str] = {}
    # The bars are for the rules; the part `readers` measures the trained readers. Processes that are started follow it.
    os.environ["MUNIMENT_READERS"] = "off"
    with tempfile.TemporaryDirectory(prefix="mb") as folder, TestServer(Path(folder) / "home", durable=True) as server:
        for name, part in PARTS.items():
            if not given.parts or name in given.parts:
                print(f"-- {name}", file=sys.stderr)
                try:
                    found += asyncio.run(part(server, given.quick))
                except Exception as error:
                    # The other parts are measured all the same.
                    traceback.print_exc()
                    failed[name] = type(error).__name__
    table = report(found, failed, quick=given.quick)
    print(table)
    if given.quick:
        return 1 if failed else 0
    rows = _only(found, picture.Row)
    if not given.parts:
        REPORT.write_text(table + "\n")
        if rows:
            PICTURE.write_text(picture.draw(rows, _only(found, picture.Growth)))
    return 1 if failed or not all(figure.reached for figure in _only(found, Figure)) else 0


def _only(found: Sequence[Found], kind: "type[T]") -> "list[T]":
    return [one for one in found if isinstance(one, kind)]


def report(found: Sequence[Found], failed: Mapping[str, str], *, quick: bool) -> str:
    """All that was found, each kind in its own table."""
    lines = [
        "# What `make bench` last gave" if not quick else "# A quick run: the figures mean nothing",
        "",
        f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end;"
        " ratios of medians in one run. Against a peer they are ratios of CPU time, the program's and PostgreSQL's together. In scope"
        " is what a run can see.",
        "",
        "| what | figure | bar | in scope | detail |",
        "|---|---|---|---|---|",
    ]
    for figure in _only(found, Figure):
        mark = "" if figure.reached else " (missed)"
        lines.append(
            f"| {figure.what} | {figure.value:.2f} {figure.unit}{mark} | {figure.bar} | {figure.scope} | {figure.detail} |"
        )
    if failed:
        lines += ["", "Not measured: " + "; ".join(f"{name} ({why})" for name, why in failed.items())]
    for title, said, kind, table in (
        ("Beside peers, on LoCoMo", " ".join(picture.STORED), picture.Row, picture.table),
        (
            "In one tenant",
            "Cold is the first recall after opening: connections, keys, pack and scope are read anew.",
            picture.ScopeGrowth,
            picture.scope_table,
        ),
        ("Over many tenants", "Tenants drawn at random.", picture.Growth, picture.growth_table),
    ):
        if some := _only(found, kind):
            lines += ["", f"## {title}", "", said, "", table(some)]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
