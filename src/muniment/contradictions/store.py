"""What a candidate is compared with, and the contradictions that this finds.

The neighbours of a candidate are the promoted memories on its key or near to its text (REV-9). One candidate is
searched for by the database, with the vector index if that is faster; a batch that sees few enough memories is compared
here with all of them at once. A contradiction is opened when it is found and ended once, with how long that took
(CTR-3, CTR-5).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from psycopg.types.json import Jsonb

from muniment.candidates.rules import compared_as
from muniment.contradictions.model_judge import ModelJudge
from muniment.contradictions.rules import Comparison, Contradicted, JudgeThresholds, Neighbour
from muniment.database.rows import memory_of, open_memory
from muniment.database.sealing import Vault
from muniment.database.storage import LATEST, NamedStatement, Row, Transaction
from muniment.database.vectors import Vector, inner_products, many_from_sql, to_sql
from muniment.errors import Conflict, NotFound
from muniment.language.embedding import Embedder, Vectors, embedded
from muniment.language.instructions import visible_text
from muniment.language.readers import RULES, Readers
from muniment.language.readers.pairs import CONTRADICTS, SAME
from muniment.language.readers.readers import PAIRS
from muniment.model.candidate import Candidate
from muniment.model.contradiction import Contradiction, Outcome
from muniment.model.ids import make_ids
from muniment.model.promoted import PromotedMemory
from muniment.pack import Pack

# ---- texts: the embedder and thresholds in use, and candidates with the vectors of their texts ----


@dataclass(frozen=True)
class EmbeddedCandidate:
    """A candidate with the vector of its text, by the embedder in use and by the next one.

    A vector is None for an evidence link and for text without a word that the embedder knows.
    """

    candidate: Candidate
    vector: Vector | None
    next_vector: Vector | None = None


@dataclass(frozen=True)
class TextComparer:
    """An embedder with the pack's thresholds for it, and the embedder that will replace it, if any (JOB-11)."""

    embedder: Embedder
    by: Comparison
    next_embedder: Embedder | None = None
    # Whether the tenant's vectors are searched by an index.
    by_index: bool = False
    # The tenant's language version, and its trained readers; None for the rules alone (CAN-15).
    language: str = RULES
    readers: Readers | None = None
    # The similarity down to which the judge reads neighbours.
    down_to: float = 1.0
    # The language model that judges pairs instead, where the pack says so.
    model: ModelJudge | None = None

    async def embed(self, candidates: Sequence[Candidate]) -> list[EmbeddedCandidate]:
        """Embed the texts of candidates, as a reader sees them."""
        texts = [visible_text(candidate.text) for candidate in candidates]
        vectors = await embedded(self.embedder, texts)
        nexts = await embedded(self.next_embedder, texts) if self.next_embedder is not None else [None] * len(texts)
        return [
            EmbeddedCandidate(one, _vector(one, vector), _vector(one, other))
            for one, vector, other in zip(candidates, vectors, nexts, strict=True)
        ]

    @property
    def reach(self) -> float:
        """The similarity down to which neighbours are looked for: the threshold, or what the judge reads."""
        least = self.by.thresholds.similarity
        return min(least, self.down_to) if self.has_judge else least

    @property
    def has_judge(self) -> bool:
        """Whether a judge reads pairs after the rules."""
        return self.readers is not None or self.model is not None


def judge_thresholds(readers: Readers, pack: Pack) -> JudgeThresholds:
    """Return the scores from which the judge's answers count: the pack's, else those measured with it."""
    file, policy = readers.file(PAIRS), pack.memory_layer.contradiction.judge
    contradicts = policy.contradicts if policy.contradicts is not None else file.thresholds[CONTRADICTS]
    same = policy.same if policy.same is not None else file.thresholds[SAME]
    return JudgeThresholds(contradicts, same, file.margin)


def _vector(candidate: Candidate, vector: Vector | None) -> Vector | None:
    empty = vector is None or candidate.write_class == "evidence_link" or not vector.any()
    return None if empty else vector


# ---- neighbours ----

# A batch of at least `BATCH` candidates reads all vectors in scope, if there are at most `FETCHED`.
BATCH, FETCHED = 8, 5000
NEAREST = 50
# Neighbours below the threshold that are opened for the judge of pairs; some are left out before it reads them.
MOST_BELOW = 16
# Searches that go out in one round trip.
AT_ONCE = 25
# Half precision changes a similarity by less than this: what is at the threshold is not lost to it.
ROUNDING = 5e-4


