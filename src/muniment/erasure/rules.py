"""Whom or what an erasure concerns (ERA-5, ERA-8). Pure.

`concerned` says under which names an erasure looks for a person; `names_in_value` (candidates/rules.py) says
whom a fact names. The rows that those names reach are selected by the conditions `concerned`, `covered_capture`,
`covered_fact` and `covered_recall` in database/fragments.sql, and by nothing else.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from muniment.candidates.rules import hashed_name
from muniment.capture.rules import subject_of, user_of, user_subject
from muniment.model.capture import holder_of
from muniment.model.erasure import ErasureInput
from muniment.model.ids import is_ceid
from muniment.pack import Pack


@dataclass(frozen=True)
class Concerned:
    """The person whom an erasure concerns: subject, user, and the holders of the keys that seal their content."""

    subject: str | None
    user_id: str | None
    holders: list[str]

    def names(self, digest: Callable[[bytes], bytes]) -> list[str]:
        """Every name that a row may have for the person: the holders, and the hashes of those that are entities."""
        return [*self.holders, *(hashed_name(digest, one) for one in self.holders if is_ceid(one))]


def concerned(person: ErasureInput, pack: Pack) -> Concerned:
    """Whom an erasure of that subject or user concerns.

    A user and the subject that the pack takes the user for are one person (CAP-12): a capture with a user and no
    subject is sealed under the user's key, the facts found in it under the subject's. An entity is erased under every
    namespace that the pack calls an alias.
    """
    subject = subject_of(person.subject, person.user_id, pack)
    user_id = person.user_id if person.user_id is not None else user_of(subject, pack)
    entities = [one for one in (subject, user_subject(user_id, pack)) if one is not None]
    users = [one for one in (user_id, user_of(subject, pack)) if one is not None]
    spelled = [name for one in entities for name in pack.identity.spellings(one)]
    return Concerned(subject, user_id, list(dict.fromkeys((*spelled, *(holder_of(None, one) for one in users)))))


@dataclass(frozen=True)
class FactPlan:
    """What an erasure of one fact takes: its candidates and the captures that go with it.

    `looked_at` are all captures of those candidates, `known` all candidates in them: if there is another by then, the
    plan does not hold any more.
    """

    fact_id: str
    facts: list[str]
    captures: list[str]
    looked_at: list[str]
    known: frozenset[str]


def resting_on(
    by_capture: Mapping[str, Collection[str]], facts: Collection[str], unread: Collection[str]
) -> dict[str, list[str]]:
    """Return the captures on which other facts rest, with those facts; one that is not read yet may hold others."""
    others = {capture_id: sorted({*candidates} - {*facts}) for capture_id, candidates in by_capture.items()}
    return {capture_id: found for capture_id, found in sorted(others.items()) if found or capture_id in unread}
