"""Limits of a request (bytes, values, nesting, fields, connections), and the errors beyond them."""

import json
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment import Fabric
from muniment.errors import InvalidInput, TooLarge
from muniment.http.body_scanner import FormScan, JsonScan
from muniment.http.bounds import bounds_of, check_head
from muniment.http.limits import ConcurrencyLimit
from muniment.http.place import Proxies
from muniment.http.settings import ServerSettings
from muniment.model.bounds import LENGTH_LIMIT, check_lengths
from muniment.model.capture import CaptureInput
from muniment.model.context import RunContext
from muniment.model.fields import build
from muniment.testing import People, TestServer
from tests.interfaces.http import RunningServer

OBJECTS: list[dict[str, Any]] = [{}] * 5_000
GOOD = {"kind": "statement", "classification": "INTERNAL", "text": "x"}


@pytest.fixture(scope="module")
def http_server(server: TestServer, database: str) -> Iterator[RunningServer]:
    with RunningServer(
        server, database, ServerSettings(rate=0, bodies_at_once=600_000, body_limit=300_000), ""
    ) as opened:
        yield opened


@pytest.fixture
def bot(http_server: RunningServer, people: People) -> str:
    return http_server.key(people.run())


# ---- the scan ----

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just('"]}{[,\\'),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


def counted(value: Any) -> tuple[int, int]:
    """Values inside of others, and how deep."""
    if not isinstance(value, dict | list):
        return 0, 0
    inside = [counted(one) for one in (value.values() if isinstance(value, dict) else value)]
    return max(1, len(inside)) + sum(one for one, _ in inside), 1 + max((deep for _, deep in inside), default=0)


@pytest.mark.rule("ISO-6")
@given(value=values, chunk=st.integers(1, 9), ascii_only=st.booleans())
def test_a_scan_counts_values_and_nesting_wherever_the_chunks_are_cut(value: Any, chunk: int, ascii_only: bool) -> None:
    body = json.dumps(value, ensure_ascii=ascii_only).encode()
    many, deep = counted(value)

    def scan(values: int, depth: int) -> None:
        scanning = JsonScan(values=values, depth=depth, string=100)
        for at in range(0, len(body), chunk):
            scanning.feed(body[at : at + chunk])

    scan(many, deep)
    if many:
        with pytest.raises(TooLarge):
            scan(many - 1, deep)
        with pytest.raises(InvalidInput):
            scan(many, deep - 1)


@pytest.mark.rule("ISO-6")
@pytest.mark.parametrize("chunk", [7, 65_536])
@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b'{"a": "' + b"x" * 5_000 + b'"}', TooLarge),
        (b"[" + b"9" * 2_000 + b"]", InvalidInput),
        (b"]", InvalidInput),
        (b" " * (5 * 1024 * 1024), TooLarge),
    ],
)
def test_a_scan_refuses_long_texts_long_numbers_and_endless_space(body: bytes, error: type, chunk: int) -> None:
    scanning = JsonScan(values=100, depth=10, string=1_000)
    # What came whole in one chunk is there already.
    parts = [body[at : at + chunk] for at in range(0, len(body), chunk)]
    if len(parts) == 1 and error is TooLarge:
        parts = [body[:10], body[10:-5], body[-5:]]
    with pytest.raises(error):
        for part in parts:
            scanning.feed(part)


@pytest.mark.rule("ISO-6")
def test_a_form_has_a_bounded_number_of_fields() -> None:
    FormScan(fields=3).feed(b"a=1&b=2&c=3")
    with pytest.raises(TooLarge):
        FormScan(fields=3).feed(b"&" * 4)


# ---- lengths before validation ----


