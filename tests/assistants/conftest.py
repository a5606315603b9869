"""A person's home without a program in it, one home of Muniment for all tests, a user for each of them."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from muniment import Memory
from muniment.testing import TestServer

# Variables that move a program's folder.
MOVED = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "XDG_CONFIG_HOME", "APPDATA")


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a person."""
    for name in MOVED:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.fixture(scope="package")
def home() -> Iterator[Path]:
    # A short path, so that the socket fits into the home.
    with tempfile.TemporaryDirectory(prefix="ma") as folder, TestServer(Path(folder) / "home") as running:
        yield running.home


@pytest.fixture
def empty() -> Iterator[Path]:
    """A home that is not made yet."""
    with tempfile.TemporaryDirectory(prefix="ma") as folder:
        yield Path(folder) / "home"


@pytest.fixture
def user() -> str:
    return f"user_{uuid4().hex[:8]}"


@pytest.fixture
def memory(home: Path, user: str) -> Iterator[Memory]:
    with Memory.open(user=user, home=home) as opened:
        yield opened
