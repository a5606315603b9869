"""Namespaces and predicates at the gate: what the pack does not declare is refused, new names are stored (PAC-7)."""

from typing import Any

import pytest

from muniment import Fabric, Refusal
from muniment.candidates.gates import Circumstances, allow_list
from muniment.errors import InvalidInput
from muniment.testing import FakeClock, People
from tests.language.candidates import draft
from tests.pack_activation import acme, put_in_force
from tests.packs.pack_texts import CRM_MAP
from tests.stories import CONSENT, promoted, proposed, refused

NAMESPACES = "identity: {namespaces: [customer, order], aliases: {cust: customer}}"
ONTOLOGY = """
ontology:
  predicates:
    preferred_channel: {type: string, renamed_from: [prefers_channel, contact_channel]}
    favourites: {cardinality: many, type: string}
    age: {type: number}
    account_manager: {type: ceid}
    born_on: {type: date, label: PII}
  dropped: [shoe_size]
"""
SAID: dict[str, Any] = {"kind": "statement", "text": "Ring twice.", "classification": "INTERNAL"}


def in_force(fabric: Fabric, people: People, text: str, version: str = "2.0.0") -> str:
    return put_in_force(fabric, people.tenant_id, acme(version, text, ontology_version=version))


def reason(fabric: Fabric, people: People, **fields: Any) -> tuple[str, str]:
    given = {"entity": "customer:c1", "predicate": "likes", "value": "tea", **fields}
    no = refused(fabric, people.run("cust_1"), **given)
    return no.gate, no.reason


@pytest.mark.rule("PAC-7", "CAN-5")
@pytest.mark.parametrize("whom", [{"entity": "person:c1"}, {"subject": "person:c1"}, {"entity": "customers:c1"}])
def test_a_fact_about_a_namespace_that_is_not_declared_is_refused(
    fabric: Fabric, people: People, whom: dict[str, str]
) -> None:
    in_force(fabric, people, NAMESPACES)
    assert reason(fabric, people, **whom) == ("allow_list", "unknown_namespace")


@pytest.mark.rule("PAC-7")
@pytest.mark.parametrize("entity", ["customer:c1", "order:7", "cust:c1", "user:cust_1"])
def test_declared_namespaces_aliases_and_the_namespace_of_users_are_known(
    fabric: Fabric, people: People, entity: str
) -> None:
    in_force(fabric, people, NAMESPACES)
    proposed(fabric, people.run("cust_1"), entity=entity, predicate="likes", value="tea")
    fabric.capture(people.run("cust_1"), **SAID)
    assert fabric.consolidate(people.tenant_id).refusals == ()


@pytest.mark.rule("PAC-7", "PAC-2")
def test_a_pack_that_lists_no_namespace_takes_any(fabric: Fabric, people: People) -> None:
    item = proposed(fabric, people.run("cust_1"), entity="whatever:c1", predicate="likes", value=["tea", 7])
    assert (item.candidate.entity, item.candidate.value) == ("whatever:c1", ["tea", 7])


@pytest.mark.rule("PAC-7", "CAP-1", "CAP-11")
def test_a_capture_about_an_unknown_namespace_is_kept_and_read_once_the_pack_declares_it(
    fabric: Fabric, people: People
) -> None:
    in_force(fabric, people, NAMESPACES)
    receipt = fabric.capture(people.run(None), subject="person:c1", **SAID)
    (no,) = fabric.consolidate(people.tenant_id).refusals
    assert (no.capture_id, no.gate, no.reason) == (receipt.capture_id, "allow_list", "unknown_namespace")
    kept = fabric.captures.get(people.auditor, receipt.capture_id)
    assert kept.state == "refused" and kept.capture is not None and kept.capture.content is not None
    in_force(fabric, people, "identity: {namespaces: [customer, person]}", "2.1.0")
    fabric.captures.rerun(people.reviewer, receipt.capture_id, "pack_changed")
    (proposal_id,) = fabric.consolidate(people.tenant_id).proposals
    assert fabric.queue.get(people.reviewer, proposal_id).candidate.subject == "person:c1"


@pytest.mark.rule("PAC-7", "CAN-10")
def test_an_evidence_link_passes_any_allow_list_but_not_into_an_unknown_namespace(
    fabric: Fabric, people: People
) -> None:
    in_force(fabric, people, NAMESPACES + "\nmemory_layer: {write_classes_allowed: [preference]}")
    link: dict[str, Any] = {
        "write_class": "evidence_link", "kind": "decision", "decision_key": "d1", "evidence_refs": ["order:7"],
        "classification": "INTERNAL",
    }  # fmt: skip
    assert not isinstance(fabric.propose(people.run(None), entity="order:7", **link), Refusal)
    no = fabric.propose(people.run(None), entity="parcel:7", **link)
    assert isinstance(no, Refusal) and (no.gate, no.reason) == ("allow_list", "unknown_namespace")