@pytest.mark.rule("ISO-6", "CAP-8")
@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"evidence_refs": OBJECTS}, "evidence_refs"),
        ({"evidence_refs": tuple(OBJECTS)}, "evidence_refs"),
        ({"qualifiers": {str(n): {} for n in range(5_000)}}, "qualifiers"),
        ({"payload": OBJECTS * 5}, "payload"),
        ({"payload": ["x" * 100_000] * 3}, "payload"),
        ({"text": "x" * 100_000}, "text"),
    ],
)
def test_the_library_compares_lengths_before_it_validates(
    local: Fabric, people: People, fields: dict[str, Any], named: str
) -> None:
    with pytest.raises(TooLarge) as result:
        local.capture(people.run(), **GOOD | fields)
    assert result.value.field == named
    with pytest.raises(TooLarge) as result:
        local.capture_many(people.run(), [GOOD, GOOD | fields])
    assert result.value.field == f"captures.1.{named}"


@pytest.mark.rule("ISO-6")
def test_unknown_keys_are_not_counted_one_by_one(local: Fabric, people: People) -> None:
    many = {f"k_{chr(97 + n % 26)}{n}": 1 for n in range(50_000)}
    with pytest.raises(InvalidInput, match="is not a known field"):
        local.capture(people.run(), **GOOD, **many)
    with pytest.raises(InvalidInput, match="is not a known field"):
        check_lengths(CaptureInput, many)
    for lists in ({"entities": OBJECTS}, {"classes": OBJECTS}, {"tiers": OBJECTS}):
        with pytest.raises(TooLarge):
            local.recall(people.run(), **lists)
    with pytest.raises(TooLarge) as result:
        RunContext(tenant_id="t", run_id="r", agent_id="a", classification_allowed=[str(n) for n in range(5_000)])
    assert result.value.field == "classification_allowed"


@pytest.mark.rule("ISO-6")
def test_a_list_of_wrong_items_ends_at_the_first(local: Fabric, people: People) -> None:
    for verb, wrong in (
        (local.queue.approve_many, {"proposal_ids": [5] * 10_000}),
        (local.work.requeue, {"capture_ids": [5] * 10_000}),
        (local.record_golden, {"results": [5] * 10_000}),
    ):
        asker = people.reviewer if "proposal_ids" in wrong else people.admin
        with pytest.raises(InvalidInput) as result:
            verb(asker, **wrong)
        assert result.value.field is not None and result.value.field.endswith(".0")
    with pytest.raises(InvalidInput) as result:
        build(CaptureInput, GOOD | {"evidence_refs": [5] * 64})
    assert result.value.field == "evidence_refs.0"
    assert LENGTH_LIMIT <= 1000


@pytest.fixture
def local(http_server: RunningServer) -> Fabric:
    return http_server.local


# ---- over HTTP ----


@pytest.mark.rule("ISO-6")
@pytest.mark.parametrize(
    ("path", "body", "status", "field"),
    [
        ("/v1/captures", {"captures": OBJECTS}, 413, "captures"),
        ("/v1/captures", {**GOOD, "evidence_refs": OBJECTS}, 413, "evidence_refs"),
        ("/v1/captures", {**GOOD, "run": {"run_id": "r", "qualifiers": {str(n): 1 for n in range(900)}}}, 413, "run.qualifiers"),
        ("/v1/captures", {"captures": [GOOD, {**GOOD, "evidence_refs": OBJECTS}]}, 413, "captures.1.evidence_refs"),
        ("/v1/captures", {"captures": [{"kind": 5}] * 1000}, 422, "captures.0.kind"),
        ("/v1/captures", {**GOOD, "payload": [[0]] * 15_000}, 413, "payload"),
        ("/v1/captures", {**GOOD, **{f"k{n}": 1 for n in range(4_000)}}, 422, "body"),
        ("/v1/recall", {"run": {"run_id": "r"}, "entities": [{}] * 900}, 413, "entities"),
        ("/v1/recall", {"run": {"run_id": "r"}, "classes": [{}] * 900}, 422, "classes.0"),
        ("/v1/recall", {"run": {"run_id": "r"}, "entities": OBJECTS}, 413, "body"),
        ("/v1/proposals", {"write_class": "preference", "value": OBJECTS * 4, **GOOD}, 413, "body"),
    ],
)  # fmt: skip
def test_a_body_beyond_its_limits_gets_one_error(
    http_server: RunningServer, bot: str, path: str, body: Any, status: int, field: str
) -> None:
    result = http_server.ask("POST", path, body, key=bot)
    assert (result.status_code, result.json()["field"]) == (status, field), result.text
    assert len(result.content) < 1_000


