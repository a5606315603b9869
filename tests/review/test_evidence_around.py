"""Evidence that one can judge: the turns around it, links by the pack's template, what else is known, past verdicts."""

import pytest

from muniment import Fabric
from muniment.errors import PackInvalid
from muniment.pack import load_pack
from muniment.testing import People
from tests.stories import KEY, promoted, proposed, run_worker

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
    talk(fabric, people)
    talk(fabric, people, "cust_2")
    talk(fabric, people, session="s2")
    run_worker(fabric, people.tenant_id)
    item = said_email(fabric, people)
    found = fabric.queue.evidence(people.reviewer, item)
    assert found.basis == "message"
    assert [turn.text for turn in found.around] == SAID[:7]
    assert [turn.is_source for turn in found.around] == [False] * 3 + [True] + [False] * 3
    assert {turn.speaker for turn in found.around} == {"cust_1"}
    assert all(turn.by_user for turn in found.around)


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
    refs = ["ticket:8/../x?y=<b>", "call:7", "ticket:"]
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
