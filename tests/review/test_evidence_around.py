"""Evidence that one can judge: the turns around it, links by the pack's template, what else is known, past verdicts."""

import pytest

from muniment import Fabric
from muniment.capture.read_log import record_reads
from muniment.errors import Conflict, PackInvalid
from muniment.model.speakers import SpeaksFor
from muniment.pack import load_pack
from muniment.testing import People
from tests.stories import CONSENT, KEY, event_data, promoted, proposed, run_worker

SAID = [
    "Hello.",
    "I have a question.",
    "It is about my order.",
    "I prefer email.",
    "Thanks.",
    "One more thing.",
    "Bye.",
    "x",
]


def talk(fabric: Fabric, people: People, user: str = "cust_1", session: str = "s1") -> None:
    run = people.run(user, session_id=session)
    for text in SAID:
        fabric.capture(run, kind="message", text=text, classification="INTERNAL")


def said_email(fabric: Fabric, people: People) -> str:
    """The proposal of what cust_1 said about email."""
    queue = fabric.queue.list(people.reviewer, limit=100)
    return next(
        one.proposal_id for one in queue if "email" in one.candidate.text and one.candidate.scope.user_id == "cust_1"
    )


@pytest.mark.rule("REV-16")
def test_a_reviewer_sees_three_turns_before_and_after_with_their_speakers(fabric: Fabric, people: People) -> None:
    for text in SAID:
        # Another user in a session of that name, and another session of that user, talk at the same time.
        for user, session in (("cust_2", "s1"), ("cust_1", "s1"), ("cust_1", "s2")):
            run = people.run(user, session_id=session)
            fabric.capture(run, kind="message", text=f"{text} ({user} {session})", classification="INTERNAL")
    run_worker(fabric, people.tenant_id)
    item = said_email(fabric, people)
    found = fabric.queue.evidence(people.reviewer, item)
    assert found.basis == "message"
    assert [turn.text for turn in found.around] == [f"{text} (cust_1 s1)" for text in SAID[:7]]
    assert [turn.is_source for turn in found.around] == [False] * 3 + [True] + [False] * 3
    assert {turn.speaker for turn in found.around} == {"cust_1"}
    assert all(turn.by_user for turn in found.around)


@pytest.mark.rule("CAP-11", "REV-16")
def test_who_reads_the_conversation_around_a_fact_is_recorded_with_each_turn(fabric: Fabric, people: People) -> None:
    talk(fabric, people)
    run_worker(fabric, people.tenant_id)
    item = said_email(fabric, people)
    assert event_data(fabric, people, "capture_read") == []
    found = fabric.queue.evidence(people.reviewer, item)
    (event,) = fabric.events(people.auditor, types=["memory.capture_read"])
    assert event.actor == people.reviewer.id
    assert {one["capture_id"] for one in event.items} == {turn.capture_id for turn in found.around}
    assert len(event.items) == len(found.around) == 7
    # A list of what waits shows proposals, not what they came from.
    fabric.queue.list(people.reviewer)
    fabric.queue.get(people.reviewer, item)
    assert len(fabric.events(people.auditor, types=["memory.capture_read"])) == 1


@pytest.mark.rule("CAP-11", "ERA-2")
def test_who_reads_what_a_memory_came_from_is_recorded_while_there_is_something_to_read(
    fabric: Fabric, people: People
) -> None:
    memory_id = promoted(fabric, people)
    trail = fabric.trail(people.auditor, memory_id)
    assert trail.capture is not None
    reading = {"capture_id": trail.capture.capture_id, "archived": False}
    assert event_data(fabric, people, "capture_read") == [reading]
    fabric.erase(people.officer, subject="customer:cust_1")
    trail = fabric.trail(people.auditor, memory_id)
    assert trail.capture is not None and trail.capture.content is None
    assert event_data(fabric, people, "capture_read") == [reading]


@pytest.mark.rule("CAP-11", "ERA-2")
def test_nothing_is_shown_of_a_capture_that_was_erased_while_it_was_read(fabric: Fabric, people: People) -> None:
    memory_id = promoted(fabric, people)
    capture = fabric.trail(people.auditor, memory_id).capture
    assert capture is not None
    fabric.erase(people.officer, subject="customer:cust_1")
    before = event_data(fabric, people, "capture_read")
    read = {capture.capture_id: False}
    with pytest.raises(Conflict, match="was erased while it was read"):
        fabric._portal.call(record_reads, fabric._fabric._context, people.auditor, read)
    assert event_data(fabric, people, "capture_read") == before


@pytest.mark.rule("REV-16")
@pytest.mark.parametrize(
    ("fields", "basis"),
    [
        ({**KEY, "value": "email"}, "claim"),
        ({"write_class": "statement", "text": "She pays late"}, "claim"),
        ({**KEY, "value": "email", "origin": "tool:crm.lookup"}, "tool_result"),
    ],
)
def test_what_an_agent_says_by_itself_is_a_claim(
    fabric: Fabric, people: People, fields: dict[str, str], basis: str
) -> None:
    item = proposed(fabric, people.run(), **fields)
    assert fabric.queue.evidence(people.reviewer, item.proposal_id).basis == basis


