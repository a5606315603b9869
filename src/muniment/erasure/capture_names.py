"""The names in a capture's facts, stored so that an erasure of those persons finds the capture (ERA-5)."""

from collections.abc import Iterable, Sequence

from muniment.candidates.rules import Draft, Refused
from muniment.database.sealing import Vault
from muniment.database.storage import Row, Transaction
from muniment.erasure.rules import hashed_name, names_in_value
from muniment.model.capture import Capture
from muniment.model.decision import refusing

# The reason for refusing a fact about somebody who was erased after its capture and before it was read.
ERASED = "subject_erased"


async def keep(tx: Transaction, vault: Vault, admitted: Iterable[Draft], refused: Iterable[Refused]) -> None:
    """Store the names in facts, admitted or refused, that the rows of their captures do not have.

    An edit or a correction also gets the names of the fact that it replaces.
    """
    rows: dict[tuple[str, str, str], None] = {}
    facts = [(draft, draft.candidate.candidate_id) for draft in admitted]
    facts += [(draft, "") for draft, _, _ in refused]
    for draft, candidate_id in facts:
        for name in await _names(tx, vault, draft):
            if name not in _names_in_row(draft.capture):
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
    """Split the drafts into those to go on with, and those that an erasure after their capture covers."""
    if not erasures:
        return list(drafts), []
    named: dict[str, set[str]] = {}
    own = {draft.candidate.candidate_id: set(await _names(tx, vault, draft)) for draft in drafts}
    for draft in drafts:
        named.setdefault(draft.candidate.capture_id, set()).update(own[draft.candidate.candidate_id])
    kept: list[Draft] = []
    gone: list[Refused] = []
    for draft in drafts:
        # As in the condition `covered_fact`: a plain text is covered whenever its capture is.
        candidate = draft.candidate
        names = own[candidate.candidate_id] if candidate.entity is not None else named[candidate.capture_id]
        if any(row["seq"] > draft.capture.seq and not names.isdisjoint(row["names"]) for row in erasures):
            gone.append((draft, "consent", refusing(ERASED, candidate.classification)))
        else:
            kept.append(draft)
    return kept, gone


async def _names(tx: Transaction, vault: Vault, draft: Draft) -> list[str]:
    """The entity of a fact as it is, and the hashes of the entities in its value."""
    candidate = draft.candidate
    names = [candidate.entity] if candidate.entity is not None else []
    if in_value := names_in_value(candidate):
        key = await vault.tenant_data_key(tx)
        names += [hashed_name(key.digest, one) for one in in_value]
    return names


def _names_in_row(capture: Capture) -> tuple[str | None, str | None]:
    """The names in the capture's own row: its subject, and the entity of a fact handed in with it."""
    fact = capture.content.fact if capture.content is not None else None
    return capture.subject, fact.entity if fact is not None else None
