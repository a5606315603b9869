"""Remembered rejections: a rejected fact is found again by keyed hashes, without its content (REV-6)."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from anyio.lowlevel import checkpoint

from muniment.candidates.neighbours import EmbeddedCandidate, TextComparer
from muniment.database.rows import candidate_of
from muniment.database.sealing import SubjectKey, Vault
from muniment.database.storage import NamedStatement, Transaction
from muniment.errors import SealBroken
from muniment.language.embedding.bands import bands
from muniment.model.candidate import Candidate
from muniment.pack import Pack
from muniment.review.rules import Rejected, fingerprint

# Rejections read for each candidate: those that share most hashes with it.
MOST = 20
# Candidates handled between two event-loop checkpoints.
SLICE = 25


def rejection_hashes(embedded: EmbeddedCandidate, comparer: TextComparer, key: SubjectKey) -> list[int]:
    """Return keyed hashes of a candidate: one of what it asserts, and some of its text's vector."""
    parts = [b"said\0" + fingerprint(embedded.candidate)]
    if embedded.vector is not None:
        prefix = f"near\0{comparer.embedder.name}\0".encode()
        parts += [prefix + band for band in bands(embedded.vector[None, :])[0]]
    return [int.from_bytes(key.digest(b"rejection\0" + part)[:8], "big", signed=True) for part in parts]


def rejections_query(
    embedded: Sequence[EmbeddedCandidate], hashes: Iterable[int], pack: Pack, now: datetime
) -> NamedStatement:
    """Return the statement that finds the rejections which candidates with those hashes may repeat."""
    users = {one.candidate.scope.user_id for one in embedded}
    values = {
        "marks": sorted(hashes),
        "users": sorted(user for user in users if user is not None),
        "since": now - pack.memory_layer.rejections.remember,
        "count": MOST * len(embedded),
    }
    return ("candidate.rejected", values)


async def rejections_for(
    tx: Transaction, vault: Vault, embedded: Sequence[EmbeddedCandidate], comparer: TextComparer, pack: Pack
) -> list[tuple[Rejected, ...]]:
    """Return for each candidate the rejections that it may repeat, opened; the gate decides whether it does."""
    # Without the tenant's own key nothing was ever rejected, and a reader makes none.
    if not embedded or (tenant_data_key := await vault.existing_tenant_data_key(tx)) is None:
        return [()] * len(embedded)
    hashes: set[int] = set()
    for number, one in enumerate(embedded, 1):
        hashes.update(rejection_hashes(one, comparer, tenant_data_key))
        if number % SLICE == 0:
            await checkpoint()
    name, values = rejections_query(embedded, hashes, pack, tx.now)
    ids: list[str] = []
    rejected: list[Candidate] = []
    for row in await tx.rows(name, **values):
        try:
            key = await vault.open_key(tx, row["holder"], row["wrapped_key"], row["key_version"])
            content = key.open("candidates.content", row["candidate_id"], row["content"])
        except SealBroken:
            continue  # What nobody can read any more is forgotten.
        ids.append(row["proposal_id"])
        rejected.append(candidate_of(row, content))
    fingerprints = [fingerprint(candidate) for candidate in rejected]
    before = list(zip(ids, await comparer.embed(rejected), fingerprints, strict=True))
    return [tuple(_similar(one, before, comparer)) for one in embedded]


def _similar(
    embedded: EmbeddedCandidate, before: Sequence[tuple[str, EmbeddedCandidate, bytes]], comparer: TextComparer
) -> Iterator[Rejected]:
    """Yield the rejections near enough to say the same, and those with the same fingerprint."""
    own, least = fingerprint(embedded.candidate), comparer.by.thresholds.duplicate_similarity
    for proposal_id, other, theirs in before:
        near = 0.0 if embedded.vector is None or other.vector is None else float(embedded.vector @ other.vector)
        if near >= least or theirs == own:
            yield Rejected(proposal_id, other.candidate, near)


async def remember_rejection(
    tx: Transaction, vault: Vault, proposal_id: str, candidate: Candidate, comparer: TextComparer
) -> None:
    """Store the hashes of a rejected candidate."""
    (embedded,) = await comparer.embed([candidate])
    hashes = rejection_hashes(embedded, comparer, await vault.tenant_data_key(tx))
    tx.defer_many("candidate.remember", [(one,) for one in sorted(set(hashes))], proposal_id=proposal_id)
