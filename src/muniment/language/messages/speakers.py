"""Whose words a message holds: which roles it names, and which of its turns and words are the user's own.

What counts as the user is a list: the roles that chat formats give a user, and the user's own id. Any other role,
under whatever key, is somebody else.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple, cast

from muniment.language.data_files import word_set
from muniment.language.instructions.characters import visible_text
from muniment.language.messages.quotations import Labels, OwnText, own_text
from muniment.model.capture import Capture

# The roles of the user, as chat formats name them, without case and without signs between words.
_USER_ROLES = word_set(
    "user human humanmessage usermessage me customer client caller enduser speaker patient guest member visitor"
)
# Roles of others that a name or a label may be too. In a field for a role everything else is another's as well.
_OTHER_ROLES = word_set(
    "assistant agent bot ai aimessage system support operator tool toolmessage model chatbot advisor representative"
    " developer function llm gpt chatgpt copilot webpage website browser"
)
# Fields that say in what role somebody speaks, and those that say who does, by a role or by a name.
_ROLE_KEYS = word_set(
    "role type sendertype senderrole authortype authorrole speakertype speakerrole messagetype messagerole"
    " participanttype participantrole actortype actor usertype fromtype fromrole"
)
_WHO_KEYS = word_set("speaker author sender from")
_NAME_KEYS = ("name", "speakername", "authorname", "sendername", "username", "displayname")
# These mean something else in many payloads: they count where they stand beside a text, or name somebody else's role.
_GENERAL_KEYS = word_set("type from actor")
# Before a role in the name of a flag: `is_bot`.
_ABOUT = re.compile(r"\A(?:is|from|by)")
# What a field `type` says of a message that says nothing of who speaks.
_TYPES = word_set("text message chat chatmessage inputtext msg plain markdown event utterance turn post comment")
# Fields that hold another message than the one they stand in.
_OTHER_MESSAGES = ("reply", "quote", "parent", "previous", "thread")
_TIME_KEYS = ("at", "said_at", "timestamp", "time", "created_at", "date")
_TEXT_KEYS = ("content", "text", "message")
_LIST_KEYS = ("messages", "turns", "conversation")
_LONGEST_NAME = 80
_MOST_TURNS = 1000
_DEEPEST = 8
# Who speaks under a name of which nothing can be shown.
_UNNAMED = "somebody"


def names_another_speaker(payload: object, *own: str | None) -> bool:
    """Say whether a payload names somebody other than the user as its speaker; `own` are the user's ids.

    Every role in it, at any depth but in turns and in other messages, has to be the user's. Where none is given, who
    speaks has to be the user too; a name beside the role of a user is the user's or that of somebody they speak for.
    """
    if not isinstance(payload, dict):
        return False
    # A user may be called like somebody else's role.
    ids = {one for one in own if one is not None and not _is_other(one)}
    found = list(_roles(cast("dict[str, Any]", payload), _DEEPEST))
    roles = [value for kind, value in found if kind == "role"]
    who = [value for kind, value in found if kind == "who"]
    if any(kind == "other" for kind, _ in found) or any(map(_is_other, who)):
        return True
    return not all(_is_user(one) or one in ids for one in (roles or who))


def _roles(fields: Mapping[str, Any], depth: int) -> Iterator[tuple[Literal["role", "who", "other"], str]]:
    """Yield what the fields of a message say of who speaks: in what role, who, or that it is surely somebody else."""
    holds_text = bool(_texts(fields))
    for key, value in fields.items():
        name = _fold(key)
        if value is None or name in _LIST_KEYS or any(part in name for part in _OTHER_MESSAGES):
            continue
        if isinstance(value, dict):
            if depth > 0:
                yield from _roles(cast("dict[str, Any]", value), depth - 1)
            else:
                yield "other", name
        elif name in _ROLE_KEYS or name in _WHO_KEYS:
            is_general = name in _GENERAL_KEYS
            if not isinstance(value, str):
                if not is_general or holds_text:
                    yield "other", name
            elif is_general and (_fold(value) in _TYPES or not (holds_text or _is_other(value))):
                continue
            else:
                yield ("role" if name in _ROLE_KEYS else "who"), value.strip()
        elif (value is True and _ABOUT.sub("", name) in _OTHER_ROLES) or (name in _NAME_KEYS and _is_other(value)):
            yield "other", name


class SpokenTurn(NamedTuple):
    """What the speaker of a message says in one turn; `speaker` is the name in the message, else the user's id."""

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
        if names_another_speaker(whole, capture.user_id, capture.subject):
            return []
        if content.text is None:
            found += [(text, whole) for text in _texts(whole)]
        found += [(text, turn) for turn in _turns(whole) for text in _texts(turn) if _is_own(turn, capture)]
    elif isinstance(payload, str) and content.text is None:
        found.append((payload, whole))
    if content.text is not None:
        found.insert(0, (content.text, whole))
    return [
        SpokenTurn(_own_text(text, capture).text, _speaker(fields, capture), _said_at(fields, capture.observed_at))
        for text, fields in found
    ]


