"""The log of a server and of a worker: lines for people on a terminal, JSON everywhere else."""

import json
import os
import pty
import re
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.interfaces.command import MUNIMENT, Terminal, run, spawn

SERVE = ("serve", "--port", "0")
WORKER = ("worker",)
SEVERAL = ("worker", "--processes", "2")
# What each says once it works.
READY = {SERVE: "serving at", WORKER: "working", SEVERAL: "working in 2 processes"}
TEXT = re.compile(r"^\d\d:\d\d:\d\d (\[\d+\] )?(info|warning|error) +\S")


@contextmanager
def started(home: Path, words: tuple[str, ...], stderr: int) -> Generator[subprocess.Popen[bytes]]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")}
    command = [MUNIMENT, *words, "--home", str(home)]
    with subprocess.Popen(command, stderr=stderr, stdout=subprocess.DEVNULL, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


def lines_on_a_terminal(home: Path, words: tuple[str, ...]) -> list[str]:
    ours, theirs = pty.openpty()
    seen, told = b"", False
    with started(home, words, theirs) as process:
        os.close(theirs)
        try:
            while chunk := os.read(ours, 65536):
                seen += chunk
                if READY[words].encode() in seen and not told:
                    told = True  # A second time would end it at once.
                    process.send_signal(signal.SIGTERM)
        except OSError:
            pass  # The terminal is gone with the last process.
        assert process.wait(60) == 0, seen
    os.close(ours)
    return seen.decode().replace("\r\n", "\n").splitlines()


def lines_in_a_pipe(home: Path, words: tuple[str, ...]) -> list[str]:
    seen: list[str] = []
    with started(home, words, subprocess.PIPE) as process:
        assert process.stderr is not None
        for line in process.stderr:
            seen.append(line.decode().rstrip("\n"))
            if READY[words] in seen[-1]:
                process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, seen
    return seen


@pytest.mark.parametrize("words", [WORKER, SEVERAL], ids=" ".join)
def test_a_worker_that_is_no_ones_to_watch_writes_json_and_nothing_else(home: Path, words: tuple[str, ...]) -> None:
    read = [json.loads(line) for line in lines_in_a_pipe(home, words)]
    assert {"at", "level", "logger", "message"} <= set.intersection(*(set(line) for line in read))
    assert READY[words] in [line["message"] for line in read]


@pytest.mark.parametrize("words", [WORKER, SERVE], ids=" ".join)
def test_on_a_terminal_the_log_is_for_people(home: Path, words: tuple[str, ...]) -> None:
    seen = lines_on_a_terminal(home, words)
    assert any(TEXT.match(line) for line in seen), seen
    assert not any(line.startswith("{") for line in seen)


def test_a_server_whose_log_is_kept_writes_it_as_json(home: Path) -> None:
    seen = lines_in_a_pipe(home, SERVE)
    logged = [json.loads(line) for line in seen if line.startswith("{")]
    assert "stopping" in [line["message"] for line in logged]
    assert not any(TEXT.match(line) for line in seen)


def test_a_job_is_one_line_with_its_name_its_tenant_and_what_it_did(terminal: Terminal) -> None:
    terminal("capture", "Refunds are paid within five days.", "-c", "INTERNAL")
    done = spawn("worker", "--until-idle", "--log", "json", "--home", terminal.home)
    lines = [json.loads(line) for line in done.err.splitlines() if line.startswith("{")]
    (line,) = [one for one in lines if one.get("job") == "consolidate" and one["tenant"] == terminal.tenant]
    assert (line["message"], line["level"]) == ("job done", "info")
    assert sum(line["counts"].values()) > 0


def test_with_until_idle_it_says_what_was_done_in_words(terminal: Terminal) -> None:
    terminal("capture", "Refunds are paid within six days.", "-c", "INTERNAL")
    done = run("worker", "--until-idle", "--home", terminal.home)
    assert f"{terminal.tenant}  consolidate: " in done.err and not done.err.startswith("{")
