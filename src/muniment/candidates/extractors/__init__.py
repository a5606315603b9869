"""The extractors, which turn captures into typed facts; `extractors_of(pack)` returns those of a pack."""

from collections.abc import Iterator
from functools import lru_cache

from muniment.candidates.extractors.decisions import ApprovalExtractor, DecisionExtractor
from muniment.candidates.extractors.extractor import Answers, Extracted, Extractor
from muniment.candidates.extractors.maps import MapExtractor
from muniment.candidates.extractors.messages import MessageExtractor
from muniment.candidates.extractors.models import Models
from muniment.candidates.extractors.plugins import load_plugin
from muniment.pack import Pack
from muniment.pack.pack_key import PackKey

__all__ = ["Answers", "Extracted", "Extractor", "extractors_of"]

_NO_MODELS = Models()


def extractors_of(pack: Pack, models: Models = _NO_MODELS) -> tuple[Extractor, ...]:
    """Return the extractors that a pack turns on, in the order of their candidates; made once for each pack.

    A plug-in that is not installed and a model that the server does not name are among them: they fail with every
    capture that they would have read.
    """
    return _cached_extractors(PackKey(pack), models)


@lru_cache(maxsize=128)
def _cached_extractors(key: PackKey, models: Models) -> tuple[Extractor, ...]:
    return tuple(_make_extractors(key.pack, models))


def _make_extractors(pack: Pack, models: Models) -> Iterator[Extractor]:
    layer = pack.memory_layer
    yield from (MapExtractor(field_map) for field_map in layer.extractors)
    # Where a message is a statement as a whole, its sentences say nothing more.
    said = layer.extraction.said and "message" not in layer.statements_from
    if layer.extraction.messages or said:
        yield MessageExtractor(typed=layer.extraction.messages, said=said)
    if layer.extraction.decisions:
        yield DecisionExtractor()
    if layer.extraction.approvals:
        yield ApprovalExtractor()
    yield from (load_plugin(name) for name in layer.extraction.plugins)
    if layer.extraction.model is not None:
        # Imported here, as only this one needs an HTTP client.
        from muniment.candidates.extractors.model import ModelExtractor

        yield ModelExtractor(layer.extraction.model, pack, models.get(layer.extraction.model.model))
