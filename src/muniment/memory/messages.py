"""What `add` takes, as captures: a text, one chat message, or a list of them. Pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias, cast

from muniment.errors import InvalidInput
from muniment.model.speakers import CHANNEL

Message: TypeAlias = Mapping[str, Any]
"""A chat message: `role` and `content`, with `name` and `at` where they are known. Other keys are not kept."""
Messages: TypeAlias = str | Message | Sequence[Message]

USER_ROLE = "user"
_ROLES = (USER_ROLE, "assistant", "system", "developer", "tool", "function")
# How the fields of a capture are called in a message.
_NAMES = {"text": "content", "observed_at": "at", "payload": "name"}


def captures_of(given: Messages, *, channel: str, classification: str) -> list[dict[str, Any]]:
    """Return a capture for each message, in order; raises `InvalidInput`, which names the message.

    A text is a message of the user. Messages of others without any text, such as calls of tools, are left out.
    """
    if isinstance(given, str):
        messages: Sequence[Any] = [{"role": USER_ROLE, "content": given}]
    elif isinstance(given, Mapping):
        messages = [given]
    elif isinstance(given, Sequence) and not isinstance(given, bytes | bytearray | memoryview):
        messages = given
    else:
        raise InvalidInput("expected a text, a message or a list of messages", field="messages")
    common = {"kind": "message", "origin": CHANNEL + channel, "classification": classification}
    return [{**common, **fields} for place, one in enumerate(messages) if (fields := _fields(one, f"messages.{place}"))]


def _fields(message: Any, place: str) -> dict[str, Any]:
    if not isinstance(message, Mapping):
        raise InvalidInput("expected a mapping with role and content", field=place)
    fields = cast("Mapping[str, Any]", message)
    role = fields.get("role")
    if role not in _ROLES:
        raise InvalidInput(f"expected one of {', '.join(_ROLES)}", field=f"{place}.role")
    text = _text(fields.get("content"), place)
    if not text.strip():
        if role != USER_ROLE:
            return {}
        raise InvalidInput("has no text", field=f"{place}.content")
    found: dict[str, Any] = {"text": text}
    name = fields.get("name")
    if name is not None and not isinstance(name, str):
        raise InvalidInput("expected a name", field=f"{place}.name")
    if role != USER_ROLE or name is not None:
        found["payload"] = {"role": role} | ({"name": name} if name is not None else {})
    if (at := fields.get("at")) is not None:
        found["observed_at"] = _time(at, place)
    return found


def _text(content: Any, place: str) -> str:
    """Return the text of a message; of content in parts, as some chat formats have it, the parts that are text."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence) and not isinstance(content, bytes | bytearray | memoryview):
        texts: list[str] = []
        for part in cast("Sequence[Any]", content):
            text = cast("Message", part).get("text") if isinstance(part, Mapping) else None
            texts += [text] if isinstance(text, str) else []
        return "\n".join(texts)
    raise InvalidInput("expected a text", field=f"{place}.content")


def _time(at: Any, place: str) -> Any:
    if isinstance(at, datetime | str):
        return at
    raise InvalidInput("expected a time with its zone, in ISO 8601", field=f"{place}.at")


def name_as_message(field: str | None) -> str | None:
    """Return the field of a message that a field of a capture was made from, for an error that names it."""
    if field is None or not field.startswith("captures."):
        return field
    _, place, *rest = field.split(".")
    named = [_NAMES.get(rest[0], rest[0]), *rest[1:]] if rest else []
    return ".".join(["messages", place, *named])
