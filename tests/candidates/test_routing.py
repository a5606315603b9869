"""The tier, priority, due time and lifetime of a candidate."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.candidates.rules import due_at, expires_at, priority_for, tier_for
from muniment.model.candidate import Candidate, Scope
from muniment.model.fields import Source, Tier, WriteClass
from muniment.pack import Pack, builtin_pack

NOW = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
CLASSES: tuple[WriteClass, ...] = (
    "evidence_link",
    "preference",
    "decision_outcome",
    "correction",
    "statement",
)


def candidate(source: Source = "agent", write_class: WriteClass = "statement", **fields: Any) -> Candidate:
    scope = Scope(intent_id=fields.pop("intent", None), session_id=fields.pop("session", None))
    return Candidate(
        candidate_id="mc_1",
        tenant_id="t",
        capture_id="cap_1",
        author="bot",
        source=source,
        write_class=write_class,
        text="a fact",
        raw_confidence=0.5,
        confidence=0.5,
        classification=fields.pop("label", "INTERNAL"),
        scope=scope,
        trust=0.5,
        extractor="direct@1",
        evidence_refs=tuple(f"tool:t:{n}" for n in range(fields.pop("evidence", 0))),
    )


def pack_with(**layer: Any) -> Pack:
    meta = {"id": "routing.test", "version": "1.0.0"}
    return Pack.model_validate({"pack_meta": meta, "memory_layer": layer})


@pytest.mark.rule("REV-2")
@pytest.mark.parametrize(
    ("source", "write_class", "fields", "tier"),
    [
        # the operator's word goes before everything else
        ("operator", "statement", {}, "durable"),
        ("operator", "preference", {}, "durable"),
        ("operator", "decision_outcome", {"intent": "support.refund"}, "durable"),
        ("operator", "statement", {"label": "PII", "session": "s"}, "durable"),
        # then a correction, whoever wrote it
        ("system", "correction", {}, "durable"),
        ("agent", "correction", {"intent": "support.x", "label": "PII", "session": "s"}, "durable"),
        # then by class
        ("agent", "preference", {}, "semantic"),
        ("agent", "preference", {"intent": "support.x", "label": "PII", "session": "s"}, "semantic"),
        ("agent", "decision_outcome", {}, "episodic"),
        ("system", "decision_outcome", {"label": "PII", "session": "s"}, "episodic"),
        # then by intent
        ("agent", "statement", {"intent": "support.refund"}, "episodic"),
        ("agent", "statement", {"intent": "support.refund.execute", "label": "PII", "session": "s"}, "episodic"),
        ("agent", "evidence_link", {"intent": "support.*"}, "episodic"),
        ("agent", "statement", {"intent": "support"}, "semantic"),
        ("agent", "statement", {"intent": "supportive.x"}, "semantic"),
        ("agent", "statement", {"intent": "sales.support.x"}, "semantic"),
        # then by label, where a session can find it again
        ("agent", "statement", {"label": "PII", "session": "s"}, "working"),
        ("system", "statement", {"label": "RESTRICTED", "session": "s", "intent": "sales.x"}, "working"),
        ("agent", "statement", {"label": "PII"}, "semantic"),
        ("agent", "statement", {"label": "CONFIDENTIAL", "session": "s"}, "semantic"),
        # else
        ("agent", "statement", {}, "semantic"),
        ("system", "evidence_link", {}, "semantic"),
    ],
)
def test_the_default_tier_is_that_of_the_first_rule_that_fits(
    source: Source, write_class: WriteClass, fields: dict[str, Any], tier: Tier
) -> None:
    assert tier_for(candidate(source, write_class, **fields), "statement", builtin_pack()) == tier


@pytest.mark.rule("REV-2")
def test_a_pack_routes_by_its_own_table_all_conditions_of_a_rule_together() -> None:
    pack = pack_with(
        memory_policy={
            "tier_routing": [
                {"when": {"source": "system", "write_class": "statement", "sensitive": True}, "tier": "durable"},
                {"when": {"sensitive": False}, "tier": "episodic"},
                {"tier": "semantic"},
            ]
        }
    )
    assert tier_for(candidate("system", "statement", label="PII"), "statement", pack) == "durable"
    assert tier_for(candidate("agent", "statement", label="PII"), "statement", pack) == "semantic"
    assert tier_for(candidate("system", "preference", label="PII"), "statement", pack) == "semantic"
    assert tier_for(candidate("operator", "correction"), "statement", pack) == "episodic"


@pytest.mark.rule("TIR-6", "REV-2")
def test_a_rule_can_look_at_the_kind_of_the_capture_and_the_working_tier_needs_a_session() -> None:
    rules = [{"when": {"kind": "tool_result"}, "tier": "working"}, {"tier": "semantic"}]
    pack = pack_with(memory_policy={"tier_routing": rules})
    assert tier_for(candidate(session="s"), "tool_result", pack) == "working"
    assert tier_for(candidate(session="s"), "statement", pack) == "semantic"
    assert tier_for(candidate(), "tool_result", pack) == "semantic"


@pytest.mark.rule("REV-2")
@pytest.mark.parametrize(
    ("source", "evidence", "priority"),
    [
        ("operator", 0, 0.9),
        ("operator", 1, 0.95),
        ("operator", 2, 1.0),
        ("operator", 64, 1.0),
        ("system", 0, 0.7),
        ("system", 3, 0.85),
        ("system", 6, 1.0),
        ("agent", 0, 0.5),
        ("agent", 1, 0.55),
        ("agent", 5, 0.75),
        ("agent", 6, 0.8),
        ("agent", 7, 0.8),
        ("agent", 64, 0.8),
    ],
)
def test_the_default_priority_is_by_source_and_evidence(source: Source, evidence: int, priority: float) -> None:
    assert priority_for(candidate(source, evidence=evidence), builtin_pack()) == priority


@pytest.mark.rule("REV-2")
@given(
    source=st.sampled_from(("operator", "system", "agent")),
    evidence=st.integers(0, 64),
    base=st.floats(0, 1),
    per_evidence=st.floats(0, 1),
    evidence_max=st.floats(0, 1),
)
def test_a_priority_never_leaves_0_to_1_and_evidence_never_lowers_it(
    source: Source, evidence: int, base: float, per_evidence: float, evidence_max: float
) -> None:
    weights = {
        "operator": base,
        "system": base,
        "agent": base,
        "per_evidence": per_evidence,
        "evidence_max": evidence_max,
    }
    pack = pack_with(memory_policy={"priority": weights})
    fewer = priority_for(candidate(source, evidence=evidence), pack)
    more = priority_for(candidate(source, evidence=evidence + 1), pack)
    assert 0 <= round(base, 6) <= fewer <= more <= 1


@pytest.mark.rule("PRO-4")
@pytest.mark.parametrize("write_class", CLASSES)
@pytest.mark.parametrize(
    ("tier", "term"),
    [
        ("working", timedelta(hours=1)),
        ("episodic", timedelta(days=30)),
        ("semantic", timedelta(days=365)),
        ("durable", None),
    ],
)
def test_a_memory_of_the_built_in_pack_lives_as_long_as_its_tier_says(
    write_class: WriteClass, tier: Tier, term: timedelta | None
) -> None:
    ends = expires_at(write_class, tier, NOW, builtin_pack())
    assert ends == (NOW + term if term is not None else None)


@pytest.mark.rule("PRO-4")
@pytest.mark.parametrize(
    ("tier", "retention", "term"),
    [
        ("working", "30m", timedelta(minutes=30)),
        ("working", "2h", timedelta(hours=1)),
        ("episodic", "7d", timedelta(days=7)),
        ("semantic", "400d", timedelta(days=365)),
        ("durable", "10d", timedelta(days=10)),
    ],
)
def test_a_classs_own_retention_counts_where_it_is_shorter(tier: Tier, retention: str, term: timedelta) -> None:
    pack = pack_with(classes={"preference": {"retention": retention}})
    assert expires_at("preference", tier, NOW, pack) == NOW + term
    assert expires_at("statement", tier, NOW, pack) == expires_at("statement", tier, NOW, builtin_pack())


@pytest.mark.rule("PRO-4")
def test_a_pack_can_give_the_durable_tier_a_term_and_take_it_from_another() -> None:
    pack = pack_with(memory_policy={"ttl": {"durable": "3650d", "semantic": None}})
    assert expires_at("statement", "durable", NOW, pack) == NOW + timedelta(days=3650)
    assert expires_at("statement", "semantic", NOW, pack) is None
    assert expires_at("statement", "episodic", NOW, pack) == NOW + timedelta(days=30)


@pytest.mark.rule("REV-2")
@pytest.mark.parametrize(
    ("write_class", "sensitive", "hours"),
    [
        ("correction", False, 4),
        ("correction", True, 4),
        ("preference", False, 72),
        ("preference", True, 24),
        ("statement", False, 72),
        ("statement", True, 24),
        ("evidence_link", False, 72),
        ("decision_outcome", True, 24),
    ],
)
def test_a_review_is_due_by_the_classs_term_or_sooner_where_it_is_sensitive(
    write_class: WriteClass, sensitive: bool, hours: int
) -> None:
    due = due_at(write_class, sensitive=sensitive, now=NOW, pack=builtin_pack())
    assert due == NOW + timedelta(hours=hours)


@pytest.mark.rule("REV-2")
def test_a_pack_sets_the_terms_of_review() -> None:
    pack = pack_with(classes={"statement": {"sla": "1h"}}, promotion_thresholds={"sensitive_sla": "2h"})
    assert due_at("statement", sensitive=True, now=NOW, pack=pack) == NOW + timedelta(hours=1)
    assert due_at("preference", sensitive=True, now=NOW, pack=pack) == NOW + timedelta(hours=2)
    assert due_at("preference", sensitive=False, now=NOW, pack=pack) == NOW + timedelta(hours=72)
