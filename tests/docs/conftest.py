"""What the examples print, run on one database: every example keeps to a tenant of its own."""

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
    """The home of a server that is up as long as examples are run."""
    # short, so that the socket lies in the home itself
    with tempfile.TemporaryDirectory(prefix="me") as folder, TestServer(Path(folder) / "home") as server:
        yield server.home


@pytest.fixture(scope="session")
def printed(home: Path) -> Printed:
    """The lines of an example's first run, and of its second."""

    @cache
    def twice(example: Path) -> tuple[list[str], list[str]]:
        return printed_by(example, home), printed_by(example, home)

    return twice
