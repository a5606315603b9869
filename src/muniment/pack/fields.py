"""The strict field types of a pack: nothing is converted, and each says in plain words what it expects."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    StringConstraints,
    WithJsonSchema,
)
from pydantic_core import CoreSchema
from pydantic_core.core_schema import no_info_after_validator_function

from muniment.model.fields import EVIDENCE_LIMIT, Tier, WriteClass, clean_name, clean_text
from muniment.pack.json_paths import check_path, check_template
from muniment.pack.patterns import check_pattern

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
    "address",
]

WRITE_CLASSES: tuple[WriteClass, ...] = get_args(WriteClass)
TIERS: tuple[Tier, ...] = get_args(Tier)
# Rising, each with whether it is sensitive.
BUILTIN_LABELS = {"PUBLIC": False, "INTERNAL": False, "CONFIDENTIAL": False, "PII": True, "RESTRICTED": True}


class Section(BaseModel):
    """Base of every part of a pack: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def setting(default: Any, description: str, **options: Any) -> Any:
    """Declare a field with its default; a class such as a section or `dict` is called for the default."""
    usual = {"default_factory": default} if isinstance(default, type) else {"default": default}
    return Field(**usual, description=description, **options)


_Item = TypeVar("_Item")


def with_defaults(defaults: Mapping[Any, Any]) -> AfterValidator:
    """Add the defaults that a mapping leaves out, in their order: a pack that sets one tier keeps the others."""
    return AfterValidator(lambda given: {**defaults, **given})


def _without_repeats(values: tuple[_Item, ...]) -> tuple[_Item, ...]:
    seen: set[_Item] = set()
    for value in values:
        if value in seen:
            raise ValueError(f"holds {value} twice; expected each once")
        seen.add(value)
    return values


_each_once = Field(json_schema_extra={"uniqueItems": True})
Unique = Annotated[tuple[_Item, ...], AfterValidator(_without_repeats), _each_once]
UniqueSome = Annotated[tuple[_Item, ...], Field(min_length=1), AfterValidator(_without_repeats), _each_once]


def _positive_zero(value: float) -> float:
    # -0.0 equals 0.0 but is written otherwise: one meaning, one digest.
    return value + 0.0


Flag = Annotated[bool, Field(strict=True)]
Share = Annotated[float, Field(strict=True, ge=0.0, le=1.0, allow_inf_nan=False), AfterValidator(_positive_zero)]
Weight = Annotated[float, Field(strict=True, ge=0.0, le=1000.0, allow_inf_nan=False), AfterValidator(_positive_zero)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
PositiveCount = Annotated[int, Field(strict=True, ge=1, le=2**53)]
EvidenceCount = Annotated[int, Field(strict=True, ge=0, le=EVIDENCE_LIMIT)]
RecallCount = Annotated[int, Field(strict=True, ge=1, le=1000)]
TokenCount = Annotated[int, Field(strict=True, ge=16, le=65536)]
KeepLast = Annotated[int, Field(strict=True, ge=1, le=8)]


@dataclass(frozen=True)
class _Like:
    """A text that matches the whole pattern; its JSON Schema has the pattern, its error what was expected."""

    pattern: str
    expected: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "string", "pattern": f"^(?:{self.pattern})$"}

    def _check(self, value: str) -> str:
        if not re.fullmatch(self.pattern, value):
            raise ValueError(f"expected {self.expected}")
        return value


_Text = Annotated[str, StringConstraints(strict=True)]

