"""The strict field types of a pack: no silent conversion, and a plain word on what was expected."""

import re
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, WithJsonSchema

from muniment.model.fields import (
    EVIDENCE_LIMIT,
    CaptureKind,
    Source,
    Tier,
    WriteClass,
    clean_name,
    clean_text,
)
from muniment.pack.json_paths import usable_path, usable_template
from muniment.pack.patterns import usable

__all__ = [
    "BUILTIN_LABELS",
    "TIERS",
    "WRITE_CLASSES",
    "Attribute",
    "CaptureKind",
    "ClassificationName",
    "Detector",
    "EmbedderName",
    "EvidenceCount",
    "Flag",
    "IntentPattern",
    "JsonPath",
    "KeepLast",
    "Mask",
    "ModelName",
    "Namespace",
    "OntologyVersion",
    "PackId",
    "PackRef",
    "Pattern",
    "PipelineName",
    "PositiveCount",
    "PredicateOrAny",
    "PredicateOrPath",
    "PredicatePattern",
    "PredicateWord",
    "Purpose",
    "RecallCount",
    "RoleName",
    "Scalar",
    "Section",
    "Semver",
    "Share",
    "Source",
    "Template",
    "Tier",
    "TokenCount",
    "ToolName",
    "Unique",
    "UniqueSome",
    "Url",
    "Weight",
    "Word",
    "WriteClass",
    "filled",
]

# The last three act only where a rule names them; person and location also need the extra `presidio`.
Detector = Literal[
    "card",
    "iban",
    "phone",
    "email",
    "ip",
    "api_key",
    "national_id",
    "date_of_birth",
    "url",
    "person",
    "location",
]

WRITE_CLASSES: tuple[WriteClass, ...] = (
    "evidence_link",
    "preference",
    "decision_outcome",
    "correction",
    "statement",
)
# Rising, each with whether it is sensitive.
BUILTIN_LABELS = {"PUBLIC": False, "INTERNAL": False, "CONFIDENTIAL": False, "PII": True, "RESTRICTED": True}
TIERS: tuple[Tier, ...] = ("working", "episodic", "semantic", "durable")


