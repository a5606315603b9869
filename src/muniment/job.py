"""What a background job is: work in one tenant that may run twice, run concurrently, or be killed at any line."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from muniment.opening import Opened


@dataclass(frozen=True)
class JobResult:
    """The result of a run: counts, whether more work is waiting, and when the job is due again at the latest."""

    counts: dict[str, int] = field(default_factory=dict[str, int])
    more: bool = False
    next_at: datetime | None = None

    @property
    def nonzero(self) -> dict[str, int]:
        """The counts that are not zero."""
        return {name: count for name, count in self.counts.items() if count}


Run = Callable[[Opened, str], Awaitable[JobResult]]


class Job(NamedTuple):
    """A job, by its name in the pack's schedule; `follows_log` jobs are due only where new events were written."""

    name: str
    rule: str
    run: Run
    follows_log: bool = False
