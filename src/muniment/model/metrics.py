"""Metrics: what a tenant's memory does and how well, counted over a window; numbers, names and ids, no content."""

from collections.abc import Iterable
from datetime import date, datetime
from math import sqrt
from statistics import fmean
from typing import Literal

from pydantic import Field, computed_field

from muniment.model.fields import Artifact, CaptureKind, OpenName, Probability, Tier, WriteClass
from muniment.model.reads import ReadFrom

PiiKind = Literal["card", "iban", "phone", "email", "ip", "api_key", "national_id", "date_of_birth"]


def share_of(part: float, whole: float) -> float | None:
    """The share of the whole; None if there is nothing."""
    return part / whole if whole else None


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of the values that are known; None if there are none."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def wilson(successes: int, trials: int, z: float = 1.96) -> tuple[float, float]:
    """The Wilson interval: the lower and upper bound of the share that `successes` of `trials` indicates.

    `z` is the number of standard deviations either way, 1.96 for 95 %. Without trials the interval is 0.0 to 1.0. The
    share itself always lies within. Raises ValueError for counts or a z that make no sense.
    """
    if trials < 0 or not 0 <= successes <= trials:
        raise ValueError("successes must lie between 0 and trials")
    if z < 0:
        raise ValueError("z must not be negative")
    if not trials:
        return 0.0, 1.0
    share = successes / trials
    weight = 1 + z * z / trials
    middle = (share + z * z / (2 * trials)) / weight
    reach = z * sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials)) / weight
    return max(0.0, min(share, middle - reach)), min(1.0, max(share, middle + reach))


class Tally(Artifact):
    """How often something happened."""

    name: str
    count: int


class GoldenResult(Artifact):
    """How one golden query was answered; the query goes by its name."""

    query: OpenName
    passed: bool
    precision: Probability | None = None
    recall: Probability | None = None


class GoldenMetrics(Artifact):
    """The last run of golden queries (MET-1); `regression` counts those that once failed."""

    at: datetime
    queries: int
    passed: int
    precision: float | None
    recall: float | None
    regression: int
    regression_passed: int

    @computed_field
    @property
    def regression_accuracy(self) -> float | None:
        """Of the queries that once failed, the share that passed."""
        return share_of(self.regression_passed, self.regression)


class WorkflowHits(Artifact):
    """How often memory was of use to a workflow (MET-2); `workflow_id` is none for runs without one.

    Of its `recalls` the latest were looked at. `found` returned anything; `cited` returned a plain record that a later
    capture of the run cites.
    """

    workflow_id: str | None
    recalls: int
    looked_at: int
    found: int
    cited: int

    @computed_field
    @property
    def hit_rate(self) -> float | None:
        """Share with a plain record that was cited."""
        return share_of(self.cited, self.looked_at)

    @computed_field
    @property
    def found_rate(self) -> float | None:
        """Share with any record."""
        return share_of(self.found, self.looked_at)


class TokenMetrics(Artifact):
    """How many tokens compiled memory takes compared with raw captures (MET-3), in the latest prompts of the window.

    `skipped` had a tokenizer that this process does not have, or a query that cannot be read any more.
    """

    prompts: int = 0
    skipped: int = 0
    compiled: int = 0
    captures: int = 0

    @computed_field
    @property
    def ratio(self) -> float | None:
        """Tokens of compiled memory for each token of captures."""
        return share_of(self.compiled, self.captures)


class PiiMetrics(Artifact):
    """Personal data that got into memory though it should not have (MET-4); the target is none.

    `violations` are memories, each counted once; the first thousand are named. Of the window's promotions `waiting`
    were not scanned yet, and `unreadable` did not open.
    """

    violations: int = 0
    without_consent: int = 0
    unmasked: int = 0
    unmasked_kinds: tuple[Tally, ...] = ()
    memory_ids: tuple[str, ...] = ()
    waiting: int = 0
    unreadable: int = 0


class PiiScan(Artifact):
    """One pass over memories: how many, what was found, how many could not be decrypted; `done` when none is left."""

    scanned: int = 0
    found: dict[str, tuple[PiiKind, ...]] = Field(default_factory=dict)
    unreadable: int = 0
    done: bool = True


class Spread(Artifact):
    """Times in seconds; none if there was nothing to measure."""

    count: int = 0
    median: float | None = None
    ninetieth: float | None = None
    longest: float | None = None


class ContradictionMetrics(Artifact):
    """How long contradictions took that ended in the window, how they ended, and those open at its end (MET-5)."""

    resolved: Spread = Spread()
    outcomes: tuple[Tally, ...] = ()
    open: Spread = Spread()


class Adoption(Artifact):
    """How many corrections there are, how many can be measured, and after how many a decision differed (COR-3)."""

    corrections: int = 0
    measured: int = 0
    adopted: int = 0

    @computed_field
    @property
    def share(self) -> float | None:
        """The share of those measured; none while nothing can be measured."""
        return share_of(self.adopted, self.measured)


class OperatorDay(Artifact):
    """How many proposals a person decided on a day of the zone that was asked for."""

    operator: str
    day: date
    decided: int


class ClassQueue(Artifact):
    """The queue of one class: what people decided in the window, and what waited at its end."""

    write_class: WriteClass
    decided: int = 0
    in_time: int = 0
    waiting: Spread = Spread()
    past_due: int = 0


class OwnerQueue(Artifact):
    """How many proposals of a person are overdue; of nobody where none is assigned."""

    owner: str | None = None
    past_due: int


