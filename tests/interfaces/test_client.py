"""The client: the same results as a fabric, over connections that break and servers that stop and return."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, ClassVar

import anyio
import pytest
from pydantic_core import to_json

from muniment import Fabric, errors
from muniment.client import AsyncClient, Client, transport
from muniment.errors import (
    Conflict,
    Denied,
    InvalidInput,
    MunimentError,
    PackInvalid,
    RateLimited,
    RoleMissing,
    ServerUnavailable,
    Unauthenticated,
)
from muniment.http.problems import STATUS
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.interfaces.proxy import Proxy
from tests.server_thread import RemoteFabric, ServerThread
from tests.stories import KEY, proposed

FACT = {"kind": "statement", "text": "Returns are accepted within 14 days.", "classification": "INTERNAL"}


@pytest.fixture(scope="module")
def served(server: TestServer, database: str) -> Iterator[ServerThread]:
    with ServerThread.on(server.url(database)) as running:
        yield running


@pytest.fixture
def local(server: TestServer, database: str) -> Iterator[Fabric]:
    with Fabric.open(server.url(database), master_keys=MASTER_KEYS) as opened:
        yield opened


@pytest.fixture
def remote(local: Fabric, served: ServerThread) -> Iterator[RemoteFabric]:
    with RemoteFabric(local, served.url) as opened:
        yield opened


@pytest.fixture(autouse=True)
def no_long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "PAUSES", (0.01, 0.02, 0.04))


@pytest.mark.rule("AUD-4")
def test_a_verification_can_be_asked_for_in_parts(remote: RemoteFabric, local: Fabric, people: People) -> None:
    for _ in range(20):
        local.capture(people.run(), **FACT)
        local.seal(people.tenant_id)
    part = remote.verify(people.auditor, count=1)
    assert part.cursor is not None and not part.ok
    whole = remote.verify(people.auditor, cursor=part.cursor)
    assert whole == local.verify(people.auditor) and whole.rows > 20


def test_an_unknown_filter_is_refused_as_the_fabric_refuses_it(
    remote: RemoteFabric, local: Fabric, people: People
) -> None:
    for fabric in (local, remote):
        for verbs in (fabric.queue, fabric.memories, fabric.captures, fabric.refusals, fabric.recalls):
            with pytest.raises(InvalidInput, match="is not a known field") as refused:
                verbs.list(people.auditor if verbs is fabric.captures else people.reviewer, colour="red")
            assert refused.value.field == "colour"


def test_no_types_of_events_are_refused_and_not_taken_for_all(
    remote: RemoteFabric, local: Fabric, people: People
) -> None:
    local.capture(people.run(), **FACT)
    for fabric in (local, remote):
        with pytest.raises(InvalidInput) as refused:
            fabric.events(people.auditor, types=[])
        assert refused.value.field == "types"


@pytest.mark.rule("ERR-2")
def test_what_was_done_but_not_answered_is_not_done_again(remote: RemoteFabric, local: Fabric, people: People) -> None:
    with Proxy(remote.url) as proxy:
        with Client.open(proxy.url, remote.token(people.author)) as client:
            client.whoami()
            proxy.swallow = 2
            receipt = client.capture(people.author, **FACT)
            assert proxy.swallowed == 2
            assert receipt.repeated
        assert local.work.backlog(people.admin).behind == 1
        local.consolidate(people.tenant_id)
        (item,) = local.queue.list(people.reviewer)
        with Client.open(proxy.url, remote.token(people.reviewer)) as client:
            client.whoami()
            proxy.swallow = 1
            done = client.queue.approve(people.reviewer, item.proposal_id, note="seen")
        assert (proxy.swallowed, done.status) == (3, "promoted")
        assert [verdict.action for verdict in local.queue.get(people.reviewer, item.proposal_id).verdicts] == [
            "approve"
        ]


def test_a_batch_that_was_not_answered_is_captured_once(remote: RemoteFabric, local: Fabric, people: People) -> None:
    with Proxy(remote.url) as proxy, Client.open(proxy.url, remote.token(people.author)) as client:
        client.whoami()
        proxy.swallow = 1
        first = client.capture_many(people.author, [FACT | {"text": f"Fact {n}."} for n in range(3)])
    assert len({receipt.capture_id for receipt in first}) == 3
    assert local.work.backlog(people.admin).behind == 3


def test_an_unreachable_server_is_reported_and_found_again(
    server: TestServer, database: str, local: Fabric, people: People
) -> None:
    with ServerThread.on(server.url(database)) as running:
        token, port = RemoteFabric(local, running.url).token(people.reviewer), int(running.url.rpartition(":")[2])
        client = Client.open(running.url, token)
        assert client.queue.list(people.reviewer) == []
    with pytest.raises(ServerUnavailable):
        client.queue.list(people.reviewer)
    again = ServerThread.on(server.url(database))
    again._port = port
    with again:
        assert client.queue.list(people.reviewer) == []
        client.close()


def test_only_the_holder_of_the_credential_asks(remote: RemoteFabric, people: People, others: People) -> None:
    client = remote.client(people.reviewer)
    assert client.whoami() == people.reviewer
    for asker in (people.second_reviewer, others.reviewer, people.run(), others.run()):
        with pytest.raises(Denied, match="credential is of operator boris"):
            client.queue.list(asker)
    with pytest.raises(Denied, match="another tenant"):
        client.consolidate(others.tenant_id)
    with pytest.raises(InvalidInput, match="expected a Principal"):
        client.queue.list("boris")  # type: ignore[arg-type]
    agent = remote.client(people.run())
    with pytest.raises(Denied):
        agent.recall(people.run(agent_id="another"))


def test_what_the_server_refuses_is_the_error_that_the_fabric_raises(
    remote: RemoteFabric, local: Fabric, people: People
) -> None:
    proposal_id = proposed(local, people.run(), entity="customer:c1", predicate="diet", value="vegan").proposal_id
    for fabric in (local, remote.client(people.reviewer)):
        with pytest.raises(errors.NotFound) as missing:
            fabric.queue.get(people.reviewer, "mwp_of_nobody")
        assert (missing.value.field, missing.value.message) == ("proposal_id", "no such proposal")
        with pytest.raises(errors.VersionConflict):
            fabric.queue.approve(people.reviewer, proposal_id, version=7)
        with pytest.raises(RoleMissing):
            fabric.consent.list(people.reviewer)
        with pytest.raises(InvalidInput) as wrong:
            fabric.queue.reject(people.reviewer, proposal_id, reason="")
        assert wrong.value.field == "reason"
    with pytest.raises(PackInvalid) as pack:
        remote.client(people.admin).packs.register(people.admin, "pack_meta: 3\n")
    assert pack.value.problems


def test_a_wrong_key_and_an_address_that_is_none(remote: RemoteFabric, people: People) -> None:
    with Client.open(remote.url, "mun_nobody") as client, pytest.raises(Unauthenticated):
        client.queue.list(people.reviewer)
    for url, key, field in (
        ("ftp://x", "k", "url"),
        ("", "k", "url"),
        (remote.url, "", "key"),
        (remote.url, "ä", "key"),
    ):
        with pytest.raises(InvalidInput) as wrong:
            Client.open(url, key)
        assert wrong.value.field == field


def test_what_json_cannot_carry_is_an_error_of_the_caller(remote: RemoteFabric, people: People) -> None:
    with pytest.raises(InvalidInput):
        remote.client(people.author).capture(people.author, **FACT | {"payload": object()})


@pytest.mark.parametrize("wrong", [".", ".."])
def test_no_id_leads_to_another_address(remote: RemoteFabric, people: People, wrong: str) -> None:
    with pytest.raises(InvalidInput, match="is no id"):
        remote.client(people.reviewer).queue.get(people.reviewer, wrong)


def test_many_at_once_through_one_client(remote: RemoteFabric, local: Fabric, people: People) -> None:
    async def captured(client: AsyncClient, n: int) -> None:
        await client.capture(people.author, kind="message", text=f"Message {n}.", classification="INTERNAL")

    async def many(token: str) -> None:
        async with AsyncClient.open(remote.url, token) as client, anyio.create_task_group() as tasks:
            for n in range(20):
                tasks.start_soon(captured, client, n)

    anyio.run(many, remote.token(people.author))
    assert local.work.backlog(people.admin).behind == 20


# ---- a server of another kind ----


class Answers(BaseHTTPRequestHandler):
    """Says what it is told to say, once for each request; the last again and again."""

    said: ClassVar[list[tuple[int, dict[str, str], bytes]]] = []
    asked: ClassVar[list[str]] = []
    hold: ClassVar[Event] = Event()

    def do_GET(self) -> None:
        self.asked.append(self.path)
        status, headers, body = self.said.pop(0) if len(self.said) > 1 else self.said[0]
        if status == 0:
            self.hold.wait(5)
            return
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None: ...  # type: ignore[override]


@pytest.fixture
def other() -> Iterator[str]:
    Answers.said, Answers.asked = [], []
    Answers.hold.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as running:
        Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        Answers.hold.set()
        running.shutdown()


def problem(code: str, **more: Any) -> bytes:
    return to_json({"code": code, "detail": "so it is", "status": STATUS[code], "request_id": "r1", **more})


@pytest.mark.parametrize("code", sorted(set(STATUS) - {"internal", "method_not_allowed", "unsupported_media_type"}))
def test_every_code_is_the_error_of_that_code(other: str, code: str) -> None:
    Answers.said = [(STATUS[code], {}, problem(code, field="f", problems=[]))]
    with Client.open(other, "k") as client, pytest.raises(MunimentError) as raised:
        client.whoami()
    assert raised.value.code == code
    assert "f" in (raised.value.field, "f") if code in ("pack_invalid", "rate_limited") else raised.value.field == "f"


def test_a_server_that_is_busy_is_asked_again_as_it_says(other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr(transport.anyio, "sleep", sleep)
    Answers.said = [(429, {"Retry-After": "3"}, problem("rate_limited"))]
    with Client.open(other, "k") as client, pytest.raises(RateLimited) as raised:
        client.whoami()
    assert (len(Answers.asked), raised.value.wait) == (4, 3.0)
    assert all(2 <= wait <= 4 for wait in waits)


def test_a_server_that_is_still_at_an_earlier_try_is_asked_again_and_one_that_refuses_is_not(other: str) -> None:
    holder = {"tenant_id": "t", "id": "i", "kind": "operator", "roles": []}
    Answers.said = [(409, {}, problem("request_repeated")), (200, {}, to_json({"principal": holder}))]
    with Client.open(other, "k") as client:
        assert client.whoami().id == "i"
    assert len(Answers.asked) == 2
    Answers.said = [(409, {}, problem("conflict"))]
    with Client.open(other, "k") as client, pytest.raises(Conflict):
        client.whoami()
    assert len(Answers.asked) == 3


@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [
        (422, {}, problem("pack_invalid", problems=[1])),
        (422, {}, problem("pack_invalid", problems=None)),
        (422, {}, problem("moment_ambiguous", numbers=5)),
        (200, {"Content-Encoding": "gzip"}, b"junk"),
    ],
)
def test_an_answer_of_the_wrong_shape_is_an_error_of_ours(
    other: str, status: int, headers: dict[str, str], body: bytes
) -> None:
    Answers.said = [(status, headers, body)]
    with Client.open(other, "k", retries=0) as client, pytest.raises(ServerUnavailable):
        client.whoami()


def test_a_pack_problem_may_say_more_than_this_client_knows(other: str) -> None:
    one = {"line": 3, "path": "pack_meta", "message": "is required", "hint": "new"}
    Answers.said = [(422, {"Retry-After": "soon"}, problem("pack_invalid", problems=[one]))]
    with Client.open(other, "k") as client, pytest.raises(PackInvalid) as raised:
        client.whoami()
    assert [str(found) for found in raised.value.problems] == ["line 3: pack_meta: is required"]


@pytest.mark.parametrize(
    ("status", "body"),
    [(200, b"<html>"), (200, b"{}"), (500, b"<html>"), (502, b""), (418, b'{"code": 1}'), (500, problem("internal"))],
)
def test_an_answer_of_another_program_is_reported_as_such(other: str, status: int, body: bytes) -> None:
    Answers.said = [(status, {}, body)]
    with Client.open(other, "k") as client, pytest.raises(ServerUnavailable):
        client.whoami()


def test_a_redirect_is_not_followed_with_the_key(other: str) -> None:
    Answers.said = [(302, {"Location": "http://127.0.0.1:9/"}, b"")]
    with Client.open(other, "k") as client, pytest.raises(ServerUnavailable, match="302"):
        client.whoami()
    assert len(Answers.asked) == 1


def test_a_server_that_does_not_answer_is_not_waited_for(other: str) -> None:
    Answers.said = [(0, {}, b"")]
    with Client.open(other, "k", timeout=0.1, retries=1) as client, pytest.raises(ServerUnavailable, match="in time"):
        client.whoami()


def test_a_newer_server_may_say_more(other: str) -> None:
    principal = {"tenant_id": "t", "id": "i", "kind": "operator", "roles": [], "mood": "good"}
    Answers.said = [(200, {}, to_json({"principal": principal, "since": "now"}))]
    with Client.open(other, "k") as client:
        assert client.whoami().id == "i"


@pytest.mark.rule("REV-13")
def test_many_are_approved_over_http_as_far_as_they_are_ordinary_or_acknowledged(
    remote: RemoteFabric, local: Fabric, people: People
) -> None:
    facts = ({"write_class": "preference"}, {"write_class": "correction"}, {"write_class": "correction"})
    ids = [
        proposed(local, people.author, entity="customer:c7", predicate=f"p{n}", value=n, **fact).proposal_id
        for n, fact in enumerate(facts)
    ]
    done = remote.client(people.reviewer).queue.approve_many(
        people.reviewer, ids, acknowledge={ids[2]: "in the contract"}
    )
    assert [(one.status, one.error) for one in done] == [
        ("promoted", None),
        ("pending", "left_out"),
        ("promoted", None),
    ]
    assert [[reason.code for reason in one.left_out] for one in done] == [[], ["high_risk"], []]
    assert local.queue.get(people.reviewer, ids[2]).verdicts[-1].reason == "in the contract"
    with pytest.raises(InvalidInput):
        remote.client(people.reviewer).queue.approve_many(people.reviewer, ids[1:2], acknowledge={ids[0]: "seen"})


@pytest.mark.rule("REV-12", "REV-13")
def test_what_contradicts_another_open_proposal_is_left_out_over_http(
    remote: RemoteFabric, local: Fabric, people: People
) -> None:
    ids = [proposed(local, people.run(), **KEY, value=value).proposal_id for value in ("email", "phone")]
    queue = remote.client(people.reviewer).queue
    plan = queue.plan_many(people.reviewer, proposal_ids=ids)
    assert plan.approved == () and [one.proposal_id for one in plan.left_out] == ids
    done = queue.approve_many(people.reviewer, ids)
    assert [(one.status, one.error) for one in done] == [("pending", "left_out")] * 2
    assert [[(why.code, why.detail) for why in one.left_out] for one in done] == [
        [("opposites", ids[1])],
        [("opposites", ids[0])],
    ]


@pytest.mark.rule("AUD-5")
def test_a_clock_is_brought_back_and_the_past_asked_by_number_over_http(
    remote: RemoteFabric, local: Fabric, people: People, server: TestServer, database: str
) -> None:
    admin, agent = remote.client(people.admin), remote.client(people.run().principal)
    ahead = FakeClock(datetime.now(UTC) + timedelta(days=30))
    with Fabric.open(server.url(database), clock=ahead, master_keys=MASTER_KEYS) as early:
        before = early.capture(people.run(), kind="message", text="early", classification="INTERNAL")
    done = admin.work.reset_clock(people.admin, reason="a clock was ahead")
    assert (done.seq, done.was_at, done.reset_by) == (before.seq + 1, before.captured_at, people.admin.id)
    item = proposed(local, people.run(), entity="customer:c1", predicate="p", value="v")
    local.queue.approve(people.reviewer, item.proposal_id)
    assert agent.recall(people.run(), as_of=done.seq).records == ()
    assert agent.recall(people.run(), as_of=datetime.now(UTC)).records != ()
    with pytest.raises(Conflict):
        admin.work.reset_clock(people.admin, reason="again")
