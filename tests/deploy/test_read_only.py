"""A server runs where nothing but its folder for temporary files can be written, as in the image."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from muniment.testing import TestServer
from tests.faults.load import MASTER_KEY, MUNIMENT, Serving

# A view of the files of its own, in which everything is read-only but the folder that is named first.
VIEW = """
set -e
mount --make-rprivate /
for place in / /dev/shm /tmp; do mount --bind "$place" "$place"; done
mount -t tmpfs scratch "$1"
for place in / /dev/shm /tmp; do mount -o remount,bind,ro "$place"; done
export TMPDIR="$1" HOME="$1"
cd "$1"
shift
exec "$@"
"""


def _can_have_a_view() -> bool:
    unshare = shutil.which("unshare")
    return unshare is not None and subprocess.run([unshare, "--mount", "true"], check=False).returncode == 0


pytestmark = pytest.mark.skipif(
    not _can_have_a_view(), reason="it takes root, or the right to have a view of the files"
)


def in_view(scratch: Path, *command: str) -> list[str]:
    return ["unshare", "--mount", "bash", "-c", VIEW, "view", str(scratch), *command]


@pytest.fixture
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="ro") as folder:
        yield Path(folder)


def test_nothing_else_can_be_written_there(scratch: Path, tmp_path: Path) -> None:
    command = f"touch here && ! touch {tmp_path}/there 2>/dev/null && ! touch /there 2>/dev/null"
    subprocess.run(in_view(scratch, "bash", "-c", command), check=True)


def test_servers_of_several_processes_and_workers_need_no_other_folder(server: TestServer, scratch: Path) -> None:
    place = server.url(server.clone())
    serving = Serving("--url", place, "--workers", 2, MUNIMENT_READERS="on")
    serving._command = in_view(scratch, *serving._command)
    serving.log = scratch.with_suffix(".log")
    try:
        with serving.running():
            for path in ("/readyz", "/metrics", "/console/signin", "/docs"):
                assert httpx2.get(f"{serving.url}{path}", trust_env=False).status_code == 200, path
            assert serving.stop() == 0
        assert "Read-only" not in serving.log.read_text("utf-8")
    finally:
        serving.log.unlink()
    environment = os.environ | {"MUNIMENT_MASTER_KEY": MASTER_KEY, "MUNIMENT_READERS": "on"}
    work = in_view(scratch, MUNIMENT, "worker", "--until-idle", "--url", place)
    subprocess.run(work, env=environment, check=True, timeout=120)
