"""What each tool takes. Whom a run acts for is the door's to say: no tenant, agent, user, session or clearance here."""

from typing import Annotated, Any, Literal

from pydantic import Field

from muniment.model.fields import (
    Artifact,
    CaptureKind,
    Ceid,
    EvidenceRefs,
    Instant,
    Json,
    Label,
    Name,
    Predicate,
    Probability,
    Query,
    Text,
    Tier,
    WriteClass,
)

# Corrections are a person's to write.
ProposedClass = Literal["preference", "decision_outcome", "statement", "evidence_link"]
# Chat messages are for whoever puts a prompt together, not for a tool's result.
TextFormat = Literal["markdown", "xml", "json"]


class _Circumstances(Artifact):
    classification: Label = Field(
        description="How sensitive it is: PUBLIC, INTERNAL, CONFIDENTIAL, PII (about an identifiable person's private "
        "matters) or RESTRICTED, unless this tenant's pack declares other labels. When in doubt take the stricter one.",
    )
    subject: Ceid | None = Field(
        default=None,
        description="Whom or what it is about, as namespace:id with an opaque id, such as customer:cus_77. Never a "
        "name, a mail address or a card number.",
    )
    evidence_refs: EvidenceRefs = Field(
        default=(),
        description="What it rests on, such as tool:crm.lookup:tc_212 or session:sess_42f1. References, not content.",
    )
    origin: Name | None = Field(
        default=None, description="Where it came from, such as tool:crm.lookup or channel:app_chat."
    )
    recall_id: Name | None = Field(default=None, description="The recall it rests on (rcl_...), where there was one.")
    decision_key: Name | None = Field(
        default=None, description="Which decision it belongs to, such as refund:ord_4711; needed for an evidence_link."
    )
    observed_at: Instant | None = Field(
        default=None, description="When it was seen, in ISO 8601 with its zone; now when not said."
    )
    idempotency_key: Name | None = Field(
        default=None, description="Any string of yours. The same call again under the same key changes nothing."
    )


class CaptureArguments(_Circumstances):
    """What `capture` takes."""

    kind: CaptureKind = Field(
        description="What happened: message (somebody said it), tool_result (a tool returned it), decision (you "
        "decided it), effect (something was done), approval (a person allowed it), statement (a plain fact)."
    )
    text: Text | None = Field(
        default=None, description="What happened, in words, at most 32 KiB. Give text, a payload, or both."
    )
    payload: Json = Field(
        default=None, description="What happened, as JSON, at most 256 KiB; a tool's result as it came."
    )


class ProposeArguments(_Circumstances):
    """What `propose` takes."""

    write_class: ProposedClass = Field(
        description="preference (what somebody wants), decision_outcome (how a decision turned out), statement (a "
        "plain fact in words) or evidence_link (that a decision rests on evidence; references only)."
    )
    text: Text | None = Field(
        default=None,
        description="The fact as one sentence that can be understood on its own. Required for a statement; for the "
        "others it is how the value reads; none for an evidence_link.",
    )
    entity: Ceid | None = Field(
        default=None,
        description="Whom or what the fact is about, such as customer:cus_77. With predicate and value for a "
        "preference or a decision_outcome; none for a statement.",
    )
    predicate: Predicate | None = Field(
        default=None, description="What is said of the entity, such as prefers_communication_channel."
    )
    value: Json = Field(default=None, description="What the predicate's value is, as JSON, such as email.")
    confidence: Probability | None = Field(
        default=None, description="How sure you are, from 0 to 1; 0.6 when not said. Your record corrects it."
    )
    kind: CaptureKind | None = Field(
        default=None, description="What it was learned from; statement when not said. An evidence_link takes decision."
    )


class _Narrowed(Artifact):
    query: Query | None = Field(
        default=None,
        description="The question or topic in plain words, such as 'refunds to an expired card'. Left out, the most "
        "important memories come first.",
    )
    limit: Annotated[int, Field(strict=True, ge=1, le=10_000)] | None = Field(
        default=None, description="At most so many records; the tenant's pack bounds it."
    )
    entities: Annotated[tuple[Ceid, ...], Field(max_length=256, fail_fast=True)] | None = Field(
        default=None, description="Only about these, such as customer:cus_77."
    )
    hops: Annotated[int, Field(strict=True, ge=0, le=2)] | None = Field(
        default=None, description="Also about entities that are one or two steps from those in the entity graph."
    )
    classes: Annotated[tuple[WriteClass, ...], Field(max_length=64, fail_fast=True)] | None = Field(
        default=None, description="Only of these classes."
    )
    tiers: Annotated[tuple[Tier, ...], Field(max_length=64, fail_fast=True)] | None = Field(
        default=None, description="Only of these tiers."
    )
    as_of: Instant | None = Field(
        default=None, description="What was known at that past moment, in ISO 8601 with its zone; now when not said."
    )


class RecallArguments(_Narrowed):
    """What `recall` takes."""


class CompileArguments(_Narrowed):
    """What `compile` takes."""

    token_budget: Annotated[int, Field(strict=True, ge=1, le=1_000_000)] | None = Field(
        default=None, description="Most tokens that the text may take; 1024 when not said."
    )
    format: TextFormat | None = Field(default=None, description="How the text is written; markdown when not said.")


class ExplainArguments(Artifact):
    """What `explain` takes."""

    memory_id: Name = Field(description="The memory (pm_...), as a recall or a compile named it.")
    recall_id: Name | None = Field(
        default=None, description="Why it was or was not in that recall of yours (rcl_...). Not together with as_of."
    )
    as_of: Instant | None = Field(
        default=None, description="Whether it could be seen at that past moment, in ISO 8601 with its zone."
    )


def given(arguments: Artifact) -> dict[str, Any]:
    """What was said, by name; what was not is the fabric's to fill in."""
    said = {name: getattr(arguments, name) for name in arguments.model_fields_set}
    return {name: value for name, value in said.items() if value is not None}
