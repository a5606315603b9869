"""The pack's `memory_layer`: what may be written, who decides, how long it lives, how it is recalled."""

from datetime import timedelta
from typing import Annotated, Literal, get_args

from pydantic import Field, ValidationInfo, field_validator

from muniment.model.fields import CaptureKind, Source, Tier, WriteClass
from muniment.pack.durations import Duration
from muniment.pack.extraction import Extraction, ExtractorMap
from muniment.pack.fields import (
    TIERS,
    WRITE_CLASSES,
    ClassificationName,
    EmbedderName,
    Flag,
    IntentPattern,
    Pattern,
    PositiveCount,
    PredicatePattern,
    RecallCount,
    Section,
    Share,
    ToolName,
    Unique,
    Weight,
    filled,
)
from muniment.pack.jobs import Schedule
from muniment.pack.write_classes import ClassPolicy, completed

Unresolved = Literal["mark_both", "hold", "block"]

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
    """What a routing rule asks of a candidate: all that is set must hold; nothing set matches everything."""

    source: Source | None = Field(default=None, description="Who the capture came from.")
    write_class: WriteClass | None = Field(default=None, description="Its write class.")
    intent: IntentPattern | None = Field(default=None, description="Its intent, equal to or under this one.")
    sensitive: Flag | None = Field(default=None, description="Whether its classification is sensitive.")


class TierRule(Section):
    """One line of the routing table; the first that matches gives the tier."""

    when: TierWhen = Field(default_factory=TierWhen, description="What it asks; nothing matches everything.")
    tier: Tier = Field(description="Where what matches goes.")


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

    operator: Share = Field(default=0.9, description="What an operator's capture starts from.")
    system: Share = Field(default=0.7, description="What the system's capture starts from.")
    agent: Share = Field(default=0.5, description="What an agent's capture starts from.")
    per_evidence: Share = Field(default=0.05, description="Added for each evidence ref.")
    evidence_max: Share = Field(default=0.3, description="Most that evidence refs add together.")


class MemoryPolicy(Section):
    """Where a promoted memory goes, how long it lives there, and how much it weighs."""

    tier_routing: Annotated[tuple[TierRule, ...], Field(min_length=1, max_length=256)] = Field(
        default=TIER_ROUTING,
        description="The first rule that matches gives the tier; the last must match everything.",
    )
    ttl: Annotated[dict[Tier, Duration | None], filled(TTL)] = Field(
        default=TTL,
        description="Life of a memory by tier; null is no end. A tier left out keeps its default.",
    )
    priority: PriorityPolicy = Field(default_factory=PriorityPolicy, description="Default priority of a memory.")


class StatementConfidence(Section):
    """Raw confidence of a plain-text statement by its source."""

    operator: Share = Field(default=0.95, description="From an operator.")
    system: Share = Field(default=0.85, description="From the system.")
    agent: Share = Field(default=0.60, description="From an agent.")


class PromotionThresholds(Section):
    """The numbers a candidate is measured against on its way to promotion."""

    confidence_floor: Share = Field(default=0.30, description="Below it a candidate is refused.")
    auto_confidence: Share = Field(
        default=0.90, description="Calibrated confidence for auto-promotion where the class names none."
    )
    uncalibrated_cap: Share = Field(
        default=0.80,
        description="Most that a source without history can claim; below every auto-promotion threshold.",
    )
    statement_confidence: StatementConfidence = Field(
        default_factory=StatementConfidence, description="Raw confidence of plain statements by source."
    )
    calibrate_from: PositiveCount = Field(
        default=20, description="Verdicts of people on a source before its confidence is calibrated."
    )
    calibrate_over: Duration = Field(
        default=timedelta(days=180), description="How far back verdicts count; a source is worth what it is now."
    )
    sensitive_sla: Duration = Field(
        default=timedelta(hours=24),
        description="Time to review what is sensitive, where shorter than its class's.",
    )


class RecallWeights(Section):
    """How much each part of a score counts; the parts are added, so only their proportions matter."""

    vector: Weight = Field(default=1.0, description="Similarity of meaning to the query.")
    words: Weight = Field(default=1.0, description="Words shared with the query.")
    priority: Weight = Field(default=0.1, description="The memory's priority.")
    recency: Weight = Field(default=0.05, description="How new it is.")
    confidence: Weight = Field(default=0.05, description="Its calibrated confidence.")
    intent: Weight = Field(default=0.05, description="Nearness of its intent to the run's.")
    entity: Weight = Field(default=0.2, description="Whether it is about an entity that was asked for.")


