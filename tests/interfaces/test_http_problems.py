"""Problems have one shape: what they contain, with which status, and what they never reveal."""

import inspect
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from muniment import AsyncFabric, errors
from muniment.errors import MunimentError
from muniment.http import problems
from muniment.http.settings import ServerSettings
from muniment.testing import People, TestServer
from tests.interfaces.http import PROBLEM, RUN, RunningServer, Wire, logged, without_number

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "http.md"
LIMIT = 128 * 1024
JSON = {"Content-Type": "application/json"}
GOOD = b'"kind": "message", "text": "x", "classification": "INTERNAL"'
# Codes that no server answers with: the parent of all, and what a client says of its server.
NEVER_ANSWERED = {"error", "server_unavailable"}
OF_HTTP = {"method_not_allowed", "unsupported_media_type", "internal"}


@pytest.fixture(scope="module")
def http_server(server: TestServer, database: str) -> Iterator[RunningServer]:
    with RunningServer(server, database, ServerSettings(rate=0, body_limit=LIMIT, body_within=0.5)) as opened:
        yield opened


@pytest.fixture
def bot(http_server: RunningServer, people: People) -> str:
    return http_server.key(people.run())


@pytest.fixture
def admin(http_server: RunningServer, people: People) -> str:
    return http_server.key(people.admin)


def _classes() -> list[type[MunimentError]]:
    return [one for _, one in inspect.getmembers(errors, inspect.isclass) if issubclass(one, MunimentError)]


def test_every_error_has_a_status_and_every_status_an_error() -> None:
    assert {one.code for one in _classes()} - problems.STATUS.keys() == NEVER_ANSWERED
    assert problems.STATUS.keys() - {one.code for one in _classes()} == OF_HTTP


def test_the_page_names_every_code_with_its_status_and_every_route_with_its_roles(http_server: RunningServer) -> None:
    page = PAGE.read_text("utf-8")
    result = {code: int(status) for code, status in re.findall(r"^\| `([a-z_]+)` \| (\d{3}) \|$", page, re.MULTILINE)}
    assert result == problems.STATUS
    rows = re.findall(r"^\| `([A-Z]+ /v1/\S+)` \| (.*?) \| (yes|no) \| \S.* \|$", page, re.MULTILINE)
    assert {route: (set(re.findall(r"`(\w+)`", roles)), only) for route, roles, only in rows} == {
        f"{method} {path}": (set(operation["x-roles"]), "yes" if operation["x-persons-only"] else "no")
        for method, path, operation in http_server.routes()
    }


@pytest.mark.rule("ERR-1")
def test_every_error_becomes_a_problem_of_one_shape() -> None:
    for kind in _classes():
        error = kind([errors.PackProblem(3, "a.b", "no")]) if kind is errors.PackInvalid else kind("said")
        error.field = "some_field"
        answer = problems.of(error, "n1")
        body: dict[str, Any] = __import__("json").loads(bytes(answer.body))
        code = error.code if error.code not in NEVER_ANSWERED else "internal"
        assert body.pop("numbers", []) == []
        assert (answer.status_code, answer.media_type) == (problems.STATUS[code], PROBLEM)
        assert body | {"detail": "", "problems": ()} == {
            "type": f"urn:muniment:problem:{code}", "title": code.replace("_", " ").capitalize(),
            "status": answer.status_code, "detail": "", "code": code, "field": "some_field", "request_id": "n1",
            "problems": (),
        }  # fmt: skip
        assert ("Retry-After" in answer.headers) == (answer.status_code in (429, 503))
        problems.Problem.model_validate(body)
    hidden = bytes(problems.of(errors.KeyUnavailable("no key in /etc/secret"), None).body)
    assert b"secret" not in hidden and b'"code":"key_unavailable"' in hidden


