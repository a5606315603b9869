"""Whether two texts say the same, contradict one another, or neither: a pure function of the two texts."""

from muniment.policy.assertion.decision import judge
from muniment.policy.assertion.judgement import Judge, Judgement

__all__ = ["Judge", "Judgement", "judge"]
