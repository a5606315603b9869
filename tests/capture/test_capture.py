"""Stage 1, capture: written once, sealed, all or none, the same key the same capture."""

from datetime import timedelta
from typing import Any

import pytest

from muniment import Fabric, Principal
from muniment.errors import IdempotencyConflict, InvalidInput, RoleMissing, TooLarge, UnknownLabel
from muniment.testing import FakeClock, People
from tests.conftest import Connect
from tests.pack_activation import acme, put_in_force, register
from tests.stories import proposed

KIB = 1024
MESSAGE: dict[str, Any] = {"kind": "message", "text": "hello", "classification": "INTERNAL"}


# --- what a capture takes and records


@pytest.mark.rule("CAP-2")
@pytest.mark.parametrize(
    ("fields", "field", "code"),
    [
        ({"kind": None}, "kind", "invalid_input"),
        ({"kind": "rumour"}, "kind", "invalid_input"),
        ({"classification": None}, "classification", "invalid_input"),
        ({"classification": "SECRET"}, "classification", "unknown_classification"),
        ({"classification": "internal"}, "classification", "unknown_classification"),
        ({"text": None}, "text", "invalid_input"),
        ({"text": ""}, "text", "invalid_input"),
        ({"colour": "red"}, "colour", "invalid_input"),
    ],
)
def test_what_a_capture_needs_is_named_when_it_is_missing_or_unknown_and_nothing_is_written(
    fabric: Fabric, people: People, rows: Any, fields: dict[str, Any], field: str, code: str
) -> None:
    given = {name: value for name, value in (MESSAGE | fields).items() if value is not None}
    with pytest.raises(InvalidInput) as caught:
        fabric.capture(people.run(), **given)
    assert (caught.value.field, caught.value.code) == (field, code)
    assert rows("captures") == []
    assert rows("ticks") == []


@pytest.mark.rule("CAP-2")
@pytest.mark.parametrize("missing", ["kind", "classification"])
def test_a_field_left_out_altogether_is_named(fabric: Fabric, people: People, missing: str) -> None:
    given = {name: value for name, value in MESSAGE.items() if name != missing}
    with pytest.raises(InvalidInput, match="is required") as caught:
        fabric.capture(people.run(), **given)
    assert caught.value.field == missing


@pytest.mark.rule("CAP-2")
def test_content_may_be_text_or_payload_or_both(fabric: Fabric, people: People, rows: Any) -> None:
    for content in ({"text": "t"}, {"payload": {"a": 1}}, {"text": "t", "payload": [1]}, {"payload": 0}):
        fabric.capture(people.run(), kind="tool_result", classification="INTERNAL", **content)  # type: ignore[typeddict-item]
    assert len(rows("captures")) == 4


@pytest.mark.rule("CAP-3")
def test_every_circumstance_is_recorded_with_author_pack_and_ontology(
    fabric: Fabric, people: People, clock: FakeClock, rows: Any
) -> None:
    given: dict[str, Any] = {
        "origin": "tool:crm.lookup",
        "subject": "customer:c1",
        "user_id": "c1",
        "session_id": "sess_1",
        "run_id": "run_9",
        "recall_id": "rcl_1",
        "intent_id": "support.refund.execute",
        "workflow_id": "wf_1",
        "decision_key": "refund:77",
        "qualifiers": {"region": "de"},
        "observed_at": clock.now - timedelta(days=3),
        "valid_from": clock.now - timedelta(days=900),
        "valid_until": clock.now + timedelta(days=900),
    }
    receipt = fabric.capture(people.service, **MESSAGE, **given)
    (row,) = rows("captures")
    assert {name: row[name] for name in given} == given
    assert (row["capture_id"], row["seq"], row["captured_at"]) == (
        receipt.capture_id,
        receipt.seq,
        receipt.captured_at,
    )
    assert (row["author"], row["source"], row["kind"]) == ("importer", "system", "message")
    assert (row["pack"], row["ontology_version"]) == ("muniment.builtin@1.3.0", "1.0.0")
    assert row["captured_at"] == clock.now


