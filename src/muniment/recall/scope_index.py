"""The index in this process's memory that recalls are ranked from: the parts that it holds (ADR 55).

It decides nothing. A part is used only while the tenant's visibility number is the one it was read at: the statement
that records the answer compares the number and checks every chosen memory again, in one snapshot.
"""

from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from time import monotonic
from typing import Any

from muniment.database.storage import Row
from muniment.recall.rules import MOST_SEEN
from muniment.recall.scope_changes import (
    Changes,
    Gather,
    PartKey,
    changes_statements,
    complete_changes,
    whole_statements,
)
from muniment.recall.scope_part import Part, VisibilityNumber

# One tenant may hold the limit divided by this.
_TENANT_SHARE = 4
# A part that was not used for so long is dropped.
IDLE_SECONDS = 900.0
# Scopes that are remembered as too large.
_MOST_NOTED = 10_000


@dataclass
class Counts:
    """How many recalls were ranked from the index, and how often its parts were read or were wrong."""

    used: int = 0
    # Parts that were read as a whole, and those that were brought up to date.
    built: int = 0
    refreshed: int = 0
    # Answers that the database refused to record although the visibility number was that of the index.
    mismatched: int = 0


@dataclass
class Lease:
    """The permission to hold parts of a tenant until a time.

    INVARIANT: the confirmed number in its database row is never ahead of `number`, and the row lasts longer than
    `until`.
    """

    # Memories that ended up to this number have been dropped.
    number: VisibilityNumber
    # By the clock `monotonic`.
    until: float
    # Whether nothing was held when it was last renewed. Such a lease is kept once more: a recall may be reading the
    # first part.
    was_empty: bool = False


class ScopeTooLarge(Exception):
    """More memories are visible than are ranked exactly; the statements have to search them."""


class IndexOutdated(Exception):
    """The index that a recall was ranked from is not up to date, or finds too much; nothing was recorded."""


