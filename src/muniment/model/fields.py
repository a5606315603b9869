"""Field types of all artifacts, and the translation of pydantic's validation errors into `InvalidInput`."""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated, Any, Literal, LiteralString, TypeVar, cast

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    StringConstraints,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from muniment.errors import InvalidInput, TooLarge
from muniment.model.bounds import check_lengths
from muniment.model.ids import CEID_PATTERN, ENTITIES_PATTERN, holds_card_number
from muniment.model.zones import EXPECTED_TIME, EXPECTED_ZONE, TIME_PATTERN, ZONE_PATTERN

TEXT_LIMIT = 32 * 1024
PAYLOAD_LIMIT = 256 * 1024
EVIDENCE_LIMIT = 64
DEPTH_LIMIT = 32
# Values in one payload, those inside others included.
VALUES_LIMIT = 20_000
NUMBER_BITS = 1024
# Greater than every sequence number of a tenant: stands for now.
LATEST = 2**62

Source = Literal["agent", "operator", "system", "end_user"]
# What rules go by: the source, or that it was imported from another system, whoever did that (IMP-2).
SourceClass = Literal["agent", "operator", "system", "end_user", "import"]
CaptureKind = Literal["tool_result", "decision", "effect", "message", "approval", "statement"]
WriteClass = Literal["evidence_link", "preference", "decision_outcome", "correction", "statement"]
Tier = Literal["working", "episodic", "semantic", "durable"]

# Tabs and line ends are allowed in text; other control characters and lone surrogates are not.
_CONTROL_IN_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f\ud800-\udfff]")
_CONTROL_IN_NAME = re.compile("[\x00-\x1f\x7f\x80-\x9f\u2028\u2029\ud800-\udfff]")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_FIELD = re.compile(r"[a-z_]+")
_MAIL = re.compile(r"[^\s@]@[^\s@]+\.[^\s@]")
PERSONAL = "holds personal data; say it in the text or the payload"
_INTENT = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*(\.\*)?")


class Artifact(BaseModel):
    """Base of the frozen types: no unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False, ser_json_inf_nan="constants")


def clean_text(value: str) -> str:
    """Refuse control characters, NUL and lone surrogates in running text."""
    if value.isprintable():
        return value
    if found := _CONTROL_IN_TEXT.search(value):
        raise ValueError(f"holds the character {_name_of(found)}, which no text may hold")
    return value


def clean_name(value: str) -> str:
    """Refuse them, and line ends, in ids and names; refuse space at either end."""
    if found := _CONTROL_IN_NAME.search(value):
        raise ValueError(f"holds the character {_name_of(found)}, which no name may hold")
    if value != value.strip():
        raise ValueError("begins or ends with a space")
    return value


def _name_of(found: re.Match[str]) -> str:
    return f"U+{ord(found.group()):04X}"


def clean_payload(value: Any) -> Any:
    """Refuse what JSON cannot carry (other types, NaN, control characters) and what exceeds the limits."""
    _Walk().over(value, 0)
    return value


class _Walk:
    """Visits every value of a payload and stops at the first that is wrong or exceeds a limit."""

    __slots__ = ("_characters", "_values")

    def __init__(self) -> None:
        self._values = 0
        self._characters = 0

    def over(self, value: Any, depth: int) -> None:
        if depth > DEPTH_LIMIT:
            raise ValueError(f"is nested deeper than {DEPTH_LIMIT} levels")
        if isinstance(value, dict):
            held = cast("dict[Any, Any]", value)
            self._count(len(held))
            for key in held:
                if not isinstance(key, str):
                    raise ValueError("holds a key that is not a string")
                self._text(key)
            self._items(held.values(), depth + 1)
        elif isinstance(value, list | tuple):
            items = cast("list[Any]", value)
            self._count(len(items))
            self._items(items, depth + 1)
        else:
            self._items((value,), depth)

    def _items(self, items: Iterable[Any], depth: int) -> None:
        for item in items:
            kind = cast("type[Any]", type(item))
            if kind is str:
                self._text(item)
            elif kind is int or kind is float:
                _number(item)
            elif item is None or kind is bool:
                continue
            elif isinstance(item, dict | list | tuple):
                self.over(item, depth)
            elif isinstance(item, str):
                self._text(item)
            elif isinstance(item, int | float):
                _number(item)
            else:
                raise ValueError(f"holds a {kind.__name__}, which JSON cannot carry")

    def _count(self, values: int) -> None:
        self._values += values
        if self._values > VALUES_LIMIT:
            raise PydanticCustomError("too_long", "too many values", {"max_length": f"{VALUES_LIMIT} values"})

    def _text(self, value: str) -> None:
        self._characters += len(value)
        if self._characters > PAYLOAD_LIMIT:
            raise PydanticCustomError("too_long", "too long", {"max_length": f"{PAYLOAD_LIMIT} bytes"})
        clean_text(value)


def _number(value: float) -> None:
    if isinstance(value, int):
        if value.bit_length() > NUMBER_BITS:
            raise ValueError(f"holds a whole number of more than {NUMBER_BITS} bits")
    elif value != value or value in (float("inf"), float("-inf")):
        raise ValueError("holds a number that is not finite")


def _opaque(value: str) -> str:
    if holds_card_number(value.partition(":")[2]):
        raise ValueError("holds what looks like a card number; an entity id outlives an erasure and must be opaque")
    return value


@lru_cache(maxsize=4096)
def in_the_open(value: str) -> str:
    """Refuse a mail address or a card number in a name that is kept in the open, out of an erasure's reach (ERA-7)."""
    if ("@" in value and _MAIL.search(value)) or holds_card_number(value.replace(" ", "")):
        raise ValueError(PERSONAL)
    return value