@pytest.mark.rule("CAP-3", "PAC-4")
def test_a_capture_is_under_the_pack_in_force_whatever_its_run_pins(fabric: Fabric, people: People, rows: Any) -> None:
    listed = acme("2.0.0", ontology_version='"3.1.0"', may_pin="[muniment.builtin@1.3.0, acme@1.0.0]")
    register(fabric, people.tenant_id, acme("1.0.0", ontology_version='"9.0.0"'))
    fabric.capture(people.run(), **MESSAGE)
    put_in_force(fabric, people.tenant_id, listed)
    for pack in (None, "acme@2.0.0", "acme@1.0.0", "muniment.builtin@1.3.0"):
        fabric.capture(people.run(pack=pack), **MESSAGE)
    assert [(row["pack"], row["ontology_version"]) for row in rows("captures")] == [
        ("muniment.builtin@1.3.0", "1.0.0"),
        *[("acme@2.0.0", "3.1.0")] * 4,
    ]


@pytest.mark.rule("CAP-3")
def test_a_run_fills_in_its_circumstances_and_a_field_given_goes_before(
    fabric: Fabric, people: People, rows: Any
) -> None:
    run = people.run(
        "c1",
        session_id="s",
        intent_id="sales.offer",
        workflow_id="w",
        decision_key="d",
        qualifiers={"region": "de"},
    )
    fabric.capture(run, **MESSAGE)
    fabric.capture(run, **MESSAGE, user_id=None, session_id="other", qualifiers={})
    columns = ("user_id", "session_id", "run_id", "intent_id", "workflow_id", "decision_key", "qualifiers")
    own, given = ([row[name] for name in columns] for row in rows("captures"))
    assert own == ["c1", "s", "run_1", "sales.offer", "w", "d", {"region": "de"}]
    assert given == [None, "other", "run_1", "sales.offer", "w", "d", None]


@pytest.mark.rule("CAP-3")
def test_what_a_capture_says_holds_for_a_time_that_has_a_length_or_an_open_end(
    fabric: Fabric, people: People, clock: FakeClock, rows: Any
) -> None:
    for until in (clock.now, clock.now - timedelta(microseconds=1)):
        with pytest.raises(InvalidInput, match="after valid_from") as caught:
            fabric.capture(people.run(), **MESSAGE, valid_from=clock.now, valid_until=until)
        assert caught.value.field == "valid_until"
        with pytest.raises(InvalidInput) as caught:
            fabric.capture_many(people.run(), [MESSAGE, {**MESSAGE, "valid_from": clock.now, "valid_until": until}])
        assert caught.value.field == "captures.1.valid_until"
    assert rows("captures") == []
    year = timedelta(days=365)
    for times in ({}, {"valid_from": clock.now + year}, {"valid_until": clock.now - year}):
        fabric.capture(people.run(), **MESSAGE, **times)  # type: ignore[arg-type]
    assert [(row["valid_from"], row["valid_until"]) for row in rows("captures")] == [
        (None, None),
        (clock.now + year, None),
        (None, clock.now - year),
    ]


