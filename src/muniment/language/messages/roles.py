"""Which roles a message names, and whether a role is the user's own or somebody else's."""

import re
from collections.abc import Mapping
from typing import Any, cast
from unicodedata import category, normalize

# Roles of whoever is spoken with, and of everybody else, as chat formats name them.
_OWN = frozenset(
    {
        "user",
        "human",
        "me",
        "customer",
        "client",
        "caller",
        "end_user",
        "enduser",
        "speaker",
        "patient",
        "guest",
        "member",
    }
)
_OTHERS = frozenset(
    {
        "assistant",
        "agent",
        "bot",
        "ai",
        "system",
        "support",
        "operator",
        "tool",
        "model",
        "chatbot",
        "advisor",
        "representative",
        "developer",
        "function",
    }
)
_ENVELOPES = ("message", "data", "payload", "body")
_WORD = re.compile(r"[^a-z]+")
_ROLE_KEYS = ("role", "speaker", "author", "sender", "from")


def names_another_speaker(payload: object) -> bool:
    """Whether a message's payload says that somebody other than the user speaks: an assistant, a tool, a system.

    A role that is no plain text, or stands in an envelope around the message, is not taken for the user's.
    """
    if not isinstance(payload, dict):
        return False
    said = cast("dict[str, Any]", payload)
    folded = {key.casefold().strip(): value for key, value in said.items()}
    named = [folded[key] for key in _ROLE_KEYS if folded.get(key) is not None]
    if any(not isinstance(role, str) for role in named):
        return True
    if any(
        is_others(role) or _WORD.split(role.casefold())[-1] in _OTHERS or _WORD.split(role.casefold())[0] in _OTHERS
        for role in named
    ):
        return True
    return any(names_another_speaker(inner) for key in _ENVELOPES if (inner := folded.get(key)) is not None)


def roles_in(said: Mapping[str, Any]) -> list[str]:
    """The roles that a message or a turn names, under whichever key."""
    return [role.strip() for key in _ROLE_KEYS if isinstance(role := said.get(key), str) and role.strip()]


def is_own(role: str) -> bool:
    """Whether the role is one of whoever is spoken with."""
    return folded(role) in _OWN


def is_others(role: str) -> bool:
    """Whether the role is never the user's."""
    return folded(role) in _OTHERS


def folded(role: str) -> str:
    """A role without regard to case, width, joining characters and what cannot be seen."""
    plain = "".join(letter for letter in normalize("NFKC", role) if category(letter) != "Cf")
    return plain.casefold().replace(" ", "_").replace("-", "_").strip("_*")