def _written_out(value: Any) -> Any:
    # pydantic would take 5, or "5", for seconds since 1970.
    if isinstance(value, datetime) or (isinstance(value, str) and _DATE.match(value)):
        return value
    raise ValueError("expected a time in ISO 8601")


def _utc(value: datetime) -> datetime:
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError("is outside the range of years that can be stored") from None


def field_error(field: str, message: str) -> PydanticCustomError:
    """A validation error of a model that concerns one of its fields."""
    return PydanticCustomError("field", "{message}", {"field": field, "message": message})


@lru_cache(maxsize=1024)
def _intent(value: str) -> str:
    if not _INTENT.fullmatch(value):
        raise ValueError("expected dotted words such as support.refund.execute, or support.*")
    return in_the_open(value)


# Checked by pydantic's own engine, a third faster than by a function of ours; `clean_name` then says what was wrong.
_DIRT, _EDGE = r"\x00-\x1f\x7f-\x9f\x{2028}\x{2029}", r"\x00-\x20\x7f-\x9f\x{2028}\x{2029}"
_CLEAN = rf"^[^{_EDGE}](?:[^{_DIRT}]*[^{_EDGE}])?$"
Name = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=256, pattern=_CLEAN)]
# A name chosen by a caller: stored unencrypted beside the sealed content, and kept longer.
OpenName = Annotated[Name, AfterValidator(in_the_open)]
TenantId = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=128, pattern=_CLEAN)]
Ceid = Annotated[str, StringConstraints(strict=True, max_length=256, pattern=CEID_PATTERN), AfterValidator(_opaque)]
Entities = Annotated[
    str, StringConstraints(strict=True, max_length=256, pattern=ENTITIES_PATTERN), AfterValidator(_opaque)
]
Label = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=64, pattern=_CLEAN)]
Predicate = Annotated[str, StringConstraints(strict=True, pattern=r"^[a-z][a-z0-9_.]{0,127}$")]
Intent = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=256), AfterValidator(_intent)]
# A role as a pack declares it; the built-in roles have the same form.
RoleName = Annotated[str, StringConstraints(strict=True, pattern=r"^[a-z][a-z0-9_]{0,63}$")]
# A text with more characters than this is over the limit in bytes too; the exact check counts bytes.
Text = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=TEXT_LIMIT), AfterValidator(clean_text)]
Query = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=8192), AfterValidator(clean_text)]
Note = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=4096), AfterValidator(clean_text)]
Json = Annotated[Any, AfterValidator(clean_payload)]
Probability = Annotated[float, Field(strict=True, ge=0.0, le=1.0, allow_inf_nan=False)]
Instant = Annotated[AwareDatetime, BeforeValidator(_written_out), AfterValidator(_utc)]
_INSTANT: TypeAdapter[datetime] = TypeAdapter(Instant)


def _number_or_time(value: Any) -> int | datetime:
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= 19:
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        if not 1 <= value < LATEST:
            raise ValueError("expected a sequence number from 1 on, or a time in ISO 8601")
        return value
    try:
        return _INSTANT.validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        about = {**first.get("ctx", {}), "message": first["msg"]}
        raise PydanticCustomError(cast("LiteralString", first["type"]), "{message}", about) from None


# A point in the past: a time, or the tenant's sequence number.
AsOf = Annotated[int | datetime, PlainValidator(_number_or_time, json_schema_input_type=int | datetime)]
EvidenceRefs = Annotated[tuple[Name, ...], Field(max_length=EVIDENCE_LIMIT, fail_fast=True)]
Qualifiers = Annotated[dict[OpenName, OpenName], Field(max_length=32)]

