"""Every field of every call, given wrongly in every way: a clear error that names the field, and nothing written."""

import inspect
from typing import Any, get_type_hints
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muniment import Fabric, Refusal, Submission
from muniment.errors import InvalidInput
from muniment.model.ids import holds_card_number
from tests.interfaces.two_tenants import TwoTenants, complaint, listed, shown, two_tenants
from tests.interfaces.wrong import (
    ASKERS,
    CEIDS,
    CHOICES,
    DIRTY,
    JSON,
    MARK,
    NAMES,
    NOT_TEXT,
    PREDICATES,
    SHARES,
    SUBJECT,
    TEXTS,
    TIMES,
)
from tests.interfaces.wrong_calls import CALLS, CIRCUMSTANCES

__all__ = ["two_tenants"]  # a fixture

# They take the tenant alone, or nobody in particular.
ASKED_BY_NOBODY = {
    "open",
    "close",
    "consolidate",
    "consent.sweep",
    "keys.check",
    "packs.run_backfill",
    "reindex",
    "scan_pii",
    "seal",
    "webhooks.deliver",
    "notices.deliver",
}


# --- the table


def test_every_public_call_is_in_the_table() -> None:
    groups = {
        name: get_type_hints(one.fget)["return"]
        for name, one in inspect.getmembers(Fabric, lambda one: isinstance(one, property))
    }
    found = {name for name, _ in inspect.getmembers(Fabric, callable) if name[0] != "_"}
    found |= {
        f"{group}.{name}"
        for group, kind in groups.items()
        for name, _ in inspect.getmembers(kind, callable)
        if name[0] != "_"
    }
    assert found == set(CALLS) | ASKED_BY_NOBODY


@pytest.mark.rule("ERR-1", "CAP-2", "ISO-4")
@pytest.mark.parametrize(
    ("name", "argument"), [(name, argument) for name, call in CALLS.items() for argument in call.wrong]
)
def test_a_wrong_argument_gets_an_error_that_names_it_and_nothing_is_written(
    two_tenants: TwoTenants, name: str, argument: str
) -> None:
    two_tenants.renew()
    call, before = CALLS[name], two_tenants.events()
    known = (argument, "captures") if argument == "items" else (argument,)
    found: dict[str, str | None] = {}
    for value in call.wrong[argument]:
        arguments = call.good | {argument: value}
        said = complaint(lambda given=arguments: two_tenants.attempt(name, two_tenants.asker(call.who), given), *known)
        if said is not None:
            found[shown(value)] = said
            two_tenants.renew()
    assert not found, listed(found)
    assert two_tenants.events() == before


@pytest.mark.rule("ERR-1")
@pytest.mark.parametrize("name", CALLS)
def test_whoever_asks_must_be_a_principal_or_a_run(two_tenants: TwoTenants, name: str) -> None:
    call, before = CALLS[name], two_tenants.events()
    found = {
        shown(asker): said
        for asker in ASKERS
        if (said := complaint(lambda a=asker: two_tenants.attempt(name, a, call.good), "asker", call.first)) is not None
    }
    assert not found, listed(found)
    assert two_tenants.events() == before


@pytest.mark.rule("ERR-1", "CAP-2")
@pytest.mark.parametrize(("name", "missing"), [(name, one) for name, call in CALLS.items() for one in call.required])
def test_a_missing_field_is_named(two_tenants: TwoTenants, name: str, missing: str) -> None:
    arguments = {key: value for key, value in CALLS[name].good.items() if key != missing}
    with pytest.raises(InvalidInput, match="is required") as caught:
        two_tenants.attempt(name, two_tenants.asker(CALLS[name].who), arguments)
    assert caught.value.field == missing


@pytest.mark.rule("ERR-1")
@pytest.mark.parametrize("name", ["capture", "propose", "correct", "consent.grant", "queue.edit"])
@pytest.mark.parametrize("unknown", ["colour", "tenant_id", "source", "fact", "reason", "tier", "assignee", "priority"])
def test_an_unknown_field_is_named(two_tenants: TwoTenants, name: str, unknown: str) -> None:
    two_tenants.renew()
    before = two_tenants.events()
    with pytest.raises(InvalidInput, match="is not a known field") as caught:
        two_tenants.attempt(name, two_tenants.asker(CALLS[name].who), CALLS[name].good | {unknown: "x"})
    assert caught.value.field == unknown
    assert two_tenants.events() == before


