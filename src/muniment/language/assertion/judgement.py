"""What a judge says of two texts, and who can be one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Relation = Literal["same", "different", "contradicts"]


@dataclass(frozen=True, slots=True)
class Judgement:
    """How two texts stand to one another; the reasons are stable codes and never quote a text."""

    verdict: Relation
    reasons: tuple[str, ...]


Judge = Callable[[str, str], Judgement]
