"""What reviewers share: display names, saved views, the progress of a day, second looks, who looks at what."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from psycopg.types.json import Jsonb

from muniment.database.sealing import Vault
from muniment.database.storage import Transaction
from muniment.errors import NotFound, SealBroken
from muniment.model.proposal import Proposal
from muniment.model.review_views import GroupOfProposals, Presence, QueueGroup
from muniment.model.teamwork import DayProgress, PersonsDay, SavedView, ViewFilters

# Groups of the queue that are shown.
GROUPS_SHOWN = 100
# Views that one person may save.
MOST_VIEWS = 30
_PLACE = "subjects.display_name"


# ---- display names: a sealed attribute of the subject, erased with it ----


async def set_name(tx: Transaction, vault: Vault, holder: str, name: str | None) -> None:
    """Set or remove the display name of a subject, sealed under the subject's own key."""
    keys = await vault.keys(tx, [holder], make=True)
    sealed = keys[holder].seal(_PLACE, holder, name.encode()) if name is not None else None
    await tx.do("review.set_name", holder=holder, display_name=sealed)


async def names_of(tx: Transaction, vault: Vault, holders: Iterable[str]) -> dict[str, str]:
    """Return the display names of subjects, as far as they have one that opens."""
    wanted = sorted(set(holders))
    rows = await tx.rows("review.names", holders=wanted) if wanted else []
    found: dict[str, str] = {}
    for row in rows:
        try:
            key = await vault.open_key(tx, row["holder"], row["wrapped_key"], row["key_version"])
            found[row["holder"]] = key.open(_PLACE, row["holder"], row["display_name"]).decode()
        except SealBroken:
            continue
    return found


async def with_names(tx: Transaction, vault: Vault, proposals: Sequence[Proposal]) -> list[Proposal]:
    """Return proposals with the display names of whom they are about."""
    about = {one.proposal_id: one.candidate.entity or one.candidate.subject for one in proposals}
    names = await names_of(tx, vault, (name for name in about.values() if name is not None))
    if not names:
        return list(proposals)
    return [one.model_copy(update={"display_name": names.get(about[one.proposal_id] or "")}) for one in proposals]


# ---- saved views ----


async def views(tx: Transaction, principal: str) -> list[SavedView]:
    """Return the views that a person saved, by name."""
    rows = await tx.rows("review.views", principal=principal)
    return [SavedView(name=row["name"], filters=ViewFilters.model_validate(row["filters"])) for row in rows]


async def save_view(tx: Transaction, principal: str, name: str, filters: Mapping[str, Any]) -> None:
    """Save a view under a name; one of that name is replaced."""
    await tx.do("review.save_view", principal=principal, view=name, filters=Jsonb(dict(filters)))


async def remove_view(tx: Transaction, principal: str, name: str) -> None:
    """Remove a view; raises `NotFound`."""
    if not await tx.do("review.remove_view", principal=principal, view=name):
        raise NotFound("no such view", field="name")


# ---- the progress of a day, and second looks ----


async def progress(tx: Transaction, principal: str, since: datetime) -> DayProgress:
    """Return what people decided since then, and how often second looks agreed in the last 30 days."""
    rows = await tx.rows("review.decided_since", since=since)
    looks = await tx.row("review.second_looks", since=tx.now - timedelta(days=30))
    assert looks is not None, "a count has one row"
    by = {row["by"]: row["decided"] for row in rows}
    return DayProgress(
        since=since,
        decided=sum(by.values()),
        mine=by.get(principal, 0),
        by_person=tuple(PersonsDay(person=name, decided=count) for name, count in by.items()),
        second_looks=looks["looks"],
        agreed=looks["agreed"],
    )


async def to_look_at(tx: Transaction, principal: str, since: datetime, share: float) -> str | None:
    """Return a proposal that somebody else decided and nobody looked at again, of a share drawn by chance."""
    row = await tx.row("review.to_look_at", principal=principal, since=since, share=int(share * 1000))
    return row["proposal_id"] if row is not None else None


# ---- how many match, and groups ----


async def matching(tx: Transaction, filters: Mapping[str, Any]) -> int:
    """Return how many open proposals match the filters of `queue.list`."""
    values = {name: value for name, value in filters.items() if name not in ("closed", "order")}
    row = await tx.row("review.matching", **values, order=None)
    return row["count"] if row is not None else 0


async def groups(tx: Transaction, by: QueueGroup, filters: Mapping[str, Any]) -> list[GroupOfProposals]:
    """Return the largest groups of the open proposals that match the filters."""
    values = {name: value for name, value in filters.items() if name not in ("closed", "order")}
    rows = await tx.rows("review.groups", **values, group=by, count=GROUPS_SHOWN)
    return [GroupOfProposals.model_validate(dict(row)) for row in rows]


# ---- presence: who has a proposal open; no verdict and no event, nothing rests on it ----

# Somebody who did not report for so long is gone.
PRESENT_FOR = timedelta(seconds=30)


async def attend(tx: Transaction, proposal_id: str, principal: str) -> list[Presence]:
    """Note that somebody has a proposal open; returns who else does, in the order they came. Raises `NotFound`."""
    if await tx.row("review.is_there", proposal_id=proposal_id) is None:
        raise NotFound("no such proposal", field="proposal_id")
    values = {"proposal_id": proposal_id, "principal": principal, "gone": tx.now - PRESENT_FOR}
    tx.defer("review.attend", **values)
    return [Presence(**row) for row in await tx.rows("review.attending", **values)]


async def sweep_presence(tx: Transaction) -> int:
    """Delete the presence of those who are gone; returns how many."""
    return await tx.do("review.left", gone=tx.now - PRESENT_FOR)
