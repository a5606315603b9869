"""One embedded server for the doors, up as long as they are tested; each test in a tenant of its own."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from muniment.storage import embedded
from tests.doors.command import Desk


@pytest.fixture(scope="package")
def home() -> Iterator[Path]:
    # a short path, unlike that of tmp_path_factory, so that the socket fits in
    with tempfile.TemporaryDirectory(prefix="mc") as folder, embedded.acquire(Path(folder) / "home") as lease:
        yield lease.home


@pytest.fixture(autouse=True)
def no_terminal_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def desk(home: Path, tenant: str) -> Desk:
    return Desk(home, tenant)
