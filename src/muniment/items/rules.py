"""Rules of items: how names become entities, what is sealed, what is searched, and which values a filter matches."""

from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from pydantic_core import to_json

from muniment.errors import InvalidInput
from muniment.language.name_search import strings
from muniment.model.fields import TEXT_LIMIT
from muniment.model.item import ITEM_NAMESPACE

# Of a keyed hash: 12 characters for a part, 8 for whose items they are. None of them is a dot.
_PART_BYTES, _OWNER_BYTES = 9, 6
_NAMESPACE, _KEY, _VALUE, _DELETE = "item_namespace", "item_key", "item_value", "item_delete"

Digest = Callable[[bytes], bytes]


# ---- names: one keyed digest for each part (ADP-3) ----


def entity_of(digest: Digest, user_id: str | None, namespace: Sequence[str], key: str) -> str:
    """Return the entity of an item: the digests of its owner, of the parts of its namespace and of its key.

    The same names are another entity for each user, and for no user; a key is never taken for a part.
    """
    return f"{_stem(digest, user_id, namespace)}.{_part(digest, b'key', user_id, key)}"


def entities_under(digest: Digest, user_id: str | None, namespace: Sequence[str]) -> str:
    """Return the pattern of all items in a namespace and below it, by whole parts: `a` is not the beginning of `ab`."""
    return f"{_stem(digest, user_id, namespace)}.*"


def _stem(digest: Digest, user_id: str | None, namespace: Sequence[str]) -> str:
    owner = urlsafe_b64encode(_keyed(digest, b"owner", user_id, "")[:_OWNER_BYTES]).decode()
    return f"{ITEM_NAMESPACE}:{'.'.join([owner, *(_part(digest, b'part', user_id, one) for one in namespace)])}"


def _part(digest: Digest, kind: bytes, user_id: str | None, name: str) -> str:
    return urlsafe_b64encode(_keyed(digest, kind, user_id, name)[:_PART_BYTES]).decode()


def _keyed(digest: Digest, kind: bytes, user_id: str | None, name: str) -> bytes:
    # The length keeps apart what could be read in two ways.
    whose = b"" if user_id is None else b"@" + user_id.encode()
    return digest(b"item\0%b\0%d\0%b%b" % (kind, len(whose), whose, name.encode()))


# ---- content: names and value are sealed together ----


def content_of(namespace: Sequence[str], key: str, value: Any) -> dict[str, Any]:
    """Return the value of an item's fact, which is sealed: its names, and its value."""
    return {_NAMESPACE: list(namespace), _KEY: key, _VALUE: value}


def deletion_of(namespace: Sequence[str], key: str) -> dict[str, Any]:
    """Return the value of a request to delete an item."""
    return {_NAMESPACE: list(namespace), _KEY: key, _DELETE: True}


def read_content(content: Any) -> tuple[tuple[str, ...], str, Any] | None:
    """Return namespace, key and value of a fact; None if it was not made by `items.put`."""
    if not isinstance(content, dict):
        return None
    held = cast("dict[str, Any]", content)
    namespace, key = held.get(_NAMESPACE), held.get(_KEY)
    if not isinstance(namespace, list) or not isinstance(key, str) or _VALUE not in held:
        return None
    parts = cast("list[Any]", namespace)
    return (tuple(parts), key, held[_VALUE]) if all(isinstance(one, str) for one in parts) else None


def text_of(key: str, value: Any) -> str:
    """Return what an item is found and shown by: the strings of its value, or where it has none all of it."""
    found = "\n".join(one for one in strings(value, names=False) if one.strip()) or f"{key}: {to_json(value).decode()}"
    if len(found) * 4 <= TEXT_LIMIT:
        return found
    return found.encode()[:TEXT_LIMIT].decode(errors="ignore")


# ---- filters: as LangGraph's stores have them ----

_ORDERED: dict[str, Callable[[float, float], bool]] = {
    "$gt": lambda value, bound: value > bound,
    "$gte": lambda value, bound: value >= bound,
    "$lt": lambda value, bound: value < bound,
    "$lte": lambda value, bound: value <= bound,
}
OPERATORS = ("$eq", "$ne", *_ORDERED)


def check_filter(conditions: Any, depth: int = 0) -> None:
    """Raise `InvalidInput` for an operator that there is not, and for a bound that is no number."""
    if isinstance(conditions, Mapping):
        for name, bound in cast("Mapping[str, Any]", conditions).items():
            if name.startswith("$") and (name not in OPERATORS or not depth):
                raise InvalidInput(f"expected one of {', '.join(OPERATORS)} within a field", field="where")
            if name in _ORDERED and _number(bound) is None:
                raise InvalidInput(f"expected a number for {name}", field="where")
            check_filter(bound, depth + 1)


def matches(value: Any, conditions: Mapping[str, Any]) -> bool:
    """Whether every condition holds: equal, or by an operator; an object within is compared field by field."""
    if not isinstance(value, Mapping):
        return not conditions
    held = cast("Mapping[str, Any]", value)
    return all(_agrees(held.get(name), wanted) for name, wanted in conditions.items())


def _agrees(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        conditions = cast("Mapping[str, Any]", wanted)
        if any(name.startswith("$") for name in conditions):
            return all(_compared(value, name, bound) for name, bound in conditions.items())
        return isinstance(value, Mapping) and matches(value, conditions)
    if isinstance(wanted, list | tuple):
        bounds = cast("Sequence[Any]", wanted)
        if not isinstance(value, list | tuple):
            return False
        values = cast("Sequence[Any]", value)
        return len(values) == len(bounds) and all(_agrees(*pair) for pair in zip(values, bounds, strict=True))
    return _is_equal(value, wanted)


def _compared(value: Any, name: str, bound: Any) -> bool:
    if name == "$eq":
        return _is_equal(value, bound)
    if name == "$ne":
        return not _is_equal(value, bound)
    if name not in _ORDERED:
        return False
    one, other = _number(value), _number(bound)
    return one is not None and other is not None and _ORDERED[name](one, other)


def _is_equal(value: Any, other: Any) -> bool:
    # To Python true is 1; JSON keeps them apart.
    return value == other and isinstance(value, bool) == isinstance(other, bool)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None


# ---- namespaces ----


def begins_with(namespace: Sequence[str], parts: Sequence[str]) -> bool:
    """Whether a namespace begins with these parts, each whole; `*` is any."""
    return len(namespace) >= len(parts) and all(
        wanted in ("*", one) for one, wanted in zip(namespace, parts, strict=False)
    )


def ends_with(namespace: Sequence[str], parts: Sequence[str]) -> bool:
    """Whether a namespace ends with these parts, each whole; `*` is any."""
    return begins_with(tuple(reversed(namespace)), tuple(reversed(parts)))


def whole_parts(parts: Sequence[str]) -> tuple[str, ...]:
    """Return the first parts, up to the first that is any."""
    return tuple(parts[: parts.index("*")] if "*" in parts else parts)
