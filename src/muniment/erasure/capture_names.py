"""Keeping whom a capture's facts name, refused or not, so that an erasure finds the capture by them (ERA-5)."""

from collections.abc import Iterable, Sequence

from muniment.candidates.drafts import Draft, Refused
from muniment.database.sealing import Vault
from muniment.database.storage import Row, Transaction
from muniment.erasure import rules as naming
from muniment.model.capture import Capture
from muniment.model.decision import refusing

# Why a fact about somebody is refused that was captured before they were erased and read after.
ERASED = "subject_erased"


async def keep(tx: Transaction, vault: Vault, admitted: Iterable[Draft], refused: Iterable[Refused]) -> None:
    """Write down the names that neither the captures' rows nor the candidates' say.

    What changes or corrects a fact names whom that fact named.
    """
    rows: dict[tuple[str, str, str], None] = {}
    facts = [(draft, draft.candidate.candidate_id) for draft in admitted]
    facts += [(draft, "") for draft, _, _ in refused]
    for draft, candidate_id in facts:
        for name in await _names(tx, vault, draft):
            if name not in _said_of(draft.capture):
                rows[draft.candidate.capture_id, candidate_id, name] = None
    if rows:
        tx.defer_many("candidate.name", sorted(rows))
    for draft, candidate_id in facts:
        new = {"capture_id": draft.candidate.capture_id, "candidate_id": candidate_id}
        if draft.candidate.edits is not None:
            tx.defer("candidate.name_as_edited", **new, edits=draft.candidate.edits)
        if draft.candidate.corrects is not None:
            tx.defer("candidate.name_as_corrected", **new, corrects=draft.candidate.corrects)


async def erased_since(
    tx: Transaction, vault: Vault, drafts: Sequence[Draft], erasures: Sequence[Row]
) -> tuple[list[Draft], list[Refused]]:
    """Part the drafts into those to go on, and those that erasures after their capture cover."""
    if not erasures:
        return list(drafts), []
    named: dict[str, set[str]] = {}
    own = {draft.candidate.candidate_id: set(await _names(tx, vault, draft)) for draft in drafts}
    for draft in drafts:
        named.setdefault(draft.candidate.capture_id, set()).update(own[draft.candidate.candidate_id])
    kept: list[Draft] = []
    gone: list[Refused] = []
    for draft in drafts:
        # As the condition `covered_fact` has it: a plain text goes with its capture.
        candidate = draft.candidate
        names = own[candidate.candidate_id] if candidate.entity is not None else named[candidate.capture_id]
        if any(row["seq"] > draft.capture.seq and not names.isdisjoint(row["names"]) for row in erasures):
            gone.append((draft, "consent", refusing(ERASED, candidate.classification)))
        else:
            kept.append(draft)
    return kept, gone


async def _names(tx: Transaction, vault: Vault, draft: Draft) -> list[str]:
    """The entity in the open, those of the value as hashes."""
    candidate = draft.candidate
    names = [candidate.entity] if candidate.entity is not None else []
    if in_value := naming.in_value(candidate):
        key = await vault.comparing(tx)
        names += [naming.hashed(key.digest, one) for one in in_value]
    return names


def _said_of(capture: Capture) -> tuple[str | None, str | None]:
    """The names that the capture's own row has: its subject, and whom a fact handed in with it is about."""
    fact = capture.content.fact if capture.content is not None else None
    return capture.subject, fact.entity if fact is not None else None
