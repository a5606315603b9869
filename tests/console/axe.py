"""axe-core from npm, where node is: the serious and critical findings on an open page."""

import shutil
import subprocess
import tarfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.console.chromium import Scheme
from tests.soak import SOAKING

# A width in pixels, and the scheme.
Look = tuple[int, Scheme]
# Each page is looked at on a phone and at a desk, in light and in dark; in a soak also the other way round.
LOOKS: tuple[Look, ...] = ((390, "light"), (1440, "dark"), *(((390, "dark"), (1440, "light")) if SOAKING else ()))
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
    if not page.evaluate("'axe' in window"):
        page.evaluate(source())
    return page.evaluate(RUN)


def findings_in(page: Page, looks: Sequence[Look]) -> list[str]:
    """Serious and critical findings of the open page at each width and in each scheme, with everything that opens open."""
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    found: list[str] = []
    for width, scheme in looks:
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        found += [f"{width} px, {scheme}: {one}" for one in findings(page)]
    return found
