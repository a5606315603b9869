"""Who speaks: what a credential can vouch for in a capture, and whose words the roles of a message name (ISO-8)."""

import re
from collections.abc import Mapping
from typing import Any, cast
from unicodedata import category, normalize

from muniment.model.candidate import Candidate
from muniment.model.capture import CaptureInput
from muniment.model.context import Principal
from muniment.model.speaking import CHANNEL, TOOL, USER
from muniment.policy.trust import class_of_source

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


def vouched_for(author: Principal, item: CaptureInput) -> str | None:
    """What the author's credential vouches for in this capture: `user`, the tool of its origin, or nothing.

    Nothing means that the capture is its author's own word, whatever it claims to be.
    """
    origin = item.origin
    if origin is not None and origin.startswith(TOOL):
        name = origin.removeprefix(TOOL)
        return origin if name and author.speaks_for.has_tool(name) else None
    if names_another_speaker(item.payload):
        return None
    if author.kind == "end_user":
        return USER if item.user_id == author.id else None
    if item.kind != "message" or (origin is not None and not origin.startswith(CHANNEL)):
        return None
    channel = origin.removeprefix(CHANNEL) if origin is not None else None
    return USER if author.speaks_for.has_channel(channel) else None


def vouched_in(candidate: Candidate, of_capture: str | None) -> str | None:
    """What is vouched for in one fact of a capture: as in the capture, where the fact's class of source agrees."""
    own = f"{candidate.author} {class_of_source(candidate.source, of_capture)} {candidate.extractor}"
    return of_capture if candidate.claimed_by == own else None


def is_only_claimed(origin: str | None, vouched: str | None) -> bool:
    """Whether an origin names a tool or a channel that the author of the capture could not speak for."""
    return vouched is None and origin is not None and origin.startswith((TOOL, CHANNEL))


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
