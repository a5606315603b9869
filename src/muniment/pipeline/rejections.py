"""Remembered rejections: how what was rejected is found again without keeping what it said (REV-6)."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from anyio.lowlevel import checkpoint

from muniment.embedding.bands import bands
from muniment.errors import SealBroken
from muniment.model.candidate import Candidate
from muniment.pack import Pack
from muniment.pipeline.neighbours import Probe, Senses
from muniment.policy.instructions import as_seen
from muniment.policy.rejection import Rejected, fingerprint
from muniment.storage.rows import candidate_of
from muniment.storage.sealing import SubjectKey, Vault
from muniment.storage.session import Named, Transaction

# The rejections looked at per candidate: those that share most with it.
LOOKED_AT = 20
SLICE = 25


def marks(probe: Probe, senses: Senses, key: SubjectKey) -> list[int]:
    """Keyed hashes of a candidate: one of what it asserts, some of where its text lies."""
    found = [b"said\0" + fingerprint(probe.candidate)]
    if probe.vector is not None:
        place = f"near\0{senses.embedder.name}\0".encode()
        found += [place + band for band in bands(probe.vector[None, :])[0]]
    return [int.from_bytes(key.digest(b"rejection\0" + one)[:8], "big", signed=True) for one in found]


def asked(probes: Sequence[Probe], wanted: Iterable[int], pack: Pack, now: datetime) -> Named:
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
    tx: Transaction, vault: Vault, probes: Sequence[Probe], senses: Senses, pack: Pack
) -> list[tuple[Rejected, ...]]:
    """For each candidate the rejections that it may repeat, opened; whether it does is for the gate to say."""
    if not probes:
        return []
    comparing = await vault.comparing(tx)
    wanted: set[int] = set()
    for place, probe in enumerate(probes, 1):
        wanted.update(marks(probe, senses, comparing))
        if place % SLICE == 0:
            await checkpoint()
    name, given = asked(probes, wanted, pack, tx.now)
    rejected: list[tuple[str, Candidate]] = []
    for row in await tx.rows(name, **given):
        try:
            key = await vault.open_key(tx, row["holder"], row["wrapped_key"], row["key_version"])
            content = key.open("candidates.content", row["candidate_id"], row["content"])
        except SealBroken:
            continue  # What nobody can read any more is forgotten.
        rejected.append((row["proposal_id"], candidate_of(row, content)))
    if not rejected:
        return [()] * len(probes)
    vectors = senses.embedder.embed([as_seen(candidate.text) for _, candidate in rejected])
    said = [fingerprint(candidate) for _, candidate in rejected]
    found: list[tuple[Rejected, ...]] = []
    for probe in probes:
        similar = (vectors @ probe.vector).tolist() if probe.vector is not None else [0.0] * len(rejected)
        own = fingerprint(probe.candidate)
        found.append(
            tuple(
                Rejected(proposal_id, candidate, similarity)
                for (proposal_id, candidate), similarity, words in zip(rejected, similar, said, strict=True)
                if similarity >= senses.by.thresholds.duplicate_similarity or words == own
            )
        )
    return found


async def remember(tx: Transaction, vault: Vault, proposal_id: str, candidate: Candidate, senses: Senses) -> None:
    """Keep the marks of a candidate that was rejected."""
    (probe,) = senses.probes([candidate])
    rows = [(mark,) for mark in sorted(set(marks(probe, senses, await vault.comparing(tx))))]
    tx.insert_later("candidate.remember", rows, proposal_id=proposal_id)
