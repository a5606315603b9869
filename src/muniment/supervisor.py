"""The supervisor: several processes of one program, replaced when they die, renewed on SIGHUP, ended on a signal.

The processes have numbers from 1 on. The first one starts alone, because it may have to create the database, and
because an error that it meets the others would meet too. One more process may run beside them, which they ask for
something: it is replaced and renewed like the others, is never what ends them, and ends last. Why not uvicorn's own:
docs/adr/0049-own-supervisor-for-several-processes.md.
"""

import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from math import ceil
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from socket import socket, socketpair
from typing import Any, Literal, cast

import anyio

from muniment.errors import MunimentError

log = logging.getLogger("muniment.processes")

# What a process is told: run the jobs; end and leave the connections time to close.
Command = Literal["work", "retire", "stop"]
# What a process runs: its number, its link to the supervisor, and the arguments of all.
Target = Callable[..., None]

INTERNAL = 70
# The number of the process beside the others.
_BESIDE = 0
# A process that lived shorter died at once; so many of these in succession, and the supervisor gives up.
SETTLED_SECONDS = 10.0
MOST_QUICK_DEATHS = 5
# Seconds before a process that died at once is started again; each time twice as long.
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 30.0
# A process reports so often that it is alive; one that is silent for so long is killed.
ALIVE_EVERY, SILENT_AFTER = 5.0, 60.0
# Seconds that processes have after a second signal.
HARD_STOP_SECONDS = 5.0
# A terminal sends these to every process of the group; only the supervisor acts on them.
_FROM_TERMINAL = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)


def core_count() -> int:
    """The processor cores that this process may use, as bound by its affinity and its control group."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError, ValueError):
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        cores = min(cores, ceil(int(quota) / int(period)))
    return max(1, cores)


class Link:
    """The end of a process of its connection to the supervisor."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def send(self, message: object) -> None:
        """Send `"ready"`, an error, or a figure for the supervisor's `on_figure`."""
        with suppress(OSError):
            self._connection.send(message)

    async def follow(self, on_command: Callable[[Command], None]) -> None:
        """Pass on every command, and `"stop"` once the supervisor is gone; report meanwhile that the process lives."""
        while True:
            with anyio.move_on_after(ALIVE_EVERY) as waited:
                await anyio.wait_readable(self._connection.fileno())
            try:
                if waited.cancelled_caught:
                    self._connection.send("alive")
                else:
                    on_command(self._connection.recv())
            except (OSError, EOFError):
                on_command("stop")
                return


@dataclass(frozen=True)
class Beside:
    """A process beside the others: what the log calls it, and what it runs."""

    name: str
    target: Target
    args: tuple[Any, ...]


@dataclass(eq=False)
class _Running:
    """A process that was started."""

    number: int
    name: str
    process: Any
    connection: Connection
    last_message_at: float
    ready_at: float | None = None
    works: bool = False
    is_ending: bool = False
    error: MunimentError | None = None

    @property
    def is_beside(self) -> bool:
        return self.number == _BESIDE

    def send(self, command: Command) -> None:
        with suppress(OSError):
            self.connection.send(command)

    def terminate(self) -> None:
        self.is_ending = True
        self.process.terminate()

    def end(self) -> str:
        """How it ended, in words."""
        code: int = self.process.exitcode
        return f"exit code {code}" if code >= 0 else f"by {signal.Signals(-code).name}"


@dataclass
class _Slot:
    """One of the numbered processes: the one that runs now, and when the next one is to be started."""

    running: _Running | None = None
    start_at: float | None = None
    quick_deaths: int = 0


