"""The form of a language model's answer, as a type and as the JSON Schema it is asked to keep to."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

_Scalar = str | float | bool | None
_Short = Annotated[str, Field(max_length=4096)]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Stated(_Strict):
    """One fact as the model states it; nothing of it is believed before it was checked."""

    write_class: Literal["preference", "decision_outcome", "statement"]
    entity: _Short | None = None
    predicate: _Short | None = None
    value: _Scalar = None
    text: _Short
    quote: _Short
    confidence: Annotated[float, Field(ge=0, le=1)]
    classification: _Short | None = None
    correction: bool = False


class Answer(_Strict):
    """The whole answer."""

    facts: list[Stated]


_TEXT = {"type": "string"}
_OR_NULL = {"type": ["string", "null"]}
_PROPERTIES: dict[str, Any] = {
    "write_class": {"type": "string", "enum": ["preference", "decision_outcome", "statement"]},
    "entity": _OR_NULL,
    "predicate": _OR_NULL,
    "value": {"type": ["string", "number", "boolean", "null"]},
    "text": _TEXT,
    "quote": _TEXT,
    "confidence": {"type": "number"},
    "classification": _OR_NULL,
    "correction": {"type": "boolean"},
}
# As strict servers want it: everything required, nothing beside, no references.
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "facts": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": _PROPERTIES,
                "required": list(_PROPERTIES),
                "additionalProperties": False,
            },
        }
    },
    "required": ["facts"],
    "additionalProperties": False,
}
