"""Adoption of corrections: whether decisions that recalled a correction differ from those before it (COR-3)."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from muniment.database.rows import capture_of
from muniment.database.sealing import Vault
from muniment.database.storage import Transaction
from muniment.errors import SealBroken
from muniment.model.capture import Content
from muniment.model.metrics import Adoption


@dataclass(frozen=True)
class _Decision:
    seq: int
    about: tuple[str | None, str | None]
    recalled: frozenset[str]
    content: tuple[str | None, Any]


async def measure(tx: Transaction, vault: Vault, *, only: frozenset[str] | None = None) -> Adoption:
    """Measure the adoption of the tenant's corrections, or of `only` those.

    A correction is measured if a decision recalled it and an earlier one of the same intent and decision key recalled
    what it replaced; it is adopted if one such decision differs from the last one before it.
    """
    replaced: dict[str, set[str]] = defaultdict(set)
    for row in await tx.rows("audit.corrections"):
        if only is not None and row["memory_id"] not in only:
            continue
        replaced[row["memory_id"]] |= {row["replaced"]} if row["replaced"] is not None else set()
    decisions = await _decisions(tx, vault, sorted({*replaced, *(old for olds in replaced.values() for old in olds)}))
    verdicts = [_adopted(correction, olds, decisions) for correction, olds in replaced.items()]
    return Adoption(
        corrections=len(verdicts),
        measured=sum(verdict is not None for verdict in verdicts),
        adopted=sum(verdict is True for verdict in verdicts),
    )


def _adopted(correction: str, replaced: set[str], decisions: list[_Decision]) -> bool | None:
    differs: list[bool] = []
    for after in decisions:
        if correction not in after.recalled:
            continue
        before = [
            one for one in decisions if one.about == after.about and one.seq < after.seq and one.recalled & replaced
        ]
        if before:
            differs.append(before[-1].content != after.content)
    return any(differs) if differs else None


async def _decisions(tx: Transaction, vault: Vault, memory_ids: list[str]) -> list[_Decision]:
    """Read the decisions that rested on a recall of one of those memories, in order."""
    rows = await tx.rows("audit.decisions_on", memory_ids=memory_ids)
    keys = await vault.keys(tx, {row["holder"] for row in rows}, skip_broken=True)
    found: list[_Decision] = []
    for row in rows:
        try:
            opened = keys[row["holder"]].open("captures.content", row["capture_id"], row["content"])
        except (SealBroken, KeyError):
            continue
        capture = capture_of(row, opened)
        content = capture.content or Content()
        about = (capture.intent_id, capture.decision_key)
        found.append(_Decision(capture.seq, about, frozenset(row["result_ids"]), (content.text, content.payload)))
    return found
