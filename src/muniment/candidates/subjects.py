"""Whom a fact is about where only the user was named: a user is the subject `namespace:id` of the pack's namespace."""

import re

from muniment.model.candidate import Candidate
from muniment.model.ids import CEID_PATTERN, holds_card_number
from muniment.model.promoted import PromotedMemory
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


def compared_as(fact: Candidate | PromotedMemory, namespace: str) -> str | None:
    """Whom a plain text is about when it is compared with others; texts about two of them are not compared.

    None where only the run's own user is: what is said in a user's runs may be about anything that they are about.
    """
    user_id, whom = fact.scope.user_id, fact.entity or fact.subject
    return None if user_id is not None and whom == fact.subject == f"{namespace}:{user_id}" else whom