@dataclass
class Supervisor:
    """Runs `target` in `count` processes until a signal; `run` returns the exit code.

    `on_ready` is called once all have started, but for the one `beside` them. With `has_worker`, exactly one process at
    a time is told to run the jobs. `on_stop` is called when the end begins, `on_end` with the process id of each that
    has ended, `on_figure` with what else processes send.
    """

    target: Target
    args: tuple[Any, ...]
    count: int
    beside: Beside | None = None
    has_worker: bool = False
    on_ready: Callable[[], None] = lambda: None
    on_stop: Callable[[], None] = lambda: None
    on_end: Callable[[int], None] = lambda _: None
    on_figure: Callable[[Any], None] = lambda _: None
    _slots: dict[int, _Slot] = field(init=False)
    _alive: list[_Running] = field(init=False, default_factory=list[_Running])
    # Slots that are yet to be renewed, and the process that is to replace the one of the first of them.
    _to_renew: list[int] = field(init=False, default_factory=list[int])
    _successor: _Running | None = field(init=False, default=None)
    # Whether any process was ready, and whether that was reported.
    _has_started: bool = field(init=False, default=False)
    _is_reported: bool = field(init=False, default=False)
    _is_stopping: bool = field(init=False, default=False)
    _kill_at: float | None = field(init=False, default=None)
    _quick_deaths: int = field(init=False, default=0)
    _code: int = field(init=False, default=0)
    _error: MunimentError | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        first = _BESIDE if self.beside is not None else 1
        self._slots = {number: _Slot() for number in range(first, self.count + 1)}

    def run(self) -> int:
        """Run until a signal, or until no process stays; raises the error that kept the processes from starting."""
        had_terminal = _has_terminal()
        with _received_signals() as signals:
            try:
                for number in {_BESIDE, 1} & {*self._slots}:
                    self._slots[number].start_at = time.monotonic()
                while not self._is_stopping or self._alive:
                    self._start_due()
                    self._wait(signals)
                    for number in _pending(signals):
                        self._on_signal(number, had_terminal)
                    self._read_messages()
                    self._remove_ended()
                    self._end_beside()
                    self._assign_jobs()
                    self._kill_overdue()
            finally:
                for one in self._alive:
                    one.process.kill()
                    one.process.join()
        if self._error is not None:
            raise self._error
        return self._code

    # ---- what happens ----

    def _wait(self, signals: socket) -> None:
        now = time.monotonic()
        moments = [slot.start_at for slot in self._slots.values() if slot.start_at is not None]
        moments += [self._kill_at] if self._kill_at is not None else []
        pause = min([moment - now for moment in moments] + [ALIVE_EVERY])
        connections = [one.connection for one in self._alive if not one.connection.closed]
        wait([signals, *connections, *(one.process.sentinel for one in self._alive)], max(0.0, pause))

    def _on_signal(self, number: int, had_terminal: bool) -> None:
        if number == signal.SIGHUP and not (had_terminal and not _has_terminal()):
            if not self._is_stopping:
                log.info("renewing the processes")
                self._to_renew = list(self._slots)
        elif not self._is_stopping:
            self._stop()
        else:
            log.warning("ending at once")
            self._kill_at = time.monotonic() + HARD_STOP_SECONDS
            for one in self._alive:
                one.terminate()

    def _read_messages(self) -> None:
        for one in self._alive:
            try:
                while not one.connection.closed and one.connection.poll():
                    self._on_message(one, one.connection.recv())
            except (OSError, EOFError):
                one.connection.close()

    def _on_message(self, one: _Running, message: object) -> None:
        one.last_message_at = time.monotonic()
        if message == "ready":
            one.ready_at = one.last_message_at
            self._has_started = self._has_started or not one.is_beside
            if one is self._successor:
                self._replace(one)
        elif isinstance(message, MunimentError):
            one.error = message
        elif message != "alive":
            self.on_figure(message)
        self._report_once()

    def _replace(self, successor: _Running) -> None:
        """Put a new process in the slot of the old one, which finishes its requests."""
        slot = self._slots[successor.number]
        self._successor = None
        self._to_renew.remove(successor.number)
        if slot.running is not None:
            slot.running.is_ending = True
            slot.running.send("retire")
        slot.running, slot.start_at = successor, None

    def _remove_ended(self) -> None:
        for one in [one for one in self._alive if one.process.exitcode is not None]:
            self._read_messages()
            one.process.join()
            one.connection.close()
            self._alive.remove(one)
            self.on_end(one.process.pid)
            if one is self._successor:
                self._successor = None
                self._to_renew = []
                slot = self._slots[one.number]
                # The old one may have died meanwhile.
                slot.start_at = time.monotonic() if slot.running is None else None
                log.error("a new process ended before it was ready (%s): the old ones stay%s", one.end(), _why(one))
            elif not one.is_ending and not self._is_stopping:
                self._on_death(one)
            one.process.close()

    def _on_death(self, one: _Running) -> None:
        slot, now = self._slots[one.number], time.monotonic()
        slot.running = None
        is_quick = one.ready_at is None or now - one.ready_at < SETTLED_SECONDS
        slot.quick_deaths = slot.quick_deaths + 1 if is_quick else 0
        if not one.is_beside:
            self._quick_deaths = self._quick_deaths + 1 if is_quick and not self._has_settled(now) else 0
        if not self._has_started and not one.is_beside:
            self._give_up(one)
        elif self._quick_deaths >= MOST_QUICK_DEATHS:
            log.error("%d processes ended at once, the last one %s: giving up", self._quick_deaths, one.end())
            self._give_up(one)
        else:
            pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (slot.quick_deaths - 2)) if slot.quick_deaths > 1 else 0.0
            if self._successor is None or self._successor.number != one.number:
                slot.start_at = now + pause
            log.error("%s ended (%s), to be replaced in %g s%s", one.name, one.end(), pause, _why(one))
            self._report_once()

    def _give_up(self, one: _Running) -> None:
        code: int = one.process.exitcode
        self._code, self._error = code if code > 0 else INTERNAL, one.error
        self._stop()

    def _has_settled(self, now: float) -> bool:
        numbered = (one for one in self._alive if not one.is_beside)
        return any(one.ready_at is not None and now - one.ready_at >= SETTLED_SECONDS for one in numbered)

    # ---- what is done ----

    def _start_due(self) -> None:
        if self._is_stopping:
            return
        now = time.monotonic()
        for number, slot in self._slots.items():
            if slot.start_at is not None and slot.start_at <= now:
                slot.running, slot.start_at = self._start(number), None
        if self._to_renew and self._successor is None and self._is_reported:
            self._successor = self._start(self._to_renew[0])

    def _start(self, number: int) -> _Running:
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        beside = self.beside if number == _BESIDE else None
        target, args = (beside.target, beside.args) if beside is not None else (self.target, self.args)
        process = context.Process(target=_enter, args=(number, theirs, target, args))
        # Blocked until the process ignores them.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _FROM_TERMINAL)
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        name = beside.name if beside is not None else f"process {number}"
        one = _Running(number, name, process, cast("Connection", ours), time.monotonic())
        self._alive.append(one)
        log.info("%s started", name, extra={"pid": process.pid})
        return one

    def _report_once(self) -> None:
        """Start the others once the first is ready; report once none of them is still in its first start."""
        first = self._slots[1].running
        if self._is_reported or self._is_stopping or first is None or first.ready_at is None:
            return
        others = [slot for number, slot in self._slots.items() if number not in (_BESIDE, 1)]
        for slot in others:
            if slot.running is None and slot.start_at is None:
                slot.start_at = time.monotonic()
        if all(slot.quick_deaths or (slot.running and slot.running.ready_at) for slot in others):
            self._is_reported = True
            self.on_ready()

    def _assign_jobs(self) -> None:
        """Have one process run the jobs, if none does; one that is ending still does until it is gone."""
        if not self.has_worker or self._is_stopping or any(one.works for one in self._alive):
            return
        ready = [one for one in self._alive if one.ready_at is not None and not one.is_ending and not one.is_beside]
        if ready:
            # The newest: while processes are renewed the others are about to end.
            ready[-1].works = True
            ready[-1].send("work")

    def _stop(self) -> None:
        self._is_stopping = True
        self.on_stop()
        for one in self._alive:
            # A second signal would be a hard stop: one that is ending finishes. Those that finish may still ask the one
            # beside them.
            if not one.is_ending and not one.is_beside:
                one.terminate()

    def _end_beside(self) -> None:
        """End the process beside the others once they are gone."""
        if self._is_stopping and all(one.is_beside for one in self._alive):
            for one in self._alive:
                if not one.is_ending:
                    one.terminate()

    def _kill_overdue(self) -> None:
        now = time.monotonic()
        for one in self._alive:
            is_silent = one.ready_at is not None and not one.is_ending and now - one.last_message_at > SILENT_AFTER
            if is_silent:
                log.error("%s does not respond and is killed", one.name)
            if is_silent or (self._kill_at is not None and now >= self._kill_at):
                one.process.kill()


