"""What a job is: work in one tenant that can run twice, at the same time, or be killed at any line."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime

from muniment.opening import Opened


@dataclass(frozen=True)
class Done:
    """The result of a run: its counts, whether more work waits, and when to run again even if nothing happens."""

    counts: dict[str, int] = field(default_factory=dict[str, int])
    more: bool = False
    next_at: datetime | None = None

    @property
    def nonzero(self) -> dict[str, int]:
        """The counts that are not zero."""
        return {name: count for name, count in self.counts.items() if count}


Run = Callable[[Opened, str], Awaitable[Done]]


@dataclass(frozen=True)
class Job:
    """A job by its name in the pack's schedule. One that follows the log has work only if the log moved."""

    name: str
    rule: str
    run: Run
    follows_log: bool = False
