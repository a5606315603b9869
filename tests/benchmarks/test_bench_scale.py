"""`make bench-scale` at a tiny size: it is killed while it writes, goes on where it was, and reports every measurement."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from bench.scale.__main__ import MEASURES
from bench.scale.calls import drawn
from bench.scale.generate import Part, captured, item, tenant_name, user_of
from bench.scale.home import Home, NoRoom
from bench.scale.report import Line, heading, write

MEMORIES, TENANTS = 200, 5
ROOT = Path(__file__).parents[2]


def _command(folder: Path, report: Path, *more: str) -> list[str]:
    size = ["--memories", str(MEMORIES), "--tenants", str(TENANTS), "--keep-free", "0", "--settle", "2"]
    return [sys.executable, "-m", "bench.scale", *size, "--folder", str(folder), "--report", str(report), *more]


def _there(folder: Path) -> dict[str, tuple[int, int]]:
    with Home(folder, kept_free=0) as home, home.connect() as owner:
        return captured(owner)


def _end_while_it_writes(folder: Path, report: Path, number: signal.Signals) -> tuple[int, str]:
    """Start it, end it with the signal once some of the memories are there; returns how many are, and what it told."""
    # The server stays until the last of its processes is gone: what is there is read from it meanwhile.
    with Home(folder, kept_free=0) as home, home.connect() as owner:
        process = subprocess.Popen(_command(folder, report), cwd=ROOT, stderr=subprocess.PIPE, text=True)
        try:
            until = time.monotonic() + 60
            while not (there := captured(owner)) and time.monotonic() < until:
                assert process.poll() is None, "it ended by itself"
                time.sleep(0.01)
        finally:
            os.kill(process.pid, number)
            _, told = process.communicate(timeout=60)
    return sum(count for count, _ in there.values()), told


def test_killed_while_it_writes_it_goes_on_and_measures_everything(tmp_path: Path) -> None:
    folder, report = tmp_path / "home", tmp_path / "SCALE.md"
    first, _ = _end_while_it_writes(folder, report, signal.SIGKILL)
    assert 0 < first < MEMORIES
    done = subprocess.run(_command(folder, report), cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    share = MEMORIES // TENANTS
    assert _there(folder) == {tenant_name(number): (share, share) for number in range(TENANTS)}
    told = report.read_text()
    assert heading(MEMORIES, TENANTS) in told
    assert "not measured" not in told
    assert f"the figures are in {report}" in done.stderr
    for said in (
        "disk", "recall, warm", "capture, warm", "a page of the queue", "verify a tenant", "erase a user", "purge after it",
        "sweep of a tenant", "a look at the tenants that were written to", "memory of a process with 5 tenants open", "in a quiet tenant, 1 others busy",
    ):  # fmt: skip
        assert said in told, said
    again = subprocess.run(_command(folder, report, "--only", "generate"), cwd=ROOT, capture_output=True, text=True)
    assert "this run wrote 0" in again.stderr, "what is there is not written again"


def test_interrupted_it_says_how_to_go_on_in_one_line(tmp_path: Path) -> None:
    _, told = _end_while_it_writes(tmp_path / "home", tmp_path / "SCALE.md", signal.SIGINT)
    assert [line.split(" ", 1)[1] for line in told.splitlines()] == [
        "interrupted: the same command goes on where it was"
    ]


def test_several_processes_write_each_in_its_own_tenants(tmp_path: Path) -> None:
    command = _command(tmp_path / "home", tmp_path / "SCALE.md", "--only", "generate", "--writers", "2")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert f"{MEMORIES} in this run, writers: 2" in done.stderr
    share = MEMORIES // TENANTS
    assert _there(tmp_path / "home") == {tenant_name(number): (share, share) for number in range(TENANTS)}
    measured = _command(tmp_path / "home", tmp_path / "SCALE.md", "--only", "measure", "--parts", "capture")
    assert subprocess.run(measured, cwd=ROOT, capture_output=True, timeout=300).returncode == 0
    told = (tmp_path / "SCALE.md").read_text()
    assert f"{MEMORIES} in this run, writers: 2" in told, "what another run of the folder found is kept"
    assert "capture, warm" in told
    assert [list(Part.parse(one).tenants(5)) for one in ("0/2", "1/2")] == [[0, 2, 4], [1, 3]]


def test_the_same_statement_comes_of_the_same_number_and_each_tenant_has_its_own() -> None:
    assert item("scale_00001", 7) == item("scale_00001", 7)
    assert item("scale_00001", 7)["text"] != item("scale_00002", 7)["text"]
    assert user_of(0) is None and user_of(7) == user_of(8) == "user_0" and user_of(11) == "user_1"
    names = drawn(50, 20, seed=1)
    assert len(set(names)) == 20
    assert set(MEASURES) >= {"recall", "capture", "queue", "verify", "erasure", "sweep"}


def test_a_disk_without_room_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(NoRoom, match="left alone"), Home(tmp_path / "home", kept_free=10**18):
        pass
    assert not (tmp_path / "home" / "data").exists()


def test_a_mark_is_added_to_the_report_and_replaces_the_same_mark(tmp_path: Path) -> None:
    report = tmp_path / "SCALE.md"
    write(report, 3_000_000, 10_000, [Line("recall", "3 ms")])
    write(report, 1_000_000, 10_000, [Line("recall", "1 ms")])
    write(report, 3_000_000, 10_000, [Line("recall", "4 ms", "again")])
    told = report.read_text()
    assert told.index("| recall | 1 ms |") < told.index("| recall | 4 ms | again |")
    assert "3 ms" not in told and told.count("\n## ") == 2