@pytest.mark.rule("ISO-6")
def test_every_address_has_bounds_and_most_are_small() -> None:
    assert bounds_of("/v1/consents").size == bounds_of("/nothing").size == 256 * 1024
    assert bounds_of("/console/signin").size < 64 * 1024
    assert bounds_of("/v1/captures").size == 16 * 1024 * 1024
    assert bounds_of("/v1/packs/acme@1.0.0/activate").size == bounds_of("/v1/consents").size


@pytest.mark.rule("ISO-6")
def test_long_good_bodies_are_taken_as_short_ones_are(http_server: RunningServer, people: People, bot: str) -> None:
    items = [{**GOOD, "text": f"{n} " + "Ж\n" * 300, "payload": {"n": [n]}} for n in range(150)]
    taken = http_server.ask("POST", "/v1/captures", {"captures": items, "run": {"run_id": "r"}}, key=bot)
    assert taken.status_code == 201 and len(taken.json()["receipts"]) == 150
    short = http_server.ask("POST", "/v1/captures", {"captures": [{"kind": 5}] * 2}, key=bot)
    wrong = http_server.ask("POST", "/v1/captures", {"captures": [{"kind": 5, "text": "x" * 20_000}]}, key=bot)
    assert {name: value for name, value in short.json().items() if name != "request_id"} == {
        name: value for name, value in wrong.json().items() if name != "request_id"
    }


@pytest.mark.rule("ISO-6")
@pytest.mark.parametrize(
    ("method", "path", "headers", "field"),
    [
        ("GET", "/v1/events?" + "types=x&" * 300, {}, "query"),
        ("GET", "/console?" + "&" * 300, {}, "query"),
        ("GET", "/console", {"Cookie": "a=b;" * 300}, "Cookie"),
        ("GET", "/console", {"Host": "["}, "Host"),
        ("GET", "/healthz", {"Host": "a/b@c"}, "Host"),
        ("POST", "/console/signin", {"Content-Type": "multipart/form-data; boundary=x"}, "Content-Type"),
    ],
)
def test_a_head_past_its_bounds_is_refused(
    http_server: RunningServer, method: str, path: str, headers: dict[str, str], field: str
) -> None:
    result = http_server.http.request(method, path, headers={"Accept": "application/json", **headers})
    assert result.status_code in (413, 422) and result.json()["field"] == field, result.text


@pytest.mark.rule("ISO-6")
def test_a_head_with_too_many_headers_is_cut_off(http_server: RunningServer) -> None:
    at = urlsplit(http_server.url)
    with socket.create_connection((str(at.hostname), int(at.port or 0)), timeout=30) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 500 + b"\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 431 ")
    with pytest.raises(TooLarge):
        check_head({"headers": [(b"a", b"b")] * 200, "query_string": b""})


@pytest.mark.rule("ISO-6")
@pytest.mark.parametrize("path", ["/console/signin", "/console/packs", "/console/signout"])
def test_a_form_without_end_is_refused_without_a_credential(http_server: RunningServer, path: str) -> None:
    kind = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    result = http_server.http.post(path, content=b"&" * 30_000, headers=kind)
    assert result.status_code in (401, 413), result.text
    long = http_server.http.post(path, content=b"&" * 20_000_000, headers=kind)
    assert long.status_code == 413


@pytest.mark.rule("ISO-6", "ISO-3")
def test_long_bodies_of_one_credential_do_not_take_all_the_room() -> None:
    limit = ConcurrencyLimit(total=100, each=60)
    assert limit.add("a", 60)
    assert not limit.add("a", 1)
    assert limit.add("b", 40)
    assert not limit.add("c", 1)
    limit.remove("a", 60)
    assert limit.add("c", 60)


