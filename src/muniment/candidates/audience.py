"""Who will see a fact: what each filter of recall will ask, from the fact, its tier and the pack in force."""

from collections.abc import Mapping

from muniment.candidates.rules import lifetime
from muniment.model.audience import Audience
from muniment.model.candidate import Candidate
from muniment.model.explanation import FilterName
from muniment.model.fields import Tier
from muniment.pack import Pack


def audience_of(candidate: Candidate, tier: Tier, pack: Pack, required: Mapping[str, str] | None = None) -> Audience:
    """Return what recall asks before it shows the fact in that tier (REC-1): the same as `{visible}` in the database.

    `required` are the qualifiers that a resolved contradiction asks a run to name.
    """
    scope, label = candidate.scope, candidate.classification
    # A session counts in the working tier alone, a workflow in the episodic tier without a user.
    session = scope.session_id if tier == "working" else None
    workflow = scope.workflow_id if tier == "episodic" and scope.user_id is None else None
    roles = tuple(role for role in pack.roles if label in pack.labels_for(role))
    ends, fresh = lifetime(candidate.write_class, tier, pack), pack.memory_layer.recall_policy.freshness[tier]
    needs_consent = pack.is_sensitive(label) and candidate.write_class != "evidence_link"
    asks: dict[FilterName, bool] = {
        "user": scope.user_id is not None,
        "session": tier == "working",
        "session_end": session is not None and scope.user_id is not None,
        "workflow": workflow is not None,
        "intent": scope.intent_id is not None,
        "classification": True,
        "qualifiers": bool(scope.qualifiers or required),
        "consent": candidate.consent_id is not None or needs_consent,
        "expired": ends is not None,
        "freshness": fresh is not None,
        "validity": candidate.valid_from is not None or candidate.valid_until is not None,
    }
    return Audience(
        filters=tuple(name for name, asked in asks.items() if asked),
        user_id=scope.user_id,
        session_id=session,
        workflow_id=workflow,
        intent_id=scope.intent_id,
        classification=label,
        roles=roles if len(roles) < len(pack.roles) else None,
        qualifiers=scope.qualifiers,
        required=dict(required or {}),
        consent_id=candidate.consent_id,
        valid_from=candidate.valid_from,
        valid_until=candidate.valid_until,
        lifetime=ends.total_seconds() if ends is not None else None,
        fresh_for=fresh.total_seconds() if fresh is not None else None,
    )
