"""What `capture`, `propose` and `correct` take, and how a checked capture is made of it."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from muniment.errors import InvalidInput
from muniment.model.capture import CaptureInput, Circumstances, FactFields, Happening, TypedFact
from muniment.model.context import Asker, Principal, RunContext
from muniment.model.fields import (
    CaptureKind,
    Ceid,
    EvidenceRefs,
    Instant,
    Intent,
    Json,
    Label,
    Name,
    Probability,
    Qualifiers,
    Text,
    build,
    build_many,
)
from muniment.verbs.inputs import Passed, VerbInput


class CaptureFields(Happening):
    """What `capture` takes."""


class CaptureMany(VerbInput):
    """What `capture_many` takes."""

    items: Annotated[Any, Passed(Sequence[Mapping[str, Any]])] = Field(alias="captures")


class ProposeFields(FactFields, Circumstances):
    """What `propose` takes: a typed fact, and the circumstances of its capture."""

    kind: CaptureKind = "statement"


class CorrectFields(VerbInput):
    """What `correct` takes beside its target."""

    value: Json = None
    text: Text | None = None
    confidence: Probability = 0.60
    classification: Label | None = None
    subject: Ceid | None = None
    user_id: Name | None = None
    intent_id: Intent | None = None
    qualifiers: Qualifiers = Field(default_factory=dict)
    evidence_refs: EvidenceRefs = ()
    observed_at: Instant | None = None
    origin: Name | None = None
    idempotency_key: Name | None = None


_FROM_RUN = ("user_id", "session_id", "run_id", "intent_id", "workflow_id", "decision_key", "qualifiers")
_CAPTURES: TypeAdapter[list[CaptureInput]] = TypeAdapter(Annotated[list[CaptureInput], Field(fail_fast=True)])
# The fields that are checked here, before pydantic checks the rest.
_CHECKED_HERE = frozenset({"fact", "user_id"})
# `corrects` is set by `correct` alone.
_OF_FACT = frozenset(TypedFact.model_fields) - {"corrects"}


def run_fields(asker: Asker) -> dict[str, Any]:
    """What a run context tells of everything captured in it; an end user captures for itself alone."""
    if not isinstance(asker, RunContext):
        own = isinstance(asker, Principal) and asker.kind == "end_user"
        return {"user_id": asker.id} if own else {}
    return {name: getattr(asker, name) for name in _FROM_RUN}


def capture_input(known: dict[str, Any], fields: Mapping[str, Any]) -> CaptureInput:
    """Check a capture; what the run tells is filled in where the caller does not say otherwise."""
    return build(CaptureInput, _filled(known, fields))


def capture_inputs(
    known: dict[str, Any], items: Sequence[Mapping[str, Any]], *, within: str, first: int
) -> list[CaptureInput]:
    """Check many captures; an error names the item, counted from `first`."""
    checked_here = _CHECKED_HERE if known.get("user_id") is not None else {"fact"}
    if all(type(item) is dict and checked_here.isdisjoint(item) for item in items):
        given: list[Mapping[str, Any]] = [{**known, **item} for item in items]
    else:
        given = [_filled_at(known, item, f"{within}.{place}") for place, item in enumerate(items, first)]
    return build_many(CaptureInput, _CAPTURES, given, within=within, first=first)


def _filled_at(known: dict[str, Any], fields: Mapping[str, Any], place: str) -> dict[str, Any]:
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
    """Check a proposal: the typed fact within its capture."""
    given = _filled(known, fields)
    stated = {name: given.pop(name) for name in list(given) if name in _OF_FACT}
    fact = build(TypedFact, stated | {"corrects": corrects})
    if "payload" in given:
        raise InvalidInput("is not a known field", field="payload")
    return build(CaptureInput, {"kind": "statement"} | given | {"fact": fact})
