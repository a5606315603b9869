"""bench/SCALE.md: a section for each mark that was reached; measuring a mark again replaces its section."""

import json
import os
import platform
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.meter import Cost

TITLE = "# What `make bench-scale` last gave at each mark\n"
SAID = (
    "\nMemories of many tenants, written through capture, gates and policy. CPU is of this process and PostgreSQL together; wall"
    " times are of a machine that others may use meanwhile. docs/explanation/scale.md tells what they mean.\n"
)


@dataclass(frozen=True)
class Line:
    """One line of a section: what was measured, the figure, and how."""

    what: str
    figure: str
    detail: str = ""


def timed(what: str, cost: Cost, detail: str = "") -> Line:
    """A line for what one call took."""
    return Line(what, f"{cost.cpu_ms:,.1f} ms CPU, {cost.wall_ms:,.1f} ms wall", detail)


def heading(memories: int, tenants: int) -> str:
    """The heading of a mark's section."""
    return f"## {memories:,} memories in {tenants:,} tenants"


def section(memories: int, tenants: int, lines: Sequence[Line]) -> str:
    """The section of a mark."""
    told = f"{datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    table = [f"| {line.what} | {line.figure} | {line.detail} |" for line in lines]
    return "\n".join(
        [heading(memories, tenants), "", told, "", "| what | figure | detail |", "|---|---|---|", *table, ""]
    )


def keep(folder: Path, memories: int, lines: Sequence[Line]) -> list[Line]:
    """Keep these lines beside the database; returns all that were measured there at that mark, in any run.

    So writing and measuring can be two runs, and one part can be measured again without the others.
    """
    path = folder / "figures.json"
    kept: dict[str, dict[str, dict[str, str]]] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    of_mark = kept.setdefault(str(memories), {})
    of_mark |= {line.what: asdict(line) for line in lines}
    # Whole or not at all: the run may be killed.
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(kept, indent=1), "utf-8")
    fresh.replace(path)
    return [Line(**line) for line in of_mark.values()]


def write(report: Path, memories: int, tenants: int, lines: Sequence[Line]) -> None:
    """Add the section to the report, or put it in the place of the one with the same heading; fewest memories first."""
    there = report.read_text("utf-8") if report.exists() else ""
    kept = {part.partition("\n")[0]: part.rstrip("\n") for part in re.split(r"^(?=## )", there, flags=re.MULTILINE)[1:]}
    kept[heading(memories, tenants)] = section(memories, tenants, lines).rstrip("\n")
    report.write_text(TITLE + SAID + "".join(f"\n{kept[name]}\n" for name in sorted(kept, key=_size)), "utf-8")


def _size(name: str) -> list[int]:
    return [int(number.replace(",", "")) for number in re.findall(r"[\d,]+", name)]