@pytest.mark.rule("CAP-4")
def test_when_it_holds_belongs_to_the_content_that_an_idempotency_key_stands_for(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    given: dict[str, Any] = {**MESSAGE, "idempotency_key": "k"}
    first = fabric.capture(people.run(), **given, valid_from=clock.now)
    assert fabric.capture(people.run(), **given, valid_from=clock.now).capture_id == first.capture_id
    for other in ({}, {"valid_from": clock.now - timedelta(days=1)}, {"valid_until": clock.now}):
        with pytest.raises(IdempotencyConflict):
            fabric.capture(people.run(), **given, **other)


@pytest.mark.rule("CAP-3")
def test_observed_at_may_lie_five_minutes_ahead_and_no_more(
    fabric: Fabric, people: People, clock: FakeClock, rows: Any
) -> None:
    fabric.capture(people.run(), **MESSAGE, observed_at=clock.now + timedelta(minutes=5))
    with pytest.raises(InvalidInput) as caught:
        fabric.capture(people.run(), **MESSAGE, observed_at=clock.now + timedelta(minutes=5, microseconds=1))
    assert caught.value.field == "observed_at"
    fabric.capture(people.run(), **MESSAGE)
    assert [row["observed_at"] for row in rows("captures")] == [clock.now + timedelta(minutes=5), clock.now]


# --- whose word it is


@pytest.mark.rule("CAP-9")
def test_the_source_is_the_principals_own_kind(fabric: Fabric, people: People, rows: Any) -> None:
    for asker in (people.run(), people.service, people.author):
        fabric.capture(asker, **MESSAGE)
    found = [(row["author"], row["source"]) for row in rows("captures")]
    assert found == [("bot", "agent"), ("importer", "system"), ("olga", "operator")]


@pytest.mark.rule("CAP-9")
@pytest.mark.parametrize("claim", [{"source": "operator"}, {"author": "olga"}, {"fact": {}}, {"tenant_id": "x"}])
def test_nobody_can_say_otherwise(fabric: Fabric, people: People, rows: Any, claim: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as caught:
        fabric.capture(people.run(), **MESSAGE, **claim)
    assert caught.value.field == next(iter(claim))
    assert rows("captures") == []


@pytest.mark.rule("CAP-9", "ISO-5")
def test_who_has_no_role_for_it_cannot_capture(fabric: Fabric, people: People, rows: Any) -> None:
    nobody = Principal(tenant_id=people.tenant_id, id="nobody", kind="agent")
    for asker in (nobody, people.reviewer, people.officer, people.auditor, people.admin):
        with pytest.raises(RoleMissing):
            fabric.capture(asker, **MESSAGE)
    assert rows("captures") == []


# --- sealed


@pytest.mark.rule("CAP-5", "ERA-1")
def test_content_is_in_no_plain_column_of_a_capture(fabric: Fabric, people: People, rows: Any) -> None:
    canary = "aardvark-4711"
    fabric.capture(
        people.run(),
        kind="tool_result",
        classification="INTERNAL",
        subject="customer:c1",
        text=f"text {canary}",
        payload={canary: [canary]},
        evidence_refs=[f"tool:{canary}"],
        idempotency_key="k",
    )
    proposed(fabric, people.run(), entity="customer:c1", predicate="likes", value=canary, text=f"it is {canary}")
    for table in ("captures", "idempotency_keys", "subjects"):
        for row in rows(table):
            for name, value in row.items():
                plain = value if isinstance(value, bytes) else str(value).encode()
                assert canary.encode() not in plain, f"{table}.{name}"


@pytest.mark.rule("CAP-5", "ERA-1")
def test_it_is_sealed_under_the_subjects_key_else_the_users_else_the_tenants(
    fabric: Fabric, people: People, rows: Any
) -> None:
    fabric.capture(people.run("u1"), **MESSAGE, subject="customer:c1")
    fabric.capture(people.run("u1"), **MESSAGE)
    fabric.capture(people.run(None), **MESSAGE)
    assert [row["holder"] for row in rows("captures")] == ["customer:c1", "@u1", "*"]
    contents = {row["content"] for row in rows("captures")}
    assert len(contents) == 3, "the same words sealed three times must not look alike"


# --- batches


@pytest.mark.rule("CAP-7", "AUD-1", "CAP-10")
def test_thousands_in_one_call_are_one_transaction_in_their_order(fabric: Fabric, people: People, rows: Any) -> None:
    items = [MESSAGE | {"text": f"m{n}", "decision_key": f"d{n}"} for n in range(3000)]
    receipts = fabric.capture_many(people.run(), items)
    stored = sorted(rows("captures", "capture_id, seq, decision_key"), key=lambda row: row["capture_id"])
    assert [row["decision_key"] for row in stored] == [f"d{n}" for n in range(3000)]
    assert [receipt.capture_id for receipt in receipts] == [row["capture_id"] for row in stored]
    assert {row["seq"] for row in stored} == {receipts[0].seq}
    result = [one.data for one in fabric.events(people.auditor) if one.type == "memory.captured"]
    assert [one["count"] for one in result] == [500] * 6, "an event tells of at most so many rows (AUD-4)"
    ids = [receipt.capture_id for receipt in receipts]
    assert [(one["first"], one["last"]) for one in result] == [(ids[n], ids[n + 499]) for n in range(0, 3000, 500)]


@pytest.mark.rule("CAP-7", "ERR-1")
@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"classification": "SECRET"}, "captures.999.classification"),
        ({"kind": "rumour"}, "captures.999.kind"),
        ({"text": "x" * (32 * KIB + 1)}, "captures.999.text"),
        ({"source": "operator"}, "captures.999.source"),
    ],
)
def test_one_wrong_item_of_a_thousand_and_none_is_written(
    fabric: Fabric, people: People, rows: Any, wrong: dict[str, Any], field: str
) -> None:
    items = [MESSAGE] * 999 + [MESSAGE | wrong]
    with pytest.raises(InvalidInput) as caught:
        fabric.capture_many(people.run(), items)
    assert caught.value.field == field
    assert rows("captures") == []


