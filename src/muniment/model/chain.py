"""The audit chain as callers see it: its head, to be kept elsewhere, and the result of a verification."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from muniment.model.fields import Artifact, TenantId
from muniment.model.reads import ReadFrom

BreakKind = Literal[
    "changed", "removed", "inserted", "reordered", "batch_forged", "batch_missing", "chain_broken",
    "head_mismatch", "row_changed", "row_added", "row_removed", "row_key_broken",
]  # fmt: skip
_Hex = Annotated[str, StringConstraints(strict=True, pattern=r"^[0-9a-f]{64}$")]
_Number = Annotated[int, Field(strict=True, ge=1, le=2**62)]


class Head(Artifact):
    """The last batch of a chain. Kept out of the database's reach, it proves later that history was not rewritten."""

    tenant_id: TenantId
    batch: _Number
    last_seq: _Number
    hash: _Hex
    seal: _Hex


class Break(Artifact):
    """A place where the chain is broken or a row differs from the log: batch, event, row as known, and why."""

    kind: BreakKind
    batch: int | None = None
    seq: int | None = None
    n: int | None = None
    event_id: str | None = None
    table: str | None = None
    row_id: str | None = None
    why: str


class Verification(Artifact):
    """The result of a verification; `ok` when everything was checked and nothing is broken.

    `unsealed` events wait for their batch.
    """

    ok: bool
    events: int
    batches: int
    unsealed: int
    head: Head | None = None
    breaks: tuple[Break, ...] = ()
    more: bool = Field(default=False, description="whether there are more breaks than listed")
    clock_bound_s: float | None = Field(
        default=None,
        description="how many seconds ahead of the database's clock an event can be dated; none: any time at all",
    )
    below_promise: tuple[str, ...] = Field(
        default=(),
        description="what the nodes of a cluster keep less well than is promised, in words; nothing on one server",
    )
    rows: int = Field(default=0, description="how many rows were compared with the log")
    covered_from: int | None = Field(
        default=None,
        description="the sequence number from which the log lists rows; older rows were listed at that point",
    )
    cursor: str | None = Field(
        default=None, description="the cursor to continue with, of a verification that is not finished"
    )
    read_from: ReadFrom | None = Field(
        default=None, description="where it was read, if there is a standby that auditors' reads may go to"
    )


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
