"""Field maps of the pack: facts out of a tool's JSON result, and packs whose maps cannot work."""

import json
import time
from typing import Any

import pytest

from muniment.candidates.extractors import Extractor, extractors_of
from muniment.errors import ExtractorFailed, PackInvalid
from muniment.pack import Pack, builtin_pack, load_pack
from tests.language.captures import capture, extracted

RESULT = {
    "call_id": "c-9",
    "customer": {"id": "cus_77", "channel": "email", "sure": 0.4, "tags": ["a", "b"]},
    "orders": [
        {"id": 1, "kind": "order_state", "state": "shipped", "total": 40},
        {"id": 2, "kind": "order_state", "state": "open", "total": 90},
        {"id": 3, "kind": "Order State", "state": "shipped", "total": 120},
        {"kind": "order_state", "state": "shipped", "total": 5},
    ],
}
TYPED = {
    "entity": "$.customer.id",
    "namespace": "customer",
    "predicate": "prefers_channel",
    "value": "$.customer.channel",
}
PREFERENCE = {**TYPED, "write_class": "preference"}


def pack_with(*fields: dict[str, Any], **match: Any) -> Pack:
    entry = {"name": "crm", "version": "1.2.0", "match": match, "fields": list(fields)}
    return load_pack(
        json.dumps({"pack_meta": {"id": "p", "version": "1.0.0"}, "memory_layer": {"extractors": [entry]}})
    )


def crm(*fields: dict[str, Any], **match: Any) -> Extractor:
    return extractors_of(pack_with(*fields, **match))[0]


def tool(payload: Any = RESULT, **fields: Any) -> Any:
    return capture(payload=payload, kind="tool_result", origin="tool:crm.lookup", **fields)


@pytest.mark.rule("CAN-2")
def test_a_map_gives_the_fact_that_its_paths_find() -> None:
    extractor = crm(
        PREFERENCE
        | {
            "text": "Customer {$.customer.id} prefers {$.customer.channel}.",
            "evidence": ["crm:{$.call_id}", "$.customer.tags[*]", "gone:{$.nothing}"],
            "confidence_path": "$.customer.sure",
            "classification": "PII",
        }
    )
    (found,) = extracted(extractor, tool())
    assert extractor.name == "crm@1.2.0"
    fact = found.fact
    assert (fact.write_class, fact.entity, fact.predicate, fact.value, fact.text, fact.confidence) == (
        "preference",
        "customer:cus_77",
        "prefers_channel",
        "email",
        "Customer cus_77 prefers email.",
        0.4,
    )
    assert found.evidence_refs == ("crm:c-9", "a", "b")
    assert (found.classification, found.user_correction) == ("PII", False)


@pytest.mark.rule("CAN-2")
def test_each_item_of_a_list_gives_a_fact_where_its_conditions_hold_and_the_rest_is_left_out() -> None:
    extractor = crm(
        {
            "each": "$.orders[*]",
            "when": [{"path": "$.state", "one_of": ["shipped", "lost"]}, {"path": "$.id", "exists": True}],
            "entity": "$$.customer.id",
            "namespace": "customer",
            "predicate": "$.kind",
            "value": "$.total",
            "write_class": "decision_outcome",
        }
    )
    # The second is open, the third's predicate is none, the fourth has no id.
    assert [(one.fact.predicate, one.fact.value) for one in extracted(extractor, tool())] == [("order_state", 40)]


@pytest.mark.rule("CAN-2")
@pytest.mark.parametrize(
    ("condition", "totals"),
    [
        ({"equals": 40}, [40]),
        ({"equals": True}, []),
        ({"at_least": 90}, [90, 120]),
        ({"at_most": 40}, [40, 5]),
        ({"at_least": 6, "at_most": 89.5}, [40]),
        ({"exists": False}, []),
        ({"one_of": [5, "40"]}, [5]),
    ],
)
def test_conditions_compare_as_json_does(condition: dict[str, Any], totals: list[int]) -> None:
    field = PREFERENCE | {"each": "$.orders[*]", "entity": "$$.customer.id", "value": "$.total", "predicate": "total"}
    extractor = crm(field | {"when": [{"path": "$.total", **condition}]})
    assert [one.fact.value for one in extracted(extractor, tool())] == totals


@pytest.mark.rule("CAN-2")
def test_without_an_entity_the_fact_is_about_the_subject_and_statements_and_links_have_their_own_shape() -> None:
    found = extracted(
        crm(
            {"predicate": "channel", "value": "$.customer.channel", "write_class": "preference"},
            {"write_class": "statement", "text": "The call was {$.call_id}."},
            {"write_class": "evidence_link", "evidence": ["$.call_id"]},
            {"write_class": "evidence_link", "evidence": ["$.nothing"]},
        ),
        tool(),
    )
    assert [(one.fact.write_class, one.fact.entity, one.fact.text) for one in found] == [
        ("preference", "customer:7", None),
        ("statement", None, "The call was c-9."),
        ("evidence_link", "customer:7", None),
    ]
    assert found[2].evidence_refs == ("c-9",)


@pytest.mark.rule("CAN-2")
@pytest.mark.parametrize(
    "wrong", [{"id": "no ceid!"}, {"id": {"a": 1}}, {"id": True}, {"id": None}, {}, {"channel": None}]
)
def test_what_is_missing_or_wrong_gives_no_fact_and_no_error(wrong: dict[str, Any]) -> None:
    customer = {"id": "cus_77", "channel": "email"} | wrong if wrong else {}
    assert extracted(crm(PREFERENCE), tool({"customer": customer})) == []


