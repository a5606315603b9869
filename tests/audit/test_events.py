"""The event log: every change has its number and its event, and no event, record or plain column holds content."""

from collections.abc import Callable
from typing import Any

import pytest

from muniment import Fabric, Refusal
from muniment.errors import AlreadyDecided, Conflict, IdempotencyConflict, InvalidInput, NotFound
from muniment.model.events import Event
from muniment.testing import People, TestServer
from tests.pack_activation import activate
from tests.stories import CONSENT, promoted, proposed, refused

SUBJECT = "customer:cust_1"
FACT: dict[str, Any] = {"entity": SUBJECT, "predicate": "likes", "value": "tea"}
MESSAGE: dict[str, Any] = {"kind": "message", "text": "hello", "classification": "INTERNAL"}

Step = tuple[str, Callable[[dict[str, Any]], Any], list[str]]


def whole_log(fabric: Fabric, people: People) -> list[Event]:
    return fabric.events(people.auditor, limit=1000)


def steps(fabric: Fabric, people: People) -> list[Step]:
    """One of every call that changes something, each with the events of its one transaction."""
    run, queue = people.run(), fabric.queue
    reviewer = people.reviewer
    pack = 'pack_meta: {id: acme, version: "1.0.0"}'
    return [
        ("register", lambda _: fabric.packs.register(people.admin, pack), ["pack_registered"]),
        ("activate", lambda _: activate(fabric, people.tenant_id, "acme@1.0.0"), ["pack_activated"]),
        (
            "retire",
            lambda _: fabric.packs.retire(people.admin, "muniment.builtin@1.3.0", reason="old"),
            ["pack_retired"],
        ),
        ("capture", lambda _: fabric.capture(run, **MESSAGE), ["captured"]),
        ("batch", lambda _: fabric.capture_many(run, [MESSAGE] * 50), ["captured"]),
        (
            "statement",
            lambda _: fabric.capture(run, **MESSAGE | {"kind": "statement"}),  # type: ignore[arg-type]
            ["captured"],
        ),
        ("consolidate", lambda _: fabric.consolidate(people.tenant_id), ["proposed"]),
        ("refused", lambda _: refused(fabric, run, **FACT, classification="PII"), ["captured", "refused"]),
        ("consent", lambda _: fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT), ["consent_granted"]),
        ("one", lambda _: proposed(fabric, run, **FACT), ["captured", "proposed"]),
        ("same", lambda _: proposed(fabric, run, **FACT), ["captured", "proposed"]),
        ("other", lambda _: proposed(fabric, run, **FACT | {"value": "milk"}), ["captured", "proposed"]),
        ("assign", lambda got: queue.assign(reviewer, got["one"].proposal_id), ["reviewed"]),
        ("release", lambda got: queue.release(reviewer, got["one"].proposal_id), ["reviewed"]),
        ("override", lambda got: queue.override(reviewer, got["one"].proposal_id, priority=0.9), ["overridden"]),
        ("approve", lambda got: queue.approve(reviewer, got["one"].proposal_id), ["reviewed", "promoted", "duplicate"]),
        (
            "edit",
            lambda got: queue.edit(reviewer, got["other"].proposal_id, value="cocoa"),
            ["proposed", "contradiction", "reviewed"],
        ),
        (
            "contradict",
            lambda got: queue.approve(reviewer, got["edit"].proposal_id),
            ["reviewed", "promoted"],
        ),
        ("again", lambda _: proposed(fabric, run, **FACT), ["captured", "proposed", "duplicate"]),
        (
            "correction",
            lambda _: proposed(
                fabric, people.author, **FACT | {"value": "water"}, write_class="correction", user_id="cust_1"
            ),
            ["captured", "proposed", "contradiction"],
        ),
        (
            "correct",
            lambda got: queue.approve(reviewer, got["correction"].proposal_id),
            ["reviewed", "promoted", "retracted", "contradiction_resolved", "correction"],
        ),
        ("retract", lambda got: fabric.retract(reviewer, got["correct"].memory_id, reason="wrong"), ["retracted"]),
        ("waiting", lambda _: proposed(fabric, run, **FACT | {"value": "beer"}), ["captured", "proposed"]),
        ("reject", lambda got: queue.reject(reviewer, got["waiting"].proposal_id, reason="no"), ["reviewed"]),
        ("revoke", lambda got: fabric.consent.revoke(people.officer, got["consent"].consent_id), ["consent_revoked"]),
    ]


