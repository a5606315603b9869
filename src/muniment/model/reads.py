"""Where a read was answered: by the primary, or by a standby that is some seconds behind."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

from pydantic import Field

from muniment.model.fields import Artifact

# The header that says so over HTTP.
READ_HEADER = "Muniment-Read-From"
# Why the primary answered a read that a standby could have: it does not answer; is further behind than allowed; has
# not replayed what the caller knows of; is a primary itself; is no standby of this primary; is one of a cluster's
# coordinator; follows another timeline; ended the read to go on replaying; found what only the primary may report.
Why = Literal["away", "lag", "behind", "not_standby", "other_server", "cluster", "timeline", "conflict", "to_confirm"]


class ReadFrom(Artifact):
    """Where a read was answered."""

    source: Literal["standby", "primary"]
    lag_s: float | None = Field(
        default=None, description="how many seconds the standby was behind the primary, at most"
    )
    why: Why | None = Field(default=None, description="why the primary answered, although there is a standby")

    @property
    def header(self) -> str:
        """The value of the header."""
        if self.source == "standby":
            return f"standby; lag={self.lag_s}"
        return f"primary; why={self.why}"

    @property
    def words(self) -> str:
        """The same for people."""
        if self.source == "standby":
            return f"read from a standby, at most {self.lag_s:.1f} s behind"
        return f"read from the primary: {_WORDS[self.why or 'away']}"


_WORDS: dict[Why, str] = {
    "away": "the standby does not answer",
    "lag": "the standby is too far behind",
    "behind": "the standby has not replayed what this read depends on",
    "not_standby": "the standby has become a primary",
    "other_server": "what should be the standby belongs to another server",
    "cluster": "the standby is one of a cluster's coordinator",
    "timeline": "the standby does not follow this primary",
    "conflict": "the standby ended the read",
    "to_confirm": "the primary rechecked a problem that the standby reported",
}

# An event stream reads indefinitely; keep at most this many.
_NOTED_MOST = 100
_NOTED: ContextVar[list[ReadFrom] | None] = ContextVar("muniment_reads", default=None)


@contextmanager
def noting_reads() -> Generator[list[ReadFrom]]:
    """Collect where the reads made inside were answered; none are noted where no standby is configured."""
    noted: list[ReadFrom] = []
    token = _NOTED.set(noted)
    try:
        yield noted
    finally:
        _NOTED.reset(token)


def note_read(read: ReadFrom) -> None:
    """Add to the reads that are collected, if anybody does."""
    if (noted := _NOTED.get()) is not None and len(noted) < _NOTED_MOST:
        noted.append(read)


def summary_of(reads: list[ReadFrom] | None = None) -> ReadFrom | None:
    """Summarise several reads: the standby read with the largest lag, else the last reason the primary answered.

    By default those that were collected so far.
    """
    noted = reads if reads is not None else _NOTED.get() or []
    behind = [one for one in noted if one.source == "standby"]
    if behind:
        return max(behind, key=lambda one: one.lag_s or 0.0)
    return noted[-1] if noted else None


def parse_header(text: str) -> ReadFrom | None:
    """Read the header; None for one that this version does not know."""
    source, _, rest = text.partition("; ")
    name, _, value = rest.partition("=")
    try:
        return ReadFrom.model_validate({"source": source, "lag_s" if name == "lag" else name: value or None})
    except ValueError:
        return None
