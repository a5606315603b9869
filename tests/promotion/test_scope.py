"""Scopes: two overlap if and only if some run could see both, checked against a slow and obvious count of runs."""

from itertools import product
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.candidates.rules import intent_under
from muniment.contradictions.scopes import overlap
from muniment.model.candidate import Scope
from muniment.model.fields import Tier
from muniment.recall.rules import intents_seen_by

TIERS: tuple[Tier, ...] = ("working", "episodic", "semantic", "durable")
RUN_INTENTS = (None, "m", "mm", "m.n", "m.nn", "m.n.o", "q", "q.r")
SCOPE_INTENTS = (None, "m", "mm", "m.n", "m.*", "m.n.*", "m.n.o", "q", "q.*")
QUALIFIERS = tuple(
    {name: value for name, value in (("region", region), ("plan", plan)) if value is not None}
    for region, plan in product((None, "de", "fr"), (None, "pro"))
)


class Run(NamedTuple):
    user: str | None
    session: str | None
    workflow: str | None
    intent: str | None
    qualifiers: dict[str, str]


RUNS = [
    Run(*one) for one in product((None, "anna", "ben"), (None, "s1", "s2"), (None, "w1", "w2"), RUN_INTENTS, QUALIFIERS)
]


def sees(run: Run, scope: Scope, tier: Tier) -> bool:
    """The words of REC-1, one condition after the other."""
    if scope.user_id is not None and run.user != scope.user_id:
        return False
    if tier == "working" and run.session != scope.session_id:
        return False
    if (
        tier == "episodic"
        and scope.user_id is None
        and scope.workflow_id is not None
        and run.workflow != scope.workflow_id
    ):
        return False
    if scope.intent_id is not None:
        if scope.intent_id.endswith(".*"):
            if run.intent is None or not run.intent.startswith(scope.intent_id.removesuffix("*")):
                return False
        elif run.intent != scope.intent_id:
            return False
    return all(run.qualifiers.get(name) in (None, value) for name, value in scope.qualifiers.items())


@st.composite
def scopes(draw: st.DrawFn) -> tuple[Scope, Tier]:
    tier = draw(st.sampled_from(TIERS))
    # The working tier needs a session; the database holds it to that.
    sessions = ("s1", "s2") if tier == "working" else (None, "s1", "s2")
    return Scope(
        user_id=draw(st.sampled_from((None, "anna", "ben"))),
        session_id=draw(st.sampled_from(sessions)),
        workflow_id=draw(st.sampled_from((None, "w1", "w2"))),
        intent_id=draw(st.sampled_from(SCOPE_INTENTS)),
        qualifiers=draw(st.sampled_from(QUALIFIERS)),
    ), tier


@pytest.mark.rule("CTR-1", "REV-7")
@settings(max_examples=100)
@given(one=scopes(), other=scopes())
def test_two_scopes_overlap_if_and_only_if_some_run_sees_both(
    one: tuple[Scope, Tier], other: tuple[Scope, Tier]
) -> None:
    together = any(sees(run, *one) and sees(run, *other) for run in RUNS)
    assert overlap(*one, *other) == together


@pytest.mark.rule("CTR-1", "REV-7")
@given(one=scopes(), other=scopes())
def test_overlap_is_symmetric(one: tuple[Scope, Tier], other: tuple[Scope, Tier]) -> None:
    assert overlap(*one, *other) == overlap(*other, *one)


@pytest.mark.rule("CTR-1")
@given(one=scopes())
def test_a_scope_overlaps_itself(one: tuple[Scope, Tier]) -> None:
    assert overlap(*one, *one)


@pytest.mark.rule("CTR-1")
@pytest.mark.parametrize(
    ("one", "one_tier", "other", "other_tier", "expected"),
    [
        ({"user_id": "anna"}, "semantic", {"user_id": "ben"}, "semantic", False),
        ({"user_id": "anna"}, "semantic", {"user_id": "ANNA"}, "semantic", False),
        ({"user_id": "anna"}, "semantic", {}, "semantic", True),
        ({"session_id": "s1"}, "working", {"session_id": "s2"}, "working", False),
        ({"session_id": "s1"}, "working", {"session_id": "s2"}, "semantic", True),
        ({"session_id": "s1"}, "semantic", {"session_id": "s2"}, "semantic", True),
        ({"workflow_id": "w1"}, "episodic", {"workflow_id": "w2"}, "episodic", False),
        ({"workflow_id": "w1"}, "episodic", {"workflow_id": "w2", "user_id": "anna"}, "episodic", True),
        ({"workflow_id": "w1"}, "semantic", {"workflow_id": "w2"}, "episodic", True),
        ({"intent_id": "support.*"}, "semantic", {"intent_id": "support.refund.*"}, "semantic", True),
        ({"intent_id": "support.*"}, "semantic", {"intent_id": "support"}, "semantic", False),
        ({"intent_id": "support.refund"}, "semantic", {"intent_id": "support.return"}, "semantic", False),
        ({"qualifiers": {"region": "de"}}, "semantic", {"qualifiers": {"plan": "pro"}}, "semantic", True),
    ],
)
def test_scopes_by_example(
    one: dict[str, str], one_tier: Tier, other: dict[str, str], other_tier: Tier, expected: bool
) -> None:
    left, right = Scope.model_validate(one), Scope.model_validate(other)
    assert overlap(left, one_tier, right, other_tier) is expected
    assert overlap(right, other_tier, left, one_tier) is expected


@pytest.mark.rule("REC-1")
@pytest.mark.parametrize(
    ("intent", "pattern", "expected"),
    [
        ("support.refund", "support.refund", True),
        ("support.refund", "support.*", True),
        ("support.refund.execute", "support.*", True),
        ("support.refund.execute", "support.refund.*", True),
        ("support.*", "support.*", True),
        ("support.refund.*", "support.*", True),
        ("support", "support.*", False),
        ("supportive.refund", "support.*", False),
        ("support.refund", "support", False),
        ("support.refund", "support.refund.execute", False),
        ("Support.refund", "support.*", False),
        (None, "support.*", False),
        (None, "support", False),
    ],
)
def test_an_intent_lies_under_a_pattern_word_by_word(intent: str | None, pattern: str, expected: bool) -> None:
    assert intent_under(intent, pattern) is expected


@pytest.mark.rule("REC-1")
def test_the_intents_a_run_sees_are_unscoped_its_own_and_every_one_above_it() -> None:
    assert intents_seen_by(None) == [""]
    assert intents_seen_by("support") == ["", "support"]
    assert set(intents_seen_by("support.refund.execute")) == {
        "",
        "support.refund.execute",
        "support.refund.*",
        "support.*",
    }


@pytest.mark.rule("REC-1")
@given(run=st.sampled_from(RUN_INTENTS), scope=st.sampled_from(SCOPE_INTENTS))
def test_recalls_list_of_intents_agrees_with_the_rule(run: str | None, scope: str | None) -> None:
    listed = (scope or "") in intents_seen_by(run)
    assert listed == (scope is None or intent_under(run, scope))
