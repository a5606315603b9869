"""Stage 1, capture: everything that happens is written down, sealed, once."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import repeat
from typing import Any

from psycopg.types.json import Jsonb
from pydantic_core import to_json

from muniment.capture.speakers import vouched_for
from muniment.database.row_lists import AT_MOST
from muniment.database.sealing import SubjectKey, Vault
from muniment.database.storage import Tick, Transaction
from muniment.errors import IdempotencyConflict, InvalidInput, UnknownLabel
from muniment.language.redaction import holds_personal_data
from muniment.model.capture import CaptureInput, Receipt, holder_of
from muniment.model.context import Principal
from muniment.model.fields import PERSONAL
from muniment.model.ids import make_ids
from muniment.pack import Pack
from muniment.tracing import spanned

CLOCK_TOLERANCE = timedelta(minutes=5)
# What a stored capture has of what was handed in, beside its content.
COLUMNS: tuple[str, ...] = (
    "kind",
    "classification",
    "subject",
    "user_id",
    "session_id",
    "run_id",
    "recall_id",
    "intent_id",
    "workflow_id",
    "decision_key",
    "qualifiers",
    "origin",
    "observed_at",
)


@dataclass(slots=True)
class Prepared:
    """Checked captures, each with the bytes that will be sealed and the holder of the key they are sealed with."""

    pack: Pack
    now: datetime
    batch: bool = False
    items: list[CaptureInput] = field(default_factory=list)
    contents: list[bytes] = field(default_factory=list)
    holders: list[str] = field(default_factory=list)

    def named(self, place: int, name: str | None) -> str | None:
        """A field of one item as the caller knows it."""
        return f"captures.{place}.{name}" if self.batch else name

    def add(self, items: Sequence[CaptureInput]) -> None:
        """Check what needs the pack and the time; raises `InvalidInput` naming the field, and the item in a batch."""
        latest, labels = self.now + CLOCK_TOLERANCE, self.pack.labels
        for item in items:
            try:
                if item.classification not in labels:
                    raise UnknownLabel(
                        f"the pack {self.pack.ref} declares no label {item.classification}; it has {', '.join(labels)}",
                        field="classification",
                    )
                if item.observed_at is not None and item.observed_at > latest:
                    raise InvalidInput("lies more than 5 minutes in the future", field="observed_at")
                self._in_the_open(item)
                self.contents.append(item.content())
            except InvalidInput as error:
                error.field = self.named(len(self.contents), error.field)
                raise
        self.items.extend(items)
        self.holders.extend([holder_of(item.subject, item.user_id) for item in items])

    def _in_the_open(self, item: CaptureInput) -> None:
        """What a capture is found by stands in the open, out of an erasure's reach: no personal data there.

        Names were looked at with their types (`OpenName`); of qualifiers whatever a rule of the pack finds is refused.
        """
        if item.qualifiers and holds_personal_data(self.pack, item.qualifiers.values()):
            raise InvalidInput(PERSONAL, field="qualifiers")


@spanned("capture")
async def write(
    tx: Transaction, vault: Vault, author: Principal, prepared: Prepared, ids: list[str] | None = None
) -> list[Receipt]:
    """Write the batch, all or none, and give a receipt for each item in order; under these ids, if there are any yet.

    Raises `IdempotencyConflict` when a key was used before with other content.
    """
    keys = await vault.keys(tx, set(prepared.holders), make=True)
    ids = ids or make_ids("cap", len(prepared.items), tx.now)
    known, same = await _claim(tx, author, prepared, ids, keys)
    fresh = [place for place in range(len(ids)) if place not in known and place not in same]
    if not fresh:
        return [known[same.get(place, place)] for place in range(len(ids))]
    tick = await tx.tick()
    uniform, varying = _columns(author, [prepared.items[place] for place in fresh], tick)
    rows = _rows(prepared, fresh, ids, keys, list(varying.values()))
    given: dict[str, Any] = dict(
        each=("capture_id", "holder", "content", *varying),
        **uniform,
        seq=tick.seq,
        at=tick.at,
        author=author.id,
        source=author.kind,
        pack=prepared.pack.ref,
        ontology_version=prepared.pack.meta.ontology_version,
    )
    if len(fresh) == 1:
        tx.defer_many("capture.insert", rows, **given)
    else:
        await tx.insert_many("capture.insert", rows, **given)
    for first in range(0, len(fresh), AT_MOST):
        # An event tells of at most so many rows (AUD-4).
        some = fresh[first : first + AT_MOST]
        kinds = sorted({prepared.items[place].kind for place in some})
        tx.emit("memory.captured", author.id, first=ids[some[0]], last=ids[some[-1]], count=len(some), kinds=kinds)
    if len(fresh) == len(ids):
        return [Receipt(capture_id, tick.seq, tick.at) for capture_id in ids]
    written = known | {place: Receipt(ids[place], tick.seq, tick.at) for place in fresh}
    return [written.get(place) or replace(written[same[place]], repeated=True) for place in range(len(ids))]


def _columns(
    author: Principal, items: list[CaptureInput], tick: Tick
) -> tuple[dict[str, Any], dict[str, Sequence[Any]]]:
    """The batch by column, and apart what is the same in all its rows: that is sent once."""
    fields = [vars(item) for item in items]
    columns: dict[str, Sequence[Any]] = {name: [one[name] for one in fields] for name in COLUMNS}
    columns["qualifiers"] = [Jsonb(named) if named else None for named in columns["qualifiers"]]
    columns["entity"] = [one["fact"].entity if one["fact"] is not None else None for one in fields]
    columns["vouched"] = [vouched_for(author, item) for item in items]
    columns["observed_at"] = [seen or tick.at for seen in columns["observed_at"]]
    uniform = {name: column[0] for name, column in columns.items() if column.count(column[0]) == len(column)}
    return uniform, {name: column for name, column in columns.items() if name not in uniform}


def _rows(
    prepared: Prepared, fresh: list[int], ids: list[str], keys: dict[str, SubjectKey], varying: list[Sequence[Any]]
) -> Iterator[tuple[Any, ...]]:
    others: Iterable[tuple[Any, ...]] = zip(*varying, strict=True) if varying else repeat(())
    for place, rest in zip(fresh, others, strict=False):
        capture_id, holder = ids[place], prepared.holders[place]
        content = keys[holder].seal("captures.content", capture_id, prepared.contents[place])
        yield (capture_id, holder, content, *rest)


async def _claim(
    tx: Transaction, author: Principal, prepared: Prepared, ids: list[str], keys: dict[str, SubjectKey]
) -> tuple[dict[int, Receipt], dict[int, int]]:
    """Claim the batch's idempotency keys for its author: what was captured under one before comes back with its
    receipt, and what stands in the batch a second time with the place of the first."""
    uses: dict[str, tuple[int, bytes]] = {}
    same: dict[int, int] = {}
    for place, item in enumerate(prepared.items):
        if item.idempotency_key is None:
            continue
        digest = keys[prepared.holders[place]].digest(
            to_json([author.kind, author.id, item.model_dump(exclude={"idempotency_key"})])
        )
        first, said = uses.setdefault(item.idempotency_key, (place, digest))
        if first != place:
            _same_content(prepared, place, digest, said)
            same[place] = first
    if not uses:
        return {}, {}
    # Sorted, so that two batches with the same keys never wait for each other in a ring.
    claims = [(key, ids[place], digest) for key, (place, digest) in sorted(uses.items())]
    whose: dict[str, Any] = {"principal": author.id, "principal_kind": author.kind}
    tx.defer_many("capture.claim_keys", claims, **whose)
    known: dict[int, Receipt] = {}
    for row in await tx.rows("capture.claimed_keys", keys=sorted(uses), **whose):
        place, digest = uses[row["key"]]
        if row["capture_id"] != ids[place]:
            if row["owned"]:
                _same_content(prepared, place, digest, row["digest"])
            elif digest != row["digest"]:
                continue  # Perhaps another principal's, of whom nothing is told.
            known[place] = Receipt(row["capture_id"], row["seq"], row["captured_at"], repeated=True)
    return known, same


def _same_content(prepared: Prepared, place: int, digest: bytes, said: bytes) -> None:
    if digest != said:
        name = prepared.named(place, "idempotency_key")
        raise IdempotencyConflict("was used before with other content", field=name)
