"""Webhooks, posted to a real server on this machine: in order, signed, again and again until they are taken."""

import asyncio
import base64
import hashlib
import hmac
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from muniment import AsyncFabric, Fabric
from muniment.errors import InvalidInput, NotFound, RoleMissing, TooLarge
from muniment.model.context import Principal
from muniment.outbox import sending
from muniment.outbox.rules import PAUSES
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.pipeline.stories import promoted

MESSAGE: dict[str, Any] = {"kind": "message", "text": "hello", "classification": "INTERNAL"}


@dataclass
class Receiver:
    """A server that keeps what it was sent and answers as it is told."""

    url: str = ""
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    answer: Callable[[int], int | tuple[int, dict[str, str]]] = lambda _: 204
    stall: threading.Event | None = None
    socket: Any = None
    reached: threading.Event = field(default_factory=threading.Event)

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.got]

    @property
    def sequences(self) -> list[str]:
        return [one["sequence"] for one in self.events]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with lock:
                receiver.got.append(({name.lower(): value for name, value in self.headers.items()}, body))
                answer = receiver.answer(len(receiver.got))
            receiver.reached.set()
            if receiver.stall is not None:
                receiver.stall.wait(5)
            status, headers = answer if isinstance(answer, tuple) else (answer, {})
            self.send_response(status)
            for name, value in {"Content-Length": "0", **headers}.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None: ...  # noqa: A002  its name there

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver.socket = server
    running = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    running.start()
    receiver.url = f"http://localhost:{server.server_port}/hook?key=k"
    yield receiver
    if receiver.stall is not None:
        receiver.stall.set()
    server.shutdown()
    running.join()
    server.server_close()


@pytest.fixture
def fabric(server: TestServer, database: str, clock: FakeClock) -> Iterator[Fabric]:
    """One that may post to this machine."""
    with Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS, private_webhooks=True) as opened:
        yield opened


def written(fabric: Fabric, people: People, count: int = 1) -> None:
    for _ in range(count):
        fabric.capture(people.run(), **MESSAGE)


def log_after(fabric: Fabric, people: People, seq: int) -> list[str]:
    return [f"{one.seq:019d}.{one.n:05d}" for one in fabric.events(people.auditor, after=seq, limit=1000)]


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
    assert fabric.webhooks.deliver(people.tenant_id).delivered == 0, "it is not due"
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
    hook = fabric.webhooks.add(people.admin, url=receiver.url)
    fabric.webhooks.deliver(people.tenant_id)
    assert receiver.got == [], "it begins with what comes after it"
    for after in (0, 2):
        receiver.got.clear()
        fabric.webhooks.replay(people.admin, hook.webhook_id, after=after)
        fabric.webhooks.deliver(people.tenant_id)
        assert receiver.sequences == log_after(fabric, people, after)
    for wrong in (-1, 10**6, 2**70, True, "1"):
        with pytest.raises(InvalidInput) as caught:
            fabric.webhooks.replay(people.admin, hook.webhook_id, after=wrong)  # type: ignore[arg-type]
        assert caught.value.field == "after"


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
    for told in (hook.secret, hook.secret.removeprefix("whsec_"), "localhost"):
        assert told.encode() not in b"".join(bytes(row[name]) for name in ("url", "secret", "old_secret"))
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
                strict.webhooks.add(people.admin, **wrong)  # type: ignore[arg-type]
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
            await other.webhooks.replay(people.admin, hook.webhook_id, after=0)
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
