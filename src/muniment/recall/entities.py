"""The entities that a recall asks for: by name, with all under them, named in the query, or reached by links."""

import re
from collections.abc import Iterable, Mapping

from muniment.pack import Pack
from muniment.pack.schema import Identity

# Entities that one step may reach: a hub is cut there, in the order of its links.
MOST_REACHED = 64
# Facts that are read for one step.
MOST_LINKS = 256
_CLOSENESS = (1.0, 0.5, 0.25)
# Stands for all entities under those that were asked for with all under them.
UNDER = "*"
_IN_TEXT = re.compile(r"(?<![\w:.-])[a-z][a-z0-9_]*:[A-Za-z0-9._-]{1,128}")


def entities_in(query: str) -> list[str]:
    """Return the entities that a query names, each once."""
    return list(dict.fromkeys(found.rstrip(".") for found in _IN_TEXT.findall(query)))


def spelled(entities: frozenset[str] | None, pack: Pack) -> dict[str, int] | None:
    """Return the requested entities at distance 0, under all names: older memories may have an alias."""
    if entities is None:
        return None
    return dict.fromkeys(sorted({name for one in entities for name in pack.identity.spellings(one)}), 0)


def is_pattern(entity: str) -> bool:
    """Whether it stands for all entities under its parts, as `item:a.*` does."""
    return entity.endswith("*")


def lies_under(entity: str, patterns: Iterable[str]) -> bool:
    """Whether an entity lies under one of the patterns, by whole parts (fragment `lies_under`)."""
    return any(entity.startswith(one[:-1]) for one in patterns)


def closeness(
    entities: Mapping[str, int] | None, query: str, identity: Identity | None = None
) -> list[tuple[str, float]]:
    """Return the requested entities, named in the query or given with a distance, each with how near it is.

    One that is named in the query comes under all names that the pack gives it. All patterns together are the last,
    under the name `UNDER`: what lies under one of them is as near as what was asked for by name.
    """
    named = entities_in(query)
    if identity is not None:
        named = [name for one in named for name in identity.spellings(one)]
    near = dict.fromkeys(named, _CLOSENESS[0])
    patterns = False
    for entity, distance in (entities or {}).items():
        if is_pattern(entity):
            patterns = True
        else:
            near[entity] = max(_CLOSENESS[distance], near.get(entity, 0.0))
    return [*near.items(), *([(UNDER, _CLOSENESS[0])] if patterns else ())]


def follow_links(around: set[str], reached: dict[str, int], links: list[tuple[str, str]], distance: int) -> set[str]:
    """Return the entities one step further, and note their distance; none that was reached before, so a ring ends."""
    new: set[str] = set()
    for one, other in links:
        for here, there in ((one, other), (other, one)):
            if here in around and there not in reached and len(new) < MOST_REACHED:
                reached[there] = distance
                new.add(there)
    return new
