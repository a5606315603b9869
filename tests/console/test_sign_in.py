"""Signing in: with a key or at an issuer; sessions that end with their credential; forms that are really ours."""

import json
import time
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from jwt.algorithms import ECAlgorithm

from muniment import Fabric
from muniment.console.sessions import LASTS, Sessions
from muniment.errors import InvalidInput
from muniment.http.settings import ServerSettings
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.server_thread import NO_LIMITS, RemoteFabric, ServerThread

HTML = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def served(server: TestServer, database: str) -> Iterator[ServerThread]:
    with ServerThread.on(server.url(database), NO_LIMITS) as running:
        yield running


@pytest.fixture
def remote(server: TestServer, database: str, served: ServerThread) -> Iterator[RemoteFabric]:
    with RemoteFabric(Fabric.open(server.url(database), master_keys=MASTER_KEYS), served.url) as opened:
        yield opened


@pytest.fixture
def browser(served: ServerThread) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=served.url, headers=HTML) as opened:
        yield opened


def signed_in(browser: httpx2.Client, token: str, to: str = "/console") -> httpx2.Response:
    return browser.post("/console/signin", data={"key": token, "next": to})


def form_token(page: str) -> str:
    return page.partition('data-form-token="')[2].partition('"')[0]


def test_a_key_becomes_a_session_that_no_script_and_no_other_site_can_use(
    browser: httpx2.Client, remote: RemoteFabric, people: People
) -> None:
    assert browser.get("/console/queue").headers["location"] == "/console/signin?next=%2Fconsole%2Fqueue"
    answer = signed_in(browser, token := remote.token(people.reviewer), "/console/queue")
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/queue")
    cookie = answer.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict", "Path=/console"} <= {part.strip() for part in cookie.split(";")}
    assert token not in cookie
    assert browser.get("/console").status_code == 303


@pytest.mark.parametrize("to", ["//evil.example", "https://evil.example", "/console/../v1", "/consolex", "/\\evil", ""])
def test_nobody_is_sent_elsewhere_after_signing_in(
    browser: httpx2.Client, remote: RemoteFabric, people: People, to: str
) -> None:
    assert signed_in(browser, remote.token(people.reviewer), to).headers["location"] == "/console"


def test_a_wrong_key_and_keys_of_agents_and_services_are_refused_with_the_reason(
    browser: httpx2.Client, remote: RemoteFabric, people: People
) -> None:
    wrong = signed_in(browser, "mun_nothing")
    assert (wrong.status_code, 'role="alert"' in wrong.text, "set-cookie" in wrong.headers) == (401, True, False)
    for asker in (people.run(), people.service):
        refused = signed_in(browser, remote.token(asker))
        assert refused.status_code == 401
        assert "for people" in refused.text


def test_nobody_is_signed_in_by_another_site(browser: httpx2.Client, remote: RemoteFabric, people: People) -> None:
    form = {"key": remote.token(people.reviewer)}
    refused = browser.post("/console/signin", data=form, headers={"Origin": "https://evil.example"})
    assert (refused.status_code, "set-cookie" in refused.headers) == (403, False)
    assert browser.post("/console/signin", data=form, headers={"Origin": str(browser.base_url)}).status_code == 303


def test_a_session_ends_with_its_key(browser: httpx2.Client, remote: RemoteFabric, people: People) -> None:
    signed_in(browser, token := remote.token(people.reviewer))
    assert browser.get("/console").headers["location"] == "/console/queue"
    remote.local.keys.revoke(people.admin, token.split(".")[1])
    assert browser.get("/console").headers["location"].startswith("/console/signin")
    assert browser.get("/console", headers={"Accept": "application/json"}).status_code == 401


def test_signing_out_takes_the_cookie_away_and_only_a_form_of_ours_does(
    browser: httpx2.Client, remote: RemoteFabric, people: People
) -> None:
    signed_in(browser, remote.token(people.reviewer))
    page = browser.get("/console/nowhere").text
    for wrong in ({}, {"form_token": "x"}, {"form_token": "ü"}):
        assert browser.post("/console/signout", data=wrong).status_code == 403
    right = {"form_token": form_token(page)}
    assert browser.post("/console/signout", data=right, headers={"Origin": "https://evil.example"}).status_code == 403
    assert browser.get("/console").status_code == 303
    done = browser.post("/console/signout", data=right)
    assert (done.status_code, done.headers["location"]) == (303, "/console/signin")
    assert browser.get("/console").headers["location"].startswith("/console/signin")


def test_the_form_of_one_session_is_none_of_another(
    browser: httpx2.Client, remote: RemoteFabric, people: People
) -> None:
    signed_in(browser, remote.token(people.reviewer))
    first = form_token(browser.get("/console/nowhere").text)
    signed_in(browser, remote.token(people.reviewer))
    assert browser.post("/console/signout", data={"form_token": first}).status_code == 403


