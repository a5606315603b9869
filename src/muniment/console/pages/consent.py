"""Consent: a subject's ledger, what is about to end, and granting, renewing and revoking."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from starlette.datastructures import FormData

from muniment.console.forms import instant_of, lines_of, typed, went, words_of
from muniment.console.rendering import page
from muniment.console.visitors import Allowed, Visitor, form_of, text_of, told
from muniment.errors import InvalidInput, MunimentError, NotFound, StorageUnavailable
from muniment.model.consent import Consent

router = APIRouter()

AT_ONCE = 1000
SHOWN = 200
SOON = timedelta(days=30)
FIELDS = ("subject", "purpose", "predicates", "labels", "basis", "valid_from", "valid_until", "evidence", "supersedes")

Reader = Annotated[Visitor, Depends(Allowed("read_consent"))]
Officer = Annotated[Visitor, Depends(Allowed("consent"))]


@dataclass(frozen=True)
class Chain:
    """A consent with its renewals, unbroken, the oldest first."""

    records: tuple[Consent, ...]

    @property
    def last(self) -> Consent:
        """The record that a renewal or a revocation would supersede; of an ended chain the last one."""
        return next((one for one in reversed(self.records) if one.action == "grant"), self.records[-1])

    @property
    def shown(self) -> Consent:
        """The record that counts now."""
        return next((one for one in self.records if one.state == "active"), self.last)

    @property
    def open(self) -> bool:
        """Whether there is something to renew or to revoke."""
        return self.last.action == "grant" and self.last.superseded_by is None and self.last.swept_at is None

    @property
    def ends_at(self) -> datetime | None:
        """When it runs out, unless somebody renews it."""
        return self.last.valid_until


@dataclass(frozen=True)
class Subject:
    """A subject of the ledger, with its chains."""

    name: str
    chains: tuple[Chain, ...]

    @property
    def active(self) -> int:
        """How many of its consents hold."""
        return sum(chain.shown.state == "active" for chain in self.chains)

    @property
    def last_at(self) -> datetime:
        """When its ledger was last written to."""
        return max(record.captured_at for chain in self.chains for record in chain.records)


def chains_of(records: Iterable[Consent]) -> tuple[Chain, ...]:
    """The records by their chains, the chain that was written to last first."""
    found: dict[str, list[Consent]] = {}
    for record in records:
        found.setdefault(record.root_id, []).append(record)
    made = [Chain(tuple(sorted(one, key=lambda record: record.seq))) for one in found.values()]
    return tuple(sorted(made, key=lambda chain: -chain.records[-1].seq))


def subjects_of(records: Iterable[Consent]) -> list[Subject]:
    """The subjects, the one that was written to last first."""
    found: dict[str, list[Consent]] = {}
    for record in records:
        found.setdefault(record.subject, []).append(record)
    made = [Subject(name, chains_of(one)) for name, one in found.items()]
    return sorted(made, key=lambda subject: subject.last_at, reverse=True)


def about_to_end(chains: Iterable[Chain], now: datetime) -> list[Chain]:
    """Those that hold now and run out soon, the next one first."""
    soon = [
        (chain.ends_at, chain)
        for chain in chains
        if chain.shown.state == "active" and chain.ends_at is not None and now < chain.ends_at <= now + SOON
    ]
    return [chain for _, chain in sorted(soon, key=lambda one: one[0])]


@router.get("/consent")
async def ledger(visitor: Reader, subject: str | None = None, after: str | None = None) -> Response:
    """The ledger of a subject, or of all."""
    if subject and (name := subject.strip()):
        return await _ledger_of(visitor, name)
    records = await visitor.fabric.consent.list(visitor.principal, limit=AT_ONCE, after=after or None)
    subjects = subjects_of(records)
    return page(
        "consent.html",
        visitor,
        at="consent",
        subjects=subjects[:SHOWN],
        hidden=max(len(subjects) - SHOWN, 0),
        ending=about_to_end((chain for one in subjects for chain in one.chains), visitor.fabric.access.now()),
        more=records[-1].consent_id if len(records) == AT_ONCE else None,
        after=after,
        days=SOON.days,
        subject="",
        problem=None,
    )


async def _ledger_of(
    visitor: Visitor, subject: str, problem: str | None = None, at_fault: str | None = None, status: int = 200
) -> Response:
    try:
        records = await visitor.fabric.consent.list(visitor.principal, subject=subject, limit=AT_ONCE)
    except InvalidInput as error:
        nobody: dict[str, Any] = {"subjects": [], "hidden": 0, "ending": [], "more": None, "after": None}
        return page("consent.html", visitor, status=400, at="consent", subject=subject, problem=told(error), **nobody)
    chains = chains_of(records)
    reach = await visitor.fabric.consent.reach(visitor.principal, subject=subject) if records else ()
    return page(
        "ledger.html",
        visitor,
        status=status,
        at="consent",
        subject=subject,
        chains=chains,
        reaches={one.root_id: one for one in reach},
        full=len(records) == AT_ONCE,
        problem=problem,
        at_fault=at_fault,
    )


@router.get("/consent/new")
async def asked(visitor: Officer, subject: str | None = None, renews: str | None = None) -> Response:
    """The form for a grant; with `renews` for one that takes the place of another."""
    given = dict.fromkeys(FIELDS, "")
    given |= {"subject": subject or "", "labels": "PII", "predicates": "*"}
    earlier = await _earlier(visitor, subject, renews) if subject and renews else None
    if earlier is not None:
        given |= {
            "purpose": earlier.purpose,
            "predicates": ", ".join(earlier.predicates_allowed),
            "labels": ", ".join(earlier.data_classifications_allowed),
            "basis": earlier.basis,
            "supersedes": earlier.consent_id,
        }
    return page("grant.html", visitor, at="consent", given=given, earlier=earlier, problem=None, field=None)


@router.post("/consent")
async def grant(request: Request, visitor: Officer) -> Response:
    """Record a consent, or the renewal of one."""
    form = await form_of(request, visitor)
    try:
        made = await visitor.fabric.consent.grant(visitor.principal, **_asked_for(form))
    except StorageUnavailable:
        raise
    except MunimentError as error:
        given = typed(form, *FIELDS)
        earlier = await _earlier(visitor, given["subject"], given["supersedes"]) if given["supersedes"] else None
        return page(
            "grant.html",
            visitor,
            status=400,
            at="consent",
            given=given,
            earlier=earlier,
            problem=told(error),
            field=_FIELD_OF.get(error.field or "", error.field),
        )
    said = "The consent is renewed" if made.supersedes else "The consent is recorded"
    return went(visitor, "consent", said, subject=made.subject, at=made.consent_id)


_FIELD_OF = {
    "predicates_allowed": "predicates",
    "data_classifications_allowed": "labels",
    "evidence_refs": "evidence",
}


def _asked_for(form: FormData) -> dict[str, Any]:
    return {
        "subject": text_of(form, "subject"),
        "purpose": text_of(form, "purpose"),
        "predicates_allowed": words_of(form, "predicates"),
        "data_classifications_allowed": words_of(form, "labels"),
        "basis": text_of(form, "basis"),
        "valid_from": instant_of(form, "valid_from"),
        "valid_until": instant_of(form, "valid_until"),
        "evidence_refs": lines_of(form, "evidence"),
        "supersedes": text_of(form, "supersedes"),
    }


@router.post("/consent/{consent_id}/revoke")
async def revoke(request: Request, visitor: Officer, consent_id: str) -> Response:
    """Revoke a consent: what rested on it is hidden from the next recall on."""
    form = await form_of(request, visitor)
    subject = text_of(form, "subject") or ""
    try:
        done = await visitor.fabric.consent.revoke(
            visitor.principal, consent_id, evidence_refs=lines_of(form, "evidence")
        )
    except (NotFound, StorageUnavailable):
        raise
    except MunimentError as error:
        return await _ledger_of(visitor, subject, told(error), consent_id, status=400)
    said = "The consent is revoked: what rested on it is hidden from now on"
    return went(visitor, "consent", said, subject=done.subject, at=done.consent_id)


async def _earlier(visitor: Visitor, subject: str, consent_id: str) -> Consent:
    """The record that a renewal names; raises `NotFound`."""
    records: Sequence[Consent] = await visitor.fabric.consent.list(visitor.principal, subject=subject, limit=AT_ONCE)
    found = next((one for one in records if one.consent_id == consent_id), None)
    if found is None:
        raise NotFound("no such consent of that subject", field="supersedes")
    return found
