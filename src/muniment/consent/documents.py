"""Consent documents: consents that were recorded elsewhere, with their own ids, times and evidence (CON-8)."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from pydantic_core import to_json

from muniment.consent import store
from muniment.database.sealing import SubjectKey, Vault
from muniment.database.storage import Transaction
from muniment.errors import Conflict, Denied, InvalidInput, MunimentError
from muniment.model.capture import holder_of
from muniment.model.consent import Consent, ConsentDocument, ConsentOutcome
from muniment.model.context import Principal
from muniment.model.fields import build
from muniment.model.ids import make_ids
from muniment.pack import Pack

# What only a document has; by one of these it is told from a grant.
MARKS = frozenset({"subject_ceid", "scope", "consent_id"})


def is_document(fields: Mapping[str, Any]) -> bool:
    """Whether these are the fields of a document, and not of a grant."""
    return not MARKS.isdisjoint(fields)


def read_document(fields: Any, officer: Principal, pack: Pack, now: datetime) -> ConsentDocument:
    """Check a document; raises `InvalidInput`, and `Denied` if it names another tenant than the officer's (ISO-2)."""
    if not isinstance(fields, Mapping):
        raise InvalidInput("expected an object with the fields of a consent")
    document = build(ConsentDocument, cast("Mapping[str, Any]", fields))
    if document.tenant_id != officer.tenant_id:
        raise Denied("is another tenant than the credential's", field="tenant_id")
    for name in ("captured_at", "revoked_at"):
        at: datetime | None = getattr(document, name)
        if at is not None and at > now:
            raise InvalidInput("lies in the future", field=name)
    store.check_names(document.terms, pack)
    return document


async def record_all(
    tx: Transaction, vault: Vault, officer: Principal, documents: Sequence[ConsentDocument], pack: Pack
) -> list[Consent]:
    """Record documents, each under its own id; one that was revoked gets its revocation too.

    What is in the ledger with the same content is left as it is. Raises `Conflict` for an id with other content.
    INVARIANT: all subjects are locked before the tenant's clock, in the order of their names.
    """
    known = await _known(tx, vault, [one.consent_id for one in documents])
    new: dict[str, ConsentDocument] = {}
    for one in documents:
        resolved = _resolved(one, pack)
        if (there := known.get(one.consent_id)) is not None:
            _check_same(there.document, resolved)
        elif (before := new.setdefault(one.consent_id, resolved)) is not resolved:
            _check_same(before, resolved)
    if new:
        keys = await store.lock_subjects(tx, vault, sorted({holder_of(one.subject_ceid, None) for one in new.values()}))
        for one in new.values():
            await _record(tx, officer, one, keys[holder_of(one.subject_ceid, None)])
    written = await _known(tx, vault, [one.consent_id for one in documents])
    return [written[one.consent_id] for one in documents]


def _resolved(document: ConsentDocument, pack: Pack) -> ConsentDocument:
    subject = pack.identity.resolve(document.subject_ceid)
    return document if subject == document.subject_ceid else document.model_copy(update={"subject_ceid": subject})


def _check_same(there: ConsentDocument, document: ConsentDocument) -> None:
    # What was revoked here since stays revoked, whatever an older document says.
    given = document.revoked_at or there.revoked_at
    if there.model_dump() != document.model_copy(update={"revoked_at": given}).model_dump():
        raise Conflict("is recorded with other content", field="consent_id")


async def _known(tx: Transaction, vault: Vault, ids: Sequence[str]) -> dict[str, Consent]:
    found = await store.some(tx, vault, ids)
    return {one.consent_id: one for one in found}


async def _record(tx: Transaction, officer: Principal, document: ConsentDocument, key: SubjectKey) -> None:
    stated = {"stated_at": document.captured_at, "stated_auditor": document.auditor_id}
    own: dict[str, Any] = {"auditor_id": officer.id, "root_id": document.consent_id}
    sealed = key.seal("consents.evidence", document.consent_id, to_json(document.evidence_refs))
    period = {"valid_from": document.captured_at, "valid_until": document.valid_until}
    await store.insert(
        tx,
        document.terms,
        action="grant",
        consent_id=document.consent_id,
        supersedes=None,
        evidence=sealed,
        **period,
        **own,
        **stated,
    )
    what = {"consent_id": document.consent_id, "purpose": document.purpose}
    tx.emit("memory.consent_granted", officer.id, **what, supersedes=None, document=True)
    if document.revoked_at is None:
        return
    (revocation_id,) = make_ids("cns", 1, tx.now)
    await store.insert(
        tx,
        document.terms,
        action="revoke",
        consent_id=revocation_id,
        valid_from=tx.now,
        valid_until=None,
        supersedes=document.consent_id,
        evidence=key.seal("consents.evidence", revocation_id, to_json(())),
        stated_at=document.revoked_at,
        **own,
    )
    tx.emit("memory.consent_revoked", officer.id, **what, document=True)


def failed(fields: Any, error: MunimentError) -> ConsentOutcome:
    """The outcome of a document that was not recorded."""
    named = cast("Mapping[str, Any]", fields).get("consent_id") if isinstance(fields, Mapping) else None
    consent_id = named if isinstance(named, str) and len(named) <= 256 else None
    return ConsentOutcome(consent_id=consent_id, error=error.code, field=error.field, message=error.message)
