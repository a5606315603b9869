"""Reads the parts of the index, whole or as what changed since a visibility number, in few statements."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from muniment.database.storage import NamedStatement, Row
from muniment.model.capture import TENANT_HOLDER, holder_of
from muniment.recall.rules import MOST_SEEN
from muniment.recall.scope_part import VisibilityNumber

# If more memories than this were promoted since a part was read, it is read again as a whole.
_MOST_CHANGES = 2_000

# Tenant, user ('' for the tenant itself) and embedder.
PartKey = tuple[str, str, str | None]


class Gather(Protocol):
    """Runs several statements in one round trip and returns the rows of each: `Transaction.gather`."""

    async def __call__(self, *statements: NamedStatement) -> list[list[Row]]:
        """Run these statements."""
        ...


@dataclass(frozen=True)
class Changes:
    """What changed in a part since a number."""

    since: VisibilityNumber
    # Whether the database no longer has that number, or too much changed: the part has to be read as a whole.
    is_unusable: bool
    ended: Sequence[str]
    # None if nothing was promoted.
    promoted: Row | None
    # Consents, contradictions and qualifiers; None if they are as they were.
    related: Row | None
    holder_key: tuple[bytes | None, int | None]


def whole_statements(key: PartKey) -> list[NamedStatement]:
    """Return the two statements that read a part as a whole, if it has at most `MOST_SEEN` memories."""
    _, user_id, embedder = key
    live = {"user_id": user_id, "embedder": embedder, "most": MOST_SEEN}
    return [("scopes.live_memories", live), _related(user_id)]


def changes_statements(before: Mapping[PartKey, VisibilityNumber]) -> list[NamedStatement]:
    """Return the statements that read what changed since the numbers of parts: two for each number."""
    statements: list[NamedStatement] = []
    for after, keys in _by_number(before).items():
        users = [user_id for _, user_id, _ in keys]
        values = {"users": users, "holders": [_holder(user_id) for user_id in users], "after": after}
        statements.append(("scopes.changes", values | {"most": _MOST_CHANGES}))
        statements.append(_promoted(keys, after))
    return statements


async def complete_changes(
    gather: Gather, before: Mapping[PartKey, VisibilityNumber], replies: Sequence[list[Row]]
) -> dict[PartKey, Changes]:
    """Return what changed in each part, by the replies to `changes_statements`.

    What a part needs for itself is read here: its consents and contradictions if there are new ones, and its memories
    if some were promoted in several parts.
    """
    read = {
        after: (changes[0], promoted[0])
        for after, changes, promoted in zip(_by_number(before), replies[::2], replies[1::2], strict=True)
    }
    more: list[NamedStatement] = []
    for key, number in before.items():
        changes, _ = read[number.seq]
        if key[1] in changes["owners"] and len(changes["owners"]) > 1:
            more.append(_promoted([key], number.seq))
        if changes["related"]:
            more.append(_related(key[1]))
    own = iter(await gather(*more) if more else [])
    found: dict[PartKey, Changes] = {}
    for key, number in before.items():
        changes, promoted = read[number.seq]
        owners: Sequence[str] = changes["owners"]
        if key[1] in owners and len(owners) > 1:
            (promoted,) = next(own)
        found[key] = Changes(
            since=number,
            is_unusable=changes["mark"] != number.mark or promoted["size"] > _MOST_CHANGES,
            ended=changes["ended"],
            promoted=promoted if key[1] in owners else None,
            related=next(own)[0] if changes["related"] else None,
            holder_key=_key_of(changes, _holder(key[1])),
        )
    return found


def _by_number(before: Mapping[PartKey, VisibilityNumber]) -> dict[int, list[PartKey]]:
    """Return the parts by the number that they have, which usually is the same."""
    keys: dict[int, list[PartKey]] = {}
    for key, number in before.items():
        keys.setdefault(number.seq, []).append(key)
    return keys


def _promoted(keys: Sequence[PartKey], after: int) -> NamedStatement:
    """Return the statement that reads what was promoted in those parts, which have the same embedder."""
    users = [user_id for _, user_id, _ in keys]
    return "scopes.promoted_after", {"users": users, "embedder": keys[0][2], "after": after, "most": _MOST_CHANGES}


def _related(user_id: str) -> NamedStatement:
    """Return the statement that reads what else decides about that user's memories."""
    users = ["", user_id] if user_id else [""]
    return "scopes.related", {"user_id": user_id, "users": users, "holder": _holder(user_id)}


def _holder(user_id: str) -> str:
    """Return the holder of the key that a user's queries are sealed under; the tenant's for ''."""
    return holder_of(None, user_id) if user_id else TENANT_HOLDER


def _key_of(changes: Row, holder: str) -> tuple[bytes | None, int | None]:
    holders: Sequence[str] = changes["holders"] or ()
    if holder not in holders:
        return None, None
    place = holders.index(holder)
    return changes["wrapped_keys"][place], changes["key_versions"][place]
