"""The page about scale says the figures that `make bench-scale` last gave."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "scale.md").read_text("utf-8")
REPORT = (ROOT / "bench" / "SCALE.md").read_text("utf-8")
MARKS = ("100,000", "1,000,000", "3,000,000")
# A row of the page, and the row of the report that it is taken from.
ROWS = {
    "recall, the first in its tenant": "recall, the first in its tenant",
    "recall, warm": "recall, warm",
    "capture, the first in its tenant": "capture, the first in its tenant",
    "capture, warm": "capture, warm",
    "a page of the queue, 1,000 proposals open in its tenant": "a page of the queue",
    "sealing the log of a tenant": "seal the log of a tenant",
    "verifying a tenant, its rows and its log": "verify a tenant",
    "erasing a user": "erase a user",
    "disk": "disk",
}


def table(text: str) -> dict[str, list[str]]:
    """The rows of the first table in a text, by their first cell."""
    lines = re.findall(r"^\|(.*)\|$", "|" + text.split("\n|", 1)[1].split("\n\n", 1)[0], re.MULTILINE)
    cells = [[cell.strip() for cell in line.split("|")] for line in lines]
    return {first: rest for first, *rest in cells}


def reported(mark: str) -> dict[str, list[str]]:
    """What the report says at that number of memories: a figure and a detail for each row."""
    (section,) = re.findall(rf"^## {mark} memories in .*?(?=^## |\Z)", REPORT, re.MULTILINE | re.DOTALL)
    return table(section)


def under(heading: str) -> dict[str, list[str]]:
    return table(PAGE.split(f"\n## {heading}\n", 1)[1])


def figures(text: str) -> set[str]:
    return set(re.findall(r"[\d.,]*\d", text))


@pytest.mark.parametrize("column", range(3), ids=MARKS)
def test_each_figure_by_size_is_that_of_the_report(column: int) -> None:
    page, report = under("The same calls with thirty times as many memories"), reported(MARKS[column])
    assert ROWS.keys() <= page.keys()
    for row, source in ROWS.items():
        shown, (figure, detail) = page[row][column], report[source]
        measured = figures(detail.split(" a memory")[0] if row == "disk" else figure.split(" CPU")[0] + detail)
        assert figures(shown) and figures(shown) <= measured, f"{row}: {shown}"


@pytest.mark.parametrize("mark", MARKS)
def test_each_purge_is_that_of_the_report(mark: str) -> None:
    figure, detail = reported(mark)["purge after it"]
    cpu, wall = (float(one.replace(",", "")) / 1000 for one in re.findall(r"([\d.,]+) ms", figure))
    rewritten = re.findall(r"([\d,]+ MB)", detail)
    assert under("The purge")[mark] == [*rewritten, f"{cpu:.1f} s", f"{wall:.1f} s"]


def test_what_the_jobs_and_the_processes_take_is_that_of_the_report() -> None:
    report = reported("3,000,000")
    jobs, grows = under("Jobs"), under("What grows with what")
    quiet, busy = (
        report[f"from capture to consolidated in a quiet tenant, {who}"][0]
        for who in ("all tenants quiet", "100 others busy")
    )
    queue = next(detail for what, (_, detail) in report.items() if what.startswith("every job once"))
    shown = [figure for row in jobs.values() for figure in row]
    assert f"median {quiet}" in shown and f"median {busy}" in shown
    assert f"{queue.split(' CPU')[0]} with the queue" in jobs["one job with nothing to do"][0]
    assert report["disk"][0] in grows["disk"][1]
    memory = report["memory of a process with 10,000 tenants open"][0]
    assert f"{memory} with 10,000 open" in grows["memory of a process"][1]
    # Of 10,000 tenants, all had a recall in the last fifteen minutes.
    seconds = float(report["renewing its leases on what it holds, once a minute"][0].split(" s")[0])
    assert f"{seconds / 10:.2f} ms CPU" in grows["leases on what it holds in memory"][1]


def test_the_arithmetic_for_a_billion_begins_with_what_was_measured() -> None:
    million = under("A billion memories")
    disk = float(reported("3,000,000")["disk"][0].split()[0]) / 3
    assert million["disk"][:2] == [f"{disk:.1f} GB", f"{disk:.1f} TB"]
    log = re.search(r"([\d.]+) KB of log", " ".join(reported("3,000,000")["capture to promoted memory, in batches"]))
    assert log is not None
    # A million tenants, written in turn: the log of many tenants.
    assert million["PostgreSQL's log while they are written"][1].startswith(f"{float(log[1]):.0f} to ")
