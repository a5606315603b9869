"""Rules of the promotion stage: what a fact links, and how much may be promoted (budgets)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from muniment.model.fields import Tier, WriteClass
from muniment.model.ids import is_ceid
from muniment.pack import Budget, Pack

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
    """Name a budget, as `semantic/preference`; `*` means all."""
    return f"{budget.tier or '*'}/{budget.write_class or '*'}"


def _counts(budget: Budget, tier: Tier, write_class: WriteClass) -> bool:
    return budget.tier in (None, tier) and budget.write_class in (None, write_class)


# ---- links: a fact whose value names another entity links the two ----


def linked_entity(entity: str | None, value: Any) -> str | None:
    """Return the other entity that a fact names as its value."""
    if entity is None or not isinstance(value, str) or value == entity:
        return None
    return value if is_ceid(value) else None


def undo_until(approver: str, promoted_at: datetime, pack: Pack) -> datetime | None:
    """Return until when a promotion by policy can be undone; None for what a person approved (PRO-8)."""
    return promoted_at + pack.memory_layer.undo.term if approver == "auto" else None
