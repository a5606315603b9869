"""The fields each verb takes, for type checkers; at run time pydantic checks them and names the one at fault."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Required, Self, TypedDict

from pydantic import Field, StringConstraints, TypeAdapter, model_validator

from muniment.errors import InvalidInput
from muniment.model.capture import CaptureInput, TypedFact
from muniment.model.compiled import Format
from muniment.model.context import Asker, Principal, RunContext
from muniment.model.fields import (
    Artifact,
    AsOf,
    CaptureKind,
    Ceid,
    Name,
    Query,
    Tier,
    WriteClass,
    build,
    build_many,
    misses,
)


class _Circumstances(TypedDict, total=False):
    classification: Required[str]
    origin: str | None
    subject: str | None
    user_id: str | None
    session_id: str | None
    run_id: str | None
    recall_id: str | None
    intent_id: str | None
    workflow_id: str | None
    decision_key: str | None
    qualifiers: Mapping[str, str]
    evidence_refs: Sequence[str]
    observed_at: datetime | None
    idempotency_key: str | None


class CaptureFields(_Circumstances, total=False):
    """What `capture` takes."""

    kind: Required[CaptureKind]
    text: str | None
    payload: Any


class ProposeFields(_Circumstances, total=False):
    """What `propose` takes: a typed fact, and the circumstances of its capture."""

    write_class: Required[WriteClass]
    entity: str | None
    predicate: str | None
    value: Any
    text: str | None
    confidence: float
    kind: CaptureKind


class CorrectFields(TypedDict, total=False):
    """What `correct` takes beside its target."""

    value: Any
    text: str | None
    confidence: float
    classification: str
    subject: str | None
    user_id: str | None
    intent_id: str | None
    qualifiers: Mapping[str, str]
    evidence_refs: Sequence[str]
    observed_at: datetime | None
    origin: str | None
    idempotency_key: str | None


class ConsentFields(TypedDict, total=False):
    """What `consent.grant` takes."""

    subject: Required[str]
    purpose: Required[str]
    predicates_allowed: Required[Sequence[str]]
    data_classifications_allowed: Required[Sequence[str]]
    basis: Required[str]
    valid_from: datetime | None
    valid_until: datetime | None
    evidence_refs: Sequence[str]
    supersedes: str | None


class RecallFields(TypedDict, total=False):
    """What a recall is narrowed by."""

    limit: int | None
    tiers: Sequence[Tier] | None
    classes: Sequence[WriteClass] | None
    entities: Sequence[str] | None
    hops: int
    as_of: datetime | int | None


class ExplainInput(Artifact):
    """What `explain` is asked about."""

    memory_id: Name
    recall_id: Name | None = None
    as_of: AsOf | None = None
    run: RunContext | None = None

    @model_validator(mode="after")
    def _one_moment(self) -> Self:
        if self.recall_id is not None and (self.as_of is not None or self.run is not None):
            raise misses("recall_id", "a recall has its own moment and its own run; give it alone")
        return self


class CompileFields(RecallFields, total=False):
    """How a recall is compiled, beside what it is narrowed by."""

    token_budget: int
    format: Format
    tokenizer: str | None


class CompileInput(Artifact):
    """A compile as it was asked for."""

    token_budget: Annotated[int, Field(strict=True, ge=1, le=1_000_000)] = 1024
    format: Format = "markdown"
    tokenizer: Annotated[str, StringConstraints(strict=True, min_length=1, max_length=4096)] | None = None


class RecallInput(Artifact):
    """A recall as it was asked for."""

    query: Query | None = None
    limit: Annotated[int, Field(strict=True, ge=1, le=10_000)] | None = None
    tiers: Annotated[frozenset[Tier], Field(fail_fast=True)] | None = None
    classes: Annotated[frozenset[WriteClass], Field(fail_fast=True)] | None = None
    entities: Annotated[frozenset[Ceid], Field(max_length=256, fail_fast=True)] | None = None
    hops: Annotated[int, Field(strict=True, ge=0, le=2)] = 0
    as_of: AsOf | None = None

    @model_validator(mode="after")
    def _hops_begin_somewhere(self) -> Self:
        if self.hops and not self.entities:
            raise misses("hops", "give the entities that the steps begin at")
        return self


_FROM_RUN = ("user_id", "session_id", "run_id", "intent_id", "workflow_id", "decision_key", "qualifiers")
_CAPTURES: TypeAdapter[list[CaptureInput]] = TypeAdapter(Annotated[list[CaptureInput], Field(fail_fast=True)])
# The fields that need a look before pydantic's.
_LOOKED_AT = frozenset({"fact", "user_id"})
# What a correction is written on is said to `correct` alone.
_OF_FACT = frozenset(TypedFact.model_fields) - {"corrects"}


def run_fields(asker: Asker) -> dict[str, Any]:
    """What a run context knows about everything that is captured in it; an end user captures for itself alone."""
    if not isinstance(asker, RunContext):
        own = isinstance(asker, Principal) and asker.kind == "end_user"
        return {"user_id": asker.id} if own else {}
    return {name: getattr(asker, name) for name in _FROM_RUN}


def capture_input(known: dict[str, Any], fields: Mapping[str, Any]) -> CaptureInput:
    """A checked capture; what the run knows is filled in where the caller did not say otherwise."""
    return build(CaptureInput, _filled(known, fields))


def capture_inputs(
    known: dict[str, Any], items: Sequence[Mapping[str, Any]], *, within: str, first: int
) -> list[CaptureInput]:
    """Many checked captures; an error names the item, counted from `first`."""
    looked_at = _LOOKED_AT if known.get("user_id") is not None else {"fact"}
    if all(type(item) is dict and looked_at.isdisjoint(item) for item in items):
        given: list[Mapping[str, Any]] = [{**known, **item} for item in items]
    else:
        given = [_named(known, item, f"{within}.{place}") for place, item in enumerate(items, first)]
    return build_many(CaptureInput, _CAPTURES, given, within=within, first=first)


def _named(known: dict[str, Any], fields: Mapping[str, Any], place: str) -> dict[str, Any]:
    try:
        return _filled(known, fields)
    except InvalidInput as error:
        error.field = f"{place}.{error.field}" if error.field else place
        raise


def _filled(known: dict[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(fields, Mapping):
        raise InvalidInput("expected a mapping of fields")
    if "fact" in fields:
        raise InvalidInput("is not a known field", field="fact")
    filled = {**known, **fields}
    own = known.get("user_id")
    if own is not None and filled["user_id"] not in (own, None):
        raise InvalidInput("is another user than the run's own", field="user_id")
    return filled


def proposal_input(known: dict[str, Any], fields: Mapping[str, Any], *, corrects: str | None = None) -> CaptureInput:
    """A checked proposal: the typed fact within its capture."""
    given = _filled(known, fields)
    stated = {name: given.pop(name) for name in list(given) if name in _OF_FACT}
    fact = build(TypedFact, stated | {"corrects": corrects})
    if "payload" in given:
        raise InvalidInput("is not a known field", field="payload")
    return build(CaptureInput, {"kind": "statement"} | given | {"fact": fact})
