"""Addresses that the server calls for somebody: one set of rules, and a secret only where it belongs (ISO-7)."""

import json
import socket
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import anyio
import httpx2
import pytest

from muniment import Fabric, load_pack
from muniment.candidates.extractors import extractors_of
from muniment.candidates.extractors.models import Models
from muniment.errors import EmbedderUnavailable, ExtractorFailed, InvalidInput, PackInvalid, Unauthenticated
from muniment.http.oidc import OidcSettings, TokenVerifier
from muniment.http.settings import ServerSettings
from muniment.language.embedding.http import HttpEmbedder
from muniment.outbound import Refused
from muniment.pack import Pack
from muniment.remote import guarded_options
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.candidates.model_server import answer
from tests.language.captures import Kept, capture, extracted
from tests.security.catalogue import Connection

KEY, OTHER_KEY = "sk-first-0815", "sk-second-0816"
SAID = "I prefer the night train."
NAMED = 'pack_meta: {id: p, version: "1.0.0"}\nmemory_layer: {extraction: {messages: false, model: {model: small}}}\n'


class Heard(BaseHTTPRequestHandler):
    """Keeps the credentials that it is sent; answers as told."""

    keys: ClassVar[list[str | None]] = []
    answers: ClassVar[tuple[int, dict[str, str], bytes]] = (200, {}, b"")

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        type(self).keys.append(self.headers.get("Authorization"))
        status, headers, body = self.answers
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = _answer  # noqa: N815  their names there

    def log_message(self, format: str, *args: Any) -> None: ...


@pytest.fixture
def listening(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], tuple[str, type[Heard]]]]:
    """Servers on the loopback, each with what it heard."""
    monkeypatch.setenv("NO_PROXY", "*")
    running: list[ThreadingHTTPServer] = []

    def start() -> tuple[str, type[Heard]]:
        heard = type("Heard", (Heard,), {"keys": [], "answers": (200, {}, answer())})
        server = ThreadingHTTPServer(("127.0.0.1", 0), heard)
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        running.append(server)
        return f"http://127.0.0.1:{server.server_port}", heard

    yield start
    for server in running:
        server.shutdown()
        server.server_close()


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Names and their addresses, as a name server gives them: one after the other, the last for ever."""
    known: dict[str, list[str]] = {}
    real = socket.getaddrinfo

    def resolve(host: Any, port: Any, *args: Any, **more: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if name not in known:
            return real(host, port, *args, **more)
        given = known[name].pop(0) if len(known[name]) > 1 else known[name][0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, int(port or 0))) for address in given.split(",")]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return known


@pytest.fixture
def reached(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Where connections are tried; nobody is reached."""
    tried: list[str] = []

    async def connect_tcp(remote_host: str, *_: Any, **__: Any) -> Any:
        tried.append(remote_host)
        raise OSError("nobody there")

    def create_connection(address: tuple[str, int], *_: Any, **__: Any) -> Any:
        tried.append(address[0])
        raise OSError("nobody there")

    monkeypatch.setattr(anyio, "connect_tcp", connect_tcp)
    monkeypatch.setattr(socket, "create_connection", create_connection)
    return tried


def asked_model(models: Any, pack: Pack | None = None) -> list[Any]:
    (extractor,) = extractors_of(pack or _only_model(), Models.gather(models))
    return extracted(extractor, capture(SAID), Kept())


def _only_model(**settings: Any) -> Pack:
    extraction = {
        "messages": False,
        "said": False,
        "decisions": False,
        "approvals": False,
        "model": {"model": "small", **settings},
    }
    document = {"pack_meta": {"id": "p", "version": "1.0.0"}, "memory_layer": {"extraction": extraction}}
    return Pack.model_validate(document)


@pytest.mark.rule("ISO-7", "PAC-1")
def test_a_pack_with_an_address_is_refused_with_what_to_write_instead(fabric: Fabric, people: People) -> None:
    text = NAMED.replace("{model: small}", '{url: "http://169.254.169.254/v1", model: small, daily_calls: 0}')
    for register in (load_pack, lambda one: fabric.packs.register(people.admin, one)):
        with pytest.raises(PackInvalid) as raised:
            register(text)
        result = {problem.path: problem for problem in raised.value.problems}
        place = "memory_layer.extraction.model.url"
        assert result.keys() == {place, "memory_layer.extraction.model.daily_calls"}, "every error at once"
        assert "MUNIMENT_MODELS" in result[place].message and result[place].line == 2
    assert load_pack(NAMED).memory_layer.extraction.model is not None


