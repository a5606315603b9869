"""Rows as artifacts: what the database gives back, with its content opened, as the types of `model`."""

from typing import Any

from pydantic_core import from_json, to_json

from muniment.database.sealing import Vault
from muniment.database.storage import Row, Transaction
from muniment.errors import SealBroken
from muniment.model.candidate import Candidate, Scope
from muniment.model.capture import Capture, Content
from muniment.model.consent import Consent
from muniment.model.events import Event
from muniment.model.fields import Tier
from muniment.model.promoted import PromotedMemory
from muniment.model.proposal import ContradictionCheck, Proposal, Verdict, status_of
from muniment.model.recall import Provenance


def fact_content(text: str, value: Any, evidence_refs: tuple[str, ...]) -> bytes:
    """What is sealed of a candidate and of a memory."""
    return to_json({"text": text, "value": value, "evidence_refs": evidence_refs})


_GONE: dict[str, Any] = {"text": "", "value": None, "evidence_refs": ()}


def scope_of(row: Row) -> Scope:
    """'' and null both stand for "none"."""
    return Scope(
        user_id=row["user_id"] or None,
        session_id=row["session_id"] or None,
        workflow_id=row["workflow_id"] or None,
        intent_id=row["intent_id"] or None,
        qualifiers=row["qualifiers"] or {},
        required={name: said for one in row.get("required") or () for name, said in one.items()},
    )


def capture_of(row: Row, content: bytes | None) -> Capture:
    """A capture, with its content where it was opened."""
    taken = {name: row[name] for name in Capture.model_fields if name in row and name not in ("content", "qualifiers")}
    opened = Content.model_validate(from_json(content)) if content is not None else None
    return Capture(**taken, qualifiers=row["qualifiers"] or {}, content=opened)


def candidate_of(row: Row, content: bytes | None) -> Candidate:
    """A candidate with its content, or what is left of one that was erased."""
    fact: dict[str, Any] = from_json(content) if content is not None else _GONE
    return Candidate(
        candidate_id=row["candidate_id"],
        tenant_id=row["tenant_id"],
        capture_id=row["capture_id"],
        author=row["author"],
        source=row["source"],
        write_class=row["class"],
        entity=row["entity"],
        predicate=row["predicate"],
        value=fact["value"],
        text=fact["text"],
        evidence_refs=tuple(fact["evidence_refs"]),
        raw_confidence=row["raw_confidence"],
        confidence=row["confidence"],
        classification=row["classification"],
        subject=row["subject"],
        scope=scope_of(row),
        trust=row["trust"],
        consent_id=row["consent_id"],
        extractor=row["extractor"],
        claimed_by=row["claimed_by"] or "",
        calibration=row["calibration"],
        flags=tuple(row["flags"]),
        corrects=row["corrects"],
        gates=row["gates"],
        redactions=row["redactions"],
        edits=row["edits"],
        editor=row["editor"],
    )


def verdict_of(row: Row, remark: bytes | None) -> Verdict:
    """A verdict with its reason and note."""
    taken = {name: row[name] for name in Verdict.model_fields if name in row}
    said: dict[str, Any] = from_json(remark) if remark is not None else {}
    return Verdict(**taken, **said)


