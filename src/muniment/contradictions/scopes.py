"""Scopes of two facts beside each other: which runs could see both, and whether one reaches all that the other does."""

from muniment.candidates.rules import intent_under
from muniment.model.candidate import Scope
from muniment.model.fields import Tier


def overlap(one: Scope, one_tier: Tier, other: Scope, other_tier: Tier) -> bool:
    """Whether some run could see facts of both scopes.

    A session limits only what is in the working tier, a workflow only what is episodic and belongs to no user.
    Qualifiers keep nothing apart, as a run that names none sees both, unless one side requires them of a run.
    """
    if _kept_apart(one, other) or _kept_apart(other, one):
        return False
    if not agree(one.user_id, other.user_id):
        return False
    if one_tier == other_tier == "working" and one.session_id != other.session_id:
        return False
    tenants_own = one.user_id is None and other.user_id is None
    if one_tier == other_tier == "episodic" and tenants_own and not agree(one.workflow_id, other.workflow_id):
        return False
    mine, theirs = one.intent_id, other.intent_id
    return mine is None or theirs is None or intent_under(mine, theirs) or intent_under(theirs, mine)


def covers(wide: Scope, wide_tier: Tier, narrow: Scope, narrow_tier: Tier) -> bool:
    """Whether every run that could see facts of the narrow scope could see those of the wide one too."""
    if wide.user_id is not None and wide.user_id != narrow.user_id:
        return False
    if wide_tier == "working" and not (narrow_tier == "working" and narrow.session_id == wide.session_id):
        return False
    if wide_tier == "episodic" and wide.user_id is None and wide.workflow_id is not None:
        within = narrow_tier == "episodic" and narrow.user_id is None and narrow.workflow_id == wide.workflow_id
        if not within:
            return False
    if wide.intent_id is not None and (narrow.intent_id is None or not intent_under(narrow.intent_id, wide.intent_id)):
        return False
    if any(narrow.required.get(name) != value for name, value in wide.required.items()):
        return False
    stated = narrow.qualifiers | narrow.required
    return all(stated.get(name) == value for name, value in wide.qualifiers.items())


def _kept_apart(one: Scope, other: Scope) -> bool:
    """Return whether no run that has the qualifiers required by `one` could see `other`."""
    stated = other.qualifiers | other.required
    return any(stated.get(name, value) != value for name, value in one.required.items())


def agree(one: str | None, other: str | None) -> bool:
    """Whether two names are the same, or one of them is not given."""
    return one is None or other is None or one == other
