"""The log as a stream: in order, resumed anywhere without loss or repetition, ended when it must be; and as pages."""

import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import islice
from time import monotonic
from types import SimpleNamespace
from typing import Any

import anyio
import httpx2
import pytest

from muniment.http import event_stream as streaming
from muniment.http.server_metrics import ServerMetrics
from muniment.http.settings import ServerSettings
from muniment.model.events import Event
from muniment.testing import People, TestServer
from muniment.webhooks.messages import encoded
from tests.interfaces.http import RunningServer
from tests.stories import promoted

STREAM = {"Accept": "text/event-stream"}
MOST = 3
Sent = tuple[str, str, dict[str, Any]]


@pytest.fixture(scope="module")
def http_server(server: TestServer, database: str) -> Iterator[RunningServer]:
    with RunningServer(server, database, ServerSettings(rate=0, streams=MOST)) as opened:
        yield opened


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "LOOK_EVERY", 0.02)


@pytest.fixture
def auditor(http_server: RunningServer, people: People) -> str:
    return http_server.key(people.auditor)


class Following:
    """An open stream, read one block at a time."""

    def __init__(self, response: httpx2.Response) -> None:
        self.response = response
        self._lines = response.iter_lines()

    def blocks(self) -> Iterator[list[str]]:
        """What stands between two empty lines, to the end of the stream."""
        block: list[str] = []
        for line in self._lines:
            if line:
                block.append(line)
            elif block:
                yield block
                block = []

    def events(self, count: int) -> list[Sent]:
        """The next so many events."""
        return list(islice(self._events(), count))

    def _events(self) -> Iterator[Sent]:
        for block in self.blocks():
            fields = dict(line.split(": ", 1) for line in block)
            if "data" in fields:
                yield fields["id"], fields["event"], json.loads(fields["data"])


@contextmanager
def following(http_server: RunningServer, key: str, query: str = "", **headers: str) -> Generator[Following]:
    sent = STREAM | headers | {"Authorization": f"Bearer {key}"}
    with http_server.http.stream("GET", f"/v1/events{query}", headers=sent) as response:
        yield Following(response)


def _as_sent(event: Event) -> Sent:
    return f"{event.seq}.{event.n}", event.type, json.loads(encoded(event))


@pytest.mark.rule("EVT-1", "EVT-2")
def test_a_stream_gives_the_whole_log_in_order_and_goes_on(
    http_server: RunningServer, people: People, auditor: str
) -> None:
    promoted(http_server.local, people)
    log = [_as_sent(event) for event in http_server.events(people)]
    with following(http_server, auditor) as stream:
        assert stream.response.headers["content-type"].startswith("text/event-stream")
        assert stream.response.headers["cache-control"] == "no-store"
        assert next(stream.blocks()) == ["retry: 2000"]
        assert stream.events(len(log)) == log
        for n in range(3):
            promoted(http_server.local, people, f"value {n}", predicate=f"p{n}")
            fresh = [_as_sent(event) for event in http_server.events(people)][len(log) :]
            assert fresh and stream.events(len(fresh)) == fresh
            log += fresh
    assert "value" not in str(log)
    with following(http_server, auditor, f"?after={log[3][0].split('.')[0]}") as stream:
        later = [one for one in log if int(one[0].split(".")[0]) > int(log[3][0].split(".")[0])]
        assert stream.events(len(later)) == later


@pytest.mark.rule("EVT-1")
def test_a_stream_is_resumed_after_any_event_also_amid_a_transaction(
    http_server: RunningServer, people: People, auditor: str
) -> None:
    promoted(http_server.local, people)
    log = [_as_sent(event) for event in http_server.events(people)]
    numbers = [one[0].split(".")[0] for one in log]
    assert len(set(numbers)) < len(numbers), "some came of one transaction"
    for place, (last, _, _) in enumerate(log[:-1]):
        with following(http_server, auditor, **{"Last-Event-ID": last}) as stream:
            assert stream.events(len(log) - place - 1) == log[place + 1 :]
    with following(http_server, auditor, **{"Last-Event-ID": "0.0"}) as stream:
        assert stream.events(len(log)) == log
    with following(http_server, auditor, "?after=0", **{"Last-Event-ID": log[-1][0]}) as stream:
        promoted(http_server.local, people, "post", predicate="later")
        assert stream.events(1) == [_as_sent(http_server.events(people)[len(log)])], "nothing twice"