@pytest.mark.rule("ISO-7")
def test_a_pack_that_was_registered_with_an_address_still_loads_and_its_address_is_never_called(
    fabric: Fabric, people: People, owner: Connection, listening: Any, server: TestServer, database: str
) -> None:
    place, heard = listening()
    ref = fabric.packs.register(people.admin, NAMED).ref
    owner.execute(
        "UPDATE packs SET document = jsonb_set(document, '{memory_layer,extraction,model,url}', to_jsonb(%s::text))"
        " WHERE tenant_id = %s AND pack = %s",
        [f"{place}/v1", people.tenant_id, ref],
    )
    owner.commit()
    with Fabric.open(server.url(database), clock=FakeClock(), master_keys=MASTER_KEYS) as other:
        old = other.packs.get(people.auditor, ref).pack
    settings = old.memory_layer.extraction.model
    assert settings is not None and settings.url == f"{place}/v1"
    models = {"small": {"url": place, "key": KEY, "allow_private": True}}
    with pytest.raises(ExtractorFailed, match="name one of the server's models"):
        asked_model(models, _only_model(url=f"{place}/v1"))
    assert heard.keys == []


@pytest.mark.rule("ISO-7", "CAN-3")
def test_a_model_that_the_server_does_not_name_parks_the_capture_and_says_so(
    server: TestServer, database: str, clock: FakeClock, people: People
) -> None:
    text = NAMED.replace("extraction: {", "extraction: {tries: 1, ")
    place = server.url(database)
    with Fabric.open(place, pack=load_pack(text), clock=clock, master_keys=MASTER_KEYS, models={}) as fabric:
        done = fabric.capture(people.run(), kind="message", text=SAID, classification="INTERNAL")
        assert fabric.consolidate(people.tenant_id).failed == (done.capture_id,)
        (parked,) = fabric.work.parked(people.admin)
        assert "this server has no model small: set it in MUNIMENT_MODELS" in (parked.error or "")