@pytest.mark.rule("REV-16", "ISO-8")
def test_what_an_agent_may_not_speak_for_is_its_claim_whatever_it_names(fabric: Fabric, people: People) -> None:
    fact: dict[str, str] = {**KEY, "value": "email", "origin": "tool:crm.lookup"}
    item = proposed(fabric, people.run(speaks_for=SpeaksFor()), **fact).proposal_id
    assert fabric.queue.evidence(people.reviewer, item).basis == "claim"
    run = people.run(speaks_for=SpeaksFor(), session_id="s1")
    for text in ("Hello.", "I prefer tea to coffee."):
        fabric.capture(run, kind="message", text=text, classification="INTERNAL")
    run_worker(fabric, people.tenant_id)
    tea = next(one.proposal_id for one in fabric.queue.list(people.reviewer) if "tea" in one.candidate.text)
    found = fabric.queue.evidence(people.reviewer, tea)
    assert (found.basis, [(turn.speaker, turn.by_user) for turn in found.around]) == ("claim", [("bot", False)] * 2)


def test_an_erased_turn_has_no_text(fabric: Fabric, people: People) -> None:
    talk(fabric, people)
    run_worker(fabric, people.tenant_id)
    item = said_email(fabric, people)
    fabric.erase(people.officer, subject="user:cust_1")
    assert {turn.text for turn in fabric.queue.evidence(people.reviewer, item).around} == {None}


def test_what_else_is_known_and_what_was_decided_on_the_source_is_shown(fabric: Fabric, people: People) -> None:
    old = promoted(fabric, people, "rye", predicate="eats")
    gone = promoted(fabric, people, "tea", predicate="drinks")
    fabric.retract(people.reviewer, gone, reason="wrong")
    wrong = proposed(fabric, people.run(), **KEY | {"predicate": "wears"}, value="hats")
    fabric.queue.reject(people.reviewer, wrong.proposal_id, reason="wrong")
    item = proposed(fabric, people.run(), **KEY, value="email")
    found = fabric.queue.evidence(people.reviewer, item.proposal_id)
    assert [one.memory_id for one in found.known] == [old]
    assert [(one.action, one.predicate) for one in found.source_verdicts] == [
        ("reject", "wears"),
        ("approve", "drinks"),
        ("approve", "eats"),
    ]


@pytest.mark.rule("CON-3", "REV-16")
def test_what_a_revoked_consent_hides_is_not_shown_as_known(fabric: Fabric, people: People) -> None:
    consent = fabric.consent.grant(people.officer, subject="customer:cust_1", **CONSENT)
    told = {"subject": "customer:cust_1", "classification": "PII"}
    promoted(fabric, people, "Ring 1", predicate="lives_at", **told)
    item = proposed(fabric, people.run(), entity="customer:cust_1", predicate="eats", value="rye").proposal_id
    assert [one.value for one in fabric.queue.evidence(people.reviewer, item).known] == ["Ring 1"]
    fabric.consent.revoke(people.officer, consent.consent_id)
    assert fabric.queue.evidence(people.reviewer, item).known == ()


def test_open_opposites_come_with_their_texts(fabric: Fabric, people: People) -> None:
    first = proposed(fabric, people.run(), **KEY, value="email")
    second = proposed(fabric, people.run(), **KEY, value="phone")
    found = fabric.queue.evidence(people.reviewer, second.proposal_id)
    assert [(one.proposal_id, one.candidate.value) for one in found.opposites] == [(first.proposal_id, "email")]


PACK = """
pack_meta: {{id: shop, version: "1.0.0"}}
identity: {{reference_links: {{ticket: "{link}"}}}}
"""


def test_references_are_links_by_the_template_of_the_pack(fabric: Fabric, people: People) -> None:
    fabric.packs.register(people.admin, PACK.format(link="https://help.example/t/{id}?from=review"))
    fabric.packs.activate(people.admin, "shop@1.0.0", reason="links")
    refs = ["ticket:8/../x?y=<b>", "call:7", "ticket:", "ticket:.", "ticket:.."]
    item = proposed(fabric, people.run(), **KEY, value="email", evidence_refs=refs)
    found = fabric.queue.evidence(people.reviewer, item.proposal_id)
    assert found.links == {refs[0]: "https://help.example/t/8%2F..%2Fx%3Fy%3D%3Cb%3E?from=review"}


@pytest.mark.parametrize(
    "link",
    [
        "http://help.example/{id}",
        "javascript:alert(1)//{id}",
        "https://{id}.example/x",
        "https://help.example/t",
        "https://user@help.example/{id}",
        "https://help.example/{id}/{id}",
    ],
)
def test_only_https_addresses_with_a_fixed_host_are_templates(link: str) -> None:
    with pytest.raises(PackInvalid, match="https address"):
        load_pack(PACK.format(link=link))
