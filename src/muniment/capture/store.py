"""Stage 1, capture: everything that happens is stored once, sealed."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import repeat
from typing import Any

from psycopg.types.json import Jsonb
from pydantic_core import to_json

from muniment.archives import store as archived
from muniment.archives.folder import Archives
from muniment.capture.rules import vouched_for, with_aliases_resolved
from muniment.database.row_lists import AT_MOST
from muniment.database.rows import capture_of, open_contents
from muniment.database.sealing import SubjectKey, Vault
from muniment.database.storage import Tick, Transaction
from muniment.errors import IdempotencyConflict, InvalidInput, UnknownLabel
from muniment.language.redaction import holds_personal_data
from muniment.model.capture import Capture, CaptureInput, Receipt, holder_of
from muniment.model.context import Principal
from muniment.model.fields import PERSONAL
from muniment.model.ids import make_ids
from muniment.pack import Pack
from muniment.tracing import with_span

CLOCK_TOLERANCE = timedelta(minutes=5)
# How many sequence numbers before and after a capture the rest of its session is looked for.
SESSION_WITHIN = 1000
# What a capture's row has of its input, beside the content.
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
    "valid_from",
    "valid_until",
)


# Fields that captures did not have at first.
_LATER_FIELDS = ("valid_from", "valid_until", "claims")


@dataclass(slots=True)
class Prepared:
    """Checked captures, each with the bytes to be sealed and the holder of the key that seals them.

    `given` holds, by index, the captures that named an alias, as the caller gave them.
    """

    pack: Pack
    now: datetime
    batch: bool = False
    items: list[CaptureInput] = field(default_factory=list)
    contents: list[bytes] = field(default_factory=list)
    holders: list[str] = field(default_factory=list)
    given: dict[int, CaptureInput] = field(default_factory=dict)

    def field_name(self, index: int, name: str | None) -> str | None:
        """Return the name of an item's field as the caller knows it."""
        return f"captures.{index}.{name}" if self.batch else name

    def add(self, items: Sequence[CaptureInput]) -> None:
        """Check and add items; raises `InvalidInput` naming the field, and in a batch the item."""
        latest, labels = self.now + CLOCK_TOLERANCE, self.pack.labels
        if self.pack.identity.aliases:
            items = self._with_aliases_resolved(items)
        for item in items:
            try:
                if item.classification not in labels:
                    raise UnknownLabel(
                        f"the pack {self.pack.ref} declares no label {item.classification}; it has {', '.join(labels)}",
                        field="classification",
                    )
                if item.observed_at is not None and item.observed_at > latest:
                    raise InvalidInput("lies more than 5 minutes in the future", field="observed_at")
                if item.valid_from is not None and item.valid_until is not None and item.valid_until <= item.valid_from:
                    raise InvalidInput("must lie after valid_from", field="valid_until")
                self._check_qualifiers(item)
                self.contents.append(item.content())
            except InvalidInput as error:
                error.field = self.field_name(len(self.contents), error.field)
                raise
        self.items.extend(items)
        self.holders.extend([holder_of(item.subject, item.user_id) for item in items])

    def _with_aliases_resolved(self, items: Sequence[CaptureInput]) -> list[CaptureInput]:
        found = [with_aliases_resolved(item, self.pack) for item in items]
        for index, (before, after) in enumerate(zip(items, found, strict=True), len(self.items)):
            if after is not before:
                self.given[index] = before
        return found

    def _check_qualifiers(self, item: CaptureInput) -> None:
        """Raise `InvalidInput` for personal data in qualifiers: they are not sealed, so no erasure removes them.

        Names were checked with their types (`OpenName`); of qualifiers whatever a rule of the pack finds is refused.
        """
        if item.qualifiers and holds_personal_data(self.pack, item.qualifiers.values()):
            raise InvalidInput(PERSONAL, field="qualifiers")


