"""The fields each verb takes, for type checkers; at run time pydantic checks them and names the one at fault."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Required, TypedDict

from muniment.errors import InvalidInput
from muniment.model.capture import CaptureInput, TypedFact
from muniment.model.context import Asker, RunContext
from muniment.model.fields import CaptureKind, WriteClass, build


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


_FROM_RUN = ("user_id", "session_id", "run_id", "intent_id", "workflow_id", "decision_key", "qualifiers")
_OF_FACT = frozenset(TypedFact.model_fields)


def capture_input(asker: Asker, fields: Mapping[str, Any]) -> CaptureInput:
    """A checked capture; what a run context knows is filled in where the caller did not say otherwise."""
    if "fact" in fields:
        raise InvalidInput("is not a known field", field="fact")
    return build(CaptureInput, with_run(asker, fields))


def proposal_input(asker: Asker, fields: Mapping[str, Any]) -> CaptureInput:
    """A checked proposal: the typed fact within its capture."""
    given = with_run(asker, fields)
    fact = build(TypedFact, {name: given.pop(name) for name in list(given) if name in _OF_FACT})
    if "payload" in given:
        raise InvalidInput("is not a known field", field="payload")
    return build(CaptureInput, {"kind": "statement"} | given | {"fact": fact})


def with_run(asker: Asker, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields with the run's own circumstances where they were left open."""
    if not isinstance(fields, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput("expected a mapping of fields", field="captures")
    if not isinstance(asker, RunContext):
        return dict(fields)
    return {name: getattr(asker, name) for name in _FROM_RUN if name not in fields} | dict(fields)
