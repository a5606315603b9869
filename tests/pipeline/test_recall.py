"""Stage 5, recall: every filter with something it lets through beside what it hides; order, sets, provenance."""

from datetime import timedelta
from typing import Any

import pytest

from muniment import Fabric, RunContext
from muniment.errors import NotFound
from muniment.model.context import Asker
from muniment.pack import load_pack
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.pipeline.stories import CONSENT, promoted, proposed, texts

SUBJECT = "customer:cust_1"
KEY: dict[str, Any] = {"entity": SUBJECT, "predicate": "prefers_channel"}
PII: dict[str, Any] = {"subject": SUBJECT, "classification": "PII"}
MICROSECOND = timedelta(microseconds=1)


def remembered(
    fabric: Fabric, people: People, value: Any = "email", *, by: Asker | None = None, **fields: Any
) -> str:
    """The id of a promoted memory; `tier` and `priority` are set by the reviewer."""
    placed = {name: fields.pop(name) for name in ("tier", "priority") if name in fields}
    given: dict[str, Any] = {"user_id": "cust_1", **KEY, "value": value, **fields}
    item = proposed(fabric, by or people.run(None), **given)
    if placed:
        fabric.queue.override(people.reviewer, item.proposal_id, **placed)
    done = fabric.queue.approve(people.reviewer, item.proposal_id)
    assert done.memory_id is not None, done.status
    return done.memory_id


def sees(fabric: Fabric, run: RunContext, memory_id: str) -> bool:
    """Whether the run recalls it; reading it by its id must say the same."""
    answer = fabric.recall(run)
    listed = memory_id in {record.id for record in (*answer.records, *answer.low_confidence)}
    try:
        fabric.get(run, memory_id)
    except NotFound:
        assert not listed
    else:
        assert listed
    return listed


# --- the filters of REC-1, one by one


@pytest.mark.rule("REC-1", "ISO-4")
@pytest.mark.parametrize(
    ("memory", "shown_to", "hidden_from"),
    [
        ({"user_id": "cust_1"}, [{}, {"session_id": "s"}], [{"user_id": "cust_2"}, {"user_id": None}]),
        ({"user_id": None}, [{}, {"user_id": "cust_2"}, {"user_id": None}], []),
        (
            {"tier": "working", "session_id": "s"},
            [{"session_id": "s"}],
            [{"session_id": "t"}, {}, {"session_id": "s", "user_id": "cust_2"}],
        ),
        (
            {"tier": "working", "session_id": "s", "user_id": None},
            [{"session_id": "s", "user_id": "cust_2"}, {"session_id": "s", "user_id": None}],
            [{"session_id": "S"}, {"user_id": None}],
        ),
        (
            {"tier": "episodic", "workflow_id": "w"},
            [{}, {"workflow_id": "w"}, {"workflow_id": "x"}],
            [{"user_id": "cust_2", "workflow_id": "w"}, {"user_id": None, "workflow_id": "w"}],
        ),
        (
            {"tier": "episodic", "workflow_id": "w", "user_id": None},
            [{"workflow_id": "w"}, {"workflow_id": "w", "user_id": None}],
            [{"workflow_id": "x"}, {}, {"user_id": None}],
        ),
        (
            {"tier": "semantic", "session_id": "s", "workflow_id": "w"},
            [{}, {"session_id": "t", "workflow_id": "x"}],
            [],
        ),
        (
            {"intent_id": "sales.offer"},
            [{"intent_id": "sales.offer"}],
            [{}, {"intent_id": "sales"}, {"intent_id": "sales.offer.make"}, {"intent_id": "sales.offers"}],
        ),
        (
            {"intent_id": "sales.*"},
            [{"intent_id": "sales.offer"}, {"intent_id": "sales.offer.make"}],
            [{}, {"intent_id": "sales"}, {"intent_id": "salesman.offer"}, {"intent_id": "x.sales.y"}],
        ),
        ({"intent_id": None}, [{}, {"intent_id": "anything.at.all"}], []),
        (
            {"qualifiers": {"region": "de"}},
            [{"qualifiers": {"region": "de"}}, {"qualifiers": {"region": "de", "plan": "pro"}}],
            [{"qualifiers": {"region": "fr"}}, {"qualifiers": {"region": "DE"}}],
        ),
        (
            {"qualifiers": {"region": "de", "plan": "pro"}},
            [{"qualifiers": {"region": "de", "plan": "pro"}}],
            [{"qualifiers": {"region": "de", "plan": "free"}}],
        ),
        (
            {"classification": "CONFIDENTIAL"},
            [{"classification_allowed": {"CONFIDENTIAL"}}, {}],
            [{"classification_allowed": {"PUBLIC", "INTERNAL", "PII"}}, {"classification_allowed": set()}],
        ),
    ],
)
def test_a_memory_is_shown_to_the_runs_its_scope_allows_and_to_no_other(
    fabric: Fabric,
    people: People,
    memory: dict[str, Any],
    shown_to: list[dict[str, Any]],
    hidden_from: list[dict[str, Any]],
) -> None:
    memory_id = remembered(fabric, people, **memory)
    for run in shown_to:
        assert sees(fabric, people.run(**run), memory_id), run
    for run in hidden_from:
        assert not sees(fabric, people.run(**run), memory_id), run


