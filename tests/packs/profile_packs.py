"""Packs of a company that are made of a profile: a map reads what users and tools send, and its source is proven."""

from typing import Any

from pydantic_core import to_json

from muniment.pack import Pack, load_pack, profile_pack

# What a user writes in the form {"say": text, "likes": thing}, and what the tool crm.lookup answers.
TALK: dict[str, Any] = {
    "name": "talk",
    "version": "1.0.0",
    "match": {"kind": "message"},
    "fields": [
        {"write_class": "statement", "text": "{$.say}", "confidence": 0.95},
        {"write_class": "preference", "predicate": "likes_best", "value": "$.likes", "confidence": 0.95},
    ],
}
CRM: dict[str, Any] = {
    "name": "crm",
    "version": "1.0.0",
    "match": {"kind": "tool_result", "origin": "tool:crm.lookup"},
    "fields": [
        {"write_class": "preference", "predicate": "prefers_channel", "value": "$.channel", "confidence": 0.95},
        {"write_class": "statement", "text": "{$.note}", "confidence": 0.95},
    ],
}
CRM_IS_PROVEN: dict[str, Any] = {
    "vouched": "tool:crm.lookup",
    "extractors": ["crm@1.0.0"],
    "declared_by": "head of support",
    "reason": "account managers keep it",
}


def made_of(profile: str, *, proven: tuple[dict[str, Any], ...] = (), **layer: Any) -> Pack:
    """A pack made of a profile, with both maps; the words that `talk` reads are proven as the profile's messages are."""
    document = profile_pack(profile).document()
    document["pack_meta"] |= {"id": f"acme.{profile}"}
    memory = document["memory_layer"]
    memory["extractors"] = [TALK, CRM]
    for source in memory["proven_sources"]:
        source["extractors"] = [*source["extractors"], "talk@1.0.0"]
    memory["proven_sources"] += list(proven)
    for name, value in layer.items():
        memory[name] = {**memory[name], **value} if isinstance(value, dict) else value
    return load_pack(to_json(document))
