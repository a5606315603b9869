"""Stage 2, candidate: a capture becomes typed facts; each passes the gates, or is refused and kept nowhere."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg.types.json import Jsonb

from muniment.errors import SealBroken
from muniment.model.candidate import Candidate, Refusal, Scope
from muniment.model.capture import Capture, TypedFact, holder_of
from muniment.model.consent import Consent
from muniment.model.ids import make_ids
from muniment.pack import Pack
from muniment.policy import confidence, trust
from muniment.policy.gates import Circumstances, pass_gates
from muniment.storage.rows import capture_of, consent_of, fact_content
from muniment.storage.sealing import SubjectKey, Vault
from muniment.storage.session import Transaction

STATEMENT = "statement@1"
DIRECT = "direct@1"


@dataclass(frozen=True)
class Admitted:
    """A candidate that passed the gates, with the capture and the pack it was decided under."""

    candidate: Candidate
    capture: Capture
    pack: Pack


@dataclass(frozen=True)
class Batch:
    """Captures to be consolidated, opened; those that do not open are named in `broken`."""

    captures: tuple[Capture, ...]
    broken: tuple[str, ...]
    read: int


async def next_batch(tx: Transaction, vault: Vault, count: int) -> Batch:
    """Lock the tenant's cursor, read the captures behind it and move it past them, all within this transaction."""
    cursor = await tx.row("candidate.lock_cursor")
    if cursor is None:
        await tx.do("candidate.open_cursor")
        cursor = await tx.row("candidate.lock_cursor")
        assert cursor is not None
    rows = await tx.rows("candidate.next_captures", seq=cursor["seq"], capture_id=cursor["capture_id"], count=count)
    if not rows:
        return Batch((), (), 0)
    waiting = [row for row in rows if not row["done"]]
    keys = await vault.keys(tx, {row["holder"] for row in waiting}, skip_broken=True)
    captures: list[Capture] = []
    broken: list[str] = []
    for row in waiting:
        try:
            key = keys[row["holder"]]
            captures.append(capture_of(row, key.open("captures.content", row["capture_id"], row["content"])))
        except (SealBroken, KeyError):
            broken.append(row["capture_id"])
    await tx.do("candidate.move_cursor", seq=rows[-1]["seq"], capture_id=rows[-1]["capture_id"])
    await tx.insert_many("candidate.mark_done", [(row["capture_id"],) for row in waiting])
    return Batch(tuple(captures), tuple(broken), len(rows))


async def mark_done(tx: Transaction, capture_ids: Iterable[str]) -> None:
    """Say that these captures need no further consolidation."""
    await tx.insert_many("candidate.mark_done", [(capture_id,) for capture_id in capture_ids])


def extract(capture: Capture, pack: Pack, candidate_id: str) -> Candidate | None:
    """The fact a capture states: what was proposed with it, or the plain text of a statement."""
    content = capture.content
    assert content is not None
    if content.fact is not None:
        fact, extractor = content.fact, DIRECT
    elif capture.kind == "statement" and content.text is not None:
        raw = confidence.of_statement(capture.source, pack)
        fact, extractor = TypedFact(write_class="statement", text=content.text, confidence=raw), STATEMENT
    else:
        return None
    return Candidate(
        candidate_id=candidate_id,
        tenant_id=capture.tenant_id,
        capture_id=capture.capture_id,
        author=capture.author,
        source=capture.source,
        write_class=fact.write_class,
        entity=fact.entity,
        predicate=fact.predicate,
        value=fact.value,
        text=fact.text or rendered(fact),
        evidence_refs=content.evidence_refs,
        raw_confidence=fact.confidence,
        confidence=confidence.without_history(fact.confidence, pack),
        classification=capture.classification,
        subject=capture.subject,
        scope=Scope(
            user_id=capture.user_id,
            session_id=capture.session_id,
            workflow_id=capture.workflow_id,
            intent_id=capture.intent_id,
            qualifiers=capture.qualifiers,
        ),
        trust=trust.of_source(capture.source, capture.kind, capture.origin, pack),
        extractor=extractor,
    )


def rendered(fact: TypedFact) -> str:
    """A typed fact in words."""
    if fact.write_class == "evidence_link":
        return "evidence link"
    value = fact.value if isinstance(fact.value, str) else str(fact.value)
    return f"{fact.entity} {(fact.predicate or '').replace('_', ' ')}: {value}"


