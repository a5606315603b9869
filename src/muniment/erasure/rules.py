"""Whom a fact names, and under which names an erasure looks for somebody (ERA-5). Pure."""

import re
from collections.abc import Callable

from muniment.candidates.rules import strings, user_of, user_subject
from muniment.model.candidate import Candidate
from muniment.model.capture import holder_of
from muniment.model.ids import CEID_PATTERN
from muniment.pack import Pack

# Entities that are kept of one value: a longer list of them is a payload, and is found by searching texts.
MOST_IN_VALUE = 256
_CEID = re.compile(CEID_PATTERN)
_HASH_DIGITS = 32


def is_entity(name: str) -> bool:
    """Whether it is a CEID, and neither a user's holder nor a hash."""
    return _CEID.fullmatch(name) is not None


def aliases(ceid: str, pack: Pack) -> tuple[str, ...]:
    """An entity under every namespace that the pack says is the same, the given spelling first."""
    namespace, _, local = ceid.partition(":")
    others = pack.identity.aliases
    stands_for = others.get(namespace, namespace)
    same = (namespace, stands_for, *(alias for alias, target in sorted(others.items()) if target == stands_for))
    return tuple(dict.fromkeys(f"{one}:{local}" for one in same))


def holders(subject: str | None, user_id: str | None, pack: Pack) -> list[str]:
    """The holders that an erasure of that subject and that user covers.

    A user and the subject that the pack takes the user for (CAP-12) are one person.
    """
    entities = [one for one in (subject, user_subject(user_id, pack)) if one is not None]
    found = [alias for one in entities for alias in aliases(one, pack)]
    users = [one for one in (user_id, user_of(subject, pack)) if one is not None]
    return list(dict.fromkeys([*found, *(holder_of(None, one) for one in users)]))


def hashed(digest: Callable[[bytes], bytes], ceid: str) -> str:
    """How a name that stands in a value is kept: as a hash under the tenant's own key."""
    return "#" + digest(b"name\0" + ceid.encode()).hex()[:_HASH_DIGITS]


def in_value(candidate: Candidate) -> list[str]:
    """The entities that the value of a fact names, each once, but for the one it is about."""
    found: dict[str, None] = {}
    for text in strings(candidate.value):
        if text != candidate.entity and _CEID.fullmatch(text):
            found[text] = None
            if len(found) == MOST_IN_VALUE:
                break
    return list(found)
