"""What a job is: work in one tenant, safe to run twice, at once, or to be killed at any line."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime

from muniment.opening import Opened


@dataclass(frozen=True)
class Done:
    """What a run found: figures to tell, whether more waits already, and by when to look again whatever happens."""

    counts: dict[str, int] = field(default_factory=dict[str, int])
    more: bool = False
    next_at: datetime | None = None

    @property
    def told(self) -> dict[str, int]:
        """The figures that are worth telling."""
        return {name: count for name, count in self.counts.items() if count}


Run = Callable[[Opened, str], Awaitable[Done]]


@dataclass(frozen=True)
class Job:
    """A job by its name in the pack's schedule. One that follows the log has work only where the log moved."""

    name: str
    rule: str
    run: Run
    follows_log: bool = False
