"""The extractors: what turns captures into typed facts, one per kind of source."""

from muniment.candidates.extractors.choose import extractors_of
from muniment.candidates.extractors.extractor import Answers, Extracted, Extractor

__all__ = ["Answers", "Extracted", "Extractor", "extractors_of"]
