"""The Context Pack: the versioned, immutable policy document that everything is decided under."""

from muniment.pack.durations import format_duration, parse_duration
from muniment.pack.extraction import ExtractorMap, FieldCondition, FieldMap, ModelExtraction
from muniment.pack.guardrails import RedactionRule
from muniment.pack.load import PROFILES, builtin_pack, load_pack, profile_pack
from muniment.pack.memory_layer import Budget, Thresholds, TierWhen
from muniment.pack.schema import Pack, pack_schema
from muniment.pack.write_classes import AutoPromotion

__all__ = [
    "PROFILES",
    "AutoPromotion",
    "Budget",
    "ExtractorMap",
    "FieldCondition",
    "FieldMap",
    "ModelExtraction",
    "Pack",
    "RedactionRule",
    "Thresholds",
    "TierWhen",
    "builtin_pack",
    "format_duration",
    "load_pack",
    "pack_schema",
    "parse_duration",
    "profile_pack",
]