def test_a_page_of_events_is_followed_by_the_next(
    http_server: RunningServer, people: People, auditor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(4):
        promoted(http_server.local, people, predicate=f"p{n}")
    log = http_server.events(people)
    for limit in (1, 2, 5, 1000):
        found: list[Any] = []
        after: str | None = "0"
        while after is not None:
            page = http_server.ask("GET", f"/v1/events?limit={limit}&after={after}", key=auditor).json()
            assert page["items"] or len(found) == len(log)
            found += page["items"]
            after = page["next"]
        assert [Event.model_validate(one) for one in found] == log
    monkeypatch.setattr(streaming, "PAGE", 2)
    with following(http_server, auditor) as stream:
        assert stream.events(len(log)) == [_as_sent(event) for event in log], "however many are read at once"


def test_a_silent_stream_says_that_it_is_still_there(
    http_server: RunningServer, people: People, auditor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "ALIVE_EVERY", 0.05)
    log = http_server.events(people)
    with following(http_server, auditor, f"?after={log[-1].seq}") as stream:
        assert list(islice(stream.blocks(), 3)) == [["retry: 2000"], [": still here"], [": still here"]]


@pytest.mark.rule("ISO-1")
def test_nobody_is_sent_another_tenants_events(
    http_server: RunningServer, people: People, others: People, auditor: str
) -> None:
    theirs = http_server.key(others.auditor)
    with following(http_server, auditor) as mine, following(http_server, theirs) as other:
        for n in range(3):
            promoted(http_server.local, people, predicate=f"p{n}")
            promoted(http_server.local, others, predicate=f"p{n}")
        for stream, whose in ((mine, people), (other, others)):
            log = [_as_sent(event) for event in http_server.events(whose)]
            assert stream.events(len(log)) == log
            assert all(whose.tenant_id in one["source"] for _, _, one in log)


@pytest.mark.rule("ISO-5")
@pytest.mark.parametrize("how", ["revoked", "expired"])
def test_a_stream_sends_nothing_more_once_its_key_does_not_hold(
    http_server: RunningServer, people: People, how: str
) -> None:
    key, key_id = http_server.made(people.auditor, expires_in="1d")
    known = len(http_server.events(people))
    with following(http_server, key) as stream:
        assert len(stream.events(known)) == known
        if how == "revoked":
            http_server.local.keys.revoke(people.admin, key_id)
        else:
            http_server.clock.advance(days=2)
            promoted(http_server.local, people)
        assert list(stream.blocks()) == [[": unauthenticated"]], "not even that its key was revoked"
    assert http_server.ask("GET", "/v1/events", key=key, headers=STREAM).status_code == 401


def test_only_so_many_streams_of_one_principal_are_open_at_once(
    http_server: RunningServer, people: People, auditor: str
) -> None:
    with following(http_server, auditor) as one, following(http_server, auditor) as two:
        assert one.events(1) == two.events(1)
        with following(http_server, auditor) as three:
            assert three.events(1) == [_as_sent(http_server.events(people)[0])]
            for key in (auditor, http_server.key(people.auditor)):
                refused = http_server.ask("GET", "/v1/events", key=key, headers=STREAM)
                assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
                assert int(refused.headers["retry-after"]) > 0
            assert http_server.ask("GET", "/v1/events", key=auditor).status_code == 200, "a page is no stream"
            with following(http_server, http_server.key(people.person("anna", "auditor"))) as somebody:
                assert somebody.events(1)
        deadline = monotonic() + 60
        while True:
            with following(http_server, auditor) as again:
                if again.response.status_code == 200:
                    break
            assert monotonic() < deadline, "what was closed still counts"


@pytest.mark.parametrize("query", ["?latest=true", "?types=memory.promoted", "?about=pm_1"])
def test_a_stream_has_all_events_and_cannot_be_narrowed(http_server: RunningServer, auditor: str, query: str) -> None:
    with following(http_server, auditor, query) as refused:
        assert refused.response.status_code == 422


def test_of_streams_that_are_opened_at_the_same_moment_no_more_go_on_than_may_be_open() -> None:
    streams = streaming.Streams(ServerMetrics(), 2)
    whose: Any = SimpleNamespace(tenant_id="t", principal=SimpleNamespace(id="anna"))

    async def check_again() -> Any:
        raise AssertionError("nothing is sent")

    async def at_once() -> list[list[Any]]:
        # None of them has begun when the last is let in.
        opened = [aiter(streams.open(whose, None, None, check_again).body_iterator) for _ in range(4)]
        first = [await anext(one) for one in opened]
        streams.stop()
        return [[chunk, *[more async for more in one]] for chunk, one in zip(first, opened, strict=True)]

    going, ended = [b"retry: 2000\n\n"], [b"retry: 2000\n\n", b": rate_limited\n\n"]
    assert anyio.run(at_once) == [going, going, ended, ended]


def test_streams_end_when_the_server_stops(server: TestServer, database: str, people: People) -> None:
    with RunningServer(server, database) as stopping:
        key = stopping.key(people.auditor)
        with following(stopping, key) as stream:
            assert stream.events(1)
            began = monotonic()
            stopping.served.stop()
            rest = list(stream.blocks())
            assert all(block[0].startswith("id: ") for block in rest), "an end, not a break"
        assert monotonic() - began < 10, "nobody waits for a stream"
