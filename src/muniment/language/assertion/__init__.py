"""Compares what two texts assert: `judge(a, b)` says whether they say the same, contradict one another, or neither.

A text is split into tokens (`tokens`), parsed into content words, quantities and dates (`parse`) and aligned with the
other (`alignment`). `contradiction` and `paraphrase` judge the alignment. `relate` adds the pack's thresholds.
`subjects` says which pairs the trained judge need not read.
"""

from muniment.language.assertion.comparison import judge, relate
from muniment.language.assertion.judgement import Judge, Judgement, Relation
from muniment.language.assertion.subjects import (
    differ_in_one_word,
    may_state,
    overlap_features,
    repeats_words,
    same_subject,
    share_enough_words,
)

__all__ = [
    "Judge",
    "Judgement",
    "Relation",
    "differ_in_one_word",
    "judge",
    "may_state",
    "overlap_features",
    "relate",
    "repeats_words",
    "same_subject",
    "share_enough_words",
]
