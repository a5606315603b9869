"""Consent: the ledger of a subject, consents that end soon, and granting, renewing and revoking."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from muniment.console.export import file_of, pages_of
from muniment.console.forms import lines_field, list_field, raw_fields, read_form, redirect, text_field, time_field
from muniment.console.listing import RANGE, Listing, filter_values, load_listing
from muniment.console.rendering import page
from muniment.console.urls import query_fields
from muniment.console.visitors import Requires, Visitor, error_text
from muniment.errors import InvalidInput, MunimentError, NotFound, StorageUnavailable
from muniment.model.consent import Consent

router = APIRouter()

MOST_RECORDS = 1000
SUBJECTS_SHOWN = 200
SOON = timedelta(days=30)
FIELDS = ("subject", "purpose", "predicates", "labels", "basis", "valid_from", "valid_until", "evidence", "supersedes")

_RECORD = ("consent_id", "subject", "action", "state", "purpose", "basis", "captured_at", "valid_from", "valid_until")
COLUMNS = {name: name for name in (*_RECORD, "revoked_at", "auditor_id", "supersedes")} | {
    "predicates_allowed": "predicates_allowed",
    "data_classifications_allowed": "data_classifications_allowed",
    "evidence_refs": "evidence_refs",
}

Reader = Annotated[Visitor, Depends(Requires("read_consent"))]
Officer = Annotated[Visitor, Depends(Requires("consent"))]


@dataclass(frozen=True)
class Chain:
    """A consent with its renewals, without a gap, oldest first."""

    records: tuple[Consent, ...]

    @property
    def last(self) -> Consent:
        """The last grant, which a renewal or a revocation would supersede; else the last record."""
        return next((one for one in reversed(self.records) if one.action == "grant"), self.records[-1])

    @property
    def current(self) -> Consent:
        """The record in force; else the last one."""
        return next((one for one in self.records if one.state == "active"), self.last)

    @property
    def open(self) -> bool:
        """Whether it can be renewed or revoked."""
        return self.last.action == "grant" and self.last.superseded_by is None and self.last.swept_at is None

    @property
    def ends_at(self) -> datetime | None:
        """When it ends unless it is renewed."""
        return self.last.valid_until


@dataclass(frozen=True)
class Subject:
    """A subject with its consents."""

    name: str
    chains: tuple[Chain, ...]

    @property
    def active(self) -> int:
        """How many of its consents are in force."""
        return sum(chain.current.state == "active" for chain in self.chains)

    @property
    def last_at(self) -> datetime:
        """When its last record was written."""
        return max(record.captured_at for chain in self.chains for record in chain.records)


def chains_of(records: Iterable[Consent]) -> tuple[Chain, ...]:
    """The records by their chains, last changed first."""
    groups = _grouped(records, "root_id").values()
    chains = [Chain(tuple(sorted(one, key=lambda record: record.seq))) for one in groups]
    return tuple(sorted(chains, key=lambda chain: -chain.records[-1].seq))


def subjects_of(records: Iterable[Consent]) -> list[Subject]:
    """The subjects of the records, last changed first."""
    subjects = [Subject(name, chains_of(one)) for name, one in _grouped(records, "subject").items()]
    return sorted(subjects, key=lambda subject: subject.last_at, reverse=True)


def _grouped(records: Iterable[Consent], name: str) -> dict[str, list[Consent]]:
    groups: dict[str, list[Consent]] = {}
    for record in records:
        groups.setdefault(getattr(record, name), []).append(record)
    return groups


def ending_soon(subjects: Iterable[Subject], now: datetime) -> list[Chain]:
    """The consents in force that end soon, the next one first."""
    ends = [
        (chain.ends_at, chain)
        for subject in subjects
        for chain in subject.chains
        if chain.current.state == "active" and chain.ends_at is not None and now < chain.ends_at <= now + SOON
    ]
    return [chain for _, chain in sorted(ends, key=lambda one: one[0])]


@router.get("/consent")
async def consent(request: Request, visitor: Reader) -> Response:
    """The ledger of a subject, or all subjects."""
    if subject := query_fields(request, "subject")["subject"]:
        return await _ledger_page(visitor, subject)
    fetch = partial(visitor.fabric.consent.list, visitor.principal, latest=True)
    found = await load_listing(request, "consent", RANGE, fetch, "consent_id", size=MOST_RECORDS - 1)
    return await _subjects_page(visitor, found)


@router.get("/consent/export")
async def export(request: Request, visitor: Reader) -> Response:
    """The records of the ledger as a file, oldest first: of a range of time, and of a subject, where one is given."""
    narrowed = filter_values(query_fields(request, "subject", *RANGE))
    pages = pages_of(partial(visitor.fabric.consent.list, visitor.principal), "consent_id", narrowed)
    return await file_of(request, visitor, "consents", COLUMNS, pages)


async def _subjects_page(visitor: Visitor, found: Listing, subject: str = "") -> Response:
    subjects, now = subjects_of(found.items), visitor.fabric.access.now()
    # Of all consents, however many there are, and not of this page alone.
    soon = await visitor.fabric.consent.list(visitor.principal, ends_by=now + SOON, limit=MOST_RECORDS)
    return page(
        "consent.html",
        visitor,
        problem=found.problem,
        listing=found,
        subjects=subjects[:SUBJECTS_SHOWN],
        hidden=max(len(subjects) - SUBJECTS_SHOWN, 0),
        ending=ending_soon(subjects_of(soon), now),
        days=SOON.days,
        subject=subject,
    )


async def _ledger_page(
    visitor: Visitor, subject: str, problem: str | None = None, failed_revocation: str | None = None
) -> Response:
    try:
        records = await visitor.fabric.consent.list(visitor.principal, subject=subject, limit=MOST_RECORDS)
    except InvalidInput as error:
        return await _subjects_page(visitor, Listing("consent", {}, "", (), problem=error_text(error)), subject)
    reach = await visitor.fabric.consent.reach(visitor.principal, subject=subject) if records else ()
    return page(
        "ledger.html",
        visitor,
        problem=problem,
        subject=subject,
        chains=chains_of(records),
        reaches={one.root_id: one for one in reach},
        full=len(records) == MOST_RECORDS,
        failed_revocation=failed_revocation,
    )


@router.get("/consent/new")
async def new(visitor: Officer, subject: str | None = None, renews: str | None = None) -> Response:
    """The form for a consent; with `renews`, for the renewal of one."""
    typed = dict.fromkeys(FIELDS, "") | {"subject": subject or "", "predicates": "*"}
    earlier = await _find(visitor, subject, renews) if subject and renews else None
    if earlier is not None:
        typed |= {
            "purpose": earlier.purpose,
            "predicates": ", ".join(earlier.predicates_allowed),
            "labels": ", ".join(earlier.data_classifications_allowed),
            "basis": earlier.basis,
            "supersedes": earlier.consent_id,
        }
    return await _form_page(visitor, typed, earlier)


async def _form_page(
    visitor: Visitor,
    typed: dict[str, str],
    earlier: Consent | None,
    *,
    problem: str | None = None,
    wrong_field: str | None = None,
) -> Response:
    terms = await visitor.fabric.consent.terms(visitor.principal)
    chosen = set(typed["labels"].replace(",", " ").split()) or (set() if problem else set(terms.labels[:1]))
    # One that a renewal has, and the pack no longer, stays as it is until somebody takes it away.
    offered = [(one, one in chosen) for one in dict.fromkeys([*terms.labels, *sorted(chosen)])] if terms.labels else []
    context: dict[str, Any] = {"typed": typed, "earlier": earlier, "terms": terms, "wrong_field": wrong_field}
    context |= {"offered_labels": offered}
    return page("grant.html", visitor, problem=problem, **context)


@router.post("/consent")
async def grant(request: Request, visitor: Officer) -> Response:
    """Record a consent, or the renewal of one."""
    form = await read_form(request, visitor)
    try:
        fields: dict[str, Any] = {
            "predicates_allowed": list_field(form, "predicates"),
            "data_classifications_allowed": list_field(form, "labels"),
            "valid_from": time_field(form, "valid_from"),
            "valid_until": time_field(form, "valid_until"),
            "evidence_refs": lines_field(form, "evidence"),
        }
        fields |= {name: text_field(form, name) for name in ("subject", "purpose", "basis", "supersedes")}
        made = await visitor.fabric.consent.grant(visitor.principal, **fields)
    except StorageUnavailable:
        raise
    except MunimentError as error:
        typed = raw_fields(form, *FIELDS) | {"labels": ", ".join(list_field(form, "labels"))}
        earlier = await _find(visitor, typed["subject"], typed["supersedes"]) if typed["supersedes"] else None
        wrong = _FORM_FIELDS.get(error.field or "", error.field)
        return await _form_page(visitor, typed, earlier, problem=error_text(error), wrong_field=wrong)
    notice = "Consent renewed" if made.supersedes else "Consent recorded"
    return redirect(visitor, "consent", notice, subject=made.subject, anchor=made.consent_id)


# The fields of the form, by the argument that an error names.
_FORM_FIELDS = {
    "predicates_allowed": "predicates",
    "data_classifications_allowed": "labels",
    "evidence_refs": "evidence",
}


@router.post("/consent/{consent_id}/revoke")
async def revoke(request: Request, visitor: Officer, consent_id: str) -> Response:
    """Revoke a consent: memories that depend on it are hidden from the next recall on."""
    form = await read_form(request, visitor)
    evidence = lines_field(form, "evidence")
    try:
        done = await visitor.fabric.consent.revoke(visitor.principal, consent_id, evidence_refs=evidence)
    except (NotFound, StorageUnavailable):
        raise
    except MunimentError as error:
        return await _ledger_page(visitor, text_field(form, "subject") or "", error_text(error), consent_id)
    notice = "Consent revoked. Memories that depended on it are now hidden."
    return redirect(visitor, "consent", notice, subject=done.subject, anchor=done.consent_id)


async def _find(visitor: Visitor, subject: str, consent_id: str) -> Consent:
    """The record that a renewal names; raises `NotFound`."""
    records = await visitor.fabric.consent.list(visitor.principal, subject=subject, limit=MOST_RECORDS)
    found = next((one for one in records if one.consent_id == consent_id), None)
    if found is None:
        raise NotFound("no such consent of that subject", field="supersedes")
    return found