def test_what_is_not_for_a_role_is_not_in_its_menu(
    browser: httpx2.Client, remote: RemoteFabric, people: People
) -> None:
    shown: dict[str, set[str]] = {}
    for asker in (people.reviewer, people.officer, people.auditor, people.author):
        signed_in(browser, remote.token(asker))
        page = browser.get("/console/nowhere").text
        shown[asker.id] = {part.partition('"')[0] for part in page.split('href="/console/')[1:]} - {"static"}
    assert {"queue", "memory"} <= shown["boris"]
    assert "consent" not in shown["boris"]
    assert {"consent", "erasures"} <= shown["petra"]
    assert "queue" not in shown["petra"]
    assert {"audit", "metrics"} <= shown["anton"]
    # Who writes corrections has a home too.
    home = browser.get("/console")
    assert (home.status_code, home.headers["location"]) == (303, "/console/state")
    signed_in(browser, remote.token(people.person("nora", "agent")))
    assert browser.get("/console").status_code == 403


def test_pages_hold_nothing_inline_and_load_nothing_from_elsewhere(browser: httpx2.Client) -> None:
    page = browser.get("/console/signin")
    policy = page.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert page.headers["cache-control"] == "no-store"
    assert "http" not in page.text.replace("http-equiv", "").replace("http://www.w3.org", "")
    for name in ("console.css", "console.js", "icon.svg"):
        assert browser.get(f"/console/static/{name}").status_code == 200
    for name in ("..%2fapp.py", "app.py", "nothing.css"):
        assert browser.get(f"/console/static/{name}").status_code == 404


def test_a_cookie_that_was_changed_made_up_or_is_over_is_none() -> None:
    clock = FakeClock()
    sessions, others = Sessions(b"a" * 32), Sessions(b"b" * 32)
    session, cookie = sessions.begin("token", clock())
    assert sessions.open(cookie, clock()) == session
    assert sessions.open(cookie, clock() + LASTS) is None
    assert others.open(cookie, clock()) is None
    # What was sealed on the way to an issuer is no session, and a session is no way back from one.
    assert sessions.open(sessions.begin("token", clock(), purpose="signin")[1], clock()) is None
    assert sessions.open(cookie, clock(), purpose="signin") is None
    for wrong in (None, "", "x", cookie[:-2], cookie[:-1] + ("A" if cookie[-1] != "A" else "B"), "ä", "A" * 9000):
        assert sessions.open(wrong, clock()) is None
    assert not sessions.is_form_token(session, None)


# ---- at an issuer ----


class Issuer(BaseHTTPRequestHandler):
    """Gives a token for the one code it knows, to who shows the verifier of the challenge."""

    token: ClassVar[str] = ""
    padding: ClassVar[int] = 0
    asked: ClassVar[list[dict[str, list[str]]]] = []

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.asked.append(form)
        answer = {"id_token": self.token, "more": "x" * self.padding}
        body = json.dumps(answer if form["code"] == ["good"] else {"error": "no"}).encode()
        self.send_response(200 if form["code"] == ["good"] else 400)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None: ...  # type: ignore[override]


@pytest.fixture
def at_issuer(
    server: TestServer, database: str, people: People, tmp_path: Any
) -> Iterator[tuple[httpx2.Client, dict[str, Any]]]:
    key = generate_private_key(SECP256R1())
    public = json.loads(ECAlgorithm.to_jwk(key.public_key())) | {"kid": "k1", "alg": "ES256"}
    (tmp_path / "jwks.json").write_text(json.dumps({"keys": [public]}))
    with ThreadingHTTPServer(("127.0.0.1", 0), Issuer) as issuer:
        Thread(target=issuer.serve_forever, args=(0.01,), daemon=True).start()
        place = f"http://127.0.0.1:{issuer.server_address[1]}"
        settings = ServerSettings.gather(
            {
                "MUNIMENT_RATE": "0",
                "MUNIMENT_OIDC_ISSUER": place,
                "MUNIMENT_OIDC_AUDIENCE": "console",
                "MUNIMENT_OIDC_KEYS": str(tmp_path / "jwks.json"),
                "MUNIMENT_OIDC_TENANT_CLAIM": "tenant",
                "MUNIMENT_OIDC_ROLES_CLAIM": "groups",
                "MUNIMENT_OIDC_ROLE_MAP": "desk=reviewer",
                "MUNIMENT_OIDC_CLIENT_ID": "console",
                "MUNIMENT_OIDC_CLIENT_SECRET": "s3cret",
                "MUNIMENT_OIDC_AUTHORIZE_URL": f"{place}/authorize",
                "MUNIMENT_OIDC_TOKEN_URL": f"{place}/token",
                "MUNIMENT_PUBLIC_URL": "http://127.0.0.1:1",
                "MUNIMENT_OIDC_ALLOW_PRIVATE": "1",
            }
        )
        with ServerThread.on(server.url(database), settings) as running:
            now = int(time.time())
            claims = {"iss": place, "aud": "console", "sub": "boris", "tenant": people.tenant_id, "groups": ["desk"]}
            Issuer.token = jwt.encode({**claims, "iat": now, "exp": now + 600}, key, "ES256", headers={"kid": "k1"})
            Issuer.asked = []
            with httpx2.Client(base_url=running.url, headers=HTML) as browser:
                yield browser, claims
        issuer.shutdown()


