"""What a person stated and corrected, with the outcome of each."""

from collections.abc import Mapping
from typing import Any

from muniment.capture import store as captures
from muniment.database import cursors
from muniment.database.sealing import Vault
from muniment.database.storage import Row, Transaction
from muniment.language.redaction import Redactor
from muniment.model.capture import Content
from muniment.model.proposal import FINAL, Proposal, Submission
from muniment.model.statements import Statement
from muniment.review import store as review


async def listed(
    tx: Transaction, vault: Vault, redactor: Redactor, author: str, count: int, after: str | None
) -> list[Statement]:
    """List a person's statements, masked, the latest first; raises `NotFound` for an unknown `after`."""
    start = await cursors.page_start(tx, "history.place", after, latest_first=True)
    rows = await tx.rows("corrections.statements", author=author, count=count, **start)
    contents = await captures.read(tx, vault, [row["capture_id"] for row in rows], skip_broken=True)
    ids = [row["proposal_id"] for row in rows if row["proposal_id"] is not None]
    proposals = {
        one.proposal.proposal_id: one.proposal for one in await review.load_many(tx, vault, ids, skip_broken=True)
    }
    memories = [one.memory_id for one in proposals.values() if one.memory_id is not None]
    ended = await tx.rows("corrections.retractions", memory_ids=memories) if memories else []
    reasons = {row["memory_id"]: row["reason"] for row in ended}
    found: list[Statement] = []
    for row in rows:
        capture = contents.get(row["capture_id"])
        content = capture.content if capture is not None else None
        found.append(
            _statement(row, content, redactor, _outcome(row, proposals.get(row["proposal_id"] or ""), reasons))
        )
    return found


def _statement(row: Row, content: Content | None, redactor: Redactor, outcome: dict[str, Any]) -> Statement:
    names = ("write_class", "entity", "predicate", "value", "text", "corrects")
    fact = content.fact if content is not None else None
    words: dict[str, Any] = {"text": content.text if content is not None else None}
    if fact is not None:
        words = {name: getattr(fact, name) for name in names}
    words["text"], words["value"] = redactor.content(words["text"], words.get("value")).content
    return Statement(capture_id=row["capture_id"], stated_at=row["captured_at"], **words, **outcome)


def _outcome(row: Row, proposal: Proposal | None, retractions: Mapping[str | None, str]) -> dict[str, Any]:
    """Return the outcome of a statement: the state of its capture, the gates' answer, a verdict, or a retraction."""
    if row["state"] in ("erased", "parked", "waiting"):
        return {"status": row["state"]}
    if proposal is None and row["state"] == "refused":
        gate, reason = row["refused"]
        return {"status": "refused", "gate": gate, "reason": reason}
    if proposal is None:
        return {"status": "processed", "proposal_id": row["proposal_id"]}
    # Proposers see a person's verdict but not policy's, except a withdrawal after a change of the pack.
    status = "withdrawn" if proposal.status == "withdrawn" else Submission.of(proposal).status
    outcome: dict[str, Any] = {"status": status, "proposal_id": proposal.proposal_id}
    verdict = next((one for one in proposal.verdicts if one.action in FINAL and one.by_kind != "system"), None)
    if verdict is not None:
        reason = verdict.reason if verdict.action == "reject" else None
        outcome |= {"decided_by": verdict.by, "decided_at": verdict.at, "reason": reason}
    if outcome["status"] == "promoted" and proposal.memory_id in retractions:
        outcome |= {"status": "retracted", "reason": retractions[proposal.memory_id]}
    return outcome
