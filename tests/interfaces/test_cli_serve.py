"""`muniment serve` as a process: it starts, answers, ends what is in flight, and gives its database back."""

import json
import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import pytest

from muniment.client import Client
from muniment.database import embedded
from tests.interfaces.command import MUNIMENT, Terminal, run

TEXT = "Returns are accepted within 30 days."


@contextmanager
def _started(home: Path, *options: object, **streams: int) -> Generator["subprocess.Popen[str]"]:
    arguments = [str(one) for one in (MUNIMENT, "serve", "--home", home, *options)]
    # os.environ as it is: readline adds COLUMNS to the environment of the process itself.
    with subprocess.Popen(arguments, text=True, env=dict(os.environ), **streams) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


@contextmanager
def _serving(home: Path, *options: object) -> Generator[tuple["subprocess.Popen[str]", str]]:
    with _started(home, "--json", *options, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield process, json.loads(process.stdout.readline())["url"]


def _token(home: Path, *roles: str) -> str:
    granted = [word for role in roles for word in ("--grant", role)]
    return run("key", "create", "--for", "ada", *granted, "--home", home, "--json").json["token"]


class _Wire:
    """A request by hand."""

    def __init__(self, url: str, head: str, token: str) -> None:
        place = urlsplit(url)
        self.socket = socket.create_connection((place.hostname, place.port), timeout=30)
        self.file = self.socket.makefile("rb")
        self.send(f"{head} HTTP/1.1\r\nHost: {place.netloc}\r\nAuthorization: Bearer {token}\r\n".encode())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def lines_until(self, end: bytes) -> list[bytes]:
        found: list[bytes] = []
        while (line := self.file.readline()) and line != end:
            found.append(line)
        return found


@pytest.mark.rule("CAP-10")
def test_told_to_end_it_answers_what_is_in_flight_ends_its_streams_and_gives_the_database_back() -> None:
    # A short path, so that the socket fits in.
    with tempfile.TemporaryDirectory(prefix="ms") as folder:
        home = Path(folder) / "home"
        body = json.dumps({"kind": "statement", "text": TEXT, "classification": "PUBLIC"}).encode()
        with _serving(home, "--port", 0) as (process, url):
            token = _token(home, "auditor", "correction_writer")
            with _Wire(url, "GET /v1/events", token) as stream, _Wire(url, "POST /v1/captures", token) as asked:
                stream.send(b"Accept: text/event-stream\r\n\r\n")
                assert stream.file.readline().startswith(b"HTTP/1.1 200")
                asked.send(b"Expect: 100-continue\r\nContent-Type: application/json\r\n")
                asked.send(b"Content-Length: %d\r\n\r\n" % len(body))
                # It is at it: it waits for the body.
                assert asked.file.readline().startswith(b"HTTP/1.1 100")
                process.send_signal(signal.SIGTERM)
                assert stream.lines_until(b"")[-2:] == [b"0\r\n", b"\r\n"]
                asked.file.readline()
                asked.send(body)
                assert asked.file.readline().startswith(b"HTTP/1.1 201")
                receipt = json.loads(asked.lines_until(b"")[-1])
            assert process.wait(60) == 0
        assert not embedded.is_running(home)
        with _started(home, "--port", urlsplit(url).port, "--no-worker", stderr=subprocess.PIPE) as process:
            assert process.stderr is not None
            said = next(line for line in process.stderr if "serving at" in line)
            said += process.stderr.readline() + process.stderr.readline()
            # The same place once more, and where people find the console and the documents.
            assert all(f"{url}{path}" in said for path in (", without a worker", "/console", "/docs"))
            taken = run("serve", "--home", home, "--port", urlsplit(url).port, "--json")
            with Client.open(url, token) as client:
                found = client.events(client.whoami())
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0
        assert receipt["capture_id"] in {one.data.get("first") for one in found}
        assert (taken.code, taken.error["field"]) == (1, "port")
        assert "already in use" in taken.error["message"]
        assert not embedded.is_running(home)


@pytest.mark.rule("PAC-6")
def test_with_activate_it_puts_its_pack_file_in_force_but_not_where_that_takes_two_people() -> None:
    with tempfile.TemporaryDirectory(prefix="ms") as folder:
        home = Path(folder) / "home"
        terminal = Terminal(home, "acme")
        for name, floor in (("1.0.0", 0.5), ("2.0.0", 0.1)):
            (Path(folder) / f"{name}.yaml").write_text(
                f'pack_meta: {{id: acme, version: "{name}"}}\n'
                f"memory_layer: {{promotion_thresholds: {{confidence_floor: {floor}}}}}\n"
            )
        assert terminal("capture", TEXT, "-c", "PUBLIC").code == 0
        stricter, laxer = (("--pack-file", Path(folder) / f"{name}.yaml") for name in ("1.0.0", "2.0.0"))
        with _serving(home, "--port", 0, *stricter, "--no-worker") as (process, _):
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        assert terminal.json("pack", "in-force")["pack"] == "muniment.builtin@1.3.0"
        with _serving(home, "--port", 0, *stricter, "--no-worker", "--activate") as (process, _):
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        found = terminal.json("pack", "in-force")
        assert (found["pack"], found["by_kind"], found["reason"]) == ("acme@1.0.0", "system", "given at start")
        refused = run("serve", "--home", home, "--port", 0, *laxer, "--activate", "--json")
        assert (refused.code, refused.error["code"]) == (1, "second_person_required")
        assert "acme (under acme@1.0.0)" in refused.error["message"]
        assert terminal.json("pack", "in-force") == found
        assert not embedded.is_running(home)


@pytest.mark.parametrize(
    ("options", "environment", "field"),
    [
        (("--host", "203.0.113.9"), {}, "host"),
        (("--host", "no such host"), {}, "host"),
        (("--pack-file", "none.yaml"), {}, "pack"),
        (("--activate",), {}, "activate"),
        (("--url", ""), {}, "url"),
        (("--server", "http://127.0.0.1:1"), {}, "server"),
        ((), {"MUNIMENT_RATE": "fast"}, "MUNIMENT_RATE"),
        ((), {"MUNIMENT_OIDC_ISSUER": "https://issuer.example.com"}, "MUNIMENT_OIDC_AUDIENCE"),
    ],
)
def test_with_a_wrong_setting_it_does_not_begin(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    environment: dict[str, str],
    field: str,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    place: tuple[Any, ...] = () if "--url" in options else ("--home", tmp_path / "home")
    ran = run("serve", "--port", 0, *place, *options, "--json")
    assert (ran.code, ran.out, ran.error["field"]) == (1, "", field)
    assert not (tmp_path / "home").exists()


def test_a_form_of_logs_that_there_is_not_is_a_mistake_in_the_command(tmp_path: Path) -> None:
    assert run("serve", "--log", "xml", "--home", tmp_path / "home").code == 2
