"""Items of the queue: open proposals that say the same in one scope are decided together (REV-11)."""

from typing import Any

from pydantic_core import to_json

from muniment.candidates.rules import compared_as
from muniment.contradictions.rules import normal
from muniment.language.assertion.comparison import bare_words
from muniment.language.instructions import visible_text
from muniment.model.candidate import Candidate
from muniment.model.fields import Tier
from muniment.pack.schema import Identity


def said_in_scope(candidate: Candidate, tier: Tier, identity: Identity) -> bytes:
    """Return what a candidate asserts, when that holds and which runs could see it, to be hashed.

    A fact on a key asserts its value, a plain text its words about its subject, an evidence link its references. A
    session counts in the working tier alone, a workflow in the episodic tier without a user, as they do for recalls.
    A correction says the same only as another correction: it has rights that no other fact has.
    """
    scope = candidate.scope
    runs = (
        scope.user_id,
        scope.session_id if tier == "working" else None,
        scope.workflow_id if tier == "episodic" and scope.user_id is None else None,
        scope.intent_id,
        sorted(scope.qualifiers.items()),
    )
    held = [at.timestamp() if at is not None else None for at in (candidate.valid_from, candidate.valid_until)]
    return to_json([_asserted(candidate, identity), runs, held, candidate.write_class == "correction"])


def _asserted(candidate: Candidate, identity: Identity) -> list[Any]:
    if candidate.write_class == "evidence_link":
        return ["references", candidate.entity, candidate.predicate, sorted(candidate.evidence_refs)]
    if candidate.on_key:
        return ["value", candidate.entity, candidate.predicate, normal(candidate.value).decode()]
    return ["words", compared_as(candidate, identity), bare_words(visible_text(candidate.text))]
