"""Captures for the tests of extractors, and a store of answers in memory."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from muniment.candidates.extractors import Extracted, Extractor
from muniment.model.capture import Capture, Content

# A Wednesday.
AT = datetime(2024, 5, 8, 12, tzinfo=UTC)


def capture(text: str | None = None, payload: Any = None, *, refs: Sequence[str] = (), **fields: Any) -> Capture:
    """A message of customer:7's, or what is said."""
    given: dict[str, Any] = {
        "capture_id": "cap_1",
        "tenant_id": "acme",
        "seq": 1,
        "author": "bot",
        "source": "agent",
        "kind": "message",
        "classification": "INTERNAL",
        "subject": "customer:7",
        "observed_at": AT,
        "captured_at": AT,
        "pack": "muniment.builtin@1.3.0",
        "ontology_version": "1.0.0",
        "content": Content(text=text, payload=payload, evidence_refs=tuple(refs)),
    }
    return Capture(**given | fields)


class Kept:
    """Answers of a model, kept; `spent` is what the day has seen already."""

    def __init__(self, spent: int = 0) -> None:
        self.answers: dict[str, bytes] = {}
        self.spent = spent

    async def readers(self) -> None:
        """Without trained readers."""

    async def get(self, extractor: str) -> bytes | None:
        return self.answers.get(extractor)

    async def put(self, extractor: str, answer: bytes) -> None:
        self.answers[extractor] = answer

    async def spend(self, extractor: str, most: int) -> bool:
        if self.spent >= most:
            return False
        self.spent += 1
        return True


def extracted(extractor: Extractor, of: Capture, answers: Kept | None = None) -> list[Extracted]:
    """What the extractor gives."""
    return list(asyncio.run(extractor.extract(of, answers or Kept())))
