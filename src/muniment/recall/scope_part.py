"""A part of the index: the memories of one user, or with '' those of the tenant itself, kept up to date."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from muniment.database.storage import Row
from muniment.recall.scope_block import Block, join_blocks, read_block


class VisibilityNumber(NamedTuple):
    """A tenant's visibility number: the last tick that may have changed what recalls see, and its random mark."""

    seq: int
    mark: str


# The number of a part that was dropped.
_DROPPED = VisibilityNumber(-1, "")


class ConsentRecord(NamedTuple):
    """A record of the consent ledger: the columns that decide what is seen."""

    consent_id: str
    action: str
    valid_from: datetime
    valid_until: datetime | None
    predicates: Sequence[str]
    labels: Sequence[str]
    supersedes: str | None


class Conflict(NamedTuple):
    """An open contradiction between two memories."""

    contradiction_id: str
    existing: str
    incoming: str


# Later memories come as a block of their own. It is joined with the block before it, unless the two have more than
# `_FEW_ROWS` rows together and the one before is more than `_TIMES_LARGER` times as large: so there are few blocks, and
# a large one is seldom copied.
_FEW_ROWS = 2_048
_TIMES_LARGER = 8


@dataclass
class Part:
    """The memories of one user with their vectors of one embedder, as they were at a visibility number.

    It also has what else decides about them: consents, contradictions, required qualifiers and ended sessions.
    """

    user_id: str
    embedder: str | None
    dimensions: int
    number: VisibilityNumber
    pack: str | None
    blocks: list[Block] = field(default_factory=list[Block])
    consents: Mapping[str, Sequence[ConsentRecord]] = field(default_factory=dict[str, Sequence[ConsentRecord]])
    # Memory ids with qualifiers that a run must have to see them; one entry for each contradiction resolved that way.
    required: Sequence[tuple[str, Mapping[str, str]]] = ()
    conflicts: Sequence[Conflict] = ()
    # Sessions that have ended, of those that working memories belong to.
    ended_sessions: frozenset[str] = frozenset()
    # The key that the user's queries are sealed under, wrapped, with its version.
    holder_key: tuple[bytes | None, int | None] = (None, None)
    # How often memories were removed that its number still has.
    removals: int = 0

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return sum(block.size for block in self.blocks) + 1024

    def read_related(self, row: Row) -> None:
        """Replace what else decides about the memories, and the key, by what the statement `scopes.related` read."""
        chains: dict[str, list[ConsentRecord]] = {}
        for root, consent_id, action, since, until, predicates, labels, supersedes in row["consents"] or ():
            valid_from = datetime.fromisoformat(since)
            valid_until = datetime.fromisoformat(until) if until is not None else None
            record = ConsentRecord(consent_id, action, valid_from, valid_until, predicates, labels, supersedes)
            chains.setdefault(root, []).append(record)
        self.consents = chains
        self.required = [(memory_id, qualifiers) for memory_id, qualifiers in row["required"] or ()]
        self.conflicts = [Conflict(*columns) for columns in row["open"] or ()]
        self.ended_sessions = frozenset(row["ended_sessions"])
        self.holder_key = row["wrapped_key"], row["key_version"]

    def add(self, row: Row) -> None:
        """Add the memories that a statement read; raises ValueError if its columns do not fit together."""
        if row["memory_ids"]:
            self.blocks.append(read_block(row, self.dimensions))
        while len(self.blocks) > 1 and self._should_join():
            old = self.blocks[-2:]
            self.blocks[-2:] = [join_blocks(old)]
            for block in old:
                block.clear()

    def _should_join(self) -> bool:
        before, last = len(self.blocks[-2]), len(self.blocks[-1])
        return before + last <= _FEW_ROWS or before <= _TIMES_LARGER * last

    def remove(self, memory_ids: Sequence[str]) -> None:
        """Remove memories that ended, and overwrite their vectors and words."""
        for block in self.blocks:
            block.remove(memory_ids)

    def remove_ended(self, memory_ids: Sequence[str]) -> None:
        """Remove memories that ended, and the user's key; the part keeps its number and is brought up to date later."""
        self.remove(memory_ids)
        self.holder_key = (None, None)
        self.removals += 1

    def clear(self) -> None:
        """Overwrite all vectors and words before the part is dropped. A recall that uses it sees that by its number."""
        self.number = _DROPPED
        for block in self.blocks:
            block.clear()
        self.blocks.clear()
