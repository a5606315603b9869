"""The difference between two packs, rule by rule; named items are matched by name, wherever they are (PAC-4)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

from muniment.model.activation import ChangeKind, PackDifference, RuleChange
from muniment.pack import Pack

Place: TypeAlias = tuple[str, ...]
_Change: TypeAlias = tuple[Place, ChangeKind, Any, Any]

# The parts of these two layers are sections of their own, named by two words.
_LAYERS = ("memory_layer", "policy_layer")


def differences(one: Pack, other: Pack) -> PackDifference:
    """Every rule that the other pack changes, adds or removes, with defaults filled in on both sides."""
    found = _changes((), one.document(), other.document())
    return PackDifference(
        one=one.ref,
        other=other.ref,
        same=one.digest == other.digest,
        changes=tuple(
            RuleChange(path=".".join(place), section=_section(place), kind=kind, before=before, after=after)
            for place, kind, before, after in found
        ),
    )


def _section(place: Place) -> str:
    return ".".join(place[:2] if place[0] in _LAYERS else place[:1])


def _changes(place: Place, before: Any, after: Any) -> Iterator[_Change]:
    if before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _of_mappings(place, cast("dict[str, Any]", before), cast("dict[str, Any]", after))
    elif (named := _both_named(before, after)) is not None:
        was, now = named
        yield from _of_mappings(place, was, now)
        shared = [name for name in was if name in now]
        if (order := [name for name in now if name in was]) != shared:
            yield (*place, "(order)"), "changed", shared, order
    else:
        yield place, "changed", before, after


def _of_mappings(place: Place, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[_Change]:
    for name in (*before, *(name for name in after if name not in before)):
        here = (*place, name)
        if name not in after:
            yield here, "removed", before[name], None
        elif name not in before:
            yield here, "added", None, after[name]
        else:
            yield from _changes(here, before[name], after[name])


def _both_named(before: Any, after: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Two lists of mappings, by the names of their items; None for other values."""
    if not isinstance(before, list) or not isinstance(after, list):
        return None
    was, now = cast("list[Any]", before), cast("list[Any]", after)
    if not all(isinstance(item, dict) for item in (*was, *now)):
        return None
    return _named(was), _named(now)


def _named(items: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Items by name; a second item of the same name gets a number."""
    named: dict[str, Any] = {}
    for item in items:
        name, count = _name(item), 1
        while (shown := name if count == 1 else f"{name}#{count}") in named:
            count += 1
        named[shown] = item
    return named


def _name(item: Mapping[str, Any]) -> str:
    if "name" in item:
        return str(item["name"])
    if "when" in item and "tier" in item:  # a rule of routing
        when = cast("Mapping[str, Any]", item["when"])
        conditions = [f"{key}={_word(value)}" for key, value in when.items() if value is not None]
        return "when " + " and ".join(conditions) if conditions else "otherwise"
    if "records" in item or "bytes" in item:  # a budget
        return f"{item.get('tier') or 'every tier'}, {item.get('write_class') or 'every class'}"
    # a field of an extractor, or a condition in one
    return str(item.get("predicate") or item.get("path") or item.get("write_class") or "item")


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
