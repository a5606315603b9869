"""Rules of the promotion stage: which runs could see a fact (scopes), and how much may be promoted (budgets)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from muniment.model.candidate import Scope
from muniment.model.fields import Tier, WriteClass
from muniment.pack import Budget, Pack

# ---- scopes ----


def intent_under(intent: str | None, pattern: str) -> bool:
    """Whether the intent equals the pattern or lies under `words.*`."""
    if intent is None:
        return False
    return intent == pattern or (pattern.endswith(".*") and intent.startswith(pattern[:-1]))


def intents_seen_by(intent: str | None) -> list[str]:
    """Return all intent scopes that a run of this intent sees, unscoped ('') first."""
    if intent is None:
        return [""]
    words = intent.split(".")
    return ["", intent, *(".".join(words[:n]) + ".*" for n in range(len(words) - 1, 0, -1))]


def overlap(one: Scope, one_tier: Tier, other: Scope, other_tier: Tier) -> bool:
    """Whether some run could see facts of both scopes.

    A session limits only what is in the working tier, a workflow only what is episodic and belongs to no user.
    Qualifiers keep nothing apart, as a run that names none sees both, unless one side requires them of a run.
    """
    if _kept_apart(one, other) or _kept_apart(other, one):
        return False
    if not _agree(one.user_id, other.user_id):
        return False
    if one_tier == other_tier == "working" and one.session_id != other.session_id:
        return False
    tenants_own = one.user_id is None and other.user_id is None
    if one_tier == other_tier == "episodic" and tenants_own and not _agree(one.workflow_id, other.workflow_id):
        return False
    return _intents_meet(one.intent_id, other.intent_id)


def covers(wide: Scope, wide_tier: Tier, narrow: Scope, narrow_tier: Tier) -> bool:
    """Whether every run that could see facts of the narrow scope could see those of the wide one too."""
    if wide.user_id is not None and wide.user_id != narrow.user_id:
        return False
    if wide_tier == "working" and not (narrow_tier == "working" and narrow.session_id == wide.session_id):
        return False
    if wide_tier == "episodic" and wide.user_id is None and wide.workflow_id is not None:
        within = narrow_tier == "episodic" and narrow.user_id is None and narrow.workflow_id == wide.workflow_id
        if not within:
            return False
    if wide.intent_id is not None and (narrow.intent_id is None or not intent_under(narrow.intent_id, wide.intent_id)):
        return False
    if any(narrow.required.get(name) != value for name, value in wide.required.items()):
        return False
    stated = narrow.qualifiers | narrow.required
    return all(stated.get(name) == value for name, value in wide.qualifiers.items())


def _kept_apart(one: Scope, other: Scope) -> bool:
    """Whether every run with the qualifiers that the one requires disagrees with the other."""
    stated = other.qualifiers | other.required
    return any(stated.get(name, value) != value for name, value in one.required.items())


def _agree(one: str | None, other: str | None) -> bool:
    return one is None or other is None or one == other


def _intents_meet(one: str | None, other: str | None) -> bool:
    return one is None or other is None or intent_under(one, other) or intent_under(other, one)


# ---- budgets: at the limit new promotions wait (JOB-10) ----

# Live records and bytes, by tier and class.
Use = Mapping[tuple[Tier, WriteClass], tuple[int, int]]


@dataclass
class Room:
    """What is left under a pack's budgets; `take` counts at once."""

    budgets: Sequence[Budget]
    used: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    @classmethod
    def under(cls, pack: Pack, use: Use) -> "Room":
        """Compute the room that the live records leave."""
        budgets = pack.memory_layer.budgets
        used: list[tuple[int, int]] = []
        for budget in budgets:
            counted = [taken for key, taken in use.items() if _counts(budget, *key)]
            used.append((sum(records for records, _ in counted), sum(size for _, size in counted)))
        return cls(budgets, used)

    def take(self, tier: Tier, write_class: WriteClass, size: int) -> Budget | None:
        """Take room for one more record, or return the budget that has none left."""
        for budget, (records, taken) in zip(self.budgets, self.used, strict=True):
            if _counts(budget, tier, write_class) and (
                (budget.records is not None and records + 1 > budget.records)
                or (budget.bytes is not None and taken + size > budget.bytes)
            ):
                return budget
        self._count(tier, write_class, 1, size)
        return None

    def give_back(self, tier: Tier, write_class: WriteClass, size: int) -> None:
        """Return the room of a record that is retracted."""
        self._count(tier, write_class, -1, -size)

    def _count(self, tier: Tier, write_class: WriteClass, records: int, size: int) -> None:
        self.used = [
            (used[0] + records, used[1] + size) if _counts(budget, tier, write_class) else used
            for budget, used in zip(self.budgets, self.used, strict=True)
        ]

    def shares(self) -> list[tuple[Budget, float]]:
        """Return how full each budget is, from 0 to 1."""
        found: list[tuple[Budget, float]] = []
        for budget, (records, taken) in zip(self.budgets, self.used, strict=True):
            limits = ((records, budget.records), (taken, budget.bytes))
            found.append((budget, max((used / limit for used, limit in limits if limit is not None), default=0.0)))
        return found


def budget_name(budget: Budget) -> str:
    """Name a budget, as `semantic/preference`; `*` stands for all."""
    return f"{budget.tier or '*'}/{budget.write_class or '*'}"


def _counts(budget: Budget, tier: Tier, write_class: WriteClass) -> bool:
    return budget.tier in (None, tier) and budget.write_class in (None, write_class)
