"""The entity graph: facts whose value names another entity tie two of them together."""

import re
from collections.abc import Mapping
from typing import Any

from muniment.model.ids import CEID_PATTERN

# Entities that one step may reach: a hub is cut there, in the order of what ties it.
MOST_REACHED = 64
# Facts that are read for one step.
MOST_TIES = 256
_CLOSENESS = (1.0, 0.5, 0.25)
_CEID = re.compile(CEID_PATTERN)
_IN_TEXT = re.compile(r"(?<![\w:.-])[a-z][a-z0-9_]*:[A-Za-z0-9._-]{1,128}")


def link_of(entity: str | None, value: Any) -> str | None:
    """The other entity that a fact names as its value."""
    if entity is None or not isinstance(value, str) or value == entity:
        return None
    return value if _CEID.fullmatch(value) else None


def named_in(query: str) -> list[str]:
    """The entities that a query names, each once."""
    return list(dict.fromkeys(found.rstrip(".") for found in _IN_TEXT.findall(query)))


def closeness(entities: Mapping[str, int] | None, query: str) -> list[tuple[str, float]]:
    """The entities asked for, by name in the query or by distance, each with how near it is."""
    asked = dict.fromkeys(named_in(query), _CLOSENESS[0])
    for entity, distance in (entities or {}).items():
        asked[entity] = max(_CLOSENESS[distance], asked.get(entity, 0.0))
    return list(asked.items())


def step(around: set[str], reached: dict[str, int], ties: list[tuple[str, str]], distance: int) -> set[str]:
    """The entities one step further, and their distance noted; none that was reached before, so that a ring ends."""
    new: set[str] = set()
    for one, other in ties:
        for here, there in ((one, other), (other, one)):
            if here in around and there not in reached and len(new) < MOST_REACHED:
                reached[there] = distance
                new.add(there)
    return new