@pytest.mark.rule("AUD-1")
def test_every_change_takes_the_next_number_and_writes_its_events_under_it(fabric: Fabric, people: People) -> None:
    fabric.capture(people.run(), **MESSAGE)
    got: dict[str, Any] = {}
    seen = whole_log(fabric, people)
    for name, act, expected in steps(fabric, people):
        got[name] = act(got)
        log = whole_log(fabric, people)
        new = log[len(seen) :]
        assert log[: len(seen)] == seen, "what was written stays as it was"
        assert [event.type.removeprefix("memory.") for event in new] == expected, name
        assert {event.seq for event in new} == {seen[-1].seq + 1}, f"{name} is one transaction, one number"
        assert [event.n for event in new] == list(range(len(new)))
        seen = log


@pytest.mark.rule("AUD-1")
def test_the_numbers_have_no_gaps_and_each_has_its_event(
    fabric: Fabric, people: People, server: TestServer, database: str
) -> None:
    got: dict[str, Any] = {}
    fabric.capture(people.run(), **MESSAGE)
    for name, act, _ in steps(fabric, people):
        got[name] = act(got)
    numbers = sorted({event.seq for event in whole_log(fabric, people)})
    assert numbers == list(range(1, len(numbers) + 1))
    with server.connect(database) as owner:
        ticks = owner.execute("SELECT seq FROM ticks WHERE tenant_id = %s ORDER BY seq", [people.tenant_id])
        assert [row[0] for row in ticks.fetchall()] == numbers


@pytest.mark.rule("AUD-1", "ERR-1")
def test_what_fails_takes_no_number_and_writes_no_event(fabric: Fabric, people: People) -> None:
    fabric.capture(people.run(), **MESSAGE, idempotency_key="k")
    item = proposed(fabric, people.run(), **FACT).proposal_id
    fabric.queue.reject(people.reviewer, item, reason="no")
    before = whole_log(fabric, people)
    failing: list[tuple[Callable[[], Any], type[Exception]]] = [
        (lambda: fabric.capture(people.run(), **MESSAGE | {"text": "x"}, idempotency_key="k"), IdempotencyConflict),  # type: ignore[arg-type]
        (lambda: fabric.queue.approve(people.reviewer, item), AlreadyDecided),
        (lambda: fabric.retract(people.reviewer, "pm_0", reason="wrong"), NotFound),
        (lambda: fabric.consent.revoke(people.officer, "cns_0"), NotFound),
        (lambda: activate(fabric, people.tenant_id, "acme@9.9.9"), NotFound),
        (lambda: activate(fabric, people.tenant_id, "muniment.builtin@1.3.0"), Conflict),
        (lambda: fabric.packs.retire(people.admin, "muniment.builtin@1.3.0", reason="old"), Conflict),
        (lambda: fabric.propose(people.run(), **FACT | {"entity": "?"}, classification="INTERNAL"), InvalidInput),  # type: ignore[arg-type]
    ]
    for call, error in failing:
        with pytest.raises(error):
            call()
    assert whole_log(fabric, people) == before
    fabric.capture(people.run(), **MESSAGE)
    assert whole_log(fabric, people)[-1].seq == before[-1].seq + 1


@pytest.mark.rule("AUD-1")
def test_reading_changes_nothing(fabric: Fabric, people: People) -> None:
    memory_id = promoted(fabric, people)
    before = whole_log(fabric, people)
    fabric.recall(people.run())
    fabric.get(people.run(), memory_id)
    fabric.queue.list(people.auditor, closed=True)
    fabric.contradictions.list(people.auditor)
    fabric.consent.list(people.auditor)
    fabric.packs.list(people.auditor)
    assert whole_log(fabric, people) == before


@pytest.mark.rule("AUD-1", "EVT-1")
@pytest.mark.parametrize("limit", [1, 2])
def test_a_log_read_page_by_page_loses_nothing_of_a_transaction(fabric: Fabric, people: People, limit: int) -> None:
    fabric.capture_many(people.run(), [MESSAGE | {"kind": "statement", "text": f"s{n}"} for n in range(9)])
    fabric.consolidate(people.tenant_id)
    for value in ("email", "phone", "fax"):
        promoted(fabric, people, value)
    whole = whole_log(fabric, people)
    pages: list[Event] = []
    while page := fabric.events(people.auditor, after=pages[-1].seq if pages else 0, limit=limit):
        pages.extend(page)
    assert pages == whole
    assert max(event.n for event in whole) >= limit, "some transaction must not have fitted, or nothing is proven"


