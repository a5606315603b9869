"""What each tool takes: fields of a verb's input, described in a few words, as all tools together have a budget.

Whom a run acts for is settled by the connection: no tenant, agent, user, session or clearance here. What a model leaves
out is filled in (`filled`).
"""

from typing import Annotated, Any, Literal, get_origin

from pydantic import BaseModel, Field, create_model

from muniment.model.capture import Circumstances, FactFields, Happening
from muniment.model.fields import Artifact, CaptureKind, Instant, Label, Text
from muniment.model.inputs import CompileInput, ExplainInput, RecallInput

# Corrections are a person's to write.
ProposedClass = Literal["preference", "decision_outcome", "statement", "evidence_link"]
CLASSIFICATION = "INTERNAL"


class _Propose(FactFields, Circumstances):
    """The fields of a proposal; its kind is filled in."""


def _arguments(tool: str, taken: type[BaseModel], described: dict[str, str], **types: Any) -> type[Artifact]:
    """A model of those fields of an input; `types` replace the input's own. What is optional may be null."""
    fields: dict[str, Any] = {}
    for name, description in described.items():
        one = taken.model_fields[name]
        kind: Any = types.get(name) or (Annotated[(one.annotation, *one.metadata)] if one.metadata else one.annotation)
        words: dict[str, Any] = {"description": description} if description else {}
        if one.is_required() and name not in _FILLED_IN:
            fields[name] = (kind, Field(**words))
            continue
        may_be_null = one.annotation is not Any and get_origin(one.annotation) is not tuple
        default = None if may_be_null else one.default
        fields[name] = (kind | None if may_be_null else kind, Field(default=default, **words))
    return create_model(
        f"{tool.title().replace('_', '')}Arguments", __base__=Artifact, __doc__=f"What `{tool}` takes.", **fields
    )


# Required by the verb, and filled in where a model leaves them out.
_FILLED_IN = frozenset({"kind", "classification", "write_class"})
_LABEL = "PUBLIC, INTERNAL (default), CONFIDENTIAL, PII, RESTRICTED, or this pack's own"
_CIRCUMSTANCES = {
    "classification": _LABEL,
    "subject": "whom it is about, if not the user, as namespace:opaque_id",
    "evidence_refs": "what it rests on: ticket:42, tool:crm:tc_1",
    "origin": "tool:NAME or channel:NAME",
    "recall_id": "",
    "decision_key": "",
    "idempotency_key": "",
}

CaptureArguments = _arguments(
    "capture",
    Happening,
    {
        "text": "what happened, in words",
        "payload": "or as JSON",
        "kind": "default statement; tool_result for a payload alone",
        **_CIRCUMSTANCES,
        "observed_at": "ISO 8601 with zone",
    },
    kind=CaptureKind,
    classification=Label,
)
ProposeArguments = _arguments(
    "propose",
    _Propose,
    {
        "write_class": "default statement",
        "text": "the fact as one full sentence; required for a statement",
        "entity": "of the other classes: default the user; namespace:opaque_id",
        "predicate": "such as prefers_channel",
        "value": 'JSON, such as "email"',
        "confidence": "0 to 1, default 0.6",
        **_CIRCUMSTANCES,
        "valid_from": "ISO 8601 with zone",
        "valid_until": "",
    },
    write_class=ProposedClass,
    classification=Label,
)
_NARROWED = {
    "query": "in plain words; none: the most important first",
    "limit": "",
    "entities": "only about these",
    "classes": "",
    "tiers": "",
    "as_of": "known at that time; ISO 8601 with zone",
    "valid_at": "true at that time",
}
RecallArguments = _arguments(
    "recall", RecallInput, {**_NARROWED, "hops": "1 or 2: also about entities linked to those"}, as_of=Instant
)
CompileArguments = _arguments("compile", CompileInput, {**_NARROWED, "token_budget": "default 1024"}, as_of=Instant)
ExplainArguments = _arguments(
    "explain",
    ExplainInput,
    {"memory_id": "pm_...", "recall_id": "in that recall (rcl_...)", "as_of": "ISO 8601 with zone", "valid_at": ""},
    as_of=Instant,
)
MyMemoryArguments = _arguments("my_memory", RecallInput, {"query": "", "limit": ""})
AskArguments = _arguments(
    "ask_to_remember",
    _Propose,
    {
        "text": "one sentence, as they said it",
        "classification": "as in propose",
        "evidence_refs": "",
        "idempotency_key": "",
    },
    text=Text,
    classification=Label,
)


def given_arguments(arguments: Artifact) -> dict[str, Any]:
    """The arguments that were given, by name; null counts as not given."""
    said = {name: getattr(arguments, name) for name in arguments.model_fields_set}
    return {name: value for name, value in said.items() if value is not None}


def with_capture_defaults(arguments: dict[str, Any]) -> dict[str, Any]:
    """A capture is INTERNAL, and a statement; what is a payload alone is the result of a tool."""
    kind = "tool_result" if "payload" in arguments and "text" not in arguments else "statement"
    return {"kind": kind, "classification": CLASSIFICATION, **arguments}


def with_proposal_defaults(arguments: dict[str, Any], user_entity: str | None) -> dict[str, Any]:
    """A proposal is INTERNAL, and a statement; a typed fact without an entity is about the run's user."""
    filled = {"write_class": "statement", "classification": CLASSIFICATION, **arguments}
    if filled["write_class"] == "evidence_link":
        filled["kind"] = "decision"
    elif filled["write_class"] != "statement" and "entity" not in filled and user_entity is not None:
        filled["entity"] = user_entity
    return filled