_Model = TypeVar("_Model", bound=BaseModel)


def build(model: type[_Model], values: Mapping[str, Any], *, within: str = "") -> _Model:
    """Build a model from a caller's values; raises `InvalidInput` naming the first field at fault."""
    check_lengths(model, values, within=within)
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise invalid(error, within=within) from None


def build_many(
    model: type[_Model], models: TypeAdapter[list[_Model]], values: list[Mapping[str, Any]], *, within: str, first: int
) -> list[_Model]:
    """Build many models at once; raises `InvalidInput` naming the item, counted from `first`, and the field."""
    for place, one in enumerate(values, first):
        check_lengths(model, one, within=f"{within}.{place}")
    try:
        return models.validate_python(values)
    except ValidationError as error:
        raise invalid(error, within=within, first=first) from None


def invalid(error: ValidationError, *, within: str = "", first: int = 0) -> InvalidInput:
    """The first error of a pydantic validation as `InvalidInput`: the field, and what was expected."""
    # An unknown field often explains a missing one (a typo), so it is reported first.
    errors = error.errors(include_url=False, include_context=True)
    details = min(errors, key=lambda one: one["type"] != "extra_forbidden")
    path = tuple(details["loc"])
    if path and isinstance(path[0], int):
        path = (path[0] + first, *path[1:])
    return as_invalid_input(details, path, within=within)


def as_invalid_input(details: ErrorDetails, path: tuple[int | str, ...], *, within: str = "") -> InvalidInput:
    """One error of a pydantic validation as `InvalidInput`."""
    about = [str(details.get("ctx", {}).get("field"))] if details["type"] == "field" else []
    field = ".".join([*([within] if within else []), *_our_own(path), *about]) or None
    raised = TooLarge if details["type"] in ("string_too_long", "too_long") else InvalidInput
    return raised(_plain(details), field=field)


# Fields whose keys are the caller's own words.
_OPEN_FIELDS = ("qualifiers", "existing", "incoming")


def _our_own(path: tuple[int | str, ...]) -> Iterator[str]:
    """The parts of an error's path that are field names or list positions; the caller's own keys are left out."""
    for part in path:
        if isinstance(part, str) and not _FIELD.fullmatch(part):
            return
        yield str(part)
        if part in _OPEN_FIELDS:
            return


# Pydantic names the types of Python, such as frozenset; callers get what they would write in JSON.
_EXPECTED = {
    "a list": ("list_type", "tuple_type", "set_type", "frozen_set_type", "iterable_type"),
    "an object": ("dict_type", "mapping_type", "model_type", "model_attributes_type"),
    "a whole number": ("int_type", "int_parsing", "int_from_float"),
    "a number": ("float_type", "float_parsing"),
    "true or false": ("bool_type", "bool_parsing"),
    "a string": ("string_type",),
    "a time with its zone, such as 2027-01-31T12:00:00Z": ("timezone_aware",),
    "a time in ISO 8601": (
        "datetime_type", "datetime_parsing", "datetime_from_date_parsing", "datetime_object_invalid",
    ),
}  # fmt: skip
_MESSAGES = {
    "missing": "is required",
    "extra_forbidden": "is not a known field",
    "string_unicode": "holds half of a surrogate pair, which is no character",
    "string_too_short": "must not be empty",
    "too_short": "must not be empty",
} | {kind: f"expected {what}" for what, kinds in _EXPECTED.items() for kind in kinds}
# What is said of a text that does not match one of these.
_PATTERNS = {
    CEID_PATTERN: "expected an id such as customer:cus_77, never a name or an email address",
    ZONE_PATTERN: EXPECTED_ZONE,
    TIME_PATTERN: EXPECTED_TIME,
}


def _plain(error: ErrorDetails) -> str:
    context = error.get("ctx", {})
    match error["type"]:
        case type_ if type_ in _MESSAGES:
            return _MESSAGES[type_]
        case "field":
            return str(context.get("message"))
        case "value_error":
            return str(context.get("error", "is not valid"))
        case "string_too_long" | "too_long":
            return f"is longer than {context.get('max_length')}"
        case "string_pattern_mismatch" if context.get("pattern") == _CLEAN:
            return _objection(error["input"])
        case "string_pattern_mismatch":
            pattern = str(context.get("pattern"))
            return _PATTERNS.get(pattern) or f"does not match {pattern}"
        case "literal_error":
            return f"expected one of {context.get('expected')}"
        case _:
            return error["msg"].replace("Input should be ", "must be ").replace("a valid ", "a ").lower()


def _objection(name: str) -> str:
    try:
        clean_name(name)
    except ValueError as error:
        return str(error)
    return "begins or ends with a space"