@pytest.mark.rule("REC-1", "ISO-1")
def test_another_tenants_run_sees_nothing(fabric: Fabric, people: People, others: People) -> None:
    memory_id = remembered(fabric, people, user_id=None)
    assert sees(fabric, people.run(), memory_id)
    assert not sees(fabric, others.run(), memory_id)


@pytest.mark.rule("REC-1")
def test_a_role_sees_only_the_labels_its_pack_gives_it(fabric: Fabric, people: People) -> None:
    pack = load_pack(
        'pack_meta: {id: acme, version: "1.0.0"}\n'
        "roles: {clerk: {classifications_allowed: [PUBLIC, INTERNAL]}, chief: {}}"
    )
    fabric.packs.register(people.admin, pack)
    open_one = remembered(fabric, people, predicate="a", classification="INTERNAL")
    closed_one = remembered(fabric, people, predicate="b", classification="CONFIDENTIAL")
    clerk, chief = (people.run(role=role, pack=pack.ref) for role in ("clerk", "chief"))
    assert [sees(fabric, clerk, memory_id) for memory_id in (open_one, closed_one)] == [True, False]
    assert [sees(fabric, chief, memory_id) for memory_id in (open_one, closed_one)] == [True, True]


@pytest.mark.rule("REC-1", "PRO-4", "TIR-2")
@pytest.mark.parametrize(
    ("tier", "term"), [("working", {"hours": 1}), ("episodic", {"days": 30}), ("semantic", {"days": 365})]
)
def test_a_memory_is_gone_at_the_very_moment_it_expires_with_no_job_run(
    fabric: Fabric, people: People, clock: FakeClock, tier: str, term: dict[str, float]
) -> None:
    run = people.run(session_id="s")
    mortal = remembered(fabric, people, tier=tier, session_id="s")
    lasting = remembered(fabric, people, tier="durable", predicate="other")
    clock.now += timedelta(**term) - MICROSECOND
    assert sees(fabric, run, mortal)
    clock.now += MICROSECOND
    assert not sees(fabric, run, mortal)
    assert sees(fabric, run, lasting)


