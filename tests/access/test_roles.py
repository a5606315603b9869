"""Who may do what: the table of roles in the specification, verb by verb, and default deny."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.access.roles import ALLOWED, PERSONS_ONLY, Right, may
from muniment.model.context import Principal, Role, RunContext
from muniment.model.fields import Source

ROLES: tuple[Role, ...] = get_args(Role)
KINDS: tuple[Source, ...] = get_args(Source)
VERBS: tuple[Right, ...] = get_args(Right)

# Section 2 of the specification, and its example in section 11, in which a correction_writer captures.
TABLE: dict[Right, set[Role]] = {
    "capture": {"agent", "correction_writer"},
    "propose": {"agent", "correction_writer"},
    "recall": {"agent"},
    "end_session": {"agent"},
    "correct": {"correction_writer"},
    "read_queue": {"reviewer", "auditor"},
    "read_captures": {"reviewer", "auditor"},
    "rerun": {"reviewer"},
    "review": {"reviewer"},
    "retract": {"reviewer"},
    "consent": {"privacy_officer"},
    "read_consent": {"privacy_officer", "auditor"},
    "read_memory": {"auditor", "reviewer"},
    "audit": {"auditor"},
    "packs": {"admin"},
    "read_packs": {"admin", "auditor", "reviewer"},
    "metrics": {"admin", "auditor", "reviewer"},
    "golden": {"admin"},
    "webhooks": {"admin"},
    "notices": {"reviewer", "correction_writer", "privacy_officer", "auditor", "admin"},
    "keys": {"admin"},
    "erase": {"privacy_officer"},
    "read_erasures": {"privacy_officer", "auditor"},
    "work": {"admin"},
    "backtest": {"admin", "auditor", "reviewer"},
    "read_work": {"admin", "auditor", "reviewer"},
    "me": {"subject"},
    "me_by_code": {"agent"},
    "codes": {"admin"},
    "name_subjects": {"reviewer", "privacy_officer", "admin"},
    "import": {"admin"},
    "export_subject": {"privacy_officer"},
    "export_answer": {"auditor"},
}
READING: set[Right] = {
    "read_queue",
    "read_captures",
    "read_consent",
    "read_memory",
    "audit",
    "read_packs",
    "metrics",
    "read_erasures",
    "read_work",
    "backtest",
}


def person(*roles: Role, kind: Source = "operator") -> Principal:
    return Principal(tenant_id="t", id="somebody", kind=kind, roles=frozenset(roles))


@pytest.mark.rule("ISO-5")
def test_every_verb_has_its_line_in_the_table() -> None:
    assert set(TABLE) == set(VERBS) == set(ALLOWED)


@pytest.mark.rule("ISO-5")
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("verb", VERBS)
def test_a_person_with_one_role_may_exactly_what_the_table_says(verb: Right, role: Role) -> None:
    decision = may(person(role, kind="end_user" if verb == "me" else "operator"), verb)
    assert decision.passed == (role in TABLE[verb])
    code = decision.reasons[0].code
    assert code == ("role" if decision.passed else "role_missing")


@pytest.mark.rule("ISO-5")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("verb", VERBS)
def test_without_a_role_nothing_is_allowed(verb: Right, kind: Source) -> None:
    assert not may(person(kind=kind), verb).passed


@pytest.mark.rule("ISO-5")
@given(roles=st.sets(st.sampled_from(ROLES)), verb=st.sampled_from(VERBS))
def test_several_roles_may_what_each_may_and_nothing_more(roles: set[Role], verb: Right) -> None:
    together = may(person(*roles), verb).passed
    assert together == any(may(person(role), verb).passed for role in roles)


@pytest.mark.rule("REV-4", "ISO-5")
@pytest.mark.parametrize("kind", ["agent", "system"])
@pytest.mark.parametrize(
    "verb", ["correct", "rerun", "review", "retract", "consent", "packs", "webhooks", "notices", "keys"]
)
def test_no_role_makes_an_agent_or_a_service_a_person(verb: Right, kind: Source) -> None:
    decision = may(person(*ROLES, kind=kind), verb)
    assert not decision.passed
    assert decision.reasons[0].code == "person_required"


@pytest.mark.rule("REV-4", "ISO-5")
def test_every_verb_that_decides_over_others_words_is_for_persons() -> None:
    assert {
        "correct",
        "rerun",
        "review",
        "retract",
        "consent",
        "erase",
        "packs",
        "webhooks",
        "notices",
        "work",
        "keys",
        "import",
        "export_subject",
        "export_answer",
    } == PERSONS_ONLY


@pytest.mark.rule("ISO-5")
def test_an_auditor_reads_everything_and_changes_nothing() -> None:
    allowed = {verb for verb in VERBS if may(person("auditor"), verb).passed}
    # What they want to be told is their own.
    assert allowed == READING | {"notices", "export_answer"}


@pytest.mark.rule("REV-4", "ISO-5")
@pytest.mark.parametrize("role", ROLES)
def test_a_run_is_an_agent_whatever_role_it_names(role: Role) -> None:
    run = RunContext(tenant_id="t", run_id="r", agent_id="bot", role=role, roles={role})
    assert (run.principal.id, run.principal.kind, run.principal.roles) == ("bot", "agent", {"agent"})
    allowed = {verb for verb in VERBS if may(run.principal, verb).passed}
    assert allowed == {"capture", "propose", "recall", "end_session", "me_by_code"}


@pytest.mark.rule("AUD-3")
def test_a_refusal_says_which_role_it_would_have_taken() -> None:
    assert may(person("admin"), "read_queue").reasons[0].detail == "auditor or reviewer"


@pytest.mark.rule("SUB-1", "SUB-5")
@pytest.mark.parametrize("kind", KINDS)
def test_only_an_end_user_is_a_subject_and_no_agent_makes_codes(kind: Source) -> None:
    assert may(person(*ROLES, kind=kind), "me").passed == (kind == "end_user")
    assert may(person(*ROLES, kind=kind), "codes").passed == (kind in ("operator", "system"))
