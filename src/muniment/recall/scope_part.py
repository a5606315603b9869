"""A part of the index: the memories of one user, or with '' those of the tenant itself, kept up to date."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from muniment.database.storage import NamedStatement, Row
from muniment.model.capture import TENANT_HOLDER, holder_of
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


# A part has one large block and at most this many small ones for later memories. If the small ones together have more
# rows than `_MOST_IN_SMALL`, and than an eighth of the large one, all blocks are joined.
_SMALL_BLOCKS = 4
_MOST_IN_SMALL = 512


@dataclass
class Part:
    """The memories of one user with their vectors of one embedder, as they were at a visibility number.

    It also has what else decides about them: consents, contradictions and required qualifiers.
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
    # The key that the user's queries are sealed under, wrapped, with its version.
    holder_key: tuple[bytes | None, int | None] = (None, None)
    # How often memories were removed that its number still has.
    removals: int = 0

    @property
    def memories(self) -> int:
        """How many memories it holds, with those that were removed and are still in their block."""
        return sum(len(block) for block in self.blocks)

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return sum(block.size for block in self.blocks) + 1024

    def read_related(self, row: Row) -> None:
        """Replace consents, contradictions, qualifiers and the key by what `related_statement` read."""
        chains: dict[str, list[ConsentRecord]] = {}
        for root, consent_id, action, since, until, predicates, labels, supersedes in row["consents"] or ():
            valid_from = datetime.fromisoformat(since)
            valid_until = datetime.fromisoformat(until) if until is not None else None
            record = ConsentRecord(consent_id, action, valid_from, valid_until, predicates, labels, supersedes)
            chains.setdefault(root, []).append(record)
        self.consents = chains
        self.required = [(memory_id, qualifiers) for memory_id, qualifiers in row["required"] or ()]
        self.conflicts = [Conflict(*columns) for columns in row["open"] or ()]
        self.holder_key = row["wrapped_key"], row["key_version"]

    def add(self, row: Row) -> None:
        """Add the memories that a statement read; raises ValueError if its columns do not fit together."""
        if row["memory_ids"]:
            self.blocks.append(read_block(row, self.dimensions))
        small = self.blocks[1:]
        if sum(len(block) for block in small) > max(_MOST_IN_SMALL, len(self.blocks[0]) // 8 if self.blocks else 0):
            self._join(0)
        elif len(small) > _SMALL_BLOCKS:
            self._join(1)

    def _join(self, first: int) -> None:
        old = self.blocks[first:]
        self.blocks[first:] = [join_blocks(old)]
        for block in old:
            block.clear()

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


def related_statement(user_id: str) -> NamedStatement:
    """Return the statement that reads what else decides about that user's memories."""
    holder = holder_of(None, user_id) if user_id else TENANT_HOLDER
    users = ["", user_id] if user_id else [""]
    return "scopes.related", {"user_id": user_id, "users": users, "holder": holder}


def live_statement(user_id: str, embedder: str | None, most: int) -> NamedStatement:
    """Return the statement that reads all live memories of that user, if there are at most so many."""
    return "scopes.live_memories", {"user_id": user_id, "embedder": embedder, "most": most}


def promoted_statement(part: Part, most: int) -> NamedStatement:
    """Return the statement that reads what was promoted since a part was read, if at most so much was in the tenant."""
    values: dict[str, Any] = {"user_id": part.user_id, "embedder": part.embedder, "most": most}
    return "scopes.promoted_after", values | {"after": part.number.seq}
