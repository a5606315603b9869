"""make bench: every figure with a bar, in one run on one machine, written to bench/RESULTS.md."""

import asyncio
import platform
import sys
import tempfile
from pathlib import Path

from bench import capture, first_start, gate, neighbours, recall
from bench.measure import Figure
from muniment.testing import TestServer

REPORT = Path(__file__).parent / "RESULTS.md"


def main() -> int:
    names = set(sys.argv[1:]) or {"first_start", "capture", "gate", "recall", "neighbours"}
    figures: list[Figure] = []
    if "first_start" in names:
        figures += asyncio.run(first_start.run())
    with tempfile.TemporaryDirectory(prefix="mb") as folder, TestServer(Path(folder) / "home", durable=True) as server:
        if "capture" in names:
            figures += asyncio.run(capture.run(server))
        if "gate" in names:
            figures += asyncio.run(gate.run(server))
        if "recall" in names:
            figures += asyncio.run(recall.run(server))
        if "neighbours" in names:
            figures += asyncio.run(neighbours.run(server))
    table = report(figures)
    print(table)
    if not sys.argv[1:]:
        REPORT.write_text(table + "\n")
    return 0 if all(figure.reached for figure in figures) else 1


def report(figures: list[Figure]) -> str:
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
    return "\n".join(lines)


sys.exit(main())