@pytest.mark.rule("CAN-3")
@pytest.mark.parametrize("payload", ["text", 7, True])
def test_a_result_that_is_no_object_or_list_is_a_failure(payload: Any) -> None:
    with pytest.raises(ExtractorFailed):
        extracted(crm(PREFERENCE), tool(payload))


def test_a_result_may_be_json_in_the_text_and_only_captures_that_match_are_read() -> None:
    extractor = crm(PREFERENCE, kind="tool_result", origin="tool:crm.lookup")
    written = capture(json.dumps(RESULT), kind="tool_result", origin="tool:crm.lookup")
    assert len(extracted(extractor, written)) == 1
    assert extractor.reads(written)
    assert extractor.reads(tool())
    assert not extractor.reads(capture("plain words", kind="tool_result", origin="tool:crm.lookup"))
    assert not extractor.reads(tool().model_copy(update={"origin": "tool:other"}))
    assert not extractor.reads(tool().model_copy(update={"kind": "message"}))
    with pytest.raises(ExtractorFailed):
        extracted(extractor, capture("{broken", kind="tool_result"))


def test_no_more_than_256_facts_come_from_one_capture_and_hostile_results_take_no_time() -> None:
    field = {"each": "$..x[*]", "entity": "$$.id", "predicate": "p", "value": "$", "write_class": "preference"}
    many = {"id": "a:1", "x": list(range(30_000))}
    deep: Any = 1
    for _ in range(30):
        deep = [deep, {"x": [deep]}] if isinstance(deep, int) else [deep]
    begun = time.process_time()
    assert len(extracted(crm(field), tool(many))) == 256
    extracted(crm(field), tool({"x": [deep] * 2000}))
    assert time.process_time() - begun < 3


@pytest.mark.rule("PAC-1")
@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"value": "$.a["}, "value"),
        ({"value": "$.a b"}, "value"),
        ({"value": "$..a..b"}, "value"),
        ({"value": "$[?search(@.a, 'x')]"}, "value"),
        ({"value": "$[?@[?@.b]]"}, "value"),
        ({"value": "$[?@.a == $.b]"}, "value"),
        ({"value": "$[*, *]"}, "value"),
        ({"value": "$$.a"}, "value"),
        ({"predicate": "$.a["}, "predicate"),
        ({"each": "$["}, "each"),
        ({"each": "$..a", "value": "$..b"}, "value"),
        ({"when": [{"path": "$.a"}]}, "when.0"),
        ({"when": [{"path": "$.a", "equals": [1]}]}, "when.0.equals"),
        ({"text": "{$.a[}"}, "text"),
        ({"text": "{name}"}, "text"),
        ({"evidence": ["x:{$.a"]}, "evidence.0"),
        ({"predicate": None}, ""),
        ({"entity": None}, "namespace"),
        ({"write_class": "statement", "text": "a"}, "value"),
        ({"write_class": "evidence_link", "evidence": ["$.a"]}, "value"),
        ({"classification": "UNKNOWN"}, "classification"),
    ],
)
def test_a_map_that_cannot_work_is_refused_with_its_line(change: dict[str, Any], place: str) -> None:
    with pytest.raises(PackInvalid) as refused:
        pack_with(PREFERENCE | change)
    whole = "memory_layer.extractors.0.fields.0"
    assert (f"{whole}.{place}" if place else whole) in {problem.path for problem in refused.value.problems}


@pytest.mark.rule("PAC-1")
def test_a_path_that_does_not_compile_is_reported_with_its_line() -> None:
    text = (
        "pack_meta: {id: p, version: 1.0.0}\nmemory_layer:\n  extractors:\n    - name: a\n      version: 1.0.0\n"
        "      fields:\n        - write_class: preference\n          predicate: p\n          value: $.a[\n"
    )
    with pytest.raises(PackInvalid) as refused:
        load_pack(text)
    assert [problem.line for problem in refused.value.problems] == [9]


@pytest.mark.rule("PAC-2")
def test_the_built_in_pack_turns_on_messages_decisions_and_approvals_and_a_pack_turns_them_off() -> None:
    pack = builtin_pack()
    assert [one.name for one in extractors_of(pack)] == ["messages@2", "decisions@1", "approvals@1"]
    assert extractors_of(pack) is extractors_of(pack)
    off = "{messages: false, said: false, decisions: false, approvals: false}"
    assert extractors_of(load_pack(f"pack_meta: {{id: p, version: 1.0.0}}\nmemory_layer: {{extraction: {off}}}")) == ()


@pytest.mark.rule("PAC-1")
@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("{model: {url: 'ftp://x', model: a}}", "model.url"),
        ("{model: {url: 'https://example.com/v1', model: a}}", "model.url"),
        ("{model: {model: ''}}", "model.model"),
        ("{model: {model: a, classifications_allowed: [NONE]}}", "model.classifications_allowed.0"),
        ("{plugins: [a, a]}", "plugins"),
        ("{mesages: true}", "mesages"),
    ],
)
def test_a_wrong_extraction_section_is_refused_without_telling_a_password(written: str, path: str) -> None:
    with pytest.raises(PackInvalid) as refused:
        load_pack(f"pack_meta: {{id: p, version: 1.0.0}}\nmemory_layer: {{extraction: {written}}}")
    assert [problem.path for problem in refused.value.problems] == [f"memory_layer.extraction.{path}"]
    assert "secret" not in str(refused.value)