@pytest.mark.rule("ERR-1")
@pytest.mark.parametrize("tenant", [*NAMES, "x" * 129, None])
def test_work_on_a_whole_tenant_takes_its_name(two_tenants: TwoTenants, tenant: Any) -> None:
    assert complaint(lambda: two_tenants.fabric.consolidate(tenant), "tenant_id") is None
    assert complaint(lambda: two_tenants.fabric.consent.sweep(tenant), "tenant_id") is None
    assert complaint(lambda: two_tenants.fabric.reindex(tenant), "tenant_id") is None
    assert complaint(lambda: two_tenants.fabric.seal(tenant), "tenant_id") is None
    assert complaint(lambda: two_tenants.fabric.scan_pii(tenant), "tenant_id") is None
    assert complaint(lambda: two_tenants.fabric.packs.run_backfill(tenant), "tenant_id") is None
    assert complaint(lambda: two_tenants.fabric.webhooks.deliver(tenant), "tenant_id") is None


@pytest.mark.rule("ERR-1", "COR-1")
@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({}, ("memory_id",)),
        ({"entity": SUBJECT, "value": 1}, ("memory_id",)),
        ({"predicate": "eats", "value": 1}, ("memory_id",)),
        ({"memory_id": "{memory}", "entity": SUBJECT, "predicate": "eats", "value": 1}, ("memory_id",)),
        ({"memory_id": "{memory}"}, ("value",)),
        ({"entity": SUBJECT, "predicate": "eats", "classification": "PUBLIC"}, ("value",)),
        ({"entity": SUBJECT, "predicate": "eats", "value": 1}, ("classification",)),
        ({"entity": "nobody", "predicate": "eats", "value": 1}, ("entity",)),
        ({"entity": SUBJECT, "predicate": "Eats", "value": 1}, ("predicate",)),
    ],
)
def test_a_correction_names_one_target_and_says_what_is_right(
    two_tenants: TwoTenants, given: dict[str, Any], names: tuple[str, ...]
) -> None:
    before = two_tenants.events()
    assert complaint(lambda: two_tenants.attempt("correct", two_tenants.people.author, given), *names) is None
    assert two_tenants.events() == before


@pytest.mark.rule("ERR-1", "CTR-5")
@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({"way": "coexist"}, "existing"),
        ({"way": "coexist", "existing": {"region": "de"}}, "incoming"),
        ({"way": "coexist", "existing": {"region": "de"}, "incoming": {"region": "de"}}, "incoming"),
        ({"way": "coexist", "existing": {"region": "de"}, "incoming": {"shop": "fr"}}, "incoming"),
        ({"way": "coexist", "existing": {"a": "1"}, "incoming": {"a": "2"}, "keep": "existing"}, "keep"),
        ({"way": "block", "keep": "existing"}, "keep"),
        ({"way": "block", "existing": {"region": "de"}}, "existing"),
        ({"way": "retract", "incoming": {"region": "de"}}, "incoming"),
    ],
)
def test_each_way_to_settle_a_contradiction_asks_for_its_own(
    two_tenants: TwoTenants, given: dict[str, Any], names: str
) -> None:
    before = two_tenants.events()
    arguments = {"contradiction_id": "{contradiction}", **given}
    assert (
        complaint(lambda: two_tenants.attempt("contradictions.resolve", two_tenants.people.reviewer, arguments), names)
        is None
    )
    assert two_tenants.events() == before


@pytest.mark.rule("ERR-1", "CAN-1", "CAN-10")
@pytest.mark.parametrize(
    ("fact", "names"),
    [
        ({"write_class": "preference", "predicate": "p", "value": 1}, ("entity",)),
        ({"write_class": "preference", "entity": SUBJECT, "value": 1}, ("predicate",)),
        ({"write_class": "decision_outcome", "entity": SUBJECT, "predicate": "p"}, ("value",)),
        ({"write_class": "statement"}, ("text",)),
        ({"write_class": "statement", "text": "x", "value": 1}, ("value",)),
        ({"write_class": "statement", "text": "x", "entity": SUBJECT}, ("entity",)),
        ({"write_class": "evidence_link", "text": "x"}, ("text",)),
        ({"write_class": "evidence_link", "value": 1}, ("value",)),
        ({"write_class": "correction"}, ("text", "entity")),
        ({"write_class": "correction", "text": "x", "predicate": "p"}, ("entity", "predicate")),
        ({"write_class": "correction", "entity": SUBJECT, "value": 1}, ("predicate",)),
    ],
)
def test_what_a_class_lacks_or_may_not_have_is_named(
    two_tenants: TwoTenants, fact: dict[str, Any], names: tuple[str, ...]
) -> None:
    before = two_tenants.events()
    said = complaint(
        lambda: two_tenants.fabric.propose(two_tenants.people.author, classification="INTERNAL", **fact), *names
    )
    assert said is None
    assert two_tenants.events() == before


