"""Whether recalled memory was useful: the recalls that a later capture of their run cites (MET-2)."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from pydantic_core import from_json

from muniment.database.sealing import Vault
from muniment.database.storage import NamedStatement, Row, Transaction
from muniment.errors import SealBroken
from muniment.metrics.window import Rows, Window, gather, pack_of
from muniment.model.metrics import WorkflowHits
from muniment.packs.store import Packs

# The latest recalls that are examined, and of their runs the latest captures that are opened.
RECALLS, CAPTURES = 1000, 2000
_BETWEEN = re.compile(r"[:/#]")

Cited = Mapping[str, Sequence[tuple[int, frozenset[str]]]]


def statements(window: Window) -> list[NamedStatement]:
    """The statements that `measure` needs the rows of."""
    return [window.statement("metrics.recalls"), window.statement("metrics.hits", count=RECALLS)]


async def measure(
    tx: Transaction, opening: Transaction, vault: Vault, packs: Packs, window: Window, found: Rows
) -> tuple[WorkflowHits, ...]:
    """The hits by workflow, the one with most recalls first; captures are opened in `opening`."""
    recalls = found["metrics.hits"]
    plain = await _plain(tx, packs, recalls)
    unnamed = [row for row in recalls if plain[row["recall_id"]] and not row["named"]]
    cited = await _cited(opening, vault, window, unnamed)
    useful = {row["recall_id"] for row in recalls if _was_useful(row, plain[row["recall_id"]], cited)}
    by_workflow: dict[str | None, list[Row]] = defaultdict(list)
    for row in recalls:
        by_workflow[row["workflow_id"]].append(row)
    return tuple(
        WorkflowHits(
            workflow_id=(name := whole["workflow_id"]),
            recalls=whole["n"],
            looked_at=len(by_workflow[name]),
            found=sum(bool(row["result_ids"]) for row in by_workflow[name]),
            cited=sum(row["recall_id"] in useful for row in by_workflow[name]),
        )
        for whole in found["metrics.recalls"]
    )


def _was_useful(recall: Row, plain: frozenset[str], cited: Cited) -> bool:
    """Whether a later capture of its run cites the recall itself, or one of its plain records."""
    if not plain or recall["named"]:
        return bool(plain)
    return any(seq > recall["seq"] and plain & refs for seq, refs in cited.get(recall["run_id"], ()))


async def _plain(tx: Transaction, packs: Packs, recalls: Sequence[Row]) -> dict[str, frozenset[str]]:
    """The plain records of each recall: confident enough for its pack, and on no side of a conflict that it showed."""
    ids = sorted({memory_id for row in recalls for memory_id in row["result_ids"]})
    answers = await gather(tx, ("metrics.returned", {"memory_ids": ids}), ("metrics.sides", {"memory_ids": ids}))
    confidence = {row["memory_id"]: row["confidence"] for row in answers["metrics.returned"]}
    least = {
        ref: (await pack_of(tx, packs, ref)).memory_layer.recall_policy.confidence
        for ref in {row["pack"] for row in recalls}
    }
    return {
        row["recall_id"]: frozenset(
            memory_id for memory_id in row["result_ids"] if confidence.get(memory_id, 0.0) >= least[row["pack"]]
        )
        - _in_conflict(row, answers["metrics.sides"])
        for row in recalls
    }


def _in_conflict(recall: Row, sides: Iterable[Row]) -> set[str]:
    """The memories of conflicts that the recall showed; it returns both sides of a conflict or none."""
    returned, at = set(recall["result_ids"]), recall["stood_at"]
    return {
        memory_id
        for side in sides
        if {side["existing"], side["incoming"]} <= returned
        and side["opened"] <= at
        and (side["ended"] is None or side["ended"] > at)
        for memory_id in (side["existing"], side["incoming"])
    }


async def _cited(tx: Transaction, vault: Vault, window: Window, recalls: Sequence[Row]) -> Cited:
    """By run, the evidence that its captures cite: sequence number of the capture, and the parts of its references."""
    if not recalls:
        return {}
    runs, after = sorted({row["run_id"] for row in recalls}), min(row["seq"] for row in recalls)
    name, parameters = window.statement("metrics.said_by_runs", run_ids=runs, after=after, count=CAPTURES)
    rows = await tx.rows(name, **parameters)
    keys = await vault.keys(tx, {row["holder"] for row in rows}, skip_broken=True)
    cited: dict[str, list[tuple[int, frozenset[str]]]] = defaultdict(list)
    for row in rows:
        try:
            content = from_json(keys[row["holder"]].open("captures.content", row["capture_id"], row["content"]))
        except (SealBroken, KeyError):
            continue
        # `pm_...` as it is, or at the end of a longer name such as memory:pm_...
        refs = frozenset(part for ref in content.get("evidence_refs", ()) for part in _BETWEEN.split(ref))
        if refs:
            cited[row["run_id"]].append((row["seq"], refs))
    return cited
