"""What the calls of a memory return: facts and answers that say in words what happened, and why."""

from datetime import datetime
from typing import Any, Self

from pydantic import Field

from muniment.model.compiled import CompiledMemory
from muniment.model.explanation import Explanation
from muniment.model.fields import Artifact
from muniment.model.recall import Record
from muniment.model.subject import Act

_SHOWN = 80


class Kept(Artifact):
    """A fact that is remembered."""

    id: str = Field(description="the memory's id")
    text: str
    known: bool = Field(default=False, description="it was remembered before")

    def __str__(self) -> str:
        return f"{'known already' if self.known else 'remembered'}: {self.text}"


class Known(Artifact):
    """A fact that is remembered, which another one contradicts, or asks to forget or to correct."""

    id: str = Field(description="the memory's id")
    text: str


class Waiting(Artifact):
    """A fact that waits for a person, and why."""

    id: str = Field(description="the proposal's id, which `confirm` takes")
    text: str
    why: str
    may_confirm: bool = Field(default=False, description="the person themselves may confirm it")
    classification: str
    known: tuple[Known, ...] = Field(
        default=(), description="the memories that it contradicts, or may ask to forget or to correct"
    )

    def __str__(self) -> str:
        return f"waits: {self.text} ({self.why})"


class NotKept(Artifact):
    """A fact of a message that was refused, and why. The fact itself is kept nowhere, so the message is named."""

    message: str
    why: str

    def __str__(self) -> str:
        return f"refused, of {_short(self.message)}: {self.why}"


class Added(Artifact):
    """What became of what was added (MEM-3)."""

    promoted: tuple[Kept, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    refused: tuple[NotKept, ...] = ()
    unread: int = Field(default=0, description="messages that are stored, and read later by the server's worker")
    notes: tuple[str, ...] = ()
    captures: tuple[str, ...] = Field(default=(), description="the id of the capture of each message")

    def __str__(self) -> str:
        # Several facts of one sentence have its text.
        lines = list(dict.fromkeys(str(one) for one in (*self.promoted, *self.waiting, *self.refused)))
        if self.unread:
            lines.append(f"{self.unread} stored, to be read by the server's worker")
        return "\n".join([*lines, *self.notes]) or "nothing in it is worth remembering"


class Asked(Artifact):
    """A request to the person, where somebody else acts than the person themselves: nothing was decided (SUB-5)."""

    act: Act | str
    target: str | None = None
    proposal_id: str | None = Field(default=None, description="the proposal that waits for a person")
    address: str | None = Field(default=None, description="where the person signs in and decides")
    why: str

    def __str__(self) -> str:
        where = f"; they decide at {self.address}" if self.address is not None else ""
        return f"asked to {self.act.replace('_', ' ')}: {self.why}{where}"


class Context(str):
    """The memory section of a prompt; `compiled` says what is in it, and how it was recorded (MEM-4)."""

    compiled: CompiledMemory

    @classmethod
    def of(cls, compiled: CompiledMemory) -> Self:
        """Return the text of a compiled memory."""
        made = cls(compiled.text)
        made.compiled = compiled
        return made

    @property
    def note(self) -> str | None:
        """What to know of it: that facts did not fit into the tokens, and how many those would have taken."""
        left = self.compiled.budget.left_out
        if not left:
            return None
        facts, tokens = sum(len(one.memory_ids) for one in left), sum(one.tokens for one in left)
        given = self.compiled.budget.token_budget
        return f"{facts} facts did not fit into {given} tokens: they take {tokens} more"


class Why(Artifact):
    """Why a fact is remembered, and why this search found it."""

    text: str
    said_by: str | None = None
    said_at: datetime | None = None
    written_by: str
    approved_by: str = Field(description="a person, or `auto` for the pack's policy")
    promoted_at: datetime
    pack: str = Field(description="the pack under which it was promoted")
    consent_id: str | None = None
    evidence: tuple[str, ...] = ()
    capture_id: str
    score: dict[str, float] = Field(default_factory=dict, description="the parts of its rank in this search")
    explanation: Explanation = Field(description="each filter of the recall, and what it said")

    @classmethod
    def of(cls, record: Record, explanation: Explanation) -> Self:
        """Gather what is known of a record."""
        came: Any = record.provenance
        return cls(
            text=record.text,
            said_by=record.speaker,
            said_at=record.said_at,
            written_by=came.author,
            approved_by=came.approver,
            promoted_at=came.promoted_at,
            pack=came.pack,
            consent_id=came.consent_id,
            evidence=came.evidence_refs,
            capture_id=came.capture_id,
            score=record.score,
            explanation=explanation,
        )

    def __str__(self) -> str:
        said = f"{self.said_by or 'somebody'} said it"
        when = f" on {self.said_at:%d %B %Y}" if self.said_at is not None else ""
        by = f"the policy of {self.pack}" if self.approved_by == "auto" else self.approved_by
        lines = [f"{said}{when}, written down by {self.written_by} ({self.capture_id})"]
        lines.append(f"approved by {by} on {self.promoted_at:%d %B %Y}")
        if self.consent_id is not None:
            lines.append(f"on consent {self.consent_id}")
        if self.score:
            lines.append("ranked by " + ", ".join(f"{name} {value:.2f}" for name, value in self.score.items()))
        lines.append(f"{self.explanation.visibility}: {len(self.explanation.filters)} filters were asked")
        return "\n".join(lines)


def _short(text: str) -> str:
    whole = " ".join(text.split())
    return f'"{whole if len(whole) <= _SHOWN else whole[: _SHOWN - 3] + "..."}"'
