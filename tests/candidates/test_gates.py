"""The gates of the candidate stage as pure functions: what each lets through, in which order, and that errors deny."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.candidates import gates
from muniment.candidates.gates import Circumstances, GateResult, pass_gates
from muniment.model.candidate import Candidate
from muniment.model.consent import Consent
from muniment.pack import Pack, builtin_pack
from tests.language.candidates import draft

NOW = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
LABELS = ("PUBLIC", "INTERNAL", "CONFIDENTIAL", "PII", "RESTRICTED")


def consent(**fields: Any) -> Consent:
    """A live consent of customer:c1 for everything that is PII."""
    given: dict[str, Any] = {
        "consent_id": "cns_1",
        "tenant_id": "t",
        "seq": 1,
        "action": "grant",
        "subject": "customer:c1",
        "purpose": "support",
        "predicates_allowed": ("*",),
        "data_classifications_allowed": ("PII",),
        "basis": "opt_in",
        "captured_at": NOW,
        "valid_from": NOW - timedelta(days=1),
        "auditor_id": "petra",
        "root_id": "cns_1",
        **fields,
    }
    return Consent(**given)


def pack_with(ontology: dict[str, Any] | None = None, **layer: Any) -> Pack:
    return Pack.model_validate(
        {
            "pack_meta": {"id": "gates.test", "version": "1.0.0"},
            "ontology": {"predicates": ontology or {}},
            "memory_layer": layer,
        }
    )


def known(pack: Pack | None = None, **fields: Any) -> Circumstances:
    given: dict[str, Any] = {"kind": "statement", "decision_key": None, **fields}
    return Circumstances(pack or builtin_pack(), NOW, **given)


def outcome(candidate: Candidate, circumstances: Circumstances) -> tuple[str, str] | None:
    """The gate that refused it and its reason code, or None."""
    refused = pass_gates(candidate, circumstances).refused_by
    return None if refused is None else (refused[0], refused[1].reasons[0].code)


# --- each gate by itself


@pytest.mark.rule("CAN-4")
@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        ({}, None),
        ({"write_classes_allowed": ["statement"]}, ("allow_list", "class_not_allowed")),
        ({"classes": {"preference": {"predicates": ["likes"]}}}, ("allow_list", "predicate_not_allowed")),
        ({"classes": {"preference": {"predicates": ["likes", "prefers_channel"]}}}, None),
        ({"classes": {"statement": {"predicates": ["likes"]}}}, None),
        ({"classes": {"preference": {"evidence_required": 1}}}, ("evidence", "evidence_missing")),
        (
            {"classes": {"preference": {"classifications_allowed": ["PUBLIC"]}}},
            ("classification", "classification_not_allowed"),
        ),
        (
            {"promotion_thresholds": {"confidence_floor": 0.71}},
            ("confidence", "confidence_below_floor"),
        ),
    ],
)
def test_a_pack_decides_which_gate_stops_a_candidate(layer: dict[str, Any], expected: tuple[str, str] | None) -> None:
    assert outcome(draft(), known(pack_with(**layer))) == expected


@pytest.mark.rule("CAN-4")
@pytest.mark.parametrize(("given", "stopped"), [(0, True), (1, True), (2, False), (3, False)])
def test_the_evidence_gate_counts_the_references(given: int, stopped: bool) -> None:
    asking = known(pack_with(classes={"preference": {"evidence_required": 2}}))
    found = outcome(draft(evidence_refs=tuple(f"tool:t:{n}" for n in range(given))), asking)
    assert found == (("evidence", "evidence_missing") if stopped else None)


@pytest.mark.rule("CAN-4")
@pytest.mark.parametrize(("confidence", "stopped"), [(0.0, True), (0.29999, True), (0.30, False), (1.0, False)])
def test_the_confidence_floor_of_the_built_in_pack_is_exactly_0_30(confidence: float, stopped: bool) -> None:
    found = outcome(draft(confidence=confidence), known())
    assert found == (("confidence", "confidence_below_floor") if stopped else None)


@pytest.mark.rule("CAN-10")
@pytest.mark.parametrize(
    ("kind", "decision_key", "passes"),
    [
        ("decision", "refund:1", True),
        ("decision", None, False),
        ("statement", "refund:1", False),
        ("tool_result", "refund:1", False),
        ("effect", None, False),
    ],
)
def test_an_evidence_link_passes_any_allow_list_only_from_a_decision_with_its_key(
    kind: str, decision_key: str | None, passes: bool
) -> None:
    narrow = pack_with(write_classes_allowed=["preference"])
    link = draft(write_class="evidence_link", entity=None, predicate=None, value=None, text="evidence link")
    found = outcome(link, known(narrow, kind=kind, decision_key=decision_key))
    assert found == (None if passes else ("allow_list", "class_not_allowed"))


@pytest.mark.rule("CAN-10")
def test_no_other_class_passes_the_allow_list_for_being_a_decision() -> None:
    narrow = pack_with(write_classes_allowed=["statement"])
    for write_class in ("preference", "decision_outcome", "correction"):
        found = outcome(draft(write_class=write_class), known(narrow, kind="decision", decision_key="d:1"))
        assert found == ("allow_list", "class_not_allowed")


@pytest.mark.rule("CAN-4")
@given(carried=st.sampled_from(LABELS), least=st.sampled_from((None, *LABELS)))
def test_the_classification_only_rises_to_the_least_the_ontology_gives(carried: str, least: str | None) -> None:
    declared: dict[str, Any] = {"prefers_channel": {"label": least}} if least else {}
    pack = pack_with(ontology=declared)
    everything = consent(data_classifications_allowed=LABELS)
    passed = pass_gates(draft(classification=carried), known(pack, consents=(everything,)))
    assert passed.refused_by is None
    assert pack.rank(passed.candidate.classification) == max(pack.rank(carried), pack.rank(least or "PUBLIC"))


@pytest.mark.rule("CAN-4", "CON-2")
def test_a_label_that_the_ontology_raised_needs_its_consent() -> None:
    pack = pack_with(ontology={"prefers_channel": {"label": "PII"}})
    assert outcome(draft(), known(pack)) == ("consent", "consent_missing")
    passed = pass_gates(draft(), known(pack, consents=(consent(),)))
    assert passed.refused_by is None
    assert (passed.candidate.classification, passed.candidate.consent_id) == ("PII", "cns_1")


@pytest.mark.rule("CAN-4")
def test_a_label_the_pack_does_not_declare_is_refused() -> None:
    assert outcome(draft(classification="SECRET"), known()) == ("classification", "unknown_classification")


@pytest.mark.rule("CON-2", "CON-6")
@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"classification": "CONFIDENTIAL"}, ("pass", None)),
        ({}, ("pass", "cns_1")),
        ({"subject": None}, ("anonymous_subject", None)),
        ({"classification": "RESTRICTED"}, ("consent_missing", None)),
        ({"write_class": "evidence_link", "subject": None}, ("pass", None)),
        ({"write_class": "evidence_link", "classification": "RESTRICTED"}, ("pass", None)),
    ],
)
def test_the_consent_gate_asks_of_sensitive_labels_only_and_spares_evidence_links_only(
    fields: dict[str, Any], expected: tuple[str, str | None]
) -> None:
    candidate = draft(**{"classification": "PII", **fields})
    passage = pass_gates(candidate, known(consents=(consent(),)))
    refused = passage.refused_by
    result = "pass" if refused is None else refused[1].reasons[0].code
    assert (result, passage.candidate.consent_id) == expected


@pytest.mark.rule("CAN-7")
@pytest.mark.parametrize(("trust", "code"), [(0.0, "low_trust"), (0.39, "low_trust"), (0.40, "trusted")])
def test_low_trust_is_noted_and_goes_on(trust: float, code: str) -> None:
    passage = pass_gates(draft(trust=trust), known())
    assert passage.refused_by is None
    assert [passed.reason for passed in passage.candidate.gates if passed.gate == "trust"] == [code]


# --- the order, and errors


@pytest.mark.rule("CAN-4")
def test_the_first_refusal_decides_and_nothing_after_it_looks() -> None:
    strict = pack_with(
        write_classes_allowed=["preference"],
        classes={"preference": {"evidence_required": 1, "classifications_allowed": ["PII"]}},
    )
    wrong: dict[str, Any] = {"write_class": "statement", "classification": "INTERNAL", "confidence": 0.1}
    mended: list[tuple[str, dict[str, Any]]] = [
        ("allow_list", {"write_class": "preference"}),
        ("evidence", {"evidence_refs": ("tool:t:1",)}),
        ("classification", {"classification": "PII"}),
        ("consent", {"ledger": True}),
        ("confidence", {"confidence": 0.7}),
    ]
    names = [name for name, _ in gates.GATES]
    ledger: tuple[Consent, ...] = ()
    for gate, fix in mended:
        ledger = (consent(),) if wrong.pop("ledger", False) else ledger
        passage = pass_gates(draft(**wrong), known(strict, consents=ledger))
        assert passage.refused_by is not None
        assert passage.refused_by[0] == gate
        assert [passed.gate for passed in passage.candidate.gates] == names[: names.index(gate)]
        wrong |= fix
    passage = pass_gates(draft(**wrong), known(strict, consents=(consent(),)))
    assert passage.refused_by is None
    assert [passed.gate for passed in passage.candidate.gates] == names


@pytest.mark.rule("CAN-4")
def test_the_gates_are_in_the_order_of_the_specification() -> None:
    order = ["allow_list", "evidence", "redaction", "classification", "consent", "trust", "confidence", "rejection"]
    assert [name for name, _ in gates.GATES] == order


@pytest.mark.rule("ERR-5")
@pytest.mark.parametrize("place", range(len(gates.GATES)))
@pytest.mark.parametrize("error", [ValueError("cust_1 lives at 5 High Street"), KeyError("x"), RecursionError()])
def test_any_gate_that_raises_denies_and_shows_no_content(place: int, error: Exception) -> None:
    def broken(_candidate: Candidate, _known: Circumstances) -> GateResult:
        raise error

    tenant_state = list(gates.GATES)
    name = tenant_state[place][0]
    tenant_state[place] = (name, broken)
    passage = pass_gates(draft(), known(), tenant_state)
    assert passage.refused_by is not None
    gate, decision = passage.refused_by
    assert (gate, decision.reasons[0].code) == (name, "rule_failed")
    assert "High Street" not in decision.model_dump_json()


@pytest.mark.rule("ERR-5")
def test_a_rule_that_stumbles_over_odd_data_denies() -> None:
    odd = draft().model_copy(update={"confidence": None})
    assert outcome(odd, known()) == ("confidence", "rule_failed")


@pytest.mark.rule("CON-2")
@pytest.mark.parametrize(
    ("entity", "passed"), [("customer:c1", True), ("customer:c2", False), ("order:o1", True), (None, True)]
)
def test_one_customers_consent_says_nothing_about_another_customer(entity: str | None, passed: bool) -> None:
    passage = pass_gates(draft(entity=entity, classification="PII"), known(builtin_pack(), consents=(consent(),)))
    assert (passage.refused_by is None) == passed


@pytest.mark.rule("CAN-10")
@pytest.mark.parametrize(
    ("ref", "passed"), [("tool:crm.lookup:tc_212", True), ("phone +49 30 555 of Bob", False), ("ticket", False)]
)
def test_an_evidence_link_holds_references_and_nothing_else(ref: str, passed: bool) -> None:
    link = draft(write_class="evidence_link", value=None, evidence_refs=(ref,))
    assert (pass_gates(link, known(builtin_pack())).refused_by is None) == passed
