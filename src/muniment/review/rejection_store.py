"""Remembered rejections: how what was rejected is found again without keeping what it said (REV-6)."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from anyio.lowlevel import checkpoint

from muniment.candidates.comparison import EmbeddedCandidate, TextComparer
from muniment.database.rows import candidate_of
from muniment.database.sealing import SubjectKey, Vault
from muniment.database.storage import Named, Transaction
from muniment.errors import SealBroken
from muniment.language.embedding.bands import bands
from muniment.model.candidate import Candidate
from muniment.pack import Pack
from muniment.review.rules import Rejected, fingerprint

# The rejections looked at per candidate: those that share most with it.
LOOKED_AT = 20
# Candidates thought about without a break: nobody else's call waits for more.
SLICE = 25


def marks(probe: EmbeddedCandidate, comparer: TextComparer, key: SubjectKey) -> list[int]:
    """Keyed hashes of a candidate: one of what it asserts, some of where its text lies."""
    found = [b"said\0" + fingerprint(probe.candidate)]
    if probe.vector is not None:
        place = f"near\0{comparer.embedder.name}\0".encode()
        found += [place + band for band in bands(probe.vector[None, :])[0]]
    return [int.from_bytes(key.digest(b"rejection\0" + one)[:8], "big", signed=True) for one in found]


def asked(probes: Sequence[EmbeddedCandidate], wanted: Iterable[int], pack: Pack, now: datetime) -> Named:
    """The statement that finds the rejections which candidates with those marks may repeat."""
    users = {probe.candidate.scope.user_id for probe in probes}
    given = {
        "marks": sorted(wanted),
        "users": sorted(user for user in users if user is not None),
        "since": now - pack.memory_layer.rejections.remember,
        "count": LOOKED_AT * len(probes),
    }
    return ("candidate.rejected", given)


async def found_for(
    tx: Transaction, vault: Vault, probes: Sequence[EmbeddedCandidate], comparer: TextComparer, pack: Pack
) -> list[tuple[Rejected, ...]]:
    """For each candidate the rejections that it may repeat, opened; whether it does is for the gate to say."""
    # Without the tenant's own key nothing was ever marked, and who only reads makes none.
    if not probes or (comparing := await vault.known_comparing(tx)) is None:
        return [()] * len(probes)
    wanted: set[int] = set()
    for place, probe in enumerate(probes, 1):
        wanted.update(marks(probe, comparer, comparing))
        if place % SLICE == 0:
            await checkpoint()
    name, given = asked(probes, wanted, pack, tx.now)
    ids: list[str] = []
    rejected: list[Candidate] = []
    for row in await tx.rows(name, **given):
        try:
            key = await vault.open_key(tx, row["holder"], row["wrapped_key"], row["key_version"])
            content = key.open("candidates.content", row["candidate_id"], row["content"])
        except SealBroken:
            continue  # What nobody can read any more is forgotten.
        ids.append(row["proposal_id"])
        rejected.append(candidate_of(row, content))
    said = [fingerprint(candidate) for candidate in rejected]
    before = list(zip(ids, await comparer.probes(rejected), said, strict=True))
    return [tuple(_in_question(probe, before, comparer)) for probe in probes]


def _in_question(
    probe: EmbeddedCandidate, before: Sequence[tuple[str, EmbeddedCandidate, bytes]], comparer: TextComparer
) -> Iterator[Rejected]:
    """Those near enough to say the same, and those that do to the letter."""
    own, least = fingerprint(probe.candidate), comparer.by.thresholds.duplicate_similarity
    for proposal_id, other, said in before:
        near = 0.0 if probe.vector is None or other.vector is None else float(probe.vector @ other.vector)
        if near >= least or said == own:
            yield Rejected(proposal_id, other.candidate, near)


async def remember(
    tx: Transaction, vault: Vault, proposal_id: str, candidate: Candidate, comparer: TextComparer
) -> None:
    """Keep the marks of a candidate that was rejected."""
    (probe,) = await comparer.probes([candidate])
    rows = [(mark,) for mark in sorted(set(marks(probe, comparer, await vault.comparing(tx))))]
    tx.defer_many("candidate.remember", rows, proposal_id=proposal_id)
