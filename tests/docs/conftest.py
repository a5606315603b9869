"""Runs the examples on one database; every example has a tenant of its own."""

import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from muniment.testing import TestServer
from tests.docs.running import printed_by

Printed = Callable[[Path], tuple[list[str], list[str]]]


@pytest.fixture(scope="session")
def home() -> Iterator[Path]:
    """The home of a server that runs for the whole session."""
    # a short path, so that the socket fits into the home
    with tempfile.TemporaryDirectory(prefix="me") as folder, TestServer(Path(folder) / "home") as server:
        yield server.home


@pytest.fixture(scope="session")
def printed(home: Path) -> Printed:
    """Runs an example twice and returns the lines of both runs."""

    @cache
    def twice(example: Path) -> tuple[list[str], list[str]]:
        return printed_by(example, home), printed_by(example, home)

    return twice
