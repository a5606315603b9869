"""How processes that use an embedded home end, and who stops its server then."""

import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from muniment.database import embedded
from tests.faults.load import Command, Serving
from tests.faults.servers import ROOT, environment, eventually, postmaster, program


@pytest.mark.rule("ERR-6")
@pytest.mark.parametrize(
    ("number", "mode"),
    [
        (signal.SIGTERM, "wait"),
        (signal.SIGINT, "wait"),
        (signal.SIGHUP, "wait"),
        (signal.SIGQUIT, "wait"),
        (signal.SIGTERM, "async"),
    ],
)
def test_the_last_process_stops_the_server_though_a_signal_ends_it(
    home: Path, number: signal.Signals, mode: str
) -> None:
    with program(home, mode) as process:  # type: ignore[arg-type]  # one of the modes
        assert embedded.is_running(home)
        process.send_signal(number)
        # By the signal itself, as without us: whoever started it sees what ended it.
        assert process.wait() == -number
    assert not embedded.is_in_use(home)


@pytest.mark.rule("ERR-6")
def test_a_process_that_a_signal_ends_leaves_the_server_to_the_others(home: Path) -> None:
    with program(home) as one, program(home) as another:
        pid = postmaster(home)
        one.send_signal(signal.SIGTERM)
        one.wait()
        assert embedded.is_running(home)
        assert postmaster(home) == pid
        another.send_signal(signal.SIGTERM)
        another.wait()
    assert not embedded.is_in_use(home)


@pytest.mark.rule("ERR-6")
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGQUIT])
def test_a_server_and_a_worker_end_by_any_of_these_signals_and_the_last_stops_the_database(
    home: Path, number: signal.Signals
) -> None:
    serving, working = Serving("--home", home, "--no-worker"), Command("worker", "--home", home)
    with serving.running(), working.running():
        eventually(lambda: (home / "lease.lock") in held_by(working.pid) and is_at_work(home))
        assert serving.end(number) == 0
        assert embedded.is_running(home)
        assert working.end(number) == 0
    assert not embedded.is_in_use(home)


def held_by(pid: int) -> list[Path]:
    try:
        return [entry.readlink() for entry in Path(f"/proc/{pid}/fd").iterdir()]
    except FileNotFoundError:
        return []


def is_at_work(home: Path) -> bool:
    """Whether a worker has said that it is there: from then on it listens to signals."""
    with (
        embedded.acquire(home) as lease,
        psycopg.connect(make_conninfo(lease.conninfo, dbname="muniment")) as connection,
    ):
        row = connection.execute("SELECT count(*) FROM procrastinate.procrastinate_workers").fetchone()
    return row is not None and row[0] > 0


OWN_HANDLER = """
import os, signal, sys
signal.signal(signal.SIGTERM, lambda *_: print("mine", flush=True))
signal.signal(signal.SIGHUP, signal.SIG_IGN)
from muniment import Fabric
with Fabric.open(home=sys.argv[1]) as fabric:
    print("ready", flush=True)
    sys.stdin.readline()
    os.kill(os.getpid(), signal.SIGHUP)
    os.kill(os.getpid(), signal.SIGTERM)
    sys.stdin.readline()
"""


@pytest.mark.rule("ERR-6")
def test_a_signal_that_the_program_handles_or_ignores_stays_its_own(home: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", OWN_HANDLER, str(home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=environment(),
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "mine\n"
        assert embedded.is_running(home)
        process.communicate("\n")
        assert process.returncode == 0
    assert not embedded.is_in_use(home)


RAISES = """
import sys
from muniment import Fabric
fabric = Fabric.open(home=sys.argv[1])
raise SystemExit(3) if sys.argv[2] == "exit" else RuntimeError("a bug of the program")
"""


@pytest.mark.rule("ERR-6")
@pytest.mark.parametrize(("how", "status"), [("exit", 3), ("raise", 1)])
def test_a_program_that_ends_without_closing_stops_the_server_too(home: Path, how: str, status: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RAISES, str(home), how], capture_output=True, cwd=ROOT, env=environment(), check=False
    )
    assert done.returncode == status
    assert not embedded.is_in_use(home)


SAYS_NOTHING = """
import sys
from muniment import Memory
memory = Memory.open(user="joanna", home=sys.argv[1])
memory.add("I'm vegan, and my sister Ana is getting married in June.")
print(*memory.search("what should I cook for her?"))
prompt = memory.context("what should I cook for her?", tokens=300)
"""


@pytest.mark.rule("ERR-6")
def test_a_program_that_ends_without_closing_logs_no_lost_connections(home: Path) -> None:
    for _ in range(3):  # the connections and the server end together; which of them is first differs between runs
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", SAYS_NOTHING, str(home)],
            capture_output=True, text=True, cwd=ROOT, env=environment(), check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.rule("ERR-6")
def test_a_server_whose_users_were_all_killed_is_taken_over_by_the_next_start(home: Path) -> None:
    with program(home) as one, program(home) as another:
        pid = postmaster(home)
        one.kill()
        another.kill()
        one.wait()
        another.wait()
    assert embedded.is_running(home)
    with program(home) as process:
        assert postmaster(home) == pid
        process.communicate("")
        assert process.returncode == 0
    assert not embedded.is_in_use(home)


@pytest.mark.rule("ERR-6")
def test_a_child_that_was_forked_and_is_told_to_end_leaves_its_parents_server_alone(home: Path) -> None:
    forks = """
import os, signal, sys, time
from muniment import Fabric
ready, say = os.pipe()
with Fabric.open(home=sys.argv[1]) as fabric:
    child = os.fork()
    if child == 0:
        os.write(say, b"x")  # A signal that came while the interpreter is being forked would be lost.
    while child == 0:
        time.sleep(0.02)
    os.read(ready, 1)
    os.kill(child, signal.SIGTERM)
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
    sys.stdin.readline()
"""
    with subprocess.Popen(
        [sys.executable, "-c", forks, str(home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=environment(),
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"{-signal.SIGTERM}\n"
        assert embedded.is_running(home)
        process.communicate("\n")
    assert not embedded.is_in_use(home)
