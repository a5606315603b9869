"""Stage 5, recall: for every filter something that passes and something that is hidden; order, sets, provenance."""

from datetime import timedelta
from typing import Any

import pytest

from muniment import Fabric, RunContext
from muniment.errors import InvalidInput, NotFound
from muniment.testing import FakeClock, People
from tests.pack_activation import acme, put_in_force, register
from tests.stories import CONSENT, remembered

SUBJECT = "customer:cust_1"
KEY: dict[str, Any] = {"entity": SUBJECT, "predicate": "prefers_channel"}
PII: dict[str, Any] = {"subject": SUBJECT, "classification": "PII"}
MICROSECOND = timedelta(microseconds=1)


def sees(fabric: Fabric, run: RunContext, memory_id: str) -> bool:
    """Whether the run recalls it; by a query, which is answered from the index, and by its id it must be the same."""
    answer = fabric.recall(run)
    listed = memory_id in {record.id for record in (*answer.records, *answer.low_confidence)}
    for _ in range(2):
        by_query = fabric.recall(run, f"anything about {SUBJECT}")
        assert listed == (memory_id in {record.id for record in (*by_query.records, *by_query.low_confidence)})
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
    put_in_force(
        fabric,
        people.tenant_id,
        acme("1.0.0", "roles: {agent: {}, clerk: {classifications_allowed: [PUBLIC, INTERNAL]}, chief: {}}"),
    )
    open_one = remembered(fabric, people, predicate="a", classification="INTERNAL")
    closed_one = remembered(fabric, people, predicate="b", classification="CONFIDENTIAL")
    clerk, chief = (people.run(role=role) for role in ("clerk", "chief"))
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
    pack = acme("0.9.0", "memory_layer: {recall_policy: {freshness: {semantic: 7d}}}")
    register(fabric, people.tenant_id, pack)
    put_in_force(fabric, people.tenant_id, acme("1.0.0", may_pin=f"[{pack.ref}]"))
    semantic = remembered(fabric, people)
    durable = remembered(fabric, people, tier="durable", predicate="other")
    strict, usual = people.run(pack=pack.ref), people.run()
    clock.advance(days=7)
    assert sees(fabric, strict, semantic)
    clock.now += MICROSECOND
    assert not sees(fabric, strict, semantic)
    assert sees(fabric, strict, durable)
    assert sees(fabric, usual, semantic)
    put_in_force(fabric, people.tenant_id, pack)
    assert not sees(fabric, usual, semantic)
    assert sees(fabric, usual, durable)


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
        ("renewed ahead of time, to another predicate, and not begun", True),
        ("renewed ahead of time, to another predicate, and begun", False),
        ("renewed ahead of time and then revoked", False),
        ("renewed ahead of time for another purpose and then revoked", False),
        ("revoked by a clock that lags behind", False),
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
        case "renewed ahead of time, to another predicate, and not begun":
            granted(supersedes=first, valid_from=ends, predicates_allowed=["phone_number"])
            clock.now = ends - MICROSECOND
        case "renewed ahead of time, to another predicate, and begun":
            granted(supersedes=first, valid_from=ends, predicates_allowed=["phone_number"])
            clock.now = ends
        case "renewed ahead of time and then revoked":
            fabric.consent.revoke(officer, granted(supersedes=first, valid_from=ends))
        case "renewed ahead of time for another purpose and then revoked":
            # However it is done, what is active must have a way to be ended at once.
            try:
                later = granted(supersedes=first, valid_from=ends, purpose="marketing")
            except InvalidInput:
                fabric.consent.revoke(officer, first)
            else:
                fabric.consent.revoke(officer, later)
        case "revoked by a clock that lags behind":
            clock.advance(hours=-3)
            fabric.consent.revoke(officer, first)
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
