"""The consent ledger: grants, renewals and revocations, each a new record."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

import psycopg
from pydantic_core import from_json, to_json

from muniment.consent import rules as policy
from muniment.database import cursors
from muniment.database.rows import consent_of
from muniment.database.sealing import SubjectKey, Vault
from muniment.database.storage import LATEST, Row, Transaction
from muniment.errors import ConsentChanged, InvalidInput, NotFound, UnknownLabel
from muniment.model.capture import holder_of
from muniment.model.consent import Consent, ConsentInput, ConsentReach
from muniment.model.context import Principal
from muniment.model.fields import Tier, WriteClass
from muniment.model.ids import make_id
from muniment.model.promoted import PromotedMemory
from muniment.pack import Pack

# Memories named in a reach, at most; the statement returns as many of each tier and class.
REACHED = 100
# Chains read of one subject.
CHAINS = 100
# Records that bases are taken from.
_LATEST = 500


def check(terms: ConsentInput, pack: Pack, now: datetime) -> None:
    """Check what needs the pack and the time; raises `InvalidInput`."""
    check_names(terms, pack)
    if terms.valid_until is not None and terms.valid_until <= max(terms.valid_from or now, now):
        raise InvalidInput("must lie in the future, after valid_from", field="valid_until")


def check_names(terms: ConsentInput, pack: Pack) -> None:
    """Check the subject's namespace and the labels by the pack; raises `InvalidInput`."""
    if not pack.identity.knows_namespace(terms.subject):
        namespace = terms.subject.partition(":")[0]
        raise InvalidInput(f"the pack {pack.ref} declares no namespace {namespace}", field="subject")
    for label in terms.data_classifications_allowed:
        if not pack.has_label(label):
            raise UnknownLabel(f"the pack {pack.ref} declares no label {label}", field="data_classifications_allowed")


async def grant(tx: Transaction, vault: Vault, officer: Principal, terms: ConsentInput, pack: Pack) -> Consent:
    """Record a checked consent; with `supersedes` it replaces an earlier one.

    An alias of its subject is resolved; what supersedes keeps the name of the earlier one.
    Raises `NotFound`, or `ConsentChanged` when that one was superseded before.
    """
    terms = await _with_alias_resolved(tx, vault, terms, pack)
    holder = holder_of(terms.subject, None)
    keys = await lock_subjects(tx, vault, [holder])
    consent_id = make_id("cns", tx.now)
    root_id = consent_id
    if terms.supersedes is not None:
        earlier = await one(tx, vault, terms.supersedes, field="supersedes")
        if earlier.subject != terms.subject:
            raise InvalidInput("is the consent of another subject", field="supersedes")
        if earlier.superseded_by is not None or earlier.action == "revoke":
            raise ConsentChanged("was superseded or revoked before", field="supersedes")
        if (
            earlier.purpose == terms.purpose
            and earlier.swept_at is None
            and policy.unbroken(earlier, max(terms.valid_from or tx.now, tx.now))
        ):
            root_id = earlier.root_id
        elif terms.valid_from is not None and terms.valid_from > tx.now:
            # The earlier one would go on until then, and no revocation could reach it.
            raise InvalidInput(
                "a consent that begins later must continue the one it supersedes: same purpose, no gap",
                field="valid_from",
            )
    tick = await tx.tick()
    if terms.valid_until is not None and terms.valid_until <= tick.at:
        # The tenant's clock is ahead of the caller's.
        raise InvalidInput("must lie in the future", field="valid_until")
    await insert(
        tx,
        terms,
        action="grant",
        consent_id=consent_id,
        valid_from=terms.valid_from or tx.now,
        valid_until=terms.valid_until,
        auditor_id=officer.id,
        supersedes=terms.supersedes,
        root_id=root_id,
        evidence=keys[holder].seal("consents.evidence", consent_id, to_json(terms.evidence_refs)),
    )
    what = {"consent_id": consent_id, "purpose": terms.purpose, "supersedes": terms.supersedes}
    tx.emit("memory.consent_granted", officer.id, **what)
    return await one(tx, vault, consent_id)


async def _with_alias_resolved(tx: Transaction, vault: Vault, terms: ConsentInput, pack: Pack) -> ConsentInput:
    subject = pack.identity.resolve(terms.subject)
    if terms.supersedes is not None:
        earlier = await one(tx, vault, terms.supersedes, field="supersedes")
        # A chain of consents is of one name: its memories rest on it.
        subject = earlier.subject if pack.identity.resolve(earlier.subject) == subject else subject
    return terms.model_copy(update={"subject": subject})


async def revoke(
    tx: Transaction, vault: Vault, officer: Principal, consent_id: str, evidence_refs: tuple[str, ...]
) -> Consent:
    """Revoke a consent with a new record that supersedes it; raises `NotFound` or `ConsentChanged`."""
    earlier = await one(tx, vault, consent_id)
    holder = holder_of(earlier.subject, None)
    keys = await lock_subjects(tx, vault, [holder])
    earlier = await one(tx, vault, consent_id)
    if earlier.superseded_by is not None or earlier.action == "revoke":
        raise ConsentChanged("was superseded or revoked before", field="consent_id")
    revocation_id = make_id("cns", tx.now)
    await insert(
        tx,
        earlier,
        action="revoke",
        consent_id=revocation_id,
        valid_from=tx.now,
        valid_until=None,
        auditor_id=officer.id,
        supersedes=consent_id,
        root_id=earlier.root_id,
        evidence=keys[holder].seal("consents.evidence", revocation_id, to_json(evidence_refs)),
    )
    tx.emit("memory.consent_revoked", officer.id, consent_id=consent_id, purpose=earlier.purpose)
    return await one(tx, vault, consent_id)


