"""One home for the tests of memory in five lines; each test has a user of its own in it."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from muniment import Memory, Principal
from muniment.testing import TestServer


@pytest.fixture(scope="package")
def home() -> Iterator[Path]:
    # A short path, so that the socket fits into the home.
    with tempfile.TemporaryDirectory(prefix="mm") as folder, TestServer(Path(folder) / "home") as running:
        yield running.home


@pytest.fixture
def empty() -> Iterator[Path]:
    """A home that is not made yet."""
    with tempfile.TemporaryDirectory(prefix="mm") as folder:
        yield Path(folder) / "home"


@pytest.fixture
def user() -> str:
    return f"user_{uuid4().hex[:8]}"


@pytest.fixture
def memory(home: Path, user: str) -> Iterator[Memory]:
    with Memory.open(user=user, home=home) as opened:
        yield opened


@pytest.fixture
def auditor() -> Principal:
    return Principal(tenant_id="local", id="anton", kind="operator", roles={"auditor", "reviewer"})
