"""Open proposals that contradict each other name each other: looked for when one enters the queue (REV-12).

It is compared with the open proposals about the same subject, whose content is unsealed for this, and with those that
enter together with it. Facts on keys are compared by their keys; a text is compared with the few that share most words
with it. No vectors of open proposals are stored, and the trained judge is not asked: it compares what is to be promoted
with the memories.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from anyio.to_thread import run_sync
from pydantic_core import from_json

from muniment.contradictions.rules import opposition
from muniment.contradictions.store import EmbeddedCandidate, TextComparer, key_of
from muniment.database.rows import candidate_of
from muniment.database.sealing import Vault
from muniment.database.storage import NamedStatement, Row, Transaction
from muniment.database.vectors import Vector
from muniment.errors import SealBroken
from muniment.language.assertion.overlap import content_words
from muniment.language.instructions import visible_text
from muniment.model.candidate import Candidate
from muniment.model.capture import holder_of
from muniment.model.fields import Tier
from muniment.pack import Pack

# Open proposals that are looked at about one subject, and in one transaction.
MOST, MOST_AT_ONCE = 200, 4000
# Texts that one candidate is compared with: those that share most words with it.
MOST_TEXTS = 20


class Opposite(NamedTuple):
    """A candidate that enters the queue, what it contradicts there, and in what they differ.

    `other` is the id of an open proposal, or of the candidate that enters beside it.
    """

    candidate_id: str
    other: str
    reason: str


@dataclass(frozen=True)
class Entering:
    """A candidate that enters the queue, with its vector and its tier."""

    embedded: EmbeddedCandidate
    tier: Tier

    @property
    def holder(self) -> str:
        """Whom it is about, as the key of its content says."""
        return holder_of(self.embedded.candidate.subject, self.embedded.candidate.scope.user_id)

    @cached_property
    def words(self) -> set[str]:
        """The words of its text that say something."""
        return _words(self.embedded.candidate.text)


@dataclass(frozen=True)
class _Open:
    """What a candidate is compared with: another that enters, or an open proposal, whose vector is made when needed."""

    name: str
    tier: Tier
    text: str
    on_key: bool
    # The candidate; of an open proposal made when it is first asked for, since few of those that wait are compared.
    make: Callable[[], Candidate]
    vector: Vector | None = None

    @classmethod
    def entering(cls, one: Entering) -> "_Open":
        """Return one that enters beside others."""
        candidate = one.embedded.candidate
        name, text, vector = candidate.candidate_id, candidate.text, one.embedded.vector
        return cls(name, one.tier, text, candidate.on_key, lambda: candidate, vector)

    @classmethod
    def waiting(cls, row: Row, content: bytes) -> "_Open":
        """Return an open proposal with its opened content."""
        on_key = row["entity"] is not None and row["predicate"] is not None
        text = from_json(content)["text"]
        return cls(row["proposal_id"], row["tier_derived"], text, on_key, lambda: candidate_of(row, content))

    @cached_property
    def candidate(self) -> Candidate:
        """The candidate itself."""
        return self.make()

    @cached_property
    def words(self) -> set[str]:
        """The words of its text that say something."""
        return _words(self.text)


def waiting_query(candidates: Iterable[Candidate], known: Iterable[str] = ()) -> NamedStatement:
    """Return the statement that reads the open proposals about the subjects of candidates, without the `known` ones."""
    values = _about(holder_of(one.subject, one.scope.user_id) for one in candidates)
    return ("review.waiting_beside", values | {"most": MOST_AT_ONCE, "known": sorted(known)})


def _about(holders: Iterable[str]) -> dict[str, Any]:
    return {"holders": sorted(set(holders)), "each": MOST}


@dataclass(frozen=True)
class Opposites:
    """What those that enter the queue contradict there; `seen` are the open proposals that were compared with them."""

    entering: tuple[Entering, ...] = ()
    found: tuple[Opposite, ...] = ()
    seen: frozenset[str] = frozenset()

    async def with_late(
        self, tx: Transaction, vault: Vault, comparer: TextComparer, pack: Pack
    ) -> tuple[Opposite, ...]:
        """Return them with those found among the proposals that entered since the comparison, which are mostly none.

        INVARIANT: the tenant's clock was taken, so that nothing can enter any more before the commit.
        """
        if not self.entering:
            return self.found
        waiting = await tx.rows("review.waiting_ids", **_about(one.holder for one in self.entering))
        if self.seen.issuperset(row["proposal_id"] for row in waiting):
            return self.found
        candidates = [one.embedded.candidate for one in self.entering]
        name, values = waiting_query(candidates, self.seen)
        around = await _opened(tx, vault, await tx.rows(name, **values), self.entering, pack)
        pairs = [(one, other) for one in self.entering for other in _to_compare(one, around.get(one.holder, []))]
        return (*self.found, *await _compared(pairs, comparer, pack))


async def find_opposites(
    tx: Transaction, vault: Vault, entering: Sequence[Entering], comparer: TextComparer, pack: Pack
) -> Opposites:
    """Find what candidates contradict among the open proposals about their subjects, and among each other."""
    if not entering:
        return Opposites()
    name, values = waiting_query(one.embedded.candidate for one in entering)
    rows = await tx.rows(name, **values)
    around = await _opened(tx, vault, rows, entering, pack)
    pairs: list[tuple[Entering, _Open]] = []
    for one in entering:
        known = around.setdefault(one.holder, [])
        pairs += [(one, other) for other in _to_compare(one, known[-MOST:])]
        known.append(_Open.entering(one))
    # What others write before this transaction takes the tenant's clock is looked for then (`with_late`).
    tx.read_with_tick(("review.waiting_ids", _about(one.holder for one in entering)))
    seen = frozenset(row["proposal_id"] for row in rows)
    return Opposites(tuple(entering), tuple(await _compared(pairs, comparer, pack)), seen)


async def _compared(pairs: Sequence[tuple[Entering, _Open]], comparer: TextComparer, pack: Pack) -> list[Opposite]:
    if not pairs:
        return []
    vectors = await _vectors([other for _, other in pairs], comparer)
    return await run_sync(lambda: _compare(pairs, vectors, comparer, pack))


async def _opened(
    tx: Transaction, vault: Vault, rows: Sequence[Row], entering: Sequence[Entering], pack: Pack
) -> dict[str, list[_Open]]:
    """Open what may contradict one of those that enter, by whom it is about, the oldest first."""
    keys: dict[str, set[Any]] = {}
    for one in entering:
        candidate = one.embedded.candidate
        keys.setdefault(one.holder, set()).add((candidate.entity, candidate.predicate) if candidate.on_key else None)
    found: dict[str, list[_Open]] = {}
    for row in reversed(rows):
        wanted = keys.get(row["holder"], set())
        on_key = row["entity"] is not None and row["predicate"] is not None
        if row["class"] == "evidence_link" or (on_key and None not in wanted and key_of(row, pack) not in wanted):
            continue
        try:
            key = await vault.open_key(tx, row["holder"], row["wrapped_key"], row["key_version"])
            content = key.open("candidates.content", row["candidate_id"], row["content"])
        except SealBroken:
            continue  # Nobody can read it, so nothing contradicts it.
        found.setdefault(row["holder"], []).append(_Open.waiting(row, content))
    return found


def _to_compare(one: Entering, known: Sequence[_Open]) -> list[_Open]:
    """Choose what a candidate is compared with: all on keys if it is, and the texts that share most words with it."""
    candidate = one.embedded.candidate
    on_keys = [other for other in known if candidate.on_key and other.on_key]
    if one.embedded.vector is None:
        return on_keys
    ours = one.words
    shared = [
        (len(ours & other.words), number, other)
        for number, other in enumerate(known)
        if not (candidate.on_key and other.on_key)
    ]
    nearest = sorted((one for one in shared if one[0]), key=lambda one: (-one[0], -one[1]))[:MOST_TEXTS]
    return on_keys + [other for _, _, other in nearest]


def _words(text: str) -> set[str]:
    words, names = content_words(visible_text(text))
    return words | names


async def _vectors(others: Sequence[_Open], comparer: TextComparer) -> dict[str, Vector | None]:
    """Return the vectors of those whose texts are compared; they are not stored."""
    known = {one.name: one.vector for one in others if one.vector is not None}
    missing = {one.name: one.candidate for one in others if one.name not in known}
    embedded = await comparer.embed(list(missing.values())) if missing else []
    return known | {name: one.vector for name, one in zip(missing, embedded, strict=True)}


def _compare(
    pairs: Sequence[tuple[Entering, _Open]],
    vectors: dict[str, Vector | None],
    comparer: TextComparer,
    pack: Pack,
) -> list[Opposite]:
    found: list[Opposite] = []
    for one, other in pairs:
        candidate, ours, theirs = one.embedded.candidate, one.embedded.vector, vectors[other.name]
        similarity = 0.0 if ours is None or theirs is None else float(ours @ theirs)
        reason = opposition(candidate, one.tier, other.candidate, other.tier, similarity, pack, comparer.by)
        if reason is not None:
            found.append(Opposite(candidate.candidate_id, other.name, reason))
    return found
