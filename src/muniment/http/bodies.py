"""What requests bring and what lists give, beside the artifacts themselves. Unknown fields are refused everywhere."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, Discriminator, Field, Strict, StringConstraints, Tag, WrapValidator

from muniment.errors import InvalidInput
from muniment.http.caller import inside_run
from muniment.model.capture import Happening, Receipt
from muniment.model.capture_history import RerunReason
from muniment.model.chain import Head
from muniment.model.context import Run, RunContext
from muniment.model.contradiction import ResolutionMethod, Side
from muniment.model.fields import (
    Artifact,
    AsOf,
    CaptureKind,
    Ceid,
    EvidenceRefs,
    Instant,
    Intent,
    Json,
    Label,
    Name,
    Note,
    Predicate,
    Probability,
    Qualifiers,
    Query,
    Text,
    Tier,
    WriteClass,
)
from muniment.model.metrics import GoldenResult
from muniment.model.promoted import RetractionReason
from muniment.verbs.inputs import CompileInput, RecallInput

T = TypeVar("T")
# Captures of one request (CAP-8).
BATCH_LIMIT = 1000
_RUN = "the agent's run; tenant and agent are the credential's"
_VERSION = "the version that was read; if it is another by now, nothing is done (412). `If-Match` says the same."
Version = Annotated[int, Field(strict=True, ge=0, le=2**31)]
PackText = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=1024 * 1024)]


def _inside_run(value: Any, build: Callable[[Any], Run]) -> Run:
    with inside_run():
        return build(value)


OwnRun = Annotated[Run, WrapValidator(_inside_run)]


class Page(BaseModel, Generic[T]):
    """One page of a list; `next` is the `after` of the page that follows, none at the end."""

    items: Sequence[T]
    next: str | None = None


class CaptureBody(Happening):
    """One capture."""

    run: OwnRun | None = Field(default=None, description=_RUN)


class CapturesBody(Artifact):
    """Many captures, all or none."""

    captures: Annotated[tuple[Happening, ...], Field(min_length=1, max_length=BATCH_LIMIT, fail_fast=True)]
    run: OwnRun | None = Field(default=None, description=_RUN)


def _how_many(body: Any) -> Literal["ONE", "MANY"]:
    many = "captures" in body if isinstance(body, dict) else isinstance(body, CapturesBody)
    return "MANY" if many else "ONE"


Captured = Annotated[
    Annotated[CaptureBody, Tag("ONE")] | Annotated[CapturesBody, Tag("MANY")], Discriminator(_how_many)
]


class Receipts(Artifact):
    """That they are committed, in the order given."""

    receipts: tuple[Receipt, ...]


class _Circumstances(Artifact):
    subject: Ceid | None = None
    user_id: Name | None = None
    intent_id: Intent | None = None
    qualifiers: Qualifiers = Field(default_factory=dict)
    evidence_refs: EvidenceRefs = ()
    observed_at: Instant | None = None
    origin: Name | None = None
    idempotency_key: Name | None = None
    value: Json = None
    text: Text | None = None
    confidence: Probability = 0.60
    run: OwnRun | None = Field(default=None, description=_RUN)


class ProposalBody(_Circumstances):
    """A typed fact, and the circumstances of its capture."""

    write_class: WriteClass
    classification: Label
    entity: Ceid | None = None
    predicate: Predicate | None = None
    kind: CaptureKind = "statement"
    session_id: Name | None = None
    run_id: Name | None = None
    recall_id: Name | None = None
    workflow_id: Name | None = None
    decision_key: Name | None = None


class CorrectionBody(_Circumstances):
    """A correction, on a memory or on a key."""

    memory_id: Name | None = None
    entity: Ceid | None = None
    predicate: Predicate | None = None
    classification: Label | None = None


class RecallBody(RecallInput):
    """What a run wants to know."""

    run: OwnRun = Field(description=_RUN)


class CompileBody(RecallBody, CompileInput):
    """What a run wants to know, and how it is to be written."""

    tokenizer: (
        Annotated[str, StringConstraints(strict=True, pattern=r"^(wordllama|characters|tiktoken:[a-z0-9_.-]{1,64})$")]
        | None
    ) = Field(default=None, description="`wordllama`, `characters` or `tiktoken:<name>`")


class RunAsked(Run):
    """A run that a reviewer or an auditor asks about: of any agent of the tenant."""

    agent_id: Name | None = None


class ExplainBody(Artifact):
    """Which memory, in which recall or at which moment, and for which run."""

    memory_id: Name
    recall_id: Name | None = None
    as_of: AsOf | None = None
    run: Annotated[RunAsked, WrapValidator(_inside_run)] | None = Field(
        default=None, description="an agent's own run; else the run that is asked about"
    )


class RetractBody(Artifact):
    """Why a memory is withdrawn."""

    reason: RetractionReason


class _Versioned(Artifact):
    version: Version | None = Field(default=None, description=_VERSION)


class _Action(_Versioned):
    note: Note | None = None


class ApproveBody(_Action):
    """An approval."""

    supersedes: Name | None = None


class ApproveManyBody(Artifact):
    """Many approvals."""

    proposal_ids: Annotated[tuple[Name, ...], Field(min_length=1, max_length=10_000, fail_fast=True)]
    note: Note | None = None
    acknowledge: Annotated[dict[Name, Name], Field(max_length=10_000)] | None = Field(
        default=None,
        description="takes in single ones that are not ordinary: by proposal, why, which the verdict records",
    )


class CheckBody(Artifact):
    """What an edit would change."""

    text: Text | None = None
    value: Json = None
    classification: Label | None = None
    evidence_refs: EvidenceRefs | None = None


class EditBody(CheckBody, _Action):
    """What an edit changes."""


class PreviewBody(Artifact):
    """Whose recall is looked at, and for which query; no run: one in the proposal's own scope."""

    run: Annotated[RunAsked, WrapValidator(_inside_run)] | None = None
    query: Query | None = None


