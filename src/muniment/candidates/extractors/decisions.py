"""Decisions and effects: what was decided, and what came of it, as `decision_outcome`."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from muniment.candidates.extractors.extractor import Answers, Extracted, fact_of, refs_of
from muniment.model.capture import Capture
from muniment.model.ids import CEID_PATTERN

# What was done is surer than what was meant to be done.
DECIDED, DONE = 0.70, 0.80

# The keys of a payload that say what it was about, what came out, and why; the first that is there counts.
_ABOUT = ("decision", "action", "effect", "type", "name")
_OUTCOMES = ("outcome", "result", "status", "verdict", "choice")
_REASONS = ("reason", "rationale", "because")
_LONGEST = 128
_ODD = re.compile(r"[^a-z0-9]+")


class DecisionExtractor:
    """Reads captures of kind `decision` and `effect`."""

    @property
    def name(self) -> str:
        """Name and version."""
        return "decisions@1"

    def reads(self, capture: Capture) -> bool:
        """Decisions and effects of somebody, or with a decision_key."""
        return capture.kind in ("decision", "effect") and _entity(capture) is not None

    async def extract(self, capture: Capture, answers: Answers) -> Sequence[Extracted]:
        """One fact, or none where the capture says nothing of an outcome."""
        content = capture.content
        if content is None or content.fact is not None:
            return ()
        payload: Mapping[str, Any] = {}
        if isinstance(content.payload, dict):
            payload = cast("dict[str, Any]", content.payload)
        about, outcome = _first(payload, _ABOUT), _outcome(payload)
        if outcome is None:
            # The decision itself is what came out, when nothing else is said to have.
            outcome = about if about is not None else content.text
        if outcome is None:
            return ()
        fact = fact_of(
            write_class="decision_outcome",
            entity=_entity(capture),
            predicate=_predicate(capture, about if outcome is not about else None),
            value=outcome,
            text=content.text or _rendered(capture, about, outcome, _first(payload, _REASONS)),
            confidence=DONE if capture.kind == "effect" else DECIDED,
        )
        if fact is None:
            return ()
        refs = refs_of(
            f"decision:{capture.decision_key}" if capture.decision_key else None,
            f"recall:{capture.recall_id}" if capture.recall_id else None,
        )
        told = about is not None and outcome is not about
        return (Extracted(fact, evidence_refs=refs, own_words=told),)


def _entity(capture: Capture) -> str | None:
    if capture.subject is not None:
        return capture.subject
    named = f"decision:{capture.decision_key}"
    return named if capture.decision_key and re.fullmatch(CEID_PATTERN, named) else None


def _first(payload: Mapping[str, Any], keys: Sequence[str]) -> str | None:
    return next((found for key in keys if isinstance(found := payload.get(key), str) and found.strip()), None)


def _outcome(payload: Mapping[str, Any]) -> Any:
    return next((payload[key] for key in _OUTCOMES if payload.get(key) is not None), None)


def _predicate(capture: Capture, about: str | None) -> str:
    """What was decided on, and by which key: two decisions are two facts, one decision told twice is one."""
    head = "decided" if capture.kind == "decision" else "effect"
    words = [part for part in (about or capture.intent_id, capture.decision_key) if part]
    slugs = [slug for word in words if (slug := _ODD.sub("_", word.lower()).strip("_"))]
    whole = ".".join([head, *slugs])
    if len(whole) <= _LONGEST:
        return whole
    mark = hashlib.sha256(whole.encode()).hexdigest()[:12]
    return f"{whole[: _LONGEST - 13].rstrip('._')}.{mark}"


def _rendered(capture: Capture, about: str | None, outcome: Any, reason: str | None) -> str | None:
    """In words, where the outcome has some; None leaves it to the fields."""
    if not isinstance(outcome, str | int | float):
        return None
    head = "Decided" if capture.kind == "decision" else "Done"
    what = about if about is not None and about is not outcome else capture.intent_id
    shown = ("yes" if outcome else "no") if isinstance(outcome, bool) else str(outcome)
    said = f"{head}, {what}: {shown}" if what else f"{head}: {shown}"
    return f"{said} (because {reason})" if reason else said
