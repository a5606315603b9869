"""The log of the server: a line for each request, counts by route, and no content."""

import logging
import re
from collections.abc import Iterator
from io import StringIO

import anyio
import httpx2
import pytest

from muniment.http import logs
from muniment.http import server as serving
from muniment.http.app import create_app
from muniment.http.server_metrics import ServerMetrics
from muniment.job import JobResult
from muniment.testing import People, TestServer
from muniment.worker.due import Due
from muniment.worker.worker import Worker
from tests.interfaces.http import RUN, RunningServer, logged, without_number
from tests.stories import promoted

SAID = "s3cret-words"


@pytest.fixture(scope="module")
def http_server(server: TestServer, database: str) -> Iterator[RunningServer]:
    with RunningServer(server, database) as opened:
        yield opened


def _counts(http_server: RunningServer) -> dict[tuple[str, str, str], float]:
    """Requests by method, route and status, as Prometheus would read them."""
    found = re.findall(
        r'^muniment_http_requests_total\{method="(.*?)",route="(.*?)",status="(.*?)"\} (.+)$',
        http_server.ask("GET", "/metrics").text,
        re.MULTILINE,
    )
    return {(method, route, status): float(value) for method, route, status, value in found}


@pytest.mark.rule("ERR-1", "EVT-2")
def test_each_request_leaves_a_line_that_says_who_and_where_and_nothing_of_what(
    http_server: RunningServer, people: People
) -> None:
    memory = promoted(http_server.local, people, SAID)
    bot, bot_id = http_server.made(people.run())
    reviewer, reviewer_id = http_server.made(people.reviewer)
    item = {"kind": "message", "text": SAID, "classification": "INTERNAL", "origin": f"tool:{SAID}", "run": RUN}
    asked = [
        (bot, "POST", "/v1/captures", item, "/v1/captures", 201),
        (bot, "POST", "/v1/recall", {"run": RUN, "query": SAID}, "/v1/recall", 200),
        (bot, "POST", "/v1/captures", {**item, SAID: 1}, "/v1/captures", 422),
        (reviewer, "GET", f"/v1/memories/{memory}?note={SAID}", None, "/v1/memories/{memory_id}", 422),
        (reviewer, "POST", f"/v1/queue/{SAID}/reject", {"reason": SAID}, "/v1/queue/{proposal_id}/reject", 404),
        (reviewer, "POST", "/v1/erasures", {"subject": f"customer:{SAID}"}, "/v1/erasures", 403),
        (reviewer, "GET", f"/v1/{SAID}", None, "unknown", 404),
    ]
    with logged() as lines:
        for key, method, path, body, route, status in asked:
            answer = http_server.ask(method, path, body, key=key, once=SAID, headers={"User-Agent": SAID})
            (line,) = lines.of(answer)
            who, key_id = ("bot", bot_id) if key == bot else (people.reviewer.id, reviewer_id)
            expected = {
                "level": "info", "logger": "muniment.http", "message": "request", "method": method, "route": route,
                "status": status, "tenant": people.tenant_id, "principal": who, "key_id": key_id,
                "request_id": answer.headers["x-request-id"],
            }  # fmt: skip
            assert {name: line[name] for name in expected} == expected
            assert line.keys() - expected.keys() == {"at", "ms"}
            assert line["ms"] > 0 and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["at"])
        wrong = http_server.ask("GET", f"/v1/queue?x={SAID}", key=f"{bot}x", headers={"X-Forwarded-For": "192.0.2.77"})
        (line,) = lines.of(wrong)
    assert (line["status"], line["route"]) == (401, "unknown")
    assert line.keys().isdisjoint({"tenant", "principal", "key_id"})
    for secret in (SAID, bot, reviewer, bot.rpartition(".")[2], memory, "192.0.2.77"):
        assert secret not in lines.text


def test_an_error_is_logged_by_its_kind_in_either_form() -> None:
    loggers = [logging.getLogger(name) for name in ("muniment", "procrastinate", "uvicorn.error")]
    before = [(one.handlers, one.propagate, one.level) for one in loggers]
    try:
        for form in ("json", "text", None):
            stream = StringIO()
            logs.set_up(form, stream=stream)
            try:
                raise ValueError(SAID)
            except ValueError:
                logging.getLogger("muniment.jobs").exception("a job failed", extra={"job": "sweep"})
            (line,) = stream.getvalue().splitlines()
            assert "a job failed (ValueError)" in line and "sweep" in line
            assert SAID not in line and line.startswith("{") == (form != "text")
    finally:
        for one, (handlers, propagate, level) in zip(loggers, before, strict=True):
            one.handlers, one.propagate = handlers, propagate
            one.setLevel(level)