@with_span("capture")
async def write(
    tx: Transaction,
    vault: Vault,
    author: Principal,
    prepared: Prepared,
    ids: list[str] | None = None,
    *,
    make_keys: bool = True,
) -> list[Receipt]:
    """Write a batch, all or none, and return a receipt for each item in order.

    `ids` are the captures' ids, if the caller has already made them. Without `make_keys` no data key is created, which
    saves a round trip. Raises `IdempotencyConflict` if a key was already used with other content, and `KeysMissing` if
    a subject has no data key and none may be created.
    """
    if make_keys:
        keys = await vault.keys(tx, set(prepared.holders), make=True)
    else:
        keys = await vault.keys_and_tick(tx, prepared.holders)
    ids = ids or make_ids("cap", len(prepared.items), tx.now)
    known, same = await _claim(tx, vault, author, prepared, ids, keys)
    fresh = [index for index in range(len(ids)) if index not in known and index not in same]
    if not fresh:
        return [known[same.get(index, index)] for index in range(len(ids))]
    tick = await tx.tick()
    uniform, varying = _columns(author, [prepared.items[index] for index in fresh], tick)
    rows = _rows(prepared, fresh, ids, keys, list(varying.values()))
    values: dict[str, Any] = dict(
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
        tx.defer_many("capture.insert", rows, **values)
    else:
        await tx.insert_many("capture.insert", rows, **values)
    for first in range(0, len(fresh), AT_MOST):
        # An event names at most so many rows (AUD-4).
        some = fresh[first : first + AT_MOST]
        kinds = sorted({prepared.items[index].kind for index in some})
        tx.emit("memory.captured", author.id, first=ids[some[0]], last=ids[some[-1]], count=len(some), kinds=kinds)
    if len(fresh) == len(ids):
        return [Receipt(capture_id, tick.seq, tick.at) for capture_id in ids]
    written = known | {index: Receipt(ids[index], tick.seq, tick.at) for index in fresh}
    return [written.get(index) or replace(written[same[index]], repeated=True) for index in range(len(ids))]


def _columns(
    author: Principal, items: list[CaptureInput], tick: Tick
) -> tuple[dict[str, Any], dict[str, Sequence[Any]]]:
    """Return the columns that have the same value in every row, which are sent once, and then the other columns."""
    if len(items) == 1:
        return _row(author, items[0], tick), {}
    fields = [vars(item) for item in items]
    columns: dict[str, Sequence[Any]] = {name: [one[name] for one in fields] for name in COLUMNS}
    columns["qualifiers"] = [Jsonb(named) if named else None for named in columns["qualifiers"]]
    columns["entity"] = [one["fact"].entity if one["fact"] is not None else None for one in fields]
    columns["vouched"] = [vouched_for(author, item) for item in items]
    columns["observed_at"] = [seen or tick.at for seen in columns["observed_at"]]
    uniform = {name: column[0] for name, column in columns.items() if column.count(column[0]) == len(column)}
    return uniform, {name: column for name, column in columns.items() if name not in uniform}


def _row(author: Principal, item: CaptureInput, tick: Tick) -> dict[str, Any]:
    """Return the columns of one capture."""
    fields = vars(item)
    return {name: fields[name] for name in COLUMNS} | {
        "qualifiers": Jsonb(item.qualifiers) if item.qualifiers else None,
        "entity": item.fact.entity if item.fact is not None else None,
        "vouched": vouched_for(author, item),
        "observed_at": item.observed_at or tick.at,
    }


def _rows(
    prepared: Prepared, fresh: list[int], ids: list[str], keys: dict[str, SubjectKey], varying: list[Sequence[Any]]
) -> Iterator[tuple[Any, ...]]:
    others: Iterable[tuple[Any, ...]] = zip(*varying, strict=True) if varying else repeat(())
    for index, rest in zip(fresh, others, strict=False):
        capture_id, holder = ids[index], prepared.holders[index]
        content = keys[holder].seal("captures.content", capture_id, prepared.contents[index])
        yield (capture_id, holder, content, *rest)


async def _claim(
    tx: Transaction, vault: Vault, author: Principal, prepared: Prepared, ids: list[str], keys: dict[str, SubjectKey]
) -> tuple[dict[int, Receipt], dict[int, int]]:
    """Claim the batch's idempotency keys for its author.

    Returns the receipts of items captured before under their key, and for items repeated within the batch the index
    of the first, both by index.
    """
    uses: dict[str, tuple[int, bytes]] = {}
    same: dict[int, int] = {}
    for index, item in enumerate(prepared.items):
        if item.idempotency_key is None:
            continue
        digest = _content_digest(author, item, keys[prepared.holders[index]])
        first, earlier = uses.setdefault(item.idempotency_key, (index, digest))
        if first != index:
            _check_same_content(prepared, index, digest, earlier)
            same[index] = first
    if not uses:
        return {}, {}
    # Sorted, so that two batches with the same keys never wait for each other in a ring.
    claims = [(key, ids[index], digest) for key, (index, digest) in sorted(uses.items())]
    whose: dict[str, Any] = {"principal": author.id, "principal_kind": author.kind}
    tx.defer_many("capture.claim_keys", claims, **whose)
    known: dict[int, Receipt] = {}
    for row in await tx.rows("capture.claimed_keys", keys=sorted(uses), **whose):
        index, digest = uses[row["key"]]
        if row["capture_id"] != ids[index]:
            if digest != row["digest"] and index in prepared.given:
                digest = await _digest_as_given(tx, vault, author, prepared.given[index]) or digest
            if row["owned"]:
                _check_same_content(prepared, index, digest, row["digest"])
            elif digest != row["digest"]:
                continue  # It may be another principal's, of whom nothing is revealed.
            known[index] = Receipt(row["capture_id"], row["seq"], row["captured_at"], repeated=True)
    return known, same


def _content_digest(author: Principal, item: CaptureInput, key: SubjectKey) -> bytes:
    """Hash a capture under its holder's key, to recognise it when it is repeated."""
    # Those that are left out do not count, so that digests from before there were such fields stay equal.
    outside = {"idempotency_key"} | {name for name in _LATER_FIELDS if getattr(item, name) is None}
    return key.digest(to_json([author.kind, author.id, item.model_dump(exclude=outside)]))


async def _digest_as_given(tx: Transaction, vault: Vault, author: Principal, item: CaptureInput) -> bytes | None:
    """Hash a capture as it was stored before its subject's name became an alias; None if nothing was."""
    holder = holder_of(item.subject, item.user_id)
    key = (await vault.keys(tx, [holder], skip_broken=True)).get(holder)
    return _content_digest(author, item, key) if key is not None else None


async def read(
    tx: Transaction,
    vault: Vault,
    capture_ids: Sequence[str],
    archives: Archives | None = None,
    *,
    skip_broken: bool = False,
) -> dict[str, Capture]:
    """Read captures, opened, by id; from the archives too, if they are passed.

    A new candidate may rest only on a capture in the database: its caller passes no archives. With `skip_broken`, what
    does not open has no content.
    """
    rows = await tx.rows("capture.some", capture_ids=list(capture_ids))
    if archives is not None and (elsewhere := sorted({*capture_ids} - {row["capture_id"] for row in rows})):
        rows = rows + await archived.rows(tx, archives, elsewhere)
    contents = await open_contents(tx, vault, "captures", "capture_id", rows, skip_broken=skip_broken)
    return {row["capture_id"]: capture_of(row, content) for row, content in zip(rows, contents, strict=True)}


async def read_one(tx: Transaction, vault: Vault, capture_id: str, archives: Archives | None = None) -> Capture | None:
    """Read one capture, opened; None if it is not there any more."""
    return (await read(tx, vault, [capture_id], archives)).get(capture_id)


async def find(tx: Transaction, vault: Vault, capture_id: str, archives: Archives) -> tuple[Capture | None, bool]:
    """Read one capture, opened, and tell whether it came from an archive; None if it no longer exists."""
    if (capture := await read_one(tx, vault, capture_id)) is not None:
        return capture, False
    capture = await read_one(tx, vault, capture_id, archives)
    return capture, capture is not None


async def observed_at(tx: Transaction, capture_id: str) -> datetime | None:
    """Return when what a capture holds was observed; None if it is not in the database any more."""
    row = await tx.row("capture.observed_at", capture_id=capture_id)
    return row["observed_at"] if row is not None else None


async def around(tx: Transaction, vault: Vault, capture: Capture, count: int) -> list[Capture]:
    """Return the captures of a capture's session around it, up to `count` before and after, opened, in their order.

    What was erased, or does not open, has no content. They are looked for among the captures next to it.
    """
    if capture.session_id is None:
        return []
    where = {"session_id": capture.session_id, "user_id": capture.user_id, "seq": capture.seq}
    rows = await tx.rows("capture.around", **where, capture_id=capture.capture_id, count=count, within=SESSION_WITHIN)
    contents = await open_contents(tx, vault, "captures", "capture_id", rows, skip_broken=True)
    return [capture_of(row, content) for row, content in zip(rows, contents, strict=True)]


def _check_same_content(prepared: Prepared, index: int, digest: bytes, earlier: bytes) -> None:
    if digest != earlier:
        name = prepared.field_name(index, "idempotency_key")
        raise IdempotencyConflict("was used before with other content", field=name)
