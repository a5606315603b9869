"""The pack's `memory_layer`: what may be written, who decides, how long it lives, how it is recalled."""

from datetime import timedelta
from typing import Annotated, Literal, Self, get_args

from pydantic import Field, ValidationInfo, field_validator, model_validator

from muniment.model.fields import CaptureKind, SourceClass, Tier, WriteClass
from muniment.pack.consent_policy import ConsentPolicy, SubjectPolicy
from muniment.pack.durations import Duration
from muniment.pack.extraction import Extraction, ExtractorMap
from muniment.pack.fields import (
    TIERS,
    WRITE_CLASSES,
    ClassificationName,
    EmbedderName,
    ExtractorVersion,
    Flag,
    IntentPattern,
    ModelName,
    Pattern,
    PositiveCount,
    PredicatePattern,
    RecallCount,
    Remark,
    Section,
    Share,
    ToolName,
    Unique,
    UniqueSome,
    VouchedSource,
    Weight,
    setting,
    with_defaults,
)
from muniment.pack.jobs import Schedule
from muniment.pack.write_classes import ClassPolicy, complete_policy

Unresolved = Literal["mark_both", "hold", "block"]
SourcePart = Literal["agent", "tool", "extractor"]
SOURCE_PARTS: tuple[SourcePart, ...] = get_args(SourcePart)

TTL: dict[Tier, timedelta | None] = {
    "working": timedelta(hours=1),
    "episodic": timedelta(days=30),
    "semantic": timedelta(days=365),
    "durable": None,
}
_EXPIRING: dict[Tier, timedelta | None] = {
    "working": None,
    "episodic": timedelta(days=3),
    "semantic": timedelta(days=30),
    "durable": timedelta(days=30),
}
_NO_WINDOW: dict[Tier, timedelta | None] = dict.fromkeys(TIERS)
_CAPTURES_STAY: dict[CaptureKind, timedelta | None] = dict.fromkeys(get_args(CaptureKind))


class TierWhen(Section):
    """The conditions of a routing rule; all that are set must hold, and none set matches everything."""

    source: SourceClass | None = setting(None, "The source of the capture; import is what another system had.")
    write_class: WriteClass | None = setting(None, "Its write class.")
    intent: IntentPattern | None = setting(None, "Its intent: this one or one under it.")
    sensitive: Flag | None = setting(None, "Whether its classification is sensitive.")
    kind: CaptureKind | None = setting(None, "The kind of its capture, such as tool_result.")


class TierRule(Section):
    """One rule of the routing table; the first that matches decides the tier."""

    when: TierWhen = setting(TierWhen, "Its conditions; none matches everything.")
    tier: Tier = Field(description="The tier of what matches.")


TIER_ROUTING: tuple[TierRule, ...] = (
    TierRule(when=TierWhen(source="operator"), tier="durable"),
    TierRule(when=TierWhen(write_class="correction"), tier="durable"),
    TierRule(when=TierWhen(write_class="preference"), tier="semantic"),
    TierRule(when=TierWhen(write_class="decision_outcome"), tier="episodic"),
    TierRule(when=TierWhen(intent="support.*"), tier="episodic"),
    TierRule(when=TierWhen(sensitive=True), tier="working"),
    TierRule(tier="semantic"),
)


class PriorityPolicy(Section):
    """Priority by source, plus a share for each evidence ref, at most 1 in all."""

    operator: Share = setting(0.9, "Base for an operator's capture.")
    system: Share = setting(0.7, "Base for the system's capture.")
    agent: Share = setting(0.5, "Base for an agent's capture.")
    per_evidence: Share = setting(0.05, "Added for each evidence ref.")
    evidence_max: Share = setting(0.3, "Most that all evidence refs add together.")


class MemoryPolicy(Section):
    """Where a promoted memory goes, how long it lives there, and how much it weighs."""

    tier_routing: Annotated[tuple[TierRule, ...], Field(min_length=1, max_length=256)] = setting(
        TIER_ROUTING, "The first rule that matches decides the tier; the last must match everything."
    )
    ttl: Annotated[dict[Tier, Duration | None], with_defaults(TTL)] = setting(
        TTL, "Lifetime of a memory by tier; null is no end. A tier left out keeps its default."
    )
    priority: PriorityPolicy = setting(PriorityPolicy, "Default priority of a memory.")


class StatementConfidence(Section):
    """Raw confidence of a plain-text statement by its source."""

    operator: Share = setting(0.95, "From an operator.")
    system: Share = setting(0.85, "From the system.")
    agent: Share = setting(0.60, "From an agent.")


