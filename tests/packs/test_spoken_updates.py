"""What a user asks to remember and what they update, from message to recall under the profiles (CAN-12, CTR-4)."""

import pytest
from pydantic_core import to_json

from muniment import Fabric
from muniment.model.proposal import Proposal
from muniment.pack import load_pack, profile_pack
from muniment.testing import FakeClock, People
from tests.packs.test_profiles import Opener, opened

__all__ = ["opened"]

JOANNA = {"kind": "message", "classification": "INTERNAL", "subject": "user:joanna"}


def said(fabric: Fabric, people: People, text: str, name: str | None = None) -> Proposal:
    """Let Joanna's app capture a message of hers; returns its one proposal as it stands then."""
    named = {"name": name} if name is not None else {}
    run = people.run("joanna")
    fabric.capture(run, **JOANNA, payload={"role": "user", "content": text, **named})  # type: ignore[arg-type]
    (proposal_id,) = fabric.consolidate(people.tenant_id).proposals
    return fabric.queue.get(people.reviewer, proposal_id)


def recalled(fabric: Fabric, people: People) -> list[str | None]:
    return [record.text for record in fabric.recall(people.run("joanna")).all_records]


@pytest.mark.rule("CAN-12", "PAC-8")
def test_in_personal_what_the_user_asks_to_remember_is_promoted_by_policy(opened: Opener, people: People) -> None:
    with opened("personal") as fabric:
        asked = said(fabric, people, "Remember that my project is called Falcon.")
        assert (asked.status, asked.human_reasons) == ("promoted", ("user_asked",))
        assert recalled(fabric, people) == ["my project is called Falcon."]


@pytest.mark.rule("CTR-4", "CAN-12")
@pytest.mark.parametrize(
    ("first", "second", "now"),
    [
        ("I live in Berlin.", "Actually, I moved to Hamburg.", "I moved to Hamburg."),
        ("I drink coffee.", "Actually, I don't drink coffee.", "I don't drink coffee."),
    ],
)
def test_in_personal_an_update_replaces_the_users_own_older_fact(
    opened: Opener, people: People, clock: FakeClock, first: str, second: str, now: str
) -> None:
    with opened("personal") as fabric:
        old = said(fabric, people, first)
        clock.advance(days=1)
        new = said(fabric, people, second)
        assert (old.status, new.status, new.action) == ("promoted", "promoted", "promote")
        assert recalled(fabric, people) == [now]
        assert fabric.get(people.auditor, old.memory_id or "").superseded_by == new.memory_id


@pytest.mark.rule("CTR-4", "CAN-12")
def test_in_strict_the_same_update_waits_for_a_person(opened: Opener, people: People, clock: FakeClock) -> None:
    with opened("strict") as fabric:
        old = said(fabric, people, "I live in Berlin.")
        old = fabric.queue.approve(people.reviewer, old.proposal_id)
        clock.advance(days=1)
        new = said(fabric, people, "Actually, I moved to Hamburg.")
        assert (new.status, new.action, new.targets) == ("pending", "correct", (old.memory_id,))
        assert {"contradiction", "user_asked"} <= set(new.human_reasons)
        assert recalled(fabric, people) == ["I live in Berlin."]


@pytest.mark.rule("CTR-4")
def test_in_personal_another_speaker_replaces_nothing(opened: Opener, people: People, clock: FakeClock) -> None:
    with opened("personal") as fabric:
        said(fabric, people, "I live in Berlin.", name="Joanna")
        clock.advance(days=1)
        other = said(fabric, people, "Actually, I moved to Hamburg.", name="Nate")
        assert other.status == "pending" and "contradiction" in other.human_reasons
        assert recalled(fabric, people) == ["I live in Berlin."]


@pytest.mark.rule("CAN-12", "CTR-4")
def test_a_rule_of_the_pack_that_resolves_contradictions_does_not_pick_what_a_request_means(
    opened: Opener, people: People, clock: FakeClock
) -> None:
    document = profile_pack("personal").document()
    document["pack_meta"] |= {"id": "acme.resolving"}
    memory = document["memory_layer"]
    memory["contradiction"]["own_updates"] = False
    memory["classes"]["preference"]["auto_resolve"] = {"margin": 0.0, "fresher_evidence": False}
    with opened(load_pack(to_json(document))) as fabric:
        old = said(fabric, people, "I live in Berlin.")
        clock.advance(days=1)
        new = said(fabric, people, "Actually, I moved to Hamburg.")
        assert (old.status, new.status, new.action, new.targets) == ("promoted", "pending", "correct", (old.memory_id,))
        assert recalled(fabric, people) == ["I live in Berlin."]
