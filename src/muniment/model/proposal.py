"""Proposal: a candidate in the review queue, with the verdicts that decide it."""

from datetime import datetime
from typing import Any, Literal, Self

from pydantic import AliasChoices, ConfigDict, Field, model_serializer, model_validator

from muniment.model.candidate import Candidate
from muniment.model.decision import Reason
from muniment.model.fields import (
    Artifact,
    Ceid,
    EvidenceRefs,
    Json,
    OpenName,
    Predicate,
    Probability,
    Source,
    Tier,
    WriteClass,
    field_error,
)

Status = Literal["pending", "held", "edited", "promoted", "duplicate", "rejected", "blocked", "withdrawn"]
Action = Literal[
    "approve", "edit", "reject", "hold", "block", "duplicate", "withdraw", "override", "assign", "release",
    "lift", "resolve", "undo",
]  # fmt: skip
# What a proposal asks for: to promote its candidate, or that a memory is retracted or corrected (CAN-12).
ProposalAction = Literal["promote", "retract", "correct"]
ConsentCheck = Literal["passed", "not_required"]
HumanReason = Literal[
    "approval_mode", "operator_source", "user_correction", "third_party", "compliance_flag", "sensitive",
    "durable", "low_trust", "low_confidence", "contradiction", "budget", "audit_sample", "returned", "suspended",
    "near_threshold", "user_asked", "agent_asked",
]  # fmt: skip

# The status after a verdict; verdicts that are not listed leave the status as it is.
STATUS_AFTER: dict[Action, Status] = {
    "approve": "promoted",
    "edit": "edited",
    "reject": "rejected",
    "hold": "held",
    "block": "blocked",
    "duplicate": "duplicate",
    "withdraw": "withdrawn",
    "release": "pending",
}
# Proposals that are approved in one transaction: others of the tenant wait no longer than that.
APPROVED_AT_ONCE = 200
FINAL: frozenset[Action] = frozenset({"approve", "edit", "reject", "block", "duplicate", "withdraw"})


# The most memories that a request to forget or to correct may mean.
MOST_TARGETS = 5


class ContradictionCheck(Artifact):
    """What the checks found when it entered the queue: live memories that it repeats or contradicts."""

    existing: str | None = None
    verdict: Literal["no_conflict", "duplicate", "contradicts"] = "no_conflict"
    others: tuple[str, ...] = ()

    @property
    def contradicted(self) -> tuple[str, ...]:
        """The ids of all memories that it contradicts."""
        return (self.existing, *self.others) if self.verdict == "contradicts" and self.existing is not None else ()

    @model_serializer
    def _plain(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"existing": self.existing, "verdict": self.verdict}
        return shown | {"others": list(self.others)} if self.others else shown


class Verdict(Artifact):
    """One decision on a proposal: who, when, under which pack, what, why (REV-1)."""

    verdict_id: str
    proposal_id: str
    seq: int
    action: Action
    by: str = Field(description="a principal's id, or `auto`")
    by_kind: Source
    at: datetime
    pack: str
    reason: str | None = None
    note: str | None = None
    tier: Tier | None = None
    priority: float | None = None
    assignee: str | None = None
    memory_id: str | None = Field(
        default=None, description="the memory it repeats, for action `duplicate`; or that was undone, for `undo`"
    )