@pytest.mark.rule("REC-1")
def test_a_packs_freshness_window_hides_what_is_older_in_its_tier_only(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    pack = load_pack(
        'pack_meta: {id: acme, version: "1.0.0"}\nmemory_layer: {recall_policy: {freshness: {semantic: 7d}}}'
    )
    fabric.packs.register(people.admin, pack)
    semantic = remembered(fabric, people)
    durable = remembered(fabric, people, tier="durable", predicate="other")
    strict, usual = people.run(pack=pack.ref), people.run()
    clock.advance(days=7)
    assert sees(fabric, strict, semantic)
    clock.now += MICROSECOND
    assert not sees(fabric, strict, semantic)
    assert sees(fabric, strict, durable)
    assert sees(fabric, usual, semantic)


@pytest.mark.rule("REC-1", "PRO-6")
def test_a_retracted_memory_is_gone_at_the_next_recall(fabric: Fabric, people: People) -> None:
    gone, staying = (remembered(fabric, people, predicate=name) for name in ("a", "b"))
    assert sees(fabric, people.run(), gone)
    fabric.retract(people.reviewer, gone, reason="wrong")
    assert not sees(fabric, people.run(), gone)
    assert sees(fabric, people.run(), staying)


# --- consent


@pytest.mark.rule("REC-1", "CON-3", "CON-2")
@pytest.mark.parametrize(
    ("change", "visible"),
    [
        ("nothing", True),
        ("revoked", False),
        ("expired", False),
        ("about to expire", True),
        ("renewed", True),
        ("renewed ahead of time", True),
        ("renewed after a gap", False),
        ("renewed for another purpose", False),
        ("narrowed to its predicate", True),
        ("narrowed to another predicate", False),
        ("narrowed to another label", False),
        ("renewed and then revoked", False),
        ("another one granted beside and then revoked", True),
    ],
)
def test_a_memory_is_seen_as_long_as_its_consent_lives_and_no_longer(
    fabric: Fabric, people: People, clock: FakeClock, change: str, visible: bool
) -> None:
    ends = clock.now + timedelta(days=10)
    officer = people.officer

    def granted(**fields: Any) -> str:
        return fabric.consent.grant(officer, subject=SUBJECT, **(CONSENT | fields)).consent_id

    first = granted(valid_until=ends)
    memory_id = remembered(fabric, people, **PII)
    control = remembered(fabric, people, predicate="other")
    assert sees(fabric, people.run(), memory_id)
    clock.advance(days=1)
    match change:
        case "revoked":
            fabric.consent.revoke(officer, first)
        case "expired":
            clock.now = ends
        case "about to expire":
            clock.now = ends - MICROSECOND
        case "renewed":
            granted(supersedes=first)
            clock.now = ends
        case "renewed ahead of time":
            granted(supersedes=first, valid_from=ends)
        case "renewed after a gap":
            clock.now = ends + MICROSECOND
            granted(supersedes=first)
        case "renewed for another purpose":
            granted(supersedes=first, purpose="marketing")
        case "narrowed to its predicate":
            granted(supersedes=first, predicates_allowed=["prefers_channel"])
        case "narrowed to another predicate":
            granted(supersedes=first, predicates_allowed=["phone_number"])
        case "narrowed to another label":
            granted(supersedes=first, data_classifications_allowed=["RESTRICTED"])
        case "renewed and then revoked":
            fabric.consent.revoke(officer, granted(supersedes=first))
        case "another one granted beside and then revoked":
            fabric.consent.revoke(officer, granted())
        case _:
            pass
    assert sees(fabric, people.run(), memory_id) is visible
    assert sees(fabric, people.run(), control), "what needs no consent stays"


@pytest.mark.rule("CON-3", "REC-3")
def test_what_consent_hides_is_absent_and_not_even_counted(fabric: Fabric, people: People) -> None:
    consent = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    for n in range(3):
        remembered(fabric, people, predicate=f"p{n}", **PII)
    remembered(fabric, people)
    assert len(fabric.recall(people.run(), limit=1).records) + fabric.recall(people.run(), limit=1).omitted == 4
    fabric.consent.revoke(people.officer, consent.consent_id)
    answer = fabric.recall(people.run(), limit=1)
    assert (len(answer.records), answer.low_confidence, answer.conflicts, answer.omitted) == (1, (), (), 0)


# --- order, limit, confidence


@pytest.mark.rule("REC-2")
def test_without_a_query_the_order_is_priority_then_newest_first(fabric: Fabric, people: People) -> None:
    ranks = [0.5, 0.9, 0.5, 0.1, 0.9]
    ids = [remembered(fabric, people, predicate=f"p{n}", priority=rank) for n, rank in enumerate(ranks)]
    answer = [record.id for record in fabric.recall(people.run()).records]
    assert answer == [ids[place] for place in (4, 1, 2, 0, 3)], "the clock stood still; the numbers decide"
    assert [record.id for record in fabric.recall(people.run()).records] == answer


@pytest.mark.rule("REC-2", "COR-2")
def test_a_correction_goes_before_all_others_on_its_key_and_before_nothing_else(
    server: TestServer, database: str, clock: FakeClock, people: People
) -> None:
    pack = load_pack(
        'pack_meta: {id: acme, version: "1.0.0"}\nontology: {predicates: {likes: {cardinality: many}}}'
    )
    with Fabric.open(server.url(database), pack=pack, clock=clock, master_keys=MASTER_KEYS) as fabric:
        best = remembered(fabric, people, "tea", predicate="likes", priority=0.8)
        below = remembered(fabric, people, "milk", predicate="likes", priority=0.3)
        higher = remembered(fabric, people, predicate="other", priority=0.95)
        between = remembered(fabric, people, predicate="another", priority=0.6)
        correction = remembered(
            fabric,
            people,
            "coffee",
            by=people.author,
            predicate="likes",
            priority=0.1,
            write_class="correction",
        )
        answer = [record.id for record in fabric.recall(people.run()).records]
    assert answer == [higher, correction, best, between, below]


@pytest.mark.rule("REC-3")
def test_below_the_packs_confidence_a_record_stands_apart(fabric: Fabric, people: People) -> None:
    at, above, below = (
        remembered(fabric, people, predicate=f"p{n}", confidence=confidence)
        for n, confidence in enumerate((0.50, 0.80, 0.49))
    )
    answer = fabric.recall(people.run())
    assert {record.id for record in answer.records} == {at, above}
    assert [record.id for record in answer.low_confidence] == [below]
    assert answer.omitted == 0


@pytest.mark.rule("REC-3")
def test_what_the_limit_cuts_is_counted(fabric: Fabric, people: People) -> None:
    for n in range(10):
        remembered(fabric, people, predicate=f"p{n}", priority=n / 10)
    for n in range(3):
        remembered(fabric, people, predicate=f"q{n}", confidence=0.4)
    usual = fabric.recall(people.run())
    assert (len(usual.records), len(usual.low_confidence), usual.omitted) == (8, 3, 2)
    few = fabric.recall(people.run(), limit=2)
    assert (len(few.records), len(few.low_confidence), few.omitted) == (2, 2, 9)
    assert few.records == usual.records[:2]
    assert len(fabric.recall(people.run(), limit=100).records) == 8, "the pack's max_recalls bounds it"


@pytest.mark.rule("REC-6")
def test_a_recall_can_be_narrowed_to_entities_tiers_and_classes(fabric: Fabric, people: People) -> None:
    first = remembered(fabric, people, predicate="a")
    second = remembered(fabric, people, predicate="b", entity="order:1", write_class="decision_outcome")
    third = remembered(fabric, people, predicate="c", tier="durable")
    run = people.run()

    def found(**narrowed: Any) -> set[str]:
        return {record.id for record in fabric.recall(run, **narrowed).records}

    assert found() == {first, second, third}
    assert found(entities=["order:1"]) == found(classes=["decision_outcome"]) == {second}
    assert found(tiers=["durable"]) == {third}
    assert found(tiers=["durable", "episodic"]) == {second, third}
    assert found(entities=["order:2"]) == found(entities=[]) == set()


# --- conflicts


@pytest.mark.rule("REC-4", "CTR-6")
def test_an_open_conflict_comes_as_one_set_apart_from_the_plain_records(
    fabric: Fabric, people: People
) -> None:
    sides = {promoted(fabric, people, value) for value in ("email", "phone")}
    plain = remembered(fabric, people, predicate="other")
    answer = fabric.recall(people.run())
    assert [record.id for record in answer.records] == [plain]
    (conflict,) = answer.conflicts
    assert {record.id for record in conflict.records} == sides
    (opened,) = fabric.contradictions.list(people.reviewer)
    assert conflict.contradiction_ids == (opened.contradiction_id,)
    fabric.retract(people.reviewer, opened.existing, reason="wrong")
    settled = fabric.recall(people.run())
    assert settled.conflicts == ()
    assert {record.id for record in settled.records} == {plain, opened.incoming}


@pytest.mark.rule("REC-4", "CTR-6")
def test_three_ways_make_one_set_that_no_limit_cuts(fabric: Fabric, people: People) -> None:
    sides = {promoted(fabric, people, value) for value in ("email", "phone", "fax")}
    answer = fabric.recall(people.run(), limit=1)
    (conflict,) = answer.conflicts
    assert {record.id for record in conflict.records} == sides
    assert len(conflict.contradiction_ids) == 3
    assert answer.omitted == 0
    others = {promoted(fabric, people, value, predicate="likes", confidence=0.4) for value in ("a", "b")}
    whole = fabric.recall(people.run())
    assert {frozenset(record.id for record in one.records) for one in whole.conflicts} == {
        frozenset(sides),
        frozenset(others),
    }
    assert whole.low_confidence == ()
    cut = fabric.recall(people.run(), limit=1)
    assert len(cut.conflicts) == 1
    assert cut.omitted == 5 - len(cut.conflicts[0].records)


@pytest.mark.rule("REC-4", "REC-1")
def test_where_a_run_may_see_one_side_only_that_side_is_a_plain_record(
    fabric: Fabric, people: People
) -> None:
    internal = promoted(fabric, people, "email")
    closed = promoted(fabric, people, "phone", classification="CONFIDENTIAL")
    answer = fabric.recall(people.run(classification_allowed={"INTERNAL"}))
    assert [record.id for record in answer.records] == [internal]
    assert answer.conflicts == ()
    assert closed not in answer.model_dump_json()


@pytest.mark.rule("REC-4", "CTR-6", "REC-6")
@pytest.mark.parametrize("narrowed", [{"tiers": ["semantic"]}, {"classes": ["preference"]}])
def test_narrowing_never_turns_one_side_of_a_conflict_into_a_plain_record(
    fabric: Fabric, people: People, narrowed: dict[str, Any]
) -> None:
    side = promoted(fabric, people, "email")
    promoted(fabric, people, "phone", write_class="decision_outcome")
    assert len(fabric.recall(people.run()).conflicts) == 1
    assert side not in {record.id for record in fabric.recall(people.run(), **narrowed).records}


@pytest.mark.rule("REC-4", "CTR-1", "REC-1")
def test_a_run_that_names_no_region_never_gets_two_regions_values_as_plain_records(
    fabric: Fabric, people: People
) -> None:
    for region, value in (("de", 14), ("fr", 30)):
        remembered(fabric, people, value, qualifiers={"region": region})
    assert [record.value for record in fabric.recall(people.run(qualifiers={"region": "de"})).records] == [14]
    plain = fabric.recall(people.run()).records
    assert len(plain) < 2, "they contradict each other for this run: a conflict set, or neither"


# --- provenance and the record of it


@pytest.mark.rule("REC-5", "TIR-1")
def test_each_record_carries_its_papers(fabric: Fabric, people: People, clock: FakeClock) -> None:
    consent = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    seen = clock.now - timedelta(days=3)
    item = proposed(
        fabric,
        people.run(),
        **KEY,
        **PII,
        value="email",
        evidence_refs=["tool:crm:1", "session:s"],
        origin="tool:crm.lookup",
        kind="tool_result",
        observed_at=seen,
    )
    captured_at = clock.now
    clock.advance(hours=1)
    done = fabric.queue.approve(people.reviewer, item.proposal_id)
    (record,) = fabric.recall(people.run()).records
    assert record.provenance.model_dump() == {
        "capture_id": item.candidate.capture_id,
        "candidate_id": item.candidate.candidate_id,
        "proposal_id": item.proposal_id,
        "verdict_id": done.verdicts[-1].verdict_id,
        "kind": "tool_result",
        "origin": "tool:crm.lookup",
        "source": "agent",
        "author": "bot",
        "approver": "boris",
        "consent_id": consent.consent_id,
        "pack": "muniment.builtin@1.0.0",
        "evidence_refs": ("tool:crm:1", "session:s"),
        "captured_at": captured_at,
        "observed_at": seen,
        "promoted_at": clock.now,
        "expires_at": clock.now + timedelta(days=365),
        "confidence": 0.7,
    }
    assert record.score == {"priority": record.priority} == {"priority": 0.6}
    assert (record.classification, record.tier, record.subject) == ("PII", "semantic", SUBJECT)


@pytest.mark.rule("REC-8", "EVT-2")
def test_every_recall_is_recorded_with_what_decided_it_and_no_content(
    fabric: Fabric, people: People, clock: FakeClock, server: TestServer, database: str
) -> None:
    shown = remembered(fabric, people, "aardvark", text="aardvark", evidence_refs=["tool:aardvark"])
    low = remembered(fabric, people, "aardvark", predicate="low", confidence=0.4)
    sides = {promoted(fabric, people, value, predicate="c") for value in ("aardvark", "badger")}
    remembered(fabric, people, "aardvark", predicate="cut", priority=0.0)
    run = people.run(session_id="s", intent_id="sales.offer", qualifiers={"region": "de"}, trace_id="t1")
    answer = fabric.recall(run, limit=1, tiers=["semantic"], entities=[SUBJECT])
    empty = fabric.recall(people.run("stranger"))
    with server.connect(database) as owner:
        rows = owner.execute(
            "SELECT recall_id, at, seq, agent_id, run_id, user_id, pack, request, result_ids, omitted, r::text"
            " FROM recalls r WHERE tenant_id = %s ORDER BY at, recall_id = %s",
            [people.tenant_id, empty.recall_id],
        ).fetchall()
    first, second = rows
    assert first[:7] == (
        answer.recall_id,
        clock.now,
        answer.seq,
        "bot",
        "run_1",
        "cust_1",
        "muniment.builtin@1.0.0",
    )
    request: Any = first[7]
    assert {name: request[name] for name in ("intent_id", "session_id", "qualifiers", "tiers", "entities", "limit")} == {
        "intent_id": "sales.offer",
        "session_id": "s",
        "qualifiers": {"region": "de"},
        "tiers": ["semantic"],
        "entities": [SUBJECT],
        "limit": 1,
    }
    assert set(first[8]) == {shown, low} | sides  # type: ignore[arg-type]
    assert first[9] == answer.omitted == 1
    assert (second[0], second[8]) == (empty.recall_id, [])
    assert "aardvark" not in str(rows)
    assert fabric.trail(people.auditor, shown).recalls == (answer.recall_id,)


@pytest.mark.rule("REC-1", "CAP-6")
def test_nothing_is_recalled_before_it_is_promoted(fabric: Fabric, people: People) -> None:
    item = proposed(fabric, people.run(), **KEY, value="email")
    assert texts(fabric, people.run()) == []
    fabric.queue.approve(people.reviewer, item.proposal_id)
    assert texts(fabric, people.run()) == ["customer:cust_1 prefers channel: email"]
