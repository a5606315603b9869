"""LangGraph's store: values under a key in a namespace. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from muniment.errors import InvalidInput
from muniment.transfer.sources.found import Found, rest, time_of, without_none

# Where a text is looked for in a value; LangMem has it under content.content.
TEXT_FIELDS = ("text", "content", "memory", "data", "fact", "value")
_PARTS = {"user": "user_id", "session": "session_id", "thread": "session_id", "workflow": "workflow_id"}
# More of a value than this is written as JSON.
_MOST_SCALARS = 12


class StoredValue(NamedTuple):
    """A row of the table `store`."""

    prefix: str
    key: str
    value: Any
    created_at: Any = None
    updated_at: Any = None
    expires_at: Any = None


@dataclass(frozen=True)
class Namespace:
    """Which namespaces are read, and what their parts mean, such as `memories.{user}`.

    A part is a word, a name in braces (user, session, thread, workflow), or `*` for any; a last `**` is any number of
    further parts. Parts match as a whole, so that `user_1` is not `user_10`.
    """

    parts: tuple[str, ...] = ("**",)

    @classmethod
    def parse(cls, written: str | None) -> "Namespace":
        """Read a template; raises `InvalidInput`."""
        if written is None:
            return cls()
        parts = tuple(written.split("."))
        for place, part in enumerate(parts):
            named = part.removeprefix("{").removesuffix("}") if part.startswith("{") and part.endswith("}") else None
            wrong = named is not None and named not in _PARTS
            if not part or wrong or (part == "**" and place < len(parts) - 1):
                expected = "expected words, {user}, {session}, {thread}, {workflow}, * or a last **, with dots between"
                raise InvalidInput(expected, field="namespace")
        return cls(parts)

    def match(self, prefix: str) -> dict[str, str] | None:
        """Return the fields that a namespace stands for; None if it is not read."""
        theirs = prefix.split(".")
        ours = self.parts
        if ours and ours[-1] == "**":
            ours, theirs = ours[:-1], theirs[: len(ours) - 1]
        if len(ours) != len(theirs):
            return None
        found: dict[str, str] = {}
        for part, named in zip(ours, theirs, strict=True):
            if part.startswith("{"):
                found[_PARTS[part[1:-1]]] = named
            elif part not in ("*", named):
                return None
        return found


def items(rows: Iterable[StoredValue], namespace: Namespace, text_field: str | None = None) -> Iterator[Found | None]:
    """Yield an item for each value in a namespace that is read; None for one in any other."""
    for row in rows:
        scope = namespace.match(row.prefix)
        yield None if scope is None else Found(f"{row.prefix} {row.key}", _item(row, scope, text_field))


def _item(row: StoredValue, scope: Mapping[str, str], text_field: str | None) -> dict[str, Any] | InvalidInput:
    found = _text(row.value, text_field)
    if isinstance(found, InvalidInput):
        return found
    text, taken = found
    held: dict[str, Any] = cast("dict[str, Any]", row.value) if isinstance(row.value, dict) else {}
    metadata = {"namespace": row.prefix.split("."), "key": row.key, **(rest(held, taken) or {})}
    created, updated = time_of(row.created_at), time_of(row.updated_at)
    return without_none(
        id=f"{row.prefix}/{row.key}",
        text=text,
        **scope,
        claimed_at=created,
        observed_at=updated or created,
        valid_until=time_of(row.expires_at),
        metadata=metadata,
    )


def _text(value: Any, text_field: str | None) -> tuple[str, Sequence[str]] | InvalidInput:
    """Return the text of a value and the fields that it is made of."""
    if isinstance(value, str) and value.strip():
        return value.strip(), ()
    if not isinstance(value, dict):
        return InvalidInput("has no text: expected an object with one", field="value")
    held = cast("dict[str, Any]", value)
    names = (text_field,) if text_field is not None else TEXT_FIELDS
    for name in names:
        found = _inner(_at(held, name))
        if found is not None:
            return found, (name,)
    if text_field is not None:
        return InvalidInput(f"has no text under {text_field}", field="value")
    return _in_words(held)


def _at(value: dict[str, Any], path: str) -> Any:
    found: Any = value
    for part in path.split("."):
        found = cast("dict[str, Any]", found).get(part) if isinstance(found, dict) else None
    return found


def _inner(value: Any) -> str | None:
    """Return a text, or the text of an object that wraps one."""
    if isinstance(value, str) and value.strip():
        return value.strip()
    if isinstance(value, dict):
        held = cast("dict[str, Any]", value)
        return next((found for name in TEXT_FIELDS if (found := _inner(held.get(name))) is not None), None)
    return None


def _in_words(held: Mapping[str, Any]) -> tuple[str, Sequence[str]] | InvalidInput:
    """Return an object of a few plain values in words: `name: value; name: value`."""
    plain = {name: one for name, one in held.items() if isinstance(one, str | int | float | bool) and one != ""}
    if not plain or len(plain) < len(held) or len(plain) > _MOST_SCALARS:
        return InvalidInput("has no text, and is no plain object: name the field with --text-field", field="value")
    return "; ".join(f"{name.replace('_', ' ')}: {one}" for name, one in plain.items()), tuple(plain)
