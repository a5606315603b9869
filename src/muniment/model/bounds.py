"""Limits on the lengths of input, checked before pydantic validates it (ISO-6).

Pydantic makes an error of every unknown key and of every wrong item of a list before it counts them. So the lengths
are compared with what the model allows first, from the outside to the inside, and the first that is too long raises.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, cast, get_args

from annotated_types import MaxLen
from pydantic import AliasChoices, BaseModel
from pydantic.fields import FieldInfo

from muniment.errors import InvalidInput, TooLarge

# Items of a list, or keys of a mapping, where the field itself sets no bound.
LENGTH_LIMIT = 1000
_SIZED = (list, tuple, dict, set, frozenset)
_FIELD = re.compile(r"[a-z_]{1,64}")


@dataclass(frozen=True)
class _Length:
    """The most that a field may hold, and the models that it holds, if any."""

    name: str
    most: int
    inside: "_Lengths | None"
    # Whether it is a mapping whose values are models, and not a model itself.
    by_key: bool = False


@dataclass(frozen=True)
class _Lengths:
    """The fields of a model, or of several that a body may be, and those of them whose length is bounded."""

    known: frozenset[str]
    bounded: tuple[_Length, ...]


def check_lengths(model: Any, value: Any, *, within: str = "") -> None:
    """Compare the lengths in a value with what the model allows.

    Raises `TooLarge` for the first list or mapping that is too long and `InvalidInput` where there are more keys than
    fields, naming the first that is none. What is of another type than the model expects is left to validation.
    """
    _check(_lengths(model), value, within)


def _check(lengths: _Lengths, value: Any, within: str) -> None:
    if not isinstance(value, Mapping):
        return
    fields = cast("Mapping[Any, Any]", value)
    if len(fields) > len(lengths.known):
        unknown = next(key for key in fields if key not in lengths.known)
        named = unknown if isinstance(unknown, str) and _FIELD.fullmatch(unknown) else ""
        raise InvalidInput("is not a known field", field=_joined(within, named) or None)
    for one in lengths.bounded:
        found = fields.get(one.name)
        if not isinstance(found, _SIZED):
            continue
        held = cast("Collection[Any]", found)
        mapping = cast("dict[Any, Any]", found) if isinstance(found, dict) else None
        is_model = mapping is not None and one.inside is not None and not one.by_key
        if len(held) > one.most and not is_model:
            raise TooLarge(f"is longer than {one.most}", field=_joined(within, one.name))
        if one.inside is None:
            continue
        if is_model:
            _check(one.inside, mapping, _joined(within, one.name))
        else:
            items = mapping.values() if mapping is not None else held
            for place, item in enumerate(items):
                _check(one.inside, item, _joined(within, f"{one.name}.{place}"))


def _joined(within: str, name: str) -> str:
    return f"{within}.{name}" if within and name else within or name


@cache
def _lengths(model: Any) -> _Lengths:
    models = tuple(_models(model))
    known = frozenset(
        spelling for one in models for name, field in one.model_fields.items() for spelling in _spellings(name, field)
    )
    bounded = {name: found for one in models for name, field in one.model_fields.items() if (found := _of(name, field))}
    return _Lengths(known, tuple(bounded.values()))


def _spellings(name: str, field: FieldInfo) -> Iterator[str]:
    """What a field may be called in a value."""
    yield name
    alias = field.validation_alias
    for one in alias.choices if isinstance(alias, AliasChoices) else [alias]:
        if isinstance(one, str):
            yield one


def _of(name: str, field: FieldInfo) -> _Length | None:
    """What is bounded in a field: nothing where it is a text, a number or any JSON, which have bounds of their own."""
    kinds = tuple(_kinds(field.annotation))
    models = tuple(one for kind in kinds for one in _models(kind))
    if not models and not any(_is_container(kind) for kind in kinds):
        return None
    bounds = [*field.metadata, *(one for kind in kinds for one in getattr(kind, "__metadata__", ()))]
    most = min(_most(bounds), default=LENGTH_LIMIT)
    by_key = any(_is_container(kind, dict) for kind in kinds)
    return _Length(name, most, _lengths(models[0]) if models else None, by_key)


def _most(bounds: list[Any]) -> Iterator[int]:
    for bound in bounds:
        if isinstance(bound, MaxLen):
            yield bound.max_length
        elif isinstance(bound, FieldInfo):
            yield from _most(bound.metadata)


def _kinds(annotation: Any) -> Iterator[Any]:
    """The types of a union, each with its annotations."""
    arguments = get_args(annotation)
    if type(None) in arguments:
        for one in arguments:
            yield from _kinds(one)
    elif annotation is not type(None):
        yield annotation


def _is_container(kind: Any, of: tuple[type, ...] | type = _SIZED) -> bool:
    plain = get_args(kind)[0] if hasattr(kind, "__metadata__") else kind
    origin = getattr(plain, "__origin__", plain)
    return isinstance(origin, type) and issubclass(origin, of)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models in an annotation, however deep in lists and unions."""
    if isinstance(annotation, type) and not get_args(annotation) and issubclass(annotation, BaseModel):
        yield annotation
        return
    for one in get_args(annotation):
        if one is not annotation and not isinstance(one, FieldInfo):
            yield from _models(one)
