"""Where webhooks may be posted to, and how those who deliver at once or are stopped keep the order."""

import asyncio
import ssl
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from muniment import AsyncFabric, Fabric
from muniment.errors import InvalidInput
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from muniment.webhooks import sending
from tests.webhooks.receiver import Receiver, fabric, log_after, receiver, written

__all__ = ["fabric", "receiver"]  # fixtures


@pytest.mark.rule("EVT-1")
def test_an_address_that_is_not_on_the_internet_is_refused_at_registration_and_at_delivery(
    fabric: Fabric, people: People, receiver: Receiver, server: TestServer, database: str, clock: FakeClock
) -> None:
    hook = fabric.webhooks.add(people.admin, url=receiver.url.replace("http://", "https://"))
    plain = fabric.webhooks.add(people.admin, url=receiver.url)
    written(fabric, people)
    with Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS) as strict:
        for url in (
            receiver.url,
            "https://localhost/",
            "https://10.0.0.1/",
            "https://[::1]/",
            "https://nowhere.invalid/",
        ):
            with pytest.raises(InvalidInput) as caught:
                strict.webhooks.add(people.admin, url=url)
            assert caught.value.field == "url"
        for wrong in ({"url": "x" * 3000}, {"url": None}, {"url": "https://a b/"}, {"url": receiver.url, "types": []}):
            with pytest.raises(InvalidInput):
                strict.webhooks.add(people.admin, **wrong)
        assert strict.webhooks.deliver(people.tenant_id).retrying == 2
    assert receiver.got == [], "nothing was sent there"
    for one in (hook, plain):
        assert fabric.webhooks.get(people.admin, one.webhook_id).last_error == "address_refused"


@pytest.mark.rule("EVT-1")
def test_a_redirect_is_not_followed_and_the_environment_names_no_proxy(
    fabric: Fabric, people: People, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9/")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9/")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    hook = fabric.webhooks.add(people.admin, url=receiver.url)
    written(fabric, people)
    receiver.answer = lambda _: (307, {"Location": "http://169.254.169.254/latest/meta-data"})
    fabric.webhooks.deliver(people.tenant_id)
    assert len(receiver.got) == 1
    assert fabric.webhooks.get(people.admin, hook.webhook_id).last_error == "307"


@pytest.mark.rule("EVT-1")
def test_a_server_that_is_away_stops_no_other_webhook(fabric: Fabric, people: People, receiver: Receiver) -> None:
    away = fabric.webhooks.add(people.admin, url="http://127.0.0.1:9/")
    fabric.webhooks.add(people.admin, url=receiver.url)
    written(fabric, people, 2)
    done = fabric.webhooks.deliver(people.tenant_id, max_events=1)
    assert (done.delivered, done.retrying, done.more) == (1, 1, True)
    done = fabric.webhooks.deliver(people.tenant_id)
    assert (done.delivered, done.more) == (1, False)
    assert receiver.sequences == sorted(receiver.sequences)
    assert fabric.webhooks.get(people.admin, away.webhook_id).last_error == "connection_failed"