async def admit(
    tx: Transaction,
    vault: Vault,
    drafts: Sequence[tuple[Candidate, Capture, Pack]],
    *,
    edit_of: str | None = None,
    prior_editors: tuple[str, ...] = (),
) -> tuple[list[Admitted], list[Refusal]]:
    """The one way in: every draft passes the gates here, whichever way it came, and is stored or refused (CAN-9)."""
    consents = await _consents(tx, {draft.subject for draft, _, _ in drafts if draft.subject is not None})
    admitted: list[Admitted] = []
    refused: list[tuple[Candidate, Refusal]] = []
    for draft, capture, pack in drafts:
        known = Circumstances(pack, tx.now, capture.kind, capture.decision_key, consents.get(draft.subject or "", ()))
        passage = pass_gates(draft, known)
        if (refusal := passage.refused_by) is None:
            admitted.append(Admitted(passage.candidate, capture, pack))
        else:
            gate, decision = refusal
            reason = decision.reasons[0].code
            refused.append((draft, Refusal(capture_id=capture.capture_id, gate=gate, reason=reason, at=tx.now)))
    if admitted:
        await _store(tx, vault, admitted, prior_editors)
    if refused and edit_of is None:
        await _refuse(tx, refused)
    return admitted, [refusal for _, refusal in refused]


async def _store(tx: Transaction, vault: Vault, admitted: list[Admitted], prior_editors: tuple[str, ...]) -> None:
    holders = {holder_of(a.candidate.subject, a.candidate.scope.user_id) for a in admitted}
    keys = await vault.keys(tx, holders, make=True)
    tick = await tx.tick()
    await tx.insert_many(
        "candidate.insert",
        [_row(one, keys, prior_editors) for one in admitted],
        seq=tick.seq,
    )


def _row(one: Admitted, keys: dict[str, SubjectKey], prior_editors: tuple[str, ...]) -> tuple[Any, ...]:
    candidate, scope = one.candidate, one.candidate.scope
    holder = holder_of(candidate.subject, scope.user_id)
    content = fact_content(candidate.text, candidate.value, candidate.evidence_refs)
    edited = candidate.edits is not None
    return (
        candidate.candidate_id,
        candidate.capture_id,
        candidate.capture_id,
        one.capture.seq,
        candidate.author,
        candidate.source,
        candidate.write_class,
        candidate.entity,
        candidate.predicate,
        candidate.classification,
        holder,
        candidate.subject,
        scope.user_id,
        scope.session_id,
        scope.workflow_id,
        scope.intent_id,
        Jsonb(scope.qualifiers) if scope.qualifiers else None,
        candidate.raw_confidence,
        candidate.confidence,
        candidate.trust,
        candidate.consent_id,
        candidate.extractor,
        len(prior_editors) + 1 if edited else 0,
        candidate.edits,
        candidate.editor,
        list(prior_editors) if edited else None,
        [*prior_editors, candidate.editor] if edited else [],
        keys[holder].seal("candidates.content", candidate.candidate_id, content),
    )


async def _refuse(tx: Transaction, refused: list[tuple[Candidate, Refusal]]) -> None:
    tick = await tx.tick()
    rows = [(r.capture_id, draft.extractor, 0, r.gate, r.reason) for draft, r in refused]
    await tx.insert_many("candidate.refuse", rows, seq=tick.seq, at=tick.at)
    for draft, refusal in refused:
        tx.emit(
            "memory.refused",
            "auto",
            capture_id=refusal.capture_id,
            gate=refusal.gate,
            reason=refusal.reason,
            write_class=draft.write_class,
        )


async def _consents(tx: Transaction, subjects: set[str]) -> dict[str, tuple[Consent, ...]]:
    if not subjects:
        return {}
    found: dict[str, list[Consent]] = {}
    for row in await tx.rows("consent.of_subjects", subjects=sorted(subjects)):
        found.setdefault(row["subject"], []).append(consent_of(row))
    return {subject: tuple(records) for subject, records in found.items()}


def new_ids(tx: Transaction, count: int) -> list[str]:
    """Ids for that many candidates."""
    return make_ids("mc", count, tx.now)
