"""The supervisor with small processes: it replaces what dies, gives up, renews, and leaves nothing behind."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from muniment import supervisor
from muniment.errors import InvalidInput
from muniment.supervisor import Beside, Supervisor, core_count
from tests.faults import process_targets
from tests.faults.servers import ROOT, environment, eventually


class Story:
    """What happened to the processes of `stay`: lines of number, process id and event."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def lines(self) -> list[tuple[int, int, str]]:
        file = self.folder / "story"
        found = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
        return [(int(number), int(pid), what) for number, pid, what in found]

    def pids(self, what: str) -> list[int]:
        return [pid for _, pid, happened in self.lines() if happened == what]


def supervised(act: Callable[[], object], **options: Any) -> tuple[int, BaseException | None]:
    """Run a supervisor in this process, and act beside it; then it is ended."""
    errors: list[BaseException] = []

    def beside() -> None:
        try:
            act()
        except BaseException as error:
            errors.append(error)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=beside)
    # A signal that comes after its end is not for us.
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        code = Supervisor(**options, on_ready=thread.start).run()
        thread.join()
    finally:
        signal.signal(signal.SIGTERM, before)
    return code, errors[0] if errors else None


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path)


def staying(story: Story, count: int = 2, **options: Any) -> dict[str, Any]:
    return {"target": process_targets.stay, "args": (story.folder,), "count": count, **options}


def test_one_that_dies_is_replaced_and_one_at_a_time_runs_the_jobs(story: Story) -> None:
    ended: list[int] = []
    figures: list[int] = []

    def kill_the_worker() -> None:
        eventually(lambda: story.pids("work"))
        (first,) = story.pids("work")
        assert len(story.pids("started")) == 2
        os.kill(first, signal.SIGKILL)
        eventually(lambda: len(story.pids("started")) == 3)
        eventually(lambda: len(story.pids("work")) == 2)
        assert ended == [first]

    ran = staying(story, has_worker=True, on_end=ended.append, on_figure=figures.append)
    assert supervised(kill_the_worker, **ran) == (0, None)
    numbers = {pid: number for number, pid, _ in story.lines()}
    assert len(story.pids("work")) == 2 and sorted(figures) == [1, 2]
    assert sorted(numbers[pid] for pid in story.pids("started")) in ([1, 1, 2], [1, 2, 2])
    assert sorted(ended) == sorted(story.pids("started"))


def test_on_hangup_new_ones_start_before_the_old_ones_end(story: Story) -> None:
    def renew() -> None:
        os.kill(os.getpid(), signal.SIGHUP)
        eventually(lambda: len(story.pids("retire")) == 2)
        eventually(lambda: len(story.pids("work")) == 2)

    assert supervised(renew, **staying(story, has_worker=True)) == (0, None)
    happened = [(number, what) for number, _, what in story.lines() if what in ("started", "retire")]
    # The first one starts alone; each is replaced by one of its number.
    assert happened == [(1, "started"), (2, "started"), *[(n, what) for n in (1, 2) for what in ("started", "retire")]]
    told = [(pid, what) for _, pid, what in story.lines()]
    first, second = story.pids("work")
    # The old one had ended when a new one was told to work.
    assert told.index((first, "retire")) < told.index((second, "work"))
    assert second in story.pids("terminated")


def test_if_a_new_one_does_not_start_the_old_ones_stay(story: Story, caplog: pytest.LogCaptureFixture) -> None:
    def renew() -> None:
        (story.folder / "broken").touch()
        os.kill(os.getpid(), signal.SIGHUP)
        eventually(lambda: "the old ones stay: broken" in caplog.text)
        (story.folder / "broken").unlink()

    assert supervised(renew, **staying(story)) == (0, None)
    assert len(story.pids("started")) == 2 and not story.pids("retire")


def test_an_error_of_the_first_one_is_raised() -> None:
    with pytest.raises(InvalidInput, match="pack: no such thing"):
        Supervisor(process_targets.refuse, (), 4).run()


def test_an_internal_error_keeps_its_words_to_itself(capfd: pytest.CaptureFixture[str]) -> None:
    assert Supervisor(process_targets.break_off, (), 2).run() == 70
    assert capfd.readouterr().err == "internal error (RuntimeError)\n"