class QueueMetrics(Artifact):
    """The review queue (MET-7): decided in the window, in time or not, and what waited at its end."""

    decided: int = 0
    in_time: int = 0
    operators: int = 0
    by_operator: tuple[OperatorDay, ...] = ()
    waiting: Spread = Spread()
    past_due: int = 0
    by_class: tuple[ClassQueue, ...] = ()
    by_owner: tuple[OwnerQueue, ...] = Field(default=(), description="what is overdue, by whom it is assigned to")

    @computed_field
    @property
    def sla_kept(self) -> float | None:
        """Share of the decisions that were made before the proposal was due."""
        return share_of(self.in_time, self.decided)


class AutoAccuracy(Artifact):
    """How accurate promotion of a class by policy was (MET-8), by the samples that people checked in the window.

    `low` and `high` are the ends of the Wilson interval at 95 %.
    """

    write_class: WriteClass
    promoted: int
    confirmed: int
    refuted: int
    waiting: int
    low: float
    high: float
    suspended: bool

    @computed_field
    @property
    def accuracy(self) -> float | None:
        """Share of the samples that were confirmed."""
        return share_of(self.confirmed, self.confirmed + self.refuted)


class RepetitionMetrics(Artifact):
    """How often end users had to say again what was already promoted (MET-9)."""

    messages: int = 0
    with_candidates: int = 0
    repeated: int = 0

    @computed_field
    @property
    def share(self) -> float | None:
        """Of the messages that stated anything."""
        return share_of(self.repeated, self.with_candidates)

    @computed_field
    @property
    def share_of_all(self) -> float | None:
        """Of all messages."""
        return share_of(self.repeated, self.messages)


class Stored(Artifact):
    """Live memories of a tier and class at the window's end, and the bytes of their sealed bodies (MET-10)."""

    tier: Tier
    write_class: WriteClass
    records: int
    bytes: int


class BudgetUse(Artifact):
    """A budget of the pack and what is used of it; none for what it does not limit."""

    tier: Tier | None
    write_class: WriteClass | None
    records: int
    most_records: int | None
    bytes: int
    most_bytes: int | None

    @computed_field
    @property
    def share(self) -> float:
        """The fuller of the two."""
        limits = ((self.records, self.most_records), (self.bytes, self.most_bytes))
        return max((used / most for used, most in limits if most), default=0.0)


class ModelCalls(Artifact):
    """How often an extractor asked its language model on a day of the zone that was asked for."""

    extractor: str
    day: date
    calls: int


class CurvePoint(Artifact):
    """Claims of at least the confidence `raw`, up to the next point: verdicts, approvals, calibrated confidence."""

    raw: float
    estimate: float
    verdicts: int
    approved: int


class CalibrationCurve(Artifact):
    """The last calibration of a source."""

    source: str
    at: datetime
    verdicts: int
    approved: int
    points: tuple[CurvePoint, ...]


class CaptureMetrics(Artifact):
    """Captures of the window by kind; what waits now to be consolidated, to be tried again, or for an operator."""

    by_kind: dict[CaptureKind, int] = Field(default_factory=dict)
    waiting: int = 0
    oldest_waiting: float | None = Field(default=None, description="in seconds")
    retrying: int = 0
    parked: int = 0


class RefusalTally(Artifact):
    """How often a gate refused for a reason."""

    gate: str
    reason: str
    count: int


class RedactionTally(Artifact):
    """How often a kind was masked in candidates of a class (RED-4), or found and left as an exception (RED-5)."""

    kind: str
    write_class: WriteClass
    count: int


class PromotionTally(Artifact):
    """How many memories of a tier and class were promoted, by policy (`auto`) or by a person."""

    tier: Tier
    write_class: WriteClass
    auto: bool
    count: int


class FlowMetrics(Artifact):
    """What went through the gate in the window."""

    refusals: tuple[RefusalTally, ...] = ()
    redactions: tuple[RedactionTally, ...] = ()
    redaction_exceptions: tuple[RedactionTally, ...] = ()
    proposals: dict[WriteClass, int] = Field(default_factory=dict)
    duplicates: dict[WriteClass, int] = Field(default_factory=dict)
    promotions: tuple[PromotionTally, ...] = ()
    retractions: tuple[Tally, ...] = ()


class RecallMetrics(Artifact):
    """Recalls of the window, and how many memories they returned."""

    recalls: int = 0
    degraded: int = 0
    median_results: float | None = None


class ErasureMetrics(Artifact):
    """Erasures of the window, those whose purge is complete, and how long that took."""

    erasures: int = 0
    purged: Spread = Spread()


class Metrics(Artifact):
    """The metrics of one tenant for the time after `since` up to `until`, computed at `at`."""

    tenant_id: str
    since: datetime
    until: datetime
    at: datetime
    pack: str
    golden: GoldenMetrics | None = None
    hits: tuple[WorkflowHits, ...] = ()
    tokens: TokenMetrics = TokenMetrics()
    pii: PiiMetrics = PiiMetrics()
    contradictions: ContradictionMetrics = ContradictionMetrics()
    adoption: Adoption = Adoption()
    queue: QueueMetrics = QueueMetrics()
    auto: tuple[AutoAccuracy, ...] = ()
    telling: RepetitionMetrics = RepetitionMetrics()
    storage: tuple[Stored, ...] = ()
    budgets: tuple[BudgetUse, ...] = ()
    model_calls: tuple[ModelCalls, ...] = ()
    calibrations: tuple[CalibrationCurve, ...] = ()
    captures: CaptureMetrics = CaptureMetrics()
    flow: FlowMetrics = FlowMetrics()
    recalls: RecallMetrics = RecallMetrics()
    erasures: ErasureMetrics = ErasureMetrics()
    read_from: ReadFrom | None = Field(
        default=None, description="where they were read, if there is a standby that auditors' reads may go to"
    )
