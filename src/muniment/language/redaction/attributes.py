"""Classified attributes of the identity layer, by their names."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from muniment.language.redaction.masking import Cover
from muniment.language.redaction.sight import sight_of
from muniment.pack.schema import ClassifiedAttribute

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BETWEEN_WORDS = re.compile(r"[\s_.\-]+")


@dataclass(frozen=True)
class Attribute:
    """A classified attribute: what stands in its place, if anything does, and its least label."""

    name: str
    cover: Cover | None
    label: str | None


class Attributes:
    """The classified attributes of a pack, found by name however it is written: `tax_id`, `taxId`, `Tax-ID`."""

    def __init__(self, declared: Mapping[str, ClassifiedAttribute]) -> None:
        self._known = {
            _plain_name(name): Attribute(
                name,
                Cover(given.mask, given.keep_last) if given.mask is not None or given.keep_last is not None else None,
                given.label,
            )
            for name, given in declared.items()
        }

    def covers(self) -> Iterator[Cover]:
        """What may stand in place of an attribute."""
        return (known.cover for known in self._known.values() if known.cover is not None)

    def named(self, name: str) -> Attribute | None:
        """The attribute of that name, also as the last part of a dotted one."""
        if not self._known or not name:
            return None
        return self._known.get(_plain_name(name)) or self._known.get(_plain_name(name.rpartition(".")[2]))


def _plain_name(name: str) -> str:
    return re.sub(r"[\W_]+", "", sight_of(name).text).casefold() or name


def words_of(name: str) -> str:
    """A key or predicate as the words before a value: `dateOfBirth` reads `date of birth`."""
    if not name:
        return ""
    return _BETWEEN_WORDS.sub(" ", _HUMP.sub(" ", name)).strip().lower()


def leaves(value: Any) -> Iterator[Any]:
    """The scalars in a value, at every depth."""
    if isinstance(value, dict):
        for item in cast("dict[Any, Any]", value).values():
            yield from leaves(item)
    elif isinstance(value, list | tuple):
        for item in cast("list[Any]", value):
            yield from leaves(item)
    elif value is not None:
        yield value
