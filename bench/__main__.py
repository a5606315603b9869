"""make bench: every figure with a bar, in one run on one machine, written to bench/RESULTS.md."""

import asyncio
import platform
import sys
import tempfile
from pathlib import Path

from bench import (
    beside,
    capture,
    chain,
    cli_start,
    console,
    first_start,
    gate,
    growth,
    http,
    large,
    neighbours,
    picture,
    recall,
    replaying,
    verifying,
)
from bench.measure import Figure
from muniment.testing import TestServer

REPORT = Path(__file__).parent / "RESULTS.md"
PICTURE = Path(__file__).parent / "beside.svg"

BESIDE = (
    "The same embedder, the same turns and questions for all; peers with their own defaults. Ours: every turn through"
    " capture, gates, review and promotion, every recall through all filters and recorded. A put of the others is one write."
)


def main() -> int:
    names = set(sys.argv[1:]) or {
        "first_start",
        "cli_start",
        "capture",
        "gate",
        "recall",
        "http",
        "console",
        "neighbours",
        "chain",
        "verifying",
        "replaying",
        "beside",
        "growth",
    }
    figures: list[Figure] = []
    rows: list[picture.Row] = []
    grown: list[picture.Growth] = []
    compared: list[Figure] = []
    # First, while this process has taken little memory: that is a figure too.
    if "beside" in names:
        with (
            tempfile.TemporaryDirectory(prefix="mb") as folder,
            TestServer(Path(folder) / "home", durable=True) as server,
        ):
            rows, compared = beside.beside(server)
    if "first_start" in names:
        figures += asyncio.run(first_start.run())
    if "cli_start" in names:
        figures += asyncio.run(cli_start.run())
    with tempfile.TemporaryDirectory(prefix="mb") as folder, TestServer(Path(folder) / "home", durable=True) as server:
        if "capture" in names:
            figures += asyncio.run(capture.run(server))
        if "gate" in names:
            figures += asyncio.run(gate.run(server))
        if "recall" in names:
            figures += asyncio.run(recall.run(server))
        if "http" in names:
            figures += asyncio.run(http.run(server))
        if "console" in names:
            figures += asyncio.run(console.run(server))
        if "neighbours" in names:
            figures += asyncio.run(neighbours.run(server))
        if "large" in names:
            figures += asyncio.run(large.run(server))
        if "chain" in names:
            figures += asyncio.run(chain.run(server))
        if "verifying" in names:
            figures += asyncio.run(verifying.run(server))
        if "replaying" in names:
            figures += asyncio.run(replaying.run(server))
        figures += compared
        if "growth" in names:
            grown, more = asyncio.run(growth.run(server))
            figures += more
    table = report(figures, rows, grown)
    print(table)
    if not sys.argv[1:]:
        REPORT.write_text(table + "\n")
        if rows:
            PICTURE.write_text(picture.draw(rows, grown))
    return 0 if all(figure.reached for figure in figures) else 1


def report(figures: list[Figure], rows: list[picture.Row], grown: list[picture.Growth]) -> str:
    lines = [
        "# What `make bench` last gave",
        "",
        f"Python {platform.python_version()}, {platform.machine()}; ratios of medians, the contestants taking turns in one run.",
        "",
        "| what | figure | bar | detail |",
        "|---|---|---|---|",
    ]
    for figure in figures:
        mark = "" if figure.reached else " (missed)"
        lines.append(f"| {figure.what} | {figure.value:.2f} {figure.unit}{mark} | {figure.bar} | {figure.detail} |")
    if rows:
        lines += ["", "## Beside peers, on LoCoMo", "", BESIDE, "", picture.table(rows)]
    if grown:
        lines += ["", "## Growth", "", picture.growth_table(grown)]
    return "\n".join(lines)


sys.exit(main())
