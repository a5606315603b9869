"""What a reader finds, and the parts that readers share: times, texts, and whom an item is about. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any, NamedTuple, cast

from muniment.errors import InvalidInput


class Found(NamedTuple):
    """An item with its place in the source, or the error of one that cannot be read; `raw` is as it was written."""

    place: str
    item: dict[str, Any] | InvalidInput
    raw: str = ""


@dataclass(frozen=True)
class Scope:
    """Whom the items of a source are for, where the source does not say or says it in its own names.

    Without a user an item would be for all runs of the tenant: that has to be said (`tenant_wide`).
    """

    user: str | None = None
    users: Mapping[str, str] = field(default_factory=dict[str, str])
    tenant_wide: bool = False
    defaults: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def applied(self, found: Iterable[Found]) -> Iterator[Found]:
        """Yield what was found with its user by our name, and with the defaults for fields that it lacks."""
        for one in found:
            yield one if isinstance(one.item, InvalidInput) else Found(one.place, self._scoped(one.item))

    def _scoped(self, item: dict[str, Any]) -> dict[str, Any] | InvalidInput:
        theirs = item.get("user_id")
        user = self.users.get(theirs, theirs) if isinstance(theirs, str) else self.user
        scoped = {**self.defaults, **item}
        scoped.pop("user_id", None)
        if user is not None:
            return scoped | {"user_id": user}
        if self.tenant_wide or scoped.get("subject") is not None:
            return scoped
        return InvalidInput(
            "has no user, and without one every run of the tenant could see it: give --user, or --tenant-wide",
            field="user_id",
        )


def objects(document: Any, *names: str) -> list[Any]:
    """Return the list that a document is, or has under one of these names; raises `InvalidInput`."""
    if isinstance(document, list):
        return cast("list[Any]", document)
    if isinstance(document, dict):
        named = cast("dict[str, Any]", document)
        for name in names:
            if isinstance(named.get(name), list):
                return named[name]
    raise InvalidInput(f"expected a list, or an object with a list under {' or '.join(names)}", field="file")


def fields_of(one: Any) -> dict[str, Any] | InvalidInput:
    """Return an object's fields, or the error of what is no object."""
    return cast("dict[str, Any]", one) if isinstance(one, dict) else InvalidInput("expected an object")


def text_of(fields: Mapping[str, Any], *names: str) -> str | InvalidInput:
    """Return the first of these fields that is a text with something in it, or the error that there is none."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, str) and value.strip():
            return value.strip()
    return InvalidInput(f"has no text: expected one under {' or '.join(names)}", field=names[0])


def time_of(value: Any) -> str | None:
    """Return a time in ISO 8601 with its zone, by default UTC; None for none. What is no time stays as it is."""
    if value is None or value == "":
        return None
    if isinstance(value, datetime):
        return (value if value.tzinfo is not None else value.replace(tzinfo=UTC)).isoformat()
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC).isoformat()
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _of_epoch(value)
    if not isinstance(value, str):
        return str(value)
    try:
        return time_of(datetime.fromisoformat(value))
    except ValueError:
        return value


def _of_epoch(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (OverflowError, OSError, ValueError):
        return str(seconds)


def rest(fields: Mapping[str, Any], taken: Sequence[str]) -> dict[str, Any] | None:
    """Return what else an object holds, without its vectors; None for nothing."""
    left = {name: value for name, value in fields.items() if name not in taken and value not in (None, "", [], {})}
    return {name: _plain(value) for name, value in left.items() if not _is_vector(value)} or None


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in cast("dict[Any, Any]", value).items() if not _is_vector(one)}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(one) for one in cast("list[Any]", value)]
    if isinstance(value, datetime | date):
        return time_of(value)
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


_LONG = 32


def _is_vector(value: Any) -> bool:
    """Whether a value is a list of numbers that stands for a text: vectors are content, and made anew here."""
    if not isinstance(value, list):
        return False
    listed = cast("list[Any]", value)
    return len(listed) >= _LONG and all(isinstance(one, int | float) for one in listed)


def without_none(**fields: Any) -> dict[str, Any]:
    """Return the fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}
