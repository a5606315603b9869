"""Rows of the database as the types of `model`, with their content opened."""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel
from pydantic_core import from_json, to_json

from muniment.database.sealing import Vault
from muniment.database.storage import Row, Transaction
from muniment.errors import SealBroken
from muniment.model.candidate import Candidate, Scope, StoredFact, Utterance
from muniment.model.capture import Capture, Content
from muniment.model.consent import Consent
from muniment.model.events import Event
from muniment.model.fields import Tier
from muniment.model.promoted import PromotedMemory
from muniment.model.proposal import ContradictionCheck, Proposal, Verdict, status_of
from muniment.model.recall import Provenance, Record

# How a fact was said: with the fact in its sealed content, where it is known.
_SAID = (*Utterance.model_fields, "context")
_IN_RECORD = ("text", "value", *Utterance.model_fields)


def fields_of(model: type[BaseModel], row: Row, **others: Any) -> dict[str, Any]:
    """The fields of the model: those that are columns of the row under the same name, and the others as given."""
    return {name: row[name] for name in model.model_fields if name in row} | others


def fact_content(fact: StoredFact) -> bytes:
    """The sealed content of a candidate, and of the memory that it becomes, with how it was said."""
    content = {"text": fact.text, "value": fact.value, "evidence_refs": fact.evidence_refs}
    return to_json(content | {name: said for name in _SAID if (said := getattr(fact, name))})


def _fact(content: bytes | None) -> dict[str, Any]:
    """The fields that `fact_content` holds; empty ones if the content was erased."""
    fact: dict[str, Any] = from_json(content) if content is not None else {"text": "", "value": None}
    return fact | {"evidence_refs": tuple(fact.get("evidence_refs", ()))}


def scope_of(row: Row) -> Scope:
    """The scope of a candidate or a memory; the columns have '' or null for none."""
    return Scope(**_scope(row))


def _scope(row: Row) -> dict[str, Any]:
    return {
        "user_id": row["user_id"] or None,
        "session_id": row["session_id"] or None,
        "workflow_id": row["workflow_id"] or None,
        "intent_id": row["intent_id"] or None,
        "qualifiers": row["qualifiers"] or {},
        "required": {name: said for one in row.get("required") or () for name, said in one.items()},
    }


def capture_of(row: Row, content: bytes | None) -> Capture:
    """A capture, with its content if that was opened."""
    opened = Content.model_validate(from_json(content)) if content is not None else None
    return Capture(**fields_of(Capture, row, qualifiers=row["qualifiers"] or {}, content=opened))


def candidate_of(row: Row, content: bytes | None) -> Candidate:
    """A candidate with its content, or without it if it was erased."""
    renamed: dict[str, Any] = {
        "write_class": row["class"],
        "claimed_by": row["claimed_by"] or "",
        "exceptions": row["exceptions"] or {},
    }
    gates = [_passed(one) for one in row["gates"]]
    return Candidate(**fields_of(Candidate, row, **_fact(content), **renamed, gates=gates, scope=scope_of(row)))


def _passed(stored: tuple[str, str] | dict[str, Any]) -> dict[str, Any]:
    """A gate that a candidate passed, from its pair; a row from before migration 33 has the fields themselves."""
    if isinstance(stored, dict):
        return stored
    gate, why = stored
    reason, _, detail = why.partition(" ")
    return {"gate": gate, "reason": reason, "detail": detail}


def verdict_of(row: Row, remark: bytes | None) -> Verdict:
    """A verdict with its reason and note."""
    words: dict[str, Any] = from_json(remark) if remark is not None else {}
    return Verdict(**fields_of(Verdict, row, **words))