_PACK_ID = r"[a-z][a-z0-9_.-]{0,63}"
_NUMBER = r"(?:0|[1-9][0-9]{0,8})"
_PRE_RELEASE = r"(?:0|[1-9][0-9]{0,8}|[0-9]{0,9}[A-Za-z-][0-9A-Za-z-]{0,31})"
_SEMVER = rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-{_PRE_RELEASE}(?:\.{_PRE_RELEASE}){{0,7}})?"
PackId = Annotated[
    _Text, _Like(_PACK_ID, "a small letter, then up to 63 small letters, digits, dots, dashes or underscores")
]
Semver = Annotated[_Text, _Like(_SEMVER, "MAJOR.MINOR.PATCH such as 1.4.0 or 2.0.0-rc.1")]
PackRef = Annotated[_Text, _Like(rf"{_PACK_ID}@{_SEMVER}", "a pack and its version, such as acme@1.4.0")]
OntologyVersion = Annotated[
    _Text,
    _Like(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", "up to 64 letters, digits, dots, dashes or underscores, such as 1.0.0"),
]

ClassificationName = Annotated[
    _Text,
    _Like(
        r"[A-Za-z][A-Za-z0-9_.-]{0,63}",
        "a classification such as INTERNAL: letters, digits, dots, dashes, underscores",
    ),
]
Word = Annotated[_Text, _Like(r"[a-z][a-z0-9_]{0,63}", "a word of small letters, digits and underscores")]
RoleName = Word
Namespace = Word

_PREDICATE = r"[a-z][a-z0-9_.]{0,127}"
PredicateWord = Annotated[
    _Text, _Like(_PREDICATE, "a predicate such as prefers_channel: small letters, digits, dots, underscores")
]
PredicateOrAny = Annotated[_Text, _Like(rf"\*|{_PREDICATE}", 'a predicate such as prefers_channel, or "*" for any')]
PredicatePattern = Annotated[
    _Text, _Like(rf"\*|{_PREDICATE}\*?", "a predicate such as prefers_channel, or its beginning and a *")
]
Purpose = Annotated[
    _Text, _Like(r"\*|[A-Za-z][A-Za-z0-9_.-]{0,127}", 'a purpose such as support_personalization, or "*" for any')
]
Attribute = Annotated[
    _Text,
    _Like(
        r"[A-Za-z_][A-Za-z0-9_.-]{0,127}",
        "an attribute such as date_of_birth: letters, digits, dots, dashes, underscores",
    ),
]
IntentPattern = Annotated[
    _Text,
    StringConstraints(max_length=256),
    _Like(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*(?:\.\*)?", "dotted words such as support.refund.execute, or support.*"),
]


def _usable_path_or_word(value: str) -> str:
    return check_path(value) if value.startswith("$") else value


def _usable_path_or_template(value: str) -> str:
    return check_path(value) if value.startswith("$") else check_template(value)


_PATH = r"\$[^\x00-\x1f]{0,255}"
JsonPath = Annotated[
    _Text, _Like(_PATH, "a JSONPath that begins with $, such as $.customer.id"), AfterValidator(check_path)
]
PredicateOrPath = Annotated[
    _Text,
    _Like(rf"{_PREDICATE}|{_PATH}", "a predicate such as prefers_channel, or a JSONPath to one"),
    AfterValidator(_usable_path_or_word),
]
Template = Annotated[
    _Text,
    StringConstraints(min_length=1, max_length=1000),
    AfterValidator(clean_text),
    AfterValidator(_usable_path_or_template),
]


def _scalar(value: Any) -> Any:
    if isinstance(value, str | bool | int) or (isinstance(value, float) and isfinite(value)):
        return value
    raise ValueError("expected a text, a number, true or false")


Scalar = Annotated[Any, AfterValidator(_scalar), WithJsonSchema({"type": ["string", "number", "boolean"]})]

_URL = r"https?://(?:[A-Za-z0-9._~-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[1-9][0-9]{0,4})?(?:/[!-~]{0,400})?"


def _plain_address(value: str) -> str:
    if not re.fullmatch(_URL, value) or any(sign in value for sign in "@?#"):
        # Not shown: there could be a password in it.
        raise ValueError("expected http://host:port/path or https, without a password, a question mark or a #")
    return value.rstrip("/")


Url = Annotated[_Text, AfterValidator(_plain_address), WithJsonSchema({"type": "string", "pattern": f"^(?:{_URL})$"})]
ModelName = Annotated[_Text, _Like(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,99}", "up to 100 letters, digits and ._:/-")]
EmbedderName = Annotated[_Text, StringConstraints(min_length=1, max_length=141), AfterValidator(clean_name)]
ToolName = Annotated[_Text, StringConstraints(min_length=1, max_length=128), AfterValidator(clean_name)]
VouchedSource = Annotated[
    _Text,
    _Like(
        r"user|(?:tool|import):[^\x00-\x20*][^\x00-\x1f*]{0,127}",
        "user, a tool such as tool:crm.lookup, or a system such as import:mem0",
    ),
]
ExtractorVersion = Annotated[
    _Text,
    _Like(
        r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}@[A-Za-z0-9][A-Za-z0-9._-]{0,63}", "a name and version, such as messages@1"
    ),
]
Remark = Annotated[_Text, StringConstraints(min_length=1, max_length=500), AfterValidator(clean_text)]
Mask = Annotated[_Text, StringConstraints(min_length=1, max_length=64), AfterValidator(clean_name)]
PipelineName = Annotated[_Text, StringConstraints(min_length=1, max_length=256), AfterValidator(clean_name)]
Pattern = Annotated[
    _Text, StringConstraints(min_length=1, max_length=1000), AfterValidator(clean_text), AfterValidator(check_pattern)
]
