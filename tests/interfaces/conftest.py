"""One embedded server for all tests of the interfaces; each test has a tenant of its own."""

import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import typer

from muniment.database import embedded
from muniment.testing import TestServer
from tests.connections import found_open
from tests.interfaces.command import Terminal


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
