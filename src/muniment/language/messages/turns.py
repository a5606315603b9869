"""Whose words a message holds: only those of the speaker's own turns are read."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from muniment.language.messages.roles import is_others, is_own, names_another_speaker, roles_in
from muniment.model.capture import Capture

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
        if names_another_speaker(said):
            return []
        if content.text is None:
            found += _texts(said)
        found += [text for turn in _turns(said) for text in _texts(turn) if _is_own(turn, capture)]
    elif isinstance(payload, str) and content.text is None:
        found.append(payload)
    if content.text is not None:
        found.insert(0, content.text)
    return [own for text in found for own in _own_parts(text, capture)]


def only_own_words(capture: Capture) -> bool:
    """Whether a message holds nothing but its speaker's own words: no turns of others, no quotes, no code."""
    content = capture.content
    if content is None:
        return True
    payload: Any = content.payload
    turns: list[Any] = cast("list[Any]", payload) if isinstance(payload, list) else []
    if isinstance(payload, dict):
        said = cast("dict[str, Any]", payload)
        if names_another_speaker(said):
            return False
        turns = [turn for key in _LISTS if isinstance(said.get(key), list) for turn in said[key]]
    if not all(isinstance(turn, dict) and _is_own(cast("dict[str, Any]", turn), capture) for turn in turns):
        return False
    return content.text is None or "\n".join(_own_parts(content.text, capture)) == "\n".join(content.text.splitlines())


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


def _is_own(said: Mapping[str, Any], capture: Capture) -> bool:
    """Of several turns only those that are marked as the speaker's, and by no other key as somebody else's."""
    roles = roles_in(said)
    if not roles or any(map(is_others, roles)):
        return False
    return is_own(roles[0]) or roles[0] in (capture.user_id, capture.subject)


def _own_parts(text: str, capture: Capture) -> Iterator[str]:
    """The text without code, quoted lines and the turns of others."""
    lines = [(_label(line), line) for line in _plain_lines(text)]
    labels = {label for label, _ in lines if label is not None}
    known = {label for label in labels if is_own(label) or is_others(label) or label == capture.user_id}
    # Two names in turn are a talk between two people; who of them the user is nobody knows.
    names = {label for label in labels - known if label.istitle() and " " not in label}
    talk = bool(known) or len(names) > 1
    own: list[str] = []
    mine = True
    for label, line in lines:
        if talk and label is not None and (label in known or label in names):
            mine = is_own(label) or (label == capture.user_id and not is_others(label))
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
