"""What end users see of themselves (SUB-1): what is held about them and why, what waits, and what they asked for."""

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from muniment.model.candidate import GateName
from muniment.model.consent import Consent
from muniment.model.decision import Reason
from muniment.model.fields import Artifact, CaptureKind, Source, Tier, WriteClass
from muniment.model.promoted import RetractionReason
from muniment.model.proposal import HumanReason, ProposalAction, Status
from muniment.model.trail import Recalled

MyState = Literal["live", "hidden", "forgotten", "ended", "removed"]
# Whom a fact is visible for: the runs of the person alone, everybody's, or those of another user who said it.
Reach = Literal["yours", "everybody", "another_user"]
# How it is known that an act is a person's own where whoever holds the home is taken for its one user (MEM-5).
LOCAL_OWNER = "local_owner"
Act = Literal["confirm", "decline", "forget", "grant", "refuse"]


class _Fact(Artifact):
    text: str = Field(description="empty where it is withheld or was removed")
    value: Any = None
    withheld: bool = Field(
        default=False, description="its text is sealed under the key of somebody else, who it is about"
    )


class _Origin(Artifact):
    capture_id: str
    said_by_you: bool = Field(description="these are the person's own words, by a credential that vouches for them")
    author: str = Field(description="who wrote it down")
    source: Source = Field(description="the kind of who wrote it down")


class MyCapture(_Fact, _Origin):
    """A capture that the person said, or that is about them."""

    seq: int
    kind: CaptureKind
    classification: str
    origin: str | None = None
    captured_at: datetime
    observed_at: datetime


class MyDecision(Artifact):
    """One verdict on a fact; the remarks of those who decide are not shown."""

    action: str
    by: str
    by_kind: Source
    at: datetime


class MyMemory(_Fact, _Origin):
    """A memory about the person or of their runs, and where it comes from."""

    memory_id: str
    proposal_id: str
    write_class: WriteClass
    tier: Tier
    classification: str
    entity: str | None = None
    predicate: str | None = None
    reach: Reach
    state: MyState
    confidence: float
    approver: str = Field(description="who approved it: a principal's id, or `auto`")
    consent_id: str | None = None
    promoted_at: datetime
    expires_at: datetime | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    ended_at: datetime | None = None
    reason: RetractionReason | None = Field(default=None, description="why it ended")


class MyMemoryDetails(MyMemory):
    """A memory with why it is held: what it came from, who decided, on which consent, and how often it was recalled."""

    capture: MyCapture | None = Field(default=None, description="none where it is archived or another's")
    decisions: tuple[MyDecision, ...] = ()
    consent: Consent | None = None
    recalled: Recalled = Recalled()
    undo_until: datetime | None = Field(
        default=None, description="until when its promotion by policy can be undone; none where it cannot"
    )


class MyProposal(_Fact, _Origin):
    """A fact that waits for a decision, and whether the person may confirm it."""

    proposal_id: str
    write_class: WriteClass
    tier: Tier
    classification: str
    reasons: tuple[HumanReason, ...] = Field(description="why a person has to decide")
    corrects: str | None = Field(default=None, description="the memory that it would replace")
    action: ProposalAction = Field(
        default="promote", description="what is asked for: to keep it, or to forget or correct one of `targets`"
    )
    targets: tuple[str, ...] = Field(default=(), description="the memories that it may ask to forget or correct")
    contradicts: tuple[str, ...] = Field(default=(), description="the memories that it contradicts")
    enqueued_at: datetime
    due_at: datetime
    may_confirm: bool
    why_not: tuple[Reason, ...] = Field(default=(), description="why the person may not confirm it themselves")


class MyRefusal(Artifact):
    """A fact of a capture that a gate refused; no content is kept (CAN-5)."""

    gate: GateName
    reason: str


class MyFact(MyProposal):
    """A fact that was read from a capture, and what became of it."""

    status: Status
    memory_id: str | None = Field(default=None, description="the memory it was promoted to, or that says the same")


class MyOutcome(Artifact):
    """What became of one capture of the person."""

    capture_id: str
    read: bool = Field(description="it was consolidated; until then nothing is known of it")
    facts: tuple[MyFact, ...] = ()
    refusals: tuple[MyRefusal, ...] = ()


class MyConsentRequest(Artifact):
    """The question whether a fact may be kept that was refused only for lack of consent (CON-9)."""

    request_id: str
    capture_id: str
    label: str
    question: str | None = Field(description="what was said, read from the capture; none where it is archived")
    said_by_you: bool
    asked_at: datetime
    ends_at: datetime
    answer: Literal["granted", "refused", "withdrawn"] | None = None
    answered_at: datetime | None = None


class MyRecall(Artifact):
    """A recall in one of the person's own runs: who recalled what, when."""

    recall_id: str
    at: datetime
    agent_id: str
    query: str | None = None
    memory_ids: tuple[str, ...] = ()


class ErasureRequest(Artifact):
    """The request of an end user that everything about them is erased."""

    request_id: str
    user_id: str
    asked_at: datetime
    answer: Literal["released", "refused"] | None = None
    answered_by: str | None = None
    answered_at: datetime | None = None
    erasure_id: str | None = Field(default=None, description="the receipt, where it was released")


class Decided(Artifact):
    """What became of a proposal that the person confirmed or declined."""

    proposal_id: str
    status: str
    memory_id: str | None = None


class MyExport(Artifact):
    """Everything that is held about an end user, for them to take along (SUB-5, IMP-4)."""

    tenant_id: str
    user_id: str | None = Field(description="the end user; none for a subject that is no user")
    subject: str | None = Field(default=None, description="the subject whom a privacy officer exported")
    exported_at: datetime
    display_name: str | None = Field(default=None, description="what people call them")
    memories: tuple[MyMemory, ...] = ()
    proposals: tuple[MyProposal, ...] = ()
    captures: tuple[MyCapture, ...] = ()
    consents: tuple[Consent, ...] = ()
    consent_requests: tuple[MyConsentRequest, ...] = ()
    recalls: tuple[MyRecall, ...] = ()
    erasure_requests: tuple[ErasureRequest, ...] = ()


class MyView(Artifact):
    """What an end user looks at first: a page of memories, all that waits for them, consents, the last recalls."""

    memories: tuple[MyMemory, ...] = ()
    pending: tuple[MyProposal, ...] = ()
    consent_requests: tuple[MyConsentRequest, ...] = ()
    consents: tuple[Consent, ...] = ()
    recalls: tuple[MyRecall, ...] = ()
    consent_labels: tuple[str, ...] = Field(
        default=(), description="the labels of the pack in force that need the person's consent"
    )


class OneTimeCode(Artifact):
    """A code by which one person does one thing once; `code` is returned when it is made and stored nowhere."""

    code_id: str
    user_id: str
    act: Act
    target: str
    expires_at: datetime
    code: str = Field(repr=False)
