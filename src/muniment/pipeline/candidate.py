"""Stage 2, candidate: a capture becomes typed facts; each passes the gates, or is refused and kept nowhere."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from muniment.errors import SealBroken
from muniment.model.candidate import Candidate, GateName, Refusal, Scope
from muniment.model.capture import Capture, TypedFact, holder_of
from muniment.model.consent import Consent
from muniment.model.decision import Decision
from muniment.model.ids import make_ids
from muniment.pack import Pack
from muniment.pipeline import rejections
from muniment.pipeline.senses import Probe, Senses
from muniment.policy import confidence, trust
from muniment.policy.gates import FIRST_GATES, LAST_GATES, Circumstances, pass_gates
from muniment.storage.rows import capture_of, consent_of, fact_content
from muniment.storage.sealing import SubjectKey, Vault
from muniment.storage.session import Named, Transaction

STATEMENT = "statement@1"
DIRECT = "direct@1"


@dataclass(frozen=True)
class Draft:
    """A candidate before the gates, with the capture it comes from and its place among that capture's candidates.

    `reopens` is the duplicate that comes back with it, if one does.
    """

    candidate: Candidate
    capture: Capture
    ordinal: int = 0
    prior_editors: tuple[str, ...] = ()
    reopens: str | None = None


@dataclass(frozen=True)
class Screened:
    """A draft that passed the first gates, with the place of what is left of its text."""

    draft: Draft
    probe: Probe


Refused = tuple[Draft, GateName, Decision]


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
    tx.later("candidate.move_cursor", seq=rows[-1]["seq"], capture_id=rows[-1]["capture_id"])
    mark_done(tx, [row["capture_id"] for row in waiting])
    return Batch(tuple(captures), tuple(broken), len(rows))


def mark_done(tx: Transaction, capture_ids: Iterable[str]) -> None:
    """Say that these captures need no further consolidation."""
    tx.insert_later("candidate.mark_done", [(capture_id,) for capture_id in capture_ids])


def extract(capture: Capture, pack: Pack, candidate_id: str) -> Candidate | None:
    """The fact a capture states: what was proposed with it, or the plain text of a statement."""
    content = capture.content
    assert content is not None
    if content.fact is not None:
        fact, extractor = content.fact, DIRECT
    elif capture.kind in pack.memory_layer.statements_from and content.text is not None:
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
        corrects=fact.corrects,
    )


def afresh(old: Candidate, candidate_id: str, capture: Capture, pack: Pack, **changed: Any) -> Candidate:
    """A candidate to go through the gates again: nothing that they once found of it counts any more."""
    start: dict[str, Any] = {
        "candidate_id": candidate_id,
        "trust": trust.of_source(capture.source, capture.kind, capture.origin, pack),
        "consent_id": None,
        "gates": (),
        "redactions": {},
    }
    return old.model_copy(update=start | changed)


def rendered(fact: TypedFact) -> str:
    """A typed fact in words."""
    if fact.write_class == "evidence_link":
        return "evidence link"
    value = fact.value if isinstance(fact.value, str) else str(fact.value)
    return f"{fact.entity} {(fact.predicate or '').replace('_', ' ')}: {value}"


async def screen(
    drafts: Sequence[Draft], senses: Senses, pack: Pack, now: datetime
) -> tuple[list[Screened], list[Refused]]:
    """The gates that need the candidate and the pack alone; what passes is redacted from here on."""
    passed: list[Draft] = []
    refused: list[Refused] = []
    for draft in drafts:
        known = Circumstances(pack, now, draft.capture.kind, draft.capture.decision_key)
        passage = pass_gates(draft.candidate, known, FIRST_GATES)
        if passage.refused_by is None:
            passed.append(replace(draft, candidate=passage.candidate))
        else:
            refused.append((draft, *passage.refused_by))
    probes = await senses.probes([draft.candidate for draft in passed])
    return [Screened(draft, probe) for draft, probe in zip(passed, probes, strict=True)], refused


async def admit(
    tx: Transaction, vault: Vault, screened: Sequence[Screened], senses: Senses, pack: Pack
) -> tuple[list[Screened], list[Refused]]:
    """The one way in: every draft passes the other gates here, however it came (CAN-9). Nothing is written yet."""
    consents = await _consents(tx, [one.draft.candidate for one in screened])
    rejected = await rejections.found_for(tx, vault, [one.probe for one in screened], senses, pack)
    admitted: list[Screened] = []
    refused: list[Refused] = []
    for one, before in zip(screened, rejected, strict=True):
        candidate, capture = one.draft.candidate, one.draft.capture
        known = Circumstances(
            pack,
            tx.now,
            capture.kind,
            capture.decision_key,
            capture.origin,
            consents.get(candidate.subject or "", ()),
            before,
            senses.by,
        )
        passage = pass_gates(candidate, known, LAST_GATES)
        if passage.refused_by is None:
            probe = replace(one.probe, candidate=passage.candidate)
            admitted.append(Screened(replace(one.draft, candidate=passage.candidate), probe))
        else:
            refused.append((one.draft, *passage.refused_by))
    return admitted, refused


async def store(tx: Transaction, vault: Vault, drafts: Sequence[Draft]) -> None:
    """Write down those that passed."""
    if not drafts:
        return
    holders = {holder_of(draft.candidate.subject, draft.candidate.scope.user_id) for draft in drafts}
    keys = await vault.keys(tx, holders, make=True)
    tick = await tx.tick()
    tx.insert_later("candidate.insert", [_row(draft, keys) for draft in drafts], seq=tick.seq)


def _row(draft: Draft, keys: dict[str, SubjectKey]) -> tuple[Any, ...]:
    candidate, scope, prior_editors = draft.candidate, draft.candidate.scope, draft.prior_editors
    holder = holder_of(candidate.subject, scope.user_id)
    content = fact_content(candidate.text, candidate.value, candidate.evidence_refs)
    edited = candidate.edits is not None
    return (
        candidate.candidate_id,
        candidate.capture_id,
        candidate.capture_id,
        draft.capture.seq,
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
        draft.ordinal,
        candidate.corrects,
        Jsonb([passed.model_dump(exclude_defaults=True) for passed in candidate.gates]),
        Jsonb(candidate.redactions),
        candidate.edits,
        candidate.editor,
        list(prior_editors) if edited else None,
        [*prior_editors, candidate.editor] if edited else [],
        keys[holder].seal("candidates.content", candidate.candidate_id, content),
    )


async def refuse(tx: Transaction, refused: Sequence[Refused], *, keep: bool) -> list[Refusal]:
    """What is told of the refused, and kept if asked: capture, gate, reason and time, no content (CAN-5)."""
    made: list[Refusal] = []
    rows: list[tuple[Any, ...]] = []
    for draft, gate, decision in refused:
        capture_id, why = draft.candidate.capture_id, decision.reasons[0]
        rejection = why.detail if gate == "rejection" and why.code == "rejected_before" else None
        made.append(Refusal(capture_id=capture_id, gate=gate, reason=why.code, at=tx.now, rejection=rejection))
        rows.append((capture_id, draft.candidate.extractor, draft.ordinal, gate, why.code, rejection))
    if not refused or not keep:
        return made
    tick = await tx.tick()
    tx.insert_later("candidate.refuse", rows, seq=tick.seq, at=tick.at)
    for (draft, _, _), refusal in zip(refused, made, strict=True):
        tx.emit(
            "memory.refused",
            "auto",
            capture_id=refusal.capture_id,
            gate=refusal.gate,
            reason=refusal.reason,
            write_class=draft.candidate.write_class,
            **({"rejection": refusal.rejection} if refusal.rejection else {}),
        )
    return made


async def refusals_of(tx: Transaction, capture_id: str) -> list[Refusal]:
    """What became of a capture that was refused."""
    return [Refusal(**row) for row in await tx.rows("candidate.refusals", capture_id=capture_id)]


def consents_asked(candidates: Iterable[Candidate]) -> Named | None:
    """The statement that finds the consents of those candidates' subjects, if any of them has one."""
    subjects = sorted({candidate.subject for candidate in candidates if candidate.subject is not None})
    return ("consent.of_subjects", {"subjects": subjects}) if subjects else None


async def _consents(tx: Transaction, candidates: Sequence[Candidate]) -> dict[str, tuple[Consent, ...]]:
    found: dict[str, list[Consent]] = {}
    if (asked := consents_asked(candidates)) is not None:
        for row in await tx.rows(asked[0], **asked[1]):
            found.setdefault(row["subject"], []).append(consent_of(row))
    return {subject: tuple(records) for subject, records in found.items()}


async def ordinals(tx: Transaction, capture_ids: Iterable[str]) -> dict[str, int]:
    """The next free place among the candidates of those captures."""
    rows = await tx.rows("candidate.ordinals", capture_ids=sorted(set(capture_ids)))
    return {row["capture_id"]: row["ordinal"] for row in rows}


def new_ids(tx: Transaction, count: int) -> list[str]:
    """Ids for that many candidates."""
    return make_ids("mc", count, tx.now)