def _certificate(folder: Path) -> Path:
    """A certificate of localhost with its key, that nobody vouches for."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, now - timedelta(days=1), now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    pem = key.private_bytes(serialization.Encoding.PEM, *form) + made.public_bytes(serialization.Encoding.PEM)
    (folder / "localhost.pem").write_bytes(pem)
    return folder / "localhost.pem"


@pytest.mark.rule("EVT-1")
def test_the_certificate_is_that_of_the_host_and_somebody_vouches_for_it(
    fabric: Fabric, people: People, receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pem = _certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    named: list[str] = []
    context.sni_callback = lambda _socket, name, _context: named.append(name)
    receiver.socket.socket = context.wrap_socket(receiver.socket.socket, server_side=True)
    hook = fabric.webhooks.add(people.admin, url=receiver.url.replace("http://", "https://"))
    written(fabric, people)
    assert fabric.webhooks.deliver(people.tenant_id).retrying == 1
    assert (named, receiver.got) == (["localhost"], [])
    assert fabric.webhooks.resume(people.admin, hook.webhook_id).state == "active"
    monkeypatch.setenv("SSL_CERT_FILE", str(pem))
    assert fabric.webhooks.deliver(people.tenant_id).delivered == 2
    other = receiver.url.replace("http://localhost", "https://127.0.0.1")
    elsewhere = fabric.webhooks.add(people.admin, url=other)
    written(fabric, people)
    fabric.webhooks.deliver(people.tenant_id)
    assert fabric.webhooks.get(people.admin, elsewhere.webhook_id).last_error == "connection_failed"


def _opened(server: TestServer, database: str, clock: FakeClock) -> AsyncFabric:
    return AsyncFabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS, private_webhooks=True)


@pytest.mark.rule("EVT-1")
def test_two_who_deliver_at_once_keep_the_order_and_post_each_event_once(
    fabric: Fabric, people: People, receiver: Receiver, server: TestServer, database: str, clock: FakeClock
) -> None:
    hook = fabric.webhooks.add(people.admin, url=receiver.url)
    written(fabric, people, 12)

    async def race() -> None:
        async with _opened(server, database, clock) as one, _opened(server, database, clock) as other:
            for _ in range(4):
                await asyncio.gather(
                    *(fabric.webhooks.deliver(people.tenant_id, max_events=2) for fabric in (one, other, one))
                )

    asyncio.run(race())
    fabric.webhooks.deliver(people.tenant_id)
    assert receiver.sequences == log_after(fabric, people, hook.seq)


@pytest.mark.rule("EVT-1")
@pytest.mark.parametrize("how", ["cancelled", "killed"])
def test_one_who_is_stopped_in_the_middle_leaves_the_event_to_the_next(
    fabric: Fabric, people: People, receiver: Receiver, server: TestServer, database: str, clock: FakeClock, how: str
) -> None:
    hook = fabric.webhooks.add(people.admin, url=receiver.url)
    written(fabric, people, 2)
    receiver.stall = threading.Event()

    async def stop() -> None:
        async with _opened(server, database, clock) as other:
            task = asyncio.create_task(other.webhooks.deliver(people.tenant_id))
            await asyncio.to_thread(receiver.reached.wait, 5)
            # Meanwhile the webhook is held: nobody else posts to it.
            assert (await other.webhooks.deliver(people.tenant_id)).delivered == 0
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(stop())
    receiver.stall.set()
    if how == "killed":
        # What a killed one leaves behind: its lease.
        with server.connect(database) as owner:
            owner.execute(
                "UPDATE webhooks SET lease = 'x', leased_until = %s::timestamptz + interval '60 s' WHERE tenant_id = %s",
                [clock.now, people.tenant_id],
            )
        assert fabric.webhooks.deliver(people.tenant_id).delivered == 0
        clock.advance(seconds=60)
    assert fabric.webhooks.deliver(people.tenant_id).delivered == 2
    one, two = log_after(fabric, people, hook.seq)
    assert receiver.sequences == [one, one, two]


@pytest.mark.rule("EVT-1")
def test_a_lease_goes_on_with_every_event(
    fabric: Fabric, people: People, receiver: Receiver, clock: FakeClock, rows: Any
) -> None:
    fabric.webhooks.add(people.admin, url=receiver.url)
    written(fabric, people, 3)
    held: list[bool] = []

    def answer(_: int) -> int:
        clock.advance(seconds=15)
        held.append(rows("webhooks", "leased_until")[0]["leased_until"] > clock.now)
        return 200

    receiver.answer = answer
    assert fabric.webhooks.deliver(people.tenant_id).delivered == 3
    assert held == [True, True, True]
    assert rows("webhooks", "leased_until") == [{"leased_until": None}]


@pytest.mark.rule("EVT-1")
def test_a_server_that_does_not_answer_is_left_after_a_while(
    fabric: Fabric, people: People, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "DEADLINE", 0.1)
    hook = fabric.webhooks.add(people.admin, url=receiver.url)
    written(fabric, people)
    receiver.stall = threading.Event()
    assert fabric.webhooks.deliver(people.tenant_id).retrying == 1
    assert fabric.webhooks.get(people.admin, hook.webhook_id).last_error == "timeout"


@pytest.mark.rule("EVT-1")
@pytest.mark.parametrize("status", [200, 500])
def test_one_whose_lease_ended_cannot_move_the_place_any_more(
    fabric: Fabric,
    people: People,
    receiver: Receiver,
    server: TestServer,
    database: str,
    clock: FakeClock,
    status: int,
) -> None:
    hook = fabric.webhooks.add(people.admin, url=receiver.url)
    written(fabric, people, 2)
    receiver.stall = threading.Event()
    receiver.answer = lambda _: status

    async def slow() -> None:
        async with _opened(server, database, clock) as other:
            task = asyncio.create_task(other.webhooks.deliver(people.tenant_id))
            await asyncio.to_thread(receiver.reached.wait, 5)
            # An admin sets it back while the answer is on its way.
            await other.webhooks.replay(people.person("both", "admin", "auditor"), hook.webhook_id, after=0)
            assert receiver.stall is not None
            receiver.stall.set()
            done = await task
            assert (done.delivered, done.retrying) == (0, 0)

    asyncio.run(slow())
    seen = fabric.webhooks.get(people.admin, hook.webhook_id)
    assert (seen.seq, seen.state) == (0, "active")
    receiver.got.clear()
    receiver.answer = lambda _: 200
    fabric.webhooks.deliver(people.tenant_id)
    assert receiver.sequences == log_after(fabric, people, 0)