@pytest.mark.rule("ERR-1")
@pytest.mark.parametrize(
    ("body", "field", "detail"),
    [
        (b"{", "body", "is not JSON"),
        (b"", "body", "is required"),
        (b"null", "body", "expected an object"),
        (b"[]", "body", "expected an object"),
        (b'"x"', "body", "expected an object"),
        (b"5", "body", "expected an object"),
        (b"{}", "kind", "is required"),
        (b"{%b, 'x': 1}" % GOOD, "body", "is not JSON"),
        (b'{%b, "tenant_id": "t"}' % GOOD, "tenant_id", "is not a known field"),
        (b'{%b, "\\u0000 key": 1}' % GOOD, "body", "is not a known field"),
        (b'{%b, "run": 5}' % GOOD, "run", "expected an object"),
        (b'{%b, "run": {"run_id": 5}}' % GOOD, "run.run_id", "expected a string"),
        (b'{%b, "kind": 5}' % GOOD, "kind", "expected one of"),
        (b'{%b, "kind": "gossip"}' % GOOD, "kind", "expected one of"),
        (b'{%b, "text": "\\ud800"}' % GOOD, "text", "half of a surrogate pair"),
        (b'{%b, "text": "a\\u0000b"}' % GOOD, "text", "U+0000"),
        (b'{%b, "payload": NaN}' % GOOD, "payload", "not finite"),
        (b'{%b, "payload": [-Infinity]}' % GOOD, "payload", "not finite"),
        (b'{%b, "payload": 1e999}' % GOOD, "payload", "not finite"),
        (b'{%b, "payload": %b}' % (GOOD, b"9" * 400), "payload", "more than 1024 bits"),
        (b'{%b, "payload": %b}' % (GOOD, b"9" * 5000), "body", "more than 1000 digits"),
        (b'{%b, "payload": %b%b}' % (GOOD, b"[" * 40, b"]" * 40), "payload", "nested deeper"),
        (b"[" * 50_000, "body", "nested deeper"),
        (b'{"a":' * 10_000, "body", "nested deeper"),
        (b'{"kind": "\xff"}', "body", "cannot be read"),
        (b'{"kind": "\xed\xa0\x80"}', "kind", "surrogate"),
        (b'{%b, "observed_at": 5}' % GOOD, "observed_at", "ISO 8601"),
        (b'{%b, "observed_at": "2026-01-05T09:00:00"}' % GOOD, "observed_at", "with its zone"),
        (b'{%b, "evidence_refs": 5}' % GOOD, "evidence_refs", "expected a list"),
        (b'{%b, "run": {"run_id": "r", "classification_allowed": "PII"}}' % GOOD, "run.classification_allowed", "expected a list"),
        (b'{%b, "qualifiers": [1]}' % GOOD, "qualifiers", "expected an object"),
        (b'{"captures": []}', "captures", "must not be empty"),
        (b'{"captures": [{%b}, {}]}' % GOOD, "captures.1.kind", "is required"),
        (b'{"captures": [{%b, "source": "operator"}]}' % GOOD, "captures.0.source", "is not a known field"),
    ],
)  # fmt: skip
def test_a_wrong_body_gets_an_error_with_its_field_and_nothing_is_written(
    http_server: RunningServer, people: People, bot: str, body: bytes, field: str, detail: str
) -> None:
    before = http_server.events(people)
    answer = http_server.ask("POST", "/v1/captures", key=bot, content=body, headers=JSON)
    result = without_number(answer)
    assert (answer.status_code, result["code"], result["field"]) == (422, "invalid_input", field), result
    assert detail in result["detail"]
    assert http_server.events(people) == before


def test_an_unknown_parameter_of_a_query_is_refused_by_its_name(
    http_server: RunningServer, people: People, bot: str, admin: str
) -> None:
    reviewer = http_server.key(people.reviewer)
    for path, key in (("/v1/queue", reviewer), ("/v1/whoami", bot), ("/v1/events", http_server.key(people.auditor))):
        problem = without_number(http_server.ask("GET", f"{path}?zzz=1", key=key))
        assert (problem["status"], problem["code"], problem["field"]) == (422, "invalid_input", "zzz")
        assert problem["detail"] == "is not a known field"
    assert without_number(http_server.ask("POST", "/v1/work/consolidate?zzz=1", key=admin))["field"] == "zzz"
    # What is no name of ours is not repeated, and whoever may not ask is problem nothing of the parameters.
    assert without_number(http_server.ask("GET", "/v1/queue?%00%3Cb%3E=1", key=reviewer))["field"] == "query"
    assert without_number(http_server.ask("GET", "/v1/queue?zzz=1", key=bot))["code"] == "role_missing"


def test_of_a_name_given_twice_the_last_counts(http_server: RunningServer, people: People, bot: str) -> None:
    body = b'{"text": "first", "kind": "decision", %b}' % GOOD
    taken = http_server.ask("POST", "/v1/captures", key=bot, content=body, headers=JSON)
    assert taken.status_code == 201
    (captured,) = [event.data for event in http_server.events(people) if event.type == "memory.captured"]
    assert captured["kinds"] == ["message"]