class RecallPolicy(Section):
    """How many memories a recall gives, of what age and confidence, in what order."""

    max_recalls: RecallCount = Field(default=8, description="Most records of one recall.")
    freshness: Annotated[dict[Tier, Duration | None], filled(_NO_WINDOW)] = Field(
        default=_NO_WINDOW,
        description="Oldest a memory of the tier may be and still be recalled; null or left out: any age.",
    )
    confidence: Share = Field(default=0.50, description="Below it a record is returned apart, as low_confidence.")
    weights: RecallWeights = Field(default_factory=RecallWeights, description="Weights of the score's parts.")
    recency_half_life: Duration = Field(
        default=timedelta(days=90), description="Age at which the recency part of a score has halved."
    )


class Thresholds(Section):
    """From which similarity of two texts on they are compared, and can be the same."""

    similarity: Share = Field(description="Neighbours: from here on two texts are compared.")
    duplicate_similarity: Share = Field(description="Duplicates: from here on two texts can say the same.")


# What `muniment eval contradictions` and `eval duplicates` gave for the built-in embedder.
MEASURED: dict[str, Thresholds] = {
    "wordllama-256@1": Thresholds(similarity=0.60, duplicate_similarity=0.70),
}


class ContradictionPolicy(Section):
    """When two facts disagree, and what happens to them when nobody settled it."""

    unresolved: Unresolved = Field(
        default="mark_both",
        description="What an approval without a resolution does: mark_both, hold or block.",
    )
    similarity: Share = Field(default=0.85, description="Neighbour threshold where the embedder has none measured.")
    duplicate_similarity: Share = Field(
        default=0.94, description="Duplicate threshold where the embedder has none measured."
    )
    embedders: Annotated[dict[EmbedderName, Thresholds], filled(MEASURED)] = Field(
        default=MEASURED, description="The thresholds measured for an embedder, by its name and version."
    )
    margin: Share = Field(default=0.15, description="Margin of an auto_resolve that names none.")

    def thresholds_for(self, embedder: str) -> Thresholds:
        """What was measured for the embedder, else the thresholds for any."""
        found = self.embedders.get(embedder)
        if found is not None:
            return found
        return Thresholds(similarity=self.similarity, duplicate_similarity=self.duplicate_similarity)


class ConsentPolicy(Section):
    """What consent asks of the jobs."""

    revocation_note_limit: PositiveCount = Field(
        default=100, description="A revocation that removes more memories than this also emits a note."
    )


class SourceTrust(Section):
    """Trust by source class."""

    operator: Share = Field(default=1.0, description="An operator.")
    system: Share = Field(default=0.9, description="The system.")
    tool: Share = Field(default=0.7, description="A tool that trust.tools does not name.")
    agent: Share = Field(default=0.6, description="An agent.")
    end_user: Share = Field(default=0.5, description="An end user.")


class TrustPolicy(Section):
    """How far each source is believed."""

    floor: Share = Field(default=0.40, description="Below it only a person can promote.")
    sources: SourceTrust = Field(default_factory=SourceTrust, description="Where trust starts, by who said it.")
    tools: dict[ToolName, Share] = Field(
        default_factory=dict, description="Trust of single tools by name, such as crm.lookup."
    )
    instruction_penalty: Share = Field(
        default=0.70, description="Taken off when the content addresses the model rather than states a fact."
    )


class RejectionPolicy(Section):
    """How long a rejection is remembered."""

    remember: Duration = Field(default=timedelta(days=180), description="For so long the same fact is refused again.")


class RetentionPolicy(Section):
    """How far back the past can be asked about, and when captures move to the archive."""

    replay_horizon: Duration = Field(
        default=timedelta(days=90),
        description="Nothing inside it is collected, so any moment of it can be replayed.",
    )
    captures: Annotated[dict[CaptureKind, Duration | None], filled(_CAPTURES_STAY)] = Field(
        default=_CAPTURES_STAY,
        description="Age at which captures of a kind go to the archive; null or left out: they stay.",
    )
    archives: Duration | None = Field(
        default=None, description="Age at which an archive is dropped, counted from its last capture; null is never."
    )


class Budget(Section):
    """How much may be promoted; at the limit new promotions wait in the queue."""

    tier: Tier | None = Field(default=None, description="The tier it counts; null is all.")
    write_class: WriteClass | None = Field(default=None, description="The write class it counts; null is all.")
    records: PositiveCount | None = Field(default=None, description="Most live memories.")
    bytes: PositiveCount | None = Field(default=None, description="Most bytes they take.")


