"""Items of the queue: open proposals that say the same are locked, loaded and ended together (REV-11)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muniment.contradictions import store as contradictions
from muniment.database import locks
from muniment.database.sealing import Vault
from muniment.database.storage import Transaction
from muniment.errors import NotFound
from muniment.model.context import Principal
from muniment.model.fields import Source
from muniment.pack import Pack
from muniment.review.rules import may_approve
from muniment.review.store import Loaded, load_many, mark_duplicates

# Proposals that say the same as those acted on and are decided with them; what is beyond stays open.
MOST_MEMBERS = 1000


@dataclass(frozen=True)
class Item:
    """A proposal that was asked for, and the other open ones that say the same, in the order in which they came."""

    asked: Loaded
    others: tuple[Loaded, ...] = ()
    # The members that may be promoted, by id; None: all.
    only: frozenset[str] | None = None

    def asking(self, one: Loaded, only: frozenset[str]) -> "Item":
        """Return the item as if this member had been asked for, and only those could be promoted."""
        return Item(one, tuple(self.beside(one)), only)

    @property
    def members(self) -> list[Loaded]:
        """All of them, in the order in which they came."""
        return sorted((self.asked, *self.others), key=_place)

    def beside(self, one: Loaded) -> list[Loaded]:
        """Return the members without one of them."""
        return [other for other in self.members if other is not one]

    def to_promote(self, approver: Principal) -> list[Loaded]:
        """Return the members of which the first that can be is promoted: none that the approver said, wrote or edited.

        Nor any that is not what the approver read: facts of one value may be told in other words, be durable, or have a
        tier or priority that a reviewer changed. Those with another label come last. If none is left, it is the one
        that was asked for: its tier and label say whether it may be approved. One that was asked for and that a
        reviewer gave another tier or priority comes first.
        """
        found = [
            one
            for one in self.members
            if self._is_as_read(one)
            and (self.only is None or one.proposal.proposal_id in self.only)
            and may_approve(approver, one.proposal.candidate, one.editors, strict=True).passed
        ]
        if any(one is self.asked and _is_overridden(one) for one in found):
            return [self.asked, *(one for one in found if one is not self.asked)]
        label = self.asked.proposal.candidate.classification
        found.sort(key=lambda one: one.proposal.candidate.classification != label)
        return found or [self.asked]

    def _is_as_read(self, one: Loaded) -> bool:
        """Whether who read the one that was asked for knows what is promoted if this member is."""
        if one is self.asked:
            return True
        here, asked = one.proposal, self.asked.proposal
        durable = here.tier_target == "durable" and asked.tier_target != "durable"
        return here.candidate.text == asked.candidate.text and not durable and not _is_overridden(one)


def _is_overridden(one: Loaded) -> bool:
    return any(verdict.action == "override" for verdict in one.proposal.verdicts)


def _place(one: Loaded) -> tuple[int, str]:
    return one.proposal.seq, one.proposal.proposal_id


async def lock_items(tx: Transaction, proposal_ids: Sequence[str]) -> list[str]:
    """Lock proposals with the open ones that say the same, as `review.store.lock` does; returns all their ids.

    What enters the queue after this statement began is not among them.
    """
    locks.create(tx, [locks.ERASURE])
    _, rows = await tx.gather(locks.BLOCK_ERASURES, ("review.lock_items", _wanted(proposal_ids)))
    return [row["proposal_id"] for row in rows]


async def read_items(tx: Transaction, vault: Vault, proposal_ids: Sequence[str]) -> list[Item]:
    """Read proposals with the open ones that say the same, without locking them; what does not open is left out."""
    rows = await tx.rows("review.items", **_wanted(proposal_ids))
    ids = [row["proposal_id"] for row in rows]
    if not may_be_cut(proposal_ids, ids):
        return items_of(proposal_ids, await load_many(tx, vault, ids, skip_broken=True))
    items: list[Item] = []
    seen: set[str] = set()
    for proposal_id in proposal_ids:
        if proposal_id not in seen:
            rows = await tx.rows("review.items", **_wanted([proposal_id]))
            loaded = await load_many(tx, vault, [row["proposal_id"] for row in rows], skip_broken=True)
            items += items_of([proposal_id], loaded)
            seen |= {one.proposal.proposal_id for one in loaded}
    return items


def may_be_cut(proposal_ids: Sequence[str], found: Sequence[str]) -> bool:
    """Whether the limit that several proposals share may have cut off members; for a single one it is meant to."""
    return len(proposal_ids) > 1 and len(found) >= _wanted(proposal_ids)["count"]


def _wanted(proposal_ids: Sequence[str]) -> dict[str, Any]:
    return {"proposal_ids": sorted(proposal_ids), "count": MOST_MEMBERS + len(proposal_ids)}


async def load_item(tx: Transaction, vault: Vault, proposal_id: str) -> Item:
    """Lock a proposal with the open ones that say the same, and load them; raises `NotFound`."""
    ids = await lock_items(tx, [proposal_id])
    loaded = await load_many(tx, vault, ids, skip_broken=len(ids) > 1)
    if all(one.proposal.proposal_id != proposal_id for one in loaded):
        # What was asked for raises if it does not open; of the others it is left where it is.
        loaded += await load_many(tx, vault, [proposal_id])
    items = items_of([proposal_id], loaded)
    if not items:
        raise NotFound("no such proposal", field="proposal_id")
    return items[0]


def items_of(asked: Sequence[str], loaded: Sequence[Loaded]) -> list[Item]:
    """Return the items of the proposals that were asked for, in their order, each once, from all that were loaded."""
    by_id = {one.proposal.proposal_id: one for one in loaded}
    same: dict[bytes, list[Loaded]] = {}
    for one in sorted(loaded, key=_place):
        if one.row["item"] is not None and one.is_open:
            same.setdefault(one.row["item"], []).append(one)
    items: list[Item] = []
    seen: set[str] = set()
    for one in (by_id[proposal_id] for proposal_id in asked if proposal_id in by_id):
        if one.proposal.proposal_id in seen:
            continue
        members = same.get(one.row["item"], []) if one.is_open and one.row["item"] is not None else []
        seen |= {one.proposal.proposal_id, *(member.proposal.proposal_id for member in members)}
        items.append(Item(one, tuple(member for member in members if member is not one)))
    return items


async def end_as_duplicates(
    tx: Transaction, repeats: Mapping[str, Sequence[Loaded]], by: tuple[str, Source], pack: Pack
) -> None:
    """End the other members of approved items: `repeats` has, by memory, the proposals that become its duplicates."""
    ended: list[str] = []
    for memory_id, members in repeats.items():
        if members:
            found = {one.proposal.proposal_id: one.proposal.candidate for one in members}
            await mark_duplicates(tx, found, pack.ref, memory_id, by=by)
            ended += found
    if ended:
        await contradictions.end(tx, by[0], "duplicate", proposal_ids=ended)
