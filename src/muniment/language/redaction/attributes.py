"""The classified attributes of a pack's identity layer, found by their names."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from muniment.language.redaction.masks import Mask
from muniment.language.redaction.normalised import normalise
from muniment.pack.schema import ClassifiedAttribute

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BETWEEN_WORDS = re.compile(r"[\s_.\-]+")


@dataclass(frozen=True)
class Attribute:
    """A classified attribute: the mask of its value, if it has one, and the least label."""

    name: str
    mask: Mask | None
    label: str | None


class Attributes:
    """The classified attributes of a pack, found by name however it is written: `tax_id`, `taxId`, `Tax-ID`."""

    def __init__(self, declared: Mapping[str, ClassifiedAttribute]) -> None:
        self._known = {
            _plain_name(name): Attribute(
                name,
                Mask(attribute.mask, attribute.keep_last)
                if attribute.mask is not None or attribute.keep_last is not None
                else None,
                attribute.label,
            )
            for name, attribute in declared.items()
        }

    def masks(self) -> Iterator[Mask]:
        """Return the masks of all attributes."""
        return (known.mask for known in self._known.values() if known.mask is not None)

    def named(self, name: str) -> Attribute | None:
        """Return the attribute of a name, or of the last part of a dotted name."""
        if not self._known or not name:
            return None
        return self._known.get(_plain_name(name)) or self._known.get(_plain_name(name.rpartition(".")[2]))


def _plain_name(name: str) -> str:
    return re.sub(r"[\W_]+", "", normalise(name).text).casefold() or name


def key_words(name: str) -> str:
    """Split a key or predicate into words: `dateOfBirth` becomes `date of birth`."""
    if not name:
        return ""
    return _BETWEEN_WORDS.sub(" ", _HUMP.sub(" ", name)).strip().lower()


def scalars(value: Any) -> Iterator[Any]:
    """Return the scalars in a value, at every depth."""
    if isinstance(value, dict):
        for item in cast("dict[Any, Any]", value).values():
            yield from scalars(item)
    elif isinstance(value, list | tuple):
        for item in cast("list[Any]", value):
            yield from scalars(item)
    elif value is not None:
        yield value
