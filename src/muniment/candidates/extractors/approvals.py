"""Approvals: who approved what is kept as references alone, as `evidence_link`."""

from collections.abc import Sequence

from muniment.candidates.extractors.extractor import Answers, Extracted, fact_of, refs_of
from muniment.model.capture import Capture

CONFIDENCE = 0.80


class ApprovalExtractor:
    """Reads captures of kind `approval`."""

    @property
    def name(self) -> str:
        """Name and version."""
        return "approvals@1"

    def reads(self, capture: Capture) -> bool:
        """Approvals."""
        return capture.kind == "approval"

    async def extract(self, capture: Capture, answers: Answers) -> Sequence[Extracted]:
        """One link, or none where the approval refers to nothing; never its text or its payload."""
        content = capture.content
        if content is None or content.fact is not None:
            return ()
        refs = refs_of(
            f"decision:{capture.decision_key}" if capture.decision_key else None,
            f"recall:{capture.recall_id}" if capture.recall_id else None,
            f"run:{capture.run_id}" if capture.run_id else None,
        )
        fact = fact_of(write_class="evidence_link", entity=capture.subject, confidence=CONFIDENCE)
        return (Extracted(fact, evidence_refs=refs),) if fact is not None and (refs or content.evidence_refs) else ()
