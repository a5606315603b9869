"""Consent requests: a fact refused only for lack of its subject's consent leaves a question to that person (CON-9).

A request holds which fact of which capture it is and its label, never content. The question is read from the capture
when it is shown.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from muniment.candidates.gates import ASKS, fingerprint
from muniment.candidates.rules import Draft, Refused
from muniment.database.sealing import Vault
from muniment.database.storage import Transaction
from muniment.errors import Conflict, NotFound
from muniment.model.capture import holder_of
from muniment.model.ids import make_ids
from muniment.pack import Pack

_MARK_BYTES = 16


@dataclass(frozen=True)
class Question:
    """A fact that its subject is to be asked about, and the hash that it is known by."""

    draft: Draft
    subject: str
    mark: bytes


async def new_questions(tx: Transaction, vault: Vault, refused: Sequence[Refused], pack: Pack) -> list[Question]:
    """Return the facts that their subjects are to be asked about; to be called before the tick.

    None about a fact for which a request waits, or was refused as long ago as a rejection is remembered. Nothing is
    read unless the pack asks subjects and a fact was refused for that alone.
    """
    asking = [
        draft for draft, gate, why in refused if gate == "consent" and any(one.code == ASKS for one in why.reasons)
    ]
    if not asking:
        return []
    keys = await vault.keys(tx, {_holder(draft) for draft in asking}, make=True)
    found: dict[tuple[str, bytes], Question] = {}
    for draft in asking:
        subject = draft.candidate.subject
        assert subject is not None, "the gate asks nobody about a fact without a subject"
        mark = keys[_holder(draft)].digest(b"consent request\0" + fingerprint(draft.candidate))[:_MARK_BYTES]
        found.setdefault((subject, mark), Question(draft, subject, mark))
    wanted = {"subjects": sorted({subject for subject, _ in found}), "marks": sorted({mark for _, mark in found})}
    since = tx.now - pack.memory_layer.rejections.remember
    for row in await tx.rows("subject.asked_before", **wanted, since=since):
        found.pop((row["subject"], bytes(row["mark"])), None)
    return list(found.values())


def _holder(draft: Draft) -> str:
    return holder_of(draft.candidate.subject, draft.candidate.scope.user_id)


async def ask(tx: Transaction, questions: Sequence[Question], pack: Pack) -> None:
    """Record the requests, after the refusals that they follow."""
    if not questions:
        return
    tick = await tx.tick()
    ids = make_ids("crq", len(questions), tick.at)
    rows = [
        (request_id, *_fact_key(one.draft), one.subject, one.draft.candidate.classification, one.mark)
        for request_id, one in zip(ids, questions, strict=True)
    ]
    ends_at = tick.at + pack.memory_layer.consent.ask_for
    tx.defer_many("subject.ask", rows, seq=tick.seq, at=tick.at, ends_at=ends_at)
    for request_id, one in zip(ids, questions, strict=True):
        capture_id, label = one.draft.candidate.capture_id, one.draft.candidate.classification
        tx.emit("memory.consent_requested", "auto", request_id=request_id, capture_id=capture_id, label=label)


def _fact_key(draft: Draft) -> tuple[str, int, str, int]:
    candidate = draft.candidate
    return candidate.capture_id, draft.consolidation, candidate.extractor, draft.ordinal


@dataclass(frozen=True)
class OpenRequest:
    """A request that waits for its answer."""

    request_id: str
    capture_id: str
    subject: str
    label: str


async def open_request(tx: Transaction, request_id: str) -> OpenRequest:
    """Return a request that can be answered; raises `NotFound`, or `Conflict` if it was answered or has ended."""
    row = await tx.row("subject.consent_request", request_id=request_id)
    if row is None:
        raise NotFound("no such request", field="request_id")
    if row["answer"] is not None:
        raise Conflict(f"was answered before: {row['answer']}", field="request_id")
    if row["ends_at"] <= tx.now:
        raise Conflict("has ended: nobody answered it in time", field="request_id")
    return OpenRequest(request_id, row["capture_id"], row["subject"], row["label"])


async def record_answer(tx: Transaction, request_id: str, answer: str, by: str) -> None:
    """Record the answer to a request, once; raises `Conflict` if somebody else was first."""
    tick = await tx.tick()
    values = {"answer": answer, "by": by, "seq": tick.seq, "at": tick.at}
    if not await tx.do("subject.answer", request_id=request_id, **values):
        raise Conflict("was answered or has ended at this moment", field="request_id")
    named = {"answer": answer, "answered_seq": tick.seq, "answered_at": tick.at, "answered_by": by}
    tx.event_rows.add("consent_requests.answered", request_id=request_id, **named)
    tx.emit("memory.note", by, about="consent_request_answered", request_id=request_id, answer=answer)


async def withdraw_all(tx: Transaction, names: Sequence[str], by: str) -> None:
    """End the open requests to a person who is erased; after the tick."""
    for row in await tx.rows("subject.open_consent_requests", names=list(names)):
        await record_answer(tx, row["request_id"], "withdrawn", by)


async def answer_all(tx: Transaction, names: Sequence[str], labels: Sequence[str], by: str) -> None:
    """Answer the open requests to a person for these labels, as the person consented, and run their captures again."""
    found = [row for row in await tx.rows("subject.open_consent_requests", names=list(names)) if row["label"] in labels]
    for row in found:
        await record_answer(tx, row["request_id"], "granted", by)
    for capture_id in dict.fromkeys(row["capture_id"] for row in found):
        await run_again(tx, capture_id, by)


async def run_again(tx: Transaction, capture_id: str, by: str) -> bool:
    """Order that a capture is consolidated again, as its subject consents now (CAP-11).

    Returns whether it was ordered: not where the capture waits already, or is archived.
    """
    row = await tx.row("subject.to_rerun", capture_id=capture_id)
    if row is None or row["done"] is None:
        return False
    number, tick = row["done"] + 1, await tx.tick()
    which = {"capture_id": capture_id, "number": number}
    await tx.do("history.order", **which, seq=tick.seq, at=tick.at, by=by, reason="consent_changed")
    await tx.do("history.wait_again", **which, captured_seq=row["seq"], holder=row["holder"])
    tx.emit("memory.rerun", by, capture_id=capture_id, number=number, reason="consent_changed")
    return True
