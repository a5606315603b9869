"""The files of a release: the source distributions and the wheels of muniment and muniment-models."""

import hashlib
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from muniment import __version__

ROOT = Path(__file__).parents[1]
SUMS = "SHA256SUMS"


@dataclass(frozen=True)
class Artifacts:
    """What `build` made: the program and its models, each as source and as a wheel."""

    source: Path
    wheel: Path
    models_source: Path
    models_wheel: Path

    @property
    def files(self) -> tuple[Path, ...]:
        """All of them, in the order in which they are to be uploaded: what others need comes first."""
        return (self.models_source, self.models_wheel, self.source, self.wheel)


def build(folder: Path) -> Artifacts:
    """Build both packages into a folder; each wheel is built from its source distribution, as a packager would.

    The times in the files are those of the last commit, so that the same commit gives the same files.
    Raises `CalledProcessError` if a build fails.
    """
    environment = os.environ | _time_of_commit()
    for project in (ROOT, ROOT / "models"):
        command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(project)]
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    return artifacts_in(folder)


def artifacts_in(folder: Path) -> Artifacts:
    """The files of this version in a folder; raises `FileNotFoundError` if one is missing."""
    found = Artifacts(
        source=folder / f"muniment-{__version__}.tar.gz",
        wheel=folder / f"muniment-{__version__}-py3-none-any.whl",
        models_source=folder / f"muniment_models-{__version__}.tar.gz",
        models_wheel=folder / f"muniment_models-{__version__}-py3-none-any.whl",
    )
    for file in found.files:
        if not file.is_file():
            raise FileNotFoundError(f"{file.name} was not built")
    return found


def check(artifacts: Artifacts) -> None:
    """Have twine check the metadata and the README of each file; raises `CalledProcessError` if anything is wrong."""
    command = [sys.executable, "-m", "twine", "--no-color", "check", "--strict", *map(str, artifacts.files)]
    subprocess.run(command, check=True)


def write_sums(folder: Path) -> Path:
    """Write the SHA-256 of every file of the folder, in the form that `sha256sum --check` reads."""
    files = sorted(file for file in folder.iterdir() if file.name != SUMS)
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
    (folder / SUMS).write_text("".join(lines), "utf-8")
    return folder / SUMS


def _time_of_commit() -> dict[str, str]:
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return {}  # no repository, as in an unpacked source distribution
    return {"SOURCE_DATE_EPOCH": done.stdout.strip()}