@pytest.mark.rule("PAC-7")
def test_a_consent_for_an_unknown_namespace_is_an_error_that_names_the_field(fabric: Fabric, people: People) -> None:
    in_force(fabric, people, NAMESPACES)
    with pytest.raises(InvalidInput, match="declares no namespace person") as error:
        fabric.consent.grant(people.officer, subject="person:c1", **CONSENT)
    assert error.value.field == "subject"


@pytest.mark.rule("PAC-7", "CAN-9")
@pytest.mark.parametrize("name", ["prefers_channel", "contact_channel", "preferred_channel"])
def test_a_renamed_predicate_is_stored_under_its_new_name(fabric: Fabric, people: People, name: str) -> None:
    in_force(fabric, people, ONTOLOGY + "memory_layer: {classes: {preference: {predicates: [preferred_channel]}}}")
    item = proposed(fabric, people.run("cust_1"), entity="customer:c1", predicate=name, value="email")
    assert item.candidate.predicate == "preferred_channel"
    assert item.candidate.text == "customer:c1 preferred channel: email"
    own = proposed(
        fabric, people.run("cust_1"), entity="customer:c2", predicate=name, value="email", text="Write to her."
    )
    assert own.candidate.text == "Write to her.", "what was said stays as it was said"


@pytest.mark.rule("PAC-7", "CTR-1", "REV-7", "COR-1")
def test_a_fact_under_the_new_name_meets_one_that_was_promoted_under_the_old_name(
    fabric: Fabric, people: People
) -> None:
    stands = promoted(fabric, people, "email", entity="customer:c1")
    in_force(fabric, people, ONTOLOGY)
    key: dict[str, Any] = {"entity": "customer:c1", "predicate": "preferred_channel"}
    other = proposed(fabric, people.run("cust_1"), value="phone", **key)
    assert (other.contradiction_check.verdict, other.contradiction_check.existing) == ("contradicts", stands)
    same = proposed(fabric, people.run("cust_1"), value="email", **key)
    assert (same.status, same.duplicate_check) == ("duplicate", stands)


@pytest.mark.rule("PAC-7", "REV-6")
def test_what_was_rejected_under_the_old_name_is_refused_under_the_new_one(fabric: Fabric, people: People) -> None:
    fact: dict[str, Any] = {"entity": "customer:c1", "predicate": "prefers_channel", "value": "by carrier pigeon"}
    item = proposed(fabric, people.run("cust_1"), **fact)
    fabric.queue.reject(people.reviewer, item.proposal_id, reason="wrong")
    in_force(fabric, people, ONTOLOGY)
    for name in ("prefers_channel", "preferred_channel"):
        again = refused(fabric, people.run("cust_1"), **fact | {"predicate": name})
        assert (again.gate, again.rejection) == ("rejection", item.proposal_id)


@pytest.mark.rule("PAC-7")
def test_a_dropped_predicate_is_refused_also_where_an_extractor_reads_its_name(fabric: Fabric, people: People) -> None:
    in_force(fabric, people, ONTOLOGY + CRM_MAP)
    assert reason(fabric, people, predicate="shoe_size", value=43) == ("allow_list", "predicate_dropped")
    items = [{"who": "customer:c1", "predicate": name, "said": "43"} for name in ("shoe_size", "contact_channel")]
    fabric.capture(
        people.run(None), kind="tool_result", origin="tool:crm", classification="INTERNAL", payload={"items": items}
    )
    done = fabric.consolidate(people.tenant_id)
    assert [(one.gate, one.reason) for one in done.refusals] == [("allow_list", "predicate_dropped")]
    (entered,) = [fabric.queue.get(people.reviewer, one).candidate for one in done.proposals]
    assert entered.predicate == "preferred_channel", "a name that the pack knows is nobody's own word"


TYPES: list[tuple[str, list[Any], list[Any]]] = [
    ("any", ["a", 1, True, {"a": 1}, [1]], []),
    ("string", ["", "a", "42"], [42, True, ["a"], {"a": 1}]),
    ("number", [42, 4.5, -1], ["42", True, [42], {"a": 1}]),
    ("boolean", [True, False], ["yes", 1, 0]),
    ("date", ["2024-02-29"], ["2023-02-29", "2024-02-29T10:00:00Z", " 2024-02-29", "tomorrow", 20240229]),
    ("ceid", ["customer:c1"], ["c1", "Customer:c1", "customer:", 7]),
    ("object", [{}, {"a": [1]}], ["{}", [{}], 1]),
]