def _enter(number: int, connection: Connection, target: Target, args: tuple[Any, ...]) -> None:
    """The main function of a process."""
    for one in _FROM_TERMINAL:
        signal.signal(one, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _FROM_TERMINAL)
    link = Link(connection)
    try:
        target(number, link, *args)
    except MunimentError as error:
        link.send(error)
        sys.exit(1)
    except Exception as error:
        # INVARIANT: without the words of the error, which may quote what a caller sent.
        if os.environ.get("MUNIMENT_DEBUG"):
            raise
        sys.stderr.write(f"internal error ({type(error).__name__})\n")
        sys.exit(INTERNAL)


def _why(one: _Running) -> str:
    return f": {one.error}" if one.error is not None else ""


def _has_terminal() -> bool:
    """Whether this process has a terminal. SIGHUP without the terminal there was means that it is gone."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


@contextmanager
def _received_signals() -> Generator[socket]:
    """A socket to read the numbers of received signals from; those that the program was started to ignore stay so."""
    reader, writer = socketpair()
    with reader, writer:
        reader.setblocking(False)
        writer.setblocking(False)
        before = {
            number: signal.signal(number, _wake)
            for number in (*_ENDING, signal.SIGHUP)
            if signal.getsignal(number) is not signal.SIG_IGN
        }
        wakes = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        try:
            yield reader
        finally:
            signal.set_wakeup_fd(wakes)
            for number, handler in before.items():
                signal.signal(number, handler)


def _wake(_number: int, _frame: object) -> None:
    """Nothing: that the signal came is read from the socket."""


def _pending(signals: socket) -> Iterator[int]:
    with suppress(BlockingIOError):
        # Other signals wake it too, such as the one for a child that has ended.
        yield from (number for number in signals.recv(64) if number in (*_ENDING, signal.SIGHUP))