class PromotionThresholds(Section):
    """The thresholds between a candidate and its promotion."""

    confidence_floor: Share = setting(0.30, "A candidate below it is refused.")
    auto_confidence: Share = setting(0.90, "Calibrated confidence required for auto-promotion, if the class sets none.")
    uncalibrated_cap: Share = setting(
        0.80, "Most that a source without history can claim; below every auto-promotion threshold."
    )
    statement_confidence: StatementConfidence = setting(
        StatementConfidence, "Raw confidence of plain statements by source."
    )
    calibrate_from: PositiveCount = setting(
        20, "Verdicts of people on a source that are needed to calibrate its confidence."
    )
    calibrate_over: Duration = setting(timedelta(days=180), "How far back verdicts count.")
    calibrate_by: UniqueSome[SourcePart] = setting(
        SOURCE_PARTS, "What makes a source: verdicts on facts that agree in all of these count together."
    )
    working: Share | None = setting(
        None,
        "Calibrated confidence required for auto-promotion to the working tier; null is the class's own threshold.",
    )
    sensitive_sla: Duration = setting(
        timedelta(hours=24), "Time to review sensitive proposals, if shorter than that of their class."
    )


class ConfidencePolicy(Section):
    """Raw confidence of what people say."""

    said: Share = setting(0.60, "Of what an end user's own messages state; of what they leave open 0.50 at most.")


class RecallWeights(Section):
    """How much each part of a score counts; the parts are added, so only their proportions matter."""

    vector: Weight = setting(1.0, "Similarity of meaning to the query.")
    words: Weight = setting(1.0, "Words shared with the query.")
    priority: Weight = setting(0.1, "The memory's priority.")
    recency: Weight = setting(0.05, "How recent it is.")
    confidence: Weight = setting(0.05, "Its calibrated confidence.")
    intent: Weight = setting(0.05, "Nearness of its intent to the run's.")
    entity: Weight = setting(0.2, "Whether it is about a requested entity.")


class RecallPolicy(Section):
    """How many memories a recall returns, of what age and confidence, in what order."""

    max_recalls: RecallCount = setting(8, "Most records of one recall.")
    freshness: Annotated[dict[Tier, Duration | None], with_defaults(_NO_WINDOW)] = setting(
        _NO_WINDOW, "Greatest age at which a memory of the tier is recalled; null or left out: any age."
    )
    confidence: Share = setting(0.50, "Records below it are returned separately, as low_confidence.")
    relevance_floor: Share = setting(
        0.05, "With a query, records whose vector, words and entity parts together are below it are left out."
    )
    weights: RecallWeights = setting(RecallWeights, "Weights of the score's parts.")
    recency_half_life: Duration = setting(timedelta(days=90), "Age at which the recency part of a score is halved.")


class Thresholds(Section):
    """The similarities from which two texts are compared, and can be duplicates."""

    similarity: Share = Field(description="Neighbours: two texts at least this similar are compared.")
    duplicate_similarity: Share = Field(description="Duplicates: two texts at least this similar can say the same.")


# What `muniment eval contradictions` and `eval duplicates` gave for the built-in embedder.
MEASURED: dict[str, Thresholds] = {
    "wordllama-256@1": Thresholds(similarity=0.60, duplicate_similarity=0.70),
}


class JudgePolicy(Section):
    """The judge of pairs: the trained one, where the tenant's language version has one, or a language model.

    The rules are asked first.
    """

    by: Literal["readers", "model"] = setting(
        "readers", "Who judges: the trained readers, or a language model, which is asked about masked texts."
    )
    model: ModelName = setting("default", "The model's name among the server's models, with by: model.")
    classifications_allowed: Unique[ClassificationName] | None = setting(
        None, "Labels of texts that are sent to the model; null is every label that is not sensitive."
    )
    timeout: Duration = setting(timedelta(seconds=10), "Longest time for an answer of the model.")
    daily_calls: PositiveCount = setting(1000, "Most questions to the model per day and tenant.")

    similarity: Share = setting(0.0, "Neighbours below the threshold are read too, down to this similarity.")
    pairs: PositiveCount = setting(
        8, "Of those below the threshold, in memory and in the same batch, the nearest are read, until so many were."
    )
    contradicts: Share | None = setting(
        None, "Score from which two texts contradict one another; null is the one measured with the judge."
    )
    same: Share | None = setting(None, "Score from which two texts say the same; null likewise.")
    trusted: Flag = setting(
        False, "Whether the judge alone may replace a memory or mark a duplicate; never a model. Otherwise a person."
    )

    @model_validator(mode="after")
    def _no_model_is_trusted(self) -> Self:
        if self.by == "model" and self.trusted:
            raise ValueError("a language model is never trusted alone; expected trusted: false with by: model")
        return self


