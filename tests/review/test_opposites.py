"""Open proposals that contradict each other name each other, found when the later one enters the queue."""

from typing import Any

import pytest

from muniment import Fabric
from muniment.language.embedding.function import FunctionEmbedder
from muniment.model.proposal import Proposal
from muniment.review import opposites
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.conftest import Opener
from tests.faults.concurrency import Calls, hold_clock
from tests.pack_activation import acme, put_in_force
from tests.recall.batches import SUBJECT
from tests.stories import CONSENT, KEY, proposed

RETURNS: dict[str, Any] = {"write_class": "statement", "text": "Returns are accepted within 30 days."}
OTHER_RETURNS: dict[str, Any] = RETURNS | {"text": "Returns are accepted within 14 days."}


def names(fabric: Fabric, people: People, *ids: str) -> list[tuple[str, ...]]:
    """Which open proposals each names."""
    return [fabric.queue.get(people.reviewer, one).opposites for one in ids]


def pair(fabric: Fabric, people: People, one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    return [proposed(fabric, people.run(), **fact).proposal_id for fact in (one, other)]


@pytest.mark.rule("REV-12")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({**KEY, "value": "email"}, {**KEY, "value": "phone"}),
        (RETURNS, OTHER_RETURNS),
        (
            {"write_class": "statement", "text": "The office is open on Sunday."},
            {"write_class": "statement", "text": "The office is closed on Sunday."},
        ),
    ],
)
def test_two_that_contradict_each_other_name_each_other(
    fabric: Fabric, people: People, one: dict[str, Any], other: dict[str, Any]
) -> None:
    first, second = pair(fabric, people, one, other)
    assert names(fabric, people, first, second) == [(second,), (first,)]
    listed = {item.proposal_id: item.opposites for item in fabric.queue.list(people.reviewer)}
    assert listed == {first: (second,), second: (first,)}
    told = [event for event in fabric.events(people.auditor) if event.type == "memory.proposed"]
    assert [item.get("opposites") for event in told for item in event.items] == [None, [first]]


@pytest.mark.rule("REV-12")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({**KEY, "value": "email"}, {**KEY, "value": "Email"}),
        ({**KEY, "value": "email"}, {**KEY, "predicate": "prefers_tea", "value": "green"}),
        (RETURNS, RETURNS | {"text": "Parcels leave within 14 days."}),
        (RETURNS, RETURNS | {"text": "returns are accepted within 30 days"}),
        (RETURNS | {"subject": "shop:1"}, OTHER_RETURNS | {"subject": "shop:2"}),
    ],
)
def test_what_does_not_contradict_names_nothing(
    fabric: Fabric, people: People, one: dict[str, Any], other: dict[str, Any]
) -> None:
    assert names(fabric, people, *pair(fabric, people, one, other)) == [(), ()]


@pytest.mark.rule("REV-12")
def test_scopes_that_no_run_sees_together_are_not_compared(fabric: Fabric, people: People) -> None:
    first = proposed(fabric, people.run("cust_1"), **KEY, value="email").proposal_id
    second = proposed(fabric, people.run("cust_2"), **KEY, value="phone").proposal_id
    assert names(fabric, people, first, second) == [(), ()]


@pytest.mark.rule("REV-12", "CTR-1")
def test_a_predicate_of_several_values_contradicts_nothing(under: Opener, people: People) -> None:
    with under("ontology: {predicates: {prefers_channel: {cardinality: many}}}") as fabric:
        ids = pair(fabric, people, {**KEY, "value": "email"}, {**KEY, "value": "phone"})
        assert names(fabric, people, *ids) == [(), ()]


@pytest.mark.rule("REV-12", "REV-11")
def test_each_member_of_an_item_is_named(fabric: Fabric, people: People) -> None:
    first, second = pair(fabric, people, {**KEY, "value": "email"}, {**KEY, "value": "email"})
    third = proposed(fabric, people.run(), **KEY, value="phone").proposal_id
    assert names(fabric, people, first, second, third) == [(third,), (third,), (first, second)]


@pytest.mark.rule("REV-12")
def test_only_open_ones_are_named(fabric: Fabric, people: People) -> None:
    first, second = pair(fabric, people, {**KEY, "value": "email"}, {**KEY, "value": "phone"})
    fabric.queue.reject(people.reviewer, first, reason="wrong")
    assert names(fabric, people, first, second) == [(), ()]
    third = proposed(fabric, people.run(), **KEY, value="fax").proposal_id
    assert names(fabric, people, second, third) == [(third,), (second,)]


@pytest.mark.rule("REV-12", "CTR-3")
def test_when_one_is_promoted_the_other_contradicts_a_memory(fabric: Fabric, people: People) -> None:
    first, second = pair(fabric, people, {**KEY, "value": "email"}, {**KEY, "value": "phone"})
    memory_id = fabric.queue.approve(people.reviewer, first).memory_id
    assert names(fabric, people, second) == [()]
    assert fabric.queue.approve(people.reviewer, second).status == "promoted"
    (found,) = fabric.contradictions.list(people.reviewer)
    assert (found.existing, found.proposal_id) == (memory_id, second)


