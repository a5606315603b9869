"""What a background job is: work in one tenant that may run twice, run concurrently, or be killed at any line."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
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
    """A job, by its name in the pack's schedule; `follows_log` jobs are due only where new events were written.

    Others pause longer in a tenant that nobody writes to, up to `longest_pause`. Where a job goes before the jobs of
    other tenants, `run_briefly` takes the place of `run`: many may go first at once.
    """

    name: str
    rule: str
    run: Run
    follows_log: bool = False
    longest_pause: timedelta = timedelta(hours=1)
    run_briefly: Run | None = None