def test_requests_are_counted_by_the_pattern_of_their_route(http_server: RunningServer, people: People) -> None:
    key, memory = http_server.key(people.reviewer), promoted(http_server.local, people)
    before = _counts(http_server)
    for path in (f"/v1/memories/{memory}", f"/v1/memories/{memory}", "/v1/memories/pm_0", "/v1/metrics", f"/v1/{SAID}"):
        http_server.ask("GET", path, key=key)
    http_server.ask("GET", f"/{SAID}")
    after = _counts(http_server)
    more = {place: after[place] - before.get(place, 0) for place in after if after[place] != before.get(place, 0)}
    assert more == {
        ("GET", "/v1/memories/{memory_id}", "200"): 2,
        ("GET", "/v1/memories/{memory_id}", "404"): 1,
        ("GET", "/v1/metrics", "200"): 1,
        ("GET", "/metrics", "200"): 1,
        ("GET", "unknown", "404"): 2,
    }
    text = http_server.ask("GET", "/metrics").text
    for result in (memory, people.tenant_id, people.reviewer.id, SAID):
        assert result not in text
    assert "muniment_http_requests_in_flight 1.0" in text, "this one"
    assert 'muniment_http_request_seconds_count{method="GET",route="/v1/memories/{memory_id}"}' in text


def test_the_figures_of_a_tenant_come_to_prometheus_in_its_own_form(http_server: RunningServer, people: People) -> None:
    promoted(http_server.local, people)
    key = http_server.key(people.auditor)
    asked = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.4,*/*;q=0.1"
    scraped = http_server.ask("GET", "/v1/metrics", key=key, headers={"Accept": asked})
    assert scraped.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    samples = [line for line in scraped.text.splitlines() if not line.startswith("#")]
    assert samples and all(f'tenant="{people.tenant_id}"' in line for line in samples)
    for accept in ("application/json", "*/*", "application/json, text/plain, */*"):
        answer = http_server.ask("GET", "/v1/metrics", key=key, headers={"Accept": accept})
        assert answer.json()["tenant_id"] == people.tenant_id


def test_a_server_that_is_about_to_stop_is_not_ready_but_alive(http_server: RunningServer) -> None:
    app = create_app(http_server.local._fabric)

    async def statuses() -> list[int]:
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://server") as http:
            return [(await http.get(path)).status_code for path in ("/readyz", "/healthz")]

    assert http_server.local._portal.call(statuses) == [200, 200]
    app.state.streams.stop()
    assert http_server.local._portal.call(statuses) == [503, 200]


@pytest.mark.rule("JOB-1")
def test_a_worker_inside_that_falls_over_is_started_again_and_its_jobs_are_counted(
    http_server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics, begun = ServerMetrics(), [0]

    async def forever(self: Worker) -> None:
        begun[0] += 1
        if begun[0] == 1:
            raise ValueError(SAID)
        metrics.count_job(Due("t", "seal"), None)
        metrics.count_job(Due("t", "seal"), JobResult())
        at_it.set()

    async def work() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serving._work, http_server.local._fabric, metrics)
            await at_it.wait()
            tasks.cancel_scope.cancel()

    at_it = anyio.Event()
    monkeypatch.setattr(Worker, "forever", forever)
    monkeypatch.setattr(serving, "_RESTART_AFTER", 0.0)
    with logged() as lines:
        http_server.local._portal.call(work)
    assert "the worker failed" in lines.text and "ValueError" in lines.text and SAID not in lines.text
    counted = metrics.text().decode()
    for outcome in ("done", "failed"):
        assert f'muniment_jobs_total{{name="seal",outcome="{outcome}"}} 1.0' in counted


def test_the_metrics_show_what_the_index_in_memory_does_and_takes(http_server: RunningServer, people: People) -> None:
    def shown(name: str) -> float:
        found = re.search(rf"^{name} (.+)$", http_server.ask("GET", "/metrics").text, re.MULTILINE)
        return float(found[1]) if found is not None else 0.0

    used, built = (f'muniment_recall_index_total{{what="{what}"}}' for what in ("used", "built"))
    before = shown(used), shown(built)
    promoted(http_server.local, people, "violet")
    bot, _ = http_server.made(people.run())
    for _ in range(2):
        assert http_server.ask("POST", "/v1/recall", {"run": RUN, "query": "violet"}, key=bot).status_code == 200
    assert (shown(used), shown(built)) == (before[0] + 2, before[1] + 2), "a part of the tenant, and one of the user"
    assert shown("muniment_recall_index_bytes") > 0
    assert shown('muniment_recall_index_total{what="mismatched"}') == 0


@pytest.mark.rule("ERR-3", "ERR-1")
def test_without_its_database_it_is_alive_and_not_ready_and_says_no_more(server: TestServer, people: People) -> None:
    name = server.clone()
    with RunningServer(server, name) as lost, logged() as lines:
        assert lost.ask("GET", "/readyz").json() == {"status": "ready"}
        key = lost.key(people.auditor)
        assert lost.ask("GET", "/v1/events", key=key).status_code == 200
        server.drop(name)
        assert lost.ask("GET", "/healthz").json() == {"status": "ok"}
        for path in ("/readyz", "/v1/events", "/v1/whoami"):
            answer = lost.ask("GET", path, key=key)
            result = without_number(answer)
            assert (answer.status_code, result["code"]) == (503, "storage_unavailable"), path
            assert int(answer.headers["retry-after"]) >= 1
            assert name not in answer.text and "muniment_" not in answer.text
            lines.of(answer)
    assert key not in lines.text
