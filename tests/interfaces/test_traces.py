"""Traces: a request from HTTP through the gates to the statements is part of its caller's trace, without content."""

import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from subprocess import run
from threading import Thread
from typing import ClassVar

import httpx2
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from muniment import Fabric
from muniment.errors import InvalidInput
from muniment.http import traces
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.server_thread import RemoteFabric, ServerThread

SECRET = "The vault opens at midnight."
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.fixture
def exported(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    # As `set_tracer_provider`, which can be said once in a process.
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    monkeypatch.setattr("muniment.tracing._tracer", provider.get_tracer("muniment"))
    return exporter


@pytest.fixture
def remote(server: TestServer, database: str) -> Iterator[RemoteFabric]:
    url = server.url(database)
    with ServerThread.on(url) as served, RemoteFabric(Fabric.open(url, master_keys=MASTER_KEYS), served.url) as opened:
        yield opened


def above(span: ReadableSpan, spans: dict[int, ReadableSpan]) -> list[str]:
    """The names of the spans that it lies within, the nearest first."""
    names: list[str] = []
    while span.parent is not None and (parent := spans.get(span.parent.span_id)) is not None:
        names.append(parent.name)
        span = parent
    return names


def test_a_request_is_one_trace_from_http_to_the_statements(
    exported: InMemorySpanExporter, remote: RemoteFabric, people: People
) -> None:
    token = remote.token(people.run())
    exported.clear()
    fact = {"write_class": "statement", "text": SECRET, "classification": "INTERNAL"}
    headers = {"Authorization": f"Bearer {token}", "traceparent": f"00-{TRACE}-{PARENT}-01"}
    answer = httpx2.post(f"{remote.url}/v1/proposals", json=fact, headers=headers)
    assert answer.status_code == 201
    recalled = {"run": {"run_id": "r1"}, "query": SECRET}
    assert httpx2.post(f"{remote.url}/v1/recall", json=recalled, headers=headers).status_code == 200
    spans = {one.context.span_id: one for one in exported.get_finished_spans() if one.context is not None}
    by_name = {one.name: one for one in spans.values()}
    requests = [one for one in spans.values() if one.name == "HTTP POST"]
    assert {str((one.attributes or {})["muniment.route"]) for one in requests} >= {"/v1/proposals", "/v1/recall"}
    assert all(one.parent is not None and f"{one.parent.span_id:016x}" == PARENT for one in requests)
    assert {f"{one.context.trace_id:032x}" for one in spans.values() if one.context} == {TRACE}
    for name in ("capture", "gates", "recall", "sql commit"):
        assert above(by_name[name], spans)[-1] == "HTTP POST", name
    assert any(one.name == "sql commit" and "recall" in above(one, spans) for one in spans.values())
    result = repr([(one.name, dict(one.attributes or {}), one.events) for one in spans.values()])
    assert "vault" not in result
    assert token not in result


def test_an_error_marks_its_span_by_its_kind_and_not_by_its_words(
    exported: InMemorySpanExporter, remote: RemoteFabric, people: People
) -> None:
    wrong = {"run": {"run_id": "r1", "classification_allowed": [SECRET]}}
    headers = {"Authorization": f"Bearer {remote.token(people.run())}"}
    assert httpx2.post(f"{remote.url}/v1/recall", json=wrong, headers=headers).status_code == 403
    result = [(one.name, one.status.description) for one in exported.get_finished_spans()]
    assert ("HTTP POST", None) in result
    assert SECRET not in repr([one.to_json() for one in exported.get_finished_spans()])


def test_what_an_assistant_asks_for_is_in_no_span(
    exported: InMemorySpanExporter, remote: RemoteFabric, people: People
) -> None:
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": SECRET, "arguments": {}}}
    headers = {"Authorization": f"Bearer {remote.token(people.run())}", "Accept": "application/json, text/event-stream"}
    assert httpx2.post(f"{remote.url}/mcp", json=asked, headers=headers).status_code == 200
    result = [one.to_json() for one in exported.get_finished_spans()]
    assert any('"/mcp"' in one for one in result)
    assert "vault" not in repr(result)


class Collector(BaseHTTPRequestHandler):
    """Takes what it is sent."""

    got: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        self.got.append(self.path)
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None: ...  # type: ignore[override]


def test_spans_are_sent_to_the_collector_that_the_environment_names() -> None:
    assert not traces.set_up("0", {})
    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as running:
        Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        endpoint = f"http://127.0.0.1:{running.server_address[1]}"
        program = (
            "from muniment.http import traces; from muniment.tracing import span; from opentelemetry import trace\n"
            "assert traces.set_up('0')\n"
            "with span('a', count=1): pass\n"
            "trace.get_tracer_provider().shutdown()"
        )
        run([sys.executable, "-c", program], check=True, env={"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint})
        running.shutdown()
    assert Collector.got == ["/v1/traces"]


def test_without_the_sdk_it_is_reported_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(InvalidInput, match=r"muniment\[otel\]"):
        traces.set_up("0", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"})
