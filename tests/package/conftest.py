"""The packages, built once, and a clean environment in which the wheel alone is installed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from release.artifacts import ROOT, Artifacts, build
from release.trial import Trial, trial_folder


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Artifacts:
    return build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="session")
def short() -> Iterator[Path]:
    with trial_folder() as folder:
        yield folder


@pytest.fixture(scope="session")
def plain(built: Artifacts, short: Path) -> Trial:
    """The wheel without extras, with the versions that the tests use."""
    trial = Trial(short / "plain")
    trial.install(str(built.wheel), constraints=ROOT / "constraints.txt")
    return trial
