"""Who may do what: the table of roles, and default deny."""

from typing import Literal

from muniment.model.context import Principal, Role
from muniment.model.decision import Decision, passing, refusing

Right = Literal[
    "capture", "propose", "recall", "end_session", "correct", "read_queue", "read_captures", "rerun", "review",
    "retract", "consent", "read_consent", "erase", "read_erasures", "work", "read_work", "read_memory", "audit",
    "packs", "read_packs", "backtest", "metrics", "golden", "webhooks", "keys", "me", "me_by_code", "codes", "import",
    "export_subject", "export_answer", "name_subjects", "notices",
]  # fmt: skip

ALLOWED: dict[Right, frozenset[Role]] = {
    "capture": frozenset({"agent", "correction_writer"}),
    "propose": frozenset({"agent", "correction_writer"}),
    "recall": frozenset({"agent"}),
    "end_session": frozenset({"agent"}),
    "correct": frozenset({"correction_writer"}),
    "read_queue": frozenset({"reviewer", "auditor"}),
    "read_captures": frozenset({"reviewer", "auditor"}),
    "rerun": frozenset({"reviewer"}),
    "review": frozenset({"reviewer"}),
    "retract": frozenset({"reviewer"}),
    "consent": frozenset({"privacy_officer"}),
    "read_consent": frozenset({"privacy_officer", "auditor"}),
    "erase": frozenset({"privacy_officer"}),
    "read_erasures": frozenset({"privacy_officer", "auditor"}),
    "work": frozenset({"admin"}),
    "read_work": frozenset({"admin", "auditor", "reviewer"}),
    "read_memory": frozenset({"auditor", "reviewer"}),
    "audit": frozenset({"auditor"}),
    "packs": frozenset({"admin"}),
    "read_packs": frozenset({"admin", "auditor", "reviewer"}),
    "backtest": frozenset({"admin", "auditor", "reviewer"}),
    "metrics": frozenset({"admin", "auditor", "reviewer"}),
    "golden": frozenset({"admin"}),
    "webhooks": frozenset({"admin"}),
    "notices": frozenset({"reviewer", "correction_writer", "privacy_officer", "auditor", "admin"}),
    "keys": frozenset({"admin"}),
    "me": frozenset({"subject"}),
    "me_by_code": frozenset({"agent"}),
    "codes": frozenset({"admin"}),
    "name_subjects": frozenset({"reviewer", "privacy_officer", "admin"}),
    "import": frozenset({"admin"}),
    "export_subject": frozenset({"privacy_officer"}),
    "export_answer": frozenset({"auditor"}),
}
# No role makes an agent or a service a person.
PERSONS_ONLY: frozenset[Right] = frozenset(
    {
        *("correct", "rerun", "review", "retract", "consent", "erase", "work", "packs", "webhooks", "keys", "import"),
        *("notices", "export_subject", "export_answer"),
    }
)
# What is about the caller alone: the end user whom it is about, in person.
OWN: frozenset[Right] = frozenset({"me"})
# A code proves that a person acted, so it is never made for who carries their acts to us (SUB-5). What people are
# called is shown to who decides about what agents propose.
NOT_FOR_AGENTS: frozenset[Right] = frozenset({"codes", "name_subjects"})


def may(principal: Principal, verb: Right) -> Decision:
    """Whether the principal may do it, and which role let it."""
    if verb in PERSONS_ONLY and principal.kind != "operator":
        return refusing("person_required", "an operator")
    if verb in OWN and principal.kind != "end_user":
        return refusing("person_required", "the end user")
    if verb in NOT_FOR_AGENTS and principal.kind not in ("operator", "system"):
        return refusing("person_required", "an operator or a service")
    held = principal.roles & ALLOWED[verb]
    if not held:
        return refusing("role_missing", " or ".join(sorted(ALLOWED[verb])))
    return passing("role", min(held))
