"""JSON Schemas of arguments and results, as models and their clients read them."""

from typing import Any, cast

from pydantic import TypeAdapter

from muniment.model.fields import Artifact

# Pydantic's titles say nothing; not every client knows a set.
_LEFT_OUT = ("title", "uniqueItems")


def of_arguments(model: type[Artifact]) -> dict[str, Any]:
    """The schema of what a tool takes: plain types, every field described, no field but those."""
    shown = _plain(model.model_json_schema(), optional=True)
    return {name: one for name, one in shown.items() if name != "description"}


def of_result(result: TypeAdapter[Any]) -> dict[str, Any]:
    """The schema of what a tool gives."""
    return _plain(result.json_schema(mode="serialization"), optional=False)


def _plain(schema: dict[str, Any], *, optional: bool) -> dict[str, Any]:
    """Without pydantic's titles and our own engine's patterns; if `optional`, what may be left out is not null too."""
    shown: dict[str, Any] = {}
    for name, value in schema.items():
        if name in ("properties", "$defs"):
            shown[name] = {key: _plain(one, optional=optional) for key, one in value.items()}
        elif name in _LEFT_OUT or (name == "pattern" and r"\x" in value) or (optional and name == "default"):
            continue
        elif name == "anyOf" and optional:
            (alone,) = [one for one in value if one != {"type": "null"}]
            shown |= _plain(alone, optional=optional)
        else:
            shown[name] = _within(value, optional)
    return shown


def _within(value: Any, optional: bool) -> Any:
    if isinstance(value, dict):
        return _plain(cast("dict[str, Any]", value), optional=optional)
    if isinstance(value, list):
        return [_within(one, optional) for one in cast("list[Any]", value)]
    return value
