"""JSON Schemas of arguments, as short as a model can use them: a name, a type, the choices, a few words.

Lengths, patterns and bounds are not in them. They are checked when a tool is called, and the error names the field.
"""

from typing import Any, cast

from muniment.model.fields import Artifact

# What a model reads of a field. JSON of any kind has no type.
_SHOWN = ("type", "enum", "description", "items")


def of_arguments(model: type[Artifact]) -> dict[str, Any]:
    """The schema of what a tool takes: flat, no field but those, nothing to look up elsewhere."""
    whole = model.model_json_schema()
    shown: dict[str, Any] = {
        "type": "object",
        "properties": {name: _field(one) for name, one in whole["properties"].items()},
    }
    if whole.get("required"):
        shown["required"] = whole["required"]
    return {**shown, "additionalProperties": False}


def _field(schema: dict[str, Any]) -> dict[str, Any]:
    """A field; what may be left out is not null too."""
    if "anyOf" in schema:
        (alone,) = [one for one in schema["anyOf"] if one != {"type": "null"}]
        schema = {**alone, **{name: one for name, one in schema.items() if name != "anyOf"}}
    shown = {name: schema[name] for name in _SHOWN if name in schema}
    if "items" in shown:
        shown["items"] = _field(cast("dict[str, Any]", shown["items"]))
    if "enum" in shown:
        shown.pop("type", None)
    return shown