class ContradictionPolicy(Section):
    """When two facts contradict each other, and what happens to them without a resolution."""

    unresolved: Unresolved = setting(
        "mark_both", "What an approval without a resolution does: mark_both, hold or block."
    )
    similarity: Share = setting(0.85, "Neighbour threshold for an embedder without a measured one.")
    duplicate_similarity: Share = setting(0.94, "Duplicate threshold for an embedder without a measured one.")
    embedders: Annotated[dict[EmbedderName, Thresholds], with_defaults(MEASURED)] = setting(
        MEASURED, "The thresholds measured for an embedder, by its name and version."
    )
    margin: Share = setting(0.15, "Margin of an auto_resolve that sets none.")
    own_updates: Flag = setting(
        False,
        "Whether a user's newer fact about themselves replaces their older one without a person, where rules find it.",
    )
    judge: JudgePolicy = setting(JudgePolicy, "The judge of pairs.")

    def thresholds_for(self, embedder: str) -> Thresholds:
        """The thresholds measured for the embedder, else those for any."""
        usual = Thresholds(similarity=self.similarity, duplicate_similarity=self.duplicate_similarity)
        return self.embedders.get(embedder, usual)


class SourceTrust(Section):
    """Trust by source class."""

    operator: Share = setting(1.0, "An operator.")
    system: Share = setting(0.9, "The system.")
    tool: Share = setting(0.7, "A tool that is not in trust.tools.")
    agent: Share = setting(0.6, "An agent.")
    end_user: Share = setting(0.5, "An end user.")


class TrustPolicy(Section):
    """How far each source is believed."""

    floor: Share = setting(0.40, "Below it only a person can promote a candidate.")
    sources: SourceTrust = setting(SourceTrust, "Initial trust by source.")
    tools: dict[ToolName, Share] = setting(dict, "Trust of single tools by name, such as crm.lookup.")
    instruction_penalty: Share = setting(
        0.70, "Subtracted when the content addresses the model instead of stating a fact."
    )
    guard: Share | None = setting(
        None, "Score of the trained guard from which trust is lowered by its score; null is the one measured with it."
    )


class ImportPolicy(Section):
    """What an import from another system counts for: a class of source of its own, whoever imports (IMP-2)."""

    trust: Share = setting(0.50, "Trust of a system that is not in imports.systems.")
    systems: dict[ToolName, Share] = setting(dict, "Trust of single systems by name, such as mem0.")
    confidence: Share = setting(0.60, "Raw confidence of an item that states none.")
    priority: Share = setting(0.5, "Base of its priority.")
    classification: ClassificationName | None = setting(
        None,
        "Label of items, and of proposal documents, that have none; null is the highest that is not sensitive.",
    )


class RejectionPolicy(Section):
    """How long a rejection is remembered."""

    remember: Duration = setting(timedelta(days=180), "How long the same fact is refused again.")


class RetentionPolicy(Section):
    """How far back the past can be replayed, and when captures move to the archive."""

    replay_horizon: Duration = setting(
        timedelta(days=90), "Nothing inside it is collected, so any moment of it can be replayed."
    )
    captures: Annotated[dict[CaptureKind, Duration | None], with_defaults(_CAPTURES_STAY)] = setting(
        _CAPTURES_STAY, "Age at which captures of a kind go to the archive; null or left out: they stay."
    )
    archives: Duration | None = setting(
        None, "Age at which an archive is dropped, counted from its last capture; null is never."
    )


class Budget(Section):
    """How much may be promoted; at the limit new promotions wait in the queue."""

    tier: Tier | None = setting(None, "The tier it counts; null is all.")
    write_class: WriteClass | None = setting(None, "The write class it counts; null is all.")
    records: PositiveCount | None = setting(None, "Most live memories.")
    bytes: PositiveCount | None = setting(None, "Most bytes of live memories.")


class AuditPolicy(Section):
    """The sample audit of what was promoted without a person."""

    sample_share: Share = setting(0.05, "Share of auto-promoted memories that reviewers see.")
    floor: Share = setting(0.95, "Auto-promotion stops when the lower bound of its measured accuracy falls below this.")
    min_samples: PositiveCount = setting(30, "Samples that are needed before the floor applies.")


class UndoPolicy(Section):
    """How long a promotion by policy can be undone."""

    term: Duration = setting(timedelta(days=1), "How long after it; later the memory can only be retracted.")


class ProvenSource(Section):
    """A source that policy believes before people have judged it, and who says so, and why (CAN-6).

    Its raw confidence counts without the cap, until it has verdicts enough to be calibrated.
    """

    vouched: VouchedSource | None = setting(
        None,
        "What a credential must vouch for: user, the words of the run's own end user; a tool, as tool:NAME; "
        "or what was imported from a system, as import:NAME.",
    )
    credential: ToolName | None = setting(None, "Instead: the id of the principal who captures.")
    extractors: UniqueSome[ExtractorVersion] = Field(
        description="The extractors that it is proven for, each with its version, such as messages@1."
    )
    classes: UniqueSome[WriteClass] = setting(WRITE_CLASSES, "The write classes that it is proven for.")
    declared_by: Remark = Field(description="Who says that it is proven.")
    reason: Remark = Field(description="Why.")