class Proposal(Artifact):
    """A candidate in review, or one that has had its final verdict."""

    proposal_id: str
    tenant_id: str
    seq: int
    candidate: Candidate
    write_class: WriteClass
    tier_target: Tier
    tier_derived: Tier
    priority: float
    confidence: Probability
    trust: Probability
    risk: Literal["low", "high"]
    consent_check: ConsentCheck
    contradiction_check: ContradictionCheck
    duplicate_check: str | None = None
    third_party: bool = Field(
        default=False,
        description="it is about somebody else than its speaker in a special category: a person decides (CAN-16)",
    )
    auto_promote_eligible: bool
    human_reasons: tuple[HumanReason, ...] = ()
    action: ProposalAction = Field(
        default="promote",
        description="what it asks for: to promote its fact, or that one of `targets` is retracted or corrected",
    )
    targets: tuple[str, ...] = Field(
        default=(), description="live memories that a request to forget or correct may mean, the nearest first (CAN-12)"
    )
    sensitive: bool
    count: int = Field(
        default=1,
        ge=1,
        description="how many open proposals say the same in the same scope, this one included: they are one item, "
        "decided together (REV-11)",
    )
    same: tuple[str, ...] = Field(
        default=(), description="the other open proposals of the item, in the order they came; the first 20"
    )
    opposites: tuple[str, ...] = Field(
        default=(), description="open proposals of the same subject that contradict it (REV-12)"
    )
    enqueued_at: datetime
    due_at: datetime
    status: Status
    assignee: str | None = None
    verdicts: tuple[Verdict, ...] = ()
    version: int = Field(
        default=0, ge=0, description="how many verdicts it has had; actions may name the version they were based on"
    )
    memory_id: str | None = Field(default=None, description="the memory it was promoted to")
    pack: str
    edit_of: str | None = Field(default=None, description="the proposal that this edit replaced")
    reopens: str | None = Field(default=None, description="the duplicate that returned when its original was retracted")
    audits: str | None = Field(
        default=None,
        description="the memory, promoted without a person, that this sample asks a reviewer to check (JOB-6)",
    )
    restores: str | None = Field(
        default=None, description="the memory that comes back because the one that superseded it was undone (PRO-8)"
    )


class Submission(Artifact):
    """What a proposer sees: that the proposal is in review, and in the end a person's decision.

    Nothing of what the checks found: that would tell of memories the proposer may not see.
    """

    proposal_id: str
    capture_id: str
    write_class: WriteClass
    status: Status

    @classmethod
    def of(cls, proposal: Proposal) -> "Submission":
        """The proposal as its proposer sees it; verdicts by policy are not shown."""
        decided = any(verdict.by_kind != "system" for verdict in proposal.verdicts)
        return cls(
            proposal_id=proposal.proposal_id,
            capture_id=proposal.candidate.capture_id,
            write_class=proposal.write_class,
            # That others said the same is not the proposer's to know: a person approved what it says.
            status="pending" if not decided else "promoted" if proposal.status == "duplicate" else proposal.status,
        )


class ProposedFact(Artifact):
    """The candidate part of a proposal document (REV-10)."""

    entity_ceid: Ceid
    predicate: Predicate
    value: Json
    evidence_refs: EvidenceRefs = ()
    confidence: Probability


class ProposalDocument(Artifact):
    """A proposal as a document for exchange: it round-trips key for key (REV-10)."""

    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True, populate_by_name=True)

    proposal_id: OpenName
    candidate: ProposedFact
    write_class: WriteClass = Field(validation_alias=AliasChoices("class", "write_class"), serialization_alias="class")
    tier_target: Tier
    consent_check: ConsentCheck
    contradiction_check: ContradictionCheck
    auto_promote_eligible: bool

    @model_validator(mode="after")
    def _is_a_proposal(self) -> Self:
        if not self.proposal_id.startswith("mwp_"):
            raise field_error("proposal_id", "expected an id that begins with mwp_")
        return self


def document_of(proposal: Proposal) -> ProposalDocument | None:
    """A proposal as a document, with its checks as they were computed; None for one that is not on a key (REV-10)."""
    fact = proposal.candidate
    if fact.entity is None or fact.predicate is None:
        return None
    check = proposal.contradiction_check
    return ProposalDocument(
        proposal_id=proposal.proposal_id,
        candidate=ProposedFact(
            entity_ceid=fact.entity,
            predicate=fact.predicate,
            value=fact.value,
            evidence_refs=fact.evidence_refs,
            confidence=fact.raw_confidence,
        ),
        write_class=proposal.write_class,
        tier_target=proposal.tier_target,
        consent_check=proposal.consent_check,
        contradiction_check=ContradictionCheck(existing=check.existing, verdict=check.verdict),
        auto_promote_eligible=proposal.auto_promote_eligible,
    )


def status_of(actions: tuple[Action, ...]) -> Status:
    """A proposal's status from its verdicts, in order; the last one that sets a status decides."""
    status: Status = "pending"
    for action in actions:
        status = STATUS_AFTER.get(action, status)
    return status


class Outcome(Artifact):
    """The outcome for one of many: its status, the memory it became, or the error code."""

    proposal_id: str
    status: Status | None = None
    memory_id: str | None = None
    error: str | None = None
    message: str | None = None
    left_out: tuple[Reason, ...] = Field(
        default=(), description="why it was left out: it is not ordinary, and was not acknowledged"
    )
