"""What a pack wants a person to see whatever else holds: `flag_for_review`."""

from collections.abc import Iterator
from typing import Any, cast

from muniment.model.candidate import Candidate
from muniment.pack import Pack
from muniment.pack.memory_layer import FlagRule
from muniment.pack.patterns import compiled


def matching(candidate: Candidate, pack: Pack) -> tuple[FlagRule, ...]:
    """The rules that a candidate meets: by its predicate, and by a pattern in its text, value or evidence."""
    rules = pack.memory_layer.flag_for_review
    return tuple(one for one in rules if _on_predicate(candidate.predicate, one.predicate) and _says(candidate, one))


def _on_predicate(predicate: str | None, wanted: str | None) -> bool:
    if wanted is None or wanted == "*":
        return True
    if predicate is None:
        return False
    return predicate.startswith(wanted[:-1]) if wanted.endswith("*") else predicate == wanted


def _says(candidate: Candidate, rule: FlagRule) -> bool:
    if rule.pattern is None:
        return True
    pattern = compiled(rule.pattern)
    texts = (candidate.text, *strings(candidate.value), *candidate.evidence_refs)
    return any(pattern.search(text) for text in texts)


def strings(value: Any) -> Iterator[str]:
    """Every text in a value, the names of its parts too."""
    match value:
        case str():
            yield value
        case dict():
            for key, item in cast("dict[str, Any]", value).items():
                yield key
                yield from strings(item)
        case list() | tuple():
            for item in cast("list[Any]", value):
                yield from strings(item)
        case _:
            return
