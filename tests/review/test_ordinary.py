"""Which proposals may be approved together with others."""

from datetime import UTC, datetime
from typing import Any

import pytest

from muniment.model.candidate import Passed
from muniment.model.proposal import ContradictionCheck, Proposal
from muniment.pack import builtin_pack
from muniment.review.rules import REASON_WORDS, is_ordinary, reason_words
from tests.language.candidates import draft

NOW = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


def waiting(candidate: dict[str, Any] | None = None, **fields: Any) -> Proposal:
    """An ordinary proposal, but for what is given."""
    fact = draft(**(candidate or {}))
    given: dict[str, Any] = {
        "proposal_id": "mwp_1",
        "tenant_id": "t",
        "seq": 1,
        "candidate": fact,
        "write_class": fact.write_class,
        "tier_target": "semantic",
        "tier_derived": "semantic",
        "priority": 0.5,
        "confidence": 0.7,
        "trust": fact.trust,
        "risk": "low",
        "consent_check": "not_required",
        "contradiction_check": ContradictionCheck(),
        "auto_promote_eligible": False,
        "sensitive": False,
        "enqueued_at": NOW,
        "due_at": NOW,
        "status": "pending",
        "pack": "builtin@1",
        **fields,
    }
    return Proposal(**given)


def trusted(detail: str) -> Passed:
    """What the trust gate recorded: the figure, and what stands behind it."""
    return Passed(gate="trust", reason="trust", detail=detail)


@pytest.mark.rule("REV-13")
@pytest.mark.parametrize(
    ("proposal", "reasons"),
    [
        (waiting(), []),
        (waiting(assignee="boris"), []),
        (waiting(assignee="Boris"), []),
        (waiting(human_reasons=("approval_mode", "low_confidence", "durable")), []),
        (waiting(status="held"), ["held"]),
        (waiting(sensitive=True), ["sensitive"]),
        (waiting({"classification": "PII"}), ["sensitive"]),
        (waiting(risk="high"), ["high_risk"]),
        (waiting({"write_class": "correction"}), ["high_risk"]),
        (waiting({"trust": 0.39}), ["low_trust"]),
        (waiting({"trust": 0.4}), []),
        (waiting(human_reasons=("low_trust",)), ["low_trust"]),
        (waiting({"gates": (trusted("0.60, overrides_instructions"),)}), ["addresses_model"]),
        (waiting({"gates": (trusted("0.60, guard 0.80 of 0.80"),)}), ["guard"]),
        (waiting({"gates": (trusted("0.60, guard 0.79 of 0.80"),)}), []),
        (waiting({"gates": (trusted("0.60, unvouched_tool"),)}), []),
        (waiting(action="retract"), ["names_targets"]),
        (waiting(contradiction_check=ContradictionCheck(existing="pm_1", verdict="contradicts")), ["contradiction"]),
        (waiting(contradiction_check=ContradictionCheck(existing="pm_1", verdict="duplicate")), []),
        (waiting(human_reasons=("contradiction",)), ["contradiction"]),
        (waiting(opposites=("mwp_2",)), ["opposites"]),
        (waiting(assignee="clara"), ["assigned"]),
        (
            waiting({"trust": 0.1}, sensitive=True, risk="high", assignee="clara"),
            ["sensitive", "high_risk", "low_trust", "assigned"],
        ),
    ],
)
def test_only_what_is_ordinary_passes_and_every_reason_is_reported(proposal: Proposal, reasons: list[str]) -> None:
    decision = is_ordinary(proposal, "boris", builtin_pack())
    assert decision.passed == (not reasons)
    assert [one.code for one in decision.reasons if not decision.passed] == reasons
    if reasons:
        assert reason_words(decision) == ", ".join(REASON_WORDS[code] for code in reasons)


@pytest.mark.rule("REV-13")
def test_a_contradiction_that_was_found_since_counts() -> None:
    (reason,) = is_ordinary(waiting(), "boris", builtin_pack(), contradicts=True).reasons
    assert reason.code == "contradiction"
