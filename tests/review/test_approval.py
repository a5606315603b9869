"""Whether a person must see it: what policy may promote, and that nothing unjudged promotes itself."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.candidates.rules import uncalibrated_confidence
from muniment.errors import PackInvalid
from muniment.model.candidate import Candidate
from muniment.model.context import Principal
from muniment.pack import load_pack
from muniment.review.rules import is_strict, may_approve, reasons_for_a_person
from tests.language.candidates import draft
from tests.language.captures import capture

HEAD = 'pack_meta: {id: acme, version: "1.0.0"}\n'


def candidate(**fields: Any) -> Candidate:
    """A preference of an agent that policy might promote."""
    return draft(**{"raw_confidence": 0.9, "confidence": 0.9, "trust": 0.4, **fields})


@pytest.mark.rule("REV-3", "CAN-6")
@pytest.mark.parametrize(
    ("fields", "how", "reasons"),
    [
        ({}, {}, ()),
        ({"confidence": 0.89}, {}, ("low_confidence",)),
        ({"trust": 0.39}, {}, ("low_trust",)),
        ({"classification": "PII"}, {}, ("sensitive",)),
        ({"source": "operator"}, {}, ("operator_source",)),
        ({"write_class": "statement"}, {}, ("approval_mode",)),
        ({}, {"tier": "durable"}, ("durable",)),
        ({}, {"contradicts": True}, ("contradiction",)),
    ],
)
def test_policy_alone_promotes_only_when_nothing_at_all_speaks_for_a_person(
    fields: dict[str, Any], how: dict[str, Any], reasons: tuple[str, ...]
) -> None:
    pack = load_pack(HEAD + "memory_layer: {classes: {preference: {approval: auto, auto_promotion: {}}}}")
    given: dict[str, Any] = {"tier": "semantic", "contradicts": False, **how}
    assert reasons_for_a_person(candidate(**fields), capture(), **given, pack=pack) == reasons


@pytest.mark.rule("REV-3", "CAN-6")
@given(cap=st.integers(0, 100), threshold=st.integers(0, 100), raw=st.floats(0, 1))
def test_no_pack_lets_a_source_without_history_promote_itself(cap: int, threshold: int, raw: float) -> None:
    text = f"""memory_layer:
  promotion_thresholds: {{uncalibrated_cap: {cap / 100}}}
  classes: {{preference: {{approval: auto, auto_promotion: {{threshold: {threshold / 100}}}}}}}
"""
    try:
        pack = load_pack(HEAD + text)
    except PackInvalid:
        assert threshold <= cap
    else:
        assert uncalibrated_confidence(raw, pack) < threshold / 100


@pytest.mark.rule("REV-2", "REV-4")
@pytest.mark.parametrize("sensitive", [True, False])
@pytest.mark.parametrize("derived", ["working", "episodic", "semantic", "durable"])
@pytest.mark.parametrize("final", ["working", "episodic", "semantic", "durable"])
def test_four_eyes_are_asked_for_what_is_sensitive_or_durable_either_way(
    sensitive: bool, derived: Any, final: Any
) -> None:
    assert is_strict(sensitive=sensitive, derived=derived, final=final) == (sensitive or "durable" in (derived, final))


@pytest.mark.rule("REV-4")
@pytest.mark.parametrize(
    ("who", "kind", "strict", "code"),
    [
        ("boris", "operator", True, None),
        ("boris", "operator", False, None),
        ("olga", "operator", True, "self_approval"),
        ("olga", "operator", False, None),
        ("edda", "operator", True, "self_approval"),
        ("edda", "operator", False, None),
        ("Olga", "operator", True, "self_approval"),
        ("EDDA", "operator", True, "self_approval"),
        ("0lga", "operator", True, "self_approval"),
        ("olgar", "operator", True, None),
        ("bot", "agent", False, "person_required"),
        ("importer", "system", False, "person_required"),
    ],
)
def test_neither_author_nor_editor_nor_anything_but_a_person_approves(
    who: str, kind: Any, strict: bool, code: str | None
) -> None:
    principal = Principal(tenant_id="t", id=who, kind=kind, roles={"reviewer"})
    decision = may_approve(principal, candidate(author="olga"), ("edda",), strict=strict)
    assert (None if decision.passed else decision.reasons[0].code) == code