class Section(BaseModel):
    """Base of every part of a pack: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _matching(pattern: str, expected: str) -> Callable[[str], str]:
    compiled = re.compile(pattern)

    def check(value: str) -> str:
        if not compiled.fullmatch(value):
            raise ValueError(f"expected {expected}")
        return value

    return check


_Key = TypeVar("_Key")
_Item = TypeVar("_Item")


def _without_repeats(values: tuple[_Item, ...]) -> tuple[_Item, ...]:
    seen: set[_Item] = set()
    for value in values:
        if value in seen:
            raise ValueError(f"holds {value} twice; expected each once")
        seen.add(value)
    return values


def filled(defaults: Mapping[_Key, _Item], given: Mapping[_Key, _Item]) -> dict[_Key, _Item]:
    """What was given over the defaults, in their order: a pack that sets one tier keeps the others."""
    return {**defaults, **given}


def _positive_zero(value: float) -> float:
    # -0.0 equals 0.0 but is written otherwise: one meaning, one digest.
    return value + 0.0


def _schema(pattern: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": f"^(?:{pattern})$"})


_each_once = Field(json_schema_extra={"uniqueItems": True})
Unique = Annotated[tuple[_Item, ...], AfterValidator(_without_repeats), _each_once]
UniqueSome = Annotated[tuple[_Item, ...], Field(min_length=1), AfterValidator(_without_repeats), _each_once]

_Text = Annotated[str, StringConstraints(strict=True)]

Flag = Annotated[bool, Field(strict=True)]
Share = Annotated[float, Field(strict=True, ge=0.0, le=1.0, allow_inf_nan=False), AfterValidator(_positive_zero)]
Weight = Annotated[float, Field(strict=True, ge=0.0, le=1000.0, allow_inf_nan=False), AfterValidator(_positive_zero)]
PositiveCount = Annotated[int, Field(strict=True, ge=1, le=2**53)]
EvidenceCount = Annotated[int, Field(strict=True, ge=0, le=EVIDENCE_LIMIT)]
RecallCount = Annotated[int, Field(strict=True, ge=1, le=1000)]
KeepLast = Annotated[int, Field(strict=True, ge=1, le=8)]

_PACK_ID = r"[a-z][a-z0-9_.-]{0,63}"
PackId = Annotated[
    _Text,
    AfterValidator(
        _matching(_PACK_ID, "a small letter, then up to 63 small letters, digits, dots, dashes or underscores")
    ),
    _schema(_PACK_ID),
]

_NUMBER = r"(?:0|[1-9][0-9]{0,8})"
_PRE_RELEASE = r"(?:0|[1-9][0-9]{0,8}|[0-9]{0,9}[A-Za-z-][0-9A-Za-z-]{0,31})"
_SEMVER = rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-{_PRE_RELEASE}(?:\.{_PRE_RELEASE}){{0,7}})?"
Semver = Annotated[
    _Text,
    AfterValidator(_matching(_SEMVER, "MAJOR.MINOR.PATCH such as 1.4.0 or 2.0.0-rc.1")),
    _schema(_SEMVER),
]

_PACK_REF = rf"{_PACK_ID}@{_SEMVER}"
PackRef = Annotated[
    _Text,
    AfterValidator(_matching(_PACK_REF, "a pack and its version, such as acme@1.4.0")),
    _schema(_PACK_REF),
]

_ONTOLOGY_VERSION = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
OntologyVersion = Annotated[
    _Text,
    AfterValidator(
        _matching(_ONTOLOGY_VERSION, "up to 64 letters, digits, dots, dashes or underscores, such as 1.0.0")
    ),
    _schema(_ONTOLOGY_VERSION),
]

_LABEL = r"[A-Za-z][A-Za-z0-9_.-]{0,63}"
ClassificationName = Annotated[
    _Text,
    AfterValidator(_matching(_LABEL, "a classification such as INTERNAL: letters, digits, dots, dashes, underscores")),
    _schema(_LABEL),
]

_WORD = r"[a-z][a-z0-9_]{0,63}"
_check_word = _matching(_WORD, "a word of small letters, digits and underscores")
Word = Annotated[_Text, AfterValidator(_check_word), _schema(_WORD)]
RoleName = Annotated[_Text, AfterValidator(_check_word), _schema(_WORD)]
Namespace = Annotated[_Text, AfterValidator(_check_word), _schema(_WORD)]

_PREDICATE = r"[a-z][a-z0-9_.]{0,127}"
PredicateWord = Annotated[
    _Text,
    AfterValidator(
        _matching(_PREDICATE, "a predicate such as prefers_channel: small letters, digits, dots, underscores")
    ),
    _schema(_PREDICATE),
]
PredicateOrAny = Annotated[
    _Text,
    AfterValidator(_matching(rf"\*|{_PREDICATE}", 'a predicate such as prefers_channel, or "*" for any')),
    _schema(rf"\*|{_PREDICATE}"),
]
PredicatePattern = Annotated[
    _Text,
    AfterValidator(_matching(rf"\*|{_PREDICATE}\*?", "a predicate such as prefers_channel, or its beginning and a *")),
    _schema(rf"\*|{_PREDICATE}\*?"),
]

_PURPOSE = r"\*|[A-Za-z][A-Za-z0-9_.-]{0,127}"
Purpose = Annotated[
    _Text,
    AfterValidator(_matching(_PURPOSE, 'a purpose such as support_personalization, or "*" for any')),
    _schema(_PURPOSE),
]

_ATTRIBUTE = r"[A-Za-z_][A-Za-z0-9_.-]{0,127}"
Attribute = Annotated[
    _Text,
    AfterValidator(
        _matching(_ATTRIBUTE, "an attribute such as date_of_birth: letters, digits, dots, dashes, underscores")
    ),
    _schema(_ATTRIBUTE),
]

_INTENT = r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*(?:\.\*)?"
IntentPattern = Annotated[
    _Text,
    StringConstraints(max_length=256),
    AfterValidator(_matching(_INTENT, "dotted words such as support.refund.execute, or support.*")),
    _schema(_INTENT),
]

_PATH = r"\$[^\x00-\x1f]{0,255}"
JsonPath = Annotated[
    _Text,
    AfterValidator(_matching(_PATH, "a JSONPath that begins with $, such as $.customer.id")),
    AfterValidator(usable_path),
    _schema(_PATH),
]


def _usable_where_a_path(value: str) -> str:
    return usable_path(value) if value.startswith("$") else value


def _usable_as_template(value: str) -> str:
    return usable_path(value) if value.startswith("$") else usable_template(value)


PredicateOrPath = Annotated[
    _Text,
    AfterValidator(_matching(rf"{_PREDICATE}|{_PATH}", "a predicate such as prefers_channel, or a JSONPath to one")),
    AfterValidator(_usable_where_a_path),
    _schema(rf"{_PREDICATE}|{_PATH}"),
]
Template = Annotated[
    _Text,
    StringConstraints(min_length=1, max_length=1000),
    AfterValidator(clean_text),
    AfterValidator(_usable_as_template),
]


def _scalar(value: Any) -> Any:
    if isinstance(value, str | bool | int) or (isinstance(value, float) and isfinite(value)):
        return value
    raise ValueError("expected a text, a number, true or false")


Scalar = Annotated[Any, AfterValidator(_scalar), WithJsonSchema({"type": ["string", "number", "boolean"]})]
TokenCount = Annotated[int, Field(strict=True, ge=16, le=65536)]

_URL = r"https?://(?:[A-Za-z0-9._~-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[1-9][0-9]{0,4})?(?:/[!-~]{0,400})?"


def _plain_address(value: str) -> str:
    if not re.fullmatch(_URL, value) or any(sign in value for sign in "@?#"):
        # Not shown: there could be a password in it.
        raise ValueError("expected http://host:port/path or https, without a password, a question mark or a #")
    return value.rstrip("/")


Url = Annotated[_Text, AfterValidator(_plain_address), _schema(_URL)]
_MODEL = r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,99}"
ModelName = Annotated[
    _Text,
    AfterValidator(_matching(_MODEL, "up to 100 letters, digits and ._:/-")),
    _schema(_MODEL),
]

EmbedderName = Annotated[_Text, StringConstraints(min_length=1, max_length=141), AfterValidator(clean_name)]
ToolName = Annotated[_Text, StringConstraints(min_length=1, max_length=128), AfterValidator(clean_name)]
Mask = Annotated[_Text, StringConstraints(min_length=1, max_length=64), AfterValidator(clean_name)]
Pattern = Annotated[
    _Text, StringConstraints(min_length=1, max_length=1000), AfterValidator(clean_text), AfterValidator(usable)
]
PipelineName = Annotated[_Text, StringConstraints(min_length=1, max_length=256), AfterValidator(clean_name)]
