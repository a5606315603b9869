"""Whose words a message holds: only those of the speaker's own turns are read."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from muniment.extract.messages.rules import word_set
from muniment.model.capture import Capture

_OWN = word_set(
    """
    user human me customer client caller end_user enduser speaker patient guest member
    """
)
_OTHERS = word_set(
    """
    assistant agent bot ai system support operator tool model chatbot advisor representative developer function
    """
)
_ROLES = ("role", "speaker", "author", "sender", "from")
_TEXTS = ("content", "text", "message")
_LISTS = ("messages", "turns", "conversation")
_LABEL = re.compile(r"\s{0,8}\**([A-Za-z][A-Za-z_ -]{0,30})\**\s{0,2}:\**(?:\s+|$)")
_FENCE = "```"
_MOST_TURNS = 1000


def own_words(capture: Capture) -> list[str]:
    """The speaker's own turns, in their order."""
    content = capture.content
    if content is None:
        return []
    payload: Any = content.payload
    found: list[str] = []
    if isinstance(payload, dict):
        said = cast("dict[str, Any]", payload)
        if not _may_be_own(said, capture):
            return []
        if content.text is None:
            found += _texts(said)
        found += [text for turn in _turns(said) for text in _texts(turn) if _is_own(turn, capture)]
    elif isinstance(payload, str) and content.text is None:
        found.append(payload)
    if content.text is not None:
        found.insert(0, content.text)
    return [own for text in found for own in _own_parts(text, capture)]


def _turns(said: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for key in _LISTS:
        turns: Any = said.get(key)
        if isinstance(turns, list):
            for turn in cast("list[Any]", turns)[:_MOST_TURNS]:
                if isinstance(turn, dict):
                    yield cast("dict[str, Any]", turn)


def _texts(said: Mapping[str, Any]) -> list[str]:
    found = next((text for key in _TEXTS if isinstance(text := said.get(key), str)), None)
    return [] if found is None else [found]


def _role(said: Mapping[str, Any]) -> str | None:
    return next((role.strip() for key in _ROLES if isinstance(role := said.get(key), str) and role.strip()), None)


def _may_be_own(said: Mapping[str, Any], capture: Capture) -> bool:
    role = _role(said)
    return role is None or not _is_others(role) or role == capture.user_id


def _is_own(said: Mapping[str, Any], capture: Capture) -> bool:
    """Of several turns only those that are marked as the speaker's."""
    role = _role(said)
    return role is not None and (_folded(role) in _OWN or role in (capture.user_id, capture.subject))


def _is_others(role: str) -> bool:
    return _folded(role) in _OTHERS


def _folded(role: str) -> str:
    return role.casefold().replace(" ", "_").replace("-", "_").strip("_*")


def _own_parts(text: str, capture: Capture) -> Iterator[str]:
    """The text without code, quoted lines and the turns of others."""
    lines = [(_label(line), line) for line in _plain_lines(text)]
    labels = {label for label, _ in lines if label is not None}
    known = {label for label in labels if _folded(label) in _OWN | _OTHERS or label == capture.user_id}
    # Two names in turn are a talk between two people; who of them the user is nobody knows.
    names = {label for label in labels - known if label.istitle() and " " not in label}
    talk = bool(known) or len(names) > 1
    own: list[str] = []
    mine = True
    for label, line in lines:
        if talk and label is not None and (label in known or label in names):
            mine = _folded(label) in _OWN or label == capture.user_id
            line = line.partition(":")[2].lstrip("* ")
        if mine:
            own.append(line)
    yield "\n".join(own)


def _plain_lines(text: str) -> Iterator[str]:
    fenced = False
    for line in text.splitlines():
        if line.lstrip().startswith(_FENCE):
            fenced = not fenced
        elif not fenced and not line.lstrip().startswith(">"):
            yield line


def _label(line: str) -> str | None:
    found = _LABEL.match(line)
    return found[1].strip() if found else None
