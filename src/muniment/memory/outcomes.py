"""What became of captures, as `add` says it: facts that were promoted, that wait, that were refused. Pure."""

from collections.abc import Mapping, Sequence

from muniment.memory.results import Added, Kept, NotKept, Waiting
from muniment.memory.words import why_refused, why_waiting
from muniment.model.subject import MyOutcome, MyProposal

_OPEN = ("pending", "held")
_KEPT = ("promoted", "duplicate")


def added_of(outcomes: Sequence[MyOutcome], captures: Mapping[str, str], notes: tuple[str, ...]) -> Added:
    """Return what became of captures; each id has the text by which a refusal names it."""
    facts = [fact for one in outcomes for fact in one.facts]
    refused = [(captures[one.capture_id], refusal) for one in outcomes for refusal in one.refusals]
    return Added(
        promoted=tuple(
            Kept(id=one.memory_id, text=one.text, known=one.status == "duplicate")
            for one in facts
            if one.status in _KEPT and one.memory_id is not None
        ),
        waiting=tuple(waiting_of(one) for one in facts if one.status in _OPEN),
        refused=tuple(
            NotKept(message=text, why=why)
            for text, why in dict.fromkeys((text, why_refused(refusal)) for text, refusal in refused)
        ),
        unread=sum(not one.read for one in outcomes),
        notes=notes,
        captures=tuple(captures),
    )


def waiting_of(fact: MyProposal) -> Waiting:
    """Return a fact that waits, and why."""
    why = why_waiting(fact, may_confirm=fact.may_confirm)
    label = fact.classification
    return Waiting(id=fact.proposal_id, text=fact.text, why=why, may_confirm=fact.may_confirm, classification=label)
