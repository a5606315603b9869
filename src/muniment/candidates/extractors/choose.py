"""Which extractors act under a pack."""

from collections.abc import Iterator
from functools import lru_cache

from muniment.candidates.extractors.approvals import ApprovalExtractor
from muniment.candidates.extractors.decisions import DecisionExtractor
from muniment.candidates.extractors.extractor import Extractor
from muniment.candidates.extractors.maps import MapExtractor
from muniment.candidates.extractors.messages import MessageExtractor
from muniment.candidates.extractors.models import Models
from muniment.candidates.extractors.plugins import plugged_in
from muniment.pack import Pack
from muniment.pack.pack_key import PackKey

_NO_MODELS = Models()


def extractors_of(pack: Pack, models: Models = _NO_MODELS) -> tuple[Extractor, ...]:
    """All that the pack turns on, in the order their candidates come in; made once for each pack.

    One that is not installed is there too, and so is a model that the server does not name: it fails with every
    capture that it would have read.
    """
    return _made(PackKey(pack), models)


@lru_cache(maxsize=128)
def _made(held: PackKey, models: Models) -> tuple[Extractor, ...]:
    return tuple(_all(held.pack, models))


def _all(pack: Pack, models: Models) -> Iterator[Extractor]:
    layer = pack.memory_layer
    yield from (MapExtractor(written) for written in layer.extractors)
    if layer.extraction.messages:
        yield MessageExtractor()
    if layer.extraction.decisions:
        yield DecisionExtractor()
    if layer.extraction.approvals:
        yield ApprovalExtractor()
    yield from (plugged_in(name) for name in layer.extraction.plugins)
    if layer.extraction.model is not None:
        # Only here: whoever asks no model needs no HTTP.
        from muniment.candidates.extractors.model import ModelExtractor

        yield ModelExtractor(layer.extraction.model, pack, models.get(layer.extraction.model.model))
