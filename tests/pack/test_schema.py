"""The published JSON Schema of a pack: strict and described everywhere, and true of the built-in pack."""

import re
from importlib.resources import files
from typing import Any

import pytest
import yaml

from muniment.pack import builtin_pack, pack_schema

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
}
_UNDERSTOOD = {
    *("$ref", "anyOf", "type", "enum", "pattern", "minimum", "maximum", "minLength", "maxLength", "minItems"),
    *(
        "maxItems",
        "uniqueItems",
        "items",
        "properties",
        "patternProperties",
        "additionalProperties",
        "required",
    ),
    *("propertyNames", "description", "default", "examples", "title", "$schema", "$id", "$defs"),
}


def refusals(value: Any, node: dict[str, Any], schema: dict[str, Any], at: str = "$") -> list[str]:
    """Where the value breaks the schema, for the words of JSON Schema that ours uses."""
    assert set(node) <= _UNDERSTOOD, f"the schema at {at} uses a word this check does not know"
    if "$ref" in node:
        return refusals(value, schema["$defs"][node["$ref"].rsplit("/", 1)[-1]], schema, at)
    if "anyOf" in node:
        tried = [refusals(value, choice, schema, at) for choice in node["anyOf"]]
        return [] if [] in tried else tried[0]
    wanted = _TYPES[node["type"]] if "type" in node else (object,)
    if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted and object not in wanted):
        return [f"{at}: {value!r} is no {node['type']}"]
    found: list[str] = []
    if "enum" in node and value not in node["enum"]:
        found.append(f"{at}: {value!r} is none of {node['enum']}")
    if "pattern" in node and not re.search(node["pattern"], str(value)):
        found.append(f"{at}: {value!r} does not match")
    if not node.get("minimum", float("-inf")) <= (value if "minimum" in node else 0) <= node.get("maximum", 2**53):
        found.append(f"{at}: {value!r} is out of bounds")
    if isinstance(value, list):
        if not node.get("minItems", 0) <= len(value) <= node.get("maxItems", 10**6):
            found.append(f"{at}: {len(value)} items")
        for index, item in enumerate(value):
            found += refusals(item, node["items"], schema, f"{at}.{index}")
    if isinstance(value, dict):
        found += [f"{at}: {key} is missing" for key in node.get("required", []) if key not in value]
        for key, item in value.items():
            found += refusals(key, node.get("propertyNames", {}), schema, f"{at}.{key}")
            inner = _inner(node, key)
            found += [f"{at}: {key} is unknown"] if inner is None else refusals(item, inner, schema, f"{at}.{key}")
    return found


def _inner(node: dict[str, Any], key: str) -> dict[str, Any] | None:
    if key in node.get("properties", {}):
        return node["properties"][key]
    for pattern, inner in node.get("patternProperties", {}).items():
        if re.search(pattern, key):
            return inner
    others = node.get("additionalProperties", {})
    return None if others is False else others


@pytest.mark.rule("PAC-1")
def test_the_schema_accepts_the_built_in_pack_as_written_and_as_dumped():
    schema = pack_schema()
    written = files("muniment.pack").joinpath("builtin.yaml").read_text(encoding="utf-8")

    assert refusals(yaml.safe_load(written), schema, schema) == []
    assert refusals(builtin_pack().document(), schema, schema) == []


@pytest.mark.rule("PAC-1")
@pytest.mark.parametrize(
    "change",
    [
        {"surprise": 1},
        {"pack_meta": {"id": "acme", "version": 1.0}},
        {"pack_meta": {"id": "acme"}},
        {"classifications": []},
        {"roles": {"Agent": {}}},
        {"memory_layer": {"classes": {"hunch": {}}}},
        {"memory_layer": {"trust": {"floor": 1.5}}},
        {"memory_layer": {"rejections": {"remember": "P1Y"}}},
        {"memory_layer": {"recall_policy": {"max_recalls": True}}},
    ],
)
def test_the_schema_refuses_what_loading_refuses(change: dict[str, Any]):
    schema = pack_schema()
    assert refusals({**builtin_pack().document(), **change}, schema, schema)


@pytest.mark.rule("PAC-1")
def test_the_schema_names_every_section_describes_every_key_and_knows_no_others():
    schema = pack_schema()

    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"] == "urn:muniment:schema:context-pack:1"
    assert schema["title"] == "Muniment Context Pack"
    assert set(schema["properties"]) == set(builtin_pack().document())
    for name, section in {"Pack": schema, **schema["$defs"]}.items():
        assert section["additionalProperties"] is False, name
        for key, field in section["properties"].items():
            assert field.get("description"), f"{name}.{key}"


def test_the_schema_can_be_changed_by_a_caller_without_harm():
    pack_schema()["properties"].clear()
    assert pack_schema()["properties"]
