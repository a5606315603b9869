"""axe-core from npm, where node is: the serious and critical findings on an open page."""

import shutil
import subprocess
import tarfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

VERSION = "4.14.0"
FOLDER = Path("build/axe")
RUN = """async () => (await axe.run(document, { resultTypes: ["violations"] })).violations
  .filter((one) => ["serious", "critical"].includes(one.impact))
  .map((one) => `${one.id}: ${one.nodes.map((node) => node.target.join(" ")).slice(0, 3).join("; ")}`)"""


@cache
def source() -> str:
    """The script, fetched once; without node or a registry the test is skipped."""
    script = FOLDER / f"axe-{VERSION}.min.js"
    if not script.exists():
        if (npm := shutil.which("npm")) is None:
            pytest.skip("not run: there is no npm here")
        FOLDER.mkdir(parents=True, exist_ok=True)
        command = [npm, "pack", f"axe-core@{VERSION}", "--silent"]
        packed = subprocess.run(command, cwd=FOLDER, capture_output=True, timeout=120, check=False)
        archive = FOLDER / f"axe-core-{VERSION}.tgz"
        if packed.returncode or not archive.exists():
            pytest.skip("not run: axe-core cannot be fetched here")
        with tarfile.open(archive) as opened:
            found = opened.extractfile("package/axe.min.js")
            assert found is not None
            script.write_bytes(found.read())
    return script.read_text("utf-8")


def findings(page: Page) -> list[Any]:
    """Serious and critical findings of the open page."""
    page.evaluate(source())
    return page.evaluate(RUN)
