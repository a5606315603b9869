"""Places for embedded servers of a test's own."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from muniment.database import embedded
from muniment.testing import TestServer


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder with a short path, unlike tmp_path, so that sockets fit in; servers below it are ended."""
    folder = Path(tempfile.mkdtemp(prefix="mun-")).resolve()
    yield folder
    for lock in folder.rglob("server.lock"):
        embedded.stop(lock.parent)
    shutil.rmtree(folder)


@pytest.fixture
def new_home(place: Path) -> Path:
    return place / "home"


@pytest.fixture(scope="module")
def initialised() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="mun-") as folder:
        with embedded.acquire(Path(folder, "home")) as lease:
            pass
        yield lease.home


@pytest.fixture
def home(initialised: Path) -> Iterator[Path]:
    """A home that was started before; the tests share it, for making one is what takes most of their time."""
    yield initialised
    embedded.stop(initialised)


@pytest.fixture(scope="session")
def away() -> Iterator[TestServer]:
    """A server to be stopped and killed, which commits to the disk; the tests share it."""
    folder = Path(tempfile.mkdtemp(prefix="mun-")).resolve()
    with TestServer(folder / "home", durable=True) as server:
        yield server
        embedded.stop(server.home)
    shutil.rmtree(folder)


@pytest.fixture
def own(away: TestServer) -> str:
    """A database of the test's own on it; it runs when the test begins."""
    embedded.keep_running(away.home)
    return away.clone()