def neighbour_queries(
    one: EmbeddedCandidate, comparer: TextComparer, pack: Pack, count: int = NEAREST
) -> list[NamedStatement]:
    """Return the statements that find the neighbours of one candidate."""
    on_key = [on_keys_of([one.candidate], pack)] if one.candidate.on_key else []
    near = near_to(one, comparer, pack, count)
    return [*on_key, near] if near is not None else on_key


def near_to(
    one: EmbeddedCandidate,
    comparer: TextComparer,
    pack: Pack,
    count: int,
    *,
    seq: int = LATEST,
    at: datetime | None = None,
    least: float | None = None,
) -> NamedStatement | None:
    """Return the statement that finds memories near a text, now or at a past sequence and time; None without text.

    `least` is the similarity down to which they are found, by default as far as texts are compared.
    """
    if one.vector is None:
        return None
    values: dict[str, Any] = {
        "vector": to_sql(one.vector),
        "embedder": comparer.embedder.name,
        "users": users_beside([one.candidate]),
        "on_key": one.candidate.on_key,
        "about": about_spelled(one.candidate, comparer.by),
        "own": comparer.by.identity.users_spelled,
        "sensitive": pack.sensitive_labels,
        "reach": 1 - (comparer.reach if least is None else least) + ROUNDING,
        "count": count,
        "seq": seq,
        "at": at,
    }
    return ("neighbours.near" if comparer.by_index else "neighbours.near_exactly", values)


def about_spelled(candidate: Candidate, by: Comparison) -> list[str] | None:
    """Return whom a text is about under every name of theirs; None if it may be about anybody."""
    about = compared_as(candidate, by.identity)
    return by.identity.spellings(about) if about is not None else None


def neighbours_queries(
    embedded: Sequence[EmbeddedCandidate], comparer: TextComparer, pack: Pack
) -> list[NamedStatement]:
    """Return the statements that `neighbours` sends first, so that they can be prefetched with others."""
    if len(embedded) < BATCH:
        return [query for one in embedded for query in neighbour_queries(one, comparer, pack)]
    candidates = [one.candidate for one in embedded]
    scope = {"embedder": comparer.embedder.name, "users": users_beside(candidates), "count": FETCHED + 1}
    keyed = [one for one in candidates if one.on_key]
    return [("neighbours.vectors", scope), *([on_keys_of(keyed, pack)] if keyed else [])]


async def neighbours(
    tx: Transaction, vault: Vault, embedded: Sequence[EmbeddedCandidate], comparer: TextComparer, pack: Pack
) -> list[list[Neighbour]]:
    """Find each candidate's neighbours, opened: all at or above the threshold, and all on its key."""
    if len(embedded) >= BATCH:
        found = await _together(tx, vault, embedded, comparer, pack)
        if found is not None:
            return found
    answers: list[list[Neighbour]] = []
    for first in range(0, len(embedded), AT_ONCE):
        part = embedded[first : first + AT_ONCE]
        if len(part) > 1:
            await tx.prefetch(*(query for one in part for query in neighbour_queries(one, comparer, pack)))
        answers += [await _of_one(tx, vault, one, comparer, pack) for one in part]
    return answers


async def _of_one(
    tx: Transaction, vault: Vault, one: EmbeddedCandidate, comparer: TextComparer, pack: Pack
) -> list[Neighbour]:
    rows = [await tx.rows(name, **values) for name, values in neighbour_queries(one, comparer, pack)]
    count = NEAREST
    least = comparer.by.thresholds.similarity - ROUNDING
    while rows and len(rows[-1]) == count and rows[-1][-1].get("similarity", 1.0) >= least:
        # All of them are near enough: there may be more.
        count *= 4
        name, values = neighbour_queries(one, comparer, pack, count)[-1]
        rows[-1] = await tx.rows(name, **values)
    opened = await open_memories(tx, vault, [row for part in rows for row in part if row.get("comes", True)])
    similar = {row["memory_id"]: row["similarity"] for part in rows for row in part if "similarity" in row}
    hidden = {row["memory_id"] for part in rows for row in part if row["hidden"]}
    return [Neighbour(memory, similar.get(name, 0.0), name in hidden) for name, memory in opened.items()]


