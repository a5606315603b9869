"""The tenant's memories as a person looks through them: pages, words, moments, changes, the graph; and the log."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from muniment import Fabric
from muniment.errors import HistoryCollected, InvalidInput, NotFound, RoleMissing
from muniment.model.browse import MemorySummary
from muniment.testing import FakeClock, People
from tests.stories import CONSENT, KEY, promoted, proposed, remembered

SUBJECT = "customer:cust_1"


def _ids(found: list[MemorySummary]) -> list[str]:
    return [one.memory_id for one in found]


def test_memories_come_newest_first_in_pages_and_narrowed(fabric: Fabric, people: People) -> None:
    made = [remembered(fabric, people, n, predicate=f"p{n}", user_id=f"u{n % 2}") for n in range(5)]
    durable = remembered(fabric, people, "x", entity="shop:ulm", predicate="p", user_id=None, tier="durable")
    about = remembered(
        fabric, people, None, write_class="statement", entity=None, predicate=None, text="It rains.", subject="shop:ulm"
    )
    newest = [about, durable, *reversed(made)]
    assert _ids(fabric.memories.list(people.reviewer)) == newest
    found: list[str] = []
    while page := fabric.memories.list(people.auditor, limit=3, after=found[-1] if found else None):
        found += _ids(page)
    assert found == newest

    def listed(**narrowed: Any) -> list[str]:
        return _ids(fabric.memories.list(people.reviewer, **narrowed))

    assert listed(user_id="u1") == [made[3], made[1]]
    assert listed(entity="shop:ulm") == [about, durable]
    assert listed(entity=KEY["entity"], user_id="u0") == [made[4], made[2], made[0]]
    assert listed(tier="durable") == [durable]
    assert listed(write_class="statement") == [about]
    assert listed(user_id="nobody") == []
    shown = fabric.memories.list(people.reviewer)[0]
    assert (shown.text, shown.state, shown.user_id, shown.subject) == ("It rains.", "live", "cust_1", "shop:ulm")


@pytest.mark.rule("PRO-4", "PRO-6")
def test_a_memory_says_how_it_ended(fabric: Fabric, people: People, clock: FakeClock) -> None:
    began = clock.now
    superseded = promoted(fabric, people, "email")
    item = proposed(fabric, people.run(), **KEY, value="phone")
    live = fabric.queue.approve(people.reviewer, item.proposal_id, supersedes=superseded).memory_id
    wrong = promoted(fabric, people, "tea", predicate="drinks")
    fabric.retract(people.reviewer, wrong, reason="wrong")
    expired = remembered(fabric, people, "x", predicate="p", tier="episodic")
    clock.advance(days=31)
    assert _ids(fabric.memories.list(people.reviewer)) == [live]
    ended = {one.memory_id: one for one in fabric.memories.list(people.reviewer, state="ended")}
    assert {name: one.state for name, one in ended.items()} == {
        superseded: "superseded", wrong: "retracted", expired: "expired",
    }  # fmt: skip
    assert (ended[superseded].reason, ended[superseded].superseded_by) == ("superseded", live)
    assert (ended[wrong].reason, ended[wrong].ended_at) == ("wrong", began)
    assert ended[expired].ended_at == ended[expired].expires_at == began + timedelta(days=30)
    assert len(fabric.memories.list(people.reviewer, state="all")) == 4


@pytest.mark.rule("REC-7")
def test_memories_are_listed_as_they_stood(fabric: Fabric, people: People, clock: FakeClock) -> None:
    empty = clock.now
    clock.advance(hours=1)
    first = promoted(fabric, people, "email")
    then = clock.now
    clock.advance(hours=1)
    item = proposed(fabric, people.run(), **KEY, value="phone")
    second = fabric.queue.approve(people.reviewer, item.proposal_id, supersedes=first).memory_id
    assert _ids(fabric.memories.list(people.auditor, as_of=empty)) == []
    (shown,) = fabric.memories.list(people.auditor, as_of=then)
    assert (shown.memory_id, shown.state, shown.value, shown.superseded_by) == (first, "live", "email", None)
    assert _ids(fabric.memories.list(people.auditor)) == [second]
    assert _ids(fabric.memories.list(people.auditor, as_of=then, state="ended")) == []
    assert _ids(fabric.memories.list(people.auditor, as_of=then, query="email")) == [first]
    assert _ids(fabric.memories.list(people.auditor, query="email")) == []
    clock.advance(days=100)
    with pytest.raises(HistoryCollected) as gone:
        fabric.memories.list(people.auditor, as_of=then)
    assert gone.value.field == "as_of"


def test_words_find_memories_the_rarer_the_better(fabric: Fabric, people: People) -> None:
    for n in range(4):
        remembered(fabric, people, n, predicate=f"p{n}", text=f"The customer asked about order {n}.", user_id=f"u{n}")
    falcon = remembered(fabric, people, "f", predicate="hobby", text="The customer keeps falcons.")
    both = remembered(fabric, people, "g", predicate="pet", text="A falcon brought the order.", user_id=None)
    found = fabric.memories.list(people.reviewer, query="falcons and orders")
    assert _ids(found)[:2] == [both, falcon] and len(found) == 6
    assert found[0].score is not None and found[1].score is not None and found[0].score > found[1].score > 0
    paged: list[str] = []
    while page := fabric.memories.list(
        people.reviewer, query="falcons and orders", limit=4, after=paged[-1] if paged else None
    ):
        paged += _ids(page)
    assert paged == _ids(found)
    assert _ids(fabric.memories.list(people.reviewer, query="order", user_id="u2"))[0] in _ids(found)
    assert len(fabric.memories.list(people.reviewer, query="order", user_id="u2")) == 1
    assert fabric.memories.list(people.reviewer, query="zeppelin") == []
    with pytest.raises(NotFound):
        fabric.memories.list(people.reviewer, query="falcon", after=found[-1].memory_id)


@pytest.mark.rule("CON-3", "ERA-2", "REC-7")
def test_what_was_erased_or_lost_its_consent_has_no_text_for_any_moment(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    given = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    private = promoted(fabric, people, "in the tower", predicate="lives", subject=SUBJECT, classification="PII")
    other = promoted(fabric, people, "in the mill", entity="customer:c2", predicate="works", subject="customer:c2")
    then = clock.now
    clock.advance(hours=1)
    fabric.consent.revoke(people.officer, given.consent_id)
    for moment in (None, then):
        shown = {one.memory_id: one for one in fabric.memories.list(people.auditor, as_of=moment)}
        assert (shown[private].text, shown[private].value, shown[private].withheld) == ("", None, True)
        assert not shown[other].withheld and shown[other].value == "in the mill"
        assert fabric.memories.list(people.auditor, query="tower", as_of=moment) == []
        assert _ids(fabric.memories.list(people.auditor, query="mill", as_of=moment)) == [other]
    fabric.erase(people.officer, subject="customer:c2")
    assert _ids(fabric.memories.list(people.auditor, entity="customer:c2")) == []
    (gone,) = fabric.memories.list(people.auditor, entity="customer:c2", state="all")
    assert (gone.state, gone.text, gone.value, gone.withheld) == ("tombstoned", "", None, False)
    (was,) = fabric.memories.list(people.auditor, entity="customer:c2", as_of=then)
    assert (was.state, was.text, was.tombstoned_at) == ("live", "", clock.now)
    changed = fabric.memories.changes(people.auditor, since=then, entity="customer:c2")
    assert [one.text for one in changed.ended] == [""]


@pytest.mark.rule("REC-7")
def test_two_moments_are_compared(fabric: Fabric, people: People, clock: FakeClock) -> None:
    stays = promoted(fabric, people, "post", predicate="p1")
    goes = promoted(fabric, people, "email")
    fades = remembered(fabric, people, "x", predicate="p2", tier="episodic")
    promoted(fabric, people, "y", predicate="p3", user_id="cust_2", entity="customer:c2")
    since = clock.now
    clock.advance(days=1)
    item = proposed(fabric, people.run(), **KEY, value="phone")
    comes = fabric.queue.approve(people.reviewer, item.proposal_id, supersedes=goes).memory_id
    brief = promoted(fabric, people, "z", predicate="p4")
    middle = clock.now
    fabric.retract(people.reviewer, brief, reason="wrong")
    clock.advance(days=30)
    until = clock.now
    clock.advance(days=1)
    late = promoted(fabric, people, "late", predicate="p5")
    changed = fabric.memories.changes(people.auditor, user_id="cust_1", since=since, until=until)
    assert set(_ids(list(changed.added))) == {comes, brief} and changed.added_total == 2
    assert {one.memory_id: one.state for one in changed.ended} == {
        goes: "superseded", brief: "retracted", fades: "expired",
    }  # fmt: skip
    assert (changed.ended_total, changed.still) == (3, 1)
    now = fabric.memories.changes(people.auditor, user_id="cust_1", since=middle)
    assert _ids(list(now.added)) == [late] and _ids(list(now.ended)) == [fades]
    assert now.still == 2 and stays not in _ids(list(now.ended))
    with pytest.raises(InvalidInput) as wrong:
        fabric.memories.changes(people.auditor, since=until, until=since)
    assert wrong.value.field == "since"


def test_the_slider_stops_where_something_began_or_ended(fabric: Fabric, people: People, clock: FakeClock) -> None:
    assert fabric.memories.moments(people.auditor) == []
    first = clock.now
    goes = promoted(fabric, people, "email")
    remembered(fabric, people, "x", predicate="p2", tier="episodic")
    promoted(fabric, people, "y", entity="customer:c2", predicate="p", user_id="cust_2")
    clock.advance(hours=1)
    fabric.retract(people.reviewer, goes, reason="wrong")
    clock.advance(days=31)

    def turns(**narrowed: Any) -> list[tuple[datetime, int, int]]:
        return [(one.at, one.began, one.ended) for one in fabric.memories.moments(people.auditor, **narrowed)]

    ends = [(first + timedelta(hours=1), 0, 1), (first + timedelta(days=30), 0, 1)]
    assert turns(user_id="cust_1") == [(first, 2, 0), *ends]
    assert turns() == [(first, 3, 0), *ends]
    assert turns(entity="customer:c2") == [(first, 1, 0)]


@pytest.mark.rule("REC-6")
def test_the_graph_around_an_entity_is_drawn_from_live_memories(fabric: Fabric, people: People) -> None:
    def tied(one: str, predicate: str, other: str) -> str:
        return remembered(fabric, people, other, entity=one, predicate=predicate, user_id=None)

    works = tied(SUBJECT, "works_at", "company:acme")
    owns = tied("company:acme", "owned_by", "company:holding")
    far = tied("company:holding", "based_in", "city:ulm")
    promoted(fabric, people, "email")
    gone = tied(SUBJECT, "lives_in", "city:bonn")
    fabric.retract(people.reviewer, gone, reason="wrong")
    near = fabric.memories.graph(people.reviewer, "company:acme")
    assert {one.entity: one.distance for one in near.nodes} == {"company:acme": 0, SUBJECT: 1, "company:holding": 1}
    assert {one.memory_id: (one.entity, one.predicate, one.links_to) for one in near.edges} == {
        works: (SUBJECT, "works_at", "company:acme"),
        owns: ("company:acme", "owned_by", "company:holding"),
    }
    assert next(one.memories for one in near.nodes if one.entity == SUBJECT) == 2
    whole = fabric.memories.graph(people.reviewer, SUBJECT, hops=3)
    assert {one.entity: one.distance for one in whole.nodes} == {
        SUBJECT: 0, "company:acme": 1, "company:holding": 2, "city:ulm": 3,
    }  # fmt: skip
    assert far in {one.memory_id for one in whole.edges} and not whole.cut
    alone = fabric.memories.graph(people.reviewer, "city:nowhere")
    assert [(one.entity, one.memories) for one in alone.nodes] == [("city:nowhere", 0)]


@pytest.mark.rule("ISO-1", "ISO-5")
def test_memories_are_for_reviewers_and_auditors_of_their_own_tenant(
    fabric: Fabric, people: People, others: People, clock: FakeClock
) -> None:
    memory_id = remembered(fabric, people, "company:acme", predicate="works_at", text="She works at Acme.")
    item = proposed(fabric, others.run(), **KEY, value="email")  # there is such a tenant
    looks = (
        lambda asker: fabric.memories.list(asker, query="Acme"),
        lambda asker: fabric.memories.list(asker),
        lambda asker: fabric.memories.moments(asker),
        lambda asker: fabric.memories.changes(asker, since=clock.now - timedelta(days=1)).added,
        lambda asker: fabric.memories.graph(asker, SUBJECT).edges,
    )
    for look in looks:
        assert len(look(people.auditor)) == 1
        assert len(look(others.reviewer)) == 0
        for nobody in (people.officer, people.admin, people.author, people.run()):
            with pytest.raises(RoleMissing):
                look(nobody)
    with pytest.raises(NotFound):
        fabric.memories.list(others.reviewer, after=memory_id)
    assert item.status == "pending"


@pytest.mark.rule("AUD-1")
def test_a_trail_tells_how_often_and_when_a_memory_was_recalled(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    memory_id = promoted(fabric, people, "email")
    assert fabric.trail(people.auditor, memory_id).recalled.times == 0
    first = clock.now
    fabric.recall(people.run())
    clock.advance(hours=2)
    fabric.recall(people.run())
    fabric.recall(people.run("cust_2"))
    recalled = fabric.trail(people.auditor, memory_id).recalled
    assert (recalled.times, recalled.first_at, recalled.last_at) == (2, first, clock.now)


# --- the log


@pytest.mark.rule("AUD-1", "EVT-1")
def test_the_log_is_read_by_type_by_what_it_is_about_and_from_its_end(
    fabric: Fabric, people: People, others: People, clock: FakeClock
) -> None:
    kept = promoted(fabric, people, "post", predicate="p1")
    clock.advance(seconds=1)
    gone = promoted(fabric, people, "email")
    clock.advance(seconds=1)
    fabric.retract(people.reviewer, gone, reason="wrong")
    with pytest.raises(RoleMissing):
        fabric.queue.list(people.officer)
    every = fabric.events(people.auditor, limit=1000)

    def read(**wanted: Any) -> list[str]:
        return [one.event_id for one in fabric.events(people.auditor, **wanted)]

    def expected(*types: str) -> list[str]:
        return [one.event_id for one in every if one.type in types]

    assert read(types=["memory.security"]) == expected("memory.security")
    assert read(types=["memory.promoted", "memory.retracted"]) == expected("memory.promoted", "memory.retracted")
    about = [one for one in every if gone in one.data.values()]
    assert {one.type for one in about} == {"memory.promoted", "memory.retracted"}
    assert read(about=gone) == [one.event_id for one in about]
    assert read(about=gone, types=["memory.retracted"]) == [about[-1].event_id]
    assert read(about=kept[:-1]) == [] and read(about="mwp_0") == []
    assert read(latest=True, limit=1000) == [one.event_id for one in reversed(every)]
    paged: list[str] = []
    place = 0
    while page := fabric.events(people.auditor, latest=True, limit=2, after=place):
        paged += [one.event_id for one in page]
        place = page[-1].seq
    assert paged == [one.event_id for one in reversed(every)]
    forward: list[str] = []
    place = 0
    while page := fabric.events(people.auditor, types=["memory.promoted", "memory.proposed"], limit=1, after=place):
        forward += [one.event_id for one in page]
        place = page[-1].seq
    assert forward == expected("memory.promoted", "memory.proposed")
    proposed(fabric, others.run(), **KEY, value="email")
    assert fabric.events(others.auditor, about=gone) == []
