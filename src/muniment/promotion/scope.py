"""Scopes: which runs could see a fact, and whether one run could see two of them."""

from muniment.model.candidate import Scope
from muniment.model.fields import Tier


def intent_under(intent: str | None, pattern: str) -> bool:
    """Whether the intent equals the pattern or lies under `words.*`."""
    if intent is None:
        return False
    if pattern.endswith(".*"):
        return intent == pattern or intent.startswith(pattern[:-1])
    return intent == pattern


def intents_seen_by(intent: str | None) -> list[str]:
    """All intent scopes that a run of this intent sees, unscoped ('') first."""
    if intent is None:
        return [""]
    words = intent.split(".")
    return ["", intent, *(".".join(words[:n]) + ".*" for n in range(len(words) - 1, 0, -1))]


def overlap(one: Scope, one_tier: Tier, other: Scope, other_tier: Tier) -> bool:
    """Whether some run could see both.

    A session limits only what is in the working tier, a workflow only what is episodic and belongs to no user.
    Qualifiers keep nothing apart, as a run that names none sees both, unless one side requires them of a run.
    """
    if _kept_apart(one, other) or _kept_apart(other, one):
        return False
    if not _agree(one.user_id, other.user_id):
        return False
    if one_tier == other_tier == "working" and one.session_id != other.session_id:
        return False
    tenants_own = one.user_id is None and other.user_id is None
    if one_tier == other_tier == "episodic" and tenants_own and not _agree(one.workflow_id, other.workflow_id):
        return False
    return _intents_meet(one.intent_id, other.intent_id)


def covers(wide: Scope, wide_tier: Tier, narrow: Scope, narrow_tier: Tier) -> bool:
    """Whether every run that could see the narrow one could see the wide one too."""
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
    said = narrow.qualifiers | narrow.required
    if any(narrow.required.get(name) != value for name, value in wide.required.items()):
        return False
    return all(said.get(name) == value for name, value in wide.qualifiers.items())


def _kept_apart(one: Scope, other: Scope) -> bool:
    """Whether every run that says what the one requires disagrees with the other."""
    said = other.qualifiers | other.required
    return any(said.get(name, value) != value for name, value in one.required.items())


def _agree(one: str | None, other: str | None) -> bool:
    return one is None or other is None or one == other


def _intents_meet(one: str | None, other: str | None) -> bool:
    if one is None or other is None:
        return True
    return intent_under(one, other) or intent_under(other, one)
