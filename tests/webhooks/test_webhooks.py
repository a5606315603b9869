"""Webhooks, posted to a real server on this machine: in order, signed, again and again until they are taken."""

import base64
import hashlib
import hmac
import json
from typing import Any

import pytest

from muniment import Fabric
from muniment.errors import InvalidInput, NotFound, RoleMissing, TooLarge
from muniment.model.context import Principal
from muniment.testing import FakeClock, People
from muniment.webhooks.settings import PAUSES
from tests.stories import promoted
from tests.webhooks.receiver import Receiver, fabric, log_after, receiver, written

__all__ = ["fabric", "receiver"]  # fixtures


def checked(secret: str, headers: dict[str, str], body: bytes) -> bool:
    """As a receiver does, by the text of Standard Webhooks."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    content = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
    return f"v1,{expected}" in headers["webhook-signature"].split(" ")


@pytest.mark.rule("EVT-1")
def test_events_are_posted_in_order_signed_and_once(
    fabric: Fabric, people: People, receiver: Receiver, clock: FakeClock
) -> None:
    written(fabric, people)
    hook = fabric.webhooks.add(people.admin, url=receiver.url)
    assert hook.secret is not None
    promoted(fabric, people)
    expected = log_after(fabric, people, hook.seq)
    done = fabric.webhooks.deliver(people.tenant_id)
    assert (done.delivered, done.retrying, done.parked, done.more) == (len(expected), 0, 0, False)
    assert receiver.sequences == expected
    assert len({sequence[:19] for sequence in expected}) < len(expected), "some transaction has several events"
    for headers, body in receiver.got:
        assert checked(hook.secret, headers, body)
        assert not checked(hook.secret, headers, body + b" ")
        assert headers["webhook-id"] == json.loads(body)["id"]
        assert int(headers["webhook-timestamp"]) == int(clock.now.timestamp())
        assert headers["content-type"] == "application/cloudevents+json"
        assert headers["host"].startswith("localhost:")
    assert fabric.webhooks.deliver(people.tenant_id).delivered == 0
    written(fabric, people)
    assert fabric.webhooks.deliver(people.tenant_id).delivered == 1
    (seen,) = fabric.webhooks.list(people.admin)
    assert (seen.state, seen.secret, seen.url) == ("active", None, receiver.url)
    assert f"{seen.seq:019d}.{seen.n:05d}" == receiver.sequences[-1]
    assert fabric.webhooks.get(people.admin, hook.webhook_id) == seen


@pytest.mark.rule("EVT-1")
def test_only_the_types_asked_for_are_posted(fabric: Fabric, people: People, receiver: Receiver) -> None:
    hook = fabric.webhooks.add(people.admin, url=receiver.url, types=["memory.promoted", "memory.retracted"])
    gone = promoted(fabric, people)
    fabric.retract(people.reviewer, gone, reason="wrong")
    written(fabric, people)
    assert fabric.webhooks.deliver(people.tenant_id).delivered == 2
    assert [one["type"] for one in receiver.events] == ["memory.promoted", "memory.retracted"]
    last = fabric.events(people.auditor, limit=1000)[-1]
    seen = fabric.webhooks.get(people.admin, hook.webhook_id)
    assert (seen.seq, seen.n) == (last.seq, last.n), "what nobody asked for is passed over"
    assert seen.types == ("memory.promoted", "memory.retracted")


@pytest.mark.rule("EVT-1")
def test_what_is_not_taken_is_tried_again_later_and_nothing_overtakes_it(
    fabric: Fabric, people: People, receiver: Receiver, clock: FakeClock
) -> None:
    hook = fabric.webhooks.add(people.admin, url=receiver.url)
    written(fabric, people, 3)
    receiver.answer = lambda count: 500 if count in (2, 3) else 200
    first = fabric.webhooks.deliver(people.tenant_id)
    assert (first.delivered, first.retrying, first.parked) == (1, 1, 0)
    assert first.next_at is not None
    assert 4 <= (first.next_at - clock.now).total_seconds() <= 6
    seen = fabric.webhooks.get(people.admin, hook.webhook_id)
    assert (seen.state, seen.tries, seen.last_error, seen.next_try_at) == ("retrying", 1, "500", first.next_at)
    early = fabric.webhooks.deliver(people.tenant_id)
    assert (early.delivered, early.next_at) == (0, first.next_at), "it is not due, and it is told when"
    clock.advance(seconds=6)
    again = fabric.webhooks.deliver(people.tenant_id)
    assert again.next_at is not None
    assert 24 <= (again.next_at - clock.now).total_seconds() <= 36
    clock.advance(seconds=36)
    assert fabric.webhooks.deliver(people.tenant_id).delivered == 2
    one, two, three = log_after(fabric, people, hook.seq)
    assert receiver.sequences == [one, two, two, two, three]
    assert len({headers["webhook-id"] for headers, _ in receiver.got[1:4]}) == 1
    seen = fabric.webhooks.get(people.admin, hook.webhook_id)
    assert (seen.state, seen.tries, seen.last_error, seen.next_try_at) == ("active", 0, None, None)


@pytest.mark.rule("EVT-1")
def test_after_the_last_try_it_is_parked_at_its_event_until_somebody_resumes_it(
    fabric: Fabric, people: People, receiver: Receiver, clock: FakeClock
) -> None:
    hook = fabric.webhooks.add(people.admin, url=receiver.url)
    written(fabric, people, 2)
    receiver.answer = lambda _: 503
    for _ in PAUSES:
        assert fabric.webhooks.deliver(people.tenant_id).retrying == 1
        clock.advance(days=2)
    done = fabric.webhooks.deliver(people.tenant_id)
    assert (done.parked, done.retrying, done.next_at) == (1, 0, None)
    parked = fabric.webhooks.get(people.admin, hook.webhook_id)
    assert (parked.state, parked.parked_at, parked.tries) == ("parked", clock.now, len(PAUSES) + 1)
    event = fabric.events(people.auditor, limit=1000)[-1]
    data = {"webhook_id": hook.webhook_id, "reason": "503", "tries": len(PAUSES) + 1}
    assert (event.type, event.data) == ("memory.parked", data)
    posted = len(receiver.got)
    assert posted == len(PAUSES) + 1
    clock.advance(days=30)
    written(fabric, people)
    assert fabric.webhooks.deliver(people.tenant_id).delivered == 0
    assert len(receiver.got) == posted, "parked is parked"
    receiver.answer = lambda _: 200
    resumed = fabric.webhooks.resume(people.admin, hook.webhook_id)
    assert (resumed.state, resumed.tries, resumed.last_error) == ("active", 0, None)
    fabric.webhooks.deliver(people.tenant_id)
    expected = log_after(fabric, people, hook.seq)
    assert receiver.sequences[posted:] == expected, "the same event first, and none was lost"
    assert set(receiver.sequences[:posted]) == {expected[0]}


@pytest.mark.rule("EVT-1")
def test_a_webhook_can_begin_again_at_any_number(fabric: Fabric, people: People, receiver: Receiver) -> None:
    written(fabric, people, 3)
    both = people.person("admin_and_auditor", "admin", "auditor")
    hook = fabric.webhooks.add(people.admin, url=receiver.url)
    fabric.webhooks.deliver(people.tenant_id)
    assert receiver.got == [], "it begins with what comes after it"
    for after in (0, 2):
        receiver.got.clear()
        fabric.webhooks.replay(both, hook.webhook_id, after=after)
        fabric.webhooks.deliver(people.tenant_id)
        assert receiver.sequences == log_after(fabric, people, after)
    for wrong in (-1, 10**6, 2**70, True, "1"):
        with pytest.raises(InvalidInput) as caught:
            fabric.webhooks.replay(both, hook.webhook_id, after=wrong)
        assert caught.value.field == "after"


@pytest.mark.rule("ISO-5", "AUD-3")
def test_who_may_not_read_the_log_cannot_have_it_posted_to_a_webhook(
    fabric: Fabric, people: People, receiver: Receiver
) -> None:
    written(fabric, people, 3)
    hook = fabric.webhooks.add(people.admin, url=receiver.url)
    for asker in (people.admin, people.auditor):
        with pytest.raises(RoleMissing):
            fabric.webhooks.replay(asker, hook.webhook_id, after=0)
    fabric.webhooks.deliver(people.tenant_id)
    denied = [one.data["verb"] for one in fabric.events(people.auditor) if one.type == "memory.security"]
    assert denied == ["audit", "webhooks"]
    assert set(receiver.sequences) <= set(log_after(fabric, people, hook.seq)), "nothing from before it was there"


@pytest.mark.rule("EVT-1")
def test_a_changed_secret_leaves_the_old_one_valid_for_a_day(
    fabric: Fabric, people: People, receiver: Receiver, clock: FakeClock
) -> None:
    hook = fabric.webhooks.add(people.admin, url=receiver.url)
    changed = fabric.webhooks.rotate_secret(people.admin, hook.webhook_id)
    assert changed.secret not in (None, hook.secret)
    assert hook.secret is not None
    assert changed.secret is not None
    fabric.webhooks.deliver(people.tenant_id)
    clock.advance(hours=23)
    written(fabric, people)
    fabric.webhooks.deliver(people.tenant_id)
    clock.advance(hours=1)
    written(fabric, people)
    fabric.webhooks.deliver(people.tenant_id)
    assert [checked(changed.secret, *one) for one in receiver.got] == [True, True, True]
    assert [checked(hook.secret, *one) for one in receiver.got] == [True, True, False]


@pytest.mark.rule("EVT-1", "ERA-1")
def test_address_and_secrets_are_sealed_and_go_with_the_webhook(
    fabric: Fabric, people: People, receiver: Receiver, rows: Any
) -> None:
    hook = fabric.webhooks.add(people.admin, url=receiver.url)
    fabric.webhooks.rotate_secret(people.admin, hook.webhook_id)
    (row,) = rows("webhooks")
    assert hook.secret is not None
    for result in (hook.secret, hook.secret.removeprefix("whsec_"), "localhost"):
        assert result.encode() not in b"".join(bytes(row[name]) for name in ("url", "secret", "old_secret"))
    assert hook.secret not in repr(hook)
    fabric.webhooks.remove(people.admin, hook.webhook_id)
    (row,) = rows("webhooks")
    assert (row["secret"], row["old_secret"]) == (None, None)
    written(fabric, people)
    assert fabric.webhooks.deliver(people.tenant_id).delivered == 0
    assert fabric.webhooks.list(people.admin) == []
    for call in (fabric.webhooks.get, fabric.webhooks.remove, fabric.webhooks.rotate_secret, fabric.webhooks.resume):
        with pytest.raises(NotFound):
            call(people.admin, hook.webhook_id)
    notes = [one.data for one in fabric.events(people.auditor, limit=1000) if one.type == "memory.note"]
    assert [one["about"] for one in notes] == ["webhook_added", "webhook_rotated", "webhook_removed"]
    assert {one["webhook_id"] for one in notes} == {hook.webhook_id}


@pytest.mark.rule("EVT-1", "ISO-1", "ISO-5")
def test_webhooks_are_an_admins_and_of_one_tenant(
    fabric: Fabric, people: People, others: People, receiver: Receiver
) -> None:
    hook = fabric.webhooks.add(people.admin, url=receiver.url)
    written(fabric, others)
    service = Principal(tenant_id=people.tenant_id, id="deploy", kind="system", roles={"admin"})
    for asker in (people.auditor, people.reviewer, people.run(), service):
        with pytest.raises(RoleMissing):
            fabric.webhooks.add(asker, url=receiver.url)
        with pytest.raises(RoleMissing):
            fabric.webhooks.list(asker)
    assert fabric.webhooks.list(others.admin) == []
    with pytest.raises(NotFound):
        fabric.webhooks.get(others.admin, hook.webhook_id)
    with pytest.raises(NotFound):
        fabric.webhooks.remove(others.admin, hook.webhook_id)
    assert fabric.webhooks.deliver(others.tenant_id).delivered == 0
    assert fabric.webhooks.deliver("nobody").delivered == 0
    assert receiver.got == []
    for _ in range(15):
        fabric.webhooks.add(people.admin, url=receiver.url)
    with pytest.raises(TooLarge):
        fabric.webhooks.add(people.admin, url=receiver.url)
