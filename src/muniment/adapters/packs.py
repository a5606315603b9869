"""Packs for adapters: a built-in profile in which the items that a named tool keeps are believed."""

import re
from typing import Any

from pydantic_core import to_json

from muniment.errors import InvalidInput
from muniment.model.inputs import check_name
from muniment.pack import PROFILES, Pack, load_pack, profile_pack

# Of the facts that `items.put` makes, and of no others.
ITEM_EXTRACTOR = "item@1"
# What a store returns at once.
MOST_ITEMS = 100


def pack_for_tool(profile: str, tool: str, *, max_recalls: int = MOST_ITEMS) -> Pack:
    """Return a profile as a pack of its own, in which the items of one tool are proven (CAN-6).

    What a credential puts that may speak for the tool is promoted at once in `assisted` and `personal`; in `personal`
    a newer value also replaces the older one on its key. Everything else is as in the profile: what is sensitive, low
    in trust or refused by a gate is not promoted by it. In `strict` nothing is promoted without a person, so there a
    proven source changes nothing. Raises `InvalidInput`.
    """
    if profile not in PROFILES:
        raise InvalidInput(f"expected one of {', '.join(PROFILES)}", field="profile")
    check_name(tool, "tool")
    pack = profile_pack(profile)
    document: dict[str, Any] = pack.document()
    document["pack_meta"]["id"] = f"{pack.meta.id}.{re.sub('[^a-z0-9_]+', '_', tool.lower())}"
    layer = document["memory_layer"]
    layer["recall_policy"]["max_recalls"] = max_recalls
    layer["proven_sources"].append(
        {
            "vouched": f"tool:{tool}",
            "extractors": [ITEM_EXTRACTOR],
            "classes": ["preference"],
            "declared_by": "whoever put this pack in force",
            "reason": f"the items of {tool} are kept for its own program, are of low risk, and can be undone for a day",
        }
    )
    if profile == "personal":
        layer["classes"]["preference"]["auto_resolve"] = {"margin": 0.0, "fresher_evidence": True}
    return load_pack(to_json(document))
