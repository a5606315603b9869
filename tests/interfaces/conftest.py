"""One embedded server for all tests of the interfaces; each test has a tenant of its own."""

import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from threading import Thread

import pytest
import typer

from muniment.database import embedded
from muniment.testing import FakeClock, TestServer
from tests.connections import found_open
from tests.interfaces.command import Terminal
from tests.interfaces.oidc_issuer import Issuer, TokenChecks


@pytest.fixture(scope="package")
def home() -> Iterator[Path]:
    # a short path, unlike that of tmp_path_factory, so that the socket fits in
    with (
        tempfile.TemporaryDirectory(prefix="mc") as folder,
        TestServer(Path(folder) / "home") as running,
        found_open(running),
    ):
        yield embedded.resolve(running.home)


@pytest.fixture(scope="package", autouse=True)
def commands_are_gathered_once() -> Iterator[None]:
    """As in a process of its own, where only one command is run; here it would take half of the time of each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", cache(typer.main.get_command))
        yield


@pytest.fixture
def terminal(home: Path, tenant: str) -> Terminal:
    return Terminal(home, tenant)


@pytest.fixture
def issuer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Issuer]:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with Issuer() as running:
        thread = Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def checks(issuer: Issuer, clock: FakeClock) -> TokenChecks:
    return TokenChecks(issuer.url, clock)
