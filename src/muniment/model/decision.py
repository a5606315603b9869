"""A decision is a value with its reasons, never a bare bool: the reasons are what people are shown."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

Outcome = Literal["pass", "refuse"]


class Reason(BaseModel):
    """Why: a stable code, and what it rests on (ids, labels, numbers; never content)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    code: str
    detail: str = ""


class Decision(BaseModel):
    """The outcome of one rule."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    outcome: Outcome
    reasons: tuple[Reason, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the rule let it through."""
        return self.outcome == "pass"


def passing(code: str = "ok", detail: str = "") -> Decision:
    """Let it through."""
    return Decision(outcome="pass", reasons=(Reason(code=code, detail=detail),))


def refusing(code: str, detail: str = "") -> Decision:
    """Refuse it."""
    return Decision(outcome="refuse", reasons=(Reason(code=code, detail=detail),))
