"""The list of what an installation consists of (SBOM), as CycloneDX."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from release.artifacts import ROOT


def write_sbom(python: Path, version: str, folder: Path) -> Path:
    """Write every package of an environment, with version and licence; `python` is the environment's interpreter.

    The tool checks the result against the schema of CycloneDX 1.6. Raises `CalledProcessError` if it fails.
    """
    target = folder / f"muniment-{version}.cdx.json"
    command = [sys.executable, "-m", "cyclonedx_py", "environment", str(python)]
    command += ["--pyproject", str(ROOT / "pyproject.toml"), "--mc-type", "application", "--output-reproducible"]
    command += ["--spec-version", "1.6", "--output-format", "JSON", "--output-file", str(target)]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    written: dict[str, Any] = json.loads(target.read_text("utf-8"))
    _complete(written, version)
    target.write_text(json.dumps(written, indent=2) + "\n", "utf-8")
    return target


def components(sbom: Path) -> dict[str, str]:
    """The packages that it lists, with their versions."""
    listed: list[dict[str, Any]] = json.loads(sbom.read_text("utf-8"))["components"]
    return {one["name"].lower(): one["version"] for one in listed}


def _complete(written: dict[str, Any], version: str) -> None:
    """Say the version, which pyproject.toml leaves to the code, and no path of the machine that made the release."""
    written["metadata"]["component"] |= {"version": version, "purl": f"pkg:pypi/muniment@{version}"}
    for one in written["components"]:
        for reference in one.get("externalReferences", []):
            if reference["url"].startswith("file:"):
                reference["url"] = reference["url"].rpartition("/")[2]