@pytest.mark.rule("ISO-7")
def test_each_model_gets_its_own_key_and_no_other(
    listening: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (first, heard), (second, also_heard) = listening(), listening()
    monkeypatch.setenv("SECOND_KEY", OTHER_KEY)
    monkeypatch.setenv("MUNIMENT_MODEL_KEY", "server-wide")
    models = {
        "small": {"url": first, "key": KEY, "allow_private": True},
        "large": {"url": second, "key_env": "SECOND_KEY", "allow_private": True},
        "open": {"url": second, "allow_private": True},
    }
    file = tmp_path / "models.json"
    file.write_text(json.dumps(models))
    monkeypatch.setenv("MUNIMENT_MODELS", str(file))
    for name in models:
        asked_model(None, _only_model(model=name))
    assert heard.keys == [f"Bearer {KEY}"]
    assert also_heard.keys == [f"Bearer {OTHER_KEY}", None]
    assert not any(key in repr(Models.gather(models)) for key in (KEY, OTHER_KEY))


@pytest.mark.rule("ISO-7")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_secret_follows_a_redirect(listening: Any, status: int) -> None:
    (place, heard), (elsewhere, nobody) = listening(), listening()
    heard.answers = (status, {"Location": f"{elsewhere}/v1/chat/completions"}, b"")
    with pytest.raises(ExtractorFailed, match="redirects are not followed"):
        asked_model({"small": {"url": place, "key": KEY, "allow_private": True}})
    embedder = HttpEmbedder(place, model="m", dimensions=3, api_key=KEY, allow_private=True)
    with pytest.raises(EmbedderUnavailable, match="redirects are not followed"):
        embedder.embed(["x"])
    assert (len(heard.keys), nobody.keys) == (2, [])


PRIVATE = [
    "http://example.com/v1",
    "https://127.0.0.1/v1",
    "https://localhost/v1",
    "https://10.0.0.8/v1",
    "https://169.254.169.254/v1",
    "https://[::1]/v1",
    "https://[fd00:ec2::254]/v1",
]


@pytest.mark.rule("ISO-7")
@pytest.mark.parametrize("url", PRIVATE)
def test_an_address_that_is_not_public_is_refused_where_it_is_set_unless_it_is_allowed(url: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        Models.gather({"small": {"url": url, "key": KEY, "allow_private": False}})
    assert raised.value.field == "models.small.url" and KEY not in str(raised.value)
    # An address of a model stands in the server's own settings, which allows it.
    assert Models.gather({"small": {"url": url, "key": KEY}}).get("small") is not None
    with pytest.raises(InvalidInput) as raised:
        HttpEmbedder(url, model="m", dimensions=3)
    assert raised.value.field == "url"
    HttpEmbedder(url, model="m", dimensions=3, allow_private=True)


@pytest.mark.rule("ISO-7")
@pytest.mark.parametrize("address", ["127.0.0.1", "10.1.2.3", "169.254.169.254", "8.8.8.8,127.0.0.1"])
def test_a_name_that_leads_to_no_public_address_is_called_by_nobody(
    names: dict[str, list[str]], reached: list[str], address: str
) -> None:
    names["inside.example.com"] = [address]
    with pytest.raises(ExtractorFailed, match="may not be called"):
        asked_model({"small": {"url": "https://inside.example.com/v1", "key": KEY, "allow_private": False}})
    with pytest.raises(EmbedderUnavailable, match="may not be called"):
        HttpEmbedder("https://inside.example.com/v1", model="m", dimensions=3, api_key=KEY).embed(["x"])
    settings = OidcSettings(
        issuer="https://i", audience="a", keys="https://inside.example.com/keys", tenant_claim="org"
    )
    tokens = TokenVerifier(settings, lambda: datetime.now(UTC))
    with pytest.raises(Unauthenticated):
        anyio.run(tokens.check, "eyJhbGciOiJSUzI1NiJ9.e30.c2ln")
    assert reached == []


@pytest.mark.rule("ISO-7")
def test_what_is_connected_to_is_what_was_looked_at_whatever_the_name_says_next(
    names: dict[str, list[str]], reached: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A proxy would connect elsewhere than was looked at.
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    names["turning.example.com"] = ["8.8.8.8", "127.0.0.1"]

    async def call() -> None:
        async with httpx2.AsyncClient(**guarded_options(allow_private=False)) as client:
            with pytest.raises(httpx2.ConnectError):
                await client.get("https://turning.example.com/")
            with pytest.raises(Refused):
                await client.get("https://turning.example.com/")

    anyio.run(call)
    assert reached == ["8.8.8.8"]
    names["turning.example.com"] = ["1.1.1.1,8.8.4.4", "127.0.0.1"]
    with httpx2.Client(**guarded_options(allow_private=False, blocking=True)) as client:
        with pytest.raises(httpx2.ConnectError):
            client.get("https://turning.example.com/")
        with pytest.raises(Refused):
            client.get("https://turning.example.com/")
    assert reached == ["8.8.8.8", "1.1.1.1", "8.8.4.4"]


@pytest.mark.rule("ISO-7")
def test_the_server_of_a_public_address_is_known_by_its_name(names: dict[str, list[str]], monkeypatch: Any) -> None:
    names["model.example.com"] = ["8.8.8.8"]
    sent: list[httpx2.Request] = []

    async def heard(_: Any, request: httpx2.Request) -> httpx2.Response:
        sent.append(request)
        return httpx2.Response(200)

    monkeypatch.setattr(httpx2.AsyncHTTPTransport, "handle_async_request", heard)

    async def call() -> None:
        async with httpx2.AsyncClient(**guarded_options(allow_private=False)) as client:
            await client.post("https://model.example.com:8443/v1?a=b", content=b"body")

    anyio.run(call)
    (request,) = sent
    assert str(request.url) == "https://8.8.8.8:8443/v1?a=b"
    assert request.headers.get_list("host") == ["model.example.com:8443"]
    assert request.extensions["sni_hostname"] == "model.example.com"
    assert request.headers["content-length"] == "4"


@pytest.mark.rule("ISO-7")
def test_signing_in_sends_the_clients_secret_to_no_private_address_unless_that_is_allowed(tmp_path: Path) -> None:
    given = {
        "MUNIMENT_OIDC_ISSUER": "https://i",
        "MUNIMENT_OIDC_AUDIENCE": "a",
        "MUNIMENT_OIDC_KEYS": "https://keys.example.com/jwks",
        "MUNIMENT_OIDC_TENANT_CLAIM": "org",
        "MUNIMENT_OIDC_CLIENT_ID": "console",
        "MUNIMENT_OIDC_CLIENT_SECRET": "s3cret",
        "MUNIMENT_OIDC_AUTHORIZE_URL": "https://i/authorize",
        "MUNIMENT_OIDC_TOKEN_URL": "http://127.0.0.1/token",
        "MUNIMENT_PUBLIC_URL": "https://here",
    }
    with pytest.raises(InvalidInput) as raised:
        ServerSettings.gather(given)
    assert raised.value.field == "MUNIMENT_OIDC_TOKEN_URL"
    allowed = ServerSettings.gather(given | {"MUNIMENT_OIDC_ALLOW_PRIVATE": "1"})
    assert allowed.sign_in is not None and allowed.sign_in.allow_private and "s3cret" not in repr(allowed)
    with pytest.raises(InvalidInput, match="expected 1 or 0"):
        ServerSettings.gather(given | {"MUNIMENT_OIDC_ALLOW_PRIVATE": "maybe"})


@pytest.mark.rule("ISO-7")
def test_the_limits_of_the_server_bound_what_a_pack_asks_for(listening: Any) -> None:
    place, heard = listening()
    models = Models.gather({"small": {"url": place, "allow_private": True, "calls_a_minute": 2, "max_tokens": 64}})
    (extractor,) = extractors_of(_only_model(max_tokens=65536), models)
    heard.answers = (200, {}, b"x" * (1 << 17))
    with pytest.raises(ExtractorFailed, match="more than 69632 bytes"):
        extracted(extractor, capture(SAID), Kept())
    heard.answers = (200, {}, answer())
    assert extracted(extractor, capture(SAID), Kept()) == []
    with pytest.raises(ExtractorFailed, match="as often as its settings allow") as raised:
        extracted(extractor, capture(SAID), Kept())
    assert raised.value.later and len(heard.keys) == 2


@pytest.mark.rule("ISO-7", "ERR-1")
@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"small": {}}, "models.small.url"),
        ({"small": {"url": "https://e.com", "keys": "x"}}, "models.small.keys"),
        ({"small": {"url": "https://e.com", "key": "a\nb"}}, "models.small.key"),
        ({"small": {"url": "https://e.com", "key": KEY, "key_env": "X"}}, "models.small.key"),
        ({"small": {"url": "https://e.com", "key_env": "NOT_SET_ANYWHERE"}}, "models.small.key"),
        ({"small": {"url": "https://e.com", "key_file": "/no/such/file"}}, "models.small.key"),
        ({"small": {"url": f"https://u:{KEY}@e.com"}}, "models.small.url"),
        ({"small": {"url": "https://e.com", "timeout": 5}}, "models.small.timeout"),
        ({"small": {"url": "https://e.com", "max_tokens": 0}}, "models.small.max_tokens"),
        ({"small": "e.com"}, "models.small.url"),
        ({"small": 7}, "models.small"),
        ({"a b": {"url": "https://e.com"}}, "models"),
        ({f"m{n}": {"url": "https://e.com"} for n in range(257)}, "models"),
        ("{", "models"),
        ("[1]", "models"),
        ("/no/such/file.yaml", "models"),
    ],
    ids=str,
)
def test_settings_of_models_that_cannot_be_right_are_refused_at_the_start(wrong: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        Fabric.open("postgresql://nowhere", models=wrong)
    assert raised.value.field == field
    assert KEY not in str(raised.value)


@pytest.mark.rule("ISO-7")
def test_models_may_be_set_in_a_file_of_yaml(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"{KEY}\n")
    file = tmp_path / "models.yaml"
    file.write_text(f"small:\n  url: https://e.com/v1\n  key_file: {tmp_path}/key\n  timeout: 20s\n")
    named = Models.gather(file).get("small")
    assert named is not None and (named.secret, named.model) == (KEY, "small")
