"""The indexed memories of one user ('': those of the tenant itself), read from the database and kept up to date."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from muniment.database.storage import NamedStatement, Row
from muniment.model.capture import TENANT_HOLDER, holder_of
from muniment.recall.scope_block import Block, join_blocks, read_block


class VisibilityNumber(NamedTuple):
    """The tenant's visibility number: the last tick that may have changed what recalls see, and its random mark."""

    seq: int
    mark: str


_NONE = VisibilityNumber(-1, "")


class ConsentRecord(NamedTuple):
    """A record of the consent ledger, as far as it decides what is seen."""

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


# A part has at most this many blocks beside its first, and joins them all when those beside it are large.
_SMALL_BLOCKS = 4
_LARGE = 512


@dataclass
class Part:
    """The memories of one user by one embedder, at a visibility number, with what decides beside them."""

    user_id: str
    embedder: str | None
    dimensions: int
    number: VisibilityNumber
    pack: str | None
    blocks: list[Block] = field(default_factory=list[Block])
    consents: Mapping[str, Sequence[ConsentRecord]] = field(default_factory=dict[str, Sequence[ConsentRecord]])
    # Qualifiers that a run must have to see a memory, one entry for each contradiction that was resolved so.
    required: Sequence[tuple[str, Mapping[str, str]]] = ()
    conflicts: Sequence[Conflict] = ()
    # The key that the user's queries are sealed under, wrapped, with its version.
    holder_key: tuple[bytes | None, int | None] = (None, None)

    @property
    def memories(self) -> int:
        """How many rows it holds."""
        return sum(len(block) for block in self.blocks)

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return sum(block.size for block in self.blocks) + 1024

    def read_around(self, row: Row) -> None:
        """Take over what decides beside the memories, as the statement `around` sent it."""
        chains: dict[str, list[ConsentRecord]] = {}
        for root, consent_id, action, since, until, predicates, labels, supersedes in row["consents"] or ():
            began = datetime.fromisoformat(since)
            ends = datetime.fromisoformat(until) if until is not None else None
            record = ConsentRecord(consent_id, action, began, ends, predicates, labels, supersedes)
            chains.setdefault(root, []).append(record)
        self.consents = chains
        self.required = [(memory_id, said) for memory_id, said in row["required"] or ()]
        self.conflicts = [Conflict(*one) for one in row["open"] or ()]
        self.holder_key = row["wrapped_key"], row["key_version"]

    def add(self, row: Row) -> None:
        """Add the memories that a statement sent."""
        if row["memory_ids"]:
            self.blocks.append(read_block(row, self.dimensions))
        small = self.blocks[1:]
        if sum(len(block) for block in small) > max(_LARGE, len(self.blocks[0]) // 8 if self.blocks else 0):
            self._join(0)
        elif len(small) > _SMALL_BLOCKS:
            self._join(1)

    def _join(self, first: int) -> None:
        old = self.blocks[first:]
        self.blocks[first:] = [join_blocks(old)]
        for block in old:
            block.clear()

    def remove(self, memory_ids: Sequence[str]) -> None:
        """Take out memories that ended, and overwrite what was made of their content."""
        for block in self.blocks:
            block.remove(memory_ids)

    def remove_ended(self, memory_ids: Sequence[str]) -> None:
        """Take out memories that ended, and the user's key, without bringing the part up to date."""
        self.remove(memory_ids)
        self.holder_key = (None, None)

    def clear(self) -> None:
        """Overwrite all that was made of content, before the part is dropped; a recall that uses it notices."""
        self.number = _NONE
        for block in self.blocks:
            block.clear()
        self.blocks.clear()


def around_statement(user_id: str) -> NamedStatement:
    """Return the read of what decides beside that user's memories."""
    holder = holder_of(None, user_id) if user_id else TENANT_HOLDER
    users = ["", user_id] if user_id else [""]
    return "scopes.around", {"user_id": user_id, "users": users, "holder": holder}


def whole_statement(user_id: str, embedder: str | None, most: int) -> NamedStatement:
    """Return the read of all live memories of that user."""
    return "scopes.whole", {"user_id": user_id, "embedder": embedder, "most": most}


def since_statement(part: Part, most: int) -> NamedStatement:
    """Return the read of what was promoted since a part was read."""
    values: dict[str, Any] = {"user_id": part.user_id, "embedder": part.embedder, "most": most}
    return "scopes.since", values | {"after": part.number.seq}