@pytest.mark.rule("CAP-7")
def test_a_batch_that_fails_in_the_database_leaves_nothing(fabric: Fabric, people: People, rows: Any) -> None:
    fabric.capture(people.run(), **MESSAGE, idempotency_key="k")
    items = [MESSAGE | {"idempotency_key": f"new{n}"} for n in range(500)]
    with pytest.raises(IdempotencyConflict):
        fabric.capture_many(people.run(), [*items, MESSAGE | {"text": "other", "idempotency_key": "k"}])
    assert len(rows("captures")) == 1
    assert [row["key"] for row in rows("idempotency_keys")] == ["k"]


@pytest.mark.rule("CAP-8")
@pytest.mark.parametrize("count", [0, 10_001])
def test_a_batch_is_never_empty_nor_past_its_limit(fabric: Fabric, people: People, count: int) -> None:
    with pytest.raises(InvalidInput) as caught:
        fabric.capture_many(people.run(), [MESSAGE] * count)
    assert caught.value.field == "captures"
    assert isinstance(caught.value, TooLarge) == (count > 0)


# --- limits


@pytest.mark.rule("CAP-8")
@pytest.mark.parametrize(
    ("fits", "past", "field"),
    [
        ({"text": "x" * 32 * KIB}, {"text": "x" * (32 * KIB + 1)}, "text"),
        ({"text": "ä" * 16 * KIB}, {"text": "ä" * (16 * KIB) + "x"}, "text"),
        ({"text": "🜂" * 8 * KIB}, {"text": "🜂" * (8 * KIB) + "x"}, "text"),
        ({"payload": "x" * (256 * KIB - 2)}, {"payload": "x" * (256 * KIB - 1)}, "payload"),
        ({"payload": "ä" * (128 * KIB - 1)}, {"payload": "ä" * (128 * KIB)}, "payload"),
        (
            {"text": "x" * 32 * KIB, "payload": "x" * (256 * KIB - 2)},
            {"text": "x" * 32 * KIB, "payload": "x" * (256 * KIB)},
            "payload",
        ),
        (
            {"evidence_refs": [f"e:{n}" for n in range(64)]},
            {"evidence_refs": [f"e:{n}" for n in range(65)]},
            "evidence_refs",
        ),
    ],
    ids=["text", "two bytes each", "four bytes each", "payload", "payload of two bytes", "both", "evidence"],
)
def test_limits_count_bytes_and_what_is_exactly_at_one_fits(
    fabric: Fabric, people: People, rows: Any, fits: dict[str, Any], past: dict[str, Any], field: str
) -> None:
    fabric.capture(people.run(), **MESSAGE | fits)  # type: ignore[arg-type]
    with pytest.raises(TooLarge) as caught:
        fabric.capture(people.run(), **MESSAGE | past)  # type: ignore[arg-type]
    assert caught.value.field == field
    assert len(rows("captures")) == 1


@pytest.mark.rule("CAP-8", "CAN-9")
@pytest.mark.parametrize(
    ("past", "field"), [({"text": "ä" * (16 * KIB) + "x"}, "text"), ({"value": "x" * 256 * KIB}, "value")]
)
def test_a_direct_proposal_has_the_same_limits(
    fabric: Fabric, people: People, rows: Any, past: dict[str, Any], field: str
) -> None:
    fact: dict[str, Any] = {"entity": "customer:c1", "predicate": "likes", "value": "tea", **past}
    with pytest.raises(TooLarge) as caught:
        fabric.propose(people.run(), classification="INTERNAL", write_class="preference", **fact)
    assert caught.value.field == field
    assert rows("captures") == []


@pytest.mark.rule("CAP-6")
def test_what_is_only_captured_is_never_recalled(fabric: Fabric, people: People, as_role: Connect) -> None:
    fabric.capture(people.run(), kind="statement", text="the sky is green", classification="PUBLIC")
    fabric.consolidate(people.tenant_id)
    answer = fabric.recall(people.run())
    assert (answer.records, answer.low_confidence, answer.conflicts) == ((), (), ())
    seen = as_role("recall").execute("SELECT count(*) FROM memory_scope").fetchone()
    assert seen == (0,)


@pytest.mark.rule("CAP-2")
def test_unknown_labels_are_reported_with_those_the_pack_has(fabric: Fabric, people: People) -> None:
    with pytest.raises(UnknownLabel, match="PUBLIC, INTERNAL, CONFIDENTIAL, PII, RESTRICTED"):
        fabric.capture(people.run(), **MESSAGE | {"classification": "SECRET"})  # type: ignore[arg-type]
