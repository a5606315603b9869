"""The extractors of decisions, effects and approvals.

What was decided and what came of it become a `decision_outcome`. Of an approval only references are kept, as an
`evidence_link`.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from muniment.candidates.extractors.extractor import Answers, Extracted, content_without_fact, fact_of, refs_of
from muniment.model.capture import Capture
from muniment.model.ids import is_ceid

# Confidence: what was done is more certain than what was decided.
DECIDED, DONE = 0.70, 0.80

# The keys of a payload for the action, its outcome and the reason; the first one present counts.
_ACTIONS = ("decision", "action", "effect", "type", "name")
_OUTCOMES = ("outcome", "result", "status", "verdict", "choice")
_REASONS = ("reason", "rationale", "because")
_LONGEST = 128
_NO_SLUG = re.compile(r"[^a-z0-9]+")


class DecisionExtractor:
    """Reads captures of kind `decision` and `effect`."""

    name = "decisions@1"

    def reads(self, capture: Capture) -> bool:
        """Say whether it is a decision or effect with a subject or a decision key."""
        return capture.kind in ("decision", "effect") and _entity(capture) is not None

    async def extract(self, capture: Capture, answers: Answers) -> Sequence[Extracted]:
        """Return one fact, or none where the capture names no outcome."""
        content = content_without_fact(capture)
        if content is None:
            return ()
        payload: Mapping[str, Any] = {}
        if isinstance(content.payload, dict):
            payload = cast("dict[str, Any]", content.payload)
        action, outcome = _first(payload, _ACTIONS), _outcome(payload)
        if outcome is None:
            # Without an outcome the decision itself is the outcome.
            outcome = action if action is not None else content.text
        if outcome is None:
            return ()
        fact = fact_of(
            write_class="decision_outcome",
            entity=_entity(capture),
            predicate=_predicate(capture, action if outcome is not action else None),
            value=outcome,
            text=content.text or _sentence(capture, action, outcome, _first(payload, _REASONS)),
            confidence=DONE if capture.kind == "effect" else DECIDED,
        )
        if fact is None:
            return ()
        own_words = action is not None and outcome is not action
        return (Extracted(fact, evidence_refs=refs_of(*_decision_refs(capture)), own_words=own_words),)


class ApprovalExtractor:
    """Reads captures of kind `approval`."""

    name = "approvals@1"

    def reads(self, capture: Capture) -> bool:
        """Say whether it is an approval."""
        return capture.kind == "approval"

    async def extract(self, capture: Capture, answers: Answers) -> Sequence[Extracted]:
        """Return one link, or none where the approval refers to nothing; never its text or its payload."""
        content = content_without_fact(capture)
        if content is None:
            return ()
        refs = refs_of(
            *_decision_refs(capture),
            f"run:{capture.run_id}" if capture.run_id else None,
        )
        fact = fact_of(write_class="evidence_link", entity=capture.subject, confidence=DONE)
        return (Extracted(fact, evidence_refs=refs),) if fact is not None and (refs or content.evidence_refs) else ()


def _decision_refs(capture: Capture) -> tuple[str | None, str | None]:
    return (
        f"decision:{capture.decision_key}" if capture.decision_key else None,
        f"recall:{capture.recall_id}" if capture.recall_id else None,
    )


def _entity(capture: Capture) -> str | None:
    if capture.subject is not None:
        return capture.subject
    entity = f"decision:{capture.decision_key}"
    return entity if capture.decision_key and is_ceid(entity) else None


def _first(payload: Mapping[str, Any], keys: Sequence[str]) -> str | None:
    return next((found for key in keys if isinstance(found := payload.get(key), str) and found.strip()), None)


def _outcome(payload: Mapping[str, Any]) -> Any:
    return next((payload[key] for key in _OUTCOMES if payload.get(key) is not None), None)


def _predicate(capture: Capture, action: str | None) -> str:
    """Return a predicate of the action and the decision key, so that one decision captured twice is one fact."""
    head = "decided" if capture.kind == "decision" else "effect"
    words = [part for part in (action or capture.intent_id, capture.decision_key) if part]
    slugs = [slug for word in words if (slug := _NO_SLUG.sub("_", word.lower()).strip("_"))]
    whole = ".".join([head, *slugs])
    if len(whole) <= _LONGEST:
        return whole
    digest = hashlib.sha256(whole.encode()).hexdigest()[:12]
    return f"{whole[: _LONGEST - 13].rstrip('._')}.{digest}"


def _sentence(capture: Capture, action: str | None, outcome: Any, reason: str | None) -> str | None:
    """Return the outcome as a sentence; None if it is an object or a list."""
    if not isinstance(outcome, str | int | float):
        return None
    head = "Decided" if capture.kind == "decision" else "Done"
    what = action if action is not None and action is not outcome else capture.intent_id
    shown = ("yes" if outcome else "no") if isinstance(outcome, bool) else str(outcome)
    sentence = f"{head}, {what}: {shown}" if what else f"{head}: {shown}"
    return f"{sentence} (because {reason})" if reason else sentence