class RejectBody(_Action):
    """A rejection."""

    reason: Name


class OverrideBody(_Action):
    """Another tier, another priority."""

    tier: Tier | None = None
    priority: Probability | None = None


class AssignBody(_Versioned):
    """To whom; nobody said: to oneself."""

    to: Name | None = None


class ActionBody(_Action):
    """An action that needs no more said."""


class ReleaseBody(_Versioned):
    """That a held one goes on."""


class ResolveBody(Artifact):
    """How a contradiction is settled."""

    way: ResolutionMethod
    keep: Side | None = None
    existing: Qualifiers | None = None
    incoming: Qualifiers | None = None
    note: Note | None = None


class RevokeBody(Artifact):
    """What a revocation rests on."""

    evidence_refs: EvidenceRefs = ()


class VerifyBody(Artifact):
    """A head that was exported earlier, to be found in the chain; how far to go, and from where."""

    head: Head | None = None
    cursor: Annotated[str, StringConstraints(strict=True, max_length=1_000_000)] | None = Field(
        default=None, description="the cursor of an answer, to go on from there"
    )
    count: Annotated[int, Field(strict=True, ge=1, le=2**31)] | None = Field(
        default=None, description="stop after about so many events; the answer has the cursor to go on from"
    )


class ReplayEventsBody(Artifact):
    """From where on events are posted again."""

    after: Annotated[int, Field(strict=True, ge=0, le=2**62)]


class GoldenBody(Artifact):
    """How golden queries were answered."""

    results: Annotated[tuple[GoldenResult, ...], Field(min_length=1, max_length=10_000, fail_fast=True)]


class PackBody(Artifact):
    """A pack, as its YAML or JSON text."""

    pack: PackText


class CompareBody(Artifact):
    """Two packs, each a registered one (`acme@1.2.0`) or a text."""

    one: PackText
    other: PackText


class BacktestBody(Artifact):
    """The pack to try, a registered one or a text, on which part of history, and beside which."""

    pack: PackText
    against: Name | None = None
    since: Instant | None = None
    until: Instant | None = None
    limit: Annotated[int, Field(strict=True, ge=1, le=10_000)] = 1000
    recalls: Annotated[int, Field(strict=True, ge=0, le=2_000)] = 200
    texts: Annotated[bool, Strict()] = False


class BackfillBody(Artifact):
    """The registered pack whose ontology memories are to follow."""

    ref: Name
    dry_run: Annotated[bool, Strict()] = False


class ActivateBody(Artifact):
    """Why a version is put in force, and, if it is to be that one alone, in the place of which."""

    reason: Note
    expected: Name | None = None


class RetireBody(Artifact):
    """Why the use of a version ends."""

    reason: Note


class ClockResetBody(Artifact):
    """Why a tenant's clock is brought back."""

    reason: Name


class RerunBody(Artifact):
    """Why a capture is to be consolidated again."""

    reason: RerunReason


class RequeueBody(Artifact):
    """Which parked captures; none named: all."""

    capture_ids: Annotated[tuple[Name, ...], Field(min_length=1, max_length=10_000, fail_fast=True)] | None = None


def given(body: BaseModel, *apart: str) -> dict[str, Any]:
    """What a body says, as a verb's own arguments; what it does not say keeps the verb's default."""
    return {name: getattr(body, name) for name in body.model_fields_set.difference(apart)}


def run_asked(run: RunAsked, tenant_id: str) -> RunContext:
    """The run that a reviewer or an auditor asks about; raises `InvalidInput` where it is nobody's."""
    if run.agent_id is None:
        raise InvalidInput("is required: whose run is it", field="run.agent_id")
    # It is asked what such a run would see: the role it is asked about is taken for one that its agent holds.
    return RunContext(**given(run), tenant_id=tenant_id, roles={run.role})


def page(items: Sequence[T], limit: int, key: str) -> Page[T]:
    """A page of what was found; a full one may be followed by another."""
    return Page(items=items, next=getattr(items[-1], key) if len(items) == limit else None)
