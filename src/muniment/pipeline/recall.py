"""Stage 5, recall: promoted memory only, under the run's view, in two statements and a record of it."""

from dataclasses import dataclass
from typing import Any

from psycopg.types.json import Jsonb
from pydantic_core import from_json

from muniment.errors import SealBroken
from muniment.model.context import RunContext
from muniment.model.ids import make_id
from muniment.model.recall import ConflictSet, Provenance, Recall, Record
from muniment.pack import Pack
from muniment.policy.visibility import View, sensitive_labels
from muniment.storage.rows import scope_of
from muniment.storage.sealing import TenantKeys, Vault
from muniment.storage.session import Row, Transaction


@dataclass(frozen=True)
class Request:
    """What is asked for beside the view."""

    limit: int
    entities: list[str] | None = None
    only: list[str] | None = None


async def recall(tx: Transaction, vault: Vault, run: RunContext, view: View, pack: Pack, request: Request) -> Recall:
    """Find, order, cut, open and record: nothing is opened that is not returned."""
    keys = await vault.tenant(tx)
    found = await tx.rows("recall.visible", **filters(view, pack, request))
    plain = [row["memory_id"] for row in found if row["part"] == 0]
    low = [row["memory_id"] for row in found if row["part"] == 1]
    sets = _sets([(row["contradiction_id"], row["memory_id"]) for row in found if row["part"] == 2])
    kept_sets = sets[: request.limit]
    totals = {row["part"]: row["total"] for row in found if row["part"] < 2}
    omitted = totals.get(0, 0) - len(plain) + totals.get(1, 0) - len(low)
    omitted += sum(len(members) for _, members in sets[request.limit :])
    wanted = [*plain, *low, *(member for _, members in kept_sets for member in members)]
    recall_id = make_id("rcl", tx.now)
    # The record goes with the bodies and the commit: it adds no round trip, and does not wait for the disk.
    bodies, recorded = await tx.finish(
        ("recall.bodies", {"memory_ids": wanted}),
        (
            "recall.record",
            {
                "recall_id": recall_id,
                "agent_id": run.agent_id,
                "run_id": run.run_id,
                "user_id": run.user_id,
                "pack": pack.ref,
                "request": Jsonb(_recorded(run, view, request)),
                "result_ids": wanted,
                "omitted": omitted,
            },
        ),
    )
    records = {row["memory_id"]: record for row in bodies if (record := _record(row, keys)) is not None}
    return Recall(
        recall_id=recall_id,
        at=tx.now,
        seq=recorded[0]["seq"],
        pack=pack.ref,
        records=tuple(records[memory_id] for memory_id in plain if memory_id in records),
        low_confidence=tuple(records[memory_id] for memory_id in low if memory_id in records),
        conflicts=tuple(
            ConflictSet(
                contradiction_ids=tuple(ids), records=tuple(records[member] for member in members if member in records)
            )
            for ids, members in kept_sets
        ),
        omitted=omitted,
        degraded=() if len(records) == len(wanted) else ("seal_broken",),
    )


def filters(view: View, pack: Pack, request: Request) -> dict[str, Any]:
    """The parameters of the one statement that decides what is visible."""
    return {
        "users": view.users,
        "labels": view.labels,
        "sensitive": sensitive_labels(pack),
        "intents": view.intents,
        "session_id": view.session_id,
        "workflow_id": view.workflow_id,
        "tiers": view.tiers,
        "classes": view.classes,
        "entities": request.entities,
        "only": request.only,
        "qualifiers": Jsonb(view.qualifiers),
        "fresh_working": view.fresh_since["working"],
        "fresh_episodic": view.fresh_since["episodic"],
        "fresh_semantic": view.fresh_since["semantic"],
        "fresh_durable": view.fresh_since["durable"],
        "confidence": pack.memory_layer.recall_policy.confidence,
        "count": request.limit,
    }


def _record(row: Row, keys: TenantKeys | None) -> Record | None:
    """The record, or None if its content does not open: one that was tampered with must not silence all others."""
    try:
        assert keys is not None
        key = keys.subject(row["holder"], row["wrapped_key"], row["key_version"])
        fact = from_json(key.open("memory_bodies.content", row["memory_id"], row["content"]))
    except SealBroken:
        return None
    return Record(
        id=row["memory_id"],
        text=fact["text"],
        value=fact["value"],
        write_class=row["class"],
        entity=row["entity"],
        predicate=row["predicate"],
        subject=row["subject"],
        classification=row["classification"],
        tier=row["tier"],
        priority=row["priority"],
        confidence=row["confidence"],
        scope=scope_of(row),
        score={"priority": row["priority"]},
        provenance=Provenance(
            capture_id=row["capture_id"],
            candidate_id=row["candidate_id"],
            proposal_id=row["proposal_id"],
            verdict_id=row["verdict_id"],
            kind=row["kind"],
            origin=row["origin"],
            source=row["source"],
            author=row["author"],
            approver=row["approver"],
            consent_id=row["consent_id"],
            pack=row["pack"],
            evidence_refs=tuple(fact["evidence_refs"]),
            captured_at=row["captured_at"],
            observed_at=row["observed_at"],
            promoted_at=row["promoted_at"],
            expires_at=row["ends_at"],
            confidence=row["confidence"],
        ),
    )


def _sets(sides: list[tuple[str, str]]) -> list[tuple[list[str], list[str]]]:
    """Contradictions that share a side make one set, so that a set is always whole (REC-4)."""
    pairs: dict[str, list[str]] = {}
    for contradiction_id, memory_id in sides:
        pairs.setdefault(contradiction_id, []).append(memory_id)
    sets: list[tuple[set[str], set[str]]] = []
    for contradiction_id, members in sorted(pairs.items()):
        touching = [one for one in sets if one[1] & set(members)]
        ids = {contradiction_id}.union(*(one[0] for one in touching))
        joined = set(members).union(*(one[1] for one in touching))
        sets = [one for one in sets if one not in touching] + [(ids, joined)]
    return sorted((sorted(ids), sorted(members)) for ids, members in sets)


def _recorded(run: RunContext, view: View, request: Request) -> dict[str, Any]:
    # Everything that decided the answer, as ids and labels; a replay needs no more, an erasure has nothing to reach.
    return {
        "role": run.role,
        "session_id": run.session_id,
        "workflow_id": run.workflow_id,
        "intent_id": run.intent_id,
        "classification_allowed": sorted(run.classification_allowed),
        "qualifiers": run.qualifiers,
        "tiers": view.tiers,
        "classes": view.classes,
        "entities": request.entities,
        "limit": request.limit,
        "trace_id": run.trace_id,
    }