@pytest.mark.rule("ISO-6")
def test_one_address_does_not_take_all_the_connections_unless_it_is_a_proxy() -> None:
    limit = ConcurrencyLimit(total=4, each=2, exempt=frozenset({"proxy"}))
    assert [limit.add("a") for _ in range(3)] == [True, True, False]
    assert limit.add("b") and limit.add("proxy")
    assert not limit.add("c")
    for address in ("a", "a", "b"):
        limit.remove(address)
    assert [limit.add("proxy") for _ in range(3)] == [True, True, True]


@pytest.mark.rule("ISO-6")
def test_a_proxy_is_named_by_its_address_or_by_a_network_that_it_is_in() -> None:
    proxies = Proxies(["10.1.0.0/16", "192.0.2.7", "fd00::/8"])
    assert "10.1.200.3" in proxies and "192.0.2.7" in proxies and "fd12::1" in proxies
    for other in ("10.2.0.1", "192.0.2.8", "2001:db8::1", "testclient", ""):
        assert other not in proxies


# ---- who is believed ----


@pytest.mark.rule("ISO-6")
def test_no_proxy_is_believed_that_was_not_named(http_server: RunningServer) -> None:
    # From ten addresses by its own word, and from one in truth: the eleventh guess is one too many.
    answers = [
        http_server.ask(
            "GET", "/v1/whoami", key=f"mun_x.y{n}.z", headers={"X-Forwarded-For": f"192.0.2.{n}"}
        ).status_code
        for n in range(12)
    ]
    assert answers[0] == 401 and answers[-1] == 429


@pytest.mark.rule("ISO-6", "ERR-1")
@pytest.mark.parametrize("origin", ["http://[", "http://[::1", "null", "http://a]b", "http://evil.example"])
@pytest.mark.parametrize("path", ["/console/signin", "/mcp"])
def test_a_broken_or_foreign_origin_is_refused(http_server: RunningServer, bot: str, origin: str, path: str) -> None:
    kind = "application/x-www-form-urlencoded" if path != "/mcp" else "application/json"
    headers = {"Origin": origin, "Content-Type": kind, "Accept": "application/json", "Authorization": f"Bearer {bot}"}
    result = http_server.http.post(path, content=b"key=x", headers=headers)
    said = result.json()["error"]["data"] if path == "/mcp" else result.json()
    assert (result.status_code, said["code"]) == (403, "denied"), result.text


# ---- addresses ----


def test_the_first_address_and_the_one_with_a_slash_lead_to_the_console(http_server: RunningServer) -> None:
    for path in ("/", "/console/"):
        for method in ("GET", "HEAD"):
            result = http_server.http.request(method, path)
            assert (result.status_code, result.headers["location"]) == (307, "/console"), path


@pytest.mark.rule("ERR-1")
@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PATCH", "/v1/consents", {"GET", "POST"}),
        ("PUT", "/v1/packs", {"GET", "POST"}),
        ("PATCH", "/v1/webhooks/whk_1", {"GET", "DELETE"}),
        ("POST", "/healthz", {"GET"}),
        ("GET", "/v1/recall", {"POST"}),
    ],
)
def test_a_wrong_method_is_answered_with_those_that_are_allowed(
    http_server: RunningServer, bot: str, method: str, path: str, allowed: set[str]
) -> None:
    result = http_server.ask(method, path, key=bot)
    assert result.status_code == 405
    assert set(result.headers["allow"].split(", ")) == allowed


@settings(max_examples=30)
@given(st.binary(max_size=200), st.integers(1, 40))
def test_a_form_says_what_the_standard_library_reads_in_it(content: bytes, piece: int) -> None:
    from urllib.parse import unquote_to_bytes

    from muniment.console import forms

    whole = content.replace(b"&", b"")
    before, forms._PIECE = forms._PIECE, piece  # pyright: ignore[reportPrivateUsage]
    try:
        assert forms._decode(whole) == unquote_to_bytes(whole.replace(b"+", b" ")).decode("utf-8", "replace")  # pyright: ignore[reportPrivateUsage]
    finally:
        forms._PIECE = before  # pyright: ignore[reportPrivateUsage]