def proposal_of(row: Row, candidate: Candidate, verdicts: tuple[Verdict, ...], **beside: Any) -> Proposal:
    """A proposal; its status, tier, priority and assignee follow from its verdicts.

    `beside` has the fields that tell of other open proposals.
    """
    overrides = [verdict for verdict in verdicts if verdict.action in ("override", "approve")]
    tier: Tier = next((v.tier for v in reversed(overrides) if v.tier is not None), row["tier_derived"])
    priority = next((v.priority for v in reversed(overrides) if v.priority is not None), row["priority"])
    holding = next((v for v in reversed(verdicts) if v.action in ("assign", "release")), None)
    duplicate_of = next((v.memory_id for v in verdicts if v.action == "duplicate"), None)
    contradicts: tuple[str, ...] = tuple(row["contradicts"])
    derived: dict[str, Any] = {
        "tenant_id": candidate.tenant_id,
        "seq": row["proposal_seq"],
        "candidate": candidate,
        "write_class": row["class"],
        "tier_target": tier,
        "priority": priority,
        "confidence": candidate.confidence,
        "trust": candidate.trust,
        "contradiction_check": ContradictionCheck(
            existing=duplicate_of or (contradicts[0] if contradicts else None),
            verdict="duplicate" if duplicate_of else "contradicts" if contradicts else "no_conflict",
            others=contradicts[1:],
        ),
        "duplicate_check": duplicate_of,
        "third_party": candidate.third_party,
        "auto_promote_eligible": row["auto_eligible"],
        "status": status_of(tuple(v.action for v in verdicts)),
        "assignee": holding.assignee if holding is not None else None,
        "verdicts": verdicts,
        "version": len(verdicts),
        **beside,
    }
    return Proposal(**fields_of(Proposal, row, **derived))


def provenance_of(row: Row, evidence_refs: tuple[str, ...]) -> Provenance:
    """The provenance of a memory, with the evidence that the caller may see."""
    return Provenance(**fields_of(Provenance, row, evidence_refs=evidence_refs, expires_at=row["ends_at"]))


# What a record has of its memory as it is, and what its provenance has.
_OF_RECORD = (
    *("entity", "predicate", "subject", "classification", "tier", "priority", "confidence"),
    *("valid_from", "valid_until"),
)
_OF_PROVENANCE = tuple(name for name in Provenance.model_fields if name not in ("evidence_refs", "expires_at"))


def record_of(row: Row, content: bytes, score: dict[str, float]) -> Record:
    """A recalled memory with its content; everything in it is validated at once."""
    fact = from_json(content)
    provenance = {name: row[name] for name in _OF_PROVENANCE}
    provenance["evidence_refs"] = tuple(fact["evidence_refs"])
    provenance["expires_at"] = row["ends_at"]
    return Record.model_validate(
        {
            **{name: row[name] for name in _OF_RECORD},
            "id": row["memory_id"],
            **{name: fact[name] for name in _IN_RECORD if name in fact},
            "write_class": row["class"],
            "scope": _scope(row),
            "score": score,
            "provenance": provenance,
        }
    )


def memory_of(row: Row, content: bytes | None) -> PromotedMemory:
    """A promoted memory with its content, or without it if it was erased."""
    renamed = {"write_class": row["class"], "expires_at": row["ends_at"]}
    editor = row["editors"][-1] if row["editors"] else None
    return PromotedMemory(
        **fields_of(PromotedMemory, row, **_fact(content), **renamed, scope=scope_of(row), editor=editor)
    )


def consent_of(row: Row, evidence_refs: tuple[str, ...] = ()) -> Consent:
    """A record of the consent ledger, with the records that follow it."""
    allowed = {"predicates_allowed": row["predicates"], "data_classifications_allowed": row["labels"]}
    return Consent(**fields_of(Consent, row, **allowed, valid_until=row["ends_at"], evidence_refs=evidence_refs))


def event_of(row: Row) -> Event:
    """An event of the log."""
    return Event(**fields_of(Event, row, data=from_json(row["body"])))


async def open_contents(
    tx: Transaction, vault: Vault, table: str, id_column: str, rows: Sequence[Row], *, skip_broken: bool = False
) -> list[bytes | None]:
    """Open the sealed content of rows, in their order; None for what was erased.

    With `skip_broken` also for what does not open; otherwise that raises `SealBroken`.
    """
    keys = await vault.keys(tx, {row["holder"] for row in rows if row["content"]}, skip_broken=skip_broken)
    found: list[bytes | None] = []
    for row in rows:
        if not row["content"]:
            found.append(None)
            continue
        try:
            if row["holder"] not in keys:
                raise SealBroken(f"there is no key for {row[id_column]}")
            found.append(keys[row["holder"]].open(f"{table}.content", row[id_column], row["content"]))
        except SealBroken:
            if not skip_broken:
                raise
            found.append(None)
    return found


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