@dataclass(frozen=True)
class Scope:
    """The parts of the index that one run needs, the tenant's and its user's, all at one visibility number."""

    parts: Sequence[Part]
    number: VisibilityNumber
    pack: str | None
    # `Part.removals` of each part when the scope was found.
    removals: Sequence[int]

    @property
    def is_current(self) -> bool:
        """Whether its parts are unchanged: none was dropped, brought to another number, or lost a memory since."""
        removals = [part.removals for part in self.parts]
        return removals == self.removals and all(part.number == self.number for part in self.parts)

    @property
    def holder_key(self) -> tuple[bytes | None, int | None]:
        """The wrapped key that the run's queries are sealed under, and its version; both None if there is none."""
        return self.parts[-1].holder_key

    def checks(self, record: Mapping[str, Any], filters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values by which the database checks an answer, and records the recall."""
        values = {**filters, **record, "recorded_embedder": record["embedder"]}
        chosen = set(record["result_ids"])
        contradictions = {
            conflict.contradiction_id
            for part in self.parts
            for conflict in part.conflicts
            if conflict.existing in chosen or conflict.incoming in chosen
        }
        checks = {"visible_seq": self.number.seq, "mark": self.number.mark, "contradictions": sorted(contradictions)}
        return values | checks


@dataclass
class ScopeIndexes:
    """The parts that this process holds, the least recently used first."""

    # In bytes; 0: nothing is held. 100,000 memories with vectors of the built-in embedder take about 105 MB.
    limit: int = 0
    counts: Counts = field(default_factory=Counts)
    # Without a lease, or with one that ran out, nothing of a tenant is held (index_guard.py).
    leases: dict[str, Lease] = field(default_factory=dict[str, Lease])
    _parts: OrderedDict[PartKey, Part] = field(default_factory=OrderedDict[PartKey, Part])
    # The same by tenant, so that the work for one does not grow with the others.
    _by_tenant: dict[str, dict[PartKey, Part]] = field(default_factory=dict[str, dict[PartKey, Part]])
    _used_at: dict[PartKey, float] = field(default_factory=dict[PartKey, float])
    # The bytes of each part, of all parts of each tenant, and of all.
    _sizes: dict[PartKey, int] = field(default_factory=dict[PartKey, int])
    _total: int = 0
    _of_tenant: Counter[str] = field(default_factory=Counter[str])
    # Scopes that are too large to be held: when that was found, the earliest first.
    _too_large: OrderedDict[PartKey, float] = field(default_factory=OrderedDict[PartKey, float])

    def find(self, tenant_id: str, users: Sequence[str], embedder: str | None) -> Scope | None:
        """Return the scope of those users, if all its parts are held at one number."""
        if self.lease_of(tenant_id) is None or self._is_too_large((tenant_id, users[-1], embedder)):
            return None
        parts: list[Part] = []
        for user_id in users:
            key = tenant_id, user_id, embedder
            part = self._parts.get(key)
            if part is None:
                return None
            self._parts.move_to_end(key)
            self._used_at[key] = monotonic()
            parts.append(part)
        first = parts[0]
        if any(part.number != first.number for part in parts):
            return None
        return Scope(parts, first.number, first.pack, [part.removals for part in parts])

    async def read(
        self, gather: Gather, tenant_id: str, users: Sequence[str], embedder: str | None, dimensions: int
    ) -> Scope | None:
        """Read the scope of those users, or bring it up to date, by statements that `gather` runs.

        Returns None if the tenant has no visibility number, if the scope is too large, if there is no lease for what
        was read, or if another recall changed the parts meanwhile: then the statements answer.

        INVARIANT: all parts are read in the one snapshot of a recall's transaction.
        """
        keys = [(tenant_id, user_id, embedder) for user_id in users]
        if any(self._is_too_large(key) for key in keys):
            return None
        held = {key: part for key in keys if (part := self._parts.get(key)) is not None}
        before = {key: part.number for key, part in held.items()}
        missing = [key for key in keys if key not in held]
        latest, *replies = await gather(
            ("scopes.number", {}),
            *chain.from_iterable(whole_statements(key) for key in missing),
            *changes_statements(before),
        )
        if not latest:
            return None
        number, pack = VisibilityNumber(latest[0]["visible_seq"], latest[0]["mark"]), latest[0]["pack"]
        whole = {key: replies[2 * place : 2 * place + 2] for place, key in enumerate(missing)}
        changes = await complete_changes(gather, before, replies[2 * len(missing) :])
        if not self._may_hold(tenant_id, number):
            return None
        if any(part.number not in (before[key], number) for key, part in held.items()):
            return None  # Another recall has brought it to another number meanwhile.
        parts: list[Part] = []
        removals: list[int] = []
        for key in keys:
            part = (
                self._refresh(key, held[key], number, latest[0]["rebuilt_seq"], changes[key]) if key in held else None
            )
            if part is None:
                part = await self._build(gather, key, dimensions, number, whole.get(key))
            if part is None:
                return None
            part.pack = pack
            parts.append(part)
            removals.append(part.removals)
        if any(part.number != number for part in parts):
            return None  # Another recall did so while a part was being read.
        self._make_room(keys)
        return Scope(parts, number, pack, removals)

    def _refresh(
        self, key: PartKey, part: Part, number: VisibilityNumber, rebuilt_seq: int | None, changes: Changes
    ) -> Part | None:
        """Apply what changed since a part was read; return None if it has to be read as a whole."""
        if self._parts.get(key) is not part:
            return None
        if changes.is_unusable or (rebuilt_seq or 0) > changes.since.seq:
            self.drop(key)
            return None
        if part.number != number:
            part.remove(changes.ended)
            if changes.promoted is not None:
                part.add(changes.promoted)
            if changes.related is not None:
                part.read_related(changes.related)
            part.number = number
            self.counts.refreshed += 1
        # Also under the same number: the user's key may have been made or wrapped anew.
        part.holder_key = changes.holder_key
        return part

    async def _build(
        self,
        gather: Gather,
        key: PartKey,
        dimensions: int,
        number: VisibilityNumber,
        rows: Sequence[list[Row]] | None,
    ) -> Part | None:
        """Read a part as a whole, unless its `rows` were read already, and hold it; None if it is too large."""
        if rows is None:
            rows = await gather(*whole_statements(key))
            if not self._may_hold(key[0], number):
                return None
        (memories,), (related,) = rows
        if memories["size"] > MOST_SEEN:
            self._note_too_large(key)
            return None
        _, user_id, embedder = key
        part = Part(user_id, embedder, dimensions, number, None)
        part.add(memories)
        part.read_related(related)
        self.counts.built += 1
        newest = self._parts.get(key)
        if newest is None or newest.number.seq <= number.seq:
            self.drop(key)
            self._parts[key] = part
            self._by_tenant.setdefault(key[0], {})[key] = part
            self._used_at[key] = monotonic()
        return part

    def mark_too_large(self, tenant_id: str, scope: Scope) -> None:
        """Leave a scope to the statements for a while: its parts together show more than is ranked exactly."""
        user_part = scope.parts[-1]
        self._note_too_large((tenant_id, user_part.user_id, user_part.embedder))

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return self._total

    def of_tenant(self, tenant_id: str) -> Mapping[PartKey, Part]:
        """Return the parts of a tenant."""
        return dict(self._by_tenant.get(tenant_id, {}))

    def forget(self, tenant_id: str) -> None:
        """Drop everything of a tenant."""
        for key in self.of_tenant(tenant_id):
            self.drop(key)

    def clear(self) -> None:
        """Drop everything, and all leases."""
        self.leases.clear()
        for key in list(self._parts):
            self.drop(key)

    def drop_unused(self) -> None:
        """Drop the parts that were not used for long, and those of tenants whose lease ran out."""
        now = monotonic()
        for key in [key for key, used_at in self._used_at.items() if now - used_at > IDLE_SECONDS]:
            self.drop(key)
        for tenant_id in list(self.leases):
            self.lease_of(tenant_id)

    def lease_of(self, tenant_id: str) -> Lease | None:
        """Return the lease on a tenant; if it ran out, everything of the tenant is dropped."""
        lease = self.leases.get(tenant_id)
        if lease is not None and monotonic() >= lease.until:
            self.leases.pop(tenant_id)
            self.forget(tenant_id)
            return None
        return lease

    def _may_hold(self, tenant_id: str, number: VisibilityNumber) -> bool:
        """Whether a part read at that number may be held: not if memories that ended later were already dropped."""
        lease = self.lease_of(tenant_id)
        return lease is not None and number.seq >= lease.number.seq

    def _make_room(self, used: Sequence[PartKey]) -> None:
        """Note the sizes of the parts that were just read, and drop the least recently used while over the limits."""
        for key in used:
            self._note_size(key, self._parts[key].size if key in self._parts else 0)
        tenant_id = used[0][0]
        if not self._is_over(tenant_id):
            return
        for key in self._unused_first(tenant_id):
            if key not in used:
                self.drop(key)
            if not self._is_over(tenant_id):
                break
        else:
            # A scope that alone is over the limit is used for this recall, and not read again soon.
            for key in used:
                self._take_out(key)
                self._note_too_large(key)

    def _unused_first(self, tenant_id: str) -> list[PartKey]:
        """Return the parts in the order in which they are dropped: the tenant's own if only its share is full."""
        if self.size > self.limit:
            return list(self._parts)
        return sorted(self.of_tenant(tenant_id), key=lambda key: self._used_at[key])

    def _is_over(self, tenant_id: str) -> bool:
        return self.size > self.limit or self._of_tenant[tenant_id] > self.limit // _TENANT_SHARE

    def _note_size(self, key: PartKey, size: int) -> None:
        more = size - self._sizes.pop(key, 0)
        self._total += more
        self._of_tenant[key[0]] += more
        if size:
            self._sizes[key] = size
        if not self._of_tenant[key[0]]:
            del self._of_tenant[key[0]]

    def _is_too_large(self, key: PartKey) -> bool:
        return key in self._too_large and monotonic() - self._too_large[key] < IDLE_SECONDS

    def _note_too_large(self, key: PartKey) -> None:
        self._too_large[key] = monotonic()
        if len(self._too_large) > _MOST_NOTED:
            self._too_large.popitem(last=False)

    def drop(self, key: PartKey) -> None:
        """Drop one part, and overwrite what it held."""
        part = self._take_out(key)
        if part is not None:
            part.clear()

    def _take_out(self, key: PartKey) -> Part | None:
        of_tenant = self._by_tenant.get(key[0], {})
        of_tenant.pop(key, None)
        if not of_tenant:
            self._by_tenant.pop(key[0], None)
        self._used_at.pop(key, None)
        self._note_size(key, 0)
        return self._parts.pop(key, None)
