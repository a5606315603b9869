"""Consent: what a subject allowed, for which purpose, until when; revocations are records too."""

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from muniment.model.fields import (
    Artifact,
    Ceid,
    EvidenceRefs,
    Instant,
    Label,
    Name,
    OpenName,
    TenantId,
    Tier,
    WriteClass,
    field_error,
)

State = Literal["captured", "active", "superseded", "revoked", "expired", "tombstoned"]
# A predicate, its beginning and a `*`, or `*` for all.
PredicatePattern = Annotated[str, StringConstraints(strict=True, pattern=r"^(\*|[a-z][a-z0-9_.]{0,127}\*?)$")]
Predicates = Annotated[tuple[PredicatePattern, ...], Field(min_length=1, max_length=256, fail_fast=True)]
Labels = Annotated[tuple[Label, ...], Field(min_length=1, max_length=64, fail_fast=True)]
# What the id of a consent begins with, also of one that was recorded elsewhere.
PREFIX = "cns_"


class ConsentInput(Artifact):
    """A grant as a privacy officer enters it."""

    subject: Ceid
    purpose: OpenName
    predicates_allowed: Predicates = Field(
        description="predicates that it covers; one may end in `*`, and `*` alone is all, plain statements too"
    )
    data_classifications_allowed: Labels
    basis: OpenName
    valid_from: Instant | None = None
    valid_until: Instant | None = None
    evidence_refs: EvidenceRefs = ()
    supersedes: Name | None = None


class ConsentScope(Artifact):
    """What a consent covers."""

    predicates_allowed: Predicates
    data_classifications_allowed: Labels


class ConsentDocument(Artifact):
    """A consent as a document for exchange: it round-trips key for key (CON-8).

    Its id and times are those of whoever recorded it first.
    """

    consent_id: OpenName
    subject_ceid: Ceid
    tenant_id: TenantId
    purpose: OpenName
    scope: ConsentScope
    basis: OpenName
    captured_at: Instant
    valid_until: Instant | None = None
    revoked_at: Instant | None = None
    evidence_refs: EvidenceRefs = ()
    auditor_id: OpenName | None = None

    @model_validator(mode="after")
    def _is_a_consent(self) -> Self:
        if not self.consent_id.startswith(PREFIX):
            raise field_error("consent_id", f"expected an id that begins with {PREFIX}")
        for name in ("valid_until", "revoked_at"):
            at: datetime | None = getattr(self, name)
            if at is not None and at <= self.captured_at:
                raise field_error(name, "must lie after captured_at")
        return self

    @property
    def terms(self) -> ConsentInput:
        """The same as a grant; it holds from when it was captured."""
        return ConsentInput(
            subject=self.subject_ceid,
            purpose=self.purpose,
            predicates_allowed=self.scope.predicates_allowed,
            data_classifications_allowed=self.scope.data_classifications_allowed,
            basis=self.basis,
            valid_from=self.captured_at,
            valid_until=self.valid_until,
            evidence_refs=self.evidence_refs,
        )


class ConsentOutcome(Artifact):
    """What became of one of many consent documents: the record, or why it was not recorded."""

    consent_id: str | None = None
    recorded: bool = Field(default=False, description="it is in the ledger, now or since an earlier call")
    repeated: bool = Field(default=False, description="it was in the ledger before, with the same content")
    error: str | None = Field(default=None, description="the code of the error")
    field: str | None = None
    message: str | None = None


class Consent(Artifact):
    """One record of the ledger, with its state as derived from the records after it (CON-1, CON-7)."""

    consent_id: str
    tenant_id: str
    seq: int
    action: Literal["grant", "revoke"]
    subject: str
    purpose: str
    predicates_allowed: tuple[str, ...]
    data_classifications_allowed: tuple[str, ...]
    basis: str
    captured_at: datetime
    valid_from: datetime
    valid_until: datetime | None = None
    evidence_refs: tuple[str, ...] = ()
    auditor_id: str
    supersedes: str | None = None
    root_id: str = Field(description="the first record of an unbroken chain of renewals")
    superseded_by: str | None = None
    superseded_from: datetime | None = Field(
        default=None, description="a renewal may be recorded before it takes effect"
    )
    revoked_at: datetime | None = None
    swept_at: datetime | None = Field(default=None, description="when the memories that relied on it were removed")
    stated_at: datetime | None = Field(
        default=None, description="of a document: when it was captured, or revoked, before it was recorded here"
    )
    stated_auditor: str | None = Field(default=None, description="of a document: the auditor that it names")
    state: State = "captured"

    @property
    def document(self) -> ConsentDocument:
        """The record as a document (CON-8)."""
        return ConsentDocument.model_construct(
            consent_id=self.consent_id,
            subject_ceid=self.subject,
            tenant_id=self.tenant_id,
            purpose=self.purpose,
            scope=ConsentScope.model_construct(
                predicates_allowed=self.predicates_allowed,
                data_classifications_allowed=self.data_classifications_allowed,
            ),
            basis=self.basis,
            captured_at=self.stated_at or self.captured_at,
            valid_until=self.valid_until,
            revoked_at=self.revoked_at,
            evidence_refs=self.evidence_refs,
            auditor_id=self.stated_auditor if self.stated_at is not None else self.auditor_id,
        )


class ConsentReach(Artifact):
    """The memories that rely on a consent and its renewals: a revocation hides them from the next recall on."""

    root_id: str = Field(description="the first record of an unbroken chain of renewals")
    memories: int = Field(default=0, description="live, and visible to runs while it is valid")
    by_tier: dict[Tier, int] = Field(default_factory=dict[Tier, int])
    by_class: dict[WriteClass, int] = Field(default_factory=dict[WriteClass, int])
    memory_ids: tuple[str, ...] = Field(default=(), description="the latest of them, up to 100")
    hidden: int = Field(default=0, description="also live, but hidden already: it does not cover them now")


class ConsentTerms(Artifact):
    """What a consent can say: the purposes, the sensitive labels and the bases of the pack in force."""

    purposes: tuple[str, ...] = Field(default=(), description="those that a class names")
    any_purpose: bool = Field(description="some class is covered under any purpose")
    labels: tuple[str, ...] = ()
    bases: tuple[str, ...] = Field(
        default=(), description="of the pack, then others of the latest records of the ledger"
    )

    def purpose_problem(self, purpose: object) -> str | None:
        """Why a consent for this purpose would cover nothing now; None where a class of the pack names it."""
        if self.any_purpose or not isinstance(purpose, str) or purpose in self.purposes:
            return None
        expected = ", ".join(self.purposes) or "none: no class of the pack names one"
        return f"no class of the pack in force names it; expected {expected}"


class Sweep(Artifact):
    """The result of a sweep: what was removed because its consent ended."""

    consents: int = 0
    memories: int = 0
