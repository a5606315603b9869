"""A full disk: the error says so, and everything continues by itself once there is space again."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from muniment import Fabric
from muniment.database import embedded, server_log
from muniment.errors import StorageUnavailable
from muniment.testing import People
from tests.faults.servers import AS_ROOT, eventually, postmaster

MEGABYTE = 1024 * 1024
PEOPLE = People("tenant_disk")


class Disk:
    """A small disk of the test's own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filler = folder / "filler"

    def fill(self, but: int = 0) -> None:
        """Use up all space but that many bytes."""
        with self._filler.open("ab", buffering=0) as filler:
            for size in (MEGABYTE, 4096, 1):
                with contextlib.suppress(OSError):
                    while True:
                        filler.write(b"x" * size)
            filler.truncate(filler.tell() - but)

    def free(self) -> None:
        """Give the space back."""
        self._filler.unlink()


@pytest.fixture
def disk(place: Path) -> Iterator[Disk]:
    if not AS_ROOT or sys.platform != "linux":
        pytest.skip("takes root on Linux to make a small disk")
    folder = place / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160m,mode=700", "tmpfs", folder], check=True)
    try:
        yield Disk(folder)
        for lock in folder.rglob("server.lock"):
            embedded.stop(lock.parent)
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def says_full(fabric: Fabric) -> bool:
    """Whether a capture is refused because the disk is full."""
    try:
        capture(fabric, "while the disk is full")
    except StorageUnavailable as error:
        return "the disk of the database is full" in str(error)
    return False


def capture(fabric: Fabric, text: str) -> None:
    fabric.capture(PEOPLE.run(), kind="statement", text=text, classification="PUBLIC")


def works(fabric: Fabric, text: str) -> bool:
    try:
        capture(fabric, text)
    except StorageUnavailable:
        return False
    return True


def use_up_log(fabric: Fabric) -> None:
    """Have the server begin a new segment of its write-ahead log, which takes space."""
    lease = fabric._fabric.opened.lease
    assert lease is not None
    with contextlib.suppress(psycopg.Error), psycopg.connect(lease.conninfo, autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS used (n int)")
        connection.execute("INSERT INTO used VALUES (1)")
        connection.execute("SELECT pg_switch_wal()")


@pytest.mark.rule("ERR-6", "ERR-3", "ERR-2")
def test_a_server_that_ends_because_its_disk_is_full_is_back_once_there_is_space(disk: Disk) -> None:
    home = disk.folder / "home"
    with Fabric.open(home=home) as fabric:
        capture(fabric, "before")
        use_up_log(fabric)
        # Enough for what is written into the server's log, too little for a segment of the write-ahead log.
        disk.fill(but=6 * MEGABYTE)

        def is_told() -> bool:
            use_up_log(fabric)
            return says_full(fabric)

        eventually(is_told)
        eventually(lambda: "53100 PANIC" in (home / "server.log").read_text())
        disk.free()
        eventually(lambda: works(fabric, "after"))
        fabric.consolidate(PEOPLE.tenant_id)
        said = {one.candidate.text for one in fabric.queue.list(PEOPLE.reviewer)}
        assert said >= {"before", "after"}
    assert not embedded.is_in_use(home)


@pytest.mark.rule("ERR-6", "ERR-3")
def test_a_server_killed_while_its_disk_is_full_is_started_again_once_there_is_space(disk: Disk) -> None:
    home = disk.folder / "home"
    with Fabric.open(home=home) as fabric:
        capture(fabric, "before")
        disk.fill()
        os.kill(postmaster(home), signal.SIGKILL)
        eventually(lambda: says_full(fabric))
        disk.free()
        eventually(lambda: works(fabric, "after"))


@pytest.mark.rule("ERR-6", "ERR-1")
def test_opening_a_home_on_a_full_disk_says_that_it_is_full(disk: Disk) -> None:
    home = disk.folder / "home"
    disk.fill()
    with pytest.raises(StorageUnavailable, match="the disk is full"):
        Fabric.open(home=home)
    disk.free()
    with Fabric.open(home=home) as fabric:
        capture(fabric, "before")
    disk.fill()
    with pytest.raises(StorageUnavailable, match=r"disk.* is full"):
        Fabric.open(home=home)
    disk.free()
    with Fabric.open(home=home) as fabric:
        capture(fabric, "after")


# ---- where no small disk can be made: what the log says ----

PANIC = b"""\
2026-01-02 03:04:05.678 UTC [11] 00000 LOG:  database system was interrupted
2026-01-02 03:04:05.900 UTC [12] 53100 PANIC:  could not write to file "pg_wal/xlogtemp.12": No space left on device
2026-01-02 03:04:06.000 UTC [10] 00000 LOG:  aborting startup due to startup process failure
"""


@pytest.mark.rule("ERR-6")
@pytest.mark.parametrize(
    ("output", "full"),
    [
        (PANIC, True),
        (b"initdb: error: could not create directory: No space left on device", True),
        (b"2026-01-02 03:04:05.900 UTC [12] 58P01 FATAL:  53100 files are missing", False),
        (b'2026-01-02 03:04:05.900 UTC [12] 22023 FATAL:  invalid value for parameter "shared_buffers"', False),
        (b"", False),
    ],
)
def test_a_failed_start_is_told_to_be_a_full_disk_by_its_sqlstate(place: Path, output: bytes, full: bool) -> None:
    error = server_log.start_failure("PostgreSQL did not start", place, 1, output)
    assert error.code == "storage_unavailable"
    assert ("the disk is full" in str(error)) is full
