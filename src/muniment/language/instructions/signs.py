"""What speaks for an address to the model: a sign is a stable reason with a weight, and signs are weighed together."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod


@dataclass(frozen=True)
class Sign:
    """One observation: `weight` is how likely text that shows it, and nothing else, addresses the model."""

    reason: str
    weight: float


def combined(signs: Iterable[Sign]) -> float:
    """Noisy-or: each sign takes its share of the doubt that the others left."""
    return 1.0 - prod(1.0 - sign.weight for sign in signs)


def reasons(signs: Iterable[Sign]) -> tuple[str, ...]:
    """The codes, once each, those that weigh most first."""
    heaviest: dict[str, float] = {}
    for sign in signs:
        heaviest[sign.reason] = max(sign.weight, heaviest.get(sign.reason, 0.0))
    return tuple(sorted(heaviest, key=lambda reason: (-heaviest[reason], reason)))
