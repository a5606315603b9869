"""Whether two texts say the same, contradict one another, or neither: a pure function of the two texts."""

from muniment.language.assertion.decision import judge
from muniment.language.assertion.judgement import Judge, Judgement

__all__ = ["Judge", "Judgement", "judge"]