async def lock_subjects(tx: Transaction, vault: Vault, holders: Sequence[str]) -> dict[str, SubjectKey]:
    """Lock subjects exclusively, in this order, and return their keys.

    It is done first of all, as a shared lock cannot be raised safely.
    """
    there = [await tx.row("consent.lock_subject", holder=holder) for holder in holders]
    keys = await vault.keys(tx, holders, make=True)
    for holder, row in zip(holders, there, strict=True):
        if row is None:
            await tx.row("consent.lock_subject", holder=holder)
    return keys


async def listed(
    tx: Transaction,
    vault: Vault,
    subjects: Sequence[str] | None,
    limit: int,
    after: str | None = None,
    *,
    latest: bool = False,
    ends_by: datetime | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> list[Consent]:
    """List the records of a subject under all its names, or of all, oldest or latest first, each with its state now.

    With `ends_by` only consents in force that end by then and were not renewed; with `since` and `until` only records
    that were captured from then on and before then. Raises `NotFound` for an `after` that
    is no consent of the tenant.
    """
    place = await cursors.page_start(tx, "consent.place", after, latest_first=latest)
    statement = "consent.latest" if latest else "consent.list"
    narrowed = {"subjects": subjects, "ends_by": ends_by, "since": since, "until": until}
    rows = await tx.rows(statement, count=limit, **narrowed, **place)
    return await _opened(tx, vault, rows)


async def reach(
    tx: Transaction, *, consent_id: str | None = None, subjects: Sequence[str] | None = None
) -> list[ConsentReach]:
    """Count what rests on a consent and its renewals, or on each of a subject's, latest first; raises `NotFound`."""
    which = {"consent_id": consent_id, "subjects": subjects, "chains": CHAINS}
    by_chain: dict[str, list[Row]] = {}
    for row in await tx.rows("consent.reach", **which, seq=LATEST, at=tx.now, sensitive=[]):
        by_chain.setdefault(row["root_id"], []).append(row)
    if consent_id is not None and not by_chain:
        raise NotFound("no such consent", field="consent_id")
    return [_reached(root_id, by_chain[root_id]) for root_id in sorted(by_chain, reverse=True)]


def _reached(root_id: str, rows: Sequence[Row]) -> ConsentReach:
    seen = [row for row in rows if row["seen"]]
    by_tier, by_class = Counter[Tier](), Counter[WriteClass]()
    for row in seen:
        by_tier[row["tier"]] += row["memories"]
        by_class[row["class"]] += row["memories"]
    return ConsentReach(
        root_id=root_id,
        memories=by_tier.total(),
        by_tier=dict(by_tier),
        by_class=dict(by_class),
        memory_ids=tuple(sorted((one for row in seen for one in row["memory_ids"]), reverse=True)[:REACHED]),
        hidden=sum(row["memories"] for row in rows if row["seen"] is False),
    )


async def allows(tx: Transaction, memory: PromotedMemory) -> bool:
    """Whether the consent that a memory rests on, or its renewal, is live."""
    if memory.consent_id is None:
        return True
    assert memory.subject is not None, "what rests on a consent has a subject"
    records = [consent_of(row) for row in await tx.rows("consent.of_subjects", subjects=[memory.subject])]
    roots = {record.root_id for record in records if record.consent_id == memory.consent_id}
    return any(policy.state_of(record, tx.now) == "active" for record in records if record.root_id in roots)


async def one(tx: Transaction, vault: Vault, consent_id: str, field: str = "consent_id") -> Consent:
    """Read one record with its state now; raises `NotFound`."""
    row = await tx.row("consent.one", consent_id=consent_id)
    if row is None:
        raise NotFound("no such consent", field=field)
    return (await _opened(tx, vault, [row]))[0]


async def some(tx: Transaction, vault: Vault, consent_ids: Sequence[str]) -> list[Consent]:
    """Read those of these records that there are, each with its state now."""
    return await _opened(tx, vault, await tx.rows("consent.some", consent_ids=list(consent_ids)))


async def _opened(tx: Transaction, vault: Vault, rows: Sequence[Row]) -> list[Consent]:
    keys = await vault.keys(tx, {holder_of(row["subject"], None) for row in rows if row["evidence"]})
    records: list[Consent] = []
    for row in rows:
        evidence: list[str] = []
        if row["evidence"]:  # blank where the subject was erased
            key = keys[holder_of(row["subject"], None)]
            evidence = from_json(key.open("consents.evidence", row["consent_id"], row["evidence"]))
        record = consent_of(row, tuple(evidence))
        records.append(record.model_copy(update={"state": policy.state_of(record, tx.now)}))
    return records


async def insert(tx: Transaction, terms: Consent | ConsentInput, **values: object) -> None:
    """Insert a record on those terms; raises `ConsentChanged` where another record superseded the same one."""
    tick = await tx.tick()
    lists = {"predicates": list(terms.predicates_allowed), "labels": list(terms.data_classifications_allowed)}
    same = {"subject": terms.subject, "purpose": terms.purpose, "basis": terms.basis}
    values = {"stated_at": None, "stated_auditor": None} | values
    try:
        await tx.do("consent.insert", seq=tick.seq, at=tick.at, **lists, **same, **values)
    except psycopg.errors.UniqueViolation as error:
        raise ConsentChanged("was superseded or revoked before", field="supersedes") from error


async def bases(tx: Transaction) -> list[str]:
    """Return the bases of the latest records, by name."""
    return [row["basis"] for row in await tx.rows("consent.bases", most=_LATEST)]
