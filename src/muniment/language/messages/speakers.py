"""Whose words a message holds: which roles it names, and which of its turns are the user's own."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple, cast
from unicodedata import category, normalize

from muniment.language.data_files import word_set
from muniment.model.capture import Capture

# Roles of the user and of everybody else, as chat formats name them.
_USER_ROLES = word_set("user human me customer client caller end_user enduser speaker patient guest member")
_OTHER_ROLES = word_set(
    "assistant agent bot ai system support operator tool model chatbot advisor representative developer function"
)
_ENVELOPES = ("message", "data", "payload", "body")
_NO_LETTERS = re.compile(r"[^a-z]+")
_ROLE_KEYS = ("role", "speaker", "author", "sender", "from")
_NAME_KEYS = ("name", "speaker_name", "author_name", "sender_name", "username")
_TIME_KEYS = ("at", "said_at", "timestamp", "time", "created_at", "date")
_LONGEST_NAME = 80
_TEXT_KEYS = ("content", "text", "message")
_LIST_KEYS = ("messages", "turns", "conversation")
_LABEL = re.compile(r"\s{0,8}\**([A-Za-z][A-Za-z_ -]{0,30})\**\s{0,2}:\**(?:\s+|$)")
_FENCE = "```"
_MOST_TURNS = 1000


def names_another_speaker(payload: object) -> bool:
    """Say whether a payload names somebody other than the user as its speaker: an assistant, a tool, a system.

    A role that is no plain text is not the user's; a role in an envelope around the message counts too.
    """
    if not isinstance(payload, dict):
        return False
    fields = {key.casefold().strip(): value for key, value in cast("dict[str, Any]", payload).items()}
    roles = [fields[key] for key in _ROLE_KEYS if fields.get(key) is not None]
    if any(not isinstance(role, str) for role in roles):
        return True
    for role in roles:
        words = _NO_LETTERS.split(role.casefold())
        if _is_other(role) or words[0] in _OTHER_ROLES or words[-1] in _OTHER_ROLES:
            return True
    return any(names_another_speaker(inner) for key in _ENVELOPES if (inner := fields.get(key)) is not None)


class SpokenTurn(NamedTuple):
    """What the speaker of a message says in one turn; `speaker` is the name in the message, None where it has none."""

    text: str
    speaker: str | None
    said_at: datetime


def own_turns(capture: Capture) -> list[SpokenTurn]:
    """Return the texts of a message that are its speaker's own, in order, each with who said it and when."""
    content = capture.content
    if content is None:
        return []
    payload: Any = content.payload
    found: list[tuple[str, Mapping[str, Any]]] = []
    whole: Mapping[str, Any] = {}
    if isinstance(payload, dict):
        whole = cast("dict[str, Any]", payload)
        if names_another_speaker(whole):
            return []
        if content.text is None:
            found += [(text, whole) for text in _texts(whole)]
        found += [(text, turn) for turn in _turns(whole) for text in _texts(turn) if _is_own(turn, capture)]
    elif isinstance(payload, str) and content.text is None:
        found.append((payload, whole))
    if content.text is not None:
        found.insert(0, (content.text, whole))
    return [
        SpokenTurn(own, _speaker(fields, capture), _said_at(fields, capture.observed_at))
        for text, fields in found
        for own in _own_parts(text, capture)
    ]


def own_words(capture: Capture) -> list[str]:
    """Return the texts of a message that are its speaker's own, in order."""
    return [turn.text for turn in own_turns(capture)]


def _speaker(fields: Mapping[str, Any], capture: Capture) -> str | None:
    """Return the name of who speaks: as the message gives it, else the user's id."""
    for key in (*_NAME_KEYS, *_ROLE_KEYS):
        name = fields.get(key)
        if isinstance(name, str) and (bare := " ".join(name.split())) and not _is_user(bare) and not _is_other(bare):
            return bare if len(bare) <= _LONGEST_NAME and bare.isprintable() else None
    return capture.user_id


def _said_at(fields: Mapping[str, Any], observed_at: datetime) -> datetime:
    """Return when it was said: as the message says with a time zone, not later than it was observed; else that time."""
    for key in _TIME_KEYS:
        try:
            at = datetime.fromisoformat(fields[key])
        except (KeyError, TypeError, ValueError):
            continue
        return min(at, observed_at) if at.tzinfo is not None else observed_at
    return observed_at


def only_own_words(capture: Capture) -> bool:
    """Say whether a message holds only its speaker's own words: no turns of others, no quotes, no code."""
    content = capture.content
    if content is None:
        return True
    payload: Any = content.payload
    turns: list[Any] = cast("list[Any]", payload) if isinstance(payload, list) else []
    if isinstance(payload, dict):
        fields = cast("dict[str, Any]", payload)
        if names_another_speaker(fields):
            return False
        turns = [turn for key in _LIST_KEYS if isinstance(fields.get(key), list) for turn in fields[key]]
    if not all(isinstance(turn, dict) and _is_own(cast("dict[str, Any]", turn), capture) for turn in turns):
        return False
    return content.text is None or "\n".join(_own_parts(content.text, capture)) == "\n".join(content.text.splitlines())


def _turns(fields: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for key in _LIST_KEYS:
        turns: Any = fields.get(key)
        if isinstance(turns, list):
            for turn in cast("list[Any]", turns)[:_MOST_TURNS]:
                if isinstance(turn, dict):
                    yield cast("dict[str, Any]", turn)


def _texts(fields: Mapping[str, Any]) -> list[str]:
    found = next((text for key in _TEXT_KEYS if isinstance(text := fields.get(key), str)), None)
    return [] if found is None else [found]


def _is_own(fields: Mapping[str, Any], capture: Capture) -> bool:
    """Say whether a turn is marked as the speaker's, and under no other key as somebody else's."""
    roles = [role.strip() for key in _ROLE_KEYS if isinstance(role := fields.get(key), str) and role.strip()]
    if not roles or any(map(_is_other, roles)):
        return False
    return _is_user(roles[0]) or roles[0] in (capture.user_id, capture.subject)


def _own_parts(text: str, capture: Capture) -> Iterator[str]:
    """Return the text without code, quoted lines and the turns of others."""
    lines = [(_label(line), line) for line in _plain_lines(text)]
    labels = {label for label, _ in lines if label is not None}
    known = {label for label in labels if _is_user(label) or _is_other(label) or label == capture.user_id}
    # Two names in turn are a talk between two people, of whom either may be the user.
    names = {label for label in labels - known if label.istitle() and " " not in label}
    talk = bool(known) or len(names) > 1
    own: list[str] = []
    mine = True
    for label, line in lines:
        if talk and label is not None and (label in known or label in names):
            mine = _is_user(label) or (label == capture.user_id and not _is_other(label))
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


def _is_user(role: str) -> bool:
    return _fold(role) in _USER_ROLES


def _is_other(role: str) -> bool:
    return _fold(role) in _OTHER_ROLES


def _fold(role: str) -> str:
    """Return a role without differences of case, width, joining and invisible characters."""
    plain = "".join(letter for letter in normalize("NFKC", role) if category(letter) != "Cf")
    return plain.casefold().replace(" ", "_").replace("-", "_").strip("_*")