@pytest.mark.rule("REV-12", "REV-5")
def test_an_edit_is_no_opposite_of_what_it_replaces(fabric: Fabric, people: People) -> None:
    first, second = pair(fabric, people, {**KEY, "value": "email"}, {**KEY, "value": "phone"})
    edited = fabric.queue.edit(people.reviewer, second, value="fax")
    assert isinstance(edited, Proposal)
    assert names(fabric, people, first, edited.proposal_id) == [(edited.proposal_id,), (first,)]


@pytest.mark.rule("REV-12", "PAC-9")
def test_one_that_a_new_pack_changes_is_no_opposite_of_its_former_self(
    server: TestServer, database: str, fabric: Fabric, people: People
) -> None:
    old = proposed(fabric, people.run(), **KEY, value="TCK-4711").proposal_id
    rule = "{name: ticket, pattern: 'TCK-[0-9]+', mask: '[TICKET]', classification: null}"
    masks = acme("1.0.0", f"policy_layer: {{guardrails: {{redaction_rules: [{rule}]}}}}")
    put_in_force(fabric, people.tenant_id, masks)
    new = fabric.queue.approve(people.reviewer, old)
    assert (new.reopens, new.candidate.value) == (old, "[TICKET]")
    with server.connect(database) as owner:
        query = "SELECT count(*) FROM proposal_contradictions WHERE tenant_id = %s"
        assert owner.execute(query, [people.tenant_id]).fetchone() == (0,)


@pytest.mark.rule("REV-12", "JOB-1")
def test_those_that_enter_in_one_batch_name_each_other_too(fabric: Fabric, people: People) -> None:
    for text in ("I prefer email to phone.", "My name is Ann.", "I prefer phone to email."):
        fabric.capture(people.run(), kind="message", origin="channel:chat", text=text, classification="INTERNAL")
    done = fabric.consolidate(people.tenant_id)
    found = {one: fabric.queue.get(people.reviewer, one) for one in done.proposals}
    assert len(found) == 3, [one.candidate.text for one in found.values()]
    named = {one: item.opposites for one, item in found.items() if item.opposites}
    assert len(named) == 2
    (first, second) = named
    assert named == {first: (second,), second: (first,)}


@pytest.mark.rule("REV-12")
def test_at_most_so_many_are_compared_the_latest_of_a_subject(
    fabric: Fabric, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert opposites.MOST == 200
    monkeypatch.setattr(opposites, "MOST", 2)
    ids = [proposed(fabric, people.run(), **KEY, value=value).proposal_id for value in ("a", "b", "c", "d")]
    assert names(fabric, people, ids[3]) == [(ids[1], ids[2])]
    monkeypatch.setattr(opposites, "MOST", 200)
    assert names(fabric, people, proposed(fabric, people.run(), **KEY, value="e").proposal_id) == [tuple(ids)]


@pytest.mark.rule("REV-12")
def test_a_text_is_compared_with_those_that_share_most_words(
    fabric: Fabric, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opposites, "MOST_TEXTS", 1)
    first = proposed(fabric, people.run(), **RETURNS).proposal_id
    for number in range(3):
        proposed(fabric, people.run(), write_class="statement", text=f"Parcel {number} is accepted.")
    second = proposed(fabric, people.run(), **OTHER_RETURNS).proposal_id
    assert names(fabric, people, second) == [(first,)]


@pytest.mark.rule("REV-12", "ERA-1")
def test_no_vector_of_an_open_proposal_is_stored_and_an_erased_one_is_not_compared(
    server: TestServer, database: str, fabric: Fabric, people: People
) -> None:
    fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    first = proposed(fabric, people.run(), **RETURNS, subject=SUBJECT).proposal_id
    fabric.erase(people.officer, subject=SUBJECT)
    second = proposed(fabric, people.run(), **OTHER_RETURNS, subject=SUBJECT).proposal_id
    assert names(fabric, people, first, second) == [(), ()]
    with server.connect(database) as owner:
        query = "SELECT count(*) FROM memory_vectors WHERE tenant_id = %s"
        assert owner.execute(query, [people.tenant_id]).fetchone() == (0,)


@pytest.mark.rule("REV-12")
def test_two_that_enter_at_the_same_moment_name_each_other(
    server: TestServer, database: str, fabric: Fabric, people: People
) -> None:
    proposed(fabric, people.run(), **RETURNS)
    facts = [{**KEY, "value": value} for value in ("email", "phone")]
    with hold_clock(server, database, people.tenant_id) as gate:
        calls = Calls([lambda fact=fact: proposed(fabric, people.run(), **fact) for fact in facts])
        gate.until_waiting(2)
    first, second = (one.proposal_id for one in calls.wait())
    assert names(fabric, people, first, second) == [(second,), (first,)]


@pytest.mark.rule("REV-12")
def test_a_proposal_with_nothing_beside_it_is_embedded_once(server: TestServer, database: str, people: People) -> None:
    texts: list[str] = []

    def place(given: list[str]) -> Any:
        texts.extend(given)
        return [[1.0, len(text), text.count("e")] for text in given]

    embedder = FunctionEmbedder(place, name="counting@1", dimensions=3)
    with Fabric.open(server.url(database), master_keys=MASTER_KEYS, embedder=embedder) as fabric:
        proposed(fabric, people.run(), **RETURNS)
        proposed(fabric, people.run(), write_class="statement", text="Parking behind building four costs nothing.")
        assert len(texts) == len(set(texts)), "no open text shares a word with it"