def only_own_words(capture: Capture) -> bool:
    """Say whether a message holds only its speaker's own words: no turns of others, no quotations, no code."""
    content = capture.content
    if content is None:
        return True
    payload: Any = content.payload
    turns: list[Any] = cast("list[Any]", payload) if isinstance(payload, list) else []
    texts = [content.text]
    if isinstance(payload, dict):
        fields = cast("dict[str, Any]", payload)
        if names_another_speaker(fields, capture.user_id, capture.subject):
            return False
        turns = [turn for key in _LIST_KEYS if isinstance(fields.get(key), list) for turn in fields[key]]
        texts += _texts(fields)
    elif isinstance(payload, str):
        texts.append(payload)
    if not all(isinstance(turn, dict) and _is_own(cast("dict[str, Any]", turn), capture) for turn in turns):
        return False
    texts += [text for turn in turns for text in _texts(turn)]
    return all(text is None or _own_text(text, capture).is_whole for text in texts)


def _speaker(fields: Mapping[str, Any], capture: Capture) -> str | None:
    """Return the name of who speaks: as the message gives it, else the user's id.

    A name is kept as it can be shown; one that cannot be shown at all is still not the user's.
    """
    named = {_fold(key): value for key, value in fields.items()}
    for key in (*_NAME_KEYS, *sorted(_WHO_KEYS), "role"):
        name = named.get(key)
        if isinstance(name, str) and name.strip() and not _is_user(name) and name.strip() != capture.subject:
            shown = " ".join("".join(one for one in visible_text(name) if one.isprintable() or one.isspace()).split())
            return (shown if len(shown) <= _LONGEST_NAME else shown[: _LONGEST_NAME - 3] + "...") or _UNNAMED
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


def _is_own(turn: Mapping[str, Any], capture: Capture) -> bool:
    """Say whether a turn is marked as the user's, and under no key as somebody else's."""
    marked = any(kind in ("role", "who") for kind, _ in _roles(turn, _DEEPEST))
    return marked and not names_another_speaker(dict(turn), capture.user_id, capture.subject)


def _own_text(text: str, capture: Capture) -> OwnText:
    """Return the words of a text that are the user's own."""
    user_id = capture.user_id

    def is_own(label: str) -> bool:
        return _is_user(label) or (label == user_id and not _is_other(label))

    def may_be_own(name: str) -> bool:
        return _is_user(name) or (user_id is not None and _fold(name) in _fold(user_id))

    return own_text(text, Labels(is_own, _is_other, may_be_own))


def _is_user(role: str) -> bool:
    return _fold(role) in _USER_ROLES


def _is_other(role: object) -> bool:
    """Say whether a role or a name is one of somebody else: its first or its last word names such a role."""
    if not isinstance(role, str):
        return False
    if _fold(role) in _OTHER_ROLES:
        return True
    words = [_fold(word) for word in _split(role)]
    return bool(words) and (words[0] in _OTHER_ROLES or words[-1] in _OTHER_ROLES)


def _split(role: str) -> list[str]:
    return "".join(one if one.isalnum() else " " for one in visible_text(role)).split()


def _fold(role: str) -> str:
    """Return a role or a key without differences of case, width and joining, look-alike and invisible characters."""
    return "".join(one for one in visible_text(role).casefold() if one.isalnum())