class AuditPolicy(Section):
    """The sample audit of what was promoted without a person."""

    sample_share: Share = Field(default=0.05, description="Share of auto-promoted memories that reviewers see.")
    floor: Share = Field(
        default=0.95, description="Accuracy under which, at the interval's lower bound, auto-promotion stops."
    )
    min_samples: PositiveCount = Field(default=30, description="Samples before the floor counts.")


class AlertPolicy(Section):
    """When the fabric speaks up by itself."""

    contradictions: PositiveCount = Field(default=20, description="Open contradictions that make a backlog.")
    expiring_within: Annotated[dict[Tier, Duration | None], filled(_EXPIRING)] = Field(
        default=_EXPIRING, description="How long before its end a memory is told of, by tier; null is never."
    )
    budget_share: Share = Field(default=0.90, description="Share of a budget from which it is told of.")


class FlagRule(Section):
    """What a person must see whatever else holds: facts on a predicate, with a text, or both."""

    predicate: PredicatePattern | None = Field(
        default=None, description="Its predicate, or the beginning of one and a *; left out: any, and plain statements."
    )
    pattern: Pattern | None = Field(
        default=None,
        description="A regular expression in RE2 syntax, looked for in what redaction left of its text and value.",
    )
    label: ClassificationName | None = Field(default=None, description="Least classification of what matches.")


class MemoryLayer(Section):
    """What may be written, who decides on it, how long it lives, how it is recalled."""

    write_classes_allowed: Unique[WriteClass] = Field(
        default=WRITE_CLASSES, description="Write classes that pass the allow-list."
    )
    statements_from: Unique[CaptureKind] = Field(
        default=("statement",), description="Kinds of capture whose plain text is taken as a statement."
    )
    memory_policy: MemoryPolicy = Field(default_factory=MemoryPolicy, description="Tiers, lifetimes, priority.")
    promotion_thresholds: PromotionThresholds = Field(
        default_factory=PromotionThresholds, description="Confidence on the way to promotion."
    )
    recall_policy: RecallPolicy = Field(default_factory=RecallPolicy, description="What a recall returns.")
    contradiction: ContradictionPolicy = Field(
        default_factory=ContradictionPolicy, description="What happens to facts that disagree."
    )
    # INVARIANT: after promotion_thresholds and contradiction, whose numbers its validator takes over.
    classes: dict[WriteClass, ClassPolicy] = Field(
        default_factory=dict,
        validate_default=True,
        description="Policy by write class; a class left out has the defaults.",
    )
    consent: ConsentPolicy = Field(default_factory=ConsentPolicy, description="Consent.")
    trust: TrustPolicy = Field(default_factory=TrustPolicy, description="Trust by source.")
    flag_for_review: Annotated[tuple[FlagRule, ...], Field(max_length=256)] = Field(
        default=(), description="What is never promoted without a person, with the reason compliance_flag."
    )
    rejections: RejectionPolicy = Field(default_factory=RejectionPolicy, description="Remembered rejections.")
    retention: RetentionPolicy = Field(default_factory=RetentionPolicy, description="Replay horizon and archive.")
    budgets: Annotated[tuple[Budget, ...], Field(max_length=256)] = Field(
        default=(), description="Limits per tier and class."
    )
    extractors: Annotated[tuple[ExtractorMap, ...], Field(max_length=256)] = Field(
        default=(), description="Declarative extractors."
    )
    extraction: Extraction = Field(default_factory=Extraction, description="The other extractors.")
    audit: AuditPolicy = Field(default_factory=AuditPolicy, description="Sample audit of auto-promotion.")
    jobs: Schedule = Field(default_factory=Schedule, description="How often jobs look for work.")
    alerts: AlertPolicy = Field(default_factory=AlertPolicy, description="Alerts.")

    @field_validator("classes")
    @classmethod
    def _every_class_has_a_policy(
        cls, given: dict[WriteClass, ClassPolicy], info: ValidationInfo
    ) -> dict[WriteClass, ClassPolicy]:
        thresholds = info.data.get("promotion_thresholds", PromotionThresholds())
        contradiction = info.data.get("contradiction", ContradictionPolicy())
        return {
            name: completed(
                name,
                given.get(name, ClassPolicy()),
                auto_confidence=thresholds.auto_confidence,
                margin=contradiction.margin,
            )
            for name in WRITE_CLASSES
        }
