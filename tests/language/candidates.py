"""Drafts of candidates, as the tests of policy begin from them."""

from typing import Any

from muniment.model.candidate import Candidate


def draft(**fields: Any) -> Candidate:
    """A preference of customer:c1 that passes every gate of the built-in pack."""
    given: dict[str, Any] = {
        "candidate_id": "mc_1",
        "tenant_id": "t",
        "capture_id": "cap_1",
        "author": "bot",
        "source": "agent",
        "write_class": "preference",
        "entity": "customer:c1",
        "predicate": "prefers_channel",
        "value": "email",
        "text": "the channel is email",
        "raw_confidence": 0.7,
        "confidence": 0.7,
        "classification": "INTERNAL",
        "subject": "customer:c1",
        "trust": 0.6,
        "extractor": "direct@1",
        **fields,
    }
    return Candidate(**given)