async def _together(
    tx: Transaction, vault: Vault, embedded: Sequence[EmbeddedCandidate], comparer: TextComparer, pack: Pack
) -> list[list[Neighbour]] | None:
    """Find the neighbours of a whole batch; None when it sees too many memories to fetch them all."""
    candidates = [one.candidate for one in embedded]
    queries = neighbours_queries(embedded, comparer, pack)
    await tx.prefetch(*queries)
    seen, *keyed = [await tx.rows(name, **values) for name, values in queries]
    on_keys = keyed[0] if keyed else []
    if len(seen) > FETCHED:
        return None
    near = near_among(embedded, seen, comparer)
    wanted = sorted({memory_id for found in near for memory_id in found})
    labels = pack.sensitive_labels
    rows = on_keys + (await tx.rows("neighbours.some", memory_ids=wanted, sensitive=labels) if wanted else [])
    hidden = {row["memory_id"] for row in rows if row["hidden"]}
    opened = await open_memories(tx, vault, rows)
    by_key: dict[tuple[str | None, str | None], list[str]] = {}
    for row in on_keys:
        by_key.setdefault(key_of(row, pack), []).append(row["memory_id"])
    answers: list[list[Neighbour]] = []
    for one, similar in zip(candidates, near, strict=True):
        ids = {*similar, *(by_key.get((one.entity, one.predicate), ()) if one.on_key else ())}
        shown = sorted(ids & opened.keys())
        answers.append([Neighbour(opened[name], similar.get(name, 0.0), name in hidden) for name in shown])
    return answers


def near_among(
    embedded: Sequence[EmbeddedCandidate],
    seen: Sequence[Row],
    comparer: TextComparer,
    counts: Callable[[int, Row], bool] = lambda _index, _row: True,
) -> list[dict[str, float]]:
    """Return for each candidate the ids that are near enough and visible to its user, with their similarity.

    `counts` may leave out further memories, by the candidate's index and the memory's row.
    """
    found: list[dict[str, float]] = [{} for _ in embedded]
    embedded_at = [(index, one.vector) for index, one in enumerate(embedded) if one.vector is not None]
    if not embedded_at or not seen:
        return found
    vectors: Vectors = many_from_sql([row["vector"] for row in seen])
    similar = inner_products(np.stack([vector for _, vector in embedded_at]), vectors)
    least, down_to = comparer.by.thresholds.similarity - ROUNDING, comparer.reach - ROUNDING
    for line, (index, _) in enumerate(embedded_at):
        user = embedded[index].candidate.scope.user_id
        columns = np.flatnonzero(similar[line] >= down_to)
        below = 0
        # The nearest first: below the threshold only so many are read by the judge.
        nearest: list[int] = columns[np.argsort(-similar[line, columns], kind="stable")].tolist()
        for column in nearest:
            memory, nearness = seen[column], float(similar[line, column])
            if (user is not None and memory["user_id"] not in ("", user)) or not counts(index, memory):
                continue
            below += nearness < least
            if below > MOST_BELOW:
                break
            found[index][memory["memory_id"]] = nearness
    return found


def on_keys_of(candidates: Sequence[Candidate], pack: Pack) -> NamedStatement:
    """Return the statement that finds the memories on the keys of candidates, also under other names of theirs.

    Memories of before an alias or a new name of a predicate keep their names until a backfill.
    """
    keys = {(c.entity, c.predicate) for c in candidates if c.entity is not None and c.predicate is not None}
    spelled = sorted(
        {
            (entity, predicate)
            for one, name in keys
            for entity in pack.identity.spellings(one)
            for predicate in pack.ontology.names_of(name)
        }
    )
    columns = {"entities": [entity for entity, _ in spelled], "predicates": [predicate for _, predicate in spelled]}
    return ("neighbours.on_keys", {**columns, "sensitive": pack.sensitive_labels})


def key_of(row: Row, pack: Pack) -> tuple[str, str]:
    """Return the key of a memory under the names in use now."""
    return pack.identity.resolve(row["entity"]), pack.ontology.current_name(row["predicate"])


def users_beside(candidates: Iterable[Candidate]) -> list[str] | None:
    """Return the users whose memories some run could see together with one of the candidates; None means all users."""
    users = {candidate.scope.user_id for candidate in candidates}
    return None if None in users else ["", *sorted(user for user in users if user is not None)]


async def open_memories(tx: Transaction, vault: Vault, rows: Sequence[Row]) -> dict[str, PromotedMemory]:
    """Open memories, by id; one that does not open is left out: nobody can read it, so nothing contradicts it."""
    memories: dict[str, PromotedMemory] = {}
    for row in rows:
        if row["memory_id"] not in memories and (content := await open_memory(tx, vault, row)) is not None:
            memories[row["memory_id"]] = memory_of(row, content)
    return memories


