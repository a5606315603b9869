"""make release: the packages in dist/, checked and tried, with notes, SBOM and checksums. It uploads nothing.

usage: python -m release
"""

import json
import shutil
import sys
from pathlib import Path

from muniment import __version__
from release.artifacts import ROOT, Artifacts, build, check, write_sums
from release.notes import CHANGELOG, section, write_notes
from release.sbom import components, write_sbom
from release.trial import Trial, trial_folder

DIST = ROOT / "dist"


def main() -> None:
    """Make the release; raises if anything is wrong, and then leaves what was made for inspection."""
    found = section(__version__, CHANGELOG.read_text("utf-8"))
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    _say(f"building muniment and muniment-models {__version__}")
    artifacts = build(DIST)
    check(artifacts)
    with trial_folder() as folder:
        _try_plain(artifacts, folder / "plain")
        _try_everything(artifacts, folder / "all")
    write_notes(__version__, DIST)
    write_sums(DIST)
    for file in sorted(DIST.iterdir()):
        _say(f"  {file.stat().st_size:>11,}  dist/{file.name}")
    if found.date is None:
        _say(f"CHANGELOG.md calls {__version__} unreleased: give it a date before you tag and upload")
    _say("nothing was uploaded; CONTRIBUTING.md says how a release is published")


def _try_plain(artifacts: Artifacts, folder: Path) -> None:
    """The wheel alone, with the newest packages that it accepts, runs the README's first example."""
    _say("trying the wheel in a clean environment")
    trial = Trial(folder)
    trial.install(str(artifacts.wheel))
    _say(f"  {len(trial.installed())} packages; the first example prints: {trial.run_first_example().strip()}")


def _try_everything(artifacts: Artifacts, folder: Path) -> None:
    """With all extras a server answers and says its version; what is installed is written down."""
    _say("trying it with all extras")
    trial = Trial(folder)
    trial.install(f"{artifacts.wheel}[all]", str(artifacts.models_wheel))
    answers = trial.serve(["/openapi.json", "/metrics", "/console"])
    said = json.loads(answers["/openapi.json"])["info"]["version"]
    if said != __version__:
        raise RuntimeError(f"the server says that it is {said}")
    sbom = write_sbom(trial.python, __version__, DIST)
    _say(f"  a server answers as {said}; {len(components(sbom))} packages are in the SBOM")


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
