"""Contradiction by key: the same entity and predicate, another value, a scope that overlaps (CTR-1)."""

from collections.abc import Iterable
from typing import Any, cast

from pydantic_core import to_json

from muniment.model.candidate import Candidate
from muniment.model.fields import Tier
from muniment.model.promoted import PromotedMemory
from muniment.pack import Pack
from muniment.policy.scope import overlap


def on_same_key(candidate: Candidate, tier: Tier, memories: Iterable[PromotedMemory]) -> list[PromotedMemory]:
    """Those on the candidate's key that some run could see beside it."""
    return [
        memory
        for memory in memories
        if candidate.on_key
        and (memory.entity, memory.predicate) == (candidate.entity, candidate.predicate)
        and overlap(memory.scope, memory.tier, candidate.scope, tier)
    ]


def contradicted(
    candidate: Candidate, tier: Tier, memories: Iterable[PromotedMemory], pack: Pack
) -> list[PromotedMemory]:
    """Those that say something else on a key that holds one value."""
    if not candidate.on_key or candidate.predicate is None or not pack.is_single_valued(candidate.predicate):
        return []
    said = normal(candidate.value)
    return [memory for memory in on_same_key(candidate, tier, memories) if normal(memory.value) != said]


def saying_the_same(candidate: Candidate, tier: Tier, memories: Iterable[PromotedMemory]) -> list[PromotedMemory]:
    """Those with the very same value on the same key."""
    said = normal(candidate.value)
    return [memory for memory in on_same_key(candidate, tier, memories) if normal(memory.value) == said]


def repeated(candidate: Candidate, tier: Tier, memories: Iterable[PromotedMemory]) -> list[PromotedMemory]:
    """Those of which it is a duplicate (REV-7): a correction repeats only a correction."""
    alike = saying_the_same(candidate, tier, memories)
    if candidate.write_class == "correction":
        return [memory for memory in alike if memory.write_class == "correction"]
    return alike


def normal(value: Any) -> bytes:
    """A value in the form it is compared in: text without case or outer space, 1 and 1.0 the same, keys sorted."""
    return to_json(_normal(value))


def _normal(value: Any) -> Any:
    match value:
        case bool():
            return value
        case str():
            return " ".join(value.split()).casefold()
        case float() if value.is_integer():
            return int(value)
        case dict():
            named = cast("dict[str, Any]", value)
            return {key: _normal(named[key]) for key in sorted(named)}
        case list() | tuple():
            return [_normal(item) for item in cast("list[Any]", value)]
        case _:
            return value
