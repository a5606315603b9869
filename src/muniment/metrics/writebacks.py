"""Personal data that was promoted although it should not have been: counted, and found by a scan in passes (MET-4)."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from psycopg.types.json import Jsonb
from pydantic_core import from_json

from muniment.database.sealing import Vault
from muniment.database.storage import LATEST, NamedStatement, Row, Transaction
from muniment.errors import SealBroken
from muniment.metrics.pii_scan import personal_data, personal_data_in
from muniment.metrics.window import Rows, Window, gather, pack_of
from muniment.model.metrics import PiiKind, PiiMetrics, PiiScan, Tally
from muniment.pack.guardrails import Guardrails
from muniment.packs.store import Packs

# Memories that one pass scans; that `measure` scans beyond the last pass; ids that the metrics name.
AT_ONCE, UNSCANNED, NAMED = 500, 500, 1000


class ScanPass(NamedTuple):
    """One pass of the scan: its result, and the last memory that it scanned."""

    scan: PiiScan
    seq: int
    memory_id: str


def statements(window: Window) -> list[NamedStatement]:
    """The statements that `measure` needs the rows of."""
    return [
        window.statement("metrics.without_consent", count=NAMED),
        window.statement("metrics.unmasked"),
        window.statement("metrics.scanned"),
    ]


async def measure(tx: Transaction, vault: Vault, packs: Packs, window: Window, found: Rows) -> PiiMetrics:
    """What the scan found in the window's promotions, with the first memories it did not reach scanned here."""
    seq, after = _last_scanned(found["metrics.scanned"])
    if seq < window.first_seq:
        seq, after = window.first_seq, "~"  # after all memories of that sequence number
    rest = {"after_seq": seq, "after": after, "last_seq": window.last_seq}
    answers = await gather(tx, ("metrics.to_scan", rest | {"count": UNSCANNED}), ("metrics.not_scanned", rest))
    looked = await _scan(tx, vault, packs, answers["metrics.to_scan"])
    unmasked: dict[str, Sequence[str]] = {row["memory_id"]: row["kinds"] for row in found["metrics.unmasked"]}
    unmasked |= looked.found
    rows = found["metrics.without_consent"]
    without, count = {row["memory_id"] for row in rows}, rows[0]["n"] if rows else 0
    kinds = Counter(kind for found_kinds in unmasked.values() for kind in found_kinds)
    return PiiMetrics(
        violations=count + len(unmasked.keys() - without),
        without_consent=count,
        unmasked=len(unmasked),
        unmasked_kinds=tuple(Tally(name=kind, count=count) for kind, count in sorted(kinds.items())),
        memory_ids=tuple(sorted({*without, *unmasked}))[:NAMED],
        waiting=answers["metrics.not_scanned"][0]["n"] - looked.scanned,
        unreadable=looked.unreadable,
    )


async def next_pass(tx: Transaction, vault: Vault, packs: Packs, count: int = AT_ONCE) -> ScanPass | None:
    """Scan the next memories in the order of their promotion; None if all were scanned.

    Reading needs keys, and recording (`record`) another login; so these are two transactions.
    """
    seq, after = _last_scanned(await tx.rows("metrics.scanned"))
    rows = await tx.rows("metrics.to_scan", after_seq=seq, after=after, last_seq=LATEST, count=count)
    if not rows:
        return None
    scan = await _scan(tx, vault, packs, rows)
    return ScanPass(scan.model_copy(update={"done": len(rows) < count}), rows[-1]["born_seq"], rows[-1]["memory_id"])


async def record(tx: Transaction, passed: ScanPass) -> None:
    """Record a pass; recording the same pass twice changes nothing."""
    kinds = {memory_id: list(found) for memory_id, found in passed.scan.found.items()}
    await tx.do(
        "metrics.record_scan",
        seq=passed.seq,
        memory_id=passed.memory_id,
        scanned=passed.scan.scanned,
        found=Jsonb(kinds),
    )


def _last_scanned(rows: Sequence[Row]) -> tuple[int, str]:
    return (rows[0]["seq"], rows[0]["memory_id"]) if rows else (0, "")


async def _scan(tx: Transaction, vault: Vault, packs: Packs, rows: Sequence[Row]) -> PiiScan:
    keys = await vault.keys(tx, {row["holder"] for row in rows if row["content"] is not None}, skip_broken=True)
    rules = {ref: (await pack_of(tx, packs, ref)).policy_layer.guardrails for ref in {row["pack"] for row in rows}}
    allowed = {ref: _allowed_kinds(one) for ref, one in rules.items()}
    found: dict[str, tuple[PiiKind, ...]] = {}
    unreadable = 0
    for row in rows:
        if row["content"] is None:
            continue  # erased
        try:
            fact = from_json(keys[row["holder"]].open("memory_bodies.content", row["memory_id"], row["content"]))
        except (SealBroken, KeyError):
            unreadable += 1
            continue
        exceptions = rules[row["pack"]].redaction_exceptions.forms
        kinds = personal_data(fact["text"], exceptions) | personal_data_in(fact["value"], exceptions=exceptions)
        if kinds := kinds - allowed[row["pack"]]:
            found[row["memory_id"]] = tuple(sorted(kinds))
    return PiiScan(scanned=len(rows), found=found, unreadable=unreadable)


def _allowed_kinds(guardrails: Guardrails) -> frozenset[str]:
    """The kinds of personal data that the pack does not mask: its detectors that are turned off."""
    rules = guardrails.redaction_rules
    on = {rule.detector for rule in rules if rule.enabled}
    return frozenset(str(rule.detector) for rule in rules if rule.detector is not None and rule.detector not in on)