def began(browser: httpx2.Client) -> dict[str, list[str]]:
    sent = browser.get("/console/signin/oidc?next=/console/queue")
    assert sent.status_code == 303
    return parse_qs(urlsplit(sent.headers["location"]).query)


def test_who_signs_in_at_the_issuer_comes_back_with_a_session(at_issuer: tuple[httpx2.Client, Any]) -> None:
    browser, _ = at_issuer
    assert "Sign in with 127.0.0.1" in browser.get("/console/signin").text
    asked = began(browser)
    assert asked["redirect_uri"] == ["http://127.0.0.1:1/console/signin/callback"]
    back = browser.get(f"/console/signin/callback?code=good&state={asked['state'][0]}")
    assert back.status_code == 200
    assert 'content="0; url=/console/queue"' in back.text
    assert browser.get("/console").headers["location"] == "/console/queue"
    assert Issuer.asked[0]["client_secret"] == ["s3cret"]
    assert len(Issuer.asked[0]["code_verifier"][0]) >= 43


def test_who_signs_in_at_the_issuer_is_seen_so_that_their_notices_go_on(
    at_issuer: tuple[httpx2.Client, Any], fabric: Fabric, people: People
) -> None:
    browser, _ = at_issuer
    long_ago = fabric.notices.set(people.reviewer, channel="browser").seen_at
    state = began(browser)["state"][0]
    assert browser.get(f"/console/signin/callback?code=good&state={state}").status_code == 200
    (shown,) = fabric.notices.list(people.admin, everyone=True)
    assert shown.seen_at is not None and long_ago is not None
    assert shown.seen_at > long_ago + timedelta(days=1), "the server's clock is the system's"


def test_a_sign_in_that_was_not_begun_here_or_is_refused_there_is_none(at_issuer: tuple[httpx2.Client, Any]) -> None:
    browser, _ = at_issuer
    assert browser.get("/console/signin/callback?code=good&state=x").status_code == 401
    asked = began(browser)
    for query in ("code=good&state=other", f"state={asked['state'][0]}", f"code=bad&state={asked['state'][0]}"):
        refused = browser.get(f"/console/signin/callback?{query}")
        assert refused.status_code == 401
        assert "muniment_session" not in refused.headers.get("set-cookie", "")
    Issuer.padding = 300 * 1024
    assert browser.get(f"/console/signin/callback?code=good&state={asked['state'][0]}").status_code == 401
    Issuer.padding, Issuer.token = 0, "not.a.token"
    assert browser.get(f"/console/signin/callback?code=good&state={asked['state'][0]}").status_code == 401


def test_an_error_page_leads_back_to_pages_of_the_console_alone(served: ServerThread) -> None:
    def leads_to(referer: str) -> str:
        page = httpx2.get(f"{served.url}/console/nowhere", headers=HTML | {"Referer": referer}).text
        return page.partition('class="button" href="')[2].partition('"')[0]

    assert leads_to(f"{served.url}/console/queue?class=preference") == "/console/queue?class=preference"
    for elsewhere in ("https://evil.example/console/queue", f"{served.url}/v1/queue", "javascript:alert(1)", "//[", ""):
        assert leads_to(elsewhere) == "/console", elsewhere


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"MUNIMENT_OIDC_CLIENT_ID": "c"}, "MUNIMENT_OIDC_AUTHORIZE_URL"),
        (
            {
                "MUNIMENT_OIDC_CLIENT_ID": "c",
                "MUNIMENT_OIDC_AUTHORIZE_URL": "http://issuer.example/a",
                "MUNIMENT_OIDC_TOKEN_URL": "https://issuer.example/t",
                "MUNIMENT_PUBLIC_URL": "https://memory.example",
            },
            "MUNIMENT_OIDC_AUTHORIZE_URL",
        ),
        (
            {
                "MUNIMENT_OIDC_CLIENT_ID": "c",
                "MUNIMENT_OIDC_AUTHORIZE_URL": "https://issuer.example/a",
                "MUNIMENT_OIDC_TOKEN_URL": "https://issuer.example/t",
                "MUNIMENT_PUBLIC_URL": "https://memory.example",
            },
            "MUNIMENT_OIDC_ISSUER",
        ),
    ],
)
def test_an_incomplete_issuer_is_reported_before_the_server_starts(given: dict[str, str], field: str) -> None:
    with pytest.raises(InvalidInput) as wrong:
        ServerSettings.gather(given)
    assert wrong.value.field == field