@pytest.mark.rule("CAP-8")
def test_input_that_is_too_long_is_reported(http_server: RunningServer, people: People, bot: str) -> None:
    before = http_server.events(people)
    item = {"kind": "message", "text": "x", "classification": "PUBLIC"}
    for body, field in (({**item, "text": "x" * 32769}, "text"), ({"captures": [item] * 1001}, "captures")):
        answer = http_server.ask("POST", "/v1/captures", {**body, "run": RUN}, key=bot)
        assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (413, "too_large", field)

    def chunks() -> Iterator[bytes]:
        for _ in range(6):
            yield b" " * (LIMIT // 5)

    for content in (b" " * (LIMIT + 1), chunks()):
        for path, once in (("/v1/captures", None), ("/v1/proposals", "k")):
            answer = http_server.ask("POST", path, key=bot, content=content, headers=JSON, once=once)
            result = without_number(answer)
            assert (answer.status_code, result["code"], result["field"]) == (413, "too_large", "body")
            assert result["detail"] == f"is longer than {LIMIT} bytes"
            content = b" " * (LIMIT + 1)
    with Wire(http_server) as wire:
        wire.send(f"POST /v1/captures HTTP/1.1\nAuthorization: Bearer {bot}\nContent-Length: {10**17}")
        assert wire.answer()[0] == 413, "not a byte of it is waited for"
    exact = b'{%b, "payload": "%b"}' % (GOOD, b"")
    padded = exact[:-1] + b" " * (LIMIT - len(exact)) + b"}"
    assert http_server.events(people) == before
    assert http_server.ask("POST", "/v1/captures", key=bot, content=padded, headers=JSON).status_code == 201


@pytest.mark.parametrize("once", ["", "Idempotency-Key: k\n"], ids=["plain", "once"])
def test_a_body_that_does_not_come_or_comes_too_slowly_is_not_waited_for(
    http_server: RunningServer, people: People, admin: str, once: str
) -> None:
    head = f"""POST /v1/webhooks HTTP/1.1
        Authorization: Bearer {admin}
        {once}Content-Type: application/json
        Content-Length: 100"""
    with Wire(http_server) as wire:
        wire.send(head, b"{")
        status, result = wire.answer()
        assert status == 422 and b"took too long to arrive" in result
    with Wire(http_server, patience=0.1) as wire:
        wire.send(head, b"{")
        answered = b""
        for _ in range(98):
            try:
                answered = wire.until(b"}")
                break
            except TimeoutError:
                wire.socket.sendall(b" ")
        assert b"took too long to arrive" in answered, "byte by byte is slow too"
    assert http_server.local.webhooks.list(people.admin) == []


def test_a_head_that_is_too_long_or_never_whole_is_hung_up_on(
    http_server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Wire(http_server) as wire:
        wire.send("GET /healthz HTTP/1.1\n" + "\n".join(f"X-{n}: {'a' * 900}" for n in range(50)))
        assert wire.answer()[0] == 200
    with Wire(http_server) as wire, suppress(BrokenPipeError, ConnectionResetError):
        wire.socket.sendall(b"GET /healthz HTTP/1.1\r\n")
        for _ in range(200):
            wire.socket.sendall(b"a: " + b"b" * 1000 + b"\r\n")
        assert wire.answer()[0] == 431
    monkeypatch.setattr("muniment.http.header_limits.HEAD_WITHIN", 0.1)
    for begun in (b"", b"GET /healthz HTTP/1.1\r\nHost: here\r\n"):
        with Wire(http_server) as wire:
            wire.socket.sendall(begun)
            assert wire.socket.recv(100) == b"", "it is hung up on"


@pytest.mark.parametrize("path", ["/v1/captures", "/v1/webhooks"])
def test_a_caller_who_goes_away_is_nothing_unforeseen(http_server: RunningServer, people: People, path: str) -> None:
    key = http_server.key(people.run() if path == "/v1/captures" else people.admin)
    with logged() as lines:
        with Wire(http_server) as wire:
            wire.send(
                f"""POST {path} HTTP/1.1
                Authorization: Bearer {key}
                X-Request-ID: gone
                Idempotency-Key: k
                Content-Type: application/json
                Content-Length: 100""",
                b"{",
            )
        number: Any = type("Answer", (), {"headers": {"x-request-id": "gone"}})
        (line,) = lines.of(number)
    assert (line["level"], line["status"], line["route"]) == ("info", 422, path)


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/json", None]
)
def test_only_what_is_called_json_is_read_as_json(http_server: RunningServer, bot: str, kind: str | None) -> None:
    headers = {"Content-Type": kind} if kind is not None else {}
    answer = http_server.ask("POST", "/v1/captures", key=bot, content=b"{%b}" % GOOD, headers=headers)
    result = without_number(answer)
    assert (answer.status_code, result["code"], result["field"]) == (415, "unsupported_media_type", "Content-Type")


def test_unknown_addresses_and_methods_are_reported(http_server: RunningServer, admin: str) -> None:
    for path in ("/v1/nothing", "/nothing", "/v1/", "/v1/queue/", "/v1//queue", "/V1/queue", "/v1/queue/a/b", "/../v1"):
        answer = http_server.ask("GET", path, key=admin)
        assert (answer.status_code, without_number(answer)["code"]) == (404, "not_found"), path
    for method, path in (
        ("PUT", "/v1/captures"),
        ("DELETE", "/v1/captures"),
        ("POST", "/healthz"),
        ("OPTIONS", "/v1/queue"),
    ):
        answer = http_server.ask(method, path, key=admin)
        assert (answer.status_code, without_number(answer)["code"]) == (405, "method_not_allowed"), path
        assert answer.headers["allow"], path
    head = http_server.ask("HEAD", "/v1/queue", key=admin)
    assert (head.status_code, head.content) == (405, b"")


def test_a_wrong_page_or_header_is_reported(http_server: RunningServer, people: People, admin: str) -> None:
    reviewer, auditor = http_server.key(people.reviewer), http_server.key(people.auditor)
    for key, path, headers, field in (
        (admin, "/v1/packs?limit=0", {}, "limit"),
        (admin, "/v1/packs?limit=1001", {}, "limit"),
        (admin, "/v1/packs?limit=many", {}, "limit"),
        (admin, "/v1/packs?after=", {}, "after"),
        (admin, "/v1/packs?after=%00", {}, "after"),
        (admin, "/v1/packs/%00", {}, "ref"),
        (admin, "/v1/metrics?since=5", {}, "since"),
        (admin, "/v1/metrics?since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z", {}, "since"),
        (reviewer, "/v1/queue?write_class=gossip", {}, "write_class"),
        (reviewer, "/v1/queue?closed=perhaps", {}, "closed"),
        (auditor, "/v1/events?after=-1", {}, "after"),
        (auditor, f"/v1/events?after={10**30}", {}, "after"),
        (auditor, "/v1/events", {"Accept": "text/event-stream", "Last-Event-ID": "x"}, "Last-Event-ID"),
    ):
        answer = http_server.ask("GET", path, key=key, headers=headers)
        assert (answer.status_code, without_number(answer).get("field")) == (422, field), path
    for match in ("x", '"-1"', '"1.5"', '"' + "9" * 70, '"²"'):
        answer = http_server.ask("POST", "/v1/queue/mwp_0/approve", key=reviewer, headers={"If-Match": match.encode()})
        assert answer.json()["field"] == "If-Match", match
    for once in ("", "a b", "x" * 201, "ä"):
        answer = http_server.ask("POST", "/v1/work/requeue", key=admin, headers={"Idempotency-Key": once.encode()})
        assert (answer.status_code, answer.json()["field"]) == (413 if len(once) > 200 else 422, "Idempotency-Key")
    for run in ("{", "5", '{"run_id": 5}', '{"run_id": "r", "tenant_id": "x"}', '{"run_id": "r", "agent_id": "x"}'):
        answer = http_server.ask(
            "GET", "/v1/memories/pm_0", key=http_server.key(people.run()), headers={"Muniment-Run": run}
        )
        assert (answer.status_code, answer.json()["field"][:3]) == (422, "run"), run


@pytest.mark.rule("ERR-1")
def test_what_nobody_foresaw_is_reported_without_a_word_of_it(
    http_server: RunningServer, people: People, admin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: Any, **__: Any) -> Any:
        raise ValueError("s3cret of cust_1")

    monkeypatch.setattr(AsyncFabric, "adoption", broken)
    with logged() as lines:
        answer = http_server.ask("GET", "/v1/adoption", key=http_server.key(people.auditor))
        unforeseen, request = lines.of(answer)
    assert (answer.status_code, without_number(answer)) == (
        500,
        {
            "type": "urn:muniment:problem:internal", "title": "Internal", "status": 500, "code": "internal",
            "detail": "something went wrong here; the server's log has it",
        },
    )  # fmt: skip
    assert (unforeseen["message"], unforeseen["level"], unforeseen["error"]) == ("unforeseen", "error", "ValueError")
    assert unforeseen["where"][-1].endswith(" broken") and isinstance(unforeseen["at"], str)
    assert request["status"] == 500
    assert "s3cret" not in lines.text and "cust_1" not in lines.text
    assert http_server.ask("GET", "/v1/packs", key=admin).status_code == 200, "and it goes on"
