"""Runs extractors without an effect, for backtests and previews: no model is called, no plug-in runs."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from muniment.candidates.extractors import Extractor, extractors_of
from muniment.candidates.extractors.maps import MapExtractor
from muniment.candidates.extractors.messages import MessageExtractor
from muniment.candidates.extractors.model import ModelExtractor
from muniment.candidates.extractors.plugins import PluginExtractor
from muniment.candidates.rules import Found
from muniment.errors import ExtractorFailed
from muniment.language.readers import Readers
from muniment.loops import give_way
from muniment.model.capture import Capture
from muniment.pack import Pack


@dataclass
class DryReading:
    """What the extractors of packs find in captures; `stored` are answers that models gave before."""

    page: Sequence[Capture]
    stored: Mapping[tuple[str, str], bytes]
    left_out: Counter[str] = field(default_factory=Counter[str])
    readers: Readers | None = None

    async def by_pack(self, packs: Sequence[Pack]) -> list[dict[str, list[Found]]]:
        """The facts by capture, for each pack; an extractor that several packs have runs once."""
        found: list[dict[str, list[Found]]] = [{} for _ in packs]
        for capture in self.page:
            assert capture.content is not None, "only what opened is read"
            read: dict[str, list[Found]] = {}
            missed: set[str] = set()
            for place, pack in enumerate(packs):
                for extractor in extractors_of(pack) if capture.content.fact is None else ():
                    if not isinstance(extractor, PluginExtractor) and not extractor.reads(capture):
                        continue
                    facts = read.get(extractor.name)
                    if facts is None:
                        facts = await self._facts(extractor, capture, missed)
                        # What a map, a model or the rules for messages find depends on the pack.
                        if not isinstance(extractor, MapExtractor | ModelExtractor | MessageExtractor):
                            read[extractor.name] = facts
                    found[place].setdefault(capture.capture_id, []).extend(facts)
            self.left_out.update(missed)
            await give_way()
        return found

    async def _facts(self, extractor: Extractor, capture: Capture, missed: set[str]) -> list[Found]:
        if not isinstance(extractor, PluginExtractor):
            # An extractor that raises would be retried, and parked in the end: here it has found nothing.
            with suppress(Exception):
                seen = await extractor.extract(capture, _Stored(self.stored, capture.capture_id, self.readers))
                return [(one.read_by or extractor.name, one) for one in seen]
        missed.add(extractor.name)
        return []


@dataclass(frozen=True)
class _Stored:
    """A model's stored answers; without one the extractor fails."""

    answers: Mapping[tuple[str, str], bytes]
    capture_id: str
    tagging: Readers | None

    async def readers(self) -> Readers | None:
        return self.tagging

    async def get(self, extractor: str) -> bytes | None:
        found = self.answers.get((self.capture_id, extractor))
        if found is None:
            raise ExtractorFailed("no stored answer, and models are not called here")
        return found

    async def put(self, extractor: str, answer: bytes) -> None:
        raise ExtractorFailed("nothing is written here")

    async def spend(self, extractor: str, most: int) -> bool:
        """Never: no model is called here."""
        return False
