"""The pack's extractors: its own field maps, and which of the built-in extractors are on."""

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from muniment.model.fields import CaptureKind, WriteClass
from muniment.pack.durations import Duration
from muniment.pack.fields import (
    ClassificationName,
    Flag,
    JsonPath,
    ModelName,
    Namespace,
    Number,
    PositiveCount,
    PredicateOrPath,
    Scalar,
    Section,
    Semver,
    Share,
    Template,
    TokenCount,
    ToolName,
    Unique,
    UniqueSome,
    Url,
    Word,
    setting,
)


class ExtractorMatch(Section):
    """Which captures an extractor reads."""

    kind: CaptureKind | None = setting("tool_result", "Kind of capture; null is any.")
    origin: ToolName | None = setting(None, "Origin, such as tool:crm.lookup; null is any.")


class FieldCondition(Section):
    """A condition on a tool's result; all tests that are set must hold."""

    path: JsonPath = Field(description="JSONPath to the tested value.")
    exists: Flag | None = setting(None, "Whether there is a value; null counts as none.")
    equals: Scalar | None = setting(None, "The value it must equal.")
    one_of: Annotated[tuple[Scalar, ...], Field(max_length=256)] | None = setting(
        None, "The values of which it must equal one."
    )
    at_least: Number | None = setting(None, "The least number it may be.")
    at_most: Number | None = setting(None, "The greatest number it may be.")


class FieldMap(Section):
    """One fact in a tool's JSON result: where to find it, and what it becomes."""

    each: JsonPath | None = setting(
        None, "JSONPath to the items of a list: the other paths begin at each of them, $$ is the root."
    )
    when: Annotated[tuple[FieldCondition, ...], Field(max_length=16)] = setting(
        (), "Conditions under which the fact is extracted."
    )
    entity: JsonPath | None = setting(
        None, "JSONPath to the entity: a CEID, or an id when namespace is given. null is the capture's subject."
    )
    namespace: Namespace | None = setting(None, "Put before the id found, as in customer:cus_77.")
    predicate: PredicateOrPath | None = setting(None, "The predicate, or a JSONPath to it.")
    value: JsonPath | None = setting(None, "JSONPath to the value.")
    write_class: WriteClass = Field(description="Write class of the candidate.")
    text: Template | None = setting(
        None, "The fact in words, with JSONPaths in braces; null writes it from the fields."
    )
    evidence: Annotated[tuple[Template, ...], Field(max_length=16)] = setting(
        (), "Evidence refs: JSONPaths, or texts with JSONPaths in braces, as in crm:{$.call_id}."
    )
    confidence: Share = setting(0.80, "Raw confidence of the candidate.")
    confidence_path: JsonPath | None = setting(
        None, "JSONPath to a raw confidence, which takes precedence over confidence."
    )
    classification: ClassificationName | None = setting(
        None, "Least classification of the candidate; null is the capture's own."
    )


class ExtractorMap(Section):
    """A declarative extractor: from a tool's JSON result to candidates."""

    name: Word = Field(description="Its name; unique in the pack.")
    version: Semver = Field(description="Its version; must change whenever its result does.")
    match: ExtractorMatch = setting(ExtractorMatch, "Which captures it reads.")
    fields: Annotated[tuple[FieldMap, ...], Field(min_length=1, max_length=256)] = Field(
        description="The facts it extracts."
    )


class ModelExtraction(Section):
    """A language model that extracts facts: one of those that the server's settings name."""

    model: ModelName = setting(
        "default", "Its name among the server's models (MUNIMENT_MODELS); default is the one of MUNIMENT_MODEL."
    )
    url: Url | None = setting(
        None, "No longer accepted: the server's settings say where a model is. Registered packs still load."
    )
    version: Semver = setting("1.0.0", "Must change whenever its result may: another model, other settings.")
    kinds: UniqueSome[CaptureKind] = setting(("message",), "Kinds of capture sent to it.")
    classifications_allowed: Unique[ClassificationName] | None = setting(
        None, "Labels of captures sent to it; null is every label that is not sensitive."
    )
    timeout: Duration = setting(timedelta(seconds=30), "Longest time for a whole answer.")
    max_tokens: TokenCount = setting(1024, "Most tokens of an answer.")
    daily_calls: PositiveCount = setting(1000, "Most answers per day and tenant.")
    confidence: Share = setting(0.60, "Highest confidence the model may give a fact.")


class Extraction(Section):
    """Which extractors are on beside the field maps."""

    messages: Flag = setting(True, "Rules for what people say of themselves, in English.")
    said: Flag = setting(
        True,
        "Sentences of messages that are worth knowing later, word for word; none where `statements_from` has messages.",
    )
    decisions: Flag = setting(True, "Decisions and effects, as decision_outcome.")
    approvals: Flag = setting(True, "Approvals, as evidence_link.")
    model: ModelExtraction | None = setting(None, "A language model; null is none.")
    plugins: Unique[Word] = setting((), "Installed plug-ins, by the names of their entry points.")
    timeout: Duration = setting(timedelta(seconds=60), "Longest time any extractor may take for a capture.")
    tries: PositiveCount = setting(5, "How often a capture is tried before it is parked.")
    retry_after: Duration = setting(
        timedelta(seconds=30), "Time until the second try; four times as long before each further one."
    )
