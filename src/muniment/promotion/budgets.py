"""Budgets: how much may be promoted per tier and class; at the limit new promotions wait (JOB-10)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from muniment.model.fields import Tier, WriteClass
from muniment.pack import Budget, Pack

# Live records and bytes, by tier and class.
Use = Mapping[tuple[Tier, WriteClass], tuple[int, int]]


@dataclass
class Room:
    """What is left under a pack's budgets; taking from it counts at once."""

    budgets: Sequence[Budget]
    used: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    @classmethod
    def under(cls, pack: Pack, use: Use) -> "Room":
        """From what is live now."""
        budgets = pack.memory_layer.budgets
        used: list[tuple[int, int]] = []
        for budget in budgets:
            counted = [taken for key, taken in use.items() if _counts(budget, *key)]
            used.append((sum(records for records, _ in counted), sum(size for _, size in counted)))
        return cls(budgets, used)

    def take(self, tier: Tier, write_class: WriteClass, size: int) -> Budget | None:
        """Take room for one more, or say which budget has none left."""
        here = [place for place, budget in enumerate(self.budgets) if _counts(budget, tier, write_class)]
        for place in here:
            budget, (records, taken) = self.budgets[place], self.used[place]
            if budget.records is not None and records + 1 > budget.records:
                return budget
            if budget.bytes is not None and taken + size > budget.bytes:
                return budget
        for place in here:
            records, taken = self.used[place]
            self.used[place] = (records + 1, taken + size)
        return None

    def give_back(self, tier: Tier, write_class: WriteClass, size: int) -> None:
        """What one that goes has taken."""
        for place, budget in enumerate(self.budgets):
            if _counts(budget, tier, write_class):
                records, taken = self.used[place]
                self.used[place] = (records - 1, taken - size)

    def shares(self) -> list[tuple[Budget, float]]:
        """How full each is."""
        found: list[tuple[Budget, float]] = []
        for budget, (records, taken) in zip(self.budgets, self.used, strict=True):
            parts = [
                used / limit for used, limit in ((records, budget.records), (taken, budget.bytes)) if limit is not None
            ]
            found.append((budget, max(parts, default=0.0)))
        return found


def name_of(budget: Budget) -> str:
    """`semantic/preference`; `*` for all."""
    return f"{budget.tier or '*'}/{budget.write_class or '*'}"


def _counts(budget: Budget, tier: Tier, write_class: WriteClass) -> bool:
    return budget.tier in (None, tier) and budget.write_class in (None, write_class)
