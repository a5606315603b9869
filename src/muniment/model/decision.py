"""A decision is a value with its reasons, never a bare bool: the reasons are what people are shown."""

from functools import lru_cache
from typing import Literal

from muniment.model.fields import Artifact

Outcome = Literal["pass", "refuse"]


class Reason(Artifact):
    """A reason: a stable code and its details (ids, labels, numbers; never content)."""

    code: str
    detail: str = ""


class Decision(Artifact):
    """The outcome of one rule."""

    outcome: Outcome
    reasons: tuple[Reason, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the rule passed."""
        return self.outcome == "pass"


# Most decisions of a batch are equal, and none of them changes.
@lru_cache(maxsize=4096)
def passing(code: str = "ok", detail: str = "") -> Decision:
    """A decision that passes."""
    return Decision(outcome="pass", reasons=(Reason(code=code, detail=detail),))


def refusing(code: str, detail: str = "") -> Decision:
    """A decision that refuses."""
    return Decision(outcome="refuse", reasons=(Reason(code=code, detail=detail),))