# ---- contradictions ----


async def open_(
    tx: Transaction, by: str, proposal_id: str, candidate: Candidate, found: Sequence[Contradicted]
) -> None:
    """Open a contradiction for each memory that the proposal contradicts."""
    if not found:
        return
    tick = await tx.tick()
    ids = make_ids("ctr", len(found), tick.at)
    rows = [(one_id, one.memory.memory_id, one.reason) for one_id, one in zip(ids, found, strict=True)]
    shared: dict[str, Any] = {"entity": candidate.entity, "predicate": candidate.predicate, "proposal_id": proposal_id}
    tx.defer_many("contradictions.insert", rows, seq=tick.seq, at=tick.at, **shared)
    for contradiction_id, existing, reason in rows:
        what = {"contradiction_id": contradiction_id, "existing": existing, "proposal_id": proposal_id}
        tx.emit("memory.contradiction", by, **what, reason=reason)


async def open_new(
    tx: Transaction, by: str, proposal_id: str, candidate: Candidate, found: Sequence[Contradicted]
) -> None:
    """Open those contradictions of a proposal that have not been opened yet."""
    if found:
        rows = await tx.rows("contradictions.of_proposal", proposal_id=proposal_id)
        opened = {row["existing"] for row in rows}
        await open_(tx, by, proposal_id, candidate, [one for one in found if one.memory.memory_id not in opened])


async def end(
    tx: Transaction,
    by: str,
    outcome: Outcome,
    *,
    memory_ids: Sequence[str] = (),
    proposal_ids: Sequence[str] = (),
) -> None:
    """End the contradictions that have one of these memories or proposals as a side."""
    await tx.tick()  # INVARIANT: they are read once nobody else can end them.
    rows = await tx.rows("contradictions.touching", memory_ids=list(memory_ids), proposal_ids=list(proposal_ids))
    await _end(tx, by, outcome, rows)


async def coexist(tx: Transaction, by: str, contradiction_id: str, qualifiers: dict[str, dict[str, str]]) -> None:
    """End a contradiction so that both sides stay, each seen only by runs with its `qualifiers`, by memory.

    Raises `Conflict` when it was ended before.
    """
    tick = await tx.tick()
    found = await one(tx, contradiction_id)
    if not found.open:
        raise Conflict("was settled before", field="contradiction_id")
    await _end(tx, by, "coexist", [found.model_dump(include={"contradiction_id", "opened_at"})])
    rows = [(memory_id, Jsonb(required)) for memory_id, required in sorted(qualifiers.items())]
    tx.defer_many("contradictions.qualify", rows, contradiction_id=contradiction_id, seq=tick.seq, at=tick.at)


async def _end(tx: Transaction, by: str, outcome: Outcome, rows: Sequence[Row]) -> None:
    if not rows:
        return
    tick = await tx.tick()
    ids = [(row["contradiction_id"],) for row in rows]
    tx.defer_many("contradictions.resolve", ids, seq=tick.seq, at=tick.at, by=by, outcome=outcome)
    for row in rows:
        what = {"contradiction_id": row["contradiction_id"], "outcome": outcome}
        seconds = int((tick.at - row["opened_at"]).total_seconds())
        tx.emit("memory.contradiction_resolved", by, **what, seconds=seconds)


async def listed(
    tx: Transaction,
    *,
    memory_id: str | None = None,
    proposal_id: str | None = None,
    contradiction_id: str | None = None,
    closed: bool = True,
    after: str | None = None,
    limit: int = 1000,
) -> list[Contradiction]:
    """List contradictions, all or of one memory or proposal, the oldest first."""
    rows = await tx.rows(
        "contradictions.list",
        memory_id=memory_id,
        proposal_id=proposal_id,
        contradiction_id=contradiction_id,
        closed=closed,
        after=after or "",
        count=limit,
    )
    return [Contradiction(**row) for row in rows]


async def one(tx: Transaction, contradiction_id: str, *, field: str = "contradiction_id") -> Contradiction:
    """Read one contradiction, open or not; raises `NotFound`."""
    found = await listed(tx, contradiction_id=contradiction_id, limit=1)
    if not found:
        raise NotFound("no such contradiction", field=field)
    return found[0]
