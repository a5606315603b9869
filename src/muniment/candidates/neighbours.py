"""Neighbours: the promoted memories that a candidate has to be compared with, by key and by text (REV-9).

One candidate is looked up by the database, which takes the vector index where that is the shorter way. A batch that
sees few enough memories is compared here with all of them at once.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import numpy as np

from muniment.candidates.comparison import EmbeddedCandidate, TextComparer, from_sql, to_sql
from muniment.candidates.rules import compared_as
from muniment.contradictions.rules import Neighbour
from muniment.database.rows import memory_of
from muniment.database.sealing import Vault
from muniment.database.storage import LATEST, Named, Row, Transaction
from muniment.errors import SealBroken
from muniment.language.embedding import BUILTIN_EMBEDDER, Vectors
from muniment.model.candidate import Candidate
from muniment.model.promoted import PromotedMemory
from muniment.pack import Pack
from muniment.recall.rules import sensitive_labels

# From so many candidates on, all that is in scope is fetched, if it is no more than that.
BATCH, FETCHED = 8, 5000
NEAREST = 50
# Searches that go out in one round trip.
AT_ONCE = 25
# Half precision moves a similarity by less than this; what is at the threshold is not lost to it.
ROUNDING = 5e-4


def asked(probe: EmbeddedCandidate, comparer: TextComparer, pack: Pack, count: int = NEAREST) -> list[Named]:
    """The statements that find the neighbours of one candidate."""
    found: list[Named] = []
    if probe.candidate.on_key:
        found.append(_on_keys([probe.candidate], pack))
    if (near := near_to(probe, comparer, pack, count)) is not None:
        found.append(near)
    return found


def near_to(
    probe: EmbeddedCandidate,
    comparer: TextComparer,
    pack: Pack,
    count: int,
    *,
    seq: int = LATEST,
    at: datetime | None = None,
) -> Named | None:
    """The statement that finds what is near to its text, now or at a past number and time; None where it has none."""
    if probe.vector is None:
        return None
    given: dict[str, Any] = {
        "vector": to_sql(probe.vector),
        "embedder": comparer.embedder.name,
        "users": _users([probe.candidate]),
        "on_key": probe.candidate.on_key,
        "about": compared_as(probe.candidate, comparer.by.user_namespace),
        "own": f"{comparer.by.user_namespace}:",
        "sensitive": sensitive_labels(pack),
        "reach": 1 - comparer.by.thresholds.similarity + ROUNDING,
        "count": count,
        "seq": seq,
        "at": at,
    }
    return ("neighbours.near" if comparer.embedder.name == BUILTIN_EMBEDDER else "neighbours.near_exactly", given)


async def neighbours(
    tx: Transaction, vault: Vault, probes: Sequence[EmbeddedCandidate], comparer: TextComparer, pack: Pack
) -> list[list[Neighbour]]:
    """Of each candidate all neighbours at or above the threshold, and all on its key, opened."""
    if len(probes) >= BATCH:
        found = await _together(tx, vault, probes, comparer, pack)
        if found is not None:
            return found
    answers: list[list[Neighbour]] = []
    for first in range(0, len(probes), AT_ONCE):
        part = probes[first : first + AT_ONCE]
        if len(part) > 1:
            await tx.prefetch(*(one for probe in part for one in asked(probe, comparer, pack)))
        answers += [await _of_one(tx, vault, probe, comparer, pack) for probe in part]
    return answers


async def _of_one(
    tx: Transaction, vault: Vault, probe: EmbeddedCandidate, comparer: TextComparer, pack: Pack
) -> list[Neighbour]:
    rows = [await tx.rows(name, **given) for name, given in asked(probe, comparer, pack)]
    count = NEAREST
    while rows and len(rows[-1]) == count:
        # All that were asked for are near enough: there may be more.
        count *= 4
        name, given = asked(probe, comparer, pack, count)[-1]
        rows[-1] = await tx.rows(name, **given)
    opened = await opened_of(tx, vault, [row for part in rows for row in part if row.get("comes", True)])
    similar = {row["memory_id"]: row["similarity"] for part in rows for row in part if "similarity" in row}
    hidden = {row["memory_id"] for part in rows for row in part if row["hidden"]}
    return [Neighbour(one, similar.get(name, 0.0), name in hidden) for name, one in opened.items()]


async def _together(
    tx: Transaction, vault: Vault, probes: Sequence[EmbeddedCandidate], comparer: TextComparer, pack: Pack
) -> list[list[Neighbour]] | None:
    """A whole batch, or None when it sees too many memories to fetch them all."""
    candidates = [probe.candidate for probe in probes]
    scope = (
        "neighbours.vectors",
        {
            "embedder": comparer.embedder.name,
            "users": _users(candidates),
            "count": FETCHED + 1,
        },
    )
    seen, on_keys = await tx.gather(scope, _on_keys([one for one in candidates if one.on_key], pack))
    if len(seen) > FETCHED:
        return None
    near = _near(probes, seen, comparer)
    wanted = sorted({memory_id for found in near for memory_id in found})
    labels = sensitive_labels(pack)
    rows = on_keys + (await tx.rows("neighbours.some", memory_ids=wanted, sensitive=labels) if wanted else [])
    hidden = {row["memory_id"] for row in rows if row["hidden"]}
    opened = await opened_of(tx, vault, rows)
    by_key: dict[tuple[str | None, str | None], list[str]] = {}
    for row in on_keys:
        by_key.setdefault((row["entity"], row["predicate"]), []).append(row["memory_id"])
    answers: list[list[Neighbour]] = []
    for one, similar in zip(candidates, near, strict=True):
        ids = {*similar, *(by_key.get((one.entity, one.predicate), ()) if one.on_key else ())}
        shown = sorted(ids & opened.keys())
        answers.append([Neighbour(opened[name], similar.get(name, 0.0), name in hidden) for name in shown])
    return answers


def _near(probes: Sequence[EmbeddedCandidate], seen: Sequence[Row], comparer: TextComparer) -> list[dict[str, float]]:
    """For each probe the ids near enough that its users see, with their similarity."""
    found: list[dict[str, float]] = [{} for _ in probes]
    placed = [(place, probe.vector) for place, probe in enumerate(probes) if probe.vector is not None]
    if not placed or not seen:
        return found
    vectors: Vectors = np.stack([from_sql(row["vector"]) for row in seen])
    similar = np.stack([vector for _, vector in placed]) @ vectors.T
    least = comparer.by.thresholds.similarity - ROUNDING
    for line, column in np.argwhere(similar >= least).tolist():
        place, memory = placed[line][0], seen[column]
        user = probes[place].candidate.scope.user_id
        if user is None or memory["user_id"] in ("", user):
            found[place][memory["memory_id"]] = float(similar[line, column])
    return found


def _on_keys(candidates: Sequence[Candidate], pack: Pack) -> Named:
    keys = sorted({(c.entity, c.predicate) for c in candidates if c.entity is not None and c.predicate is not None})
    return (
        "neighbours.on_keys",
        {
            "entities": [entity for entity, _ in keys],
            "predicates": [predicate for _, predicate in keys],
            "sensitive": sensitive_labels(pack),
        },
    )


def _users(candidates: Iterable[Candidate]) -> list[str] | None:
    """Whose memories some run could see beside one of them: a fact of the tenant's own meets everybody's."""
    users = {candidate.scope.user_id for candidate in candidates}
    return None if None in users else ["", *sorted(user for user in users if user is not None)]


async def opened_of(tx: Transaction, vault: Vault, rows: Sequence[Row]) -> dict[str, PromotedMemory]:
    """Those memories by id, each once; what does not open is left out."""
    memories: dict[str, PromotedMemory] = {}
    for row in rows:
        if row["memory_id"] in memories:
            continue
        try:
            key = await vault.open_key(tx, row["holder"], row["wrapped_key"], row["key_version"])
            content: Any = key.open("memory_bodies.content", row["memory_id"], row["content"])
        except SealBroken:
            continue  # Nobody can read it: it says nothing that could be contradicted or repeated.
        memories[row["memory_id"]] = memory_of(row, content)
    return memories
