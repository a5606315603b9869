"""Signals that end a process, and doing something before they do.

The default action of a signal ends a process at once: no `finally` runs, and nothing registered with `atexit`.
"""

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress

# SIGKILL cannot be caught; the other signals that end a process mean a broken program.
_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGXCPU)


def ending_signals() -> tuple[signal.Signals, ...]:
    """The signals that a long-running program should end on: all except those that it was started to ignore."""
    asked = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
    return tuple(number for number in asked if signal.getsignal(number) is not signal.SIG_IGN)


def before_ending(act: Callable[[], None]) -> None:
    """Call `act` before a signal ends this process; the process then still ends by that signal.

    Only for signals with their default action: those that the program handles or ignores stay as they are. Does nothing
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
            # Fails for a handler of another interpreter in this process.
            with suppress(ValueError):
                signal.signal(number, handle)
