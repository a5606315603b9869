"""Imports in the database: items that are new become captures, once each; what became of them (IMP-2)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from muniment.capture import store as captures
from muniment.database import locks
from muniment.database.sealing import Vault
from muniment.database.storage import Transaction
from muniment.model.capture import CaptureInput, holder_of
from muniment.model.context import Principal
from muniment.model.imports import ImportItem, ImportState, ItemFact, ItemFate, ItemOutcome, outcome_of
from muniment.model.proposal import STATUS_AFTER
from muniment.model.speakers import IMPORT
from muniment.pack import Pack
from muniment.transfer.rules import content, identity, key_of

# One import at a time writes in a tenant: an item comes in once, whoever brings it.
_LOCK = "import"
_MARK_BYTES = 16


@dataclass(frozen=True)
class Checked:
    """An item that was checked, with its place in the list and the capture that it becomes."""

    number: int
    item: ImportItem
    capture: CaptureInput


@dataclass(frozen=True)
class Known:
    """Whether an item was brought in before: by which capture, and the key of its next revision.

    `fate` is None for an item that is new or has changed.
    """

    fate: ItemFate | None
    capture_id: str | None
    key: str


async def bring_in(
    tx: Transaction,
    vault: Vault,
    importer: Principal,
    items: Sequence[Checked],
    system: str,
    pack: Pack,
) -> list[ItemOutcome]:
    """Capture the items that are new or have changed, all or none; returns the outcome of each.

    What was imported before, by whomever, is not captured again, nor what was erased since.
    """
    locks.create(tx, [_LOCK])
    await tx.row("promote.take_lock", key=_LOCK)
    known = await known_items(tx, vault, items, system)
    fresh = [(one, before) for one, before in zip(items, known, strict=True) if before.fate is None]
    ids: dict[int, str] = {}
    if fresh:
        prepared = captures.Prepared(pack, tx.now, batch=True)
        prepared.add([one.capture for one, _ in fresh])
        receipts = await captures.write(tx, vault, importer, prepared)
        ids = {one.number: receipt.capture_id for (one, _), receipt in zip(fresh, receipts, strict=True)}
        keys = await vault.keys(tx, prepared.holders)
        claims = [
            (before.key, ids[one.number], keys[holder].digest(content(one.item)))
            for (one, before), holder in zip(fresh, prepared.holders, strict=True)
        ]
        tx.defer_many("transfer.claim_items", claims, system=system)
    return [
        ItemOutcome(
            number=one.number,
            id=one.item.id,
            fate=before.fate or "unread",
            capture_id=ids.get(one.number, before.capture_id),
        )
        for one, before in zip(items, known, strict=True)
    ]


async def known_items(tx: Transaction, vault: Vault, items: Sequence[Checked], system: str) -> list[Known]:
    """Look up which items were brought in before; one whose content changed there counts as new."""
    own = await (vault.tenant_data_key(tx) if tx.writes else vault.existing_tenant_data_key(tx))
    if own is None:
        return [Known(None, None, "")] * len(items)
    marks = [own.digest(identity(one.item.id)).hex()[: 2 * _MARK_BYTES] for one in items]
    holders = [holder_of(one.capture.subject, one.capture.user_id) for one in items]
    latest: dict[str, tuple[int, str, bytes]] = {}
    asked: list[str] = list(dict.fromkeys(marks))
    revision = 1
    while asked:
        by_key = {key_of(mark, revision): mark for mark in asked}
        rows = await tx.rows("transfer.known_items", system=system, keys=sorted(by_key))
        for row in rows:
            latest[by_key[row["key"]]] = (revision, row["capture_id"], row["digest"])
        asked = [by_key[row["key"]] for row in rows]
        revision += 1
    compared = {holder for mark, holder in zip(marks, holders, strict=True) if mark in latest and latest[mark][2]}
    keys = await vault.keys(tx, compared, skip_broken=True) if compared else {}
    found: list[Known] = []
    for one, mark, holder in zip(items, marks, holders, strict=True):
        number, capture_id, digest = latest.get(mark, (0, None, None))
        if digest is None:
            found.append(Known(None, None, mark))
        elif not digest:
            found.append(Known("erased", capture_id, mark))
        elif holder in keys and keys[holder].digest(content(one.item)) == digest:
            found.append(Known("repeated", capture_id, mark))
        else:
            found.append(Known(None, None, key_of(mark, number + 1)))
    return found


async def outcomes(tx: Transaction, capture_ids: Sequence[str]) -> list[ItemOutcome]:
    """Return what became of imported captures, in the order of the ids; ids of anything else are left out."""
    which = {"capture_ids": list(capture_ids)}
    there, facts, refused = await tx.gather(
        ("transfer.captures", which), ("transfer.facts", which), ("transfer.refusals", which)
    )
    read = {row["capture_id"]: row["read"] for row in there}
    by_capture: dict[str, list[ItemFact]] = {}
    for row in facts:
        fate: ItemFate = "waiting" if row["decided"] is None else _FATES.get(row["decided"], "refused")
        by_capture.setdefault(row["capture_id"], []).append(
            ItemFact(
                fate=fate,
                reason=_status(row["decided"]) if fate == "refused" else None,
                reasons=tuple(row["human_reasons"]) if fate == "waiting" else (),
                tier=row["tier"],
                classification=row["classification"],
                proposal_id=row["proposal_id"],
                memory_id=row["memory_id"],
                repeats=row["memory_id"] if fate == "duplicate" else None,
            )
        )
    for row in refused:
        by_capture.setdefault(row["capture_id"], []).append(
            ItemFact(fate="refused", gate=row["gate"], reason=row["reason"])
        )
    found: list[ItemOutcome] = []
    for number, capture_id in enumerate(capture_ids):
        if capture_id not in read:
            continue
        whole = outcome_of(number, None, tuple(by_capture.get(capture_id, ())), capture_id=capture_id)
        found.append(whole if read[capture_id] else whole.model_copy(update={"fate": "unread"}))
    return found


def _status(decided: Any) -> str:
    """Return the status of a fact by the verdict that set it; one without a verdict has its status already."""
    found: str | None = STATUS_AFTER.get(decided)
    return found or str(decided)


# What a final verdict makes of a fact; a rejected one counts as refused.
_FATES: dict[str, ItemFate] = {"approve": "promoted", "duplicate": "duplicate", "edit": "waiting"}


async def state(tx: Transaction, import_id: str) -> ImportState:
    """Return how far an import has come."""
    (row,), statuses = await tx.gather(
        ("transfer.state", {"import_id": import_id}), ("transfer.statuses", {"import_id": import_id})
    )
    counts = Counter[str]()
    for one in statuses:
        counts[_status(one["fate"])] += one["facts"]
    return ImportState(
        import_id=import_id,
        system=(row["origin"] or "").removeprefix(IMPORT) or None,
        counts=dict(sorted(counts.items())),
        **{name: row[name] for name in ("by", "first_at", "last_at", "captures", "unread")},
    )