def proposal_of(row: Row, candidate: Candidate, verdicts: tuple[Verdict, ...]) -> Proposal:
    """A proposal: its status, tier, priority and assignee follow from its verdicts."""
    overrides = [verdict for verdict in verdicts if verdict.action in ("override", "approve")]
    tier: Tier = next((v.tier for v in reversed(overrides) if v.tier is not None), row["tier_derived"])
    priority = next((v.priority for v in reversed(overrides) if v.priority is not None), row["priority"])
    holding = next((v for v in reversed(verdicts) if v.action in ("assign", "release")), None)
    duplicate_of = next((v.memory_id for v in verdicts if v.action == "duplicate"), None)
    contradicts: tuple[str, ...] = tuple(row["contradicts"])
    return Proposal(
        proposal_id=row["proposal_id"],
        tenant_id=candidate.tenant_id,
        seq=row["proposal_seq"],
        candidate=candidate,
        write_class=row["class"],
        tier_target=tier,
        tier_derived=row["tier_derived"],
        priority=priority,
        confidence=candidate.confidence,
        trust=candidate.trust,
        risk=row["risk"],
        consent_check=row["consent_check"],
        contradiction_check=ContradictionCheck(
            existing=duplicate_of or (contradicts[0] if contradicts else None),
            verdict="duplicate" if duplicate_of else "contradicts" if contradicts else "no_conflict",
            others=contradicts[1:],
        ),
        duplicate_check=duplicate_of,
        auto_promote_eligible=row["auto_eligible"],
        human_reasons=tuple(row["human_reasons"]),
        sensitive=row["sensitive"],
        enqueued_at=row["enqueued_at"],
        due_at=row["due_at"],
        status=status_of(tuple(v.action for v in verdicts)),
        assignee=holding.assignee if holding is not None else None,
        verdicts=verdicts,
        version=len(verdicts),
        memory_id=row["memory_id"],
        pack=row["pack"],
        edit_of=row["edit_of"],
        reopens=row["reopens"],
        audits=row["audits"],
    )


def provenance_of(row: Row, evidence_refs: tuple[str, ...]) -> Provenance:
    """The papers of a memory, with the evidence that may be told."""
    taken = {name: row[name] for name in Provenance.model_fields if name not in ("evidence_refs", "expires_at")}
    return Provenance(**taken, evidence_refs=evidence_refs, expires_at=row["ends_at"])


def memory_of(row: Row, content: bytes | None) -> PromotedMemory:
    """A promoted memory with its content, or what is left of one whose content is gone."""
    fact: dict[str, Any] = from_json(content) if content is not None else _GONE
    skipped = ("scope", "expires_at", "editor", "write_class", "text", "value", "evidence_refs")
    taken = {name: row[name] for name in PromotedMemory.model_fields if name in row and name not in skipped}
    return PromotedMemory(
        **taken,
        write_class=row["class"],
        scope=scope_of(row),
        expires_at=row["ends_at"],
        editor=row["editors"][-1] if row["editors"] else None,
        text=fact["text"],
        value=fact["value"],
        evidence_refs=tuple(fact["evidence_refs"]),
    )


def consent_of(row: Row, evidence_refs: tuple[str, ...] = ()) -> Consent:
    """A record of the ledger; its state at a moment is for policy to say."""
    return Consent(
        consent_id=row["consent_id"],
        tenant_id=row["tenant_id"],
        seq=row["seq"],
        action=row["action"],
        subject=row["subject"],
        purpose=row["purpose"],
        predicates_allowed=tuple(row["predicates"]),
        data_classifications_allowed=tuple(row["labels"]),
        basis=row["basis"],
        captured_at=row["captured_at"],
        valid_from=row["valid_from"],
        valid_until=row["ends_at"],
        evidence_refs=evidence_refs,
        auditor_id=row["auditor_id"],
        supersedes=row["supersedes"],
        root_id=row["root_id"],
        superseded_by=row["superseded_by"],
        superseded_from=row["superseded_from"],
        revoked_at=row["revoked_at"],
        swept_at=row["swept_at"],
    )


def event_of(row: Row) -> Event:
    """An event of the log."""
    taken = {name: row[name] for name in Event.model_fields if name != "data"}
    return Event(**taken, data=from_json(row["body"]))


async def open_memory(tx: Transaction, vault: Vault, row: Row, content: bytes | None = None) -> bytes | None:
    """Open the sealed body of a memory's row, or `content` in its place; None if it does not open.

    One memory that was tampered with must not silence all others.
    """
    sealed = row["content"] if content is None else content
    try:
        key = await vault.open_key(tx, row["holder"], row["wrapped_key"], row["key_version"])
        return key.open("memory_bodies.content", row["memory_id"], sealed)
    except SealBroken:
        return None
