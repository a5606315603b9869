"""Compares what two texts assert: `judge(a, b)` says whether they say the same, contradict one another, or neither.

A text is split into tokens (`tokens`), parsed into content words, quantities and dates (`parse`) and aligned with the
other (`alignment`). `contradiction` and `paraphrase` judge the alignment. `relate` adds the pack's thresholds.
"""

from muniment.language.assertion.comparison import judge, relate
from muniment.language.assertion.judgement import Judge, Judgement, Relation

__all__ = ["Judge", "Judgement", "Relation", "judge", "relate"]
