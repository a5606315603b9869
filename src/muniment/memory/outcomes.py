"""What became of captures, as `add` says it: facts that were promoted, that wait and why, that were refused."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

from muniment.client import AsyncClient
from muniment.errors import NotFound
from muniment.fabric import AsyncFabric
from muniment.memory.results import Added, Kept, Known, NotKept, Waiting
from muniment.memory.words import why_refused, why_waiting
from muniment.model.context import Principal
from muniment.model.subject import MyOutcome, MyProposal

# Captures whose outcome is asked for at once.
_AT_ONCE = 1000
_OPEN = ("pending", "held")
_KEPT = ("promoted", "duplicate")


async def added_of(
    place: AsyncFabric | AsyncClient, person: Principal, captures: Mapping[str, str], notes: tuple[str, ...]
) -> Added:
    """Return what became of captures of a person; each id has the text by which a refusal names it."""
    ids = list(captures)
    outcomes: list[MyOutcome] = []
    for first in range(0, len(ids), _AT_ONCE):
        outcomes += await place.me.outcomes(person, ids[first : first + _AT_ONCE])
    facts = [fact for one in outcomes for fact in one.facts]
    refused = [(captures[one.capture_id], refusal) for one in outcomes for refusal in one.refusals]
    return Added(
        promoted=tuple(
            Kept(id=one.memory_id, text=one.text, known=one.status == "duplicate")
            for one in facts
            if one.status in _KEPT and one.memory_id is not None
        ),
        waiting=await waiting_of(place, person, [one for one in facts if one.status in _OPEN]),
        refused=tuple(
            NotKept(message=text, why=why)
            for text, why in dict.fromkeys((text, why_refused(refusal)) for text, refusal in refused)
        ),
        unread=sum(not one.read for one in outcomes),
        notes=notes,
        captures=tuple(ids),
    )


async def waiting_of(
    place: AsyncFabric | AsyncClient, person: Principal, facts: Sequence[MyProposal]
) -> tuple[Waiting, ...]:
    """Say why each fact waits, with the memories that it contradicts or is about."""
    texts: dict[str, str] = {}
    for memory_id in dict.fromkeys(name for fact in facts for name in (*fact.contradicts, *fact.targets)):
        with suppress(NotFound):  # It is not of this user alone.
            texts[memory_id] = (await place.me.get(person, memory_id)).text
    waiting: list[Waiting] = []
    for fact in facts:
        names = dict.fromkeys((*fact.contradicts, *fact.targets))
        known = tuple(Known(id=name, text=texts[name]) for name in names if name in texts)
        one = Waiting(
            id=fact.proposal_id,
            text=fact.text,
            why=why_waiting(fact, known),
            may_confirm=fact.may_confirm,
            classification=fact.classification,
            known=known,
        )
        waiting.append(one)
    return tuple(waiting)