@pytest.mark.rule("PAC-7")
@pytest.mark.parametrize(("wanted", "fits", "unfit"), TYPES)
def test_a_value_of_another_type_is_refused(clock: FakeClock, wanted: str, fits: list[Any], unfit: list[Any]) -> None:
    pack = acme("1.0.0", f"ontology: {{predicates: {{a: {{type: {wanted}}}}}}}")
    known = Circumstances(pack, clock.now, "statement", None)

    def found(value: Any) -> str:
        _, decision = allow_list(draft(predicate="a", value=value), known)
        return decision.reasons[0].code

    assert [found(value) for value in fits] == ["class_allowed"] * len(fits)
    assert [found(value) for value in unfit] == [f"not_a_{wanted}"] * len(unfit)


@pytest.mark.rule("PAC-7")
def test_a_value_that_is_an_entity_is_checked_and_resolved_like_one(fabric: Fabric, people: People) -> None:
    in_force(fabric, people, NAMESPACES + ONTOLOGY)
    fact: dict[str, Any] = {"entity": "customer:c1", "predicate": "account_manager"}
    item = proposed(fabric, people.run("cust_1"), value="cust:m1", **fact)
    assert item.candidate.value == "customer:m1"
    assert reason(fabric, people, **fact, value="person:m1") == ("allow_list", "unknown_namespace")


@pytest.mark.rule("PAC-7", "RED-3", "PAC-9")
def test_a_masked_value_has_no_type_any_more_and_passes_the_gates_again(fabric: Fabric, people: People) -> None:
    dated = "ontology: {predicates: {date_of_birth: {type: date}}}"
    in_force(fabric, people, dated)
    fabric.consent.grant(people.officer, subject="customer:c1", **CONSENT)
    fact: dict[str, Any] = {"entity": "customer:c1", "subject": "customer:c1", "predicate": "date_of_birth"}
    item = proposed(fabric, people.run("cust_1"), value="1980-05-04", text="Born 1980-05-04.", **fact)
    assert item.candidate.value == "[DATE_OF_BIRTH]"
    in_force(fabric, people, dated + "\nmemory_layer: {budgets: []}", "2.0.1")
    assert fabric.queue.assign(people.reviewer, item.proposal_id).status == "pending"
    assert reason(fabric, people, **fact, value="in May [DATE_OF_BIRTH]") == ("allow_list", "not_a_date")


@pytest.mark.rule("PAC-7", "CTR-1")
def test_a_second_value_contradicts_where_there_is_one_and_not_where_there_are_many(
    fabric: Fabric, people: People
) -> None:
    in_force(fabric, people, ONTOLOGY)
    verdicts: dict[str, str] = {}
    for predicate in ("preferred_channel", "favourites", "likes"):
        promoted(fabric, people, "tea", predicate=predicate)
        second = proposed(fabric, people.run("cust_1"), entity="customer:cust_1", predicate=predicate, value="coffee")
        verdicts[predicate] = second.contradiction_check.verdict
    assert verdicts == {"preferred_channel": "contradicts", "favourites": "no_conflict", "likes": "contradicts"}


@pytest.mark.rule("PAC-7", "PAC-9")
def test_an_open_proposal_is_withdrawn_or_entered_anew_when_the_ontology_changes(
    fabric: Fabric, people: People
) -> None:
    run = people.run("cust_1")
    dropped = proposed(fabric, run, entity="customer:c1", predicate="shoe_size", value=43)
    untyped = proposed(fabric, run, entity="customer:c1", predicate="age", value="about forty")
    renamed = proposed(fabric, run, entity="customer:c1", predicate="prefers_channel", value="email")
    unknown = proposed(fabric, run, entity="person:c1", predicate="likes", value="tea")
    in_force(fabric, people, NAMESPACES + ONTOLOGY)
    shown = [fabric.queue.approve(people.reviewer, one.proposal_id) for one in (dropped, untyped, renamed, unknown)]
    reasons = [one.verdicts[-1].reason if one.verdicts else None for one in shown]
    assert reasons == ["allow_list.predicate_dropped", "allow_list.not_a_number", None, "allow_list.unknown_namespace"]
    assert (shown[2].status, shown[2].candidate.predicate) == ("pending", "preferred_channel")


@pytest.mark.rule("PAC-7", "CAN-9")
def test_an_edit_passes_the_same_checks(fabric: Fabric, people: People) -> None:
    in_force(fabric, people, ONTOLOGY)
    item = proposed(fabric, people.run("cust_1"), entity="customer:c1", predicate="age", value=42)
    no = fabric.queue.edit(people.reviewer, item.proposal_id, value="forty-two")
    assert isinstance(no, Refusal) and (no.gate, no.reason) == ("allow_list", "not_a_number")