# What an import item takes beside what a capture takes; an outcome names the field, as the others are imported.
OF_ITEMS: dict[str, list[Any]] = {
    **{name: wrong for name, wrong in CIRCUMSTANCES.items() if name not in ("run_id", "origin", "idempotency_key")},
    "id": [*NOT_TEXT, *DIRTY, "", "x" * 1025, None],
    "kind": CHOICES,
    "text": TEXTS,
    "write_class": [*CHOICES, "correction"],
    "entity": CEIDS,
    "predicate": PREDICATES,
    "value": JSON,
    "confidence": SHARES,
    "claimed_author": [*NOT_TEXT, *DIRTY, "", "x" * 1025],
    "claimed_at": TIMES,
    "metadata": JSON,
    "run_id": [*NAMES, "run_1"],
    "origin": [*NAMES, "crm"],
    "idempotency_key": [*NAMES, "once"],
    "colour": ["blue"],
}


@pytest.mark.rule("ERR-1", "IMP-1")
@pytest.mark.parametrize("argument", OF_ITEMS)
def test_a_wrong_field_of_an_import_item_is_named_in_its_outcome(two_tenants: TwoTenants, argument: str) -> None:
    before = two_tenants.events()
    wrong = [value for value in OF_ITEMS[argument] if value != "{an hour ahead}"]
    items = [{"id": f"{argument} {n}", "text": "It rains.", argument: value} for n, value in enumerate(wrong)]
    receipt = two_tenants.fabric.imports.run(two_tenants.people.admin, "mem0", items)
    fates = {shown(wrong[one.number]): (one.fate, (one.field or "").split(".")[0]) for one in receipt.items}
    assert len(receipt.items) == len(items)
    assert {value: fate for value, fate in fates.items() if fate != ("invalid", argument)} == {}
    assert not [one for one in receipt.items if MARK in (one.message or "")]
    assert two_tenants.events() == before


# --- any text at all

ANY_TEXT = st.text(
    st.one_of(st.characters(), st.sampled_from("\x00\x07\x1b\x7f\x85\u2028\ufffe\ud800\udfff 'a\"\\%{}\t\n")),
    max_size=40,
)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=8,
)
SHARED = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.rule("ERR-1", "CAN-1")
@SHARED
@given(text=ANY_TEXT)
def test_any_text_comes_back_as_it_was_or_is_refused_by_name(two_tenants: TwoTenants, text: str) -> None:
    try:
        got = two_tenants.fabric.propose(
            two_tenants.people.run(),
            write_class="statement",
            text=text,
            classification="INTERNAL",
            evidence_refs=["e:1"],
        )
    except InvalidInput as error:
        assert error.field == "text"
        assert text == "" or not text.isprintable()
    else:
        if isinstance(got, Refusal):  # It reads like an address or a number of somebody.
            assert (got.gate, got.reason) == ("consent", "anonymous_subject")
            return
        assert two_tenants.fabric.queue.get(two_tenants.people.reviewer, got.proposal_id).candidate.text == text


@pytest.mark.rule("ERR-1", "CAN-1")
@SHARED
@given(value=ANY_JSON)
def test_any_value_comes_back_as_it_was_or_is_refused_by_name(two_tenants: TwoTenants, value: Any) -> None:
    fact: dict[str, Any] = {"entity": f"order:{uuid4().hex}", "predicate": "holds", "value": value}
    try:
        got = two_tenants.fabric.propose(
            two_tenants.people.run(), write_class="preference", classification="INTERNAL", **fact
        )
    except InvalidInput as error:
        assert (error.field or "").split(".")[0] == "value"
    else:
        if isinstance(got, Refusal):
            # A number that passes for a card's is personal, and nobody's consent covers it.
            assert (got.gate, got.reason) == ("consent", "anonymous_subject")
        else:
            assert two_tenants.fabric.queue.get(two_tenants.people.reviewer, got.proposal_id).candidate.value == value


@pytest.mark.rule("ERR-1", "ISO-4")
@SHARED
@given(name=ANY_TEXT)
def test_any_name_is_taken_byte_for_byte_or_refused_by_name(two_tenants: TwoTenants, name: str) -> None:
    try:
        run = two_tenants.people.run(name)
    except InvalidInput as error:
        assert error.field == "user_id"
        return
    got = two_tenants.fabric.propose(run, write_class="statement", text="x", classification="INTERNAL")
    assert isinstance(got, Submission)
    assert two_tenants.fabric.queue.get(two_tenants.people.reviewer, got.proposal_id).candidate.scope.user_id == name
    assert two_tenants.fabric.queue.get(two_tenants.people.reviewer, got.proposal_id).candidate.scope.user_id == name


@pytest.mark.rule("ERA-1", "CAP-2")
def test_a_card_number_is_no_entity_id_and_a_uuid_is_one() -> None:
    for card in ("4111111111111111", "4111-1111-1111-1111", "cus_4111.1111.1111.1111", "378282246310005"):
        assert holds_card_number(card), card
    assert not holds_card_number("4111111111111112")
    for digit in range(10):
        # Within a word of hex digits even a valid number is chance.
        assert not holds_card_number(f"a4111111111111111{digit}")
        assert not holds_card_number("4111111111111111f")
    assert sum(holds_card_number(uuid4().hex) for _ in range(5000)) <= 2
