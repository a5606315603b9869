"""The audit chain as callers see it: its head, to keep elsewhere, and what a verification found."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from muniment.model.fields import Artifact, TenantId

BreakKind = Literal[
    "changed",
    "removed",
    "inserted",
    "reordered",
    "batch_forged",
    "batch_missing",
    "chain_broken",
    "head_mismatch",
    "row_changed",
    "row_added",
    "row_removed",
    "row_key_broken",
]
_Hex = Annotated[str, StringConstraints(strict=True, pattern=r"^[0-9a-f]{64}$")]
_Number = Annotated[int, Field(strict=True, ge=1, le=2**62)]


class Head(Artifact):
    """The last batch of a chain. Kept where the database's keepers cannot reach, it shows later that history stands."""

    tenant_id: TenantId
    batch: _Number
    last_seq: _Number
    hash: _Hex
    seal: _Hex


class Break(Artifact):
    """One place where the chain does not hold, or a row is not what the log says: batch, event and row as far as they
    are known, and why."""

    kind: BreakKind
    batch: int | None = None
    seq: int | None = None
    n: int | None = None
    event_id: str | None = None
    table: str | None = None
    row_id: str | None = None
    why: str


class Verification(Artifact):
    """What a verification found; `ok` when all was looked at and nothing is broken.

    `unsealed` events wait for their batch.
    """

    ok: bool
    events: int
    batches: int
    unsealed: int
    head: Head | None = None
    breaks: tuple[Break, ...] = ()
    more: bool = Field(default=False, description="whether there are further breaks than the ones listed")
    clock_bound_s: float | None = Field(
        default=None,
        description="how many seconds ahead of the database's clock an event can be dated; none: any time at all",
    )
    rows: int = Field(default=0, description="how many rows were compared with the log")
    covered_from: int | None = Field(
        default=None, description="the number from which on the log lists rows; those of before were listed then"
    )
    cursor: str | None = Field(default=None, description="where to go on, of a verification that is not finished")


class Sealed(Artifact):
    """How many events were sealed."""

    events: int

    @classmethod
    def of(cls, events: int) -> "Sealed":
        """The number as an object."""
        return cls(events=events)

    def result(self) -> int:
        """The number itself."""
        return self.events