def test_it_gives_up_when_all_die_at_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(supervisor, "FIRST_PAUSE", 0.05)
    assert Supervisor(process_targets.die, (), 2).run() == 70
    assert "5 processes ended at once, the last one by SIGKILL: giving up" in caplog.text
    # The pauses of each of the two grow; which of them dies first is not said.
    pauses: dict[Any, list[Any]] = {}
    for record in caplog.records:
        if "to be replaced" in record.message and isinstance(record.args, tuple):
            pauses.setdefault(record.args[0], []).append(record.args[2])
    assert all(found == sorted(found) for found in pauses.values()), pauses
    assert max(found[-1] for found in pauses.values()) > 0


def test_one_that_hangs_is_killed_and_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "SILENT_AFTER", 0.5)
    monkeypatch.setattr(supervisor, "ALIVE_EVERY", 0.1)
    monkeypatch.setattr(supervisor, "HARD_STOP_SECONDS", 0.1)
    begun: list[int] = []
    ended: list[int] = []

    def end() -> None:
        eventually(lambda: len(begun) == 2)
        # They do not end when they are told to: it takes the second signal, which comes when this returns.
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.3)
        assert len(ended) == 1

    ran = {"target": process_targets.freeze, "args": (), "count": 1, "on_end": ended.append, "on_figure": begun.append}
    assert supervised(end, **ran) == (0, None)
    assert begun == ended


# ---- the process beside the others ----


def test_the_one_beside_them_is_replaced_renewed_runs_no_jobs_and_ends_last(story: Story) -> None:
    ended: list[int] = []

    def kill_it() -> None:
        eventually(lambda: story.pids("work"))
        eventually(lambda: len(numbered(0)) == 1)
        os.kill(numbered(0)[0], signal.SIGKILL)
        eventually(lambda: len(numbered(0)) == 2)
        os.kill(os.getpid(), signal.SIGHUP)
        eventually(lambda: len(story.pids("retire")) == 3)
        eventually(lambda: len(story.pids("work")) == 2)

    def numbered(wanted: int) -> list[int]:
        return [pid for number, pid, what in story.lines() if number == wanted and what == "started"]

    beside = Beside("the other one", process_targets.stay, (story.folder,))
    ran = staying(story, has_worker=True, beside=beside, on_end=ended.append)
    assert supervised(kill_it, **ran) == (0, None)
    assert [len(numbered(number)) for number in (0, 1, 2)] == [3, 2, 2]
    assert not {*story.pids("work")} & {*numbered(0)}
    assert ended[-1] == numbered(0)[-1] and len(ended) == 7
    last = [pid for _, pid, what in story.lines() if what == "terminated"]
    assert last[-1] == numbered(0)[-1]


def test_the_one_beside_them_may_die_again_and_again(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(supervisor, "LONGEST_PAUSE", 0.1)
    ended: list[int] = []
    beside = Beside("the other one", process_targets.die, ())
    ran = staying(story, beside=beside, on_end=ended.append)
    assert supervised(lambda: eventually(lambda: len(ended) > supervisor.MOST_QUICK_DEATHS), **ran) == (0, None)
    assert len(story.pids("started")) == 2 and {*story.pids("started")} <= {*ended}


def test_the_one_beside_them_does_not_hide_the_error_of_the_first_one(story: Story) -> None:
    with pytest.raises(InvalidInput, match="pack: no such thing"):
        Supervisor(
            process_targets.refuse, (), 4, beside=Beside("the other one", process_targets.stay, (story.folder,))
        ).run()


def test_if_the_supervisor_is_killed_its_processes_end(story: Story) -> None:
    program = (
        "import sys; from pathlib import Path; from muniment.supervisor import Supervisor;"
        " from tests.faults.process_targets import stay;"
        " Supervisor(stay, (Path(sys.argv[1]),), 2, on_ready=lambda: print('ready', flush=True)).run()"
    )
    command = [sys.executable, "-c", program, str(story.folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment()) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.kill()
        # The processes have it open too.
        assert process.stdout.read() == ""
    assert sorted(story.pids("stop")) == sorted(story.pids("started"))


def test_it_counts_the_cores_that_it_may_use() -> None:
    assert 1 <= core_count() <= len(os.sched_getaffinity(0))
    one = [sys.executable, "-c", "from muniment.supervisor import core_count; print(core_count())"]
    cpu = str(min(os.sched_getaffinity(0)))
    found = subprocess.run(["taskset", "-c", cpu, *one], capture_output=True, text=True, check=True, env=environment())
    assert found.stdout == "1\n"