@pytest.mark.rule("AUD-1", "ISO-1")
def test_numbers_are_the_tenants_own(fabric: Fabric, people: People, others: People) -> None:
    for _ in range(3):
        fabric.capture(people.run(), **MESSAGE)
    fabric.capture(others.run(), **MESSAGE)
    # The first number is that of the first pack: registered and put in force.
    assert [event.seq for event in whole_log(fabric, people)] == [1, 1, 2, 3, 4]
    assert [event.seq for event in whole_log(fabric, others)] == [1, 1, 2]
    assert {event.tenant_id for event in whole_log(fabric, others)} == {others.tenant_id}


@pytest.mark.rule("AUD-1")
def test_time_never_runs_backwards_in_the_log_whatever_the_clock_does(
    fabric: Fabric, people: People, clock: Any
) -> None:
    for hours in (0, -5, 3, -10, 1):
        clock.advance(hours=hours)
        fabric.capture(people.run(), **MESSAGE)
    times = [event.at for event in whole_log(fabric, people)]
    assert times == sorted(times)


def _told_everywhere(fabric: Fabric, people: People, canary: str) -> None:
    """Put the canary into every field that carries content, through every call that takes one."""
    run, queue, reviewer = people.run(), fabric.queue, people.reviewer
    consent = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT, evidence_refs=[f"mail:{canary}"])
    content: dict[str, Any] = {"text": f"says {canary}", "evidence_refs": [f"tool:{canary}"]}
    fabric.capture(
        run,
        kind="tool_result",
        classification="PII",
        subject=SUBJECT,
        payload={canary: [{"deep": canary}]},
        idempotency_key="k",
        **content,
    )
    fabric.capture(run, kind="statement", classification="INTERNAL", **content)
    fabric.capture(run, kind="statement", classification="RESTRICTED", **content)
    assert len(fabric.consolidate(people.tenant_id).refusals) == 1
    one = proposed(fabric, run, **FACT | {"value": canary}, subject=SUBJECT, classification="PII", **content)
    queue.assign(reviewer, one.proposal_id)
    queue.override(reviewer, one.proposal_id, priority=0.9, note=canary)
    edited = queue.edit(reviewer, one.proposal_id, value=[canary, 1], text=f"{canary}!", note=canary)
    assert not isinstance(edited, Refusal)
    done = queue.approve(people.second_reviewer, edited.proposal_id, note=canary)
    again = proposed(
        fabric, run, **FACT | {"value": {"other": canary}}, subject=SUBJECT, classification="PII", **content
    )
    queue.approve(people.second_reviewer, again.proposal_id, supersedes=done.memory_id, note=canary)
    (waiting,) = queue.list(reviewer)
    queue.reject(reviewer, waiting.proposal_id, reason=f"because of {canary}", note=canary)
    answer = fabric.recall(run)
    assert canary in answer.records[0].model_dump_json()
    fabric.consent.revoke(people.officer, consent.consent_id, evidence_refs=[f"letter:{canary}"])


@pytest.mark.rule("EVT-2", "ERA-1", "REC-8")
def test_content_of_any_field_is_in_no_event_no_recall_record_and_no_plain_column(
    fabric: Fabric, people: People, server: TestServer, database: str
) -> None:
    canary, plain = "aardvark4711", "badger4711"
    fabric.capture(people.run(), **MESSAGE, decision_key=plain)
    _told_everywhere(fabric, people, canary)
    log = whole_log(fabric, people)
    assert {"memory.refused", "memory.promoted", "memory.retracted", "memory.reviewed"} <= {e.type for e in log}
    assert canary not in "".join(event.model_dump_json() for event in log)
    found: dict[str, set[str]] = {canary: set(), plain: set()}
    with server.connect(database) as owner:
        tables = owner.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'muniment'::regnamespace AND relkind = 'r'"
        ).fetchall()
        for (table,) in tables:
            rows = owner.execute(f"SELECT t::text FROM {table} t WHERE t::text LIKE %s", [f"%{people.tenant_id}%"])
            result = "\n".join(str(row[0]) for row in rows.fetchall())
            for word, places in found.items():
                # Bytes are shown in hex: what was stored unsealed would stand there spelt out.
                if word in result or word.encode().hex() in result:
                    places.add(str(table))
    assert len(tables) > 30
    assert any(table.startswith("captures") for table in found[plain]), "the search must find what is plain"
    assert found[canary] == set()
