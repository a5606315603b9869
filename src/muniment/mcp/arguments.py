"""What each tool takes: fields of a verb's input, described for a model.

Whom a run acts for is settled by the connection: no tenant, agent, user, session or clearance here.
"""

from typing import Annotated, Any, Literal, get_origin

from pydantic import BaseModel, Field, create_model

from muniment.capture.rules import CaptureFields, ProposeFields
from muniment.model.fields import Artifact, Instant, Text
from muniment.model.inputs import CompileInput, ExplainInput, RecallInput

# Corrections are a person's to write.
ProposedClass = Literal["preference", "decision_outcome", "statement", "evidence_link"]
# Chat messages are for whoever puts a prompt together, not for a tool's result.
TextFormat = Literal["markdown", "xml", "json"]


def _arguments(verb: str, taken: type[BaseModel], described: dict[str, str], **types: Any) -> type[Artifact]:
    """A model of those fields of an input; `types` are narrower than the input's own. What is optional may be null."""
    fields: dict[str, Any] = {}
    for name, description in described.items():
        one = taken.model_fields[name]
        kind: Any = types.get(name) or (Annotated[(one.annotation, *one.metadata)] if one.metadata else one.annotation)
        if one.is_required():
            fields[name] = (kind, Field(description=description))
            continue
        may_be_null = one.annotation is not Any and get_origin(one.annotation) is not tuple
        default = None if may_be_null else one.default
        fields[name] = (kind | None if may_be_null else kind, Field(default=default, description=description))
    return create_model(
        f"{verb.title().replace('_', '')}Arguments", __base__=Artifact, __doc__=f"What `{verb}` takes.", **fields
    )


_CIRCUMSTANCES = {
    "classification": "How sensitive it is: PUBLIC, INTERNAL, CONFIDENTIAL, PII (about an identifiable person's "
    "private matters) or RESTRICTED, unless this tenant's pack declares other labels. When in doubt take the "
    "stricter one.",
    "subject": "Whom or what it is about, as namespace:id with an opaque id, such as customer:cus_77. Never a "
    "name, a mail address or a card number.",
    "evidence_refs": "What it rests on, such as tool:crm.lookup:tc_212 or session:sess_42f1. References, not content.",
    "origin": "Where it came from, such as tool:crm.lookup or channel:app_chat.",
    "recall_id": "The recall it is based on (rcl_...), if there was one.",
    "decision_key": "Which decision it belongs to, such as refund:ord_4711; needed for an evidence_link.",
    "observed_at": "When it was seen, in ISO 8601 with its zone; by default now.",
    "valid_from": "From when it holds in the world, in ISO 8601 with its zone; by default open.",
    "valid_until": "Until when it holds in the world; by default open.",
    "idempotency_key": "Any string of yours. The same call again under the same key changes nothing.",
}
_NARROWED = {
    "query": "The question or topic in plain words, such as 'refunds to an expired card'. Without it, the most "
    "important memories come first.",
    "limit": "The maximum number of records; the tenant's pack may set a lower limit.",
    "entities": "Only about these, such as customer:cus_77.",
    "hops": "Also about entities that are one or two steps from those in the entity graph.",
    "classes": "Only of these classes.",
    "tiers": "Only of these tiers.",
    "as_of": "What was known at that past moment, in ISO 8601 with its zone; by default now.",
    "valid_at": "Only what holds in the world at that time, in ISO 8601 with its zone; by default now, or as_of.",
}

CaptureArguments = _arguments(
    "capture",
    CaptureFields,
    {
        **_CIRCUMSTANCES,
        "kind": "What happened: message (somebody said it), tool_result (a tool returned it), decision (you "
        "decided it), effect (something was done), approval (a person allowed it), statement (a plain fact).",
        "text": "What happened, in words, at most 32 KiB. Give text, a payload, or both.",
        "payload": "What happened, as JSON, at most 256 KiB; a tool's result as it came.",
    },
)
ProposeArguments = _arguments(
    "propose",
    ProposeFields,
    {
        **_CIRCUMSTANCES,
        "write_class": "preference (what somebody wants), decision_outcome (how a decision turned out), statement (a "
        "plain fact in words) or evidence_link (that a decision rests on evidence; references only).",
        "text": "The fact as one sentence that can be understood on its own. Required for a statement; for the "
        "others it is how the value reads; none for an evidence_link.",
        "entity": "Whom or what the fact is about, such as customer:cus_77. With predicate and value for a "
        "preference or a decision_outcome; none for a statement.",
        "predicate": "What is said of the entity, such as prefers_communication_channel.",
        "value": "What the predicate's value is, as JSON, such as email.",
        "confidence": "How sure you are, from 0 to 1; by default 0.6. Your record corrects it.",
        "kind": "What it was learned from; by default statement. An evidence_link takes decision.",
    },
    write_class=ProposedClass,
)
RecallArguments = _arguments("recall", RecallInput, _NARROWED, as_of=Instant)
CompileArguments = _arguments(
    "compile",
    CompileInput,
    {
        **_NARROWED,
        "token_budget": "Most tokens that the text may take; by default 1024.",
        "format": "How the text is written; by default markdown.",
    },
    as_of=Instant,
    format=TextFormat,
)
ExplainArguments = _arguments(
    "explain",
    ExplainInput,
    {
        "memory_id": "The memory (pm_...), as a recall or a compile named it.",
        "recall_id": "Why it was or was not in that recall of yours (rcl_...). Not together with as_of.",
        "as_of": "Whether it could be seen at that past moment, in ISO 8601 with its zone.",
        "valid_at": "Whether it holds in the world at that time, in ISO 8601 with its zone; by default at that moment.",
    },
    as_of=Instant,
)
MyMemoryArguments = _arguments(
    "my_memory",
    RecallInput,
    {
        "query": "What the person asks about, in plain words; without it, the most important memories come first.",
        "limit": "The maximum number of records; the tenant's pack may set a lower limit.",
    },
)
AskArguments = _arguments(
    "ask_to_remember",
    ProposeFields,
    {
        "text": "What shall be remembered about the person, as one sentence, as they said it.",
        "classification": _CIRCUMSTANCES["classification"],
        "evidence_refs": _CIRCUMSTANCES["evidence_refs"],
        "idempotency_key": _CIRCUMSTANCES["idempotency_key"],
    },
    text=Text,
)


def given(arguments: Artifact) -> dict[str, Any]:
    """The arguments that were given, by name; for the others the verb has its defaults."""
    said = {name: getattr(arguments, name) for name in arguments.model_fields_set}
    return {name: value for name, value in said.items() if value is not None}
