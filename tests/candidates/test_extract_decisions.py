"""Decisions, effects and approvals: what was decided, what came of it, and by what it is borne out."""

from typing import Any

import pytest

from muniment.candidates.extractors.decisions import ApprovalExtractor, DecisionExtractor
from tests.language.captures import capture, extracted

DECISIONS = DecisionExtractor()
APPROVALS = ApprovalExtractor()


def decided(text: str | None = None, payload: Any = None, **fields: Any) -> list[tuple[Any, ...]]:
    found = extracted(DECISIONS, capture(text, payload, **{"kind": "decision", **fields}))
    return [
        (one.fact.entity, one.fact.predicate, one.fact.value, one.fact.text, one.fact.confidence, one.evidence_refs)
        for one in found
    ]


@pytest.mark.rule("CAN-2")
def test_a_decision_becomes_its_outcome_with_its_key_and_its_recall_as_evidence() -> None:
    payload = {"decision": "refund", "outcome": "approved", "reason": "late parcel"}
    assert decided(payload=payload, decision_key="RF-9", recall_id="rcl_1") == [
        (
            "customer:7",
            "decided.refund.rf_9",
            "approved",
            "Decided, refund: approved (because late parcel)",
            0.70,
            ("decision:RF-9", "recall:rcl_1"),
        )
    ]


@pytest.mark.rule("CAN-2")
def test_an_effect_is_surer_and_does_not_contradict_the_decision_before_it() -> None:
    ((_, predicate, value, text, confidence, _),) = decided(
        payload={"status": "sent", "amount": 3}, kind="effect", intent_id="support.refund.execute"
    )
    assert (predicate, value, text) == ("effect.support_refund_execute", "sent", "Done, support.refund.execute: sent")
    assert confidence == 0.80


@pytest.mark.rule("CAN-2")
def test_without_a_subject_the_decision_itself_is_the_entity_and_its_words_are_kept() -> None:
    assert decided("Refund granted.", subject=None, decision_key="RF-9") == [
        ("decision:RF-9", "decided.rf_9", "Refund granted.", "Refund granted.", 0.70, ("decision:RF-9",))
    ]
    assert decided(payload={"action": "refund"}, decision_key="RF-9")[0][1:4] == (
        "decided.rf_9",
        "refund",
        "Decided: refund",
    )


@pytest.mark.parametrize(
    ("payload", "fields"),
    [({"amount": 3}, {}), ([1, 2], {}), ("x", {}), ({"outcome": None}, {})],
)
def test_where_nothing_is_said_of_an_outcome_there_is_no_fact(payload: Any, fields: dict[str, Any]) -> None:
    assert decided(payload=payload, **fields) == []


def test_only_decisions_and_effects_of_somebody_are_read() -> None:
    assert DECISIONS.reads(capture("x", kind="effect"))
    assert not DECISIONS.reads(capture("x"))
    assert not DECISIONS.reads(capture("x", kind="decision", subject=None))
    assert not DECISIONS.reads(capture("x", kind="decision", subject=None, decision_key="no key of that form"))


def test_long_keys_make_predicates_that_fit_and_stay_apart() -> None:
    names = {decided("x", decision_key="k" * 200 + end)[0][1] for end in "ab"}
    assert len(names) == 2
    assert all(len(name) <= 128 for name in names)


@pytest.mark.rule("CAN-10")
def test_an_approval_becomes_references_alone() -> None:
    of = capture("Yes, for Jane.", {"secret": 1}, kind="approval", refs=["mail:1"], decision_key="RF-9", run_id="r1")
    (found,) = extracted(APPROVALS, of)
    fact = found.fact
    assert (fact.write_class, fact.entity, fact.predicate, fact.value, fact.text) == (
        "evidence_link",
        "customer:7",
        None,
        None,
        None,
    )
    assert found.evidence_refs == ("decision:RF-9", "run:r1")


@pytest.mark.rule("CAN-10")
def test_an_approval_of_nothing_gives_nothing() -> None:
    assert extracted(APPROVALS, capture("Yes.", kind="approval")) == []
    assert len(extracted(APPROVALS, capture("Yes.", kind="approval", refs=["mail:1"]))) == 1
    assert APPROVALS.reads(capture("x", kind="approval"))
    assert not APPROVALS.reads(capture("x", kind="decision"))
