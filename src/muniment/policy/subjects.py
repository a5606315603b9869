"""Whom a fact is about where only the user was named: a user is the subject `namespace:id` of the pack's namespace."""

import re

from muniment.model.ids import CEID_PATTERN, holds_card_number
from muniment.pack import Pack

_CEID = re.compile(CEID_PATTERN)


def user_subject(user_id: str | None, pack: Pack) -> str | None:
    """The CEID of a user; None without a user, and for an id that no CEID can hold (CAP-12)."""
    if user_id is None:
        return None
    named = f"{pack.identity.user_namespace}:{user_id}"
    return named if _CEID.fullmatch(named) and not holds_card_number(user_id) else None


def subject_of(subject: str | None, user_id: str | None, pack: Pack) -> str | None:
    """The subject that was named, else the user."""
    return subject if subject is not None else user_subject(user_id, pack)


def user_of(subject: str | None, pack: Pack) -> str | None:
    """The user that a subject is, if it is one."""
    namespace, colon, user_id = (subject or "").partition(":")
    return user_id if colon and namespace == pack.identity.user_namespace else None
