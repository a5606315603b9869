"""The extractor of messages."""

from collections.abc import Sequence

from muniment.extract.extractor import Answers, Extracted
from muniment.model.capture import Capture


class MessageExtractor:
    @property
    def name(self) -> str:
        return "messages@1"

    def reads(self, capture: Capture) -> bool:
        return capture.kind == "message"

    async def extract(self, capture: Capture, answers: Answers) -> Sequence[Extracted]:
        return ()
