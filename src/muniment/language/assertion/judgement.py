"""The types of a judge and of its judgement."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Relation = Literal["same", "different", "contradicts"]


@dataclass(frozen=True, slots=True)
class Judgement:
    """How two texts relate, and why; the reasons are stable codes and never quote a text."""

    verdict: Relation
    reasons: tuple[str, ...]


Judge = Callable[[str, str], Judgement]

OTHER_CONTENT = Judgement("different", ("other_content",))
