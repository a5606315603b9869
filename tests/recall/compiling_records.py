"""Records and conflict sets, as the tests of compiling begin from them."""

from datetime import UTC, datetime
from typing import Any

from muniment.language.embedding.tokenizers import CharacterTokenizer
from muniment.model.candidate import Scope
from muniment.model.compiled import Compiled
from muniment.model.recall import ConflictSet, Provenance, Record
from muniment.recall.compiling import compile_memory

OBSERVED = datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC)
ROOM = 100_000

_IN_PROVENANCE = frozenset(Provenance.model_fields) - {"confidence"}


def record(memory_id: str = "mem_1", text: str = "the channel is email", **fields: Any) -> Record:
    """A preference of customer:c1, approved by op_1; fields of the provenance are given like those of the record."""
    provenance_fields: dict[str, Any] = {
        "capture_id": "cap_1",
        "candidate_id": "mc_1",
        "proposal_id": "mp_1",
        "verdict_id": "mv_1",
        "kind": "message",
        "origin": None,
        "source": "agent",
        "author": "bot",
        "approver": "op_1",
        "consent_id": None,
        "pack": "builtin@1",
        "evidence_refs": (),
        "captured_at": OBSERVED,
        "observed_at": OBSERVED,
        "promoted_at": OBSERVED,
        "expires_at": None,
        "confidence": fields.get("confidence", 0.8),
        **{name: fields.pop(name) for name in list(fields) if name in _IN_PROVENANCE},
    }
    given: dict[str, Any] = {
        "write_class": "preference",
        "entity": "customer:c1",
        "predicate": "prefers_channel",
        "subject": "customer:c1",
        "classification": "INTERNAL",
        "tier": "semantic",
        "priority": 0.5,
        "confidence": 0.8,
        "scope": Scope(),
        **fields,
    }
    return Record(id=memory_id, text=text, provenance=Provenance(**provenance_fields), **given)


def conflict(*records: Record, contradiction_id: str = "ctr_1") -> ConflictSet:
    return ConflictSet(contradiction_ids=(contradiction_id,), records=records)


def compiled(*records: Record, **given: Any) -> Compiled:
    """Compiled as Markdown with more room than any of the tests fills, unless told otherwise."""
    return compile_memory(
        records,
        given.pop("low_confidence", ()),
        given.pop("conflicts", ()),
        **{"token_budget": ROOM, "tokens": CharacterTokenizer(), "format": "markdown", **given},
    )


def shown(output: Compiled) -> list[tuple[str, list[str], bool]]:
    """Of each block its kind, its memories, and whether it was shortened."""
    return [
        (entry.kind, [cited.memory_id for cited in entry.citations], entry.truncated)
        for entry in output.manifest.entries
    ]
