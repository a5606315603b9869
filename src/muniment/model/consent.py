"""Consent: what a subject allowed, for which purpose, until when; revocations are records too."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from muniment.model.fields import (
    Artifact,
    Ceid,
    EvidenceRefs,
    Instant,
    Label,
    Name,
    OpenName,
    Predicate,
    Tier,
    WriteClass,
)

State = Literal["captured", "active", "superseded", "revoked", "expired", "tombstoned"]
PredicateOrAny = Annotated[Predicate | Literal["*"], Field(union_mode="left_to_right")]


class ConsentInput(Artifact):
    """A grant as a privacy officer enters it."""

    subject: Ceid
    purpose: OpenName
    predicates_allowed: Annotated[tuple[PredicateOrAny, ...], Field(min_length=1, max_length=256, fail_fast=True)]
    data_classifications_allowed: Annotated[tuple[Label, ...], Field(min_length=1, max_length=64, fail_fast=True)]
    basis: OpenName
    valid_from: Instant | None = None
    valid_until: Instant | None = None
    evidence_refs: EvidenceRefs = ()
    supersedes: Name | None = None


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
    state: State = "captured"


class ConsentReach(Artifact):
    """The memories that rely on a consent and its renewals: a revocation hides them from the next recall on."""

    root_id: str = Field(description="the first record of an unbroken chain of renewals")
    memories: int = Field(default=0, description="live, and visible to runs while it is valid")
    by_tier: dict[Tier, int] = Field(default_factory=dict[Tier, int])
    by_class: dict[WriteClass, int] = Field(default_factory=dict[WriteClass, int])
    memory_ids: tuple[str, ...] = Field(default=(), description="the latest of them, up to 100")
    hidden: int = Field(default=0, description="also live, but hidden already: it does not cover them now")


class ConsentTerms(Artifact):
    """What a consent can say: the purposes and the sensitive labels of the pack in force, and bases in use."""

    purposes: tuple[str, ...] = Field(default=(), description="those that a class names")
    any_purpose: bool = Field(description="some class is covered under any purpose")
    labels: tuple[str, ...] = ()
    bases: tuple[str, ...] = Field(default=(), description="of the latest records of the ledger")


class Sweep(Artifact):
    """The result of a sweep: what was removed because its consent ended."""

    consents: int = 0
    memories: int = 0