class AlertPolicy(Section):
    """When the fabric raises an alert."""

    contradictions: PositiveCount = setting(20, "Open contradictions that raise an alert.")
    expiring_within: Annotated[dict[Tier, Duration | None], with_defaults(_EXPIRING)] = setting(
        _EXPIRING, "How long before its end a memory is reported, by tier; null is never."
    )
    budget_share: Share = setting(0.90, "Share of a budget that raises an alert.")


class FlagRule(Section):
    """Facts that a person must review in any case: on a predicate, with a text, or both."""

    predicate: PredicatePattern | None = setting(
        None, "The predicate, or its beginning and a *; left out: any, and plain statements."
    )
    pattern: Pattern | None = setting(
        None, "A regular expression in RE2 syntax, searched in the redacted text and value."
    )
    label: ClassificationName | None = setting(None, "Least classification of what matches.")


class MemoryLayer(Section):
    """What may be written, who decides on it, how long it lives, how it is recalled."""

    write_classes_allowed: Unique[WriteClass] = setting(WRITE_CLASSES, "Write classes that pass the allow-list.")
    statements_from: Unique[CaptureKind] = setting(
        ("statement",), "Kinds of capture whose plain text is taken as a statement."
    )
    memory_policy: MemoryPolicy = setting(MemoryPolicy, "Tiers, lifetimes, priority.")
    promotion_thresholds: PromotionThresholds = setting(PromotionThresholds, "Thresholds of confidence.")
    confidence: ConfidencePolicy = setting(ConfidencePolicy, "Raw confidence by how something was learned.")
    worth_floor: Share | None = setting(
        None,
        "Least worth of a sentence that becomes a statement; null is the score measured with the trained guard, and "
        "0.50 for the rules.",
    )
    recall_policy: RecallPolicy = setting(RecallPolicy, "What a recall returns.")
    contradiction: ContradictionPolicy = setting(
        ContradictionPolicy, "What happens to facts that contradict each other."
    )
    # INVARIANT: after promotion_thresholds and contradiction, whose numbers its validator uses.
    classes: dict[WriteClass, ClassPolicy] = setting(
        dict, "Policy by write class; a class left out has the defaults.", validate_default=True
    )
    consent: ConsentPolicy = setting(ConsentPolicy, "Consent.")
    subject: SubjectPolicy = setting(SubjectPolicy, "What end users may do about themselves.")
    trust: TrustPolicy = setting(TrustPolicy, "Trust by source.")
    imports: ImportPolicy = setting(ImportPolicy, "What is imported from other systems.")
    flag_for_review: Annotated[tuple[FlagRule, ...], Field(max_length=256)] = setting(
        (), "Facts that are never promoted without a person, with the reason compliance_flag."
    )
    rejections: RejectionPolicy = setting(RejectionPolicy, "Memory of rejections.")
    proven_sources: Annotated[tuple[ProvenSource, ...], Field(max_length=256)] = setting(
        (), "Sources whose own confidence counts before people have judged them."
    )
    undo: UndoPolicy = setting(UndoPolicy, "Undo of promotions by policy.")
    retention: RetentionPolicy = setting(RetentionPolicy, "Replay horizon and archive.")
    budgets: Annotated[tuple[Budget, ...], Field(max_length=256)] = setting((), "Limits per tier and class.")
    extractors: Annotated[tuple[ExtractorMap, ...], Field(max_length=256)] = setting((), "Declarative extractors.")
    extraction: Extraction = setting(Extraction, "The other extractors.")
    audit: AuditPolicy = setting(AuditPolicy, "Sample audit of auto-promotion.")
    jobs: Schedule = setting(Schedule, "How often jobs run.")
    alerts: AlertPolicy = setting(AlertPolicy, "Alerts.")

    @field_validator("classes")
    @classmethod
    def _every_class_has_a_policy(
        cls, policies: dict[WriteClass, ClassPolicy], info: ValidationInfo
    ) -> dict[WriteClass, ClassPolicy]:
        threshold = info.data.get("promotion_thresholds", PromotionThresholds()).auto_confidence
        margin = info.data.get("contradiction", ContradictionPolicy()).margin
        return {
            name: complete_policy(name, policies.get(name, ClassPolicy()), auto_confidence=threshold, margin=margin)
            for name in WRITE_CLASSES
        }
