"""The extractors: what turns captures into typed facts, one per kind of source."""

from muniment.extract.choose import extractors_of
from muniment.extract.extractor import Answers, Extracted, Extractor

__all__ = ["Answers", "Extracted", "Extractor", "extractors_of"]
