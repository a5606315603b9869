"""Signals that end a process: which there are, and doing something before they do.

A signal's own action ends a process at once: no block is left, nothing registered by `atexit` runs.
"""

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress

# SIGKILL cannot be caught; the others that end a process tell of a broken program.
_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGXCPU)


def ending_signals() -> tuple[signal.Signals, ...]:
    """Those that a program should listen to which runs until it is told to end: all but what it was told to ignore."""
    asked = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
    return tuple(number for number in asked if signal.getsignal(number) is not signal.SIG_IGN)


def before_ending(act: Callable[[], None]) -> None:
    """Have `act` called before a signal ends this process, which then ends by that signal all the same.

    Only for signals with their default action: a program that handles or ignores one goes on doing so. Does nothing
    outside the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        return

    def handle(number: int, _frame: object) -> None:
        try:
            act()
        finally:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    for number in _ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:
            # Of another interpreter in this process.
            with suppress(ValueError):
                signal.signal(number, handle)
