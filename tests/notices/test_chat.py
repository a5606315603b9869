"""Alerts in a chat, by a webhook as Slack's: what is posted, and where it may go."""

import json

import pytest

from muniment import Fabric
from muniment.errors import InvalidInput
from muniment.model.notices import Alert, Digest
from muniment.notices import chat, rules
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.notices.mailbox import PUBLIC, doubted, fabric, mailbox, settings
from tests.webhooks.receiver import Receiver, receiver

__all__ = ["fabric", "mailbox", "receiver", "settings"]  # fixtures


@pytest.mark.rule("EVT-2")
def test_a_chat_gets_the_same_words_as_json(fabric: Fabric, people: People, receiver: Receiver) -> None:
    made = fabric.notices.set(people.reviewer, channel="chat", address=receiver.url)
    item = doubted(fabric, people, "Hannelore Quandt")
    assert fabric.notices.deliver(people.tenant_id).sent == 1
    ((headers, body),) = receiver.got
    assert headers["content-type"] == "application/json"
    text = json.loads(body)["text"]
    assert set(json.loads(body)) == {"text"}
    assert text.startswith(f"*Muniment {people.tenant_id}: 1 alert*\nlow trust: 1")
    assert f"{PUBLIC}/console/queue/{item.proposal_id}" in text
    assert "Quandt" not in text
    assert fabric.notices.list(people.reviewer)[0].address == receiver.url == made.address


def test_nothing_in_a_chat_mentions_anybody(clock: FakeClock) -> None:
    alert = Alert(kind="parked", at=clock.now, path="/console/metrics/work")
    message = rules.message_of("<!channel> & <@U1>", [alert], Digest(open=1), PUBLIC)
    text = json.loads(chat.body_of(message))["text"]
    assert "<" not in text
    assert "&lt;!channel&gt; &amp; &lt;@U1&gt;" in text


def test_a_chat_that_is_not_on_the_internet_is_refused_when_it_is_set_and_when_it_is_posted_to(
    fabric: Fabric, people: People, receiver: Receiver, server: TestServer, database: str, clock: FakeClock
) -> None:
    fabric.notices.set(people.reviewer, channel="chat", address=receiver.url)
    doubted(fabric, people)
    with Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS) as strict:
        for address in (
            receiver.url,
            "https://localhost/",
            "https://169.254.169.254/",
            "https://u:p@8.8.8.8/",
            "https://a\r\nb/",
        ):
            with pytest.raises(InvalidInput) as caught:
                strict.notices.set(people.reviewer, channel="chat", address=address)
            assert caught.value.field == "address"
        assert strict.notices.deliver(people.tenant_id).retrying == 1
    assert receiver.got == [], "nothing was sent there"
    assert fabric.notices.list(people.reviewer)[0].last_error == "address_refused"


@pytest.mark.rule("EVT-1")
def test_a_chat_that_fails_keeps_nobody_elses_message_and_gets_its_own_later(
    fabric: Fabric, people: People, receiver: Receiver, clock: FakeClock
) -> None:
    fabric.notices.set(people.reviewer, channel="chat", address="http://127.0.0.1:9/")
    fabric.notices.set(people.auditor, channel="chat", address=receiver.url)
    doubted(fabric, people)
    receiver.answer = lambda count: 503 if count == 1 else 200
    first = fabric.notices.deliver(people.tenant_id)
    assert (first.sent, first.retrying) == (0, 2)
    clock.advance(seconds=30)
    second = fabric.notices.deliver(people.tenant_id)
    assert (second.sent, second.retrying) == (1, 1)
    assert receiver.got[0][1] == receiver.got[1][1]


def test_only_ids_and_classes_of_ours_pass_from_an_event_into_a_message(fabric: Fabric, people: People) -> None:
    doubted(fabric, people)
    event = next(one for one in fabric.events(people.auditor, limit=100) if one.type == "memory.proposed")
    forged = event.model_copy(
        update={"data": {**event.data, "proposal_id": "../x\r\nTo: y", "write_class": "Anna Lee", "actor": "cust_1"}}
    )
    (alert,) = rules.alerts_of(forged, rules.MAY_READ, (), {"reviewer"}, "boris", {})
    assert (alert.item_id, alert.write_class, alert.path) == (None, None, "/console/queue")
    message = rules.message_of("t", [alert], None, PUBLIC)
    assert "Anna" not in message.text
    assert "cust_1" not in message.text


def test_who_is_told_of_a_parked_webhook_is_led_to_it(fabric: Fabric, people: People) -> None:
    doubted(fabric, people)
    event = next(one for one in fabric.events(people.auditor, limit=100) if one.type == "memory.proposed")
    parked = event.model_copy(update={"type": "memory.parked", "data": {"webhook_id": "whk_1", "reason": "timeout"}})
    (alert,) = rules.alerts_of(parked, rules.MAY_READ, (), {"admin"}, "ada", {})
    assert (alert.item_id, alert.path) == ("whk_1", "/console/admin/webhooks")
    assert rules.alerts_of(parked, rules.MAY_READ, (), {"reviewer", "auditor"}, "boris", {}) == [], "neither reads them"
