"""The proxy of compose.yaml, run with its own configuration in front of a real server."""

import os
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from muniment.testing import People, TestServer
from tests.docs.test_deploy import DEPLOY
from tests.interfaces.http import RunningServer

CADDY = shutil.which("caddy", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
pytestmark = pytest.mark.skipif(CADDY is None, reason="caddy is not installed: make lint-deploy installs it")


@dataclass
class Proxied:
    behind: RunningServer
    http: httpx2.Client
    plain: str


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


@pytest.fixture(scope="module")
def proxied(server: TestServer, database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxied]:
    assert CADDY is not None
    data, port, plain = tmp_path_factory.mktemp("caddy"), free_port(), free_port()
    with RunningServer(server, database) as running:
        environment = os.environ | {
            "DOMAIN": f"localhost:{port}", "SERVER": running.url.removeprefix("http://"), "HTTP_PORT": str(plain),
            "XDG_DATA_HOME": str(data), "XDG_CONFIG_HOME": str(data),
        }  # fmt: skip
        command = [CADDY, "run", "--adapter", "caddyfile", "--config", str(DEPLOY / "Caddyfile")]
        with (data / "log").open("wb") as log:
            process = subprocess.Popen(command, env=environment, stderr=log, stdout=log)
        try:
            root = data / "caddy" / "pki" / "authorities" / "local" / "root.crt"
            _wait(root.exists, process, data / "log")
            trusted = ssl.create_default_context(cafile=str(root))
            with httpx2.Client(
                base_url=f"https://localhost:{port}", verify=trusted, timeout=30, trust_env=False
            ) as http:
                _wait(lambda: _answers(http), process, data / "log")
                yield Proxied(running, http, f"http://localhost:{plain}")
        finally:
            process.terminate()
            process.wait(30)


def test_calls_reach_the_server_over_tls(proxied: Proxied) -> None:
    people = People("tenant_proxied")
    key = proxied.behind.key(people.auditor)
    answer = proxied.http.get("/v1/whoami", headers={"Authorization": f"Bearer {key}"})
    assert answer.status_code == 200 and people.tenant_id in answer.text
    assert answer.headers["strict-transport-security"].startswith("max-age=31536000")
    assert "server" not in answer.headers


def test_what_is_for_the_monitoring_is_not_shown(proxied: Proxied) -> None:
    for path in ("/metrics", "/healthz", "/readyz"):
        assert proxied.behind.ask("GET", path).status_code == 200
        assert proxied.http.get(path).status_code == 404


def test_the_server_knows_that_browsers_use_tls(proxied: Proxied) -> None:
    key = proxied.behind.key(People("tenant_proxied").reviewer)
    origin = {"Origin": str(proxied.http.base_url).rstrip("/")}
    answer = proxied.http.post("/console/signin", data={"key": key}, headers=origin)
    assert answer.status_code == 303, answer.text
    assert "secure" in answer.headers["set-cookie"].lower()


def test_an_address_that_a_client_claims_is_not_believed(proxied: Proxied) -> None:
    # From twelve addresses by its own word, and from one in truth: at some point it is one guess too many.
    answers = [
        proxied.http.get(
            "/v1/whoami", headers={"Authorization": f"Bearer mun_x.y{n}.z", "X-Forwarded-For": f"192.0.2.{n}"}
        ).status_code
        for n in range(12)
    ]
    assert answers[0] == 401 and answers[-1] == 429


def _answers(http: httpx2.Client) -> bool:
    """Whether it passes calls on; at first it has no certificate yet, and does not know whether the server is ready."""
    try:
        return http.get("/docs").status_code == 200
    except httpx2.TransportError:
        return False


def _wait(done: Callable[[], bool], process: "subprocess.Popen[bytes]", log: Path) -> None:
    give_up_at = time.monotonic() + 60
    while not done():
        assert process.poll() is None and time.monotonic() < give_up_at, log.read_text("utf-8")
        time.sleep(0.05)
